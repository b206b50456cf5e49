"""The tree of commands, and the entry point with its exit codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from anvil_local._version import __version__
from anvil_local.cli import (
    ask,
    bundle,
    cache,
    calibrate,
    correct,
    diff,
    explain,
    info,
    inspect,
    label,
    merge,
    models,
    plan,
    replay,
    report,
    run,
    selfcheck,
    stability,
)
from anvil_local.cli.console import prepare_streams, say, show, show_error
from anvil_local.errors import AnvilError, ExitCode

_EPILOG = (
    "Exit codes: 0 all gates pass; 1 a gate failed; 2 bad usage, configuration or input; "
    "3 the run could not finish; 5 nothing to judge; 130 interrupted."
)

app = typer.Typer(
    name="anvil-local",
    help="Judge RAG answers and agent traces offline, with a local GGUF model. A verdict is 0 or 1.",
    epilog=_EPILOG,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # An exception that is not ours is a bug: its plain traceback helps more than a coloured one.
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        show(f"anvil-local {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Judge RAG answers and agent traces offline, with a local GGUF model. A verdict is 0 or 1."""


app.command("run")(run.run)
app.command("judge")(ask.judge)
app.command("decompose")(ask.decompose)
app.command("goal")(ask.goal)
app.command("inspect")(inspect.inspect)
app.add_typer(models.app, name="models")
app.add_typer(cache.app, name="cache")
app.command("selfcheck")(selfcheck.selfcheck)
app.command("calibrate")(calibrate.calibrate)
app.command("plan")(plan.plan)
app.command("correct")(correct.correct)
app.command("label")(label.label)
app.command("stability")(stability.stability)
app.command("merge")(merge.merge)
app.command("replay")(replay.replay)
app.command("report")(report.report)
app.command("diff")(diff.diff)
app.command("explain")(explain.explain)
app.command("bundle")(bundle.bundle)
app.command("info")(info.info)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. The only place where errors become exit codes."""
    prepare_streams()
    sys.exit(int(_run(arguments)))


def _run(arguments: list[str] | None) -> int:
    try:
        # Typer's own handling would turn every unexpected end into 1, which means "a gate failed" here.
        status = app(arguments, standalone_mode=False)
    except AnvilError as error:
        show_error(error)
        return error.exit_code
    except typer.TyperException as error:
        # Only the classes below it have the coloured form, and they are not public.
        show_usage = getattr(error, "show", None)
        if show_usage is None:
            say(f"error: {error}")
        else:
            show_usage()
        return ExitCode.USAGE
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return ExitCode.INCOMPLETE
    except MemoryError:
        say("error: out of memory\nhint: ask for a smaller window (--window 1024) or use a smaller model")
        return ExitCode.INCOMPLETE
    except Exception:
        import traceback

        traceback.print_exc()
        say("error: this is a bug in anvil_local; the lines above tell where")
        return ExitCode.INCOMPLETE
    return status if isinstance(status, int) else ExitCode.OK
