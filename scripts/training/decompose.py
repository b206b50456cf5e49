"""The decomposition skill: a sentence of an answer -> standalone, pronoun-free statements.

Targets come from human claims (half of the Factcheck-GPT answers; the other half
is only measured on), from human atomic facts made fewer and fuller, and from
programs: sentences that stay as they are, pronouns with a known owner, compound
sentences with a known cut, and sentences that carry no claim.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np

from training import prompts
from training import sentences as S
from training.lexicon import CITIES, COMPANIES, FIRST, LAST, MONTHS, NUMBER_WORDS, words
from training.support import read
from training.trees import IGNORE, Branch, Tree

PROMPT = "decompose/1"
PER_STEP = 900.0  # target tokens of an average step
NONE = "none"
SOURCES = [
    "Factcheck-GPT (Apache-2.0), one half of the answers",
    "FActScore human atomic facts (MIT)",
    "BoolQ passages (CC-BY-SA-3.0)",
    "templates of scripts/training (Apache-2.0)",
]
WEIGHTS = {"human": 0.34, "atomic": 0.18, "copy": 0.12, "owner": 0.12, "made": 0.18, "none": 0.06}
LONGEST = 1024

# (question, answer, [(sentence, statements)])
Example = tuple[str, str, list[tuple[str, list[str]]]]

_STOP = frozenset(
    words(
        """a, an, the, of, in, on, at, by, for, with, from, to, and, or, but, nor, so, yet, as, is, are, was, were, be, been, being, am, has, have, had, do, does, did, will, would, can, could, may, might, shall, should, must, not, no, it, its, he, she, they, them, his, her, their, him, this, that, these, those, there, here, which, who, whom, whose, what, when, where, while, than, then, also, such, into, onto, over, under, about, between, through, during, i, you, we, us, our, your, my, me, s, some, any, each, all, both, more, most, other, another, one, very, just, if, because, since, after, before, up, out"""
    )
)
_PRONOUN = re.compile(r"^(?:he|she|it|they|this|these|those|his|her|its|their|we|i|you)\b", re.I)


def content(text: str) -> set[str]:
    """Content words: lower case, no possessive, no stop words, plural `s` off."""
    out = set()
    for word in re.findall(r"\w+(?:[.,]\d+)*", text.lower().replace("'s", " ").replace("’s", " ")):
        if word not in _STOP:
            out.add(word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word)
    return out


def trained(identifier: str) -> bool:
    """Whether an answer of the evaluation file belongs to the training half (fixed)."""
    return zlib.crc32(("decompose half " + identifier).encode()) % 2 == 0


def answer_id(identifier: str) -> str:
    return re.sub(r"-s\d+$", "", identifier)


def human(data: Path) -> list[Example]:
    groups: dict[str, list[dict]] = defaultdict(list)
    for row in read(data / "decompose_sentences.jsonl.gz"):
        if trained(answer_id(row["id"])):
            groups[answer_id(row["id"])].append(row)
    out = []
    for rows in groups.values():
        pairs = []
        for row in rows:
            known = content(row["answer"] + " " + (row["question"] or ""))
            claims = [c.strip() for c in row["claims"] if c.strip()]
            good = [c for c in claims if not _PRONOUN.match(c) and content(c) <= known]
            if len(good) == len(claims) or (
                good
                and len(set().union(*map(content, good)) & content(row["sentence"]))
                >= 0.8 * len(content(row["sentence"]))
            ):  # also a sentence without claims
                pairs.append((row["sentence"], good))
            elif not _PRONOUN.search(row["decontextualised"]) and content(row["decontextualised"]) <= known:
                pairs.append((row["sentence"], [row["decontextualised"]]))
        if pairs:
            out.append((rows[0]["question"] or "", rows[0]["answer"], pairs))
    return out


def _own(statement: str, name: str) -> str | None:
    """A leading pronoun replaced by the name; None where another pronoun is left as subject."""
    s = re.sub(r"^(?:He|She)\b", name, statement)
    s = re.sub(r"^(?:His|Her)\b", name + "'s", s)
    return None if _PRONOUN.match(s) else s


def fuller(facts: list[str], sentence: str) -> list[str]:
    """The longest facts that together say what all of them say; facts inside others go."""
    need = content(sentence)
    order = sorted(range(len(facts)), key=lambda i: -len(content(facts[i]) & need))
    kept: list[int] = []
    covered: set[str] = set()
    for i in order:
        new = (content(facts[i]) & need) - covered
        if new:
            kept.append(i)
            covered |= new
    return [facts[i] for i in sorted(kept)]


def atomic(data: Path) -> list[Example]:
    out = []
    for row in read(data / "atomic_facts.jsonl.gz"):
        name = row["topic"]
        question = re.sub(r"^Question:\s*", "", row["question"] or "")
        known = content(row["answer"] + " " + question)
        pairs = []
        for i, sentence in enumerate(row["sentences"]):
            if re.match(
                r"^[\w ]+'s (?:\w+ )?(?:father|mother|wife|husband|son|daughter|brother|sister|parents|family|team)\b",
                sentence,
            ):
                continue  # the pronoun's owner is not the topic
            facts = [f for f, at in zip(row["statements"], row["sentence_index"], strict=True) if at == i]
            resolved = [r for r in (_own(f, name) for f in facts) if r and content(r) <= known]
            # places and films explained on their own are fragments, not claims about the topic
            resolved = [
                r
                for r in resolved
                if not re.match(r"^.{2,60} (?:is|was) (?:a|an|in) [\w ]{2,20}\.$", r) or r.startswith(name)
            ]
            kept = fuller(resolved, sentence)
            whole = content(sentence)
            if kept and len(kept) <= 7 and len(set().union(*map(content, kept)) & whole) >= 0.85 * len(whole):
                pairs.append((sentence, kept))
            else:
                said = _own(sentence, name)
                if (
                    said
                    and not re.search(r"\b(?:He|She|he|she|his|her|they|it)\b", said)
                    and len(said.split()) < 30
                ):
                    pairs.append((sentence, [said]))
        if pairs:
            out.append((question, row["answer"], pairs))
    return out


def _subject(title: str, first: str) -> str | None:
    """The noun phrase that opens the first sentence, if it is the title."""
    m = re.match(rf"^((?:The |An? )?{re.escape(title)}s?)(?: \([^)]*\))? (?:is|was|are|were) ", first, re.I)
    return m.group(1) if m and title else None


def from_passages(data: Path, rng: random.Random) -> tuple[list[Example], list[Example]]:
    """(sentences that stay, sentences whose opening pronoun is the passage's subject)."""
    copies: list[Example] = []
    owners: list[Example] = []
    seen = set()
    for row in read(data / "support_train.jsonl.gz"):
        if row["set"] != "boolq_template" or row["context"] in seen or len(row["context"]) > 1500:
            continue
        seen.add(row["context"])
        text = S.clean(row["context"])
        title, mark, body = text.partition(" -- ")
        if not mark:
            title, body = "", text
        sents = S.sentences(body)
        if len(sents) < 2:
            continue
        question = row["question"] if rng.random() < 0.7 else ""
        stay = [s for s in sents if S.usable(s) and len(s.split()) <= 22 and not re.search(r"\b(?:it|he|she|they|this|these|its|his|her|their|such)\b", s, re.I)
                and not re.search(r", (?:and|but|while|which|who)|;| but ", s)]  # fmt: skip
        if stay:
            copies.append((question, body, [(s, [s]) for s in rng.sample(stay, min(3, len(stay)))]))
        owner = _subject(title, sents[0])
        if owner:
            pairs = []
            for s in sents[1:]:
                if len(s.split()) > 26:
                    continue
                m = re.match(r"^(It|He|She|They|Its|His|Their) (?=\w)", s)
                rest = s[m.end() :] if m else ""
                if m and not re.search(r"\b(?:it|he|she|they|his|her|its|their|this|these)\b", rest, re.I):
                    poss = m.group(1) in ("Its", "His", "Their")
                    pairs.append((s, [owner + ("'s " if poss else " ") + rest]))
            if pairs and not re.search(
                r"^It (?:is|was) (?:\w+ )?(?:that|to|possible|unclear|not|said|believed)", pairs[0][0]
            ):
                owners.append((question, body, pairs))
    return copies, owners


NO_CLAIM = [
    "Hello!", "Hi there!", "Good morning.", "Sure!", "Of course.", "Certainly!", "Thank you for your question.", "Thanks!", "You're welcome.", "I hope this helps!",
    "I hope this helps.", "Let me know if you have any other questions.", "Feel free to ask if you need anything else.", "Is there anything else I can help you with?",
    "What would you like to know?", "Could you please clarify your question?", "Here is a list:", "Here are some examples:", "Here's what I found:", "Sure, here is a summary:",
    "I'm sorry, but I can't help with that.", "I don't know.", "I do not have information about that.", "I'm not sure.", "As an AI language model, I cannot answer that.",
    "Which city do you mean?", "Do you want me to go on?", "Let me explain.", "Let's look at this step by step.", "Great question!", "Please let me know.", "Have a nice day!",
    "I apologize for the confusion.", "The following steps may be of use:", "Hola, ¿en qué puedo ayudarte?", "¡Claro!", "Gern geschehen!", "Kann ich sonst noch helfen?", "Bonjour !",
    "Avec plaisir !", "Non lo so.", "Não sei.", "Nie wiem.", "わかりません。", "不客气。", "Good luck!", "OK.", "Yes.", "No.", "Would you like more details?", "Can you tell me more about it?",
    "I am unable to browse the web.", "Sorry, I can't find that.", "Does that make sense?", "Take care!", "In summary:", "Here are three options for you:", "See below.",
]  # fmt: skip


def made(rng: random.Random, count: int) -> list[Example]:
    """Answers from templates whose claims are known."""
    out: list[Example] = []
    for _ in range(count):
        first, last = rng.choice(FIRST), rng.choice(LAST)
        n = f"{first} {last}"
        he = rng.choice(["He", "She"])
        his = {"He": "His", "She": "Her"}[he]
        c, c2, c3 = rng.sample(CITIES, 3)
        k, k2 = rng.sample(COMPANIES, 2)
        y = rng.randrange(1900, 2000)
        y2 = y + rng.randrange(18, 50)
        m, d = rng.choice(MONTHS), rng.randrange(1, 29)
        job, job2 = rng.sample(
            [
                "engineer",
                "painter",
                "singer",
                "lawyer",
                "chemist",
                "writer",
                "teacher",
                "pilot",
                "surgeon",
                "actor",
            ],
            2,
        )
        a = "an" if job[0] in "aeiou" else "a"
        field = rng.choice(["physics", "law", "history", "music", "medicine"])
        w = NUMBER_WORDS[rng.randrange(2, 9)]
        shapes = [
            (f"{n} was born on {m} {d}, {y}, in {c}.", [f"{n} was born on {m} {d}, {y}, in {c}."]),
            (f"{n} is {a} {job} from {c}.", [f"{n} is {a} {job} from {c}."]),
            (f"{he} studied {field} in {c2} and moved to {c3} in {y2}.", [f"{n} studied {field} in {c2}.", f"{n} moved to {c3} in {y2}."]),
            (f"{he} was born in {c}, studied in {c2} and died in {c3}.", [f"{n} was born in {c}.", f"{n} studied in {c2}.", f"{n} died in {c3}."]),
            (f"{his} father was {a} {job}, and {his.lower()} mother taught {field}.", [f"{n}'s father was {a} {job}.", f"{n}'s mother taught {field}."]),
            (f"After leaving {k}, {he.lower()} founded {k2} in {y2}.", [f"{n} left {k}.", f"{n} founded {k2} in {y2}."]),
            (f"{last} worked for {k} until {y2}.", [f"{n} worked for {k} until {y2}."]),
            (f"In {y2}, {he.lower()} won {w} awards, but {he.lower()} never returned to {c}.", [f"In {y2}, {n} won {w} awards.", f"{n} never returned to {c}."]),
            (f"{k}, which has its head office in {c}, sold {w} factories in {y2}.", [f"{k} has its head office in {c}.", f"{k} sold {w} factories in {y2}."]),
            (f"It also opened shops in {c2} and {c3}.", None),
            (f"{he} lives in {c3}.", [f"{n} lives in {c3}."]),
            (f"{he} did not finish school because of an illness.", [f"{n} did not finish school because of an illness."]),
            (f"{his} best-known work appeared in {y2}.", [f"{n}'s best-known work appeared in {y2}."]),
            (f"However, {he.lower()} was more successful as {'an' if job2[0] in 'aeiou' else 'a'} {job2}.", [f"{n} was more successful as {'an' if job2[0] in 'aeiou' else 'a'} {job2}."]),
            (f"Both {c} and {c2} are mentioned in {his.lower()} letters.", [f"Both {c} and {c2} are mentioned in {n}'s letters."]),
        ]  # fmt: skip
        style = rng.random()
        if style < 0.62:
            chosen = [
                shapes[rng.randrange(2)],
                *rng.sample([x for x in shapes[2:] if x[1]], rng.randrange(2, 5)),
            ]
            question = rng.choice(
                [f"Who is {n}?", f"Tell me about {n}.", "", f"Where was {n} born?", f"What did {n} do?"]
            )
            text = [x[0] for x in chosen]
            pairs = [(s, list(st)) for s, st in chosen]
            if rng.random() < 0.3:
                extra = rng.choice(NO_CLAIM)
                where = 0 if rng.random() < 0.5 else len(text)
                text.insert(where, extra)
                pairs.append((extra, []))
            out.append((question, " ".join(text), pairs))
        elif style < 0.74:
            s0 = f"{k} is a company from {c}."
            lines = [(s0, [s0]), (f"It opened shops in {c2} and {c3}.", [f"{k} opened shops in {c2} and {c3}."]), (f"It was founded in {y} by {n}.", [f"{k} was founded in {y} by {n}."]),
                     (f"Its profit rose by {rng.randrange(2, 70)}% in {y2}, while sales fell.", None), (f"{n} left the company in {y2}.", [f"{n} left the company in {y2}."])]  # fmt: skip
            lines[3] = (
                lines[3][0],
                [
                    lines[3][0].replace("Its profit", f"{k}'s profit").replace(", while sales fell.", "."),
                    f"{k}'s sales fell.",
                ],
            )
            chosen = [lines[0], *rng.sample(lines[1:], 3)]
            out.append(
                (
                    rng.choice(["", f"What is {k}?"]),
                    " ".join(x[0] for x in chosen),
                    [(s, list(st)) for s, st in chosen],
                )
            )
        elif style < 0.86:
            intro = rng.choice(["Here is what you need:", "Here are the facts:", "The main points are:"])
            items = rng.sample([f"{c} is larger than {c2}.", f"{k} opened in {y}.", f"{n} lives in {c3}.", f"The bridge in {c} is {rng.randrange(100, 900)} metres long.",
                                f"The museum closes at {rng.randrange(4, 9)} p.m.", f"Tickets cost {rng.randrange(5, 60)} euros.", f"The drug is taken {w} times a day."], 3)  # fmt: skip
            mark = rng.choice(["- ", "* ", ""])
            out.append(
                (
                    "",
                    intro + "\n" + "\n".join(mark + i for i in items),
                    [(intro, []), *((mark + i if rng.random() < 0.5 else i, [i]) for i in items)],
                )
            )
        else:
            lang = rng.choice([
                [(f"{n} nació en {c} en {y}.", [f"{n} nació en {c} en {y}."]), (f"Estudió {rng.choice(['derecho', 'medicina'])} en {c2}.", None), ("Espero que esto ayude.", [])],
                [(f"{n} wurde {y} in {c} geboren.", [f"{n} wurde {y} in {c} geboren."]), (f"{ {'He': 'Er', 'She': 'Sie'}[he]} arbeitete bei {k} und lebte in {c2}.", [f"{n} arbeitete bei {k}.", f"{n} lebte in {c2}."])],
                [(f"{n} est né à {c} en {y}.", [f"{n} est né à {c} en {y}."]), (f"{ {'He': 'Il', 'She': 'Elle'}[he]} a travaillé chez {k}.", [f"{n} a travaillé chez {k}."])],
                [(f"{n} nasceu em {c} em {y}.", [f"{n} nasceu em {c} em {y}."]), (f"{ {'He': 'Ele', 'She': 'Ela'}[he]} trabalhou na {k}.", [f"{n} trabalhou na {k}."])],
                [(f"{n} è nato a {c} nel {y}.", [f"{n} è nato a {c} nel {y}."])],
                [(f"{n}は{y}年に{c}で生まれた。", [f"{n}は{y}年に{c}で生まれた。"])],
                [(f"{n}于{y}年出生在{c}。", [f"{n}于{y}年出生在{c}。"])],
            ])  # fmt: skip
            pairs = [(s, st) for s, st in lang if st is not None]
            out.append(("", " ".join(s for s, _ in lang), pairs))
    return out


def empty(rng: random.Random, count: int) -> list[Example]:
    out = []
    for _ in range(count):
        chosen = rng.sample(NO_CLAIM, 2)
        out.append(
            (
                rng.choice(["", "Can you help me?", "What is the capital of France?"]),
                " ".join(chosen),
                [(s, []) for s in chosen],
            )
        )
    return out


def tree(tokenizer, example: Example, kind: str) -> Tree | None:
    question, answer, pairs = example
    before, after = prompts.split(PROMPT)
    prefix = prompts.encode(tokenizer, before, {"question": question, "answer": answer})
    end = tokenizer.literal("<|im_end|>")[0]
    branches, size = [], len(prefix)
    for sentence, statements in pairs:
        asked = prompts.encode(tokenizer, after, {"sentence": sentence})
        said = tokenizer.data("".join(f"- {s}\n" for s in statements) if statements else NONE)
        tokens = asked + said
        targets = [IGNORE] * (len(asked) - 1) + said + [end]
        size += len(tokens)
        if size > LONGEST:
            break
        branches.append(Branch.of(tokens, targets))
    return Tree(np.array(prefix, np.int32), branches, kind) if branches else None


def training(data: Path, seed: int, scale: float, tokenizer, pair):
    rng = random.Random(seed)
    copies, owners = from_passages(data, rng)
    kinds = {
        "human": human(data),
        "atomic": atomic(data),
        "copy": copies,
        "owner": owners,
        "made": made(rng, int(4000 * scale)),
        "none": empty(rng, 300),
    }
    pools = {k: [t for e in v if (t := tree(tokenizer, e, k))] for k, v in kinds.items()}
    return pools, []


def look(model, validation, pair, args, tokenizer) -> None:
    """Nothing to measure without generating; see `evaluate`."""


def statements_of(text: str) -> list[str]:
    """The statements of a generated text."""
    lines = [line.strip() for line in text.split("\n")]
    out = [line[2:].strip() for line in lines if line.startswith("- ") and line[2:].strip()]
    return list(dict.fromkeys(out))


def evaluate(args) -> int:
    """Coverage, unresolved subjects and foreign words on the half that was not trained on."""
    from training.engine import Engine
    from training.tokens import Tokenizer

    tokenizer = Tokenizer(args.base)
    engine = Engine(args.base, args.adapter, threads=args.threads)
    before, after = prompts.split(PROMPT)
    stop = {tokenizer.literal("<|im_end|>")[0], tokenizer.literal("<|endoftext|>")[0]}
    rows = [r for r in read(args.data / "decompose_answers.jsonl.gz") if not trained(r["id"])]
    if args.per_set:
        rows = rows[: args.per_set]
    plain: list[tuple] = []
    for row in rows:
        engine.start(
            prompts.encode(tokenizer, before, {"question": row["question"] or "", "answer": row["answer"]})
        )
        raw = []
        for sentence in row["sentences"]:
            out = engine.generate(prompts.encode(tokenizer, after, {"sentence": sentence}), stop, 400)
            raw.append(statements_of(tokenizer.text(out)))
        plain.append((row, raw))
    result = {
        "answers": len(rows),
        "raw": numbers(plain, fallback=False),
        "with_fallback": numbers(plain, fallback=True),
    }
    print(json.dumps(result, indent=1))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


def numbers(decomposed: list[tuple], fallback: bool) -> dict:
    """The three floors.  `fallback`: the product's rules (foreign word or lost content -> the sentence itself)."""
    claims = covered = total = pronoun = foreign = 0
    for row, raw in decomposed:
        known = content(row["answer"] + " " + (row["question"] or ""))
        said: list[str] = []
        for sentence, statements in zip(row["sentences"], raw, strict=True):
            if fallback and statements:
                statements = [s if content(s) <= known else sentence for s in statements]
                have = set().union(*map(content, statements))
                if len(content(sentence) & have) < 0.8 * len(content(sentence)):
                    statements.append(sentence)
            said += dict.fromkeys(statements)
        for claim in row["statements"]:
            need = content(claim)
            claims += 1
            covered += any(len(need & content(s)) >= 0.8 * len(need) for s in said)
        total += len(said)
        pronoun += sum(bool(re.match(r"^(?:he|she|it|they|we|i|you)\b", s, re.I)) for s in said)
        foreign += sum(not content(s) <= known for s in said)
    return {
        "claims": claims,
        "covered": covered / max(claims, 1),
        "statements": total,
        "pronoun_subject": pronoun / max(total, 1),
        "foreign_word": foreign / max(total, 1),
    }
