"""A run in parts: which samples a shard judges, and the parts' reports made one again.

    run --shard 1/3 ... run --shard 3/3  ->  three reports  ->  merge  ->  the report of the whole run

A shard is a block of neighbouring samples, so that samples that share a context stay together, and the
blocks in their order are the data. Every part reads and checks the whole file, so a bad row stops all
of them. Gates on scores are about the whole and are checked when the parts are merged.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from anvil_local.errors import InputError, UsageError
from anvil_local.gates import check_gates, parse_rules
from anvil_local.records import GateOutcome, Report, Sample, Shard
from anvil_local.reports.text import excerpt
from anvil_local.runner import join_reports

__all__ = ["block_of", "cut", "merge", "parse_shard", "shard_of"]


def parse_shard(text: str) -> tuple[int, int]:
    """`3/8` as (3, 8). Raises `UsageError`."""
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text.strip())
    if not match or int(match[1]) > int(match[2]):
        raise UsageError(
            "a shard is K/N: part K of N, counted from 1", value=text, hint="for example --shard 3/8"
        )
    return int(match[1]), int(match[2])


def shard_of(samples: Iterable[Sample], index: int, count: int) -> Shard:
    """The shard's record: it names the whole data by a checksum, whatever the file is called.

    Raises:
        UsageError: more shards than samples.
    """
    digest, number = hashlib.sha256(), 0
    for sample in samples:
        number += 1
        digest.update(json.dumps(sample.model_dump(mode="json", exclude={"source"})).encode())
        digest.update(b"\n")
    if count > number:
        raise UsageError(
            f"{count} shards of {number} samples: some would be empty", hint=f"at most --shard K/{number}"
        )
    return Shard(index=index, count=count, samples=number, data_sha256=digest.hexdigest())


def block_of(shard: Shard) -> tuple[int, int]:
    """The first sample of the shard, counted from 0, and the one after its last."""
    return (
        shard.samples * (shard.index - 1) // shard.count,
        shard.samples * shard.index // shard.count,
    )


def cut(samples: Iterable[Sample], shard: Shard) -> Iterator[Sample]:
    """The samples of the shard."""
    return islice(samples, *block_of(shard))


def merge(reports: Mapping[str, Report]) -> Report:
    """One report of all parts: what the run would have written without shards.

    Args:
        reports: by name, for errors; in any order.

    Raises:
        InputError: a report that is no part or is not finished.
        UsageError: parts that do not belong together, a part that is missing or there twice.
    """
    parts = sorted(reports.items(), key=lambda pair: pair[1].shard.index if pair[1].shard else 0)
    for name, report in parts:
        if report.shard is None:
            raise InputError(
                "this report is not a part of a run",
                where=name,
                hint="`run --shard K/N -o FILE` writes parts",
            )
        if not report.complete:
            raise InputError(
                "this part was interrupted",
                where=name,
                hint="run it again: what it judged is in the cache",
            )
    first_name, first = parts[0]
    for name, report in parts[1:]:
        for what, mine, theirs in _identity(first, report):
            if mine != theirs:
                raise UsageError(
                    f"these parts are not of one run: {first_name} and {name} differ in {what}",
                    value=f"{excerpt(str(mine), 60)} and {excerpt(str(theirs), 60)}",
                )
    _check_complete([(name, report.shard) for name, report in parts if report.shard])
    results = tuple(result for _, report in parts for result in report.results)
    _, gates = parse_rules(first.settings.gates)
    outcomes = check_gates(
        gates,
        results,
        max_unscored=first.settings.max_unscored,
        band=first.settings.unstable_band,
        rejected=len(first.rejected),
        thresholds=first.judge.parts.get("thresholds"),
    )
    whole = [report for _, report in parts]
    return join_reports(whole, results=results, gates=[*_of_judge(whole), *outcomes], complete=True)


def _identity(one: Report, other: Report) -> Iterator[tuple[str, Any, Any]]:
    """What must be the same, in words, with both values."""
    yield "the judge", one.judge.digest, other.judge.digest
    yield "the version of anvil-local", one.version, other.version
    settings = [report.settings.model_dump(mode="json", exclude={"metrics"}) for report in (one, other)]
    for key in settings[0]:
        yield f"the setting {key}", settings[0][key], settings[1][key]
    assert one.shard
    assert other.shard
    yield "the number of shards", one.shard.count, other.shard.count
    yield "the data", one.shard.data_sha256, other.shard.data_sha256
    yield "the rows refused", len(one.rejected), len(other.rejected)


def _check_complete(parts: Sequence[tuple[str, Shard]]) -> None:
    names: dict[int, str] = {}
    for name, shard in parts:
        if shard.index in names:
            raise UsageError(
                f"part {shard.index}/{shard.count} is there twice", value=f"{names[shard.index]} and {name}"
            )
        names[shard.index] = name
    count = parts[0][1].count
    missing = [str(index) for index in range(1, count + 1) if index not in names]
    if missing:
        raise UsageError(
            f"{len(missing)} of {count} parts missing",
            value=excerpt(", ".join(missing), 80),
            hint=f"`run --shard {missing[0]}/{count}` with the same options judges the first of them",
        )


def _of_judge(reports: Sequence[Report]) -> list[GateOutcome]:
    """What became of rules about the judge: checked in every part, and a failure in one is a failure."""
    found: dict[str, GateOutcome] = {}
    for report in reports:
        for outcome in report.gates:
            if outcome.rule not in found or not outcome.passed:
                found[outcome.rule] = outcome
    return list(found.values())
