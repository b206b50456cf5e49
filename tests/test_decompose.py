"""A response cut into statements, with models that write well, badly, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.decompose import split_statements
from anvil_local.errors import EngineError, OutOfMemory, PromptTooLong
from anvil_local.judge import FakeJudge, Writing
from anvil_local.language import split_sentences, words
from anvil_local.records import Decomposition, DropReason
from tests.test_language import CODES, TEXTS, WHOLE

Write = Callable[[str, Mapping[str, str]], str]


def cut(
    response: str, write: str | Write | None = None, question: str | None = None, **options: object
) -> Decomposition:
    """Decompose with a model that writes the same always, or by a function."""
    writings = (lambda *_: write) if isinstance(write, str) else write
    return split_statements(response, question=question, judge=FakeJudge(writings=writings), **options)  # type: ignore[arg-type]


def texts(decomposition: Decomposition) -> list[str]:
    return [statement.text for statement in decomposition.statements]


def reasons(decomposition: Decomposition) -> set[DropReason]:
    return {dropped.reason for dropped in decomposition.dropped}


class UnfinishedJudge(FakeJudge):
    """Reaches the length limit every time."""

    def write(self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None) -> Writing:
        text = super().write(task, fields, limit=limit, seed=seed).text
        return Writing(text.rstrip("\n")[: max(3, len(text) // 2)], False)


# Models that write well


def test_a_sentence_becomes_several_statements_with_its_own_span() -> None:
    response = "Jon Berg built the mill. He sold it in 1902 and moved to Bergen."

    write = "- Jon Berg sold the mill in 1902.\n- Jon Berg moved to Bergen.\n"
    found = cut(response, write, "Who built the mill?")
    assert texts(found) == [
        "Jon Berg built the mill.",
        "Jon Berg sold the mill in 1902.",
        "Jon Berg moved to Bergen.",
    ]
    assert [statement.origin for statement in found.statements] == ["sentence", "model", "model"]
    assert [statement.sentence for statement in found.statements] == [0, 1, 1]
    spans = {response[statement.start : statement.end] for statement in found.statements[1:]}
    assert spans == {"He sold it in 1902 and moved to Bergen."}
    assert (found.sentences, found.fallbacks, found.dropped) == (2, 0, ())


def test_the_model_sees_question_and_answer_before_the_sentence() -> None:
    judge = FakeJudge()
    response = "By the wide and ever winding river stands a mill\nof stone. Nobody minds. It leaks."
    split_statements(response, question=" Is it? ", judge=judge)
    sentence = "By the wide and ever winding river stands a mill of stone."
    assert judge.wrote == [
        ("decompose", {"question": "Is it?", "answer": response, "sentence": sentence}),
        ("decompose", {"question": "Is it?", "answer": response, "sentence": "It leaks."}),
    ]


def test_a_simple_sentence_is_not_rewritten() -> None:
    judge = FakeJudge(writings=["- nonsense\n"])
    assert texts(split_statements("The mill burned in 1902.", judge=judge)) == ["The mill burned in 1902."]
    assert judge.wrote == []


def test_the_seed_reaches_the_model() -> None:
    seeds = []

    class Judge(FakeJudge):
        def write(
            self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None
        ) -> Writing:
            seeds.append(seed)
            return super().write(task, fields, limit=limit, seed=seed)

    split_statements("The mill is old and red.", judge=Judge(), seed=7)
    assert seeds == [7]


def test_a_finished_last_line_needs_no_line_end() -> None:
    found = cut("The mill is old and red.", "- The mill is old.\n- The mill is red.")
    assert texts(found) == ["The mill is old.", "The mill is red."]
    assert found.fallbacks == 0


def test_sentence_mode_asks_no_model() -> None:
    judge = FakeJudge()
    found = split_statements("The mill is old. It leaks.", judge=judge, mode="sentence")
    assert texts(found) == ["The mill is old.", "The mill leaks."]
    assert [statement.origin for statement in found.statements] == ["sentence", "resolved"]
    assert judge.wrote == []
    assert texts(split_statements("The mill is old.")) == ["The mill is old."]


# Models that write badly

FORTY = [f"Station {number}, as planned, opened in {1900 + number}." for number in range(1, 41)]

HOSTILE: dict[str, str | Write] = {
    "nothing": "",
    "none": "none",
    "none as a line": "- none\n",
    "blank lines": "\n\n- \n-\n",
    "nonsense": "- colourless green ideas sleep furiously\n",
    "another station": "- Station 7, as planned, opened in 1907.\n",
    "all stations": "".join(f"- {sentence}\n" for sentence in FORTY),
    "the question": "- When did the stations open?\n- The stations did open.\n",
    "a duplicate": lambda task, fields: f"- {fields['sentence']}\n" * 3,
    "an unfinished line": lambda task, fields: f"- {fields['sentence'][:12]}",
    "hundreds of lines": "- Station opened\n" * 300,
    "one endless line": "- " + "Station opened in " * 2000,
    "foreign words": lambda task, fields: f"- {fields['sentence'][:-1]} in Atlantis.\n",
    "control characters": "- \x00\x1b[31m\ufffd\n- \u202e\n",
    "a denial": lambda task, fields: f"- {fields['sentence'].replace('opened', 'not opened')}\n",
    "another number": lambda task, fields: f"- {fields['sentence'].replace('19', '18')}\n",
    "no number": "- Station, as planned, opened.\n",
    "the whole answer": lambda task, fields: f"- {fields['answer']}\n",
    "itself": lambda task, fields: f"- {fields['sentence']}\n",
}


@pytest.mark.parametrize("write", HOSTILE.values(), ids=HOSTILE)
def test_forty_sentences_give_forty_statements_whatever_the_model_writes(write: str | Write) -> None:
    found = cut(" ".join(FORTY), write, "When did the stations open?")
    assert texts(found) == FORTY
    assert found.sentences == 40
    assert found.without_claim == 0


@pytest.mark.parametrize("write", HOSTILE.values(), ids=HOSTILE)
def test_the_claims_of_a_mixed_answer_survive_whatever_the_model_writes(write: str | Write) -> None:
    claims = [
        "We found no damage in the north tower.",
        "Thanks to the new pump, output rose 12 %.",
        "The red gate in the northern hall was repaired by the night team in spring.",
        "The red gate in the southern hall was repaired by the night team in spring.",
        "The gate, we think, is not safe.",
    ]
    found = cut(" ".join(["Hello!", *claims, "I hope this helps!"]), write, "What did you find?")
    for claim in claims:
        assert any(set(words(claim)) <= set(words(text)) for text in texts(found)), claim
    assert found.without_claim == 2


def test_a_neighbour_said_twice_does_not_take_a_sentence_s_place() -> None:
    north, south = (
        f"The red pump in hall {side} was, they say, repaired by Anna Berg in spring."
        for side in ("north", "south")
    )
    for write in (f"- {north}\n", f"- {south}\n"):
        assert texts(cut(f"{north} {south}", write)) == [north, south]


def test_a_repeated_statement_does_not_swallow_a_sentence_with_a_word_more() -> None:
    first, second = "The new red, steel pump failed.", "The new red, steel pump failed again."
    assert texts(cut(f"{first} {second}", f"- {first}\n")) == [first, second]


def test_a_pronoun_sentence_said_before_in_full_is_a_duplicate() -> None:
    found = cut("Jon Berg sold the mill. He sold it.", "- Jon Berg sold the mill.\n")
    assert texts(found) == ["Jon Berg sold the mill."]
    assert DropReason.DUPLICATE in reasons(found)


def test_a_statement_that_loses_the_not_is_refused() -> None:
    found = cut("The pump, however, is not broken.", "- The pump is broken.\n")
    assert texts(found) == ["The pump, however, is not broken."]
    assert reasons(found) == {DropReason.INCOMPLETE}
    assert texts(cut("その、損傷はない。", "- その、損傷はある。\n")) == ["その、損傷はない。"]


def test_a_statement_that_invents_a_not_is_refused() -> None:
    found = cut("The pump, however, is broken.", "- The pump is not broken.\n")
    assert texts(found) == ["The pump, however, is broken."]
    assert reasons(found) == {DropReason.FOREIGN}


def test_a_sign_or_a_number_that_changes_is_refused() -> None:
    assert texts(cut("It was -5 °C at noon.", "- It was 5 °C at noon.\n")) == ["It was -5 °C at noon."]
    assert texts(cut("It was 1,5 mm.", "- It was 15 mm.\n")) == ["It was 1,5 mm."]


def test_unlike_marks_are_no_duplicates() -> None:
    response = (
        "The limit is 5 %. The limit is 5 °. The limit is -5. The limit is 5.\nx < 2 holds.\nx > 2 holds."
    )
    assert len(texts(split_statements(response))) == 6


def test_a_repeated_sentence_is_dropped_and_counted() -> None:
    found = split_statements("The mill is old. The mill is old! The MILL is old.")
    assert texts(found) == ["The mill is old."]
    assert [(dropped.sentence, dropped.reason) for dropped in found.dropped] == [
        (1, DropReason.DUPLICATE),
        (2, DropReason.DUPLICATE),
    ]


def test_a_copy_of_the_question_is_dropped_and_counted() -> None:
    found = cut(
        "The mill, though, was repaired in 1990.",
        "- The 1987 flood damaged the mill at Arden.\n- The mill was repaired in 1990.\n",
        "Did the 1987 flood damage the mill at Arden?",
    )
    assert texts(found) == ["The mill was repaired in 1990."]
    assert [dropped.reason for dropped in found.dropped] == [DropReason.COPIES_QUESTION]


def test_a_no_never_asserts_what_was_asked() -> None:
    found = cut(
        "False, the Danube flows into the Black Sea.",
        "- The Danube flows into the Baltic Sea.\n- The Danube flows into the Black Sea.\n",
        "True or false: the Danube flows into the Baltic Sea.",
    )
    assert not any("Baltic" in text for text in texts(found))
    assert any("Black" in text for text in texts(found))
    assert DropReason.COPIES_QUESTION in reasons(found)


def test_a_no_with_an_explanation_can_become_a_plain_statement() -> None:
    found = cut("No, it closed in 1990.", "- The mill closed in 1990.\n", "Is the mill open?")
    assert texts(found) == ["The mill closed in 1990."]
    assert found.statements[0].origin == "model"


def test_a_line_cut_off_by_the_limit_is_dropped_and_the_sentence_stands() -> None:
    found = split_statements("The mill is old and red.", judge=UnfinishedJudge())
    assert texts(found) == ["The mill is old and red."]
    assert reasons(found) == {DropReason.CUT}
    assert found.fallbacks == 1


def test_the_model_may_call_talk_claimless_but_not_a_claim() -> None:
    response = "I would gladly look. The mill is old. I paid 12 crowns."
    found = cut(response, "none")
    assert texts(found) == ["The mill is old.", "I paid 12 crowns."]
    assert found.without_claim == 1


@pytest.mark.parametrize("error", [EngineError("broken"), PromptTooLong("long")])
def test_an_engine_error_falls_back_on_the_sentence(error: EngineError) -> None:
    def fail(task: str, fields: Mapping[str, str]) -> str:
        raise error

    found = cut("The mill is old and red. It leaks and creaks.", fail)
    assert texts(found) == ["The mill is old and red.", "The mill leaks and creaks."]
    assert found.fallbacks == 2


def test_an_error_that_ends_the_run_is_not_hidden() -> None:
    def fail(task: str, fields: Mapping[str, str]) -> str:
        raise OutOfMemory("full")

    with pytest.raises(OutOfMemory):
        cut("The mill is old and red.", fail)


# Answers that claim nothing, and short ones


@pytest.mark.parametrize(
    "response",
    [
        "IDK",
        "I don't know.",
        "Hello! How can I help you today?",
        "I could not find anything about closing your account. Is there something else I can help with?",
        "Which account do you mean?",
        "Das weiß ich nicht. Kann ich Ihnen sonst noch helfen?",
        "Lo siento, no puedo responder a esa pregunta.",
        "Je ne sais pas.",
        "申し訳ありませんが、その質問にはお答えできません。",
        "我不知道。",
        "لا أعرف.",
        "मुझे नहीं पता।",
        "...",
        "🙂",
        " \n ",
        "",
    ],
)
@pytest.mark.parametrize("question", [None, "How do I close my account?"])
def test_refusals_greetings_and_questions_back_make_no_statement(response: str, question: str | None) -> None:
    found = cut(response, None, question)
    assert texts(found) == []
    assert found.without_claim == found.sentences


@pytest.mark.parametrize(
    ("question", "response"),
    [
        ("Is the mill open?", "No."),
        ("Is the mill open?", "No, it is not."),
        ("Is the mill open?", "Absolutely."),
        ("Who built the mill?", "Jon Berg"),
        ("when was the mill built", "1902"),
        ("Name the town of the mill.", "Arden"),
        ("Which mill burned?", "None."),
        ("Which cat is famous?", "Hello Kitty"),
        ("True or false: the mill is open.", "False."),
    ],
)
def test_a_short_answer_is_put_together_with_its_question_by_a_template(question: str, response: str) -> None:
    judge = FakeJudge()
    found = split_statements(response, question=question, judge=judge)
    assert texts(found) == [f'The answer to the question "{question}" is: {response}']
    assert found.statements[0].origin == "template"
    assert (found.statements[0].start, found.statements[0].end) == (0, len(response))
    assert judge.wrote == []


def test_the_template_is_in_the_language_of_the_question() -> None:
    assert texts(split_statements("1902", question="Wann wurde die Mühle gebaut und von wem?")) == [
        "Die Antwort auf die Frage „Wann wurde die Mühle gebaut und von wem?“ lautet: 1902"
    ]
    assert texts(split_statements("はい。", question="橋は古いですか"))[0].startswith("「橋は古いですか」")


def test_braces_in_question_and_answer_are_text() -> None:
    found = split_statements("{answer}", question="What is {question}?")
    assert texts(found) == ['The answer to the question "What is {question}?" is: {answer}']


def test_emphasis_around_a_short_answer_is_left_out() -> None:
    found = split_statements("**No.** The mill closed.", question="Is it open?")
    assert texts(found) == ['The answer to the question "Is it open?" is: No.', "The mill closed."]


def test_a_phrase_before_an_answer_is_no_answer() -> None:
    found = split_statements("Of course! The mill opens at nine.", question="When does the mill open?")
    assert texts(found) == ["The mill opens at nine."]


def test_a_bare_name_that_answers_no_question_claims_nothing() -> None:
    found = split_statements("Mara Moor", question="Height of the northern mill")
    assert texts(found) == []
    assert found.without_claim == 1


# Text of every kind


def test_lists_wrapped_lines_tables_and_code_become_statements() -> None:
    response = (
        "Here is what we know:\n\n1. The dam holds 1,5 m.\n2. The gate leaks.\n\n"
        "- **Oak** burns well.\n\n> The oldest of the four mills on the river stands\n> in Arden.\n\n"
        "| Tank | Litres |\n|---|---|\n| 1 | 20 |\n\n```python\nx = 1\n```\n"
    )
    found = cut(response)
    assert texts(found)[:3] == ["The dam holds 1,5 m.", "The gate leaks.", "**Oak** burns well."]
    assert "x = 1" in texts(found)
    assert "| 1 | 20 |" in texts(found)
    assert not any("```" in text for text in texts(found))


def test_a_long_answer_shows_the_model_the_sentences_around() -> None:
    sentences = [f"Pump {number} runs, or waits, in hall {number}." for number in range(200)]
    judge = FakeJudge(window=200)
    found = split_statements(" ".join(sentences), question="What runs?", judge=judge)
    assert texts(found) == sentences
    for number, (_, fields) in enumerate(judge.wrote):
        assert sentences[number] in fields["answer"]
        assert judge.room("decompose", fields) >= 0
        if number:
            assert sentences[number - 1] in fields["answer"]
    assert max(len(fields["answer"].split()) for _, fields in judge.wrote) < 200


def test_a_sentence_longer_than_the_window_stands_for_itself() -> None:
    long = "The pump runs " + "and runs " * 500 + "today."
    judge = FakeJudge(window=300)
    found = split_statements(f"{long} It is red.", judge=judge)
    assert texts(found)[0] == long
    assert found.statements[0].origin == "sentence"


STATEMENTS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "The mill is old.",
                "He sold it.",
                "No.",
                "Hello!",
                "1,5 mm.",
                "- a\n",
                "橋は古い。",
                "नमस्ते",
                "Why?",
            ]
        ),
        st.text(max_size=20),
    ),
    max_size=8,
).map(" ".join)
WRITINGS = st.one_of(
    st.just("none"),
    st.text(max_size=60),
    st.lists(st.text(max_size=20), max_size=5).map(lambda parts: "".join(f"- {part}\n" for part in parts)),
    STATEMENTS.map(lambda text: "".join(f"- {line}\n" for line in text.split(". "))),
)


@given(STATEMENTS, st.none() | STATEMENTS, WRITINGS, st.booleans(), st.sampled_from(["llm", "sentence"]))
def test_whatever_is_answered_and_written_the_parts_agree(
    response: str, question: str | None, writing: str, own: bool, mode: str
) -> None:
    def write(task: str, fields: Mapping[str, str]) -> str:
        return f"- {fields['sentence']}\n{writing}" if own else writing

    found = cut(response, write, question, mode=mode)
    accounted = {statement.sentence for statement in found.statements}
    accounted |= {dropped.sentence for dropped in found.dropped if dropped.reason is DropReason.DUPLICATE}
    assert len(accounted) + found.without_claim == found.sentences
    assert [statement.start for statement in found.statements] == sorted(s.start for s in found.statements)
    for statement in found.statements:
        span = response[statement.start : statement.end]
        assert 0 <= statement.start < statement.end <= len(response)
        assert span == span.strip()
        assert statement.text == " ".join(statement.text.split())
        assert statement.text
        if statement.origin == "sentence":
            assert statement.text == " ".join(span.split())
    assert found == cut(response, write, question, mode=mode)


SPOKEN = st.sampled_from([sentence for sentences in WHOLE.values() for sentence in sentences])


@given(
    st.one_of(TEXTS, st.lists(SPOKEN | TEXTS, min_size=1, max_size=6).map(" ".join)),
    st.none() | SPOKEN,
    st.sampled_from([None, *CODES]),
)
def test_statements_of_any_text_point_at_their_sentence_and_invent_no_character(
    response: str, question: str | None, language: str | None
) -> None:
    found = split_statements(response, question=question, mode="sentence", language=language)
    known = set(response) | set(question or "")
    for statement in found.statements:
        sentence = response[statement.start : statement.end]
        assert sentence == sentence.strip()
        assert sentence
        if language is not None:
            span = split_sentences(response, language)[statement.sentence]
            assert (span.start, span.end) == (statement.start, statement.end)
        if statement.origin == "sentence":
            assert statement.text == " ".join(sentence.split())
        assert "\ufffd" not in statement.text or "\ufffd" in known


@pytest.mark.parametrize("code", CODES)
def test_statements_of_every_language_are_its_sentences(code: str) -> None:
    response = " ".join(WHOLE[code])
    found = split_statements(response, mode="sentence", language=code)
    assert found.sentences == len(WHOLE[code])
    for statement in found.statements:
        sentence = response[statement.start : statement.end]
        assert sentence == WHOLE[code][statement.sentence]
        if statement.origin == "sentence":
            assert statement.text == sentence
    assert len(found.statements) >= 2
