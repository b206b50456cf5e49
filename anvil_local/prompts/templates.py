"""Chat templates of GGUF files: untrusted programs that say where our text goes.

The template is rendered once with a marker in place of the user turn, and cut at the marker. Data is never
rendered by it. It runs in Jinja's sandbox, which keeps it from files and from Python's inner parts, and in a
process of its own with little memory and time: the sandbox does not stop `'x' * 10 ** 10` or loops in
loops.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from typing import Any

from anvil_local.errors import ModelFileInvalid

_MARKER = "\x02anvil-user-turn\x03"
_LONGEST = 100_000
_CPU_SECONDS, _SECONDS = 3, 60
"""Of rendering; and of the whole process, which a busy machine may let wait."""
_MEMORY = 1 << 30
"""Bytes of address space, the interpreter included."""

_CHILD = "from anvil_local.prompts.templates import _serve; _serve()"


def split_chat_template(
    template: str, *, system: str | None = None, bos: str = "", eos: str = ""
) -> tuple[str, str]:
    """What the template puts before and after the user's text, generation prompt included.

    Reasoning models are asked not to think (`enable_thinking=False`), so that the verdict is the next
    token.

    Raises:
        ModelFileInvalid: the template fails, takes too much time or memory, or does not show the user's
            text exactly once.
    """
    hint = "choose a prompt profile without a template: --prompts plain"
    if len(template) > _LONGEST:
        raise ModelFileInvalid("the model's chat template is too long", value=len(template), hint=hint)
    opening = [{"role": "system", "content": system}] if system else []
    question = {
        "template": template,
        "messages": [*opening, {"role": "user", "content": _MARKER}],
        "bos_token": bos,
        "eos_token": eos,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps(question).encode("ascii"),
            capture_output=True,
            # The same packages as here, wherever they came from.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ModelFileInvalid("the model's chat template takes too long", hint=hint) from None
    except OSError as error:  # no interpreter to run, no memory for another process
        raise ModelFileInvalid(f"the model's chat template cannot be run: {error}", hint=hint) from error
    try:
        answer = json.loads(done.stdout)
    except ValueError:  # ended by the limits
        raise ModelFileInvalid(
            f"the model's chat template takes more than {_CPU_SECONDS} s of processor time "
            f"or {_MEMORY >> 20} MB of memory",
            value=f"exit status {done.returncode}",
            hint=hint,
        ) from None
    if "error" in answer:
        raise ModelFileInvalid(f"the model's chat template {answer['error']}", hint=hint)
    before, after = answer["parts"]
    return before, after


def _serve() -> None:
    """The other process: a question on standard input, the answer on standard output, both JSON."""
    question = json.loads(sys.stdin.buffer.read())
    import jinja2.sandbox  # noqa: F401  # before the limits: its own time is not the template's

    with contextlib.suppress(ImportError):  # not on Windows, where the time of the process is the limit
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + _CPU_SECONDS
        limits = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0, resource.RLIMIT_AS: _MEMORY}
        for limit, most in limits.items():
            with contextlib.suppress(ValueError):  # macOS sets no limit on address space
                resource.setrlimit(limit, (most, most))
    sys.stdout.write(json.dumps(_render(question)))


def _render(question: dict[str, Any]) -> dict[str, Any]:
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise TemplateError(str(message))

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda _: ""  # a date would change the verdicts every day
    template = question.pop("template")
    try:
        text = environment.from_string(template).render(
            **question, add_generation_prompt=True, enable_thinking=False
        )
    except MemoryError:
        return {"error": "fails: it takes too much memory"}
    except Exception as error:
        return {"error": f"fails: {error!s:.300}"}
    if len(text) > _LONGEST or text.count(_MARKER) != 1:
        return {"error": "does not show the user's text once"}
    return {"parts": text.split(_MARKER)}
