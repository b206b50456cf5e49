"""Short invented documents with statements that follow and statements that do not."""

from __future__ import annotations

import random

from training.lexicon import CITIES, COMPANIES, COUNTRIES, DAYS, FIRST, LAST, MONTHS, NUMBER_WORDS
from training.passages import Item

JOBS = [
    "engineer",
    "nurse",
    "teacher",
    "chemist",
    "architect",
    "pilot",
    "lawyer",
    "designer",
    "accountant",
    "biologist",
    "journalist",
    "chef",
]
PRODUCTS = [
    "bicycles",
    "solar panels",
    "headphones",
    "coffee machines",
    "tractors",
    "running shoes",
    "batteries",
    "wind turbines",
    "kitchen knives",
    "board games",
    "printers",
    "tents",
]
SUBJECTS = [
    "physics",
    "history",
    "economics",
    "medicine",
    "law",
    "biology",
    "music",
    "chemistry",
    "philosophy",
    "mathematics",
]

LANGUAGES = {
    "es": (["{n} nació en {c} en {y}.", "La empresa {k} vendió {q} {p} en {y}.", "La reunión es el {d} de {m} a las {h}."],
           {"p": ["bicicletas", "libros", "coches", "relojes"], "m": ["enero", "marzo", "mayo", "julio", "octubre"]}),
    "de": (["{n} wurde {y} in {c} geboren.", "Die Firma {k} verkaufte {y} {q} {p}.", "Das Treffen ist am {d}. {m} um {h} Uhr."],
           {"p": ["Fahrräder", "Bücher", "Autos", "Uhren"], "m": ["Januar", "März", "Mai", "Juli", "Oktober"]}),
    "fr": (["{n} est né à {c} en {y}.", "L'entreprise {k} a vendu {q} {p} en {y}.", "La réunion a lieu le {d} {m} à {h} heures."],
           {"p": ["vélos", "livres", "voitures", "montres"], "m": ["janvier", "mars", "mai", "juillet", "octobre"]}),
    "pt": (["{n} nasceu em {c} em {y}.", "A empresa {k} vendeu {q} {p} em {y}.", "A reunião é no dia {d} de {m} às {h} horas."],
           {"p": ["bicicletas", "livros", "carros", "relógios"], "m": ["janeiro", "março", "maio", "julho", "outubro"]}),
    "it": (["{n} è nato a {c} nel {y}.", "L'azienda {k} ha venduto {q} {p} nel {y}.", "La riunione è il {d} {m} alle {h}."],
           {"p": ["biciclette", "libri", "auto", "orologi"], "m": ["gennaio", "marzo", "maggio", "luglio", "ottobre"]}),
    "pl": (["{n} urodził się w {y} roku w mieście {c}.", "Firma {k} sprzedała {q} sztuk w {y} roku.", "Spotkanie jest {d} {m} o godzinie {h}."],
           {"p": ["rowerów"], "m": ["stycznia", "marca", "maja", "lipca", "października"]}),
    "ja": (["{n}は{y}年に{c}で生まれた。", "{k}は{y}年に{p}を{q}台売った。", "会議は{m}月{d}日の{h}時です。"],
           {"p": ["自転車", "車", "時計"], "m": ["1", "3", "5", "7", "10"]}),
    "zh": (["{n}于{y}年出生在{c}。", "{k}在{y}年卖出了{q}辆{p}。", "会议在{m}月{d}日{h}点举行。"],
           {"p": ["自行车", "汽车"], "m": ["1", "3", "5", "7", "10"]}),
}  # fmt: skip


class Facts:
    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def name(self) -> str:
        return f"{self.rng.choice(FIRST)} {self.rng.choice(LAST)}"

    def other(self, pool: list, *used):
        return self.rng.choice([x for x in pool if x not in used])

    def biography(self) -> Item:
        rng = self.rng
        n = self.name()
        y, y2 = rng.randrange(1900, 1990), 0
        y2 = y + rng.randrange(20, 40)
        c, c2 = rng.sample(CITIES, 2)
        k = rng.choice(COMPANIES)
        j, s = rng.choice(JOBS), rng.choice(SUBJECTS)
        kids = rng.randrange(2, 6)
        d, m = rng.randrange(1, 29), rng.choice(MONTHS)
        partner = self.name()
        text = [
            f"{n} was born on {d} {m} {y} in {c}.", f"After studying {s} in {c2}, {n.split()[0]} joined {k} as {'an' if j[0] in 'aeiou' else 'a'} {j} in {y2}.",
            f"{n.split()[1]} married {partner} and they had {NUMBER_WORDS[kids]} children.", f"In {y2 + 8}, {k} moved its head office from {c2} to {self.other(CITIES, c, c2)}.",
        ]  # fmt: skip
        yes = [f"{n} was born in {c}.", f"{n}'s birthday is {m} {d}.", f"{n} studied {s}.", f"{n} worked at {k}.", f"{n} worked as {'an' if j[0] in 'aeiou' else 'a'} {j}.",
               f"{n} had {kids} children.", f"{n} and {partner} were married.", f"{n} was born before {y + rng.randrange(2, 20)}.", f"{n} was born in {y} and studied {s}.",
               f"{k} hired {n} in {y2}.", f"{n} had more than {NUMBER_WORDS[kids - 1]} children.", f"{n} was born in the {y // 10 * 10}s.", f"{k}'s head office was in {c2} until {y2 + 8}."]  # fmt: skip
        no = [f"{n} was born in {c2}.", f"{n} was born in {y + rng.choice([-9, -1, 1, 4, 10])}.", f"{n} studied {self.other(SUBJECTS, s)}.", f"{n} founded {k}.", f"{n} had {kids + rng.choice([-1, 1, 2])} children.",
              f"{partner} was born in {c}.", f"{n} never married.", f"{n} died in {y2 + 30}.", f"{n} was born in {y} and studied {self.other(SUBJECTS, s)}.", f"{partner} joined {k} in {y2}.",
              f"{n} left {k} in {y2}.", f"{n} had more than {NUMBER_WORDS[kids + 1]} children.", f"{n} won a prize for work in {s}.", f"{k} moved its head office from {c} to {c2}.",
              f"{n} was born after {y + rng.randrange(2, 20)}.", f"{n} joined {k} before studying {s}."]  # fmt: skip
        return self.pick(
            "facts", " ".join(text[: rng.randrange(3, 5)]) if rng.random() < 0 else " ".join(text), yes, no
        )

    def sales(self) -> Item:
        rng = self.rng
        k, k2 = rng.sample(COMPANIES, 2)
        p = rng.choice(PRODUCTS)
        a = rng.randrange(20, 900) * 10
        b = a + rng.choice([-1, 1]) * rng.randrange(2, 19) * 10
        b = max(b, 30)
        if a == b:
            b += 50
        y = rng.randrange(1995, 2025)
        r = rng.randrange(3, 60)
        dec = rng.random() < 0.3
        rate = f"{r},{rng.randrange(1, 10)} %" if dec else f"{r} percent"
        up = rng.random() < 0.5
        text = (f"In {y}, {k} sold {a:,} {p}, while {k2} sold {b:,}. {k}'s profit {'rose' if up else 'fell'} by {rate}. "
                f"{k} has {rng.choice(['offices', 'shops'])} in {(x := rng.sample(COUNTRIES, 3))[0]}, {x[1]} and {x[2]}.")  # fmt: skip
        more, less = (k, k2) if a > b else (k2, k)
        yes = [f"{more} sold more {p} than {less} in {y}.", f"{less} sold fewer {p} than {more} in {y}.", f"{k} sold more than {a - 10:,} {p} in {y}.", f"{k}'s profit {'increased' if up else 'decreased'}.",
               f"{k} is present in {rng.choice(x)}.", f"{k} sold at least {a:,} {p} in {y}.", f"{k2} sold {b} {p} in {y}.", f"{k} sold {a:,} {p} and its profit {'went up' if up else 'went down'}.",
               f"Together, {k} and {k2} sold {a + b:,} {p} in {y}." if rng.random() < 0.4 else f"{k} sold {p}.", f"The profit of {k} {'grew' if up else 'shrank'} by {rate}."]  # fmt: skip
        no = [f"{less} sold more {p} than {more} in {y}.", f"{k} sold more than {a + 10:,} {p} in {y}.", f"{k} sold {b:,} {p} in {y}.", f"{k}'s profit {'decreased' if up else 'increased'}.",
              f"{k} is present in {self.other(COUNTRIES, *x)}.", f"{k2} is present in {x[0]}.", f"{k2}'s profit {'rose' if up else 'fell'} by {rate}.", f"{k} sold fewer than {a - 10:,} {p} in {y}.",
              f"{k} sold {a:,} {p} in {y + 1}.", f"{k} sold {a:,} {p} and its profit {'went down' if up else 'went up'}.", f"The profit of {k} {'grew' if up else 'shrank'} by {r + rng.randrange(1, 9)} percent.",
              f"{k} plans to open an office in {x[1]} next year.", f"{k} is the largest maker of {p} in the world."]  # fmt: skip
        return self.pick("facts", text, yes, no)

    def event(self) -> Item:
        rng = self.rng
        n, n2 = self.name(), self.name()
        d, d2 = rng.sample(DAYS, 2)
        h = rng.randrange(8, 12)
        c = rng.choice(CITIES)
        room = rng.randrange(100, 400)
        cost = rng.randrange(5, 90)
        people = rng.randrange(20, 300)
        text = (f"The workshop by {n} takes place on {d} at {h} a.m. in room {room} and lasts two hours. The talk by {n2} has been moved to {d2}. "
                f"Tickets cost {cost} euros; members get in free. All {people} seats are taken. Lunch is not included.")  # fmt: skip
        yes = [f"{n}'s workshop is on {d}.", f"The workshop starts at {h}:00.", f"The workshop ends at {h + 2} a.m." if h + 2 < 12 else f"The workshop starts at {h} in the morning.", f"The talk by {n2} is on {d2}.", "Members do not have to pay.",
               f"A ticket costs €{cost}.", "There are no free seats left.", "Lunch is not part of the price.", f"{n} gives a workshop in room {room}.", "The workshop lasts 2 hours.", f"{n2} gives a talk and {n} gives a workshop."]  # fmt: skip
        no = [f"{n}'s workshop is on {d2}.", f"{n2} gives the workshop.", f"The workshop starts at {h + 1}:00.", "Members pay half price.", f"A ticket costs €{cost + 5}.", "Seats are still available.", "Lunch is included.",
              f"The talk by {n2} was cancelled.", f"The workshop takes place in {c}.", "The workshop lasts three hours.", f"{n} gives a talk on {d2}.", f"The talk by {n2} is in room {room}.", f"Half of the {people} seats are taken."]  # fmt: skip
        return self.pick("facts", text, yes, no)

    def trace(self) -> Item:
        """What a tool returned against what is claimed."""
        rng = self.rng
        n, c = self.name(), rng.choice(CITIES)
        code = f"{rng.choice('ABCDEFGHK')}{rng.randrange(100, 999)}"
        verb, done, thing = rng.choice([("book_flight", "booked", f"a flight to {c}"), ("cancel_order", "cancelled", f"order {code}"), ("send_email", "sent", f"the email to {n}"), ("refund", "refunded", f"order {code}"),
                                        ("create_ticket", "created", f"ticket {code}"), ("delete_file", "deleted", f"the file {code.lower()}.txt"), ("update_address", "updated", f"the address of {n}")])  # fmt: skip
        ok = rng.random() < 0.5
        result = (
            rng.choice([f'{{"status": "ok", "id": "{code}"}}', f"Success: {code}", f"200 OK {code}", "done"])
            if ok
            else rng.choice(
                [
                    '{"status": "error", "message": "permission denied"}',
                    "Error: not found",
                    "500 Internal Server Error",
                    "Timeout: no response",
                    "failed: quota exceeded",
                ]
            )
        )
        claim = rng.random() < 0.5
        text = f"user: Please {verb.replace('_', ' ')}: {thing}.\nassistant calls {verb} {{\"target\": \"{thing}\"}}\ntool: {result}\nassistant: " + (
            f"All set, {thing} has been {done}." if ok or claim else "I'm sorry, that did not work.")  # fmt: skip
        yes = [
            f"The tool {'reported success' if ok else 'returned an error'}.",
            f"The assistant called {verb}.",
            f"{thing[0].upper() + thing[1:]} was {done}." if ok else f"The {verb} call failed.",
            "The user asked the assistant to do something.",
        ]
        no = [
            f"The tool {'returned an error' if ok else 'reported success'}.",
            f"{thing[0].upper() + thing[1:]} was {done}." if not ok else f"The {verb} call failed.",
            "The assistant called no tool.",
            f"The user asked for the weather in {c}.",
        ]
        return self.pick("facts trace", text, yes, no)

    def multilingual(self) -> Item:
        rng = self.rng
        lang = rng.choice(list(LANGUAGES))
        templates, words = LANGUAGES[lang]

        def values():
            return {"n": self.name(), "c": rng.choice(CITIES), "y": rng.randrange(1900, 2024), "k": rng.choice(COMPANIES), "q": rng.randrange(20, 900), "p": rng.choice(words["p"]),
                    "d": rng.randrange(1, 29), "m": rng.choice(words["m"]), "h": rng.randrange(8, 20)}  # fmt: skip

        v = values()
        yes = [t.format(**v) for t in templates]
        no = []
        for t in templates:
            keys = [k for k in v if "{" + k + "}" in t]
            for _ in range(4):
                key = rng.choice(keys)
                fresh = values()[key]
                if fresh != v[key]:
                    no.append(t.format(**{**v, key: fresh}))
        context = " ".join(yes) if lang not in ("ja", "zh") else "".join(yes)
        if rng.random() < 0.5:
            yes.append(yes[0][:-1] + {"ja": "。", "zh": "。"}.get(lang, "."))
        return self.pick("facts languages", context, yes, no)

    def formats(self) -> Item:
        """The same date, number or duration written in another way."""
        rng = self.rng
        d, mi, y = rng.randrange(1, 29), rng.randrange(1, 13), rng.randrange(1980, 2030)
        m = MONTHS[mi - 1]
        n = self.name()
        num = rng.randrange(1200, 99000)
        pct = rng.choice(
            [
                ("half", "50 %"),
                ("a quarter", "25 %"),
                ("three quarters", "75 %"),
                ("a third", "about 33 %"),
                ("a tenth", "10 %"),
            ]
        )
        h = rng.randrange(13, 24)
        text = f"Contract {num:,} was signed by {n} on {d} {m} {y} at {h}:30. It covers {pct[0]} of the costs and runs for {rng.choice(['two years', '24 months'])}. The fee is 1.{rng.randrange(1, 9)} million dollars."
        wrong_m = self.other(MONTHS, m)
        yes = [f"{n} signed the contract on {m} {d}, {y}.", f"The contract was signed on {y}-{mi:02d}-{d:02d}.", f"The contract covers {pct[1]} of the costs.", f"The contract was signed at half past {h - 12} in the afternoon or evening.",
               "The contract runs for more than a year.", f"The number of the contract is {num}.", f"The contract was signed in {m}.", "The fee is more than one million dollars.", "The contract runs for two years."]  # fmt: skip
        no = [f"{n} signed the contract on {wrong_m} {d}, {y}.", f"The contract was signed on {y}-{mi:02d}-{(d % 28) + 1:02d}.", f"The contract covers {rng.choice(['60 %', '15 %', '90 %', '5 %'])} of the costs.", f"The contract was signed at {h - 12}:30 a.m.",
              "The contract runs for more than three years.", f"The number of the contract is {num + 100}.", f"The contract was signed in {wrong_m} {y}.", "The fee is less than one million dollars.", "The contract was cancelled.", "The fee was paid in advance."]  # fmt: skip
        return self.pick("facts", text, yes, no)

    def pick(self, kind: str, context: str, yes: list[str], no: list[str]) -> Item:
        k = min(self.rng.choice([2, 3, 4]), len(yes), len(no))
        out = [(s, 1) for s in self.rng.sample(yes, k)] + [(s, 0) for s in self.rng.sample(no, k)]
        return Item(kind, context, tuple(out))

    def make(self, count: int) -> list[Item]:
        shapes = [self.biography, self.sales, self.event, self.trace, self.multilingual, self.formats]
        return [self.rng.choice(shapes)() for _ in range(count)]
