"""Word order, clauses and monotonicity: labelled pairs from the project's own templates.

Each function returns (context, [(statement, label), ...]).  The shapes cover the
known shortcuts of small judges: all words of the statement occur in the context,
in that order, or as a whole clause of it, and still it does not follow.
"""

from __future__ import annotations

import random

from training.lexicon import (
    ADJECTIVES,
    FACT_WORDS,
    FACTIVE,
    FIRST,
    IF_WORDS,
    INTRANSITIVE,
    NONFACTIVE,
    NOUN_TREES,
    NPS_VERBS,
    NPZ_VERBS,
    PEOPLE,
    PLURALS,
    PREPOSITIONS,
    RESTRICTIONS,
    SURE_ADVERBS,
    UNSURE_ADVERBS,
    VERB_TREES,
    VERBS,
)

Pair = tuple[str, list[tuple[str, int]]]


def plural(noun: str) -> str:
    if noun in PLURALS:
        return PLURALS[noun]
    return noun + ("es" if noun.endswith(("s", "ch", "sh", "x")) else "s")


class Syntax:
    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    # pieces -----------------------------------------------------------------
    def nouns(self, count: int) -> list[str]:
        rng = self.rng
        picked = rng.sample(PEOPLE, count)
        out = []
        for noun in picked:
            r = rng.random()
            if r < 0.06:
                out.append(rng.choice([f for f in FIRST if f not in out]))
            else:
                out.append("the " + (plural(noun) if rng.random() < 0.5 else noun))
        return out

    def be(self, noun: str) -> str:
        word = noun.split()[-1]
        many = noun.startswith("the ") and (
            (word.endswith("s") and word not in PEOPLE) or word in PLURALS.values()
        )
        return "were" if many else "was"

    @staticmethod
    def cap(text: str) -> str:
        return text[0].upper() + text[1:]

    def end(self, text: str) -> str:
        return self.cap(text) + "."

    def verb(self):
        return self.rng.choice(VERBS)

    # lexical overlap ---------------------------------------------------------
    def active(self) -> Pair:
        a, b = self.nouns(2)
        v = self.verb()
        return f"{a} {v[0]} {b}", [
            (f"{b} {v[0]} {a}", 0), (f"{b} {self.be(b)} {v[1]} by {a}", 1), (f"{a} {self.be(a)} {v[1]} by {b}", 0), (f"{a} {v[0]} {b}", 1),
        ]  # fmt: skip

    def passive(self) -> Pair:
        a, b = self.nouns(2)
        v = self.verb()
        out = [
            (f"{b} {v[0]} {a}", 1),
            (f"{a} {v[0]} {b}", 0),
            (f"{b} {self.be(b)} {v[1]} by {a}", 0),
            (f"{a} {self.be(a)} {v[1]}", 1),
        ]
        return f"{a} {self.be(a)} {v[1]} by {b}", out

    def preposition(self) -> Pair:
        a, b, c, d = self.nouns(4)
        p, v = self.rng.choice(PREPOSITIONS), self.verb()
        if self.rng.random() < 0.5:
            return f"{a} {p} {b} {v[0]} {c}", [
                (f"{b} {v[0]} {c}", 0),
                (f"{a} {v[0]} {c}", 1),
                (f"{c} {v[0]} {a}", 0),
                (f"{c} {v[0]} {b}", 0),
                (f"{c} {self.be(c)} {v[1]} by {a}", 1),
            ]
        return f"{a} {v[0]} {c} {p} {d}", [
            (f"{a} {v[0]} {c}", 1),
            (f"{a} {v[0]} {d}", 0),
            (f"{d} {v[0]} {c}", 0),
            (f"{c} {v[0]} {d}", 0),
            (f"{c} {self.be(c)} {v[1]} by {a}", 1),
        ]

    def preposition_intransitive(self) -> Pair:
        a, b = self.nouns(2)
        p, i = self.rng.choice(PREPOSITIONS), self.rng.choice(INTRANSITIVE)
        return f"{a} {p} {b} {i}", [(f"{b} {i}", 0), (f"{a} {i}", 1)]

    def relative_subject(self) -> Pair:
        a, b, c = self.nouns(3)
        v, w = self.verb(), self.verb()
        i = self.rng.choice(INTRANSITIVE)
        who = self.rng.choice(["who", "that"])
        if self.rng.random() < 0.5:
            inner, facts = f"{a} {who} {w[0]} {b}", [(f"{a} {w[0]} {b}", 1), (f"{b} {w[0]} {a}", 0)]
        else:
            inner, facts = f"{a} {who} {b} {w[0]}", [(f"{b} {w[0]} {a}", 1), (f"{a} {w[0]} {b}", 0)]
        if self.rng.random() < 0.4:
            return f"{inner} {i}", [*facts, (f"{b} {i}", 0), (f"{a} {i}", 1)]
        return f"{inner} {v[0]} {c}", [
            *facts,
            (f"{b} {v[0]} {c}", 0),
            (f"{a} {v[0]} {c}", 1),
            (f"{c} {v[0]} {a}", 0),
            (f"{c} {v[0]} {b}", 0),
            (f"{c} {self.be(c)} {v[1]} by {a}", 1),
        ]

    def relative_object(self) -> Pair:
        a, b, c = self.nouns(3)
        v, w = self.verb(), self.verb()
        who = self.rng.choice(["who", "that"])
        if self.rng.random() < 0.5:
            return f"{a} {v[0]} {b} {who} {w[0]} {c}", [
                (f"{b} {w[0]} {c}", 1),
                (f"{a} {w[0]} {c}", 0),
                (f"{a} {v[0]} {b}", 1),
                (f"{c} {w[0]} {b}", 0),
                (f"{b} {v[0]} {a}", 0),
                (f"{a} {v[0]} {c}", 0),
            ]
        return f"{a} {v[0]} {b} {who} {c} {w[0]}", [
            (f"{c} {w[0]} {b}", 1),
            (f"{b} {w[0]} {c}", 0),
            (f"{a} {v[0]} {b}", 1),
            (f"{b} {v[0]} {c}", 0),
            (f"{a} {v[0]} {c}", 0),
        ]

    def conjunction(self) -> Pair:
        a, b, c, d = self.nouns(4)
        v, w = self.verb(), self.verb()
        shape = self.rng.randrange(4)
        if shape == 0:
            return f"{a} and {b} {v[0]} {c}", [
                (f"{b} {v[0]} {c}", 1),
                (f"{a} {v[0]} {c}", 1),
                (f"{a} {v[0]} {b}", 0),
                (f"{b} {v[0]} {a}", 0),
                (f"{c} {v[0]} {b}", 0),
            ]
        if shape == 1:
            return f"{a} {v[0]} {b} and {c}", [
                (f"{a} {v[0]} {c}", 1),
                (f"{b} {v[0]} {c}", 0),
                (f"{c} {v[0]} {a}", 0),
                (f"{a} {v[0]} {b}", 1),
            ]
        if shape == 2:
            return f"{a} {v[0]} {b}, and {c} {w[0]} {d}", [
                (f"{c} {w[0]} {d}", 1),
                (f"{a} {v[0]} {b}", 1),
                (f"{a} {w[0]} {d}", 0),
                (f"{c} {v[0]} {b}", 0),
                (f"{b} {v[0]} {c}", 0),
                (f"{a} {w[0]} {b}", 0),
            ]
        return f"{a} {v[0]} {b} or {c}", [
            (f"{a} {v[0]} {b}", 0),
            (f"{a} {v[0]} {c}", 0),
            (f"{a} {v[0]} {b} or {c}", 1),
            (f"{a} {v[0]} {c} or {b}", 1),
        ]

    def adjective(self) -> Pair:
        a, b = self.nouns(2)
        if not a.startswith("the ") or not b.startswith("the "):
            return self.active()
        p, q = self.rng.sample(ADJECTIVES, 2)
        v = self.verb()
        aa, bb = f"the {p} {a[4:]}", f"the {q} {b[4:]}"
        return f"{aa} {v[0]} {bb}", [
            (f"{a} {v[0]} {b}", 1),
            (f"the {q} {a[4:]} {v[0]} {b}", 0),
            (f"{bb} {v[0]} {aa}", 0),
            (f"{aa} {v[0]} {b}", 1),
        ]

    # subsequence ---------------------------------------------------------------
    def clause_object(self) -> Pair:
        a, b = self.nouns(2)
        n, i = self.rng.choice(NPS_VERBS), self.rng.choice(INTRANSITIVE)
        that = self.rng.choice(["", "", "that "])
        return f"{a} {n} {that}{b} {i}", [(f"{a} {n} {b}", 0), (f"{b} {n} {a}", 0)] if n not in (
            "saw",
            "heard",
            "noticed",
        ) or not that else [(f"{a} {i}", 0)]

    def garden_path(self) -> Pair:
        a, b = self.nouns(2)
        z, i = self.rng.choice(NPZ_VERBS), self.rng.choice(INTRANSITIVE)
        word = self.rng.choice(["while", "when", "after", "before", "because", "although", "since", "as"])
        return f"{word} {a} {z} {b} {i}", [
            (f"{a} {z} {b}", 0),
            (f"{b} {i}", 1),
            (f"{b} {z} {a}", 0),
            (f"{a} {z}", 1),
        ]

    def participle(self) -> Pair:
        a, b, c = self.nouns(3)
        v, w = self.verb(), self.verb()
        i = self.rng.choice(INTRANSITIVE)
        place = self.rng.choice(
            [
                "in the park",
                "at the party",
                "near the harbour",
                "in the library",
                "at the station",
                "in the hotel",
            ]
        )
        if self.rng.random() < 0.5:
            return f"{a} {v[1]} {place} {i}", [
                (f"{a} {v[0]} {place}" if v[0] != v[1] else f"{a} {v[0]} someone {place}", 0),
                (f"{a} {i}", 1),
                (f"{a} {self.be(a)} {v[1]} {place}", 1),
            ]
        return f"{a} {v[1]} by {b} {w[0]} {c}", [
            (f"{a} {v[0]} {b}", 0),
            (f"{b} {v[0]} {a}", 1),
            (f"{b} {w[0]} {c}", 0),
            (f"{a} {w[0]} {c}", 1),
            (f"{c} {w[0]} {a}", 0),
        ]

    def object_participle(self) -> Pair:
        a, b = self.nouns(2)
        v, w = self.verb(), self.verb()
        place = self.rng.choice(
            [
                "in the park",
                "at the party",
                "in the library",
                "at the station",
                "in the hotel",
                "near the gate",
            ]
        )
        return f"{a} {v[0]} {b} {w[1]} {place}", [
            (f"{a} {v[0]} {b}", 1),
            (f"{b} {w[0]} {place}" if w[0] != w[1] else f"{b} {w[0]} {a}", 0),
            (f"{b} {v[0]} {a}", 0),
            (f"{b} {self.be(b)} {w[1]} {place}", 1),
        ]

    def understood_object(self) -> Pair:
        a, _ = self.nouns(2)
        v, things = self.rng.choice([("ate", ["the soup", "an apple", "the bread"]), ("read", ["the letter", "a long book", "the report"]), ("wrote", ["a poem", "the report"]),
                                     ("sang", ["an old song", "the anthem"]), ("drank", ["the tea", "some juice"]), ("painted", ["the fence", "a landscape"]),
                                     ("studied", ["the map", "chemistry"]), ("cooked", ["some rice", "the fish"])])  # fmt: skip
        thing = self.rng.choice(things)
        other = self.rng.choice(["the table", "a stone", "the newspaper"])
        return f"{a} {v} {thing}", [(f"{a} {v}", 1), (f"{a} {v} {other}", 0)]

    # constituents --------------------------------------------------------------
    def _clause(self) -> tuple[str, str]:
        """A clause and a wrong variant of it."""
        if self.rng.random() < 0.5:
            a, b = self.nouns(2)
            v = self.verb()
            return f"{a} {v[0]} {b}", f"{b} {v[0]} {a}"
        a, b = self.nouns(2)
        i, j = self.rng.sample(INTRANSITIVE, 2)
        return f"{a} {i}", f"{a} {j}"

    def conditional(self) -> Pair:
        (p, _), (q, qx) = self._clause(), self._clause()
        word = self.rng.choice(IF_WORDS)
        text = f"{word} {p}, {q}" if self.rng.random() < 0.6 else f"{q} {word} {p}"
        sure = word == "whether or not"
        return text, [(p, 0), (q, 1 if sure else 0), *([(qx, 0)] if sure else [(text, 1), (qx, 0)])]

    def subordinate(self) -> Pair:
        (p, px), (q, qx) = self._clause(), self._clause()
        word = self.rng.choice(FACT_WORDS)
        text = f"{word} {p}, {q}" if self.rng.random() < 0.6 else f"{q} {word} {p}"
        return text, [(p, 1), (q, 1), (px, 0), (qx, 0)]

    def embedded(self) -> Pair:
        a, _ = self.nouns(2)
        p, px = self._clause()
        if self.rng.random() < 0.5:
            return f"{a} {self._agree(a, self.rng.choice(FACTIVE))} {p}", [(p, 1), (px, 0)]
        return f"{a} {self._agree(a, self.rng.choice(NONFACTIVE))} {p}", [(p, 0), (px, 0)]

    def _agree(self, noun: str, phrase: str) -> str:
        return phrase.replace("was ", self.be(noun) + " ") if phrase.startswith("was ") else phrase

    def adverb(self) -> Pair:
        p, px = self._clause()
        if self.rng.random() < 0.5:
            return f"{self.rng.choice(SURE_ADVERBS)}{self.rng.choice([',', ''])} {p}", [(p, 1), (px, 0)]
        return f"{self.rng.choice(UNSURE_ADVERBS)}{self.rng.choice([',', ''])} {p}", [(p, 0), (px, 0)]

    def disjunction(self) -> Pair:
        (p, px), (q, qx) = self._clause(), self._clause()
        if self.rng.random() < 0.5:
            text = f"{'either ' if self.rng.random() < 0.3 else ''}{p}, or {q}"
            return text, [(p, 0), (q, 0), (text, 1)]
        return f"{p}, and {q}", [(p, 1), (q, 1), (px, 0), (qx, 0)]

    SHAPES = ("active", "passive", "preposition", "preposition_intransitive", "relative_subject", "relative_object", "conjunction", "adjective",
              "clause_object", "garden_path", "participle", "object_participle", "understood_object", "conditional", "subordinate", "embedded",
              "adverb", "disjunction")  # fmt: skip

    def make(self) -> Pair:
        """One context with one or two statements, labels balanced over many draws."""
        shape = self.rng.choice(self.SHAPES)
        context, options = getattr(self, shape)()
        style = self.rng.choice([".", " .", "."])
        done = lambda t: self.cap(t) + style  # noqa: E731
        yes = [o for o in options if o[1]]
        no = [o for o in options if not o[1]]
        picked = ([self.rng.choice(yes)] if yes else []) + ([self.rng.choice(no)] if no else [])
        return done(context), [(done(t), label) for t, label in picked]


class Monotone:
    """What follows when a part of a sentence is made wider or narrower."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def noun(self) -> tuple[str, str]:
        """(wider, narrower) plural noun phrases."""
        rng = self.rng
        wide = rng.choice(list(NOUN_TREES))
        r = rng.random()
        if r < 0.5:
            return wide, rng.choice(NOUN_TREES[wide])
        if r < 0.8:
            return wide, f"{wide} {rng.choice(RESTRICTIONS)}"
        return (
            wide,
            f"{rng.choice(['small', 'old', 'expensive', 'Italian', 'local', 'young', 'cheap', 'broken', 'new'])} {wide}",
        )

    def verb(self) -> tuple[str, str]:
        wide = self.rng.choice(list(VERB_TREES))
        return wide, self.rng.choice(VERB_TREES[wide])

    # quantifier: monotone direction of (noun, verb); 1 up, -1 down, 0 neither
    QUANTIFIERS = (
        ("all", -1, 1), ("every one of the", -1, 1), ("all of the", 0, 1), ("some", 1, 1), ("several", 1, 1), ("many", 0, 1), ("most", 0, 1),
        ("no", -1, -1), ("none of the", 0, -1), ("few", 0, -1), ("at least three", 1, 1), ("at least ten", 1, 1), ("more than five", 1, 1), ("more than two", 1, 1),
        ("at most four", -1, -1), ("fewer than six", -1, -1), ("less than ten", -1, -1), ("exactly three", 0, 0), ("exactly seven", 0, 0), ("a few", 1, 1),
        ("both", 0, 1), ("not all", 1, -1), ("hardly any", 0, -1), ("only some", 0, 0), ("three", 1, 1),
    )  # fmt: skip

    def quantified(self) -> Pair:
        rng = self.rng
        q, up_n, up_v = rng.choice(self.QUANTIFIERS)
        (nw, nn), (vw, vn) = self.noun(), self.verb()
        out = []
        if rng.random() < 0.5:
            start, end, up = (nn, nw, up_n) if rng.random() < 0.5 else (nw, nn, -up_n)
            label = int(up == 1)
            v = rng.choice([vw, vn])
            context, statement = f"{q} {start} {v}", f"{q} {end} {v}"
        else:
            start, end, up = (vn, vw, up_v) if rng.random() < 0.5 else (vw, vn, -up_v)
            label = int(up == 1)
            n = rng.choice([nw, nn])
            context, statement = f"{q} {n} {start}", f"{q} {n} {end}"
        out.append((statement, label))
        return context, out

    def environments(self) -> Pair:
        """Negation, conditionals, `without`, `rarely`, comparatives and their opposites."""
        rng = self.rng
        name = rng.choice(FIRST)
        nw, nn = self.noun()
        frames = [
            ("{n} bought {x}", 1), ("{n} did not buy {x}", -1), ("{n} never saw any {x}", -1), ("{n} saw {x}", 1), ("{n} lived without {x}", -1),
            ("{n} rarely sees {x}", -1), ("{n} refused to sell {x}", -1), ("If {n} sees any {x}, the alarm rings", -1), ("{n} would be happy to have {x}", 1),
            ("Everyone who likes {x} knows {n}", -1), ("Someone who likes {x} knows {n}", 1), ("Nobody gave {n} {x}", -1), ("{n} left without seeing any {x}", -1),
            ("{n} took pictures of {x}", 1), ("Hardly anyone showed {n} any {x}", -1), ("{n} doubts that there are any {x} in the building", -1),
            ("{n} knows that there are {x} in the building", 1), ("It is forbidden for {n} to touch any {x}", -1), ("{n} is afraid of all {x}", -1),
            ("{n} lacks {x}", -1), ("Before {n} had any {x}, life was quiet", -1), ("At least one person in the room saw {n} with {x}", 1),
            ("{n} doesn't like {x}", -1), ("{n} hasn't got any {x}", -1), ("No one who owns {x} has met {n}", -1), ("{n} found {x} in the cellar", 1),
        ]  # fmt: skip
        frame, up = rng.choice(frames)
        a, b = (nn, nw) if rng.random() < 0.5 else (nw, nn)
        label = int((a == nn) == (up == 1))
        return frame.format(n=name, x=a), [(frame.format(n=name, x=b), label)]

    def verb_environments(self) -> Pair:
        rng = self.rng
        name = rng.choice(FIRST)
        vw, vn = self.verb()
        frames = [
            ("{n} {v}", 1), ("It is not true that {n} {v}", -1), ("If {n} {v}, the others were surprised", -1), ("Nobody in the house {v}", -1),
            ("Someone in the house {v}", 1), ("{n} and a friend {v}", 1), ("Everyone who {v} was invited", -1), ("None of the guests {v}", -1),
            ("Yesterday {n} {v}", 1), ("I doubt that {n} {v}", -1), ("We know that {n} {v}", 1), ("No one but {n} {v}", 0), ("Neither {n} nor the others {v}", -1),
            ("Only {n} {v}", 0), ("When {n} {v}, it was already dark", 1),
        ]  # fmt: skip
        frame, up = rng.choice(frames)
        a, b = (vn, vw) if rng.random() < 0.5 else (vw, vn)
        label = 0 if up == 0 else int((a == vn) == (up == 1))
        return frame.format(n=name, v=a), [(frame.format(n=name, v=b), label)]

    def counts(self) -> Pair:
        """Bounds against bounds, numbers against bounds."""
        rng = self.rng
        n = rng.randrange(3, 60)
        d = rng.randrange(1, max(2, n // 2) + 1)
        nw, nn = self.noun()
        vw, _ = self.verb()
        x = rng.choice([nw, nn])
        facts = [
            (f"{n} {x} {vw}", [(f"at least {n - d} {x} {vw}", 1), (f"more than {n + d} {x} {vw}", 0), (f"more than {n - d} {x} {vw}", 1), (f"some {x} {vw}", 1), (f"exactly {n + d} {x} {vw}", 0), (f"no {x} {vw}", 0)]),
            (f"more than {n} {x} {vw}", [(f"more than {n - d} {x} {vw}", 1), (f"more than {n + d} {x} {vw}", 0), (f"at least {n} {x} {vw}", 1), (f"fewer than {n} {x} {vw}", 0), (f"exactly {n} {x} {vw}", 0)]),
            (f"fewer than {n} {x} {vw}", [(f"fewer than {n + d} {x} {vw}", 1), (f"fewer than {n - d} {x} {vw}", 0), (f"at most {n} {x} {vw}", 1), (f"more than {n} {x} {vw}", 0)]),
            (f"exactly {n} {x} {vw}", [(f"at least {n} {x} {vw}", 1), (f"at most {n + d} {x} {vw}", 1), (f"fewer than {n} {x} {vw}", 0), (f"exactly {n - d} {x} {vw}", 0)]),
            (f"all {x} {vw}", [(f"most {x} {vw}", 1), (f"no {x} {vw}", 0), (f"not all {x} {vw}", 0)]),
            (f"most {x} {vw}", [(f"all {x} {vw}", 0), (f"some {x} {vw}", 1), (f"no {x} {vw}", 0)]),
            (f"some {x} {vw}", [(f"all {x} {vw}", 0), (f"most {x} {vw}", 0), (f"at least one of the {x} {vw}", 1)]),
            (f"no {x} {vw}", [(f"some {x} {vw}", 0), (f"none of the {x} {vw}", 1), (f"at most {n} {x} {vw}", 1), (f"not all {x} {vw}", 1)]),
        ]  # fmt: skip
        context, options = rng.choice(facts)
        yes = [o for o in options if o[1]]
        no = [o for o in options if not o[1]]
        return context, [rng.choice(yes), rng.choice(no)]

    def made(self, count: int) -> list[Pair]:
        """`count` contexts; the one-statement shapes are balanced by rejection."""
        rng = self.rng
        out: list[Pair] = []
        seen = [0, 0]
        while len(out) < count:
            context, statements = rng.choice(
                [
                    self.quantified,
                    self.quantified,
                    self.environments,
                    self.environments,
                    self.verb_environments,
                    self.counts,
                ]
            )()
            if len(statements) == 1:
                label = statements[0][1]
                if seen[label] > seen[1 - label] + 5:
                    continue
                seen[label] += 1
            stop = rng.choice([".", ".", "", " ."])
            fix = lambda t: t[0].upper() + t[1:] + stop  # noqa: E731, B023
            out.append((fix(context), [(fix(s), y) for s, y in statements]))
        return out
