"""The command line: `anvil-local`.

    app.py       the commands' tree and the entry point, with the exit codes
    options.py   options that several commands share
    console.py   stdout for results, stderr for notes, progress
    run.py  ask.py  calibrate.py  selfcheck.py  models.py  cache.py  info.py
    replay.py  report.py  diff.py  explain.py  label.py  stability.py   the commands

Results go to stdout, progress and notes to stderr. Nothing heavy is imported before a command needs it.
"""

from anvil_local.cli.app import main

__all__ = ["main"]
