"""Several judges, one verdict: each is asked, the majority decides, and every vote is kept.

Judges that err alike (same model, other quantisation) outvote nobody: agreement is worth something
only between judges that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from anvil_local.errors import UsageError
from anvil_local.judge import Judge, Writing, digest
from anvil_local.records import Fingerprint, Verdict, Vote

__all__ = ["VotingJudge"]


class VotingJudge:
    """A judge made of judges.

    The margin of a vote is counted from its judge's own threshold; the margin of the verdict is their
    median, and the verdict is 1 when that is above 0. For an odd number of judges this is the
    majority; for an even one, a tie goes to the side whose nearest vote is surer. Texts are
    written by the first judge.
    """

    def __init__(self, judges: Sequence[Judge]) -> None:
        if not judges:
            raise UsageError("no judge to vote")
        self._judges = tuple(judges)
        self._names = [judge.fingerprint.short for judge in self._judges]
        if len(set(self._names)) < len(self._names):
            raise UsageError("the same judge is given twice", hint="each --model must differ from the others")

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprints of all judges, in order: the first one writes."""
        parts = {"vote": [judge.fingerprint.model_dump() for judge in self._judges]}
        return Fingerprint(digest=digest(parts), parts=parts)

    def ask(self, task: str, fields: Mapping[str, str]) -> Verdict:
        """See `Judge.ask`; an error of one judge is an error of the vote."""
        verdicts = [judge.ask(task, fields) for judge in self._judges]
        thresholds = [judge.threshold_of(task) for judge in self._judges]
        margins = [
            verdict.margin - threshold
            for verdict, threshold in zip(verdicts, thresholds, strict=True)
            if verdict.margin is not None
        ]
        margin = median(margins)
        return Verdict(
            value=1 if margin > 0 else 0,
            p_supported=median(verdict.p_supported or 0.0 for verdict in verdicts),
            margin=margin,
            mass=min(verdict.mass or 0.0 for verdict in verdicts),
            window=0,
            votes=tuple(
                Vote(judge=name, value=verdict.value, margin=verdict.margin, mass=verdict.mass)
                for name, verdict in zip(self._names, verdicts, strict=True)
            ),
        )

    def write(self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None) -> Writing:
        """See `Judge.write`."""
        return self._judges[0].write(task, fields, limit=limit, seed=seed)

    def count_tokens(self, text: str) -> int:
        """The most that any judge needs, so that what fits one fits all."""
        return max(judge.count_tokens(text) for judge in self._judges)

    def room(self, task: str, fields: Mapping[str, str]) -> int:
        """The least room of any judge."""
        return min(judge.room(task, fields) for judge in self._judges)

    def threshold_of(self, task: str) -> float:
        """0: the votes' margins are counted from their own thresholds."""
        return 0.0

    def close(self) -> None:
        """Close all judges."""
        for judge in self._judges:
            judge.close()
