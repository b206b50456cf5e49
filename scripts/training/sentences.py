"""Cutting passages into sentences and changing sentences by rule.

Every change keeps the sentence readable; a change that does not apply gives None.
"""

from __future__ import annotations

import random
import re
from functools import cache

from training.lexicon import (
    ANTONYMS,
    KINDS,
    MONTHS,
    NUMBER_WORDS,
    ORDINALS,
    QUANTIFIER_SWAPS,
    SYNONYMS,
)

_SPLIT = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|vs|No|Jr|Sr|Inc|U\.S|U\.K|e\.g|i\.e|etc|[A-Z])\.)$")


def clean(text: str) -> str:
    """Tidies tokenised quotes and dashes of the BoolQ passages."""
    text = text.replace("``", '"').replace("''", '"')
    return re.sub(r"\s+", " ", text).strip()


def sentences(text: str) -> list[str]:
    out: list[str] = []
    for part in _SPLIT.split(text):
        if out and _ABBREVIATION.search(out[-1]):
            out[-1] += " " + part
        else:
            out.append(part)
    return [s.strip() for s in out if s.strip()]


def usable(sentence: str) -> bool:
    """A sentence that can stand as a statement."""
    words = sentence.split()
    return (
        5 <= len(words) <= 38
        and sentence[0].isupper()
        and sentence[-1] in ".!"
        and words[0]
        not in ("It", "He", "She", "They", "This", "These", "His", "Her", "Their", "Its", "However,", "That")
    )


_NAME = re.compile(
    r"(?<![.!?\"] )(?<!^)\b(?:[A-Z][\w'’-]+)(?: (?:of|the|de|von|van|and) [A-Z][\w'’-]+| [A-Z][\w'’-]+)*"
)
_STOP_NAMES = {
    "The",
    "A",
    "An",
    "In",
    "On",
    "At",
    "It",
    "He",
    "She",
    "They",
    "This",
    "I",
    "For",
    "As",
    "However",
} | set(MONTHS)


def names(text: str) -> list[str]:
    """Capitalised runs that do not start a sentence."""
    seen: list[str] = []
    for m in _NAME.finditer(text):
        name = m.group()
        if name not in _STOP_NAMES and len(name) > 2 and name not in seen:
            seen.append(name)
    return seen


@cache
def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")


def has(sentence: str, word: str) -> bool:
    """The word occurs whole (the plain look first: it is much cheaper)."""
    return word in sentence and _whole(word).search(sentence) is not None


def _once(sentence: str, old: str, new: str) -> str | None:
    m = _whole(old).search(sentence)
    if not m or old == new:
        return None
    return sentence[: m.start()] + new + sentence[m.end() :]


def _pairs(sentence: str, rng: random.Random, table: list[tuple[str, ...]], both: bool = True) -> str | None:
    found = []
    for a, b in table:
        if has(sentence, a):
            found.append((a, b))
        if both and has(sentence, b):
            found.append((b, a))
    return _once(sentence, *rng.choice(found)) if found else None


def number(sentence: str, rng: random.Random) -> str | None:
    """Another number or year."""
    hits = list(re.finditer(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w])", sentence))
    words = list(re.finditer(r"\b(" + "|".join(NUMBER_WORDS[2:]) + r")\b", sentence))
    ords = list(re.finditer(r"\b(" + "|".join(ORDINALS[:6]) + r")\b", sentence))
    choices = hits + words + ords
    if not choices:
        return None
    m = rng.choice(choices)
    old = m.group()
    if old in NUMBER_WORDS:
        new = rng.choice([w for w in NUMBER_WORDS[2:14] if w != old])
    elif old in ORDINALS:
        new = rng.choice([w for w in ORDINALS[:6] if w != old])
    else:
        plain = old.replace(",", "")
        if "." in plain:
            new = f"{float(plain) * rng.choice([0.5, 1.2, 2, 3]) + rng.choice([0.1, 0.3]):.{len(plain.split('.')[1])}f}"
        else:
            value = int(plain)
            if 1000 < value < 2100 and "," not in old:
                new = str(value + rng.choice([-30, -10, -7, -3, -2, -1, 1, 2, 3, 5, 10, 20]))
            else:
                options = {
                    value + 1,
                    value + 2,
                    max(value - 1, 0),
                    value * 2,
                    value * 10,
                    value + 5,
                    value // 2 + 1,
                }
                options.discard(value)
                fresh = rng.choice(sorted(options))
                new = f"{fresh:,}" if "," in old else str(fresh)
    if new == old:
        return None
    return sentence[: m.start()] + new + sentence[m.end() :]


def date(sentence: str, rng: random.Random) -> str | None:
    """Another month."""
    hits = [m for m in MONTHS if m != "May" and has(sentence, m)]
    if not hits:
        return None
    old = rng.choice(hits)
    return _once(sentence, old, rng.choice([m for m in MONTHS if m != old]))


def entity(sentence: str, rng: random.Random, others: list[str]) -> str | None:
    """A name replaced by another one."""
    mine = names(sentence)
    if not mine:
        return None
    old = rng.choice(mine)
    others = [
        o
        for o in others
        if o not in sentence and old not in o and abs(len(o.split()) - len(old.split())) <= 1
    ]
    return _once(sentence, old, rng.choice(others)) if others else None


def swap_names(sentence: str, rng: random.Random) -> str | None:
    """Two names of the sentence change places."""
    mine = [n for n in names(sentence) if sentence.count(n) == 1]
    if len(mine) < 2:
        return None
    a, b = rng.sample(mine, 2)
    between = sentence[min(sentence.find(a), sentence.find(b)) : max(sentence.find(a), sentence.find(b))]
    plain = [w for w in re.findall(r"\b[a-z]\w+", between) if w not in ("and", "or", "the", "of")]
    if a in b or b in a or not plain:  # members of one list may change places
        return None
    return sentence.replace(a, "\0").replace(b, a).replace("\0", b)


def kind_word(sentence: str, rng: random.Random) -> str | None:
    """A word replaced by another of its kind (red -> blue)."""
    hits = []
    for members in KINDS.values():
        hits += [(word, members) for word in members if has(sentence, word)]
    if not hits:
        return None
    old, members = rng.choice(hits)
    new = rng.choice([m for m in members if m != old])
    if {old, new} in (
        {"gray", "grey"},
        {"sofa", "couch"},
        {"bike", "bicycle"},
        {"dinner", "supper"},
        {"British", "English"},
        {"British", "Scottish"},
    ):
        return None
    return _once(sentence, old, new)


def hypernym(sentence: str, rng: random.Random) -> str | None:
    """A word replaced by its kind (guitar -> instrument)."""
    hits = []
    for kind, members in KINDS.items():
        if kind in (
            "instrument",
            "vehicle",
            "animal",
            "bird",
            "drink",
            "vegetable",
            "fruit",
            "sport",
            "room",
            "tool",
            "flower",
            "weapon",
            "person",
        ):
            hits += [(w, kind) for w in members if has(sentence, w)]
    if not hits:
        return None
    old, new = rng.choice(hits)
    changed = _once(sentence, old, new)
    if changed:
        changed = re.sub(
            r"\b([Aa])n? (?=" + new + ")",
            lambda m: m.group(1) + ("n " if new[0] in "aeiou" else " "),
            changed,
        )
    return changed


def antonym(sentence: str, rng: random.Random) -> str | None:
    return _pairs(sentence, rng, ANTONYMS)


def synonym(sentence: str, rng: random.Random) -> str | None:
    return _pairs(sentence, rng, SYNONYMS)


def quantifier(sentence: str, rng: random.Random) -> str | None:
    return _pairs(sentence, rng, QUANTIFIER_SWAPS, both=False)


_AUX = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|does|did|do|should|may|must)\b(?! not|n't)"
)


def negate(sentence: str, rng: random.Random) -> str | None:
    """Polarity: a `not` is added or taken away."""
    m = re.search(
        r"\b(is|are|was|were|has|have|can|could|will|would|does|did|do|should|may|must) not\b", sentence
    )
    if m:
        return sentence[: m.end() - 4] + sentence[m.end() :]
    if "cannot" in sentence:
        return sentence.replace("cannot", "can", 1)
    m = _AUX.search(sentence)
    if not m:
        return None
    word = (
        "n't"
        if rng.random() < 0.25
        and m.group() in ("is", "are", "was", "were", "has", "have", "did", "does", "could", "would")
        else " not"
    )
    if word == " not" and rng.random() < 0.2:
        word = " never"
    return sentence[: m.end()] + word + sentence[m.end() :]


def detail(sentence: str, rng: random.Random) -> str | None:
    """An addition that the text does not give."""
    body = sentence.rstrip(".")
    if len(body.split()) > 26:
        return None
    return body + rng.choice(
        [
            ", which surprised many experts.", " for the first time in its history.", ", mainly because of its low cost.",
            " and was later sold to a private owner.", ", according to a government report.", " every year in spring.",
            ", and it won several awards for it.", " with the help of volunteers.", " until the end of the war.",
            ", making it the most popular of its kind.", " in order to save money.", " despite heavy criticism.",
            " and is now a national monument.", ", which was its biggest success.", " after a long legal dispute.",
            " before it was moved to another city.", " in more than thirty countries.", " against the will of the owners.",
        ]
    )  # fmt: skip


def shorten(sentence: str, rng: random.Random) -> str | None:
    """Something left out; what stays is still said."""
    options = []
    s = re.sub(r"\s*\([^()]*\)", "", sentence)
    if s != sentence:
        options.append(s)
    m = re.match(r"^(?:In|On|By|During|Since|At) [^,]{3,40}, (.+)$", sentence)
    if m:
        options.append(m.group(1)[0].upper() + m.group(1)[1:])
    m = re.match(
        r"^(.{25,}?), (?:which|who|where|with|including|such as|although|while|whereas|but|although|making|when) .+\.$",
        sentence,
    )
    if m and m.group(1).count(",") == 0:
        options.append(m.group(1) + ".")
    m = re.match(
        r"^(.{25,}?),? (?:and|but) (?:it|he|she|they|the|is|was|are|were|has|have|also|then|later) .+\.$",
        sentence,
    )
    if m and not re.search(r"\b(either|both|between|if|not|neither|no)\b", m.group(1)):
        options.append(m.group(1) + ".")
    m = re.match(r"^(.{25,}) (?:in|on|at|by|for|since|from|during|with|after|before) [^,]{3,30}\.$", sentence)
    if m and not re.search(r"\b(not|no|never|only|if|most|first|last|without|\w+est)\b", sentence):
        options.append(m.group(1) + ".")
    s = re.sub(r", [^,]{4,50}, (?=(?:is|was|are|were|has|had) )", " ", sentence)
    if s != sentence:
        options.append(s)
    options = [o for o in options if len(o.split()) >= 4]
    return rng.choice(options) if options else None


def digits_words(sentence: str, rng: random.Random) -> str | None:
    """Number words to digits or the other way."""
    m = re.search(r"\b(" + "|".join(NUMBER_WORDS[2:]) + r")\b(?! (?:hundred|thousand|million))", sentence)
    if m:
        return sentence[: m.start()] + str(NUMBER_WORDS.index(m.group())) + sentence[m.end() :]
    m = re.search(r"(?<![\w.,-])(1?\d|20)(?![\w.,%-])", sentence)
    if m:
        return sentence[: m.start()] + NUMBER_WORDS[int(m.group())] + sentence[m.end() :]
    return None


def bound(sentence: str, rng: random.Random, true: bool) -> str | None:
    """A number made a bound that follows from it, or one that does not."""
    m = re.search(r"(?<![\w.,$-])(\d{1,3}(?:,\d{3})+|\d{2,3})(?= [a-z]+)", sentence)
    if not m or re.search(
        r"(than|least|most|over|under|about|around|to|nearly|and|between|January|February|March|April|May|June|July|August|September|October|November|December) $",
        sentence[: m.start()],
    ):
        return None
    value = int(m.group().replace(",", ""))
    step = max(1, value // rng.choice([3, 5, 10, 20]))
    low, high = value - step, value + step
    fmt = (lambda v: f"{v:,}") if "," in m.group() else str
    text = rng.choice([f"more than {fmt(low)}", f"at least {fmt(low)}", f"fewer than {fmt(high)}", f"at most {fmt(high)}", f"over {fmt(low)}"]
                      if true else [f"more than {fmt(high)}", f"at least {fmt(high)}", f"fewer than {fmt(low)}", f"at most {fmt(low)}", f"over {fmt(high)}"])  # fmt: skip
    return sentence[: m.start()] + text + sentence[m.end() :]


_DETERMINER = r"(?:the|a|an|his|her|their|its)"
_OBJECT = re.compile(
    rf"\b(\w{{3,}}) {_DETERMINER} (?:\w+ ){{1,2}}(?:in|at|with|of|by|from|to|for|on|near|against) ({_DETERMINER} )(?=\w)"
)


def merge(sentence: str, rng: random.Random) -> str | None:
    """A compression that gives a word another object: `hit the car with a bat` -> `hit a bat`."""
    hits = [m for m in _OBJECT.finditer(sentence) if m.group(1) not in _NOT_VERBS]
    if not hits:
        return None
    m = rng.choice(hits)
    return sentence[: m.start()] + m.group(1) + " " + m.group(2) + sentence[m.end() :]


_NOT_VERBS = {
    "and", "from", "with", "into", "the", "for", "between", "during", "over", "under", "after", "before", "near",
    "that", "than", "upon", "until", "both", "all", "across", "through", "around", "about", "since", "but", "not",
}  # fmt: skip


def declarative(question: str, title: str) -> str | None:
    """`is a rose a flower?` -> `a rose is a flower`; the subject is found by the passage's title."""
    words_ = question.strip().rstrip("?").split()
    if len(words_) < 4 or words_[0] not in _FIRST_AUX:
        return None
    rest = words_[1:]
    if rest[0] in ("you", "there", "it", "they", "we", "i"):
        subject = 1
    else:
        known = {w.rstrip("s") for w in re.findall(r"\w+", title.lower())}
        subject = 1 if rest[0] in ("the", "a", "an") else 0
        start = subject
        while subject < len(rest) and (
            rest[subject].rstrip("s") in known or (rest[subject] in ("of", "the", "in") and subject > start)
        ):
            subject += 1
        while subject > start and rest[subject - 1] in ("of", "the", "in"):
            subject -= 1
        if subject == start:
            return None
    if subject >= len(rest):
        return None
    text = " ".join([*rest[:subject], words_[0], *rest[subject:]])
    return text[0].upper() + text[1:] + "."


_FIRST_AUX = {
    "is",
    "are",
    "was",
    "were",
    "can",
    "does",
    "do",
    "did",
    "has",
    "have",
    "will",
    "could",
    "should",
    "would",
}

FALSE_RULES = {
    "number": number,
    "date": date,
    "swap_names": swap_names,
    "kind_word": kind_word,
    "antonym": antonym,
    "quantifier": quantifier,
    "negation": negate,
    "detail": detail,
    "bound": lambda s, r: bound(s, r, False),
}
TRUE_RULES = {
    "synonym": synonym,
    "shorten": shorten,
    "digits_words": digits_words,
    "bound": lambda s, r: bound(s, r, True),
}
