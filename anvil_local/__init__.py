"""anvil_local judges RAG answers and agent traces offline, with a local GGUF model.

The data's way, and the module that owns each step:

    sample -> statements -> verdicts -> score  -> gate  -> report
    samples   decompose     judge       scoring   gates    reports

Importing this package loads none of llama_cpp, outlines and numpy; the names below are looked up
when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anvil_local._version import __version__

_HOMES = {
    "AnvilError": "errors",
    "ExitCode": "errors",
    "FakeJudge": "judge",
    "GgufJudge": "judge",
    "Judge": "judge",
    "Message": "records",
    "Options": "assess",
    "Report": "records",
    "Sample": "records",
    "SampleFile": "samples",
    "SampleResult": "records",
    "Statement": "records",
    "Verdict": "records",
    "evaluate": "runner",
    "load_report": "reports",
    "split_statements": "decompose",
    "write_reports": "reports",
}

__all__ = [
    "AnvilError",
    "ExitCode",
    "FakeJudge",
    "GgufJudge",
    "Judge",
    "Message",
    "Options",
    "Report",
    "Sample",
    "SampleFile",
    "SampleResult",
    "Statement",
    "Verdict",
    "__version__",
    "evaluate",
    "load_report",
    "split_statements",
    "write_reports",
]

if TYPE_CHECKING:
    from anvil_local.assess import Options
    from anvil_local.decompose import split_statements
    from anvil_local.errors import AnvilError, ExitCode
    from anvil_local.judge import FakeJudge, GgufJudge, Judge
    from anvil_local.records import Message, Report, Sample, SampleResult, Statement, Verdict
    from anvil_local.reports import load_report, write_reports
    from anvil_local.runner import evaluate
    from anvil_local.samples import SampleFile


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
