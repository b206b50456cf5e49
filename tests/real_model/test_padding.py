"""A padded answer buys a better score from the default judge, and not unseen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anvil_local import GgufJudge, Options, Report, evaluate

HERE = Path(__file__).parents[1]
KINDS = ("duplicate", "question", "aside", "trivia")


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def rows(*kinds: str) -> list[dict[str, Any]]:
    """The ten examples of the project, each a right and a wrong statement, with padding of these kinds."""
    return [
        {
            "id": row["id"],
            "user_input": row["user_input"],
            "retrieved_contexts": row["retrieved_contexts"],
            "response": " ".join([row["response"], *(row[kind] for kind in kinds)]),
        }
        for row in read("padded.jsonl")
    ]


def judged(judge: GgufJudge, *kinds: str) -> Report:
    return evaluate(rows(*kinds), judge=judge, options=Options(padding=True))


def test_padding_raises_the_score_and_not_the_adjusted_one(smollm2: GgufJudge) -> None:
    plain = judged(smollm2)
    padded = judged(smollm2, *KINDS)
    (before,), (after,) = plain.summaries, padded.summaries
    assert None not in (before.mean, before.adjusted, after.mean, after.adjusted)
    print(
        f"score {before.mean:.3f} to {after.mean:.3f}, adjusted {before.adjusted:.3f} to {after.adjusted:.3f}"
    )
    assert after.mean > before.mean + 0.1
    assert after.adjusted <= before.adjusted
    pairs = list(zip(plain.results, padded.results, strict=True))
    assert sum(two.score > one.score for one, two in pairs) >= 8
    assert sum(two.adjusted > one.adjusted for one, two in pairs) <= 2


def test_what_bears_on_a_question_is_told_from_what_stands_beside_it(smollm2: GgufJudge) -> None:
    found: dict[str, list[int | None]] = {"answers": [], "asides": []}
    for row in read("bearing.jsonl"):
        for kind, values in found.items():
            values += [
                smollm2.ask("bears", {"question": row["question"], "statement": text}).value
                for text in row[kind]
            ]
    kept = sum(value == 1 for value in found["answers"]) / len(found["answers"])
    flagged = sum(value == 0 for value in found["asides"]) / len(found["asides"])
    print(f"answers kept {kept:.2f}, asides flagged {flagged:.2f}")
    assert kept >= 0.8
    assert flagged >= 0.7
