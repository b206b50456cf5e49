"""Prompts as trees: one shared prefix, several branches, packed into rows.

A branch sees the prefix and itself only, and its positions continue after the
prefix, so a packed row gives every branch the logits it would have alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from training.model import DTYPE

ROWS = (256, 512, 1024)
IGNORE = -100


@dataclass(frozen=True)
class Branch:
    """Tokens after the prefix; `targets[i]` is the token wanted after `tokens[i]`."""

    tokens: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, tokens: list[int], targets: list[int]) -> Branch:
        """From plain lists."""
        return cls(np.array(tokens, np.int32), np.array(targets, np.int32))

    @classmethod
    def verdict(cls, tokens: list[int], token: int) -> Branch:
        """A branch whose only target is the token after its last one."""
        return cls.of(tokens, [IGNORE] * (len(tokens) - 1) + [token])


@dataclass(frozen=True)
class Tree:
    prefix: np.ndarray
    branches: list[Branch]
    kind: str = ""

    @property
    def size(self) -> int:
        return len(self.prefix) + sum(len(b.tokens) for b in self.branches)


@dataclass
class Batch:
    tokens: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    where: torch.Tensor  # flat indices of the positions with a target
    targets: torch.Tensor
    used: int  # tokens that are not padding


def pack(trees: Iterable[Tree], rows: tuple[int, ...] = ROWS) -> dict[int, list[list[Tree]]]:
    """First fit, longest first: {row length: rows of trees}."""
    open_rows: list[list] = []  # [length, free, trees]
    for tree in sorted(trees, key=lambda t: -t.size):
        for row in open_rows:
            if row[1] >= tree.size:
                row[1] -= tree.size
                row[2].append(tree)
                break
        else:
            length = next((r for r in rows if r >= tree.size), None)
            if length is None:
                raise ValueError(f"tree of {tree.size} tokens, longest row is {rows[-1]}")
            open_rows.append([length, length - tree.size, [tree]])
    out: dict[int, list[list[Tree]]] = {}
    for length, _, members in open_rows:
        out.setdefault(length, []).append(members)
    return out


def batch(rows: list[list[Tree]], length: int) -> Batch:
    """Tensors for rows of one length."""
    n = len(rows)
    tokens = np.zeros((n, length), dtype=np.int64)
    positions = np.zeros((n, length), dtype=np.int64)
    tree_of = np.full((n, length), -1, dtype=np.int32)
    branch_of = np.zeros((n, length), dtype=np.int32)
    targets = np.full((n, length), IGNORE, dtype=np.int64)
    used = 0
    for r, members in enumerate(rows):
        at = 0
        for t, tree in enumerate(members):
            size = len(tree.prefix)
            tokens[r, at : at + size] = tree.prefix
            positions[r, at : at + size] = np.arange(size)
            tree_of[r, at : at + size] = t
            at += size
            for b, branch in enumerate(tree.branches, 1):
                count = len(branch.tokens)
                tokens[r, at : at + count] = branch.tokens
                targets[r, at : at + count] = branch.targets
                positions[r, at : at + count] = size + np.arange(count)
                tree_of[r, at : at + count] = t
                branch_of[r, at : at + count] = b
                at += count
        used += at
    seen = tree_of[:, :, None] == tree_of[:, None, :]
    seen &= (branch_of[:, None, :] == 0) | (branch_of[:, :, None] == branch_of[:, None, :])
    seen &= np.tri(length, dtype=bool)[None]
    mask = torch.zeros(n, 1, length, length, dtype=DTYPE)
    mask.masked_fill_(torch.from_numpy(~seen)[:, None], float("-inf"))
    flat = targets.reshape(-1)
    where = np.flatnonzero(flat != IGNORE)
    return Batch(
        torch.from_numpy(tokens),
        torch.from_numpy(positions),
        mask,
        torch.from_numpy(where),
        torch.from_numpy(flat[where]),
        used,
    )


class Packer:
    """Draws trees from a source and hands out full batches of a token budget."""

    def __init__(self, source, budget: int = 4096, window: int = 160):
        self.source, self.budget, self.window = source, budget, window
        self.ready: list[tuple[int, list[list[Tree]]]] = []
        self.left: list[Tree] = []

    def next(self) -> Batch:
        while not self.ready:
            trees = self.left + [self.source.draw() for _ in range(self.window)]
            self.left = []
            for length, rows in pack(trees).items():
                per = self.budget // length
                self.source.rng.shuffle(rows)
                full = len(rows) // per * per
                self.ready += [(length, rows[i : i + per]) for i in range(0, full, per)]
                self.left += [tree for row in rows[full:] for tree in row]
            self.source.rng.shuffle(self.ready)
        length, rows = self.ready.pop()
        return batch(rows, length)
