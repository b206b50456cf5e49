"""Minimal pairs in running text: several things of one kind, described side by side.

Every document describes two to four things with the same attributes, so each
value has rivals of its own kind in the same text.  A supported statement and an
unsupported one differ in a value that belongs to another thing, in a polarity,
in a direction or in an attribute that the text leaves out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from training.facts import LANGUAGES
from training.lexicon import CITIES, COMPANIES, COUNTRIES, DAYS, FIRST, LAST, MONTHS, NUMBER_WORDS
from training.passages import Item

Make = Callable[[random.Random], object]


@dataclass(frozen=True)
class Value:
    """An attribute: how its value is made, how a text says it, how a statement says it."""

    make: Make
    text: tuple[str, ...]
    claim: tuple[str, ...]
    more: tuple[str, ...] = ()  # comparisons, `{a}` has more than `{b}`
    less: tuple[str, ...] = ()


@dataclass(frozen=True)
class Flag:
    """An attribute that holds or does not: text and claims for either."""

    yes: tuple[str, ...]
    no: tuple[str, ...]
    claim_yes: tuple[str, ...]
    claim_no: tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of thing: its names, its noun, what is said about it, and sentences that say nothing."""

    names: Callable[[random.Random, int], list[str]]
    noun: str
    values: tuple[Value, ...]
    flags: tuple[Flag, ...]
    filler: tuple[str, ...]


def number(low: int, high: int, step: int = 1) -> Make:
    return lambda rng: rng.randrange(low, high, step)


def one_of(values: list[str]) -> Make:
    return lambda rng: rng.choice(values)


def person(rng: random.Random) -> str:
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def day(rng: random.Random) -> str:
    d, m = rng.randrange(1, 29), rng.choice(MONTHS)
    return rng.choice([f"{d} {m}", f"{m} {d}"])


def price(rng: random.Random) -> str:
    return rng.choice([f"{rng.randrange(3, 400)}.{rng.randrange(10, 99)}", str(rng.randrange(3, 900))])


def people(rng: random.Random, n: int) -> list[str]:
    return [f"{a} {b}" for a, b in zip(rng.sample(FIRST, n), rng.sample(LAST, n), strict=True)]


def named(firsts: list[str], seconds: list[str]) -> Callable[[random.Random, int], list[str]]:
    def names(rng: random.Random, n: int) -> list[str]:
        second = rng.choice(seconds)
        same = rng.random() < 0.5
        return [f"{f} {second if same else rng.choice(seconds)}" for f in rng.sample(firsts, n)]

    return names


def companies(rng: random.Random, n: int) -> list[str]:
    return rng.sample(COMPANIES, n)


PLACE = ["Falcon", "Marsh", "Copper", "Linden", "Harrow", "Quarry", "Silver", "Juniper", "Raven", "Orchard", "Granite",
         "Willow", "Anchor", "Saffron", "Thistle", "Beacon", "Otter", "Amber", "Cedar", "Larch"]  # fmt: skip
DEVICE = [
    "Vexa",
    "Tolmo",
    "Brisk",
    "Quanta",
    "Helio",
    "Norda",
    "Pluvia",
    "Corvo",
    "Zephyr",
    "Mira",
    "Lumo",
    "Astra",
]
WORDS = list(NUMBER_WORDS[2:13])
COLOURS = ["red", "blue", "green", "yellow", "white", "black", "grey", "orange", "brown"]
MATERIAL = ["steel", "oak", "brick", "glass", "limestone", "concrete", "bamboo", "copper", "sandstone"]

KINDS = [
    Kind(
        named(PLACE, ["Bridge", "Tower", "Library", "Hall", "Museum", "Station", "Theatre", "Chapel"]), "building",
        (
            Value(number(1720, 2015), ("{n} was finished in {v}", "work on {n} ended in {v}", "{n} opened its doors in {v}"),
                  ("{n} was completed in {v}.", "The year in which {n} opened is {v}.", "{n} dates from {v}."),
                  ("{a} is newer than {b}.", "{a} was built later than {b}.", "{a} was finished after {b}."),
                  ("{a} is older than {b}.", "{a} was built earlier than {b}.", "{a} was finished before {b}.")),
            Value(number(12, 190), ("{n} is {v} metres tall", "{n} reaches a height of {v} metres", "at its highest point {n} measures {v} metres"),
                  ("{n} has a height of {v} metres.", "{n} is {v} metres high."), ("{a} is taller than {b}.", "{a} is the higher of the two, compared with {b}."), ("{a} is lower than {b}.", "{a} is not as tall as {b}.")),
            Value(person, ("{n} was designed by {v}", "the plans for {n} were drawn by {v}", "{v} was the architect of {n}"), ("{v} designed {n}.", "The architect of {n} was {v}.", "{n} is the work of {v}.")),
            Value(one_of(CITIES), ("{n} stands in {v}", "visitors find {n} in {v}", "{n} is one of the sights of {v}"), ("{n} is located in {v}.", "{n} is in {v}.", "{v} is where {n} stands.")),
            Value(one_of(MATERIAL), ("{n} is built of {v}", "its builders used {v} for {n}"), ("{n} is made of {v}.", "The material of {n} is {v}.")),
        ),
        (
            Flag(("{n} is open to the public", "anyone may visit {n}"), ("{n} is closed to visitors", "the public has no access to {n}"), ("Visitors can enter {n}.", "{n} is open to the public.", "The public may visit {n}."), ("Visitors cannot enter {n}.", "{n} is not open to the public.", "{n} is closed to the public.")),
            Flag(("{n} survived the fire of 1904", "the fire of 1904 did no harm to {n}"), ("{n} burned down in 1904", "{n} was destroyed by the fire of 1904"), ("{n} was still standing after the fire of 1904.", "The fire did not destroy {n}."), ("{n} was lost in the fire of 1904.", "The fire destroyed {n}.")),
        ),
        ("Local guides like to tell stories about it.", "Its history is well documented.", "Photographers come in the early morning.", "A small café stands next to it."),
    ),
    Kind(
        people, "person",
        (
            Value(one_of(["nurse", "pilot", "carpenter", "baker", "lawyer", "surgeon", "gardener", "translator", "geologist", "painter", "plumber", "librarian"]),
                  ("{n} works as a {v}", "{n} earns a living as a {v}", "{n} has been a {v} for years"), ("{n} is a {v}.", "{n} is a {v} by profession.", "The profession of {n} is {v}.")),
            Value(one_of(CITIES), ("{n} lives in {v}", "{n} moved to {v} last year", "the home of {n} is in {v}"), ("{n}'s home is in {v}.", "{n} is a resident of {v}.", "{n} lives in {v}.")),
            Value(number(19, 88), ("{n} is {v} years old", "{n} turned {v} this spring", "at the age of {v}, {n} still likes to travel"), ("{n} is {v}.", "{n}'s age is {v}."), ("{a} is older than {b}.",), ("{a} is younger than {b}.",)),
            Value(one_of(["Spanish", "Korean", "Arabic", "Dutch", "Greek", "Hindi", "Swedish", "Turkish"]), ("{n} speaks {v}", "{n} grew up speaking {v}", "{n} is fluent in {v}"), ("{n} can speak {v}.", "{n} knows {v}.", "{v} is a language that {n} speaks.")),
            Value(one_of(["two sons", "a daughter", "three daughters", "twin brothers", "four sisters", "one son"]), ("{n} has {v}", "the family of {n} includes {v}"), ("{n} has {v}.",)),
        ),
        (
            Flag(("{n} accepted the offer", "{n} said yes to the offer"), ("{n} turned the offer down", "{n} declined the offer"), ("{n} took the offer.", "{n} did not reject the offer.", "The offer was accepted by {n}."), ("{n} rejected the offer.", "{n} did not accept the offer.", "{n} refused the offer.")),
            Flag(("{n} has a driving licence", "{n} is allowed to drive"), ("{n} never learned to drive", "{n} has no driving licence"), ("{n} may drive a car.", "{n} holds a driving licence."), ("{n} may not drive a car.", "{n} does not hold a driving licence.")),
        ),
        ("Friends describe a quiet and patient character.", "They met at a summer school.", "Sundays are kept free for the garden.", "Most evenings end with a book."),
    ),
    Kind(
        named(DEVICE, ["X2", "Pro", "Mini", "500", "Air", "S", "Max", "Go"]), "device",
        (
            Value(price, ("{n} costs {v} euros", "the price of {n} is {v} euros", "{n} sells for {v} euros"), ("{n} is sold at {v} euros.", "A buyer pays {v} euros for {n}.", "The price of {n} is €{v}."), ("{a} is more expensive than {b}.", "{a} costs more than {b}."), ("{a} is cheaper than {b}.", "{a} costs less than {b}.")),
            Value(number(3, 60), ("the battery of {n} lasts {v} hours", "{n} runs for {v} hours on one charge"), ("{n} works for {v} hours without charging.", "The battery life of {n} is {v} hours."), ("{a} runs longer on a charge than {b}.", "The battery of {a} lasts longer than that of {b}."), ("{a} runs out of power sooner than {b}.", "The battery of {a} does not last as long as that of {b}.")),
            Value(number(110, 990, 5), ("{n} weighs {v} grams", "with a weight of {v} grams {n} fits every bag"), ("{n} has a weight of {v} grams.", "The weight of {n} is {v} g."), ("{a} is heavier than {b}.",), ("{a} is lighter than {b}.",)),
            Value(one_of(COLOURS), ("{n} comes in {v}", "the case of {n} is {v}"), ("The colour of {n} is {v}.", "{n} is {v}.")),
            Value(one_of(COUNTRIES), ("{n} is made in {v}", "the factory that builds {n} is in {v}"), ("{n} is produced in {v}.", "{v} is where {n} is manufactured.")),
            Value(one_of(WORDS), ("{n} has a guarantee of {v} years", "the maker guarantees {n} for {v} years"), ("The guarantee of {n} is valid for {v} years.", "{n} comes with a {v}-year guarantee.")),
        ),
        (
            Flag(("{n} is waterproof", "rain does not harm {n}"), ("{n} must not get wet", "{n} is not protected against water"), ("{n} can be used in the rain.", "{n} is protected against water."), ("{n} cannot be used in the rain.", "{n} is not waterproof.")),
            Flag(("{n} includes a charger", "a charger comes with {n}"), ("{n} is sold without a charger", "the charger for {n} must be bought separately"), ("Buyers of {n} get a charger with it.", "{n} comes with a charger."), ("Buyers of {n} have to buy a charger.", "{n} does not come with a charger.")),
            Flag(("{n} is in stock", "{n} can be shipped today"), ("{n} is sold out", "{n} is out of stock at the moment"), ("{n} is available.", "{n} can be ordered now."), ("{n} is not available.", "There are none left of {n}.")),
        ),
        ("Testers liked the clear display.", "The manual is printed in several languages.", "An update was announced in spring.", "Reviews have been mixed so far."),
    ),
    Kind(
        companies, "company",
        (
            Value(number(1880, 2019), ("{n} was founded in {v}", "the story of {n} begins in {v}", "{n} has been in business since {v}"), ("{n} was established in {v}.", "The founding year of {n} is {v}."), ("{a} is younger than {b}.", "{a} was founded after {b}."), ("{a} is older than {b}.", "{a} was founded before {b}.")),
            Value(number(40, 9800, 10), ("{n} employs {v} people", "{n} has {v} employees", "{v} people work for {n}"), ("The staff of {n} numbers {v}.", "{n} gives work to {v} people."), ("{a} has more employees than {b}.", "The staff of {a} is larger than that of {b}."), ("{a} has fewer employees than {b}.", "The staff of {a} is smaller than that of {b}.")),
            Value(person, ("{n} is led by {v}", "{v} is the head of {n}", "since last May {v} has been in charge of {n}"), ("{v} runs {n}.", "The head of {n} is {v}.", "{n} is headed by {v}.")),
            Value(one_of(CITIES), ("{n} has its head office in {v}", "{n} is based in {v}"), ("The head office of {n} is in {v}.", "{v} is the seat of {n}.")),
            Value(lambda rng: f"{rng.randrange(2, 48)} percent", ("the revenue of {n} grew by {v}", "{n} reported growth of {v}"), ("{n} grew by {v}.", "Growth at {n} was {v}.")),
            Value(one_of(["paint", "bicycles", "software", "furniture", "cement", "toys", "insurance", "bread", "turbines", "shoes"]), ("{n} sells {v}", "customers know {n} for its {v}"), ("{n} is a seller of {v}.", "{n} deals in {v}.")),
        ),
        (
            Flag(("{n} made a profit", "{n} ended the year with a profit"), ("{n} made a loss", "{n} lost money over the year"), ("{n} earned more than it spent.", "{n} was profitable."), ("{n} was not profitable.", "{n} spent more than it earned.")),
            Flag(("{n} will hire new staff", "{n} wants to take on more people"), ("{n} will cut jobs", "{n} is going to dismiss staff"), ("{n} plans to employ more people.", "The number of jobs at {n} is to grow."), ("{n} plans to employ fewer people.", "Jobs will be lost at {n}.")),
        ),
        ("Analysts had expected as much.", "The yearly report runs to ninety pages.", "A spokesperson gave no further details.", "Shares hardly moved on the news."),
    ),
    Kind(
        named(["Morning", "Budget", "Safety", "Design", "Data", "Harbour", "Garden", "Museum", "School", "Traffic", "Water"], ["workshop", "meeting", "lecture", "course", "tour", "hearing"]), "event",
        (
            Value(one_of(DAYS), ("the {n} takes place on {v}", "the {n} is on {v}", "the {n} has been moved to {v}"), ("The {n} is held on {v}.", "{v} is the day of the {n}.")),
            Value(lambda rng: f"{rng.randrange(8, 20)}:{rng.choice(['00', '15', '30', '45'])}", ("the {n} starts at {v}", "the {n} begins at {v}", "doors for the {n} open at {v}"), ("The starting time of the {n} is {v}.", "The {n} begins at {v}.")),
            Value(number(12, 480), ("{v} people signed up for the {n}", "the {n} has {v} participants", "the {n} drew {v} guests"), ("{v} people take part in the {n}.", "The number of participants of the {n} is {v}."), ("The {a} has more participants than the {b}.",), ("The {a} has fewer participants than the {b}.",)),
            Value(number(101, 460), ("the {n} is held in room {v}", "room {v} is booked for the {n}"), ("The {n} is in room {v}.", "Room {v} is used for the {n}.")),
            Value(person, ("the {n} is given by {v}", "{v} leads the {n}", "the host of the {n} is {v}"), ("{v} is in charge of the {n}.", "The {n} is led by {v}.")),
            Value(day, ("registration for the {n} closes on {v}", "whoever wants to join the {n} must register by {v}"), ("The last day to register for the {n} is {v}.", "The deadline for the {n} is {v}.")),
        ),
        (
            Flag(("the {n} is free", "nobody has to pay for the {n}"), ("there is a fee for the {n}", "whoever joins the {n} has to pay"), ("The {n} costs nothing.", "Entry to the {n} is free."), ("The {n} is not free.", "Participants of the {n} have to pay.")),
            Flag(("the {n} was cancelled", "the {n} will not take place"), ("the {n} goes ahead as planned", "the {n} takes place as announced"), ("The {n} has been called off.", "There will be no {n}."), ("The {n} has not been cancelled.", "The {n} will take place.")),
        ),
        ("Coffee is served in the corridor.", "The programme is on the website.", "Questions can be sent to the office.", "The lift is out of order this week."),
    ),
    Kind(
        named(["River", "Lake", "Mount", "Cape", "Valley", "Isle"], ["Torvik", "Ombra", "Sellen", "Kariba Sound", "Dunmore", "Alvera", "Pesaro Point", "Hestnes"]), "place",
        (
            Value(number(120, 4900), ("{n} lies {v} metres above the sea", "the height of {n} is given as {v} metres"), ("{n} has an elevation of {v} metres.", "{n} is {v} metres above sea level."), ("{a} lies higher than {b}.",), ("{a} lies lower than {b}.",)),
            Value(one_of(COUNTRIES), ("{n} belongs to {v}", "{n} is found in {v}", "the borders of {v} enclose {n}"), ("{n} is in {v}.", "{n} is part of {v}.")),
            Value(number(200, 98000, 50), ("{v} people live near {n}", "the population around {n} is {v}"), ("About {n} there live {v} people.", "The region of {n} has {v} inhabitants."), ("More people live near {a} than near {b}.",), ("Fewer people live near {a} than near {b}.",)),
            Value(one_of(["otters", "eagles", "wild goats", "seals", "storks", "lynxes", "salmon", "bats"]), ("{n} is known for its {v}", "{v} live around {n}"), ("There are {v} at {n}.", "{v} can be found near {n}.")),
            Value(one_of(MONTHS), ("the first snow falls on {n} in {v}", "winter comes to {n} in {v}"), ("Snow first comes to {n} in {v}.",)),
        ),
        (
            Flag(("fishing is allowed at {n}", "anyone may fish at {n}"), ("fishing is forbidden at {n}", "nobody may fish at {n}"), ("People may fish at {n}.", "Fishing at {n} is legal."), ("People may not fish at {n}.", "Fishing at {n} is not allowed.")),
            Flag(("a road leads to {n}", "{n} can be reached by car"), ("no road leads to {n}", "{n} can only be reached on foot"), ("One can drive to {n}.",), ("One cannot drive to {n}.", "Cars do not get to {n}.")),
        ),
        ("The area is popular with painters.", "Old maps spell the name in another way.", "A ranger station keeps records of the weather.", "Tourists come mostly in summer."),
    ),
    Kind(
        named(["rule", "plan", "policy", "tariff", "contract"], ["A", "B", "C", "D", "7", "12", "North", "South"]), "policy",
        (
            Value(lambda rng: f"{rng.choice([7, 10, 14, 20, 21, 28, 30, 45, 60, 90])} days", ("under {n}, goods can be returned within {v}", "{n} gives customers {v} to send goods back"), ("The period for returns under {n} is {v}.", "Customers under {n} have {v} to return goods."), ("{a} gives more time for returns than {b}.",), ("{a} gives less time for returns than {b}.",)),
            Value(lambda rng: f"{rng.randrange(2, 60)} euros", ("{n} costs {v} a month", "the monthly fee of {n} is {v}"), ("Customers of {n} pay {v} every month.",), ("{a} costs more than {b}.",), ("{a} costs less than {b}.", "{a} is cheaper than {b}.")),
            Value(lambda rng: f"{rng.choice([1, 2, 3, 4, 6, 12, 18, 24])} months", ("{n} runs for at least {v}", "the shortest term of {n} is {v}"), ("{n} has a minimum term of {v}.", "Nobody can leave {n} before {v} are over.")),
            Value(lambda rng: f"{rng.randrange(5, 95)} percent", ("{n} covers {v} of the costs", "the insurer pays {v} under {n}"), ("Under {n}, {v} of the costs are paid.", "{n} pays {v}.")),
        ),
        (
            Flag(("{n} covers damage by water", "water damage is insured under {n}"), ("{n} does not cover damage by water", "water damage is excluded from {n}"), ("Water damage is included in {n}.", "{n} pays for water damage."), ("Water damage is not included in {n}.", "{n} does not pay for water damage.")),
            Flag(("{n} requires written notice", "notice under {n} must be given in writing"), ("{n} can be ended by phone", "no letter is needed to end {n}"), ("To end {n}, a letter is needed.",), ("{n} can be ended without a letter.",)),
            Flag(("students get a discount on {n}", "{n} is cheaper for students"), ("{n} has the same price for everyone", "there is no discount for students on {n}"), ("Students pay less for {n}.",), ("Students do not pay less for {n}.", "Students get no discount on {n}.")),
        ),
        ("The full text is available on request.", "Questions are answered by the service desk.", "It was last revised two years ago.", "All amounts include tax."),
    ),
    Kind(
        lambda rng, n: [f"order {x}" for x in rng.sample(range(1000, 9999), n)], "order",
        (
            Value(person, ("{n} was placed by {v}", "the customer of {n} is {v}"), ("{v} placed {n}.", "{n} belongs to {v}.")),
            Value(price, ("{n} comes to {v} dollars", "the total of {n} is {v} dollars"), ("{n} costs {v} dollars.", "The amount of {n} is ${v}."), ("{a} is worth more than {b}.",), ("{a} is worth less than {b}.",)),
            Value(one_of(CITIES), ("{n} goes to {v}", "{n} is to be delivered to {v}"), ("The destination of {n} is {v}.", "{n} is sent to {v}.")),
            Value(one_of(["two lamps", "a desk", "three chairs", "one kettle", "four plates", "a carpet", "six mugs"]), ("{n} contains {v}", "{n} is for {v}"), ("{n} consists of {v}.", "The content of {n} is {v}.")),
            Value(day, ("{n} arrives on {v}", "the delivery date of {n} is {v}"), ("{n} is delivered on {v}.", "{n} will be there on {v}.")),
        ),
        (
            Flag(("{n} was shipped", "{n} has left the warehouse"), ("{n} has not been shipped yet", "{n} is still waiting in the warehouse"), ("{n} is on its way.", "{n} has been sent off."), ("{n} is not on its way yet.", "{n} has not been sent off.")),
            Flag(("the payment for {n} was received", "{n} has been paid"), ("{n} has not been paid", "the payment for {n} failed"), ("{n} is paid.", "Money for {n} has come in."), ("{n} is not paid.", "Money for {n} has not come in.")),
        ),
        ("The packing list is attached.", "An employee checked the address.", "The customer asked for paper bags.", "Returns need the number on the label."),
    ),
]  # fmt: skip

TOOLS = ["get_order", "lookup", "search_records", "read_account", "fetch_status"]


def sentence(text: str) -> str:
    """First letter large, a full stop at the end."""
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?。" else text + "."


class Prose:
    """Makes documents with minimal pairs."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def item(self) -> Item:
        """A document and two to five pairs of statements."""
        rng = self.rng
        kind = rng.choice(KINDS)
        things = kind.names(rng, rng.choice([2, 2, 3, 3, 4]))
        values = rng.sample(kind.values, min(len(kind.values), rng.choice([2, 3, 4])))
        flags = rng.sample(kind.flags, rng.choice([0, 1, 1, min(2, len(kind.flags))]))
        known: dict[tuple[str, int], str] = {}
        holds: dict[tuple[str, int], bool] = {}
        said: dict[str, list[str]] = {t: [] for t in things}
        for i, value in enumerate(values):
            used: set[str] = set()
            style = rng.choice(value.text)
            for t in things:
                if rng.random() < 0.12:
                    continue  # left out: nothing follows about it
                v = str(value.make(rng))
                while v in used:
                    v = str(value.make(rng))
                used.add(v)
                known[t, i] = v
                style = style if rng.random() < 0.5 else rng.choice(value.text)
                said[t].append(style.format(n=t, v=v))
        for i, flag in enumerate(flags):
            for t in things:
                if rng.random() < 0.12:
                    continue
                holds[t, i] = rng.random() < 0.5
                said[t].append(rng.choice(flag.yes if holds[t, i] else flag.no).format(n=t))
        context = self.write(kind, said)
        pairs = self.value_pairs(things, values, known) + self.flag_pairs(things, flags, holds)
        pairs += self.compare(things, values, known) + self.counted(kind, things, flags, holds)
        rng.shuffle(pairs)
        out = [s for pair in pairs[: rng.choice([3, 4, 5])] for s in pair]
        rng.shuffle(out)
        if len({y for _, y in out}) < 2:
            return self.item()
        return Item("prose", context, tuple((sentence(s), y) for s, y in out))

    def write(self, kind: Kind, said: dict[str, list[str]]) -> str:
        """The text: thing by thing or attribute by attribute, with joined sentences and filler."""
        rng = self.rng
        for parts in said.values():
            rng.shuffle(parts)
        if rng.random() < 0.65:
            blocks = []
            for thing, parts in said.items():
                lines, rest = [], list(parts)
                while rest:
                    take = rest[: rng.choice([1, 1, 2])]
                    rest = rest[len(take) :]
                    lines.append(sentence(rng.choice([" and ", ", and ", "; "]).join(take)))
                if kind.noun != "person" and rng.random() < 0.6:
                    start = re.compile(rf"^(?:The )?{re.escape(thing)} ", re.IGNORECASE)
                    lines = lines[:1] + [start.sub("It ", line) for line in lines[1:]]
                if rng.random() < 0.5:
                    lines.insert(rng.randrange(len(lines) + 1), rng.choice(kind.filler))
                blocks.append(" ".join(lines))
            return rng.choice(["\n\n", " ", "\n"]).join(b for b in blocks if b)
        flat = [p for parts in said.values() for p in parts]
        rng.shuffle(flat)
        lines, i = [], 0
        while i < len(flat):
            if i + 1 < len(flat) and rng.random() < 0.4:
                lines.append(sentence(rng.choice([", while ", ", but ", ", and "]).join(flat[i : i + 2])))
                i += 2
            else:
                lines.append(sentence(flat[i]))
                i += 1
        for _ in range(rng.choice([0, 1, 2])):
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(kind.filler))
        return " ".join(lines)

    def value_pairs(self, things, values, known) -> list[list[tuple[str, int]]]:
        """The right value, and a rival's or one that nobody has."""
        rng, out = self.rng, []
        for i, value in enumerate(values):
            for t in things:
                claim = rng.choice(value.claim)
                rivals = [known[o, i] for o in things if o != t and (o, i) in known]
                if (t, i) not in known:
                    if rivals and rng.random() < 0.5:
                        owner = next(o for o in things if known.get((o, i)) == rivals[0])
                        out.append(
                            [(claim.format(n=t, v=rivals[0]), 0), (claim.format(n=owner, v=rivals[0]), 1)]
                        )
                    continue
                right = known[t, i]
                wrong = rng.choice(rivals) if rivals and rng.random() < 0.65 else str(value.make(rng))
                if wrong == right:
                    continue
                other = claim if rng.random() < 0.7 else rng.choice(value.claim)
                pair = [(claim.format(n=t, v=right), 1), (other.format(n=t, v=wrong), 0)]
                if rng.random() < 0.2:
                    denial = rng.choice(["It is not true that {}", "It is wrong that {}"])
                    body = [s[0].lower() + s[1:] if s.startswith("The ") else s for s, _ in pair]
                    pair = [(denial.format(body[1]), 1), (denial.format(body[0]), 0)]
                out.append(pair)
        return out

    def flag_pairs(self, things, flags, holds) -> list[list[tuple[str, int]]]:
        """What holds, and its opposite."""
        rng, out = self.rng, []
        for i, flag in enumerate(flags):
            for t in things:
                if (t, i) in holds:
                    yes, no = flag.claim_yes, flag.claim_no
                    if not holds[t, i]:
                        yes, no = no, yes
                    out.append([(rng.choice(yes).format(n=t), 1), (rng.choice(no).format(n=t), 0)])
        return out

    def compare(self, things, values, known) -> list[list[tuple[str, int]]]:
        """Which of two has more."""
        rng, out = self.rng, []
        for i, value in enumerate(values):
            here = [t for t in things if (t, i) in known]
            if not value.more or len(here) < 2:
                continue
            for _ in range(2):
                a, b = rng.sample(here, 2)
                x, y = (float(known[t, i].split()[0].replace(",", "")) for t in (a, b))
                if x == y:
                    continue
                a, b = (a, b) if x > y else (b, a)
                more, less = rng.choice(value.more), rng.choice(value.less)
                right = rng.choice([more.format(a=a, b=b), less.format(a=b, b=a)])
                wrong = rng.choice([more.format(a=b, b=a), less.format(a=a, b=b)])
                out.append([(right, 1), (wrong, 0)])
        return out

    def counted(self, kind, things, flags, holds) -> list[list[tuple[str, int]]]:
        """All, both, none or one of the things."""
        out: list[list[tuple[str, int]]] = []
        for i, flag in enumerate(flags):
            if any((t, i) not in holds for t in things):
                continue
            each = [holds[t, i] for t in things]
            claim = flag.claim_yes[0]
            if "{n} " not in claim or claim.startswith("{n}'s"):
                continue
            first, second = claim.format(n=things[0]), claim.format(n=things[1])
            joined = f"{first.rstrip('.')}, and so it is with {things[1]}."
            mixed = f"{first.rstrip('.')}, but this is not so with {things[1]}."
            if each[0] and each[1]:
                out.append([(joined, 1), (mixed, 0)])
            elif each[0]:
                out.append([(mixed, 1), (joined, 0)])
            elif each[1]:
                out.append([(second, 1), (joined, 0)])
        return out

    def foreign(self) -> Item:
        """Two or three records in another language, values exchanged between them."""
        rng = self.rng
        language = rng.choice(list(LANGUAGES))
        templates, words = LANGUAGES[language]

        def fresh() -> dict:
            whole, part = rng.randrange(1, 40), rng.randrange(1, 10)
            return {"n": person(rng), "c": rng.choice(CITIES), "y": rng.randrange(1900, 2024), "k": rng.choice(COMPANIES),
                    "q": rng.choice([str(rng.randrange(20, 900)), f"{whole}.{rng.randrange(100, 999)}"]), "p": rng.choice(words["p"]),
                    "d": rng.randrange(1, 29), "m": rng.choice(words["m"]), "h": rng.randrange(8, 20), "w": f"{whole},{part}"}  # fmt: skip

        shapes = [templates[rng.randrange(len(templates))], templates[rng.randrange(len(templates))]]
        rows = [(shape, fresh()) for shape in shapes for _ in range(2)]
        rng.shuffle(rows)
        context = ("" if language in ("ja", "zh") else " ").join(s.format(**v) for s, v in rows)
        out = []
        for shape, v in rng.sample(rows, 3):
            keys = [k for k in v if "{" + k + "}" in shape]
            rival = rng.choice([o for s, o in rows if s == shape and o is not v] or [fresh()])
            key = rng.choice(keys)
            other = rival[key] if rng.random() < 0.7 else fresh()[key]
            if other == v[key]:
                continue
            out += [(shape.format(**v), 1), (shape.format(**{**v, key: other}), 0)]
        return Item("prose languages", context, tuple(out)) if out else self.foreign()

    def units(self) -> Item:
        """Decimals with a comma or a point, ranges, percentages and units."""
        rng = self.rng
        things = rng.sample(
            [
                "inflation",
                "unemployment",
                "the birth rate",
                "the vacancy rate",
                "rainfall",
                "the interest rate",
                "consumption",
                "traffic",
                "the error rate",
            ],
            3,
        )
        comma = rng.random() < 0.5
        unit = rng.choice([" percent", " %", "%"])
        show = lambda x: f"{x:.1f}".replace(".", "," if comma else ".") + unit  # noqa: E731
        a = [rng.randrange(2, 300) / 10 for _ in things]
        low, high = sorted(rng.sample(range(20, 400), 2))
        what = rng.choice(["sensors", "seats", "samples", "birds", "calls", "trees"])
        where = rng.choice(CITIES)
        lines = [
            f"{t} {rng.choice(['was', 'stood at', 'came to', 'reached'])} {show(x)}"
            for t, x in zip(things, a, strict=True)
        ]
        lines.append(
            rng.choice(
                [
                    f"between {low} and {high} {what} were counted in {where}",
                    f"{where} had {low} to {high} {what}",
                ]
            )
        )
        rng.shuffle(lines)
        out: list[tuple[str, int]] = []
        i, j = rng.sample(range(3), 2)
        near = a[i] + rng.choice([-0.2, 0.1, 0.3, 1.0, 2.0, 9.0])
        wrong = rng.choice([a[j], near, a[i] * 10])
        if abs(wrong - a[i]) > 0.04:
            out += [(f"{things[i]} was {show(a[i])}", 1), (f"{things[i]} was {show(wrong)}", 0)]
        if a[i] != a[j]:
            big, small = (i, j) if a[i] > a[j] else (j, i)
            out += [
                (f"{things[big]} was higher than {things[small]}", 1),
                (f"{things[small]} was higher than {things[big]}", 0),
            ]
        inside = rng.choice(
            [
                f"at least {low} {what} were counted in {where}",
                f"no more than {high} {what} were counted in {where}",
                f"more than {max(low - 5, 1)} {what} were counted in {where}",
                f"the number of {what} in {where} lay between {low} and {high}",
            ]
        )
        outside = rng.choice(
            [
                f"at least {high + 5} {what} were counted in {where}",
                f"fewer than {low - 3} {what} were counted in {where}",
                f"more than {high} {what} were counted in {where}",
                f"the number of {what} in {where} lay between {high} and {high + 60}",
                f"exactly {low} {what} were counted in {where}",
            ]
        )
        out += [(inside, 1), (outside, 0)]
        rng.shuffle(out)
        return Item("prose", " ".join(sentence(x) for x in lines), tuple((sentence(s), y) for s, y in out))

    def order(self) -> Item:
        """Steps one after the other: what came first, and what was never done."""
        rng = self.rng
        who = [w.split()[0] for w in people(rng, 2)]
        steps = rng.sample([("cleaned the filter", "The filter was cleaned"), ("called the landlord", "The landlord was called"), ("painted the fence", "The fence was painted"), ("sold the boat", "The boat was sold"),
                            ("watered the roses", "The roses were watered"), ("sent the invoice", "The invoice was sent"), ("replaced the pump", "The pump was replaced"), ("read the contract", "The contract was read"),
                            ("tested the alarm", "The alarm was tested"), ("locked the shed", "The shed was locked")], 5)  # fmt: skip
        done, never = steps[:4], steps[4]
        by = [rng.choice(who) for _ in done]
        forms = [
            f"First {by[0]} {done[0][0]}.",
            f"After that, {by[1]} {done[1][0]}.",
            f"Then {by[2]} {done[2][0]}.",
            f"Only at the end {by[3]} {done[3][0]}.",
        ]
        if rng.random() < 0.4:
            forms = [
                f"{by[1]} {done[1][0]} after {by[0]} had {done[0][0]}."
                if not done[0][0].startswith("read")
                else f"{by[0]} {done[0][0]}, and then {by[1]} {done[1][0]}.",
                f"Before {by[3]} {done[3][0]}, {by[2]} {done[2][0]}.",
            ]
            pairs = [(0, 1), (2, 3)]
        else:
            pairs = [(0, 1), (1, 2), (0, 3), (2, 3), (1, 3)]
        if rng.random() < 0.5:
            forms.append(
                f"Nobody {never[0]}."
                if rng.random() < 0.5
                else f"{never[1].replace(' was ', ' was never ').replace(' were ', ' were never ')}."
            )
        out = []
        for i, j in rng.sample(pairs, 2):
            first, second = done[i][1], done[j][1][0].lower() + done[j][1][1:]
            swapped = (done[j][1], done[i][1][0].lower() + done[i][1][1:])
            word, opposite = rng.choice([("before", "after"), ("after", "before")])
            if word == "before":
                out += [
                    (f"{first} before {second}.", 1),
                    (
                        f"{swapped[0]} before {swapped[1]}."
                        if rng.random() < 0.5
                        else f"{first} {opposite} {second}.",
                        0,
                    ),
                ]
            else:
                out += [
                    (f"{swapped[0]} after {swapped[1]}.", 1),
                    (
                        f"{first} after {second}."
                        if rng.random() < 0.5
                        else f"{swapped[0]} {opposite} {swapped[1]}.",
                        0,
                    ),
                ]
        k = rng.randrange(4)
        other = next(w for w in who if w != by[k])
        out += [(f"{by[k]} {done[k][0]}.", 1), (f"{other} {done[k][0]}.", 0)]
        k = rng.randrange(4)
        out += [(f"{done[k][1]}.", 1), (f"{never[1]}.", 0)]
        return Item("prose", " ".join(forms), tuple(out))

    def tool(self) -> Item:
        """A tool's result in a trace, several records, against what is claimed of them."""
        rng = self.rng
        ids = rng.sample(range(100, 999), 3)
        states = rng.sample(["shipped", "cancelled", "pending", "delivered", "returned", "failed"], 3)
        owners = people(rng, 3)
        rows = ", ".join(
            f'{{"id": {i}, "status": "{s}", "owner": "{o}"}}'
            for i, s, o in zip(ids, states, owners, strict=True)
        )
        tool = rng.choice(TOOLS)
        failed = rng.random() < 0.4
        again = failed and rng.random() < 0.5
        fault = rng.choice(
            [
                "Error: timeout",
                '{"error": "not authorised"}',
                "503 Service Unavailable",
                "Error: record locked",
            ]
        )
        text = f"user: What is the state of my parcels?\nassistant calls {tool} {{}}\ntool: [{rows}]\n"
        act = rng.choice(["cancel", "refund", "reopen", "archive"])
        past = {"cancel": "cancelled", "refund": "refunded", "reopen": "reopened", "archive": "archived"}[act]
        text += f'user: Please {act} {ids[0]}.\nassistant calls {act} {{"id": {ids[0]}}}\n'
        text += f"tool: {fault}\n" if failed else f'tool: {{"ok": true, "id": {ids[0]}}}\n'
        if again:
            text += f'assistant calls {act} {{"id": {ids[0]}}}\ntool: {{"ok": true, "id": {ids[0]}}}\n'
        good = not failed or again
        text += rng.choice(
            [
                "assistant: Done.",
                f"assistant: {ids[0]} has been {past}.",
                "assistant: Let me know if you need more.",
                "" if good else "assistant: I could not do that.",
            ]
        )
        i, j = rng.sample(range(3), 2)
        out = [
            (f"The status of {ids[i]} is {states[i]}.", 1),
            (f"The status of {ids[i]} is {states[j]}.", 0),
            (f"{owners[i]} owns {ids[i]}.", 1),
            (f"{owners[j]} owns {ids[i]}.", 0),
            (f"{ids[0]} was {past}.", int(good)),
            (f"{ids[0]} could not be {past}.", int(not good)),
            (f"The first attempt to {act} {ids[0]} failed.", int(failed)),
            (f"The first attempt to {act} {ids[0]} worked.", int(not failed)),
        ]
        return Item("prose trace", text, tuple(rng.sample(out, 6)))

    def make(self, count: int) -> list[Item]:
        """`count` documents, most of them of several things side by side."""
        rng = self.rng
        out = []
        for _ in range(count):
            r = rng.random()
            shape = (
                self.item
                if r < 0.62
                else self.units
                if r < 0.70
                else self.order
                if r < 0.80
                else self.foreign
                if r < 0.91
                else self.tool
            )
            out.append(shape())
        return out
