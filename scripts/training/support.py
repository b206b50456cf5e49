"""The support skill: the mix it is trained on, and its trees."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

from training import prompts
from training import sentences as S
from training.facts import Facts
from training.passages import Item, PassageItems, inject
from training.syntax import Monotone, Syntax
from training.trees import Branch, Tree

PROMPT = "support/1"
SOURCES = [
    "BoolQ (CC-BY-SA-3.0)",
    "Counterfactually augmented SNLI (Apache-2.0; SNLI text CC-BY-SA-4.0)",
    "HELP (CC-BY-SA-4.0)",
    "BEGIN (CC-BY-4.0)",
    "WiCE (annotations ODC-BY; text CC-BY-SA and Common Crawl terms)",
    "pairs made by scripts/training from BoolQ passages and from its own templates (Apache-2.0)",
]
# share of the trained tokens
WEIGHTS = {
    "boolq": 0.03,
    "boolq claims": 0.07,
    "passage related": 0.08,
    "cad": 0.12,
    "cad changed": 0.04,
    "help": 0.05,
    "wrapped": 0.04,
    "existential": 0.02,
    "begin": 0.05,
    "wice": 0.10,
    "passage": 0.10,
    "passage messy": 0.02,
    "passage injected": 0.02,
    "passage removed": 0.05,
    "passage long": 0.05,
    "sentence": 0.10,
    "syntax": 0.11,
    "monotone": 0.05,
    "facts": 0.04,
    "facts trace": 0.01,
    "facts languages": 0.02,
}
CONTEXT_CAP = 850
VALIDATION = 40  # one context of this many is kept out of training


def read(path: Path) -> list[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        return [json.loads(line) for line in handle]


def _held_out(context: str) -> bool:
    import zlib

    return zlib.crc32(context.encode()) % VALIDATION == 0


def real_items(rows: list[dict], rng: random.Random) -> list[Item]:
    """The labelled rows, grouped by context, balanced within each set."""
    groups: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for row in rows:
        groups[row["set"], row["context"]].append((row["statement"], row["label"]))
    names = {"boolq_template": "boolq", "cad_nli": "cad"}
    out = [Item(names.get(k, k), context, tuple(v)) for (k, context), v in groups.items()]
    balanced: list[Item] = []
    by_kind: dict[str, list[Item]] = defaultdict(list)
    for item in out:
        by_kind[item.kind].append(item)
    for kind in sorted(by_kind):
        items = by_kind[kind]
        count = [sum(y == label for i in items for _, y in i.statements) for label in (0, 1)]
        rare = 0 if count[0] < count[1] else 1
        # keep every rare label, drop common ones at random
        keep = count[rare] / max(count[1 - rare], 1)
        if keep < 0.5:  # repeat the rare ones once rather than throw most away
            keep, twice = min(1.0, keep * 2), True
        else:
            twice = False
        for item in items:
            kept = tuple(s for s in item.statements if s[1] == rare or rng.random() < keep)
            if kept:
                balanced.append(Item(kind, item.context, kept))
            if twice and any(y == rare for _, y in item.statements):
                balanced.append(Item(kind, item.context, tuple(s for s in item.statements if s[1] == rare)))
    rng.shuffle(balanced)
    return balanced


def claims(rows: list[dict], rng: random.Random) -> list[Item]:
    """BoolQ questions as plain claims, as they are or denied."""
    out = []
    for row in rows:
        if row["set"] != "boolq_template":
            continue
        title = row["context"].partition(" -- ")[0]
        claim = S.declarative(row["question"], title if len(title) < 80 else "")
        if not claim:
            continue
        said = re.search(r"is (yes|no)\.$", row["statement"])
        if not said:
            continue
        label = row["label"] if said.group(1) == "yes" else 1 - row["label"]
        denied = S.negate(claim, rng)
        out.append((row["context"], claim, label, denied))
    many = sum(label for _, _, label, _ in out)
    keep = [1.0, min(1.0, (len(out) - many) / max(many, 1))]
    return [
        Item(
            "boolq claims",
            context,
            ((claim, label), *([(denied, 1 - label)] if denied and rng.random() < 0.4 else [])),
        )
        for context, claim, label, denied in out
        if rng.random() < keep[label]
    ]


def changed_cad(rows: list[dict], rng: random.Random) -> list[Item]:
    """Word substitutions in short captions: synonym or kind (1), other of its kind or antonym (0)."""
    contexts = sorted({r["context"] for r in rows if r["set"] == "cad_nli"})
    out = []
    for context in contexts:
        yes = [x for x in (S.synonym(context, rng), S.hypernym(context, rng)) if x]
        no = [
            x
            for x in (
                S.kind_word(context, rng),
                S.antonym(context, rng),
                S.number(context, rng),
                S.negate(context, rng),
            )
            if x
        ]
        if not no:
            continue
        yes = yes or [S.shorten(context, rng) or context]
        k = min(len(yes), len(no), 2)
        pairs = [(s, 1) for s in rng.sample(yes, k)] + [(s, 0) for s in rng.sample(no, k)]
        out.append(Item("cad changed", context, tuple(pairs)))
    return out


UP = ["It is true that {}", "We know that {}", "It happened that {}", "In fact, {}", "Yesterday, {}"]
DOWN = [
    "It is not true that {}",
    "It is false that {}",
    "It is not the case that {}",
    "It never happened that {}",
    "Nobody can claim that {}",
]
IF = [
    "If {}, the bell rings",
    "Whenever {}, Anna is happy",
    "As long as {}, nothing changes",
    "We will leave if {}",
    "Call me when {}",
]


def wrapped(rows: list[dict], rng: random.Random) -> list[Item]:
    """Labelled captions under negations and conditionals, where what follows is turned around.

    If p gives h, then `not h` gives `not p` and `if h, q` gives `if p, q`; if p does
    not give h, neither holds.  The way back is left out unless it is known.
    """
    out = []
    for row in rows:
        p, h = row["context"].strip(), row["statement"].strip()
        contradiction = row["kind"].startswith("contradiction")
        if row["set"] not in ("cad_nli", "help") or contradiction or len(p) > 160 or not p or not h:
            continue
        inner = [t.rstrip(" .!") for t in (p, h)]
        inner = [t[0].lower() + t[1:] if t.split()[0] in _LOWER else t for t in inner]
        frame = rng.choice(rng.choice([UP, DOWN, DOWN, IF, IF]))
        a, b = (frame.format(t) + "." for t in (inner if frame in UP else reversed(inner)))
        if frame.split()[0] == "Nobody":
            continue
        out.append((a, b, row["label"]))
        # `not p` does not give `not h`, unless both say the same
        longer = len(p.split()) > len(h.split()) + 2
        if frame in DOWN and row["label"] == 1 and longer and rng.random() < 0.5:
            out.append((b, a, 0))
    count = [sum(y == label for *_, y in out) for label in (0, 1)]
    keep = [min(1.0, count[1] / max(count[0], 1)), min(1.0, count[0] / max(count[1], 1))]
    return [Item("wrapped", a, ((b, y),)) for a, b, y in out if rng.random() < keep[y]]


_LOWER = frozenset(
    (
        "A",
        "An",
        "The",
        "Some",
        "Two",
        "Three",
        "Four",
        "People",
        "Men",
        "Women",
        "Many",
        "Several",
        "This",
        "There",
        "It",
        "He",
        "She",
        "They",
        "One",
        "Young",
        "Children",
        "Kids",
        "No",
        "Someone",
        "My",
        "His",
        "Her",
    )
)
_QUANT = re.compile(r"^(?:A|An|Some|One) ")


def existential(rows: list[dict], rng: random.Random) -> list[Item]:
    """Captions made shorter, as they are (wider: 1) and after `no` (wider: 0, narrower: 1)."""
    out = []
    for context in sorted({r["context"].strip() for r in rows if r["set"] == "cad_nli"}):
        if not _QUANT.match(context) or len(context) > 140:
            continue
        short = S.shorten(context.rstrip(" .") + ".", rng)
        if not short:
            short = S.hypernym(context, rng)
        if not short or not _QUANT.match(short) or re.search(r"\b(?:no|not|nobody|without|never)\b", context):
            continue
        word = rng.choice(["No", "No", "Hardly any", "Not a single"])
        long_, short = (re.sub(r"\.$", "", t.strip()) + "." for t in (context, short))
        no = [_QUANT.sub(word + " ", t) for t in (long_, short)]
        r = rng.random()
        if r < 0.5:
            out.append(
                Item("existential", no[1], ((no[0], 1), *(((short, 0),) if rng.random() < 0.3 else ())))
            )
            out.append(Item("existential", no[0], ((no[1], 0),)))
        else:
            out.append(Item("existential", long_, ((short, 1),)))
            out.append(Item("existential", short, ((long_, 0),)))
    return out


def items(data: Path, seed: int, scale: float = 1.0) -> tuple[list[Item], list[Item]]:
    """(training items, validation items); validation contexts are never trained on."""
    rng = random.Random(seed)
    rows = read(data / "support_train.jsonl.gz")
    real = real_items(rows, rng)
    passages = sorted(
        {r["context"] for r in rows if r["set"] == "boolq_template" and not _held_out(r["context"])}
    )
    out = [i for i in real if not _held_out(i.context)]
    validation = [i for i in real if _held_out(i.context)]
    out = [
        Item(i.kind, inject(i.context, rng), i.statements)
        if i.kind in ("boolq", "wice", "begin") and rng.random() < 0.04
        else i
        for i in out
    ]
    out += [i for i in changed_cad(rows, rng) if not _held_out(i.context)]
    out += [i for i in wrapped(rows, rng) + existential(rows, rng) if not _held_out(i.context)]
    out += [i for i in claims(rows, rng) if not _held_out(i.context)]
    out += PassageItems(passages, seed + 1).make(int(16000 * scale))
    syntax = Syntax(seed + 2)
    out += [Item("syntax", c, tuple(s)) for c, s in (syntax.make() for _ in range(int(16000 * scale)))]
    out += [Item("monotone", c, tuple(s)) for c, s in Monotone(seed + 3).made(int(14000 * scale))]
    out += Facts(seed + 4).make(int(5000 * scale))
    return out, validation


def tree(tokenizer, item: Item, digits: tuple[int, int], longest: int = 1024) -> Tree:
    """One tree; statements that do not fit into the longest row are left out."""
    before, after = prompts.split(PROMPT)
    prefix = prompts.encode(tokenizer, before, {"context": item.context}, {"context": CONTEXT_CAP})
    branches, size = [], len(prefix)
    for statement, label in item.statements:
        tokens = prompts.encode(tokenizer, after, {"statement": statement})
        size += len(tokens)
        if size > longest:
            break
        branches.append(Branch.verdict(tokens, digits[label]))
    return Tree(np.array(prefix, np.int32), branches, item.kind)


def pools(tokenizer, chosen: list[Item], digits: tuple[int, int]) -> dict[str, list[Tree]]:
    """Trees by kind.  Contexts with a single statement of ever the same few are kept as they are."""
    out: dict[str, list[Tree]] = defaultdict(list)
    for item in chosen:
        made = tree(tokenizer, item, digits)
        if made.branches:
            out[item.kind].append(made)
    return dict(out)


PER_STEP = 96.0  # verdicts of an average step; keeps the gradient's scale even


def training(data: Path, seed: int, scale: float, tokenizer, pair):
    chosen, kept = items(data, seed, scale)
    validation = pools(tokenizer, kept, pair)
    return pools(tokenizer, chosen, pair), [t for k in sorted(validation) for t in validation[k]]


def _dev(args, tokenizer, pair, per_set: int | None, longest: int):
    from training import measure

    rows = measure.subset(read(args.data / "support_dev.jsonl.gz"), per_set, 5)
    trees = [
        tree(tokenizer, Item(r["set"], r["context"], ((r["statement"], r["label"]),)), pair, longest)
        for r in rows
    ]
    return rows, trees


def look(model, validation, pair, args, tokenizer) -> None:
    """A glance while training: held-out training contexts and a part of the development file."""
    from training import measure

    margins = measure.torch_margins(model, validation, pair)
    rows = [{"set": t.kind, "label": int(b.targets[-1] == pair[1])} for t in validation for b in t.branches]
    print(
        "held-out training contexts\n"
        + measure.show(measure.report(rows, np.array([m for x in margins for m in x]), 0.0))
    )
    rows, trees = _dev(args, tokenizer, pair, 60, 1024)
    flat = np.array([m for x in measure.torch_margins(model, trees, pair) for m in x])
    print("part of support_dev\n" + measure.show(measure.report(rows, flat)), flush=True)


def evaluate(args) -> int:
    from training.skills import binary_margins, digits, finish
    from training.tokens import Tokenizer

    tokenizer = Tokenizer(args.base)
    pair = digits(tokenizer)
    rows, trees = _dev(args, tokenizer, pair, args.per_set, 1024)
    return finish(args, rows, np.array([m for x in binary_margins(args, trees, pair) for m in x]))
