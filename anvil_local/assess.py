"""One sample under one metric, in two stages.

`prepare` lets the model write (statements, or goal and end state); `judge_prepared` asks the
questions. They are apart so that a run can prepare several samples before it judges them: the
two stages use different adapters, and samples that share a context share its prefill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anvil_local.decompose import Mode, split_statements
from anvil_local.errors import EngineError, PromptTooLong, UsageError
from anvil_local.judge import Judge
from anvil_local.language import content_words, detect_language, load_language, matches
from anvil_local.metrics import Metric
from anvil_local.padding import ask_padding, mark_padding
from anvil_local.records import (
    Decomposition,
    GoalVerdicts,
    JudgedStatement,
    Message,
    Reason,
    Role,
    Sample,
    SampleResult,
    Statement,
    Verdict,
    Workflow,
)
from anvil_local.samples import COMPACTING, DEFAULT_FORMATTER, View, render_blocks, render_trace
from anvil_local.scoring import score_goal, score_statements
from anvil_local.windows import compact_trace, cut_trace, cut_windows

_WORKFLOW_LIMIT = 160
"""Tokens of goal and end state together."""

_STATEMENT = 96
"""Tokens kept free for the statement where a context is cut; a longer statement has its own windows."""

_BORNE_OUT = 0.75
"""The share of the content words of an inferred goal or end state that the trace must have."""

_HEAD = 24
"""Characters by which a block that was shortened is known: its number and who speaks."""

_SMALLEST_ROOM = 64
"""A window with less room for the context than this cannot judge: the statement is too long for it."""


@dataclass(frozen=True)
class Options:
    """How samples are assessed."""

    decomposition: Mode = "llm"
    """How responses are cut."""
    language: str | None = None
    """ISO 639-1 code of the responses; None detects it for each."""
    seed: int | None = None
    """None decodes statements greedily; a number samples them."""
    formatter: str = DEFAULT_FORMATTER
    """The trace formatter."""
    shape: bool = False
    """Whether refused statements are asked for contradiction."""
    padding: bool = False
    """Whether statements are asked for what bears on the question and what is known without the context."""

    def __post_init__(self) -> None:
        """Refuse an unknown formatter now, not at the first trace."""
        render_trace((), formatter=self.formatter)


@dataclass(frozen=True)
class Prepared:
    """A sample whose texts are written and whose questions are not yet asked."""

    sample: Sample
    metric: Metric
    options: Options
    decomposition: Decomposition | None = None
    workflow: Workflow | None = None
    failure: Reason | None = None

    @property
    def context(self) -> str:
        """What the questions share; samples are judged in an order that keeps equal ones together."""
        return join_contexts(self.sample) if self.metric.kind == "statements" else ""


def prepare(sample: Sample, metric: Metric, judge: Judge, options: Options) -> Prepared:
    """Everything that the model writes for this sample."""
    if metric.kind == "statements":
        assert sample.response is not None
        decomposition = split_statements(
            sample.response,
            question=sample.question,
            judge=judge,
            mode=options.decomposition,
            language=options.language,
            seed=options.seed,
        )
        return Prepared(sample, metric, options, decomposition=decomposition)
    try:
        workflow = infer_workflow(_messages(sample), judge, options)
    except PromptTooLong:
        return Prepared(sample, metric, options, failure=Reason.PROMPT_TOO_LONG)
    except EngineError:
        return Prepared(sample, metric, options, failure=Reason.ENGINE_ERROR)
    return Prepared(sample, metric, options, workflow=workflow)


def judge_prepared(prepared: Prepared, judge: Judge) -> SampleResult:
    """Ask the questions and make the score."""
    sample, metric = prepared.sample, prepared.metric
    result = SampleResult(
        sample=sample,
        metric=metric.name,
        score=None,
    )
    if metric.kind == "statements":
        return _judge_statements(prepared, result, judge)
    if prepared.failure is not None and metric.desired == "user_goal":
        # What was wanted is a part of this metric's question: without it there is nothing to ask.
        return score_goal(result.model_copy(update={"reason": prepared.failure}))
    return _judge_goal(prepared, result, judge)


# Faithfulness


def judge_statements(
    statements: Sequence[Statement],
    context: str,
    judge: Judge,
    *,
    language: str | None = None,
    shape: bool = False,
) -> tuple[JudgedStatement, ...]:
    """A verdict for every statement: is it supported by the context?

    A context that does not fit into the window is cut into overlapping ones; a statement is supported if
    any window supports it, and its margin is the largest of the windows'. How the context is cut depends
    on the statement itself and never on those beside it, so a verdict is the same in any company.

    With `shape`, refused statements are asked for contradiction too, on the same prefix; a statement is
    contradicted if any window contradicts it.
    """
    if not context.strip():
        empty = Verdict(value=0, reason=Reason.EMPTY_CONTEXT, windows=0)
        return tuple(
            JudgedStatement(statement=statement, verdict=empty, contradiction=empty if shape else None)
            for statement in statements
        )
    texts = [statement.text for statement in statements]
    verdicts = _ask_windows("support", texts, context, judge, language)
    refused = [number for number, verdict in enumerate(verdicts) if shape and verdict.value == 0]
    found = _ask_windows("contradict", [texts[number] for number in refused], context, judge, language)
    contradictions = dict(zip(refused, found, strict=True))
    # One statement, one verdict: zip refuses anything else.
    return tuple(
        JudgedStatement(statement=statement, verdict=verdict, contradiction=contradictions.get(number))
        for number, (statement, verdict) in enumerate(zip(statements, verdicts, strict=True))
    )


def check_shape(judge: Judge) -> None:
    """Refuse a judge that has no question for contradiction, before the first verdict."""
    try:
        judge.room("contradict", {})
    except UsageError as error:
        raise UsageError(
            "this judge cannot tell contradicted from not stated",
            where=error.where,
            hint="leave --shape out, or bring a bigger model with -m: the profiles chat and plain can ask it",
        ) from error


def _ask_windows(
    task: str, texts: Sequence[str], context: str, judge: Judge, language: str | None
) -> list[Verdict]:
    """The answer to a question about every text: of its windows the one with the largest margin."""
    failures: dict[int, Reason] = {}
    rooms: dict[int, int] = {}
    for number, text in enumerate(texts):
        try:
            rooms[number] = judge.room(task, {"statement": text})
        except EngineError:
            failures[number] = Reason.ENGINE_ERROR
            continue
        if rooms[number] < _SMALLEST_ROOM:
            failures[number] = Reason.PROMPT_TOO_LONG
    windows = _windows(task, context, rooms, judge, language)
    verdicts: dict[int, dict[str, Verdict]] = {number: {} for number in range(len(texts))}
    # Window by window, so that each is decoded once for all the statements that share it.
    for window in dict.fromkeys(window for cut in windows.values() for window in cut):
        for number in rooms:
            if number in failures or window not in windows[number]:
                continue
            try:
                fields = {"context": window, "statement": texts[number]}
                verdicts[number][window] = judge.ask(task, fields)
            except PromptTooLong:
                failures[number] = Reason.PROMPT_TOO_LONG
            except EngineError:
                failures[number] = Reason.ENGINE_ERROR
    return [
        Verdict(value=None, reason=failures[number], windows=len(windows.get(number, [context])))
        if number in failures
        else _best([verdicts[number][window] for window in windows[number]])
        for number in range(len(texts))
    ]


def cut_context(statement: str, context: str, judge: Judge, *, language: str | None = None) -> list[str]:
    """The windows in which a statement is judged: the context itself if it fits; none if it has no room."""
    rooms = {0: judge.room("support", {"statement": statement})}
    return _windows("support", context, rooms, judge, language).get(0, [])


def _windows(
    task: str, context: str, rooms: Mapping[int, int], judge: Judge, language: str | None
) -> dict[int, list[str]]:
    """How the context is cut for each statement, given the room beside it.

    All but long statements share the same windows, cut with room to spare for a statement.
    """
    cuts: dict[int, list[str]] = {}
    found: dict[int, list[str]] = {}
    size = code = shared = None
    for number, room in rooms.items():
        if room < _SMALLEST_ROOM:
            continue
        if len(context.encode("utf-8", "replace")) > room:  # a byte is at most one token
            size = judge.count_tokens(context) if size is None else size
            shared = judge.room(task, {}) if shared is None else shared
            code = code or language or detect_language(context[:2000])
            if size > room:
                room = min(room, shared - min(_STATEMENT, shared // 4))
                if room not in cuts:
                    cuts[room] = cut_windows(context, room, count_tokens=judge.count_tokens, language=code)
                found[number] = cuts[room]
                continue
        found[number] = [context]
    return found


def _best(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of the window with the largest margin; the first of equals."""
    margins = [verdict.margin if verdict.margin is not None else float("-inf") for verdict in verdicts]
    best = max(range(len(verdicts)), key=lambda number: (margins[number], -number))
    return verdicts[best].model_copy(update={"windows": len(verdicts), "window": best})


def _judge_statements(prepared: Prepared, result: SampleResult, judge: Judge) -> SampleResult:
    decomposition = prepared.decomposition
    assert decomposition is not None
    judged = judge_statements(
        decomposition.statements,
        prepared.context,
        judge,
        language=prepared.options.language,
        shape=prepared.options.shape,
    )
    question = prepared.sample.question
    if prepared.options.padding and prepared.context.strip():
        judged = ask_padding(judged, question, judge)
    judged = mark_padding(judged, question, language=prepared.options.language)
    flags: list[str] = []
    if not prepared.context.strip():
        flags.append("empty_context")
    if any(item.verdict.windows > 1 for item in judged):
        flags.append("windows")
    bearing = [item.bears.value for item in judged if item.bears is not None]
    if 0 in bearing and 1 not in bearing:
        flags.append("beside_the_question")
    return score_statements(
        result.model_copy(
            update={"statements": judged, "decomposition": decomposition, "flags": tuple(flags)}
        )
    )


def join_contexts(sample: Sample) -> str:
    """The passages of a sample as one context."""
    return "\n\n".join(context for context in sample.retrieved_contexts or () if context.strip())


# Goal accuracy


def infer_workflow(messages: Sequence[Message], judge: Judge, options: Options) -> Workflow | None:
    """What the user wanted and how the run ended, as the model sees it.

    None if the model did not finish, or wrote words that the trace does not have: a small model repeats
    the instruction, and a goal that nobody stated must not be judged.
    """
    room = judge.room("workflow", {}) - _WORKFLOW_LIMIT
    if room < _SMALLEST_ROOM:
        raise PromptTooLong("the window is too small to read a trace")
    trace = flatten(messages, room, "all", judge, options).text
    writing = judge.write("workflow", {"trace": trace}, limit=_WORKFLOW_LIMIT)
    found = {}
    for line in writing.text.split("\n"):
        name, separator, text = line.partition(": ")
        if separator and text.strip():
            found[name] = text.strip()
    if not {"user_goal", "end_state"} <= set(found):
        return None
    human = " ".join(message.content for message in messages if message.role is Role.HUMAN)
    if not _is_borne_out(found["user_goal"], human) or not _is_borne_out(
        found["end_state"], "\n".join(render_trace(messages, formatter=options.formatter))
    ):
        return None
    return Workflow(user_goal=found["user_goal"], end_state=found["end_state"])


def _is_borne_out(text: str, source: str) -> bool:
    """Whether the text has content words, and most of them are the source's."""
    language = load_language(detect_language(source))
    known = frozenset(content_words(source, language))
    found = [matches(word, known) for word in content_words(text, language)]
    return bool(found) and sum(found) >= _BORNE_OUT * len(found)


def _judge_goal(prepared: Prepared, result: SampleResult, judge: Judge) -> SampleResult:
    sample, metric, workflow = prepared.sample, prepared.metric, prepared.workflow
    assert metric.desired is not None
    messages = _messages(sample)
    if metric.desired == "reference":
        desired = sample.reference
    else:
        # What the model infers is a summary of what the user said; without it, those words themselves.
        desired = workflow.user_goal if workflow else first_words(messages)
    assert desired is not None
    reached, flat = ask_goal(messages, desired, "all", judge, prepared.options)
    claimed = done = None
    if not any(message.role is Role.AI and message.content.strip() for message in messages):
        claimed = Verdict(value=None, reason=Reason.NO_AGENT_WORDS, windows=0)
    if not any(message.role is Role.TOOL for message in messages):
        done = Verdict(value=None, reason=Reason.NO_TOOL_RESULTS, windows=0)
    goal = GoalVerdicts(
        desired=desired,
        desired_from="reference"
        if metric.desired == "reference"
        else "user_goal"
        if workflow
        else "user_words",
        workflow=workflow,
        reached=reached,
        claimed=claimed or ask_goal(messages, desired, "claimed", judge, prepared.options)[0],
        done=done or ask_goal(messages, desired, "done", judge, prepared.options)[0],
        formatter=prepared.options.formatter,
        cut_tokens=flat.cut_tokens,
        shortened=flat.shortened,
        left_out=flat.left_out,
    )
    flags = []
    if flat.cut_tokens:
        flags.append("trace_cut")
    if goal.claimed.value == 1 and goal.done.value == 0:
        flags.append("claimed_not_done")
    return score_goal(result.model_copy(update={"goal": goal, "flags": tuple(flags)}))


@dataclass(frozen=True)
class Flat:
    """A view of a trace as the judge reads it."""

    text: str
    cut_tokens: int = 0
    """Tokens left out; 0 when all fits."""
    shortened: tuple[int, ...] = ()
    """Messages, from 1, of which a part was left out."""
    left_out: tuple[int, ...] = ()
    """Messages, from 1, that were left out."""


def ask_goal(
    messages: Sequence[Message], desired: str, view: View, judge: Judge, options: Options
) -> tuple[Verdict, Flat]:
    """The goal question on one view of the trace, and what was left out of it."""
    flat = Flat("")
    try:
        room = judge.room("goal", {"outcome": desired})
        if room < _SMALLEST_ROOM:
            return Verdict(value=None, reason=Reason.PROMPT_TOO_LONG), flat
        flat = flatten(messages, room, view, judge, options)
        return judge.ask("goal", {"trace": flat.text, "outcome": desired}), flat
    except PromptTooLong:
        return Verdict(value=None, reason=Reason.PROMPT_TOO_LONG), flat
    except EngineError:
        return Verdict(value=None, reason=Reason.ENGINE_ERROR), flat


def flatten(messages: Sequence[Message], room: int, view: View, judge: Judge, options: Options) -> Flat:
    """A view of the trace as text that fits, and what was left out: never the user's first words."""
    blocks = render_blocks(messages, formatter=options.formatter, view=view)
    first = next((n for n, message in enumerate(messages) if message.role is Role.HUMAN), 0)
    goal = max(0, sum(block.message <= first for block in blocks) - 1)
    texts = [block.text for block in blocks]
    if options.formatter in COMPACTING:
        roles = [messages[block.message].role for block in blocks]
        text, cut = compact_trace(texts, roles, room, count_tokens=judge.count_tokens, goal=goal)
    else:
        text, cut = cut_trace(texts, room, count_tokens=judge.count_tokens, goal=goal)
    if not cut:
        return Flat(text)
    gone = [block for block in blocks if block.text not in text]
    there = [block for block in gone if block.text[:_HEAD] in text]
    return Flat(
        text,
        cut,
        tuple(block.message + 1 for block in there),
        tuple(block.message + 1 for block in gone if block not in there),
    )


def _messages(sample: Sample) -> tuple[Message, ...]:
    assert isinstance(sample.user_input, tuple)
    return sample.user_input


def first_words(messages: Sequence[Message]) -> str:
    """What the user said first, which stands for the goal when none is inferred."""
    return next((m.content.strip() for m in messages if m.role is Role.HUMAN and m.content.strip()), "")
