"""Messages in the shapes of Ragas, OpenAI and LangChain."""

from __future__ import annotations

from typing import Any

import pytest

from anvil_local.errors import InputError
from anvil_local.records import Message, Role, ToolCall
from anvil_local.samples.messages import read_messages


def read(*items: Any) -> tuple[Message, ...]:
    return read_messages(items, "user_input")


def refusal(*items: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read(*items)
    return caught.value


EXPECTED = (
    Message(role=Role.SYSTEM, content="You water plants."),
    Message(role=Role.HUMAN, content="Water the fern."),
    Message(
        role=Role.AI, tool_calls=(ToolCall(name="water", args={"plant": "fern", "ml": [50, 80]}, id="c1"),)
    ),
    Message(role=Role.TOOL, content="watered", tool_call_id="c1"),
    Message(role=Role.AI, content="The fern is watered."),
)
CALL = {"name": "water", "args": {"plant": "fern", "ml": [50, 80]}, "id": "c1"}


def test_ragas_messages_are_read() -> None:
    messages = read(
        {"type": "human", "content": "Water the fern.", "metadata": {"seen": 1}},
        {"type": "ai", "content": "", "tool_calls": [{"name": "water", "args": {"plant": "fern"}}]},
        {"type": "tool", "content": "watered", "metadata": None},
        {"type": "ai", "content": "Done.", "tool_calls": None},
    )
    assert messages == (
        Message(role=Role.HUMAN, content="Water the fern."),
        Message(role=Role.AI, tool_calls=(ToolCall(name="water", args={"plant": "fern"}),)),
        Message(role=Role.TOOL, content="watered"),
        Message(role=Role.AI, content="Done."),
    )


def test_openai_chat_messages_are_read() -> None:
    arguments = '{"plant": "fern", "ml": [50, 80]}'
    call = {"id": "c1", "type": "function", "function": {"name": "water", "arguments": arguments}}
    assert (
        read(
            {"role": "developer", "content": "You water plants."},
            {"role": "user", "content": [{"type": "text", "text": "Water the fern."}]},
            {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
            {"role": "tool", "tool_call_id": "c1", "content": "watered"},
            {"role": "assistant", "content": "The fern is watered."},
        )
        == EXPECTED
    )


def test_langchain_messages_are_read() -> None:
    assert (
        read(
            {"type": "system", "content": "You water plants."},
            {"type": "human", "content": "Water the fern.", "example": False},
            {"type": "ai", "content": "", "tool_calls": [{**CALL, "type": "tool_call"}]},
            {"type": "tool", "content": "watered", "tool_call_id": "c1", "status": "success"},
            {"type": "AIMessageChunk", "content": "The fern is watered."},
        )
        == EXPECTED
    )


def test_langchain_dicts_with_data_are_read() -> None:
    assert (
        read(
            {"type": "system", "data": {"content": "You water plants.", "type": "system"}},
            {"type": "human", "data": {"content": "Water the fern."}},
            {"type": "ai", "data": {"content": "", "tool_calls": [CALL]}},
            {"type": "tool", "data": {"content": "watered", "tool_call_id": "c1"}},
            {"type": "chat", "data": {"content": "The fern is watered.", "role": "assistant"}},
        )
        == EXPECTED
    )


def langchain_dump(name: str, **kwargs: Any) -> dict[str, Any]:
    identifier = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": identifier, "kwargs": kwargs}


def test_langchain_constructor_dumps_are_read() -> None:
    assert (
        read(
            langchain_dump("SystemMessage", content="You water plants.", type="system"),
            langchain_dump("HumanMessage", content="Water the fern."),
            langchain_dump("AIMessage", content="", tool_calls=[CALL], invalid_tool_calls=[]),
            langchain_dump("ToolMessage", content="watered", tool_call_id="c1"),
            langchain_dump("ChatMessage", role="assistant", content="The fern is watered."),
        )
        == EXPECTED
    )


def test_an_unknown_langchain_class_is_refused() -> None:
    error = refusal(langchain_dump("RemoveMessage", content=""))
    assert error.field == "user_input[0].id"
    assert "RemoveMessage" in str(error)


@pytest.mark.parametrize("item", [{"lc": 1}, {"lc": 1, "id": [], "kwargs": {}}, {"lc": 1, "id": ["x"]}])
def test_half_a_langchain_dump_is_refused(item: dict[str, Any]) -> None:
    assert "not a LangChain message dump" in refusal(item).message


@pytest.mark.parametrize(
    ("role", "read_as"),
    [
        ("system", Role.SYSTEM),
        ("developer", Role.SYSTEM),
        ("user", Role.HUMAN),
        ("human", Role.HUMAN),
        ("assistant", Role.AI),
        ("ai", Role.AI),
        ("tool", Role.TOOL),
        ("function", Role.TOOL),
    ],
)
@pytest.mark.parametrize("key", ["role", "type"])
def test_every_known_role_is_read(key: str, role: str, read_as: Role) -> None:
    assert read({key: role, "content": "x"})[0].role is read_as


@pytest.mark.parametrize(
    ("item", "field", "shown"),
    [
        ({"role": "robot", "content": "hi"}, "user_input[0].role", "robot"),
        ({"type": "remove", "content": ""}, "user_input[0].type", "remove"),
        ({"role": 3, "content": "hi"}, "user_input[0].role", "a number"),
        ({"role": "User", "content": "hi"}, "user_input[0].role", "did you mean 'user'?"),
        ({"content": "hi"}, "user_input[0]", "`role` or `type` is missing"),
        ({"type": "message", "content": "hi"}, "user_input[0].type", "message"),
        ({"role": "user", "type": "ai", "content": "x"}, "user_input[0]", "disagree"),
    ],
)
def test_who_speaks_is_never_guessed(item: dict[str, Any], field: str, shown: str) -> None:
    error = refusal(item)
    assert error.field == field
    assert shown in str(error)


def test_a_role_and_a_type_that_agree_are_accepted() -> None:
    assert read({"role": "assistant", "type": "ai", "content": "x"})[0].role is Role.AI
    assert read({"role": "user", "type": "message", "content": "x"})[0].role is Role.HUMAN


@pytest.mark.parametrize("item", ["hi", None, 3, ["user", "hi"]])
def test_a_message_that_is_no_object_is_refused_with_its_number(item: object) -> None:
    assert refusal({"role": "user", "content": "x"}, item).field == "user_input[1]"


def test_text_parts_are_joined_and_other_parts_are_named() -> None:
    parts = [
        "Look:",
        {"type": "input_text", "text": "a plant"},
        {"type": "image_url", "image_url": {"url": "data:..."}},
        {"type": "output_text", "text": "?"},
    ]
    assert read({"role": "user", "content": parts})[0].content == "Look:\na plant\n[image_url]\n?"


def test_a_refusal_is_what_the_agent_said() -> None:
    expected = Message(role=Role.AI, content="I cannot do that.")
    assert read({"role": "assistant", "content": None, "refusal": "I cannot do that."}) == (expected,)
    part = {"type": "refusal", "refusal": "I cannot do that."}
    assert read({"role": "assistant", "content": [part]}) == (expected,)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (5, "user_input[0].content"),
        ({"status": "ok"}, "user_input[0].content"),
        ([5], "user_input[0].content[0]"),
        ([{"text": "x"}], "user_input[0].content[0]"),
        ([{"type": "text", "text": None}], "user_input[0].content[0].text"),
        ([{"type": "tool_result", "content": "x"}], "user_input[0].content[0]"),
    ],
)
def test_content_of_another_shape_is_refused(content: object, field: str) -> None:
    assert refusal({"role": "user", "content": content}).field == field


def test_calls_inside_the_content_are_calls_and_counted_once() -> None:
    use = {"type": "tool_use", "id": "c1", "name": "water", "input": {"plant": "fern"}}
    alone = read({"role": "assistant", "content": [{"type": "text", "text": "Watering."}, use]})
    call = ToolCall(name="water", args={"plant": "fern"}, id="c1")
    assert alone == (Message(role=Role.AI, content="Watering.", tool_calls=(call,)),)
    both = {
        "type": "ai",
        "content": [use],
        "tool_calls": [{"name": "water", "args": {"plant": "fern"}, "id": "c1"}],
    }
    assert read(both)[0].tool_calls == (call,)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"plant": ',
        "",
        "fern",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        r'{"a": "\ud800"}',
        "[" * 100_000,
        "9" * 5000,
    ],
)
def test_arguments_that_are_not_strict_json_stay_text(arguments: str) -> None:
    call = {"function": {"name": "water", "arguments": arguments}}
    assert read({"role": "assistant", "tool_calls": [call]})[0].tool_calls[0].args == arguments


@pytest.mark.parametrize("args", [{"a": {"b": [1, None]}}, [1, 2], "as it is", 5, False, None])
def test_arguments_given_as_values_are_kept(args: object) -> None:
    messages = read({"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": args}]})
    assert messages[0].tool_calls[0].args == args


def test_the_old_function_call_is_read() -> None:
    call = {"name": "water", "arguments": '{"plant": "fern"}'}
    expected = (ToolCall(name="water", args={"plant": "fern"}),)
    assert read({"role": "assistant", "content": None, "function_call": call})[0].tool_calls == expected
    old = {"type": "ai", "data": {"content": "", "additional_kwargs": {"function_call": call}}}
    assert read(old)[0].tool_calls == expected


def test_calls_in_langchains_additional_kwargs_are_read_when_there_are_no_others() -> None:
    raw = {"id": "c1", "function": {"name": "water", "arguments": '{"plant": "fern", "ml": [50, 80]}'}}
    extra = {"tool_calls": [raw]}
    assert read({"type": "ai", "content": "", "additional_kwargs": extra})[0] == EXPECTED[2]
    both = {"type": "ai", "content": "", "tool_calls": [CALL], "additional_kwargs": extra}
    assert read(both)[0] == EXPECTED[2]


def test_calls_that_langchain_could_not_parse_are_calls() -> None:
    bad = {"name": "water", "args": '{"plant"', "id": "c2", "error": "no", "type": "invalid_tool_call"}
    messages = read({"type": "ai", "content": "", "tool_calls": [], "invalid_tool_calls": [bad]})
    assert messages[0].tool_calls == (ToolCall(name="water", args='{"plant"', id="c2"),)


def test_custom_tools_take_text() -> None:
    call = {"type": "custom", "id": "c1", "custom": {"name": "shell", "input": "ls"}}
    assert read({"role": "assistant", "tool_calls": [call]})[0].tool_calls[0].args == "ls"


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"tool_calls": "water"}, "user_input[0].tool_calls"),
        ({"tool_calls": ["water"]}, "user_input[0].tool_calls[0]"),
        ({"tool_calls": [{"args": {}}]}, "user_input[0].tool_calls[0].name"),
        ({"tool_calls": [{"function": {"name": ""}}]}, "user_input[0].tool_calls[0].function.name"),
        ({"function_call": "water"}, "user_input[0].function_call"),
        ({"function_call": {"name": "f"}, "tool_calls": [{"name": "f"}]}, "user_input[0].function_call"),
        ({"name": 5}, "user_input[0].name"),
    ],
)
def test_half_known_calls_are_refused_with_their_path(extra: dict[str, Any], field: str) -> None:
    assert refusal({"role": "assistant", "content": "x", **extra}).field == field


def test_only_the_agent_calls_tools() -> None:
    error = refusal({"role": "user", "content": "x", "tool_calls": [{"name": "f", "args": {}}]})
    assert error.field == "user_input[0].tool_calls"
    assert read({"role": "user", "content": "x", "tool_calls": []})[0].tool_calls == ()


def test_a_message_with_neither_words_nor_calls_is_refused() -> None:
    assert refusal({"role": "assistant", "contnet": "x"}).field == "user_input[0].content"


@pytest.mark.parametrize("content", ["", None, []])
def test_an_agent_may_say_nothing(content: object) -> None:
    assert read({"role": "assistant", "content": content}) == (Message(role=Role.AI),)


def test_two_results_after_one_message_and_a_trace_that_ends_with_a_result_are_accepted() -> None:
    messages = read(
        {"role": "user", "content": "Find both."},
        {
            "role": "assistant",
            "tool_calls": [{"name": "find", "args": {"n": 1}}, {"name": "find", "args": {"n": 2}}],
        },
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
    )
    assert [message.role for message in messages] == [Role.HUMAN, Role.AI, Role.TOOL, Role.TOOL]


def test_the_names_of_tools_and_old_function_results_are_kept() -> None:
    assert read({"role": "function", "name": "water", "content": "ok"})[0].name == "water"


def test_an_empty_trace_is_refused() -> None:
    assert refusal().field == "user_input"
