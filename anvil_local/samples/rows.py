"""One row, as any format gave it, into one `Sample`: field names, types and what is missing.

| field | names in a row | value |
|---|---|---|
| id | `id` | text or a whole number; the row's number when there is none |
| user_input | `user_input`, `question`, `messages` | the question, or the list of messages of a trace |
| response | `response`, `answer` | the answer to judge |
| retrieved_contexts | `retrieved_contexts`, `contexts` | a list of texts; one text is one context |
| reference | `reference`, `ground_truth`, `ground_truths` | one text (`ground_truths`: or a list of one) |

null means that the field is missing. Two names for one field in one row are refused, even with equal
values. All other keys are metadata and come back unchanged, unless one looks like a misspelt name of
a field that this row should have and does not.

A row is an *answer* (it has `response`; the question may be missing) or a *trace* (`user_input` is a
list of messages). A row that is both is refused: is the response the last turn, or not? A trace in
which no user says anything needs a `reference`: without one, there is nothing that was wanted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from anvil_local.errors import InputError, shorten
from anvil_local.records import Message, Role, Sample
from anvil_local.samples.messages import message_from_object, read_messages
from anvil_local.samples.strict_json import check_json, json_kind
from anvil_local.samples.tables import rows_of

FIELD_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id",),
        "user_input": ("user_input", "question", "messages"),
        "response": ("response", "answer"),
        "retrieved_contexts": ("retrieved_contexts", "contexts"),
        "reference": ("reference", "ground_truth", "ground_truths"),
    }
)
"""The names that a row may use for each field: Ragas' present ones first, then the old ones."""

_FIELD_OF = {name: field for field, names in FIELD_NAMES.items() for name in names}
# Fields of Ragas that no metric here reads; close to other names, but not misspelt.
_NOT_MISSPELT = frozenset({"rubrics", "rubric", "multi_responses"}) | frozenset(
    {"reference_contexts", "reference_tool_calls", "reference_topics"}
)

# Keys by which rows of other formats are recognised when they are refused, and the name of the format.
_OTHER_FORMATS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"actual_output"}), "deepeval"),
    (frozenset({"actualOutput"}), "deepeval"),
    (frozenset({"turns"}), "deepeval"),
    (frozenset({"events"}), "llamaindex"),
    (frozenset({"values"}), "langgraph"),
    (frozenset({"input", "output"}), "openai"),
    (frozenset({"messages", "choices"}), "openai"),
    (frozenset({"request", "response"}), "openai"),
    (frozenset({"vars", "response"}), "promptfoo"),
    (frozenset({"vars", "assert"}), "promptfoo"),
)


def sample_from_row(row: Any, *, where: str, number: int) -> Sample:
    """Read one row.

    `where` is its place, for errors and for `Sample.source`; `number` counts from 1 and becomes the
    id of a row that has none. Raises `InputError` with `where` and `field`.
    """
    try:
        return _read_row(row, where, number)
    except InputError as error:
        own = row.get("id") if isinstance(row, Mapping) else None
        sample = f" in sample {shorten(str(own))}" if isinstance(own, str | int) and own != "" else ""
        raise InputError(
            error.message + sample, where=where, field=error.field, value=error.value, hint=error.hint
        ) from None


def field_of(name: str) -> str | None:
    """The field that a key of a row names, if it names one."""
    return _FIELD_OF.get(name)


def as_samples(items: Iterable[Sample | Mapping[str, Any] | Any]) -> Iterator[Sample]:
    """Read samples, dicts in any of the accepted shapes, or objects that dump themselves to dicts.

    The last are pydantic objects such as Ragas' `SingleTurnSample` and `MultiTurnSample`, whole or as
    messages inside a dict. Raises `InputError` with `samples[INDEX]` at the first bad item or id that
    was used before.
    """
    items = rows_of(items)
    if isinstance(items, str | bytes | Mapping | Sample):
        raise InputError(
            f"samples must be a list of samples, not {json_kind(items)}", hint="write [sample] for one sample"
        )
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        where = f"samples[{index}]"
        if isinstance(item, Sample):
            sample = item
            _check_sample(sample, where)
        else:
            sample = sample_from_row(_row_from(item), where=where, number=index + 1)
        if sample.id in seen:
            raise InputError(
                f"the id {shorten(sample.id)} is used by samples[{seen[sample.id]}] too",
                where=where,
                field="id",
                hint="give each sample its own id, or leave all of them out",
            )
        seen[sample.id] = index
        yield sample


def has_lone_context(row: Mapping[str, Any]) -> bool:
    """Whether the contexts are given as one text instead of a list, which the run's header mentions."""
    return any(isinstance(row.get(name), str) for name in FIELD_NAMES["retrieved_contexts"])


def _check_sample(sample: Sample, where: str) -> None:
    """Hold a `Sample` that somebody made to what `sample_from_row` holds rows to."""
    if sample.is_trace:
        field, good = "user_input", bool(sample.user_input) and sample.response is None
    else:
        field, good = "response", bool(sample.response and sample.response.strip())
    if not good:
        raise InputError(
            f"sample {shorten(sample.id)} is neither an answer nor a trace: look at `{field}`",
            where=where,
            field=field,
            hint="an answer has a `response` with words in it; a trace has messages and no `response`",
        )


def _row_from(item: Any) -> Any:
    if not isinstance(item, Mapping):
        dump = getattr(item, "model_dump", None) or getattr(item, "to_dict", None)
        if callable(dump):
            # Ragas' objects hold all their columns, most of them None.
            item = {key: value for key, value in dump().items() if value is not None}
    if not isinstance(item, Mapping):
        return item
    row = dict(item)
    for name in FIELD_NAMES["user_input"]:
        if isinstance(row.get(name), list | tuple):
            row[name] = [message_from_object(message) for message in row[name]]
    return row


def _read_row(row: Any, where: str, number: int) -> Sample:
    if not isinstance(row, Mapping):
        raise InputError(f"a row must be an object with named fields, not {json_kind(row)}")
    check_json(row)
    names = _names_used(row)
    metadata = {key: value for key, value in row.items() if key not in _FIELD_OF}
    sample_id = _read_id(row["id"]) if "id" in names else str(number)
    if "messages" in row and "choices" in row:
        raise InputError(
            "the row is a request with its answer apart: the last turn stands in `choices`",
            field="choices",
            hint=_other_format(row),
        )
    if "user_input" in names and not isinstance(row[names["user_input"]], str):
        return _read_trace(row, names, sample_id, where, metadata)
    return _read_answer(row, names, sample_id, where, metadata)


def _names_used(row: Mapping[str, Any]) -> dict[str, str]:
    """The name that the row uses for each field that it has."""
    names: dict[str, str] = {}
    for key, value in row.items():
        field = _FIELD_OF.get(key)
        if field is None or value is None:
            continue
        if field in names:
            raise InputError(
                f"`{names[field]}` and `{key}` are two names for one field",
                field=key,
                hint=f"keep one of them; `{field}` is the present name",
            )
        names[field] = key
    return names


def _read_trace(
    row: Mapping[str, Any], names: Mapping[str, str], sample_id: str, where: str, metadata: dict[str, Any]
) -> Sample:
    path = names["user_input"]
    items = row[path]
    if not isinstance(items, list | tuple):
        raise InputError(
            f"`{path}` must be text (a question) or a list of messages (a trace), not {json_kind(items)}",
            field=path,
            hint="put a single message into a list" if isinstance(items, Mapping) else None,
        )
    if "response" in names:
        raise InputError(
            f"the row has messages in `{path}` and a `{names['response']}`: a trace or an answer, not both",
            field=names["response"],
            hint="for goal accuracy make the response the last message; "
            "for faithfulness give the question as text",
        )
    messages = read_messages(items, path)
    _refuse_misspelt(metadata, {"id", "reference"} - names.keys())
    reference = _read_reference(row, names)
    if reference is not None and not reference.strip():
        raise InputError(
            f"`{names['reference']}` is empty",
            field=names["reference"],
            hint="leave it out to judge without a reference, or write the desired outcome",
        )
    if reference is None and not any(_asks(message) for message in messages):
        raise InputError(
            f"nothing says what was wanted: `{path}` has no message of a user, and there is no `reference`",
            field=path,
            hint="add the user's message, or a `reference` with the desired outcome",
        )
    return Sample(
        id=sample_id,
        source=where,
        user_input=messages,
        retrieved_contexts=_read_contexts(row, names),
        reference=reference,
        metadata=metadata,
    )


def _asks(message: Message) -> bool:
    return message.role is Role.HUMAN and bool(message.content.strip())


def _read_answer(
    row: Mapping[str, Any], names: Mapping[str, str], sample_id: str, where: str, metadata: dict[str, Any]
) -> Sample:
    if names.get("user_input") == "messages":
        raise InputError("`messages` must be a list of messages, not text", field="messages")
    if "response" in names or _other_format(row) is None:
        _refuse_misspelt(metadata, {"id", "user_input", "response", "retrieved_contexts"} - names.keys())
    if "response" not in names:
        raise InputError(
            "`response` is missing"
            if "user_input" in names
            else "neither an answer nor a trace: there is no `response` and no messages in `user_input`",
            field="response",
            hint=_other_format(row)
            or "an answer has `response` (old name `answer`); a trace has a list of messages in "
            "`user_input` or `messages`; `--map response=PATH` names another place",
        )
    path = names["response"]
    response = row[path]
    if not isinstance(response, str):
        raise InputError(
            f"`{path}` must be text, not {json_kind(response)}",
            field=path,
            hint=_other_format(row)
            or (
                f"`--map response={path}.KEY` says where in it the text is"
                if isinstance(response, Mapping)
                else None
            ),
        )
    if not response.strip():
        raise InputError(
            f"`{path}` is empty: there is no answer to judge",
            field=path,
            hint="leave the row out if the system gave no answer",
        )
    return Sample(
        id=sample_id,
        source=where,
        user_input=row[names["user_input"]] if "user_input" in names else None,
        response=response,
        retrieved_contexts=_read_contexts(row, names),
        reference=_read_reference(row, names),
        metadata=metadata,
    )


def _read_id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(
            f"`id` must be text or a whole number, not {json_kind(value)}", field="id", value=value
        )
    if value == "":
        raise InputError("`id` is empty", field="id", hint="leave it out to use the row's number")
    return str(value)


def _read_contexts(row: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, ...] | None:
    if "retrieved_contexts" not in names:
        return None
    path = names["retrieved_contexts"]
    value = row[path]
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise InputError(
            f"`{path}` must be a list of texts, not {json_kind(value)}",
            field=path,
            hint="give the text of each passage",
        )
    for i, item in enumerate(value):
        if not isinstance(item, str):
            raise InputError(
                f"`{path}[{i}]` must be text, not {json_kind(item)}",
                field=f"{path}[{i}]",
                hint="give the text of each passage",
            )
    return tuple(value)


def _read_reference(row: Mapping[str, Any], names: Mapping[str, str]) -> str | None:
    if "reference" not in names:
        return None
    path = names["reference"]
    value = row[path]
    if path == "ground_truths" and isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise InputError(
            f"`{path}` must be one text, not {json_kind(value)}"
            + (f" of {len(value)}" if path == "ground_truths" and isinstance(value, list | tuple) else ""),
            field=path,
        )
    return value


def _other_format(row: Mapping[str, Any]) -> str | None:
    """The format whose keys the row has, as a hint: only the user knows whether it is one."""
    for keys, name in _OTHER_FORMATS:
        if keys <= row.keys():
            return f"this looks like a row of another program: try --format {name}"
    return None


def _refuse_misspelt(metadata: Mapping[str, Any], missing: Iterable[str]) -> None:
    """Refuse a key that looks like the name of a field that the row does not have."""
    wanted = {_letters(name): name for field in missing for name in FIELD_NAMES[field]}
    for key in metadata:
        letters = _letters(key)
        if key in _NOT_MISSPELT or metadata[key] is None:
            continue
        # A typo keeps the length; `question_id` and `answer_model` are names of their own.
        close = [
            name
            for name in difflib.get_close_matches(letters, wanted, n=3, cutoff=0.8)
            if abs(len(name) - len(letters)) <= 1 and (name == letters or len(name) > 3)
        ]
        if close:
            raise InputError(
                f"`{key}` is not a field",
                field=key,
                hint=f"did you mean `{wanted[close[0]]}`? rename it if it is something else",
            )


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
