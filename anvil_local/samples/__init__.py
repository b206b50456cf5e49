"""What people have, read into `Sample`s; and traces, flattened into what the judge reads.

    file -> formats (json_lines, json_document) -> rows (field names) -> messages -> Sample
    Sample.user_input -> traces (formatters) -> text

A new file format is one module with a `read` function and one row in `formats.FORMATS`.
"""

from anvil_local.samples.files import Counts, SampleFile
from anvil_local.samples.rows import FIELD_NAMES, as_samples, sample_from_row
from anvil_local.samples.traces import DEFAULT_FORMATTER, FORMATTERS, View, render_trace

__all__ = [
    "DEFAULT_FORMATTER",
    "FIELD_NAMES",
    "FORMATTERS",
    "Counts",
    "SampleFile",
    "View",
    "as_samples",
    "render_trace",
    "sample_from_row",
]
