"""What `scripts/train_judge` does: train a skill, check the engines against each other, measure."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from training import measure, support
from training.export import read_adapter, write_adapter
from training.model import Llama
from training.tokens import Tokenizer
from training.trainer import Source, Trainer
from training.trees import Packer, Tree, batch


def digits(tokenizer: Tokenizer) -> tuple[int, int]:
    """The tokens of `0` and `1`."""
    ids = tokenizer.data("0"), tokenizer.data("1")
    if any(len(i) != 1 for i in ids):
        raise SystemExit("the tokenizer has no single token for a digit")
    return ids[0][0], ids[1][0]


def describe(pools: dict[str, list[Tree]], weights: dict[str, float], binary: tuple[int, int] | None) -> None:
    total = sum(weights[k] for k in pools)
    print(
        f"{'kind':22} {'share':>6} {'trees':>7} {'branches':>8} {'tokens':>10}"
        + (f" {'0':>7} {'1':>7}" if binary else "")
    )
    for kind in sorted(pools):
        trees = pools[kind]
        line = f"{kind:22} {weights[kind] / total:6.3f} {len(trees):7} {sum(len(t.branches) for t in trees):8} {sum(t.size for t in trees):10}"
        if binary:
            seen = Counter(b.targets[-1] for t in trees for b in t.branches)
            line += f" {seen[binary[0]]:7} {seen[binary[1]]:7}"
        print(line)


def _skill(name: str):
    if name == "support":
        return support
    if name == "decompose":
        from training import decompose

        return decompose
    from training import goal

    return goal


def train(args) -> int:
    skill = _skill(args.verb)
    tokenizer = Tokenizer(args.base)
    pair = digits(tokenizer)
    pools, validation = skill.training(args.data, args.seed, args.scale, tokenizer, pair)
    binary = pair if args.verb != "decompose" else None
    describe(pools, skill.WEIGHTS, binary)
    model = Llama(args.base, args.rank, args.alpha, args.seed, not args.no_compile)
    if args.init:
        read_adapter(model, args.init)
    source = Source(pools, skill.WEIGHTS, args.seed)
    trainer = Trainer(
        model,
        Packer(source, args.budget),
        minutes=args.minutes,
        lr=args.lr,
        per_step=skill.PER_STEP,
        work=args.work,
    )
    if args.resume:
        trainer.load(args.warm)
        source.rng.seed(args.seed + trainer.step)
        print(f"resumed at step {trainer.step}, {trainer.tokens} tokens")

    def write() -> None:
        write_adapter(
            model, args.out, skill=args.verb, prompt=skill.PROMPT, sources=skill.SOURCES, seed=args.seed, steps=trainer.step, tokens=trainer.tokens
        )  # fmt: skip

    def look() -> None:
        skill.look(model, validation, pair, args, tokenizer)
        write()

    trainer.run(evaluate=look, evaluate_every=args.measure_minutes * 60)
    write()
    print(f"wrote {args.out}: {trainer.step} steps, {trainer.tokens} tokens")
    return 0


def check(args) -> int:
    """Margins and argmax of both engines on a few fixed prompts."""
    from training.engine import Engine
    from training.passages import Item

    tokenizer = Tokenizer(args.base)
    pair = digits(tokenizer)
    examples = [
        Item("check", "The doctor saw the lawyer in Oslo in 1990. Nobody else was there.",
             (("The lawyer saw the doctor.", 0), ("The doctor was in Oslo.", 1), ("The doctor was in Oslo in 1991.", 0))),
        Item("check", "Water boils at 100 degrees at sea level.", (("Water boils at 100 degrees at sea level.", 1), ("Water never boils.", 0))),
        Item("check", "La reunión es el 3 de mayo.", (("La reunión es el 4 de mayo.", 0),)),
    ]  # fmt: skip
    trees = [support.tree(tokenizer, i, pair) for i in examples]
    model = Llama(args.base, args.rank, args.alpha, args.seed, False)
    worst, ok = 0.0, True
    for adapter in [None, *([args.adapter] if args.adapter else [])]:
        if adapter:
            read_adapter(model, adapter)
        engine = Engine(args.base, adapter, threads=args.threads)
        b = batch([trees], 256)
        with torch.no_grad():
            hidden = model.hidden(b.tokens, b.positions, b.mask)
            ours = model.logits(hidden.reshape(-1, hidden.shape[-1])[b.where]).numpy()
        at = 0
        print(f"adapter: {adapter.name if adapter else 'none'}")
        for tree in trees:
            engine.start(tree.prefix)
            for branch in tree.branches:
                theirs = engine.branch(branch.tokens)
                m, t = (x[pair[1]] - x[pair[0]] for x in (ours[at], theirs))
                same = int(ours[at].argmax() == theirs.argmax())
                corr = float(np.corrcoef(ours[at], theirs)[0, 1])
                worst, ok = max(worst, abs(m - t)), ok and corr > 0.99
                print(
                    f"  margin torch {m:+.3f}  llama.cpp {t:+.3f}  same argmax {same}  correlation of all logits {corr:.5f}"
                )
                at += 1
    print(f"largest difference of a margin {worst:.3f}: {'agree' if ok else 'DO NOT AGREE'}")
    return 0 if ok else 1


def evaluate(args) -> int:
    """The development file of the adapter's skill."""
    name = adapter_field(args.adapter, "anvil.skill") if args.adapter else "support"
    return _skill(name).evaluate(args)


def adapter_field(path: Path, key: str):
    from gguf import GGUFReader

    return GGUFReader(path).fields[key].contents()


def binary_margins(args, trees: list[Tree], pair: tuple[int, int]) -> list[list[float]]:
    """Margins by the engine that was asked for."""
    if args.engine == "torch":
        model = Llama(args.base, args.rank, args.alpha, args.seed, not args.no_compile)
        if args.adapter:
            read_adapter(model, args.adapter)
        return measure.torch_margins(model, trees, pair)
    from training.engine import Engine

    engine = Engine(args.base, args.adapter, threads=args.threads)
    out = []
    for tree in trees:
        engine.start(tree.prefix)
        values = [engine.branch(b.tokens) for b in tree.branches]
        out.append([float(v[pair[1]] - v[pair[0]]) for v in values])
    return out


def finish(args, rows: list[dict], margins: np.ndarray) -> int:
    result = measure.report(rows, margins, args.threshold)
    print(measure.show(result))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0
