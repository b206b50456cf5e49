"""The records of every stage: frozen, checked, and the same in Python, in JSON and in the docs.

    Sample -> Statement -> Verdict -> SampleResult -> MetricSummary -> GateOutcome -> Report

A record never computes a number that another record holds: `scoring` and `gates` do.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = "1"
"""The version of the JSON report. A field may be added within a version, never removed or redefined."""


class Record(BaseModel):
    """The base of all records: frozen, no unknown fields, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class Role(StrEnum):
    """Who speaks in a trace."""

    SYSTEM = "system"
    HUMAN = "human"
    AI = "ai"
    TOOL = "tool"


class ToolCall(Record):
    """One call that the agent made."""

    name: str
    """The tool's name."""
    args: Any = None
    """The arguments as JSON: usually an object; a string if the agent did not write valid JSON."""
    id: str | None = None
    """The identifier that the tool's result refers to, if the source had one."""


class Message(Record):
    """One turn of a trace."""

    role: Role
    """Who speaks."""
    content: str = ""
    """The text of the turn."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls made in this turn (`ai` only)."""
    tool_call_id: str | None = None
    """The call that this result answers (`tool` only)."""
    name: str | None = None
    """The speaker's or the tool's name, if the source had one."""


class Sample(Record):
    """One row to judge: a single-turn answer or a multi-turn trace, in Ragas' field names."""

    id: str
    """The row's own `id`, or its number in the file, counted from 1."""
    source: str = ""
    """Where it was read, `FILE:LINE`."""
    user_input: str | tuple[Message, ...] | None = None
    """The question (answers) or the messages (traces)."""
    response: str | None = None
    """The answer to judge; never empty when present."""
    retrieved_contexts: tuple[str, ...] | None = None
    """The passages that the answer must rest on; may be empty, may hold empty strings."""
    reference: str | None = None
    """The expected outcome (traces) or the expected answer."""
    metadata: dict[str, Any] = {}
    """The row's other keys, unchanged."""

    @property
    def is_trace(self) -> bool:
        """Whether `user_input` is a list of messages."""
        return isinstance(self.user_input, tuple)

    @property
    def question(self) -> str | None:
        """The question of a single-turn sample."""
        return self.user_input if isinstance(self.user_input, str) else None


class Statement(Record):
    """One claim cut from a response."""

    text: str
    """The claim, standalone."""
    start: int
    """Where its sentence begins in the response, in characters."""
    end: int
    """Where its sentence ends in the response, in characters (exclusive)."""
    sentence: int
    """The number of its sentence in the response, from 0."""
    origin: Literal["model", "sentence", "resolved", "template"] = "model"
    """Written by the model; the sentence as it stands; the sentence, with names put in for pronouns or behind
    the line that opens its list; or question and short answer in one."""


class DropReason(StrEnum):
    """Why a candidate statement is not judged."""

    EMPTY = "empty"
    """Nothing but white space or punctuation."""
    DUPLICATE = "duplicate"
    """The same words as an earlier statement of the same response."""
    COPIES_QUESTION = "copies_question"
    """It says what the question says, not what the response says."""
    FOREIGN = "foreign"
    """It holds a word that neither the response nor the question has."""
    ELSEWHERE = "elsewhere"
    """It says nothing of the sentence it was written for."""
    INCOMPLETE = "incomplete"
    """Its sentence says more than the statements written for it; the sentence stands for itself."""
    CUT = "cut"
    """The model did not finish it within the length limit."""


class DroppedStatement(Record):
    """A candidate statement that is not judged, kept so that nothing vanishes."""

    text: str
    """The candidate as the model wrote it."""
    sentence: int
    """The number of its sentence in the response, from 0."""
    reason: DropReason
    """Why it was dropped."""


class Decomposition(Record):
    """A response cut into statements."""

    statements: tuple[Statement, ...]
    """What will be judged, in the order of the response."""
    dropped: tuple[DroppedStatement, ...] = ()
    """Candidates that will not be judged."""
    sentences: int
    """The number of sentences in the response."""
    without_claim: int = 0
    """How many of them make no claim of their own: greetings, offers of help, refusals, questions back,
    headings, and lines that only open a list."""
    fallbacks: int = 0
    """How many sentences stand for themselves because what the model wrote did not cover them."""


class Reason(StrEnum):
    """Why there is no score, no verdict, or a verdict without the model."""

    NO_STATEMENTS = "no_statements"
    """The response makes no claim."""
    EMPTY_CONTEXT = "empty_context"
    """No context, so nothing can be supported: 0 without asking the model."""
    PROMPT_TOO_LONG = "prompt_too_long"
    """The statement alone does not fit into the window."""
    ENGINE_ERROR = "engine_error"
    """llama.cpp failed on this question."""
    ONLY_PADDING = "only_padding"
    """Without padding nothing is left (gates on `adjusted`)."""
    NO_TOOL_RESULTS = "no_tool_results"
    """The trace holds no tool result, so nothing shows what was done."""
    NO_AGENT_WORDS = "no_agent_words"
    """The agent said nothing, so nothing was claimed."""


class Vote(Record):
    """What one of several judges said."""

    judge: str
    """The short fingerprint of the judge."""
    value: Literal[0, 1] | None
    """Its verdict."""
    margin: float | None
    """Its logit(1) - logit(0), in nats."""
    mass: float | None
    """Its p(0) + p(1) before the constraint."""


class Verdict(Record):
    """One answer of the judge to one question.

    `value` is None exactly when the question could not be decided; `reason` then says why.
    """

    value: Literal[0, 1] | None
    """1 yes, 0 no, None unscored."""
    p_supported: float | None = None
    """p(1) / (p(0) + p(1)), from the model's next-token distribution; None when no model was asked."""
    margin: float | None = None
    """logit(1) - logit(0), in nats; the verdict is 1 when it is above the judge's threshold."""
    mass: float | None = None
    """p(0) + p(1) before the constraint: a low mass says that the prompt does not fit the model."""
    reason: Reason | None = None
    """Why it is unscored, or why it was decided without the model."""
    windows: int = 1
    """How many windows the context was cut into."""
    window: int | None = None
    """The window, from 0, with the largest margin, which decided; None without a model."""
    votes: tuple[Vote, ...] = ()
    """Each judge's answer when several vote."""

    @property
    def scored(self) -> bool:
        """Whether there is a 0 or a 1."""
        return self.value is not None


class Shape(StrEnum):
    """How a refused statement fails."""

    CONTRADICTED = "contradicted"
    """It and the context cannot both be true."""
    NOT_STATED = "not_stated"
    """The context does not say it."""


class Padding(StrEnum):
    """In what way a statement says nothing that was asked."""

    DUPLICATE = "duplicate"
    """The content words and the verdict of an earlier statement of the same response."""
    RESTATES_QUESTION = "restates_question"
    """It says no more than a question that asks for more than yes or no."""
    KNOWN = "known"
    """The judge says 1 without the context (`--padding`)."""
    ASIDE = "aside"
    """It does not bear on the question, while another statement does (`--padding`)."""


class JudgedStatement(Record):
    """A statement with its verdict. One statement, one verdict, always."""

    statement: Statement
    """What was judged."""
    verdict: Verdict
    """What the judge said."""
    contradiction: Verdict | None = None
    """1 if the context contradicts it, 0 if it is not stated: asked of refused statements with `--shape`."""
    unaided: Verdict | None = None
    """The verdict without the context: asked of supported statements with `--padding`."""
    bears: Verdict | None = None
    """1 if it bears on the question: asked with `--padding`, where there is a question."""
    padding: tuple[Padding, ...] = ()
    """In what ways it is padding; its verdict counts all the same."""

    @property
    def shape(self) -> Shape | None:
        """How it fails; None when it does not, or when that was not asked or could not be decided."""
        if self.verdict.value != 0 or self.contradiction is None or self.contradiction.value is None:
            return None
        return Shape.CONTRADICTED if self.contradiction.value else Shape.NOT_STATED


class Workflow(Record):
    """What a run wanted and how it ended, inferred from the trace."""

    user_goal: str
    """What the user wanted."""
    end_state: str
    """How the run ended."""


class GoalVerdicts(Record):
    """The parts of a goal accuracy verdict."""

    desired: str
    """The outcome asked about: the reference, or the inferred goal."""
    desired_from: Literal["reference", "user_goal", "user_words"]
    """Where the desired outcome comes from: the sample, what the model inferred, or, where it could not
    infer, what the user said first."""
    workflow: Workflow | None
    """The inferred goal and end state; None when inference failed."""
    reached: Verdict
    """The headline: is the outcome the desired one, given the whole trace?"""
    claimed: Verdict
    """The same question given the user's and the agent's words alone."""
    done: Verdict
    """The same question given the user's words, the calls and the tool results alone."""
    formatter: str
    """Name and version of the trace formatter."""
    cut_tokens: int = 0
    """Tokens of the trace left out because it is longer than the window; 0 means all was read."""
    shortened: tuple[int, ...] = ()
    """The messages, from 1, of which a part was left out."""
    left_out: tuple[int, ...] = ()
    """The messages, from 1, that were left out."""


class SampleResult(Record):
    """One sample under one metric."""

    sample: Sample
    """The sample as it was read: the report alone is enough to judge it again."""
    metric: str
    """The metric's name."""
    score: float | None
    """Between 0 and 1; None when unscored."""
    reason: Reason | None = None
    """Why there is no score."""
    flags: tuple[str, ...] = ()
    """Things a reader should know, such as `empty_context`."""
    supported: int = 0
    """Verdicts that are 1."""
    scored: int = 0
    """Verdicts that are 0 or 1."""
    unscored: int = 0
    """Verdicts that could not be decided."""
    padded: int = 0
    """Supported statements that are padding; they count in the score."""
    adjusted: float | None = None
    """The score without them (faithfulness); None when unscored, or when nothing is left."""
    statements: tuple[JudgedStatement, ...] = ()
    """Every statement with its verdict (faithfulness)."""
    decomposition: Decomposition | None = None
    """How the response was cut (faithfulness)."""
    goal: GoalVerdicts | None = None
    """The parts of the verdict (goal accuracy)."""

    @property
    def sample_id(self) -> str:
        """The sample's identifier."""
        return self.sample.id

    @property
    def source(self) -> str:
        """Where the sample was read, `FILE:LINE`."""
        return self.sample.source

    @property
    def response(self) -> str | None:
        """The response, which the spans of the statements point into."""
        return self.sample.response

    @property
    def metadata(self) -> dict[str, Any]:
        """The row's other keys, unchanged."""
        return self.sample.metadata


class Fingerprint(Record):
    """Everything that can change a verdict. Equal fingerprints give equal bits."""

    digest: str
    """sha256 over the parts, as hexadecimal digits."""
    parts: dict[str, Any]
    """What went in."""

    @property
    def short(self) -> str:
        """The first twelve digits, for people."""
        return self.digest[:12]


class Interval(Record):
    """Where a number lies at 95 %; samples are the independent units."""

    low: float | None
    """The lower end; None when it cannot be said."""
    high: float | None
    """The upper end."""
    reason: str | None = None
    """Why there are no ends."""


class CorrectedRate(Record):
    """A pooled share beside what it is without the judge's errors."""

    raw: float
    """The share of verdicts that are 1."""
    raw_interval: Interval
    """Its interval, which knows nothing of the judge's errors."""
    corrected: float | None
    """The corrected share; None with a reason in the interval."""
    interval: Interval
    """The interval of the corrected share; ends of None have a reason."""
    method: str
    """How it was corrected."""
    labels: int
    """Labels that it rests on."""


class MetricSummary(Record):
    """A metric over all its samples."""

    metric: str
    """The metric's name."""
    samples: int
    """How many samples it was asked to score."""
    scored_samples: int
    """How many have a score."""
    unscored_samples: int
    """How many have none; never part of a mean."""
    mean: float | None
    """The mean of the sample scores; None when no sample is scored."""
    lowest: float | None
    """The lowest sample score."""
    pooled: float | None
    """Supported verdicts over scored verdicts, all samples together."""
    supported: int
    """Verdicts that are 1."""
    scored: int
    """Verdicts that are 0 or 1."""
    unscored: int
    """Verdicts that could not be decided."""
    reasons: dict[str, int] = {}
    """How often each reason left a sample unscored."""
    padded: int = 0
    """Supported statements that are padding (see `Padding`)."""
    adjusted: float | None = None
    """The mean of the sample scores without them; None where nothing is left, and for goals."""
    only_padding: int = 0
    """Scored samples of which nothing is left without them; not part of `adjusted`."""
    mean_interval: Interval | None = None
    """Of `mean`: how far it would move with other samples of the same kind."""
    pooled_interval: Interval | None = None
    """Of `pooled`, with samples as clusters of their verdicts."""
    adjusted_interval: Interval | None = None
    """Of `adjusted`."""


class GateOutcome(Record):
    """A rule and what became of it."""

    rule: str
    """The rule as it was written."""
    passed: bool
    """Whether it holds."""
    value: float | None
    """The number compared; None when there is none, which fails."""
    message: str
    """One line for people."""
    threshold: float | None = None
    """The number it is compared with."""
    interval: Interval | None = None
    """The 95 % interval of the number that the rule is about; None when it has none."""
    flips: int | None = None
    """The fewest verdicts that would have to flip for the other outcome; None when that cannot be said, or
    when no flips would do."""
    unstable: int | None = None
    """Verdicts in the unstable band: their margin is near the judge's threshold. None without margins."""
    warning: str | None = None
    """Why the rule does not mean what it says, such as a threshold finer than the counts can express."""


class Settings(Record):
    """What the user asked for."""

    metrics: tuple[str, ...]
    """The metrics that ran."""
    decomposition: Literal["llm", "sentence"]
    """How responses were cut into statements."""
    language: str | None = None
    """The language of the responses; None means that it was detected for each."""
    seed: int | None = None
    """The seed of sampled decomposition; None means greedy."""
    formatter: str = "anvil-trace/1"
    """Name and version of the trace formatter; part of the goal metrics."""
    shape: bool = False
    """Whether refused statements were asked for contradiction."""
    padding: bool = False
    """Whether statements were asked for what bears on the question and what is known without the context."""
    gates: tuple[str, ...] = ()
    """The gate rules."""
    max_unscored: float = 0.05
    """The share of unscored samples, or of undecided verdicts, above which a gate fails by itself; rules on
    `unscored` set their own."""
    unstable_band: float = 0.4
    """A verdict is unstable when its margin is nearer than this to the judge's threshold, in nats."""


class Shard(Record):
    """Which part of a run a report holds (`run --shard K/N`)."""

    index: int
    """K: counted from 1."""
    count: int
    """N: how many parts there are."""
    samples: int
    """Samples of the whole data."""
    data_sha256: str
    """Of the samples of the whole data, apart from where they were read."""


class Report(Record):
    """A whole run: what `-o out.json` writes."""

    schema_version: str = SCHEMA_VERSION
    """The version of this layout."""
    version: str
    """The version of anvil_local."""
    created: str
    """When the run began, ISO 8601, UTC. No verdict depends on it."""
    data: tuple[str, ...]
    """The files that were read."""
    judge: Fingerprint
    """The judge."""
    settings: Settings
    """What was asked for."""
    summaries: tuple[MetricSummary, ...]
    """One row a metric."""
    gates: tuple[GateOutcome, ...]
    """One row a rule."""
    passed: bool
    """Whether every gate passed."""
    complete: bool = True
    """False when the run was interrupted: the results are a part of what was asked."""
    shard: Shard | None = None
    """Which part of a run this is; None for a whole one. The gates on scores of a part are not checked."""
    not_judged: int = 0
    """Results left out because the outcome of the gates could no longer change (`--stop-early`)."""
    corrected: dict[str, CorrectedRate] = {}
    """The pooled share without the judge's errors as its card tells them, by metric (`--judge-card`)."""
    rejected: tuple[str, ...] = ()
    """Rows that were refused and skipped, with `FILE:LINE` and the reason (`--skip-bad-rows`)."""
    results: tuple[SampleResult, ...]
    """Every sample under every metric, in the order of the data."""

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a sample and metric; metadata keys come as `metadata.KEY`."""
        return [
            {
                "sample_id": result.sample_id,
                "metric": result.metric,
                "score": result.score,
                "reason": str(result.reason) if result.reason else None,
                "supported": result.supported,
                "scored": result.scored,
                "unscored": result.unscored,
                "flags": " ".join(result.flags),
                "source": result.source,
                **{f"metadata.{key}": value for key, value in result.metadata.items()},
            }
            for result in self.results
        ]

    def statement_rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a judged statement."""
        return [
            {
                "sample_id": result.sample_id,
                **item.statement.model_dump(mode="json"),
                **item.verdict.model_dump(mode="json", exclude={"votes"}),
            }
            for result in self.results
            for item in result.statements
        ]

    def to_pandas(self, *, statements: bool = False) -> Any:
        """`rows()`, or `statement_rows()`, as a pandas DataFrame. Needs pandas."""
        import pandas

        return pandas.DataFrame(self.statement_rows() if statements else self.rows())
