"""Reports: record -> text, one module a format. None of them recomputes a number.

The libraries that a format needs are imported when it is rendered, not when this is imported.
"""

from __future__ import annotations

from anvil_local.reports.files import FORMATS, check_report_paths, write_reports
from anvil_local.reports.html_report import render_html
from anvil_local.reports.json_report import load_report, parse_report, render_json
from anvil_local.reports.junit import render_junit
from anvil_local.reports.markdown import render_markdown
from anvil_local.reports.sarif import render_sarif
from anvil_local.reports.terminal import render_terminal
from anvil_local.reports.text import excerpt, printable

__all__ = [
    "FORMATS",
    "check_report_paths",
    "excerpt",
    "load_report",
    "parse_report",
    "printable",
    "render_html",
    "render_json",
    "render_junit",
    "render_markdown",
    "render_sarif",
    "render_terminal",
    "write_reports",
]
