"""Prompts and chat templates: data stays data, and untrusted templates do no harm."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.errors import ModelFileInvalid, UsageError
from anvil_local.grammar import PATTERNS
from anvil_local.judge import GgufJudge, digest
from anvil_local.models import ModelEntry, ResolvedModel
from anvil_local.prompts import PROFILES, Prompt, load_profile
from anvil_local.prompts.templates import split_chat_template
from tests.hostile import CONTROL, FRAGMENTS

FIELDS = {
    "support": {"context", "statement"},
    "goal": {"trace", "outcome"},
    "decompose": {"question", "answer", "sentence"},
    "workflow": {"trace"},
}
OPTIONAL = {"bears": {"question", "statement"}, "contradict": {"context", "statement"}}


def kind(task: str) -> str:
    """`support@2`, the same in other words, and `support@base` are both `support`."""
    return task.split("@")[0]


ALL = [(name, task) for name in PROFILES for task in load_profile(name)]
HOSTILE = st.one_of(
    st.text(), st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=6).map("".join)
)


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_has_a_prompt_for_every_task(name: str) -> None:
    assert set(FIELDS) <= set(load_profile(name))
    assert {kind(task) for task in load_profile(name)} <= {*FIELDS, *OPTIONAL}


@pytest.mark.parametrize(("name", "task"), ALL)
def test_a_prompt_has_the_fields_of_its_task_each_once(name: str, task: str) -> None:
    prompt = load_profile(name)[task]
    placed = [name for text in prompt.segments for name in re.findall(r"\{(\w+)\}", text)]
    assert prompt.fields == (FIELDS | OPTIONAL)[kind(task)]
    assert len(placed) == len(prompt.fields)


@pytest.mark.parametrize(("name", "task"), ALL)
def test_a_prompt_asks_for_a_verdict_or_for_text(name: str, task: str) -> None:
    prompt = load_profile(name)[task]
    asks = kind(task) in ("support", "goal", "contradict", "bears")
    assert (prompt.labels is not None) == asks
    assert (prompt.grammar in PATTERNS) == (not asks)
    assert prompt.wrap in ("chat", "none")
    assert "/" in prompt.id
    if prompt.labels:
        assert prompt.labels in (("0", "1"), ("No", "Yes"), ("no", "yes"), ("Yes", "No"))


@pytest.mark.parametrize("name", PROFILES)
def test_other_wordings_differ_from_the_question_in_their_last_segment_alone(name: str) -> None:
    profile = load_profile(name)
    for task, prompt in profile.items():
        if task[-1].isdigit() or task.endswith("@labels"):
            own = profile[kind(task)]
            assert prompt.follows == kind(task)
            assert prompt.segments[:-1] == own.segments[:-1]
            assert prompt.segments[-1] != own.segments[-1]
            assert (prompt.adapter, prompt.wrap, prompt.room) == (own.adapter, own.wrap, own.room)


def test_no_two_prompts_share_an_id() -> None:
    texts: dict[str, set[Prompt]] = {}
    for name, task in ALL:
        prompt = load_profile(name)[task]
        texts.setdefault(prompt.id, set()).add(prompt)
    assert all(len(prompts) == 1 for prompts in texts.values())


@pytest.mark.parametrize(("name", "task"), ALL)
def test_what_changes_most_comes_last(name: str, task: str) -> None:
    prompt = load_profile(name)[task]
    last = {"support": "statement", "goal": "outcome", "decompose": "sentence", "workflow": "trace"}
    # The default model is asked the support question turned round.
    last |= {"contradict": "statement", "bears": "question" if name == "smollm2" else "statement"}
    if task.endswith("@base"):
        last["bears"] = "statement"
    inside = [text for text in prompt.segments if "{" in text]
    assert "{" + last[kind(task)] + "}" in inside[-1]


@given(st.sampled_from(ALL), st.data())
def test_data_is_a_piece_of_its_own_and_our_text_never_changes(
    key: tuple[str, str], data: st.DataObject
) -> None:
    prompt = load_profile(key[0])[key[1]]
    fields = {name: data.draw(HOSTILE, label=name) for name in sorted(prompt.fields)}
    rendered = prompt.render(fields)
    plain = prompt.render({})
    assert len(rendered) == len(prompt.segments)
    ours = [[piece for piece in segment if not piece.is_data] for segment in rendered]
    assert ours == [list(segment) for segment in plain]
    shown = sorted(piece.text for segment in rendered for piece in segment if piece.is_data)
    assert shown == sorted(text for text in fields.values() if text)


# What a template writes around a user's turn, in the shape that each family publishes.
TURNS = {
    "chatml": ("<|im_start|>", "user\n", "<|im_end|>", "\n", "<|im_start|>", "assistant\n"),
    "llama": ("<|begin_of_text|>", "<|start_header_id|>", "user", "<|end_header_id|>", "\n\n", "<|eot_id|>",
              "<|start_header_id|>", "assistant", "<|end_header_id|>", "\n\n"),
    "gemma": ("<bos>", "<start_of_turn>", "user\n", "<end_of_turn>", "\n", "<start_of_turn>", "model\n"),
    "mistral": ("<s>", "[INST]", " ", "[/INST]"),
    "phi": ("<|user|>", "\n", "<|end|>", "\n", "<|assistant|>", "\n"),
    "qwen": ("<|im_start|>", "user\n", "<|im_end|>", "\n", "<|im_start|>", "assistant\n", "<think>", "\n\n",
             "</think>", "\n\n"),
}  # fmt: skip
SPLIT_AFTER = {"chatml": 2, "llama": 5, "gemma": 3, "mistral": 3, "phi": 2, "qwen": 2}
CONTROL_TOKENS = sorted({token for family in CONTROL.values() for token in family}, key=len, reverse=True)


class FakeEngine:
    """A tokenizer whose tokens are characters, and negative numbers for every family's control tokens."""

    leading_tokens: tuple[int, ...] = ()
    bos_token = None
    end_token = -1

    def __init__(self, family: str) -> None:
        turn, at = TURNS[family], SPLIT_AFTER[family]
        before, after = ("".join(part) for part in (turn[:at], turn[at:]))
        # The literals go into the template as Jinja strings, so that nothing in them is a tag.
        template = f"{{{{ {before!r} }}}}{{{{ messages[-1].content }}}}{{{{ {after!r} }}}}"
        self.info = SimpleNamespace(chat_template=template)

    def text_of(self, token: int) -> str:
        return ""

    def tokenize(self, text: str, *, control: bool) -> tuple[int, ...]:
        if not control:
            return tuple(map(ord, text))
        found: list[int] = []
        for part in re.split("(" + "|".join(map(re.escape, CONTROL_TOKENS)) + ")", text):
            known = part in CONTROL_TOKENS
            found += [-1 - CONTROL_TOKENS.index(part)] if known else map(ord, part)
        return tuple(found)


def fake_judge(profile: str, family: str) -> GgufJudge:
    entry = ModelEntry(name="m", title="", file="m.gguf", sha256="0" * 64, bytes=1, license="")
    judge = GgufJudge(ResolvedModel(entry=entry, path=Path("m.gguf")), prompts=profile)
    judge._engine = FakeEngine(family)  # type: ignore[assignment]
    return judge


JUDGES = {(profile, family): fake_judge(profile, family) for profile in PROFILES for family in TURNS}


@given(st.sampled_from(sorted(JUDGES)), st.sampled_from(ALL), st.data())
def test_no_data_adds_a_control_token_to_a_question_or_takes_one_away(
    which: tuple[str, str], key: tuple[str, str], data: st.DataObject
) -> None:
    judge = JUDGES[which]
    prompt = load_profile(key[0])[key[1]]
    fields = {name: data.draw(HOSTILE, label=name) for name in sorted(prompt.fields)}
    empty = judge._segments(prompt, {})
    filled = judge._segments(prompt, fields)

    def controls(segments: list[tuple[int, ...]]) -> list[list[int]]:
        return [[token for token in segment if token < 0] for segment in segments]

    assert controls(filled) == controls(empty)
    for number, (own, plain) in enumerate(zip(filled, empty, strict=True)):
        placed = re.findall(r"\{([a-z_]+)\}", prompt.segments[number])
        assert len(own) == len(plain) + sum(len(fields[name]) for name in placed)


@pytest.mark.parametrize("family", sorted(TURNS))
def test_the_fake_tokenizer_does_read_control_tokens_in_our_own_text(family: str) -> None:
    judge = fake_judge("chat", family)
    tokens = sum(judge._segments(load_profile("chat")["support"], {}), ())
    assert [CONTROL_TOKENS[-1 - token] for token in tokens if token < 0] == [
        part for part in TURNS[family] if part in CONTROL_TOKENS
    ]


def test_an_unknown_field_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="no field"):
        load_profile("plain")["support"].render({"contxt": ""})


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no such prompt profile") as error:
        load_profile("../chat")
    assert error.value.hint
    assert "plain" in error.value.hint


def test_the_plain_workflow_begins_on_a_line_of_its_own() -> None:
    rendered = load_profile("plain")["workflow"].render({"trace": "[1] user: Hello"})
    assert "".join(piece.text for segment in rendered for piece in segment).endswith("Hello\n")


def test_a_profile_keeps_the_prompts_of_its_base() -> None:
    profile, base = load_profile("smollm2"), load_profile("chat")
    assert profile["support@base"] == base["support"]
    assert profile["support"].adapter == "support"
    assert profile["workflow"] == base["workflow"]
    assert base["workflow"].adapter is None


# Chat templates

CHATML = (
    "{% for m in messages %}"
    "{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def test_a_template_is_cut_where_the_user_s_text_goes() -> None:
    assert split_chat_template(CHATML) == ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")


def test_a_template_may_write_the_start_token_and_strip_the_text() -> None:
    template = "{{ bos_token }}[INST] {{ messages[0]['content'] | trim }} [/INST]{{ eos_token }}"
    assert split_chat_template(template, bos="<s>", eos="</s>") == ("<s>[INST] ", " [/INST]</s>")


def test_a_reasoning_model_is_asked_not_to_think() -> None:
    template = "{{ messages[0].content }}{% if enable_thinking is false %}<think></think>{% endif %}"
    assert split_chat_template(template) == ("", "<think></think>")


def test_a_template_does_not_know_the_date() -> None:
    template = "{{ strftime_now('%Y') }}|{{ messages[0].content }}"
    assert split_chat_template(template) == ("|", "")


@pytest.mark.parametrize(
    "template",
    [
        "no text at all",
        "{{ messages[0].content }}{{ messages[0].content }}",
        "{{ messages[0].content[3:] }}",
        "{% for",
        "{{ messages[3].content }}",
        "{{ raise_exception('system role not supported') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}{{ messages[0].content }}",
        "{{ 1 / 0 }}",
        "{% for i in range(10 ** 9) %}x{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ messages.append(1) }}{{ messages[0].content }}",
        "x" * 200_000,
        "{{ 'x' * 200000 }}{{ messages[0].content }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}{{ messages[0].content }}",
        # More time than there is
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(10 ** 12) %}{% endfor %}{{ messages[0].content }}",
        "{{ 7 ** (10 ** 9) }}{{ messages[0].content }}",
        # More memory
        "{{ 'x' * 10 ** 10 }}{{ messages[0].content }}",
        "{{ 'x'.ljust(10 ** 10) }}{{ messages[0].content }}",
        "{{ '%10000000000d' % 1 }}{{ messages[0].content }}",
        "{{ 'x' | center(10 ** 10) }}{{ messages[0].content }}",
        "{% set n = namespace(x='aa') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}{{ messages[0].content }}",
        # Python's inner parts
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}{{ messages[0].content }}",
        "{{ lipsum.__globals__['os'].system('id') }}{{ messages[0].content }}",
        "{{ raise_exception.__globals__['os'] }}{{ messages[0].content }}",
        "{{ strftime_now.__code__.co_consts }}{{ messages[0].content }}",
        "{{ messages.__class__.__base__.__subclasses__() }}{{ messages[0].content }}",
        "{{ '{0.__class__.__mro__}'.format(messages) }}{{ messages[0].content }}",
        "{{ self._TemplateReference__context.environment.globals.clear() }}{{ messages[0].content }}",
        "{{ ().__class__.mro()[1] }}{{ messages[0].content }}",
    ],
)
def test_a_template_that_fails_cheats_or_attacks_is_refused_with_a_way_out(template: str) -> None:
    with pytest.raises(ModelFileInvalid, match="chat template") as error:
        split_chat_template(template)
    assert error.value.hint
    assert "--prompts plain" in error.value.hint


@pytest.mark.parametrize("attack", ["''.__class__", "messages.__len__", "raise_exception.__code__", "_"])
def test_a_hidden_attribute_shows_nothing_of_python(attack: str) -> None:
    template = "{{ " + attack + " }}|{{ messages[0].content }}"
    with contextlib.suppress(ModelFileInvalid):
        assert split_chat_template(template)[0] == "|"


def test_a_template_s_error_is_shown_short_and_its_own_output_is_not() -> None:
    with pytest.raises(ModelFileInvalid, match="chat template fails: no system role") as error:
        split_chat_template("{{ raise_exception('no system role') }}")
    assert "Traceback" not in str(error.value)
    with pytest.raises(ModelFileInvalid) as error:
        split_chat_template("{{ raise_exception('x' * 90000) }}")
    assert len(str(error.value)) < 600


# Prompts that no fingerprint holds: what a store keeps under their names must stay true.
PINNED = {
    ("chat", "support@labels"): "8575bcb01c2731ec",
    ("chat", "goal@labels"): "beba8e40a6b8ed67",
    ("granite-guardian", "goal@labels"): "beba8e40a6b8ed67",
    ("minicheck", "goal@labels"): "beba8e40a6b8ed67",
    ("plain", "support@labels"): "0be85ee8b2b902ab",
    ("plain", "goal@labels"): "4dee714a2abdfcd1",
    ("chat", "bears"): "7c4c408e9f9cc5da",
    ("chat", "support@2"): "e8c7afa438b55cd2",
    ("chat", "support@3"): "b0ae70a2cb08b0db",
    ("chat", "goal@2"): "ac242c28e50d9a10",
    ("chat", "goal@3"): "bc00525326b6152c",
    ("granite-guardian", "bears"): "7c4c408e9f9cc5da",
    ("granite-guardian", "goal@2"): "ac242c28e50d9a10",
    ("granite-guardian", "goal@3"): "bc00525326b6152c",
    ("minicheck", "bears"): "7c4c408e9f9cc5da",
    ("minicheck", "goal@2"): "ac242c28e50d9a10",
    ("minicheck", "goal@3"): "bc00525326b6152c",
    ("plain", "bears"): "27dd179ffd58f20f",
    ("plain", "support@2"): "dce06f67b75bb390",
    ("plain", "support@3"): "dca0d65346b619df",
    ("plain", "goal@2"): "8450f14eba8fb940",
    ("plain", "goal@3"): "21798bf1978d138b",
    ("smollm2", "bears"): "2c08a36142e33cb1",
    ("smollm2", "support@2"): "bdeafe0d5b39d32b",
    ("smollm2", "support@3"): "f34790796b9b1d0d",
    ("smollm2", "goal@2"): "a2c1dd0e88d01304",
    ("smollm2", "goal@3"): "92ff51814b2eee76",
}


@pytest.mark.parametrize(("name", "task"), sorted(PINNED))
def test_a_prompt_outside_the_fingerprint_never_changes_under_its_name(name: str, task: str) -> None:
    prompt = load_profile(name)[task]
    found = digest([prompt.id, prompt.segments, prompt.labels, prompt.threshold])[:16]
    assert found == PINNED[name, task], "give the changed prompt another task name: stores hold its answers"


def test_every_prompt_outside_the_fingerprint_is_pinned() -> None:
    outside = {
        (name, task)
        for name in PROFILES
        for task in load_profile(name)
        if not task.endswith("@base") and (task == "bears" or task[-1].isdigit() or task.endswith("@labels"))
    }
    assert set(PINNED) == outside
