"""English sentences made to stand alone: pronouns and last names put back to the names they stand for.

Rules, not a model: the same text always gives the same result, and what the rules are not sure of stays as
it is. They know three things about a sentence: its subject, the names in it, and whether a name was called
he or she before. A pronoun takes the last subject that fits it in number and gender.

Other languages are left alone (`resolve_sentences` returns them unchanged).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from anvil_local.language import Language


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SINGULAR = _words("is was has does isn't wasn't hasn't doesn't")
_PLURAL = _words("are were have do aren't weren't haven't don't")
_VERBS = (
    _SINGULAR
    | _PLURAL
    | _words(
        """
    had did will would can could may might must should cannot can't won't wouldn't hadn't didn't
    became becomes become began begins refers refer means mean includes include included contains
    contain consists consist provides provide provided offers offer offered produces produce produced
    follows follow followed tells tell told features feature featured stars starred played plays play
    won wins lost loses died dies born lived lives worked works moved moves studied studies attended
    attends graduated married joined joins left leaves went goes came comes took takes made makes gave
    gives got gets wrote writes published publishes released releases received receives founded led
    leads served serves held holds started starts opened opens closed closes ended ends ran runs built
    sold sells bought buys grew grows rose rises fell falls spent spends taught teaches knew knows
    said says believed believes allows allow allowed helps help helped causes cause caused uses use
    used requires require required needs need needed covers cover covered focuses focus focused
    involves involve involved occurs occur occurred appears appear appeared remains remain remained
    continues continue continued belongs belong belonged describes describe described represents
    represent represented supports support supported lies lie lay stands stand stood exists exist
    existed originated originates stretches stretched spans spanned earned discovered invented
    directed created developed introduced established announced launched returned retired
    """
    )
)
"""Words that can only, or nearly only, be the verb after a subject."""

_PREPOSITIONS = _words(
    """
    in on at by for from of with during after before since until under over between among through
    within without despite throughout according due because when while although though if as once
    where whereas to like unlike about around near across against along beyond upon besides following
    behind beside above below inside outside onto past
    """
)
_PARTICIPLES = _words(
    """
    using including considering given based being having starting beginning
    """
)
_CLAUSES = _words(
    """
    when while after before although though because since as if until unless once where
    """
)
_ADVERBS = _words(
    """
    however additionally moreover furthermore also later then today currently finally initially
    originally eventually meanwhile overall afterwards subsequently instead nevertheless nonetheless
    similarly consequently therefore thus hence first second third lastly notably specifically
    interestingly unfortunately fortunately recently but and so yet still now there here generally
    typically in
    """
)
_STARTS = _words(
    """
    he she it they we i you this that these those his her its their our my your there here what who
    whom which whose how why where when if not no yes nobody nothing none someone somebody something
    everyone everybody everything anyone anybody anything
    """
)
_NOT_NAMES = (
    _STARTS
    | _PREPOSITIONS
    | _ADVERBS
    | _words(
        """
    a an the some many most all both each every several other another january february march april may
    june july august september october november december monday tuesday wednesday thursday friday
    saturday sunday
    """
    )
)
_NOT_PERSONS = _words(
    """
    company corporation inc ltd llc corp university college school institute city county state states
    kingdom river lake mountain ocean sea island islands street road avenue park bridge museum church
    temple castle tower award prize festival league cup war battle treaty act act's system theory
    center centre group bank airport station hotel hospital association society foundation agency
    department ministry court republic union party team club band album song film movie book novel
    series show network north south east west new san los saint united great american british french
    german european national international world way studios records airlines press times computing
    """
)
_DETERMINERS = _words("the a an some many most all each every other several")
_NOT_IN_A_NAME = _NOT_PERSONS | _STARTS | _DETERMINERS
_TITLES = {
    "mr": "he",
    "sir": "he",
    "king": "he",
    "prince": "he",
    "mrs": "she",
    "ms": "she",
    "miss": "she",
    "queen": "she",
    "princess": "she",
    "lady": "she",
}
_ROLES = {
    **dict.fromkeys(("actress", "businesswoman", "mother", "daughter", "wife", "sister", "woman"), "she"),
    **dict.fromkeys(("businessman", "father", "son", "husband", "brother", "man"), "he"),
}

_HUMAN = re.compile(
    r"(?:man|woman|boy|girl|person|child|king|queen|president|author|actress|captain|chief|scientist"
    r"|\w{2,}(?:ist|ian|eer|writer|teacher|singer|player|leader|minister|officer|painter|founder|director|actor|doctor))$"
)
_LIVES = re.compile(r"\b(?:born|died|married|studied|graduated|who|he|she|his|her|him)\b")

_CONNECTED = r"(?: (?:of|de|da|del|di|van|von|der|den|la|al|bin))*"
_CAPITAL = r"[A-Z][\w'’-]*[\w]|[A-Z]\.|[A-Z]"
_NAME = re.compile(rf"(?:{_CAPITAL})(?:{_CONNECTED} (?:{_CAPITAL}))*")
_IS_NAMED = re.compile(
    rf"(?:is|was)(?: currently| probably)? (?P<name>{_NAME.pattern}|[\"“][A-Z][^\"“”]+[\"”])"
    r"(?=[.,;]|$| who| and | by )"
)
_ENDS_NAMED = re.compile(rf" (?:is|was) (?P<name>{_NAME.pattern})\.?$")
_LABELLED = re.compile(rf"(?P<name>{_NAME.pattern}): (?P<pronoun>He|She|It|His|Her|Its)\b")
_LEADING = re.compile(
    r"(?P<opening>(?:[A-Za-z][^,;:.!?()\"“”]{0,80}, |(?:However|Also|Then|Later|Today|And|But|So) )?)"
    r"(?P<pronoun>he|she|it|they|his|her|its|their)(?P<short>['’](?:re|ve|ll|d|s))?(?=\W|$)(?!['’]d)",
    re.IGNORECASE,
)
_OPENED = re.compile(
    rf"(?P<clause>(?:{'|'.join(sorted(_CLAUSES))}) )(?P<pronoun>he|she|it|they|his|her|its|their)\b", re.I
)
_WRITTEN_OUT = {"s": " is", "re": " are", "ve": " have", "ll": " will"}
_PERSONAL = {
    "he": "he",
    "his": "he",
    "she": "she",
    "her": "she",
    "it": "it",
    "its": "it",
    "they": "they",
    "their": "they",
}
_ONE = {
    "are": "is",
    "were": "was",
    "have": "has",
    "do": "does",
    "aren't": "isn't",
    "weren't": "wasn't",
    "don't": "doesn't",
}
_UNCHANGED = _words(
    """
    had did will would can could may might must should cannot can't won't wouldn't didn't became began
    won lost took made gave got wrote led held built sold bought grew rose fell spent taught
    """
)
_PARTICIPLE_FORMS = _words("born made found held built sold known written taught led given taken")
_FREQUENT = _words("also often never always later then still only")
_VAGUE = _words(
    """
    one part example way kind type form number result thing lot member name term
    """
)
_LONGEST = 14  # words of the longest subject
_MANY = re.compile(r"(?<!that )(?<!which )(?<!and )\b(?:[a-z]{2,}[a-rt-z]s|people|children|men|women)\b")
_OWNING = frozenset({"his", "her", "its", "their"})

# "It is raining", "it is important to", "it takes two days", "it was Ann who": nothing is meant by it.
_EMPTY_IT = re.compile(
    r"""it(?:['’]s|\ \w+['’]t
      |\ (?:is|was|has\ been|may\ be|might\ be|can\ be|could\ be|will\ be|would\ be)(?:\ not)?)
    (?:\ (?:\w+ly|also|often|very|quite|more|most|always|still|just|about|almost|too|so|well))*
    \ (?:(?:raining|snowing|worth|time\ (?:to|for)|hot|cold|cloudy|sunny|windy|dark|noon|midnight|not\ until
        |until|not\ clear)\b
      |(?:that|whether)\b
      |\w+(?:\ for\ [^.,;]{1,40})?\ (?:that|whether)\b
      |(?:un|im)?(?:possible|likely|safe|wise|clear|certain|fair|common|customary|usual|important|easy|hard|difficult
        |essential|crucial|vital|necessary|advisable|best|better|recommended|true|tempting|reasonable|helpful)
        (?:\ for\ [^.,;]{1,40})?\ (?:to|if|how|what|why|when|where|who)\b
      |(?:in|on|at)\ [^.,;]{1,40}\ that\b
      |[A-Z][\w'’-]*(?:\ [A-Z][\w'’-]*)*\ (?:that|who)\b)
    |it\ (?:also\ )?(?:seems|appears|seemed|appeared|takes|took|rains|rained|snows|snowed|depends|turns\ out
      |turned\ out|follows\ that|goes\ without|may\ seem|might\ seem)\b""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass
class _Mention:
    """Something that a pronoun can stand for."""

    text: str
    plural: bool
    person: bool | None
    """None: it may be one."""
    gender: str | None = None
    """`he` or `she`, or `they` of one ("the company ... they"), where the text says so."""


@dataclass
class _Story:
    """What the text has said so far."""

    small: frozenset[str]
    """Words that stand somewhere in the text without a capital letter: no names."""
    subjects: list[_Mention] = field(default_factory=list)
    """In the order of the text; a pronoun most likely means the last."""
    speaks_of_one: bool = False
    """Whether the last sentence held nothing plural, so that "they" must be the one it was about."""
    full_names: dict[str, set[str]] = field(default_factory=dict)
    """Last names with the names of persons that end in them."""
    described: dict[str, set[str]] = field(default_factory=dict)
    """What something was said to be ("Arta is a river"), with what was said to be that."""
    short_names: dict[str, str] = field(default_factory=dict)
    """Abbreviations with what they are short for, from "World Trade Organization (WTO)"."""


def resolve_sentences(sentences: Sequence[str], question: str, language: Language) -> list[str]:
    """The sentences of one text, each made to stand alone where the rules are sure.

    Args:
        sentences: in the order of the text.
        question: what the text answers; a person that it names can be whom the text means. May be empty.
        language: of the text; only English is resolved.

    Returns:
        As many texts. A sentence in which nothing was certain comes back as it is.
    """
    if language.code != "en":
        return list(sentences)
    story = _Story(frozenset(re.findall(r"\b[a-z][\w-]*", " ".join(sentences))))
    about_persons = bool(_LIVES.search("\n".join(sentences).lower()))
    if about_persons:
        _learn_names(question, story)
        asked = [name for names in story.full_names.values() for name in sorted(names)]
        story.subjects += [_Mention(name, plural=False, person=None) for name in asked if len(asked) == 1]
    resolved = []
    for sentence in sentences:
        text = _complete_name(sentence, story)
        text = _write_out(text, story)
        text = _name_what_is_described(text, story)
        text = _resolve_pronoun(text, story)
        if about_persons:
            _learn_names(text, story)
        if subject := find_subject(text):
            _learn_description(subject, text, story)
            _learn_subject(subject, story)
            _, _, predicate = text.partition(subject.text)
            story.speaks_of_one = not _MANY.search(predicate.strip().partition(" ")[2])
        resolved.append(text)
    return resolved


# Names


def _learn_names(text: str, story: _Story) -> None:
    for found in _NAME.finditer(text):
        name = found.group()
        if name.startswith("The "):
            continue
        parts = name.removesuffix("'s").removesuffix("’s").split()
        while parts and parts[0].lower().strip(".") in _NOT_NAMES | {"dr", "mr", "mrs", "ms", "prof"}:
            parts = parts[1:]
        before = text[: found.start()].rstrip().rpartition(" ")[2].lower()
        if 2 <= len(parts) <= 4 and before != "the" and _may_name_person(parts):
            story.full_names.setdefault(parts[-1], set()).add(" ".join(parts))


def _may_name_person(parts: list[str]) -> bool:
    return not any(
        part.lower().strip(".") in _NOT_IN_A_NAME or (len(part) > 2 and part.isupper()) or part.endswith("s'")
        for part in parts
    )


def _complete_name(text: str, story: _Story) -> str:
    """The first bare last name of the text made the full name, if only one person has it."""
    for last, names in story.full_names.items():
        (full, *others) = names
        if others or last not in text or full in text:
            continue
        pattern = rf"(?<![\w'’.-])(?<![A-Z]\. ){re.escape(last)}(?![\w-])(?! [A-Z])"
        for found in re.finditer(pattern, text):
            before = text[: found.start()].rstrip().rpartition(" ")[2]
            if before.lower() in ("the", "a", "an") or (
                before[:1].isupper() and before.lower() not in _NOT_NAMES
            ):
                continue
            text = text[: found.start()] + full + text[found.end() :]
            break
    return text


def _write_out(text: str, story: _Story) -> str:
    """The first abbreviation of the text with what it is short for, once the text has introduced it."""
    for short, full in story.short_names.items():
        if short in text and full.lower() not in text.lower():
            text = re.sub(
                rf"(?<![\w(-]){re.escape(short)}(?![\w-])",
                f"{full} ({short})".replace("\\", r"\\"),
                text,
                count=1,
            )
    for found in re.finditer(r"\(([A-Z][A-Za-z]*[A-Z])\)", text):
        letters = found[1].lower()
        before = text[: found.start()].split()[-len(letters) :]
        if [word[0].lower() for word in before if word[:1].isalnum()] == list(letters):
            story.short_names.setdefault(found[1], " ".join(before))
    return text


# Descriptions


def _name_what_is_described(text: str, story: _Story) -> str:
    """The text with "the river" at its start made the name of the river, if there is one river."""
    without = _without_opening(text)
    opening = text[: len(text) - len(without)]
    found = re.match(
        r"(?:The|the|This|this|These|these|Those|those) (?P<noun>[A-Za-z][\w-]*)(?P<own>['’]s?)?"
        r"(?= [a-z]|, which|, who)",
        without,
    )
    if not found or found["noun"].lower() not in story.described:
        return text
    rest = without[found.end() :].split()
    (name, *others) = story.described[found["noun"].lower()]
    follows = found["own"] or (
        rest and (rest[0] in _VERBS or rest[0] in _FREQUENT or re.fullmatch(r"\w+ed", rest[0]))
    )
    if others or not follows or name in text:
        return text
    own = "" if not found["own"] else ("'" if name.endswith("s") and found["own"] in ("'", "’") else "'s")
    return opening + (_inside(name, story) if opening else name) + own + without[found.end() :]


def _learn_description(subject: _Mention, text: str, story: _Story) -> None:
    """Note what the sentence says its subject is, and what its subject is the longer form of."""
    _, _, predicate = text.partition(subject.text)
    found = re.match(
        r"(?:\s*\([^()]*\))?(?:, [^,]*,)? (?:is|was|are|were) (?:an?|the|one) (?P<what>[^,.;:()]+)", predicate
    )
    if found and not subject.text.lower().startswith(("this ", "these ", "those ")):
        what = re.split(
            r" (?:that|which|who|whose|where|when|in|of|for|from|by|with|on|at|to|and|or|between)\b"
            r"| \w+(?:ed|ing)\b",
            found["what"],
        )[0]
        noun = what.split()[-1].lower() if what.split() else ""
        if noun and noun not in subject.text.lower() and noun not in _VAGUE:
            story.described.setdefault(noun, set()).add(subject.text)
    named = re.match(
        r"(?:The|the) (?P<what>[^,.;:()]+?) (?:is|was)(?: currently| probably)? $",
        text[: text.find(subject.text)],
    )
    if named:
        noun = re.split(r" (?:of|in|for|from|by|with|on|at|to)\b", named["what"])[0].split()[-1].lower()
        if noun not in _VAGUE:
            story.described.setdefault(noun, set()).add(subject.text)
    # "The roses in the garden": what "the garden" is, is not said by them.
    words = subject.text.lower().split()
    head = next((a for a, b in itertools.pairwise(words) if b in _PREPOSITIONS), words[-1])
    if subject.plural and len(words) >= 3 and head.isalpha() and head not in story.described:
        longer = re.sub(r"^(?:some|many|most|several|the|other) ", "", subject.text, flags=re.IGNORECASE)
        if head != longer.lower() and "and" not in longer.split():
            story.described[head] = {f"The {longer}"}


def _inside(name: str, story: _Story) -> str:
    """A name or noun phrase as it is written inside a sentence."""
    first, _, rest = name.partition(" ")
    common = first.lower() in story.small and rest[:1].islower()
    return name[0].lower() + name[1:] if common or first.lower() in _DETERMINERS else name


# Subjects


def find_subject(sentence: str) -> _Mention | None:
    """The subject of an English sentence, if it is plainly one name or noun phrase before the verb."""
    text = re.sub(r"\s*\([^()]*\)", "", sentence)
    text = _without_opening(text)
    tokens = list(re.finditer(r"[\w'’.-]*[\w'’]|[^\w\s]", text))
    for index, token in enumerate(tokens[: _LONGEST + 2]):
        verb = token.group().lower()
        before = text[: token.start()].strip()
        # After a name, any word that looks like a verb is one; but "Electric cars are" is no name.
        looks_so = (
            token.group().islower() and re.fullmatch(r"\w+(?:ed|[^s]s)", verb) and verb not in _PREPOSITIONS
        )
        before = re.sub(r"(?: (?:also|first|then|later|often|now|still|once|\w+ly))+$", "", before)
        named = (
            looks_so
            and _NAME.fullmatch(before)
            and not {t.group() for t in tokens[index + 1 : index + 3]} & _VERBS
        )
        if not index or before.lower() in _DETERMINERS or not (verb in _VERBS or named):
            continue
        if not named and _is_participle(tokens, index):  # "the gas used in balloons is"
            continue
        if re.search(r"\b(?:that|which|who)\b", before):
            break
        phrase, _, aside = before.partition(", ")
        if aside and not aside.endswith(","):  # a list, not an apposition
            return None
        phrase = phrase.strip(" ,*_")
        rest = text[token.start() :]
        # "The winner was Ann Lee.": Ann Lee is who she is.
        if not _NAME.fullmatch(phrase) and (found := _IS_NAMED.match(rest)):
            return _mention_of(found["name"], "is", rest[found.end() :])
        return _mention_of(phrase, verb, rest)
    found = _ENDS_NAMED.search(text)
    return _mention_of(found["name"], "is", "") if found else None


def _is_participle(tokens: list[re.Match[str]], index: int) -> bool:
    """Whether a word that looks like a verb only describes what stands before it: the verb comes later."""
    word = tokens[index].group()
    following = [token.group() for token in tokens[index + 1 : index + 12]]
    clause = following[: next((n for n, token in enumerate(following) if token in ",;.:"), len(following))]
    return (
        (word.endswith("ed") or word in _PARTICIPLE_FORMS)
        and clause[:1] != []
        and clause[0] in ("in", "by", "for", "to", "from", "as", "at", "on", "with")
        and any(token in _SINGULAR | _PLURAL for token in clause)
        and not {"that", "which", "who", "and", "when", "while"} & set(clause)
    )


def _without_opening(text: str) -> str:
    """The text without an adverb or a phrase with a preposition before its subject."""
    text = text.strip()
    while True:
        first, _, rest = text.partition(" ")
        word = first.strip(",").lower()
        opening, comma, after = text.partition(", ")
        opens = word in _PREPOSITIONS | _ADVERBS | _PARTICIPLES
        if comma and opens and len(opening.split()) <= 12:
            text = after
        elif rest and word in _ADVERBS and word != "in":
            text = rest
        else:
            return text


def _mention_of(phrase: str, verb: str, rest: str) -> _Mention | None:
    quoted = bool(re.fullmatch(r"[\"“][^\"“”]+[\"”]", phrase))
    parts = phrase.split()
    lowered = [part.lower().strip(".") for part in parts]
    if (
        not parts
        or len(parts) > _LONGEST
        or lowered[0] in _STARTS | _PREPOSITIONS
        or not (quoted or parts[0][:1].isalnum())
    ):
        return None
    if quoted:
        return _Mention(phrase, plural=False, person=False)
    if set(lowered) & {"that", "which", "who", "whom", "it", "he", "she", "they"} or re.search(
        r"[;:\"“”?!]", phrase
    ):
        return None
    if len(parts) > 2 and lowered[1] == "of":  # "some of the", "one of the"
        return None
    head = re.split(r" (?:of|in|for|with|on|at|from|to|by|between) ", phrase)[0].split()[-1].lower()
    name = bool(_NAME.fullmatch(phrase)) and lowered[0] not in _NOT_NAMES
    if verb in _SINGULAR or verb in _PLURAL:
        plural = verb in _PLURAL
    else:
        plural = "and" in lowered or (
            not name and head.endswith("s") and not head.endswith(("ss", "us", "is"))
        )
    person: bool | None = None
    gender = (_TITLES.get(lowered[0]) if len(parts) > 1 else None) or _ROLES.get(head)
    described = re.split(r"[,.;]| (?:that|which|who|in|of|for|from|by) ", rest.partition(" ")[2])[0].lower()
    is_named = re.match(r"(?:an?|the|one)\b", described) if verb in ("is", "was") else None
    if gender or (not name and _HUMAN.search(head)) or (name and _LIVES.search(rest)):
        person = True
    elif not name or not _may_name_person(parts):
        person = False
    elif is_named:
        gender = next((_ROLES[word] for word in described.split() if word in _ROLES), None)
        last = described.split()[-1]
        if gender or _HUMAN.search(last):
            person = True
        elif last in _NOT_PERSONS:
            person = False
    return _Mention(phrase, plural, person, gender)


def _learn_subject(subject: _Mention, story: _Story) -> None:
    """Put the subject last; what was known of the same name stays known."""
    for known in story.subjects:
        if known.text.lower() == subject.text.lower():
            story.subjects.remove(known)
            known.person = subject.person if known.person is None else known.person
            known.gender = known.gender or subject.gender
            subject = known
            break
    story.subjects.append(subject)


# Pronouns


def starts_with_pronoun(sentence: str) -> bool:
    """Whether the sentence begins with a personal pronoun or its possessive."""
    return sentence.partition(" ")[0].lower().split("'")[0].split("’")[0] in _PERSONAL


def _resolve_pronoun(text: str, story: _Story) -> str:
    """The text with the pronoun that is, or owns, its subject replaced, if it is plain by what."""
    if label := _LABELLED.match(text):  # "Ann Lee: She sings."
        own = "'s" if label["pronoun"].lower() in _OWNING else ""
        return label["name"] + own + text[label.end() :]
    found = _OPENED.match(text) or _LEADING.match(text)
    if not found:
        return text
    start, end = found.span("pronoun")
    pronoun = found["pronoun"].lower()
    opening = text[:start]
    if pronoun == "it" and _EMPTY_IT.match(text, start):
        return text
    if not _opens_only(opening, story):
        return text
    meant = _antecedent(_PERSONAL[pronoun], story)
    if meant is None:
        return text
    name = meant.text
    if pronoun == "they" and not meant.plural:
        rest = _agree(text[end:])
        if rest is None:
            return text
        text = text[:end] + rest
    name = _inside(name, story) if opening else name[0].upper() + name[1:]
    if pronoun in _OWNING:
        name += "'" if meant.plural and name.endswith("s") else "'s"
        return opening + name + text[end:]
    short = found.groupdict().get("short")
    if short:
        written = _WRITTEN_OUT.get(short[1:].lower())
        # "He's seen": has, or is?
        if written is None or (
            written == " is" and re.match(r" (?:been|got|had|\w+e[dn])\b", text[found.end() :])
        ):
            return text
        return opening + name + written + text[end + len(short) :]
    return opening + name + text[end:]


def _opens_only(opening: str, story: _Story) -> bool:
    """Whether what stands before the pronoun brings nobody and nothing new that it could stand for."""
    first = opening.partition(" ")[0].lower().strip(",")
    if not opening or opening.endswith(tuple(f"{word} " for word in _CLAUSES)):
        return True
    if first not in _PREPOSITIONS | _ADVERBS:
        return False
    if first in _CLAUSES or first in ("according", "like", "unlike", "with", "for"):
        # A clause has a subject of its own.
        names = [name for name in _NAME.findall(opening) if name.lower() not in _NOT_NAMES]
        return not names and not (first in _CLAUSES and find_subject(opening[len(first) :]))
    return True


def _antecedent(pronoun: str, story: _Story) -> _Mention | None:
    """What he, she, it or they means: the last subject, or the last person, that can be meant."""
    for distance, mention in enumerate(reversed(story.subjects)):
        if pronoun == "they":
            alone = story.speaks_of_one and mention.person is not True
            if mention.plural or (distance == 0 and (alone or mention.gender == "they")):
                mention.gender = "they"
                return mention
        elif pronoun == "it":
            if not mention.plural and not mention.person:
                mention.person = False
                return mention
        elif not mention.plural and mention.person is not False:
            if mention.gender in (None, pronoun):
                mention.person, mention.gender = True, pronoun
                return mention
            continue
        # The further back, the likelier that something else was meant that was never a subject.
        if pronoun in ("it", "they") and distance:
            return None
    return None


def _agree(rest: str) -> str | None:
    """What follows "they" as it must follow one; None if its verb is not known."""
    found = re.match(r"((?: (?:also|often|only|\w+ly))* )([\w'’]+)", rest)
    if not found:
        return None
    verb = found[2]
    if verb in _ONE:
        verb = _ONE[verb]
    elif verb not in _UNCHANGED and not verb.endswith("ed"):
        verb = next((form for form in (verb + "s", verb + "es") if form in _VERBS), "")
    return found[1] + verb + rest[found.end() :] if verb else None
