"""pip, asked from inside: the only way by which this package brings anything from elsewhere.

The user's own pip configuration holds, and so any mirror, proxy or certificate.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from anvil_local.errors import ModelError

__all__ = ["require_pip", "run_pip"]


def require_pip(hint: str = "") -> None:
    """Raise `ModelError` if this Python has no pip, as environments made by uv have none."""
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            f"packages are fetched with pip, and this Python has none: {sys.executable}",
            hint=f"`python -m ensurepip` or `uv pip install pip` adds it{hint}",
        )


def run_pip(arguments: Sequence[str], *, work: Path, failure: str, hint: str) -> None:
    """Run pip, which installs nothing into this Python.

    Args:
        arguments: the command and its options.
        work: a folder for its temporary files.
        failure: what could not be done, for the error.
        hint: what to do then.

    Raises:
        ModelError: pip failed; its last lines are in the message.
    """
    # No --isolated: the user's configuration holds. -P: a pip.py in the working directory is not pip.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pip", *arguments, "--no-input"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ
        | {
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_REQUIRE_VIRTUALENV": "0",  # nothing is installed into this Python
            "TMPDIR": str(work),
        },
        check=False,
    )
    if done.returncode:
        last = "\n".join(line for line in done.stdout.splitlines()[-6:] if line.strip())
        raise ModelError(f"{failure} (exit {done.returncode}); its last lines:\n{last}", hint=hint)
