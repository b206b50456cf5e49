"""Margins of a labelled file, by the torch model or by llama.cpp, and their numbers per set."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import torch

from training.trees import ROWS, Tree, batch, pack


def auroc(margins: np.ndarray, labels: np.ndarray) -> float:
    """Rank AUROC; ties count half."""
    _, inverse, counts = np.unique(margins, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    pos = labels == 1
    n1, n0 = pos.sum(), (~pos).sum()
    if not n1 or not n0:
        return float("nan")
    return float((ranks[pos].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def balanced(margins: np.ndarray, labels: np.ndarray, threshold: float) -> float:
    """Mean of the recalls of both labels (of one, where a set has only one)."""
    right = (margins > threshold) == (labels == 1)
    return float(np.mean([right[labels == label].mean() for label in (0, 1) if (labels == label).any()]))


@torch.no_grad()
def torch_margins(
    model,
    trees: list[Tree],
    digits: tuple[int, int],
    budget: int = 4096,
    lengths: tuple[int, ...] = (*ROWS, 1536),
) -> list[list[float]]:
    """logit(1) - logit(0) of every branch, in the order of `trees`."""
    out: list[list[float]] = [[] for _ in trees]
    index = {id(t): i for i, t in enumerate(trees)}
    for length, rows in pack(trees, lengths).items():
        per = max(1, budget // length)
        for at in range(0, len(rows), per):
            group = rows[at : at + per]
            group = group + [[]] * (per - len(group))  # the compiled shapes stay few
            b = batch(group, length)
            hidden = model.hidden(b.tokens, b.positions, b.mask)
            logits = model.logits(hidden.reshape(-1, hidden.shape[-1])[b.where])
            margins = (logits[:, digits[1]] - logits[:, digits[0]]).tolist()
            for members in group:
                for tree in members:
                    n = len(tree.branches)
                    out[index[id(tree)]] = margins[:n]
                    margins = margins[n:]
    return out


def subset(rows: list[dict], per_set: int | None, seed: int) -> list[dict]:
    if per_set is None:
        return rows
    groups = defaultdict(list)
    for row in rows:
        groups[row["set"], row["label"]].append(row)
    rng = random.Random(seed)
    return [r for k in sorted(groups) for r in rng.sample(groups[k], min(len(groups[k]), per_set // 2))]


def report(rows: list[dict], margins: np.ndarray, threshold: float | None = None, key: str = "set") -> dict:
    """Per set and macro; without a threshold the best single one is chosen and named."""
    labels = np.array([r["label"] for r in rows])
    sets = np.array([r[key] for r in rows])
    names = sorted(set(sets))

    def macro(t: float) -> float:
        return float(np.mean([balanced(margins[sets == n], labels[sets == n], t) for n in names]))

    chosen = threshold
    if chosen is None:
        chosen = max(np.quantile(margins, np.linspace(0.05, 0.95, 91)), key=macro)
    table = {
        n: {
            "n": int((sets == n).sum()),
            "auroc": auroc(margins[sets == n], labels[sets == n]),
            "balanced": balanced(margins[sets == n], labels[sets == n], chosen),
            "balanced_at_0": balanced(margins[sets == n], labels[sets == n], 0.0),
        }
        for n in names
    }
    return {
        "threshold": float(chosen),
        "macro_auroc": float(np.nanmean([v["auroc"] for v in table.values()])),
        "macro_balanced": macro(chosen),
        "macro_balanced_at_0": macro(0.0),
        "sets": table,
    }


def show(result: dict) -> str:
    lines = [f"{'set':36} {'n':>5} {'AUROC':>6} {'bal.acc':>7} {'at 0':>6}"]
    for name, v in result["sets"].items():
        lines.append(f"{name:36} {v['n']:5} {v['auroc']:6.3f} {v['balanced']:7.3f} {v['balanced_at_0']:6.3f}")
    lines.append(
        f"{'macro, threshold ' + format(result['threshold'], '.2f'):36} {'':5} {result['macro_auroc']:6.3f} "
        f"{result['macro_balanced']:7.3f} {result['macro_balanced_at_0']:6.3f}"
    )
    return "\n".join(lines)
