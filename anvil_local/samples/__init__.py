"""What people have, read into `Sample`s; and traces, flattened into what the judge reads.

    file -> formats (json_lines, csv_table, inspect_log, ...) -> mapping -> rows (field names) -> messages
        -> Sample
    objects of other libraries -> tables -> rows -> messages -> Sample
    Sample.user_input -> traces (formatters) -> text

A new file format is one module with a `read` or a `translate` function, one golden file in
`tests/formats` and one row in `formats.FORMATS`.
"""

from anvil_local.samples.files import Counts, SampleFile
from anvil_local.samples.formats import FORMATS
from anvil_local.samples.mapping import FieldMap, parse_mapping
from anvil_local.samples.rows import FIELD_NAMES, as_samples, sample_from_row
from anvil_local.samples.traces import (
    COMPACTING,
    DEFAULT_FORMATTER,
    FORMATTERS,
    Block,
    View,
    render_blocks,
    render_trace,
)

__all__ = [
    "COMPACTING",
    "DEFAULT_FORMATTER",
    "FIELD_NAMES",
    "FORMATS",
    "FORMATTERS",
    "Block",
    "Counts",
    "FieldMap",
    "SampleFile",
    "View",
    "as_samples",
    "parse_mapping",
    "render_blocks",
    "render_trace",
    "sample_from_row",
]
