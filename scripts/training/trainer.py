"""The training loop: cosine schedule over a wall-clock budget, checkpoints, resume."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from pathlib import Path

import torch
import torch.nn.functional as F

from training.model import Llama
from training.trees import Packer, Tree

WARMUP = 0.03
HEAD = 128  # positions for which the output head is computed at once
STALL = 60.0  # seconds; a step that took longer was suspended, and counts as this


class Source:
    """Draws trees by kind: `weights` are shares of the drawn trees' tokens.

    Every kind is walked in its own shuffled order and reshuffled when it is used
    up, so no kind repeats a tree before all of it was seen.
    """

    def __init__(self, pools: dict[str, list[Tree]], weights: dict[str, float], seed: int):
        self.rng = random.Random(seed)
        self.pools = {k: list(v) for k, v in pools.items() if v}
        mean = {k: sum(t.size for t in v) / len(v) for k, v in self.pools.items()}
        self.kinds = sorted(self.pools)
        self.weights = [weights[k] / mean[k] for k in self.kinds]
        self.at = dict.fromkeys(self.kinds, 0)
        self.drawn: Counter[str] = Counter()
        for k in self.kinds:
            self.rng.shuffle(self.pools[k])

    def draw(self) -> Tree:
        kind = self.rng.choices(self.kinds, self.weights)[0]
        pool = self.pools[kind]
        if self.at[kind] == len(pool):
            self.at[kind] = 0
            self.rng.shuffle(pool)
        tree = pool[self.at[kind]]
        self.at[kind] += 1
        self.drawn[kind] += len(tree.branches)
        return tree


class Trainer:
    """AdamW on the LoRA factors."""

    def __init__(
        self, model: Llama, packer: Packer, *, minutes: float, lr: float, per_step: float, work: Path
    ):
        self.model, self.packer, self.work = model, packer, work
        self.minutes, self.lr, self.per_step = minutes, lr, per_step
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.0)
        self.step = self.tokens = 0
        self.elapsed = 0.0

    def rate(self) -> float:
        done = min(self.elapsed / (self.minutes * 60), 1.0)
        if done < WARMUP:
            return self.lr * (0.05 + 0.95 * done / WARMUP)
        return self.lr * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (done - WARMUP) / (1 - WARMUP))))

    def save(self) -> None:
        self.work.mkdir(parents=True, exist_ok=True)
        part = self.work / "checkpoint.part"
        state = {
            "lora": [t.detach() for t in self.model.parameters()],
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "tokens": self.tokens,
            "elapsed": self.elapsed,
        }
        torch.save(state, part)
        part.replace(self.work / "checkpoint.pt")

    def load(self, warm: bool = False) -> None:
        """Resume; `warm` keeps the factors and starts the schedule anew."""
        state = torch.load(self.work / "checkpoint.pt", weights_only=True)
        with torch.no_grad():
            for mine, kept in zip(self.model.parameters(), state["lora"], strict=True):
                mine.copy_(kept)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.tokens = state["step"], state["tokens"]
        self.elapsed = 0.0 if warm else state["elapsed"]

    def one(self) -> tuple[float, float]:
        """One step; the loss (mean over its targets) and the share of right argmaxes."""
        batch = self.packer.next()
        hidden = self.model.hidden(batch.tokens, batch.positions, batch.mask)
        chosen = hidden.reshape(-1, hidden.shape[-1])[batch.where]
        leaf = chosen.detach().requires_grad_()
        total, right = 0.0, 0
        # the vocabulary is wide: a few positions at a time keep the memory small and its blocks of one size
        for part, targets in zip(leaf.split(HEAD), batch.targets.split(HEAD), strict=True):
            logits = self.model.logits(part)
            loss = F.cross_entropy(logits, targets, reduction="sum")
            (loss / self.per_step).backward()
            total += loss.item()
            right += int((logits.detach().argmax(-1) == targets).sum())
        chosen.backward(leaf.grad)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens += batch.used
        count = max(len(batch.targets), 1)
        return total / count, right / count

    def run(self, every: float = 300.0, evaluate=None, evaluate_every: float = 1200.0) -> None:
        saved = measured = shown = time.monotonic()
        recent: list[tuple[float, float]] = []
        since = self.tokens
        while self.elapsed < self.minutes * 60:
            start = time.monotonic()
            recent.append(self.one())
            now = time.monotonic()
            self.elapsed += min(now - start, STALL)
            if now - shown > 30:
                loss, right = (sum(x) / len(recent) for x in zip(*recent, strict=True))
                print(
                    f"step {self.step}  {self.elapsed / 60:.1f}/{self.minutes:g} min  loss {loss:.4f}  "
                    f"right {right:.3f}  lr {self.rate():.1e}  {(self.tokens - since) / (now - shown):.0f} tokens/s",
                    flush=True,
                )
                shown, since, recent = now, self.tokens, []
            if now - saved > every:
                self.save()
                saved = now
            if evaluate and now - measured > evaluate_every:
                evaluate()
                measured = shown = time.monotonic()
                since = self.tokens
        self.save()
        for kind, count in sorted(self.packer.source.drawn.items()):
            print(f"trained on {kind}: {count} branches")
