"""The goal skill: does a trace end with the desired outcome?

All pairs are made by program: an agent with tools does, half does, fails to do or
only claims to do what was asked; or it answers a question rightly or wrongly while
the right answer may well stand in a tool's result.  Each trace is judged against
several outcomes, so that neither the trace nor the outcome alone gives the label.
The text of a trace is that of the formatter `anvil-trace/1`.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

from training import prompts
from training import sentences as S
from training.lexicon import CITIES, COMPANIES, COUNTRIES, FIRST, KINDS, LAST
from training.passages import Item, PassageItems
from training.support import read
from training.trees import Branch, Tree

PROMPT = "goal/1"
PER_STEP = 48.0
TRACE_TOKENS = 1000
FIRST_TOKENS = 200
OUTCOME_TOKENS = 200
LONGEST = 1536
SOURCES = [
    "traces made by scripts/training from its own templates (Apache-2.0)",
    "question answering recast from BoolQ passages (CC-BY-SA-3.0)",
    "initialised from the support adapter and its sources",
]
WEIGHTS = {"actions": 0.45, "answers": 0.25, "cloze": 0.15, "yes no": 0.06, "no change": 0.09}


# the text of a trace -----------------------------------------------------------
def blocks(messages: list[dict]) -> list[str]:
    """`anvil-trace/1`: one block a message; only the formatter begins a line at its margin."""
    label = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
    tools: dict[str, str] = {}
    out = []
    for number, message in enumerate(messages, 1):
        role, text, calls = message["role"], message.get("content") or "", message.get("tool_calls") or []
        head = f"[{number}] {label[role]}"
        lines = []
        if text or not calls:
            name = (
                message.get("name") or tools.get(message.get("tool_call_id") or "")
                if role == "tool"
                else None
            )
            words = re.sub(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", r"\g<0>  ", text)
            lines.append(f"{head} {name}: {words}" if name else f"{head}: {words}")
        for call in calls:
            args = call.get("arguments")
            lines.append(
                f"{head} calls {call['name']}"
                + ("" if args is None else " " + json.dumps(args, ensure_ascii=False))
            )
            if call.get("id"):
                tools[call["id"]] = call["name"]
        out.append("\n".join(lines))
    return out


def fit(parts: list[str], size, limit: int = TRACE_TOKENS, first: int = FIRST_TOKENS) -> str:
    """The text of a trace within `limit` tokens.

    A trace that is too long keeps its first user message and its end; a line of
    dots stands for what is left out.  A block that is too long by itself keeps its
    start and its end.
    """

    def squeeze(text: str, room: int) -> str:
        while size(text) > room:
            keep = max(20, int(len(text) * room / size(text) * 0.9)) // 2
            text = text[:keep] + " [...] " + text[-keep:]
        return text

    whole = "\n".join(parts)
    if size(whole) <= limit:
        return whole
    start = next((i for i, p in enumerate(parts) if re.match(r"\[\d+\] user", p)), 0)
    head = squeeze(parts[start], first)
    room = limit - size(head) - 4
    tail: list[str] = []
    for i in range(len(parts) - 1, start, -1):
        part = squeeze(parts[i], 300)
        if size(part) + 1 > room:
            break
        room -= size(part) + 1
        tail.append(part)
    return "\n".join([head, *(["[...]"] if len(tail) < len(parts) - start - 1 else []), *reversed(tail)])


# templates -----------------------------------------------------------------------
class Traces:
    def __init__(self, seed: int, passages: list[str]):
        self.rng = random.Random(seed)
        self.passages = PassageItems(passages, seed + 1)

    def name(self) -> str:
        return f"{self.rng.choice(FIRST)} {self.rng.choice(LAST)}"

    def code(self) -> str:
        rng = self.rng
        return rng.choice(
            [
                f"{rng.choice('ABCDEFGHJKLM')}{rng.randrange(100, 9999)}",
                "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789") for _ in range(6)),
                f"{rng.choice(['order', 'user', 'res', 'doc'])}_{rng.randrange(100, 99999)}",
                str(rng.randrange(1000, 99999)),
            ]
        )

    def date(self) -> str:
        return f"{self.rng.randrange(2022, 2026)}-{self.rng.randrange(1, 13):02d}-{self.rng.randrange(1, 29):02d}"

    def task(self) -> dict:
        """One thing to do: tool, arguments, and how people speak of it."""
        rng = self.rng
        t = rng.randrange(14)
        code, n, c, c2 = self.code(), self.name(), *rng.sample(CITIES, 2)
        d, amount = self.date(), rng.randrange(5, 900)
        hour = f"{rng.randrange(6, 22):02d}:{rng.choice(['00', '15', '30', '45'])}"
        seat = rng.choice(["economy", "business", "first class"])
        things = rng.choice(["tickets", "chairs", "lamps", "books", "batteries", "mugs"])
        q = rng.randrange(2, 12)
        table = [
            ("cancel_order", {"order_id": code}, f"cancel order {code}", f"order {code} is cancelled"),
            ("book_flight", {"from": c, "to": c2, "date": d, "cabin": seat}, f"book a {seat} flight from {c} to {c2} on {d}", f"a {seat} flight from {c} to {c2} on {d} is booked"),
            ("update_reservation", {"reservation_id": code, "cabin": seat}, f"change reservation {code} to {seat}", f"reservation {code} is changed to {seat}"),
            ("send_email", {"to": n, "subject": rng.choice(["invoice", "report", "meeting", "invitation"])}, None, None),
            ("create_event", {"title": rng.choice(["dentist", "team lunch", "review", "call with the bank"]), "date": d, "time": hour}, None, None),
            ("delete_file", {"path": f"/{rng.choice(['tmp', 'docs', 'data'])}/{code.lower()}.txt"}, None, None),
            ("issue_refund", {"order_id": code, "amount": amount}, f"refund {amount} euros for order {code}", f"{amount} euros are refunded for order {code}"),
            ("set_alarm", {"time": hour}, f"set an alarm for {hour}", f"an alarm is set for {hour}"),
            ("update_address", {"user_id": code, "city": c}, f"change the city of user {code} to {c}", f"the city of user {code} is now {c}"),
            ("place_order", {"item": things, "quantity": q}, f"order {q} {things}", f"{q} {things} are ordered"),
            ("add_bags", {"reservation_id": code, "bags": q}, f"add {q} bags to reservation {code}", f"reservation {code} has {q} bags"),
            ("transfer_money", {"to": n, "amount": amount}, f"send {amount} dollars to {n}", f"{amount} dollars are sent to {n}"),
            ("assign_ticket", {"ticket": code, "assignee": n}, f"assign ticket {code} to {n}", f"ticket {code} is assigned to {n}"),
            ("book_room", {"hotel_city": c, "checkin": d, "guests": q}, f"book a hotel room in {c} from {d} for {q} guests", f"a hotel room in {c} from {d} for {q} guests is booked"),
        ]  # fmt: skip
        tool, args, ask, done = table[t]
        if tool == "send_email":
            ask, done = (
                f"send {n} an email about the {args['subject']}",
                f"{n} got an email about the {args['subject']}",
            )
        if tool == "create_event":
            ask, done = (
                f"put '{args['title']}' into my calendar on {d} at {hour}",
                f"the calendar has '{args['title']}' on {d} at {hour}",
            )
        if tool == "delete_file":
            ask, done = f"delete {args['path']}", f"the file {args['path']} is deleted"
        return {"tool": tool, "args": args, "ask": ask, "done": done}

    def like(self, task: dict) -> dict:
        """The same kind of task with one other value."""
        for _ in range(200):
            other = self.task()
            if other["tool"] == task["tool"] and other["args"] != task["args"]:
                key = self.rng.choice([k for k in task["args"] if other["args"][k] != task["args"][k]])
                args = {**task["args"], key: other["args"][key]}
                swap = lambda text: text.replace(str(task["args"][key]), str(args[key]))  # noqa: E731, B023
                changed = {
                    "tool": task["tool"],
                    "args": args,
                    "ask": swap(task["ask"]),
                    "done": swap(task["done"]),
                }
                if changed["done"] != task["done"]:
                    return changed
        return self.task()

    def outcome(self, tasks: list[dict]) -> str:
        """The desired outcome in one of several wordings."""
        rng = self.rng
        r = rng.random()
        if r < 0.4:
            return "Expected actions: " + "; ".join(f"{t['tool']}({json.dumps(t['args'])})" for t in tasks)
        if r < 0.7:
            text = " and ".join(t["done"] for t in tasks)
            return text[0].upper() + text[1:] + "."
        if r < 0.85:
            return "The user wants to " + " and to ".join(t["ask"] for t in tasks) + "."
        return rng.choice(["The user's goal is to ", "Goal: ", ""]) + " and ".join(t["ask"] for t in tasks)

    def result(self, ok: bool, task: dict) -> str:
        rng = self.rng
        if ok:
            return rng.choice(['{"status": "success"}', "ok", "Done.", '{"response": {"status": "success"}, "exception": null}', json.dumps({"status": "completed", **task["args"]}),
                               json.dumps({"id": self.code(), **task["args"]}), "200 OK"])  # fmt: skip
        return "Error: " + rng.choice(
            [
                "not found",
                "permission denied",
                "payment method is not valid",
                "not enough seats",
                "timeout",
                "invalid argument",
                "already cancelled",
                "limit reached",
            ]
        )

    def call(self, messages: list[dict], tool: str, args: dict, result: str, say: str = "") -> None:
        key = f"c{len(messages)}"
        messages.append(
            {
                "role": "assistant",
                "content": say,
                "tool_calls": [{"id": key, "name": tool, "arguments": args}],
            }
        )
        messages.append({"role": "tool", "content": result, "tool_call_id": key})

    def small_talk(self, messages: list[dict]) -> None:
        rng = self.rng
        messages.append(
            {
                "role": "assistant",
                "content": rng.choice(
                    [
                        "Sure, can you give me your user id?",
                        "I can help with that. What is your account number?",
                        "Of course. Please confirm that I may go on.",
                    ]
                ),
            }
        )
        messages.append(
            {
                "role": "user",
                "content": rng.choice(
                    [
                        f"It is {self.code()}.",
                        "Yes, please.",
                        f"My id is {self.name().lower().replace(' ', '_')}_{rng.randrange(100, 999)}",
                        "yes",
                    ]
                ),
            }
        )

    def look_up(self, messages: list[dict]) -> None:
        rng = self.rng
        tool = rng.choice(["get_user", "search_orders", "get_reservation", "list_events", "search_flights"])
        body = {
            "name": self.name(),
            "items": [self.code() for _ in range(rng.randrange(1, 6))],
            "city": rng.choice(CITIES),
            "balance": rng.randrange(10, 999),
            "created": self.date(),
        }
        if rng.random() < 0.4:
            body["history"] = [
                {"id": self.code(), "date": self.date(), "price": rng.randrange(10, 900)}
                for _ in range(rng.randrange(2, 8))
            ]
        self.call(messages, tool, {"id": self.code()}, json.dumps(body))

    def actions(self) -> Item:
        """Things to do with tools; outcomes that were reached and outcomes that were not."""
        rng = self.rng
        tasks = [self.task() for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))]
        asked = " and ".join(t["ask"] for t in tasks)
        messages = [
            {
                "role": "user",
                "content": rng.choice(["Please ", "Hi, could you ", "I need you to ", "Hello! Can you ", ""])
                + asked
                + rng.choice([".", "", "?", ". Thanks!"]),
            }
        ]
        if rng.random() < 0.15:
            messages.insert(
                0,
                {
                    "role": "system",
                    "content": rng.choice(
                        [
                            "You are a helpful agent.",
                            "Follow the policy: ask before any change.",
                            "You are the assistant of an airline.",
                        ]
                    ),
                },
            )
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            rng.choice([self.small_talk, self.look_up])(messages)
        order = tasks[:]
        rng.shuffle(order)
        reached: list[dict] = []
        missed: list[tuple[dict, dict]] = []  # (wanted, what was done instead)
        for task in order:
            how = rng.choices(
                ["done", "retry", "wrong", "error", "claimed", "refused", "asked"],
                [5, 1, 2.2, 1.2, 1.2, 0.8, 0.5],
            )[0]
            if rng.random() < 0.3:
                self.look_up(messages)
            if how == "done":
                self.call(messages, task["tool"], task["args"], self.result(True, task))
                reached.append(task)
            elif how == "retry":
                self.call(messages, task["tool"], task["args"], self.result(False, task))
                self.call(
                    messages,
                    task["tool"],
                    task["args"],
                    self.result(True, task),
                    rng.choice(["", "Let me try again."]),
                )
                reached.append(task)
            elif how == "wrong":
                other = self.like(task)
                self.call(messages, other["tool"], other["args"], self.result(True, other))
                missed.append((task, other))
                reached.append(other)
            elif how == "error":
                self.call(messages, task["tool"], task["args"], self.result(False, task))
                missed.append((task, task))
            else:
                missed.append((task, task))
                if how == "refused":
                    messages.append(
                        {
                            "role": "assistant",
                            "content": rng.choice(
                                [
                                    "I'm sorry, the policy does not allow this.",
                                    "I cannot do that for this account.",
                                    "Unfortunately this is not possible.",
                                ]
                            ),
                        }
                    )
                elif how == "asked":
                    messages.append(
                        {
                            "role": "assistant",
                            "content": rng.choice(
                                ["Do you really want me to do that?", "Could you tell me more about it?"]
                            ),
                        }
                    )
        good = not missed
        if rng.random() < 0.85:
            claim = good or rng.random() < 0.6
            done = " and ".join(t["done"] for t in tasks)
            messages.append({"role": "assistant", "content": rng.choice([f"Done: {done}.", f"All set, {done}.", "Everything is done.", f"I have taken care of it: {done}."]) if claim
                             else rng.choice(["I'm sorry, that did not work.", "Only a part of it could be done.", "I could not finish this."])})  # fmt: skip
        if rng.random() < 0.4:
            messages.append(
                {"role": "user", "content": rng.choice(["Thanks!", "Great, thank you.", "###STOP###", "ok"])}
            )
        outcomes: list[tuple[str, int]] = [(self.outcome(tasks), int(good))]
        if good:
            outcomes.append((self.outcome([self.like(t) if i == 0 else t for i, t in enumerate(tasks)]), 0))
            if rng.random() < 0.5:
                outcomes.append((self.outcome([*tasks, self.task()]), 0))
            else:
                outcomes.append((self.outcome(tasks), 1))
        else:
            wanted = missed[0][0]
            outcomes.append((self.outcome([wanted]), 0))
            if reached:
                outcomes.append((self.outcome(reached), 1))
                outcomes.append((self.outcome([rng.choice(reached)]), 1))
        rng.shuffle(outcomes)
        return Item("actions", self.text(messages), tuple(outcomes))

    def no_change(self) -> Item:
        """Nothing should be changed; a look-up is fine."""
        rng = self.rng
        task = self.task()
        messages = [{"role": "user", "content": f"Can you {task['ask']}?"}]
        for _ in range(rng.randrange(1, 4)):
            rng.choice([self.small_talk, self.look_up])(messages)
        changed = rng.random() < 0.5
        failed = False
        if changed:
            failed = rng.random() < 0.25
            self.call(messages, task["tool"], task["args"], self.result(not failed, task))
        messages.append(
            {
                "role": "assistant",
                "content": f"All set, {task['done']}."
                if changed and not failed
                else rng.choice(
                    [
                        "I'm sorry, the policy does not allow this.",
                        "I cannot do this, so I left everything as it was.",
                        "This is not possible. Do you need anything else?",
                    ]
                ),
            }
        )
        if rng.random() < 0.5:
            messages.append(
                {"role": "user", "content": rng.choice(["I see, thanks.", "###STOP###", "Okay, forget it."])}
            )
        same = int(not changed or failed)
        want = rng.choice(
            [
                "No change to the database is expected.",
                "Nothing is changed.",
                "The agent refuses and changes nothing.",
                "The agent should not make any change.",
            ]
        )
        out = [(want, same)]
        if rng.random() < 0.6:
            out.append((self.outcome([task]), 1 - same))
        return Item("no change", self.text(messages), tuple(out))

    # questions -----------------------------------------------------------------------
    def final(self, answer: str) -> str:
        rng = self.rng
        return rng.choice(
            [
                f"Final answer: {answer}",
                f"The answer is {answer}.",
                f"{answer}",
                f"It is {answer}.",
                f"Answer: {answer}",
                f"I found it.\nFinal answer: {answer}",
                f"So the answer is {answer}.\nFinal answer: {answer}",
            ]
        )

    def research(self, question: str, texts: list[str], answer: str, thought: str = "") -> str:
        rng = self.rng
        messages = [{"role": "user", "content": question}]
        for text in texts:
            tool = rng.choice(["search", "lookup", "wiki", "browse"])
            self.call(
                messages,
                tool,
                {"query": " ".join(text.split()[:3]).strip(",.")},
                text,
                rng.choice(["", "", "I need to search for this.", "Let me look this up.", thought]),
            )
        messages.append({"role": "assistant", "content": self.final(answer)})
        if rng.random() < 0.1:
            messages.append({"role": "user", "content": "Thanks!"})
        return self.text(messages)

    def reference(self, answer: str) -> str:
        return self.rng.choice(
            [
                answer,
                answer,
                answer,
                f"The answer is {answer}.",
                f"The agent answers: {answer}",
                answer.lower(),
            ]
        )

    def answers(self) -> Item:
        """Questions about invented people and firms; the wrong answer often stands in the text too."""
        rng = self.rng
        n, k = self.name(), rng.choice(COMPANIES)
        c, c2 = rng.sample(CITIES, 2)
        y, y2 = rng.sample(range(1900, 2020), 2)
        co, co2 = rng.sample(COUNTRIES, 2)
        price = rng.randrange(3, 90) * 1000
        color = rng.sample(KINDS["instrument"], 2)
        texts = [
            f"{n} was born in {c} in {y} and moved to {c2} in {y2}.",
            f"{k} was founded in {y2} in {co}. It has a branch in {co2}. Its first product cost {price:,} dollars.",
            f"{n} plays the {color[0]}; a brother plays the {color[1]}.",
        ]
        asks = [
            (f"Where was {n} born?", c, [c2, co], 0), (f"In which year was {n} born?", str(y), [str(y2), str(y + 1)], 0), (f"In which country was {k} founded?", co, [co2, c], 1),
            (f"When was {k} founded?", str(y2), [str(y), str(y2 - 2)], 1), (f"How much did the first product of {k} cost?", f"{price:,} dollars", [f"{price + 1000:,} dollars", f"{y2} dollars"], 1),
            (f"Which instrument does {n} play?", color[0], [color[1], "none"], 2), (f"Who moved to {c2}?", n, [self.name(), k], 0), (f"Which company has a branch in {co2}?", k, [rng.choice([x for x in COMPANIES if x != k]), n], 1),
        ]  # fmt: skip
        question, right, wrongs, at = rng.choice(asks)
        shown = rng.sample(texts, 3) if rng.random() < 0.4 else [texts[at]]
        r = rng.random()
        if r < 0.5:
            given = right
            if re.fullmatch(r"[\d,]+ dollars", given) and rng.random() < 0.5:
                given = given.replace(",", "") if rng.random() < 0.5 else "$" + given.replace(" dollars", "")
            out = [(self.reference(right), 1), (self.reference(rng.choice(wrongs)), 0)]
        elif r < 0.85:
            given = rng.choice(wrongs)
            out = [(self.reference(right), 0), (self.reference(given), 1)]
        else:
            given = rng.choice(["I don't know", "unknown", "I could not find it", "not stated in the text"])
            out = [(self.reference(right), 0)]
        return Item("answers", self.research(question, shown, given), tuple(out))

    def cloze(self) -> Item:
        """A real passage; the answer is a name or number of it."""
        rng = self.rng
        while True:
            _, body, _, good = rng.choice(self.passages.parsed)
            s = rng.choice(good)
            names = [x for x in S.names(s) if s.count(x) == 1] or re.findall(r"\b\d[\d,]{1,6}\b", s)
            if not names:
                continue
            right = rng.choice(names)
            others = [x for x in S.names(body) if x not in right and right not in x] or [rng.choice(CITIES)]
            question = rng.choice(
                [
                    "Complete the sentence: ",
                    "What is missing here? ",
                    "Which word or name belongs in the gap? ",
                ]
            ) + s.replace(right, "____", 1)
            texts = [body[:1500]]
            if rng.random() < 0.3:
                texts.insert(0, rng.choice(self.passages.parsed)[1][:900])
            wrong = rng.choice(others)
            given = right if rng.random() < 0.5 else wrong
            pairs = [
                (self.reference(right), int(given == right)),
                (self.reference(wrong), int(given == wrong)),
            ]
            return Item("cloze", self.research(question, texts, given), tuple(pairs))

    def text(self, messages: list[dict]) -> str:
        return "\n".join(blocks(messages))


def yes_no(rows: list[dict], rng: random.Random, traces: Traces, count: int) -> list[Item]:
    """BoolQ: the trace answers yes or no, the reference is yes or no."""
    out = []
    chosen = [r for r in rows if r["set"] == "boolq_template" and len(r["context"]) < 1500]
    for row in rng.sample(chosen, count):
        said = rng.choice(["yes", "no"])
        text = traces.research(row["question"], [S.clean(row["context"])], said)
        out.append(Item("yes no", text, (("yes", int(said == "yes")), ("no", int(said == "no")))))
    return out


# trees -----------------------------------------------------------------------------
def tree(tokenizer, item: Item, digits: tuple[int, int], longest: int, unique: bool = True) -> Tree:
    before, after = prompts.split(PROMPT)
    prefix = prompts.encode(tokenizer, before, {"trace": item.context})
    branches, size = [], len(prefix)
    for outcome, label in dict.fromkeys(item.statements) if unique else item.statements:
        tokens = prompts.encode(tokenizer, after, {"outcome": outcome})
        size += len(tokens)
        if size > longest:
            break
        branches.append(Branch.verdict(tokens, digits[label]))
    return Tree(np.array(prefix, np.int32), branches, item.kind)


def training(data: Path, seed: int, scale: float, tokenizer, pair):
    rng = random.Random(seed)
    rows = read(data / "support_train.jsonl.gz")
    passages = sorted({r["context"] for r in rows if r["set"] == "boolq_template"})
    traces = Traces(seed + 1, passages)
    items = [traces.actions() for _ in range(int(5000 * scale))]
    items += [traces.no_change() for _ in range(int(1500 * scale))]
    items += [traces.answers() for _ in range(int(4000 * scale))]
    items += [traces.cloze() for _ in range(int(2000 * scale))]
    items += yes_no(rows, rng, traces, int(1000 * scale))
    pools: dict[str, list[Tree]] = defaultdict(list)
    for item in items:
        made = tree(tokenizer, item, pair, 1024)
        if made.branches:
            pools[item.kind].append(made)
    validation = [t for k in sorted(pools) for t in pools[k][:40]]
    return {k: v[40:] for k, v in pools.items()}, validation


def look(model, validation, pair, args, tokenizer) -> None:
    from training import measure

    margins = measure.torch_margins(model, validation, pair)
    rows = [{"set": t.kind, "label": int(b.targets[-1] == pair[1])} for t in validation for b in t.branches]
    print(
        "held-out made traces\n"
        + measure.show(measure.report(rows, np.array([m for x in margins for m in x]), 0.0)),
        flush=True,
    )


def evaluate(args) -> int:
    """traces_dev, with the reference and with the goal, beside the number of messages."""
    from training import measure
    from training.skills import binary_margins, digits, finish
    from training.tokens import Tokenizer

    tokenizer = Tokenizer(args.base)
    pair = digits(tokenizer)
    rows = read(args.data / "traces_dev.jsonl.gz")
    size = lambda text: len(tokenizer.data(text))  # noqa: E731
    kept, trees = [], []
    for row in rows:
        outcomes = []
        for kind in ("reference", "goal"):
            if row[kind]:
                outcome = tokenizer.text(tokenizer.data(row[kind])[:OUTCOME_TOKENS])
                outcomes.append((outcome, row["label"]))
                kept.append(
                    {"set": f"{row['set']} {kind}", "label": row["label"], "messages": len(row["messages"])}
                )
        text = fit(blocks(row["messages"]), size)
        trees.append(tree(tokenizer, Item("dev", text, tuple(outcomes)), pair, LONGEST, unique=False))
    print("baseline: fewer messages")
    base = measure.report(kept, -np.array([float(k["messages"]) for k in kept]), 0.0)
    for name, v in base["sets"].items():
        print(f"  {name:44} AUROC {v['auroc']:.3f}")
    margins = np.array([m for x in binary_margins(args, trees, pair) for m in x])
    return finish(args, kept, margins)
