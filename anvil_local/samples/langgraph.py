"""LangGraph: a snapshot of a thread's state, `{"values": {"messages": [...]}, ...}`, one a row.

A bare state, `{"messages": [...]}`, needs no format. The snapshot's other keys are metadata, and so are
the state's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anvil_local.errors import InputError


def translate(row: Any) -> Any:
    """A snapshot as a row with `messages`."""
    values = row.get("values") if isinstance(row, Mapping) else None
    if not isinstance(values, Mapping) or "messages" not in values:
        raise InputError("a snapshot keeps its messages in `values.messages`", field="values.messages")
    if row.get("next"):
        raise InputError(
            "the run is not at its end: `next` names steps that are still to come",
            field="next",
            value=row["next"],
            hint="take the last snapshot of the run",
        )
    others = {key: value for key, value in values.items() if key != "messages"}
    rest = {key: value for key, value in row.items() if key != "values"}
    return rest | ({"values": others} if others else {}) | {"messages": values["messages"]}
