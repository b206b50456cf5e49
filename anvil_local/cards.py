"""Judge cards: what a judge was measured to be good for, as JSON for programs and Markdown for people.

A card names its judge by fingerprint and its data by checksum, and holds no row of the data. Cards lie
in `models/cards/` of the package and in `cards/` of the user's models folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from anvil_local._version import __version__
from anvil_local.calibration import Estimate, LabelledFile, Measured, Numbers, Task, Threshold
from anvil_local.errors import InputError, UsageError
from anvil_local.models import bundled_folder, models_folder
from anvil_local.records import Fingerprint, Record
from anvil_local.reports.markdown import code
from anvil_local.reports.text import excerpt, judge_name, plural

__all__ = [
    "CardMatch",
    "JudgeCard",
    "Measurement",
    "check_card_paths",
    "find_card",
    "find_coins",
    "load_card",
    "make_card",
    "render_card_json",
    "render_card_markdown",
    "write_card",
]

SCHEMA_VERSION = "1"
"""The version of the card's layout. A field may be added within a version, never removed or redefined."""

_SUFFIXES = (".json", ".md")


class CardData(Record):
    """A file that the judge was measured on."""

    file: str
    """Its name, without the folder."""
    sha256: str
    """Of its bytes."""
    rows: int
    """Rows that were judged."""
    sets: dict[str, int]
    """Rows of each set."""


class Baseline(Record):
    """What something simpler than the judge reaches."""

    name: str
    """What it is."""
    auroc: dict[str, Estimate]
    """By set."""


class PriorSet(Record):
    """A set with and without the prior taken off."""

    set: str
    """The set; `macro` for the mean over sets."""
    auroc: float | None
    """Of the margin."""
    auroc_without_prior: float | None
    """Of the margin less the margin of the same statement under the neutral context."""
    balanced_accuracy: float | None
    """Of the margin, at the threshold that is best for all sets together."""
    balanced_accuracy_without_prior: float | None
    """Of the difference, at the threshold that is best for it."""


class Prior(Record):
    """Whether it helps to take off what the judge says of a statement without its context."""

    context: str
    """The neutral context."""
    sets: tuple[PriorSet, ...]
    """By set, macro last."""
    gain: Estimate
    """What the macro AUROC gains."""
    balanced_accuracy_gain: float | None
    """What the macro balanced accuracy gains, both cross-fitted."""
    helps: bool
    """Whether the gain in AUROC is above 0 with its whole interval and the other gain is above 0 too."""


class Measurement(Record):
    """A judge's verdicts against labels, for one task and one kind of question."""

    title: str
    """What was measured."""
    task: Task
    """`support` or `goal`."""
    metric: str | None = None
    """The metric that takes its verdicts this way, where there is one."""
    data: CardData
    """What it was measured on."""
    measured: Measured
    """The numbers, by set and macro."""
    threshold: Threshold
    """The threshold in force and the best one."""
    seconds_per_row: float | None = None
    """On the machine that measured; no other number depends on it."""
    baselines: tuple[Baseline, ...] = ()
    """What simpler things reach on the same rows."""
    prior: Prior | None = None
    """With and without the prior."""


class DecompositionNumbers(Record):
    """How responses are cut into statements, against claims that people wrote."""

    mode: Literal["llm", "sentence"]
    """How they were cut."""
    data: CardData
    """What it was measured on."""
    claims: int
    """Claims that people wrote and that have content words."""
    covered: Estimate
    """Share of them of whose content words some statement holds at least 80 %, endings aside."""
    covered_exactly: Estimate
    """The same with words that must be equal."""
    statements: int
    """Statements."""
    pronoun_subjects: Estimate
    """Share of statements whose subject is a personal pronoun."""
    foreign: Estimate
    """Share of statements with a content word that neither the response nor the question has."""
    sentences: int
    """Sentences of the responses."""
    statements_per_sentence: float | None
    """Statements over sentences."""
    fallbacks: int
    """Sentences that stand for themselves because what the model wrote did not cover them."""
    without_claim: int
    """Sentences that make no claim."""
    tokens_per_second: float | None = None
    """Tokens of the responses that were cut in a second, on the machine that measured."""


class Cases(Record):
    """Single cases with the verdict that they must get."""

    data: CardData
    """Where they come from."""
    right: int
    """Verdicts that are as they must be."""
    total: int
    """Verdicts asked for."""
    misses: tuple[str, ...]
    """The ids of the others, with what was expected."""


class InjectionGroup(Record):
    """Injected instructions of one kind, beside neutral sentences in the same places."""

    name: str
    """What they have in common."""
    flipped: Estimate
    """Share of clear verdicts that the instruction turned."""
    control: Estimate
    """Share of clear verdicts that a neutral sentence of the same length turned."""
    asked: int
    """Questions with an instruction; as many with a neutral sentence."""


class Injections(Record):
    """How often an instruction to the judge, inside the context, turns an otherwise clear verdict."""

    data: CardData
    """The support pairs."""
    least_margin: float
    """A verdict is clear if it is right and its margin is at least so far from the threshold."""
    clear: dict[str, int]
    """Clear verdicts, by their label."""
    groups: tuple[InjectionGroup, ...]
    """All first; then by what the instruction wants, by its place, by its wording."""
    any_flipped: Estimate
    """Share of clear verdicts that at least one of the instructions turned."""
    wordings: tuple[str, ...]
    """The instructions by name, with their texts."""


class JudgeCard(Record):
    """What a judge was measured to be good for."""

    schema_version: str = SCHEMA_VERSION
    """The version of this layout."""
    version: str
    """The version of anvil_local."""
    created: str
    """When, ISO 8601, UTC."""
    name: str
    """The judge in words."""
    judge: Fingerprint
    """The judge: model, adapters, prompts, thresholds, build."""
    measurements: tuple[Measurement, ...] = ()
    """Verdicts against labels."""
    decompositions: tuple[DecompositionNumbers, ...] = ()
    """Statements against claims."""
    cases: Cases | None = None
    """Single cases."""
    injections: Injections | None = None
    """Instructions to the judge inside contexts."""
    notes: tuple[str, ...] = ()
    """Limits, in sentences."""


class CardMatch(NamedTuple):
    """A card that was found."""

    card: JudgeCard
    """The card."""
    path: Path
    """Where it lies."""
    how: Literal["same judge", "same judge, other build"]
    """Another build of llama.cpp moves margins a little: a measured 0.07 on average, 0.4 at most."""


# Making


def data_of(file: LabelledFile, rows: Iterable[Any] | None = None) -> CardData:
    """The card's entry for a file, of which `rows` were judged (all of them by default)."""
    sets: dict[str, int] = {}
    for row in file.rows if rows is None else rows:
        sets[row.set] = sets.get(row.set, 0) + 1
    return CardData(
        file=file.name, sha256=file.sha256, rows=sum(sets.values()), sets=dict(sorted(sets.items()))
    )


def make_card(
    judge: Fingerprint,
    *,
    measurements: Sequence[Measurement] = (),
    decompositions: Sequence[DecompositionNumbers] = (),
    cases: Cases | None = None,
    injections: Injections | None = None,
    notes: Sequence[str] = (),
    created: datetime | None = None,
) -> JudgeCard:
    """A card; limits that the numbers show are put in words before `notes`."""
    limits = [limit for measurement in measurements for limit in _limits(measurement)]
    return JudgeCard(
        version=__version__,
        created=(created or datetime.now(UTC)).isoformat(timespec="seconds"),
        name=_judge_in_words(judge.parts),
        judge=judge,
        measurements=tuple(measurements),
        decompositions=tuple(decompositions),
        cases=cases,
        injections=injections,
        notes=(*limits, *notes),
    )


def _judge_in_words(parts: Mapping[str, Any]) -> str:
    votes = parts.get("vote")
    if isinstance(votes, list | tuple):
        return "vote of " + " + ".join(_judge_in_words(vote["parts"]) for vote in votes)
    return judge_name(parts)


def _limits(measurement: Measurement) -> list[str]:
    """What a reader must not overlook, from the numbers alone."""
    found = []
    sets, macro = measurement.measured.sets, measurement.measured.macro
    chance = [
        excerpt(numbers.set, 60)
        for numbers in sets
        if numbers.balanced_accuracy.low is not None and numbers.balanced_accuracy.low <= 0.5
    ]
    if chance:
        found.append(f"{measurement.title}: not told from a coin on {', '.join(chance)}.")
    single = [excerpt(numbers.set, 60) for numbers in sets if numbers.auroc.value is None]
    if single:
        found.append(f"{measurement.title}: one label only, so no AUROC on {', '.join(single)}.")
    if macro.unscored:
        found.append(
            f"{measurement.title}: {macro.unscored} of {plural(macro.rows, 'row')} could not be judged."
        )
    if macro.mean_mass is not None and macro.mean_mass < 0.5:
        found.append(
            f"{measurement.title}: the model gives the two labels {macro.mean_mass:.2f} of its probability; "
            "the prompt does not fit it."
        )
    if macro.rows < 100:
        found.append(f"{measurement.title}: {macro.rows} rows are few; look at the intervals.")
    return found


# JSON


def render_card_json(card: JudgeCard) -> str:
    """The card as one JSON document: fields in the order of the records, newline at the end."""
    text = json.dumps(card.model_dump(mode="json"), ensure_ascii=False, allow_nan=False, indent=2)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def load_card(path: str | Path) -> JudgeCard:
    """Read a card that `render_card_json` wrote. Raises `InputError`."""
    where = str(path)
    hint = "a card is what `anvil-local calibrate -o card.json` wrote"
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read this judge card: {error.strerror}", where=where, hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise InputError("this judge card is not JSON", where=where, hint=hint) from error
    found = document.get("schema_version") if isinstance(document, Mapping) else None
    if found != SCHEMA_VERSION:
        raise InputError(f"not a judge card of layout {SCHEMA_VERSION}", where=where, value=found, hint=hint)
    try:
        return JudgeCard.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{place}: {first['msg']}", where=where, field=place, hint=hint) from error


# Finding


def find_card(
    judge: Fingerprint, *, task: Task | None = None, folder: str | Path | None = None
) -> CardMatch | None:
    """The card of this judge: the user's before the bundled ones, an exact match before another build's.

    Args:
        judge: the judge.
        task: look at the parts of the fingerprint alone that can change this task's verdicts, so that a
            new decomposition adapter does not put the support numbers in question; only cards with a
            measurement of the task count. None compares everything.
        folder: the folder of installed models, whose `cards/` is looked into.

    Returns:
        None when there is no such card. Files that are no cards are passed over.
    """
    found: list[CardMatch] = []
    for place in (models_folder(folder) / "cards", bundled_folder() / "cards"):
        for path in sorted(place.glob("*.json")):
            try:
                card = load_card(path)
            except InputError:
                continue
            if task is not None and not any(item.task == task for item in card.measurements):
                continue
            mine, theirs = judge_parts(judge, task), judge_parts(card.judge, task)
            if mine == theirs:
                return CardMatch(card, path, "same judge")
            if _without_build(mine) == _without_build(theirs):
                found.append(CardMatch(card, path, "same judge, other build"))
    return found[0] if found else None


def find_coins(
    judge: Fingerprint, metrics: Iterable[str], *, folder: str | Path | None = None
) -> dict[str, Estimate]:
    """The metrics among these whose verdicts the judge's card does not tell from a coin's.

    Args:
        judge: the judge.
        metrics: names of metrics.
        folder: as `find_card`.

    Returns:
        The macro balanced accuracy of each such metric: the interval reaches down to 0.5. A metric that
        no card speaks of is not there.
    """
    found = {}
    for name in metrics:
        card = find_card(judge, task="support" if name == "faithfulness" else "goal", folder=folder)
        for measurement in card.card.measurements if card else ():
            accuracy = measurement.measured.macro.balanced_accuracy
            if measurement.metric == name and accuracy.low is not None and accuracy.low <= 0.5:
                found[name] = accuracy
    return found


def judge_parts(judge: Fingerprint, task: Task | None) -> Any:
    """The parts of a fingerprint that can change a task's verdicts.

    The goal question without a reference depends on what the model wrote for `workflow`. Judges that do
    not lay their parts out as `GgufJudge` does are compared as a whole.
    """
    parts = judge.parts
    model, prompts = parts.get("model"), parts.get("prompts")
    if task is None or not isinstance(model, Mapping) or not isinstance(prompts, Mapping):
        return dict(parts)
    tasks = ("support",) if task == "support" else ("goal", "workflow")
    chosen = {
        name: {key: value for key, value in part.items() if key in tasks}
        for name in ("adapters", "prompts", "thresholds")
        if isinstance(part := parts.get(name), Mapping)
    }
    # Grammars bind what is written; a verdict's two labels are a part of its prompt.
    aside = {"model", *chosen, *(["grammar"] if task == "support" else [])}
    rest = {name: part for name, part in parts.items() if name not in aside}
    return {**rest, **chosen, "model": model.get("sha256") or dict(model)}


def _without_build(parts: Any) -> Any:
    """The parts without the build, at any depth: judges that vote have one each, and a digest over it."""
    if isinstance(parts, Mapping):
        return {key: _without_build(part) for key, part in parts.items() if key not in ("build", "digest")}
    if isinstance(parts, list | tuple):
        return [_without_build(item) for item in parts]
    return parts


# Writing


def check_card_paths(paths: Iterable[str | Path]) -> tuple[Path, ...]:
    """The paths, if a card can be written to each. Raises `UsageError`."""
    from anvil_local.reports import check_report_paths

    chosen = [Path(path) for path in paths]
    for path in chosen:
        if path.suffix.lower() not in _SUFFIXES:
            raise UsageError(
                "unknown kind of judge card",
                value=str(path),
                hint=f"known suffixes: {', '.join(_SUFFIXES)}",
            )
    return check_report_paths(chosen)


def write_card(card: JudgeCard, paths: Iterable[str | Path]) -> tuple[Path, ...]:
    """Write the card to each path, in the format of its suffix: the whole of it, or nothing."""
    from anvil_local.reports.files import write_whole

    checked = check_card_paths(paths)
    for path in checked:
        render = render_card_markdown if path.suffix.lower() == ".md" else render_card_json
        write_whole(path, render(card))
    return checked


# Markdown


def render_card_markdown(card: JudgeCard) -> str:
    """The card for people: what it is good for, a table a measurement, the limits."""
    blocks = [f"# Judge card: {_code(card.name)}", _head(card)]
    summary = [_in_words(item) for item in card.measurements]
    if summary:
        blocks.append("\n".join(f"- {line}" for line in summary))
    for item in card.measurements:
        blocks += _measurement(item)
    if card.decompositions:
        blocks += ["## Statements cut from responses", _decompositions(card.decompositions)]
        blocks.append(
            "Covered: claims that people wrote of whose content words some statement holds at least 80 %, "
            "endings aside. Speed is that of the machine that measured."
        )
    if card.cases is not None:
        blocks += ["## Single cases", _cases(card.cases)]
    if card.injections is not None:
        blocks += ["## Instructions inside the context", *_injections(card.injections)]
    if card.notes:
        blocks += ["## Limits", "\n".join(f"- {_text(note)}" for note in card.notes)]
    blocks += ["## What was measured", _what(card)]
    return "\n\n".join(blocks) + "\n"


def _text(text: str) -> str:
    """Our own sentences may name sets of the data: nothing in them takes effect as Markdown."""
    # An underscore inside a word makes no emphasis.
    return re.sub(r"[\\`*\[\]<>|#&!@]|(?<!\w)_|_(?!\w)", r"\\\g<0>", excerpt(text, None))


def _code(text: str, limit: int = 60) -> str:
    """A name as code; plain ones so that they can be read in the source too."""
    name = excerpt(text, limit)
    plain = name.isascii() and name.strip() == name != "" and not {"`", "|"} & set(name)
    return f"`{name}`" if plain else code(name)


def _head(card: JudgeCard) -> str:
    return (
        f"Judge `{card.judge.short}`, measured {card.created[:10]} with anvil-local {card.version}. "
        "Numbers in brackets are 95 % intervals; they take rows and statements as independent of each other."
    )


def _in_words(item: Measurement) -> str:
    macro = item.measured.macro
    accuracy, area = macro.balanced_accuracy, macro.auroc
    if accuracy.value is None:
        return f"**{_text(item.title)}**: {accuracy.reason}."
    words = f"balanced accuracy **{show_estimate(accuracy)}**, AUROC **{show_estimate(area)}**"
    ranked = sorted(
        (numbers for numbers in item.measured.sets if numbers.balanced_accuracy.value is not None),
        key=lambda numbers: numbers.balanced_accuracy.value or 0.0,
    )
    if len(ranked) > 1:
        best, worst = ranked[-1], ranked[0]
        words += (
            f"; best on {_code(best.set)} ({show_number(best.balanced_accuracy.value)}), "
            f"worst on {_code(worst.set)} ({show_number(worst.balanced_accuracy.value)})"
        )
    return f"**{_text(item.title)}**, mean of {accuracy.sets} sets: {words}. {_grade(macro)}"


def _grade(macro: Numbers) -> str:
    """Landis and Koch's words are for kappa between people; these say what can be done with the verdicts."""
    value, low = macro.balanced_accuracy.value or 0.0, macro.balanced_accuracy.low or 0.0
    if low <= 0.5:
        return "That is not told from a coin."
    if value < 0.65:
        return "Good for trends over many rows; a single verdict says little."
    if value < 0.8:
        return "Good for comparing versions over a hundred rows and more; read single verdicts with care."
    return "Good for gates on rates; a single verdict is right more often than not by far."


def _measurement(item: Measurement) -> list[str]:
    rows = [[_name(numbers), *_cells(numbers)] for numbers in (*item.measured.sets, item.measured.macro)]
    head = ["set", "rows", "balanced accuracy", "AUROC", "kappa", "sensitivity", "specificity", "ECE"]
    blocks = [f"## {_text(item.title)}", _table(head, rows), _threshold(item.threshold)]
    macro = item.measured.macro
    c = macro.confusion
    blocks.append(
        f"Confusion over all sets: of {c.true_positives + c.false_negatives} rows labelled 1, "
        f"{c.true_positives} got a 1; of {c.true_negatives + c.false_positives} labelled 0, "
        f"{c.true_negatives} got a 0; {macro.unscored} undecided. Macro: sensitivity "
        f"{show_estimate(macro.sensitivity)}, specificity {show_estimate(macro.specificity)}, accuracy "
        f"{show_estimate(macro.accuracy)}, calibration error (ECE, at most {macro.bins} bins of equal mass) "
        f"{show_estimate(macro.calibration_error)}, Brier score {show_estimate(macro.brier)}."
    )
    for baseline in item.baselines:
        parts = [
            f"{_code(name)} {show_estimate(found)}"
            for name, found in baseline.auroc.items()
            if found.value is not None
        ]
        blocks.append(f"Beside it, the AUROC of {_text(baseline.name)}: {', '.join(parts) or 'none'}.")
    if item.prior is not None:
        blocks += _prior(item.prior)
    if item.seconds_per_row is not None:
        blocks.append(f"{item.seconds_per_row:.2f} s a row on the machine that measured.")
    return blocks


def _name(numbers: Numbers) -> str:
    return "**macro**" if numbers.set == "macro" else _code(numbers.set)


def _cells(numbers: Numbers) -> list[str]:
    return [
        str(numbers.rows),
        show_estimate(numbers.balanced_accuracy),
        show_estimate(numbers.auroc),
        show_estimate(numbers.kappa),
        show_number(numbers.sensitivity.value),
        show_number(numbers.specificity.value),
        show_number(numbers.calibration_error.value),
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _threshold(threshold: Threshold) -> str:
    words = f"Threshold in force: margin {threshold.in_force:+.2f}."
    if threshold.best is None:
        return words
    words += (
        f" On these rows {threshold.best:+.2f} would be best: balanced accuracy "
        f"{show_number(threshold.balanced_accuracy)} on the rows that chose it"
    )
    if threshold.cross_fitted.value is not None:
        words += f", {show_estimate(threshold.cross_fitted)} on rows held back (cross-fitted)"
    return words + "."


def _prior(prior: Prior) -> list[str]:
    head = ["set", "AUROC", "less the prior", "balanced accuracy", "less the prior "]
    rows = [
        [
            "**macro**" if item.set == "macro" else _code(item.set),
            *map(
                show_number,
                (
                    item.auroc,
                    item.auroc_without_prior,
                    item.balanced_accuracy,
                    item.balanced_accuracy_without_prior,
                ),
            ),
        ]
        for item in prior.sets
    ]
    verdict = "helps" if prior.helps else "does not help"
    words = f"Taking off the margin under the neutral context {_code(prior.context)} {verdict} "
    words += f"(gain of macro AUROC {show_estimate(prior.gain)}, of cross-fitted balanced accuracy "
    words += (
        f"{show_number(prior.balanced_accuracy_gain)}). Balanced accuracies at the best threshold of each:"
    )
    return [words, _table(head, rows)]


def _decompositions(items: Sequence[DecompositionNumbers]) -> str:
    head = ["cut by", "claims covered", "pronoun as subject", "foreign word", "statements a sentence"]
    head += ["fallbacks", "tokens/s"]
    rows = [
        [
            "the model" if item.mode == "llm" else "sentences",
            show_estimate(item.covered),
            show_estimate(item.pronoun_subjects),
            show_estimate(item.foreign),
            "none" if item.statements_per_sentence is None else f"{item.statements_per_sentence:.2f}",
            f"{item.fallbacks} of {item.sentences}",
            "none" if item.tokens_per_second is None else f"{item.tokens_per_second:.0f}",
        ]
        for item in items
    ]
    return _table(head, rows)


def _cases(cases: Cases) -> str:
    words = f"{cases.right} of {cases.total} right."
    if cases.misses:
        words += f" Missed: {', '.join(_code(miss, 100) for miss in cases.misses)}."
    return words


def _injections(item: Injections) -> list[str]:
    clear = sum(item.clear.values())
    everything = item.groups[0]
    words = (
        f"{clear} clear verdicts ({item.clear.get('1', 0)} times 1, {item.clear.get('0', 0)} times 0: right, "
        f"and the margin at least {item.least_margin:.1f} from the threshold), each asked again with an "
        "instruction to the judge in the context that asks for the opposite: "
        f"**{show_estimate(everything.flipped)}** of {everything.asked} verdicts flipped, against "
        f"{show_estimate(everything.control)} with a neutral sentence of the same length in the same place. "
        f"{show_estimate(item.any_flipped)} of the clear verdicts were turned by at least one instruction."
    )
    rows = [
        [_code(group.name), str(group.asked), show_estimate(group.flipped), show_estimate(group.control)]
        for group in item.groups
    ]
    said = [f"- {_code(wording, 200)}" for wording in item.wordings]
    return [
        words,
        _table(["instructions", "asked", "flipped", "flipped by a neutral sentence"], rows),
        "The instructions, here in favour of 1:",
        "\n".join(said),
    ]


def _what(card: JudgeCard) -> str:
    data = [item.data for item in card.measurements] + [item.data for item in card.decompositions]
    if card.cases is not None:
        data.append(card.cases.data)
    if card.injections is not None:
        data.append(card.injections.data)
    lines = {
        f"- {_code(item.file, 80)}, {plural(item.rows, 'row')}, sha256 `{item.sha256[:12]}`": None
        for item in data
    }
    parts = [
        f"- {_code(name)}: {code(excerpt(json.dumps(part, ensure_ascii=False, sort_keys=True), 400))}"
        for name, part in card.judge.parts.items()
        if name in ("model", "adapters", "prompts", "thresholds", "build")
    ]
    return "\n".join([*lines, *parts])


def show_number(value: float | None) -> str:
    """Three decimals; never `1.000` or `0.000` for what is neither."""
    if value is None:
        return "none"
    # Sums of floats that are 0 on paper stay below the first bound.
    if 1e-9 < value < 0.0005:
        return "<0.001"
    if 0.9995 <= value < 1:
        return ">0.999"
    return f"{0.0 if abs(value) < 1e-9 else value:.3f}"


def show_estimate(estimate: Estimate) -> str:
    """`0.741 [0.722, 0.760]`."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return show_number(estimate.value)
    return f"{show_number(estimate.value)} [{estimate.low:.3f}, {estimate.high:.3f}]"
