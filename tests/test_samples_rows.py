"""Field names, types, and what is refused in one row."""

from __future__ import annotations

from typing import Any

import pytest

from anvil_local.errors import InputError, InputErrors
from anvil_local.records import Sample
from anvil_local.samples import FIELD_NAMES, sample_from_row
from anvil_local.samples.rows import has_lone_context

ANSWER: dict[str, Any] = {
    "user_input": "When does the library close?",
    "response": "At six.",
    "retrieved_contexts": ["Opening hours: nine to six."],
}
TRACE: dict[str, Any] = {
    "user_input": [
        {"role": "user", "content": "Renew my card."},
        {"role": "assistant", "content": "Renewed."},
    ]
}


def read(row: Any) -> Sample:
    return sample_from_row(row, where="data.jsonl:3", number=2)


def refusal(row: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read(row)
    assert not isinstance(caught.value, InputErrors)
    assert caught.value.where == "data.jsonl:3"
    str(caught.value).encode()
    return caught.value


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in names}


def test_an_answer_is_read_with_its_place_and_number() -> None:
    assert read(ANSWER) == Sample(
        id="2",
        source="data.jsonl:3",
        user_input="When does the library close?",
        response="At six.",
        retrieved_contexts=("Opening hours: nine to six.",),
    )


def test_a_trace_is_read_from_a_list_of_messages() -> None:
    sample = read({**TRACE, "reference": "The card is renewed."})
    assert sample.is_trace
    assert sample.reference == "The card is renewed."


def test_messages_is_a_name_for_a_trace() -> None:
    assert read({"messages": TRACE["user_input"]}).user_input == read(TRACE).user_input


def test_old_names_mean_the_same_fields() -> None:
    old = {
        "question": ANSWER["user_input"],
        "answer": ANSWER["response"],
        "contexts": ANSWER["retrieved_contexts"],
        "ground_truth": "Six.",
    }
    assert read(old) == read({**ANSWER, "reference": "Six."})
    assert read({**without(old, "ground_truth"), "ground_truths": ["Six."]}) == read(old)


@pytest.mark.parametrize(
    ("field", "names"), [(field, names) for field, names in FIELD_NAMES.items() if len(names) > 1]
)
def test_two_names_for_one_field_are_refused_even_with_equal_values(
    field: str, names: tuple[str, ...]
) -> None:
    error = refusal({**ANSWER, names[0]: "same", names[1]: "same"})
    assert f"`{names[0]}` and `{names[1]}` are two names for one field" in error.message
    assert error.field == names[1]
    assert field in (error.hint or "")


def test_null_means_that_the_field_is_missing() -> None:
    row = {**ANSWER, "question": None, "reference": None, "id": None}
    assert read(row) == read(ANSWER)


def test_other_keys_come_back_unchanged() -> None:
    extra = {
        "topic": "hours",
        "nested": {"a": [1, None, 0.5]},
        "reference_contexts": ["x"],
        "rubrics": {"1": "bad"},
    }
    assert read({**ANSWER, **extra}).metadata == extra


def test_columns_of_ragas_that_no_metric_reads_are_metadata() -> None:
    extra = {"multi_responses": ["a"], "reference_tool_calls": [], "reference_topics": ["t"]}
    assert read({**TRACE, **extra}).metadata == extra


@pytest.mark.parametrize(("given", "kept"), [("row-7", "row-7"), (7, "7"), (0, "0"), (-1, "-1")])
def test_the_id_is_text_or_a_whole_number(given: object, kept: str) -> None:
    assert read({**ANSWER, "id": given}).id == kept


@pytest.mark.parametrize("given", [True, 1.0, "", [1], {"a": 1}])
def test_other_ids_are_refused(given: object) -> None:
    assert refusal({**ANSWER, "id": given}).field == "id"


@pytest.mark.parametrize("row", [["a"], "text", 3, None, True])
def test_a_row_that_is_no_object_is_refused(row: object) -> None:
    assert "a row must be an object with named fields" in refusal(row).message


def test_one_context_may_be_given_as_text() -> None:
    row = {**ANSWER, "retrieved_contexts": "Nine to six."}
    assert read(row).retrieved_contexts == ("Nine to six.",)
    assert has_lone_context(row)
    assert not has_lone_context(ANSWER)


@pytest.mark.parametrize("value", [5, {"text": "x"}, True])
def test_contexts_of_another_type_are_refused(value: object) -> None:
    error = refusal({**ANSWER, "retrieved_contexts": value})
    assert error.field == "retrieved_contexts"
    assert "must be a list of texts" in error.message


@pytest.mark.parametrize("value", [None, 5, {"page_content": "x"}, ["x"]])
def test_a_context_that_is_not_text_is_refused_with_its_number(value: object) -> None:
    error = refusal({**without(ANSWER, "retrieved_contexts"), "contexts": ["ok", value]})
    assert error.field == "contexts[1]"


@pytest.mark.parametrize("value", [[], [""], ["   "]])
def test_empty_contexts_are_kept_for_the_metric_to_see(value: list[str]) -> None:
    assert read({**ANSWER, "retrieved_contexts": value}).retrieved_contexts == tuple(value)


def test_contexts_and_question_may_be_missing() -> None:
    sample = read({"response": "At six."})
    assert sample.retrieved_contexts is None
    assert sample.user_input is None


@pytest.mark.parametrize("value", ["", " ", "\n\t\u2003"])
def test_an_empty_response_is_refused(value: str) -> None:
    error = refusal({**ANSWER, "response": value})
    assert error.field == "response"
    assert "`response` is empty" in error.message


@pytest.mark.parametrize("value", [5, ["At six."], {"role": "assistant", "content": "At six."}, False])
def test_a_response_that_is_not_text_is_refused(value: object) -> None:
    assert "`answer` must be text" in refusal({**without(ANSWER, "response"), "answer": value}).message


def test_a_question_without_an_answer_is_refused() -> None:
    error = refusal(without(ANSWER, "response"))
    assert error.field == "response"
    assert error.message == "`response` is missing"


def test_a_row_that_is_neither_answer_nor_trace_says_what_both_need() -> None:
    error = refusal({"topic": "hours"})
    assert "neither an answer nor a trace" in error.message
    assert "`messages`" in (error.hint or "")


def test_a_row_that_is_both_is_refused() -> None:
    error = refusal({**TRACE, "response": "Renewed."})
    assert error.field == "response"
    assert "a trace or an answer, not both" in error.message


@pytest.mark.parametrize("value", [5, True, {"role": "user", "content": "hi"}])
def test_a_user_input_of_another_type_is_refused(value: object) -> None:
    assert refusal({**ANSWER, "user_input": value}).field == "user_input"


def test_messages_given_as_text_are_refused() -> None:
    assert refusal({"messages": "hi", "response": "hello"}).field == "messages"


def test_an_empty_trace_is_refused() -> None:
    assert "the trace has no messages" in refusal({"user_input": []}).message


def test_a_bad_message_is_named_by_its_number() -> None:
    error = refusal({"messages": [*TRACE["user_input"], {"role": "robot", "content": "beep"}]})
    assert error.field == "messages[2].role"
    assert "robot" in str(error)


def test_a_trace_in_which_nobody_asks_needs_a_reference() -> None:
    messages = [{"role": "system", "content": "Renew cards."}, {"role": "assistant", "content": "Done."}]
    error = refusal({"messages": messages})
    assert error.field == "messages"
    assert "reference" in (error.hint or "")
    assert read({"messages": messages, "reference": "All cards are renewed."}).is_trace


def test_an_empty_user_message_asks_for_nothing() -> None:
    assert "nothing says what was wanted" in refusal({"messages": [{"role": "user", "content": " "}]}).message


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_reference_of_a_trace_is_refused(value: str) -> None:
    assert refusal({**TRACE, "reference": value}).field == "reference"


@pytest.mark.parametrize("value", [5, ["a"], {"a": 1}])
def test_a_reference_that_is_not_one_text_is_refused(value: object) -> None:
    assert refusal({**TRACE, "reference": value}).field == "reference"


@pytest.mark.parametrize("value", [[], ["a", "b"], [1]])
def test_ground_truths_must_be_one_text(value: object) -> None:
    assert refusal({**ANSWER, "ground_truths": value}).field == "ground_truths"


@pytest.mark.parametrize(
    ("row", "key", "meant"),
    [
        ({"question": "q", "respones": "a"}, "respones", "response"),
        ({"question": "q", "Answer": "a"}, "Answer", "answer"),
        ({"response": "a", "context": "c"}, "context", "contexts"),
        ({"response": "a", "retrieved_context": ["c"]}, "retrieved_context", "retrieved_contexts"),
        ({"response": "a", "retrievedContexts": ["c"]}, "retrievedContexts", "retrieved_contexts"),
        ({"response": "a", "user input": "q"}, "user input", "user_input"),
        ({**TRACE, "refrence": "r"}, "refrence", "reference"),
        ({**ANSWER, "ID": 5}, "ID", "id"),
    ],
)
def test_a_misspelt_field_is_refused_with_the_name_that_was_meant(
    row: dict[str, Any], key: str, meant: str
) -> None:
    error = refusal(row)
    assert error.field == key
    assert f"`{meant}`" in (error.hint or "")


@pytest.mark.parametrize(
    "extra",
    [
        {"answers": ["a", "b"]},
        {"question_id": 5, "answer_model": "x", "context_ids": [1]},
        {"idx": 4, "ids": [1], "references": ["a book"]},
        {"contexte": None},
    ],
)
def test_keys_that_only_resemble_a_field_are_metadata(extra: dict[str, Any]) -> None:
    assert read({**ANSWER, **extra}).metadata == extra


def test_a_lone_surrogate_is_refused_with_its_path() -> None:
    error = refusal({**ANSWER, "retrieved_contexts": ["ok", "bad \ud83d text"]})
    assert error.field == "retrieved_contexts[1]"
    assert "U+D83D at position 4" in error.message


def test_nul_line_separators_and_very_long_words_are_kept() -> None:
    text = "a\0b\u2028c\x85" + "x" * 10_000
    sample = read({**ANSWER, "response": text, "retrieved_contexts": [text]})
    assert sample.response == text
    assert sample.retrieved_contexts == (text,)


def test_errors_name_the_sample() -> None:
    assert refusal({**ANSWER, "id": "q7", "response": ""}).message.endswith("in sample 'q7'")


def test_a_response_inside_an_object_is_refused_with_the_way_to_map_it() -> None:
    with pytest.raises(InputError) as caught:
        sample_from_row({"answer": {"text": "It rained."}}, where="f:1", number=1)
    assert caught.value.hint == "`--map response=answer.KEY` says where in it the text is"
