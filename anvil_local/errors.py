"""Every error that anvil_local raises on purpose, and the exit code each one means.

    AnvilError
    ├── UsageError              a bad option, configuration or gate rule        exit 2
    ├── InputError              a bad row, file or field in the data            exit 2
    │   └── InputErrors         several of them, reported together              exit 2
    ├── ModelError              a model that cannot be used as asked            exit 2
    │   ├── ModelNotFound       no such name in the registry, no such file
    │   ├── ModelFileInvalid    truncated, corrupt, not GGUF, checksum wrong
    │   └── AdapterInvalid      an adapter of another model or another prompt
    ├── NothingToJudge          no rows, or no metric fits any row              exit 5
    ├── GrammarError            a grammar that the model's vocabulary cannot spell   exit 3
    ├── OutOfMemory             the model or its window does not fit            exit 3
    └── EngineError             llama.cpp failed on one question                exit 3
        └── PromptTooLong       a prompt that does not fit into the window

A message says what is wrong; `where`, `value` and `hint` are kept apart so that every
front end prints them the same way.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller."""

    OK = 0
    """Everything was judged and every gate passed."""
    GATE_FAILED = 1
    """At least one gate failed."""
    USAGE = 2
    """Bad usage, configuration or input."""
    INCOMPLETE = 3
    """The run could not finish."""
    NOTHING = 5
    """There was nothing to judge."""
    INTERRUPTED = 130
    """Ctrl-C."""


class AnvilError(Exception):
    """The root: catch this to catch everything that anvil_local raises on purpose."""

    exit_code: ExitCode = ExitCode.INCOMPLETE

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        value: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        """The place: `FILE:LINE`, a path inside a row, a file name."""
        self.value = value
        """The offending value, as it was read; shown shortened."""
        self.hint = hint
        """The next step for the reader."""

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        if self.value is not None:
            head += f" (got {shorten(self.value)})"
        return f"{head}\nhint: {self.hint}" if self.hint else head


def shorten(value: object, limit: int = 80) -> str:
    """The `repr` of a value, printable on any terminal and cut to `limit` characters."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    # A lone surrogate cannot be encoded by any terminal.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"


class UsageError(AnvilError):
    """A bad option, configuration key or gate rule."""

    exit_code = ExitCode.USAGE


class InputError(AnvilError):
    """A row, file or field that cannot be read; nothing was guessed."""

    exit_code = ExitCode.USAGE

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        field: str | None = None,
        value: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, value=value, hint=hint)
        self.field = field
        """The field of the row, as a path: `user_input[2].content`."""


class InputErrors(InputError):
    """All the bad rows of a file at once."""

    def __init__(self, errors: list[InputError]) -> None:
        self.errors = errors
        shown = "\n".join(str(error) for error in errors[:20])
        more = f"\n... and {len(errors) - 20} more" if len(errors) > 20 else ""
        rows = "1 bad row" if len(errors) == 1 else f"{len(errors)} bad rows"
        super().__init__(f"{rows}\n{shown}{more}")


class ModelError(AnvilError):
    """A model that cannot be used as asked."""

    exit_code = ExitCode.USAGE


class ModelNotFound(ModelError):
    """No model of that name in the registry and no file at that path."""


class ModelFileInvalid(ModelError):
    """The file is not a usable GGUF: truncated, corrupt, of another kind, or not the pinned bytes."""


class AdapterInvalid(ModelError):
    """The adapter was made for another model or for another prompt."""


class NothingToJudge(AnvilError):
    """The data held no row that a chosen metric can judge."""

    exit_code = ExitCode.NOTHING


class GrammarError(AnvilError):
    """The grammar has no path through the model's vocabulary."""


class OutOfMemory(AnvilError):
    """The model or its window does not fit into memory. Ends the run: no question could be asked."""


class EngineError(AnvilError):
    """llama.cpp failed on one question. A run goes on without it and counts it as unscored."""


class PromptTooLong(EngineError):
    """The prompt does not fit into the window."""
