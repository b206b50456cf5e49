"""The judge: a model, its adapters, prompts and settings, with a fingerprint.

`Judge` is the protocol that everything above is written against. `GgufJudge` asks a local GGUF
model; `FakeJudge` answers from a list, for tests without a model (ours and other people's).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from anvil_local.errors import AdapterInvalid, EngineError, UsageError
from anvil_local.prompts import Piece, Prompt, load_profile
from anvil_local.records import Fingerprint, Verdict

if TYPE_CHECKING:
    from anvil_local.engine import Engine, Logits, Tokens
    from anvil_local.grammar import Grammar, Walk
    from anvil_local.models import ResolvedModel

DECODE_PATH = "canonical/1"
"""The name of the decode path (see `engine`) and of the way text is written (see `GgufJudge.write`)."""


@dataclass(frozen=True)
class Writing:
    """Text that the model wrote within a grammar."""

    text: str
    """What it wrote; always a beginning of something the grammar admits."""
    complete: bool
    """Whether the model finished within the length limit."""


class Judge(Protocol):
    """What the metrics need of a judge. Implementations must be deterministic."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Everything that can change a verdict."""
        ...

    def ask(self, task: str, fields: Mapping[str, str]) -> Verdict:
        """One yes/no question; `task` is `support`, `goal`, `contradict` or `bears`.

        Raises:
            PromptTooLong: the question does not fit into the window.
            EngineError: the model failed.
        """
        ...

    def write(self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None) -> Writing:
        """Text within the task's grammar, at most `limit` tokens; greedy, or sampled with a seed."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a piece of data."""
        ...

    def room(self, task: str, fields: Mapping[str, str]) -> int:
        """Tokens left in the window for the fields that are not given."""
        ...

    def threshold_of(self, task: str) -> float:
        """The margin above which a verdict is 1."""
        ...

    def close(self) -> None:
        """Free what the judge holds; it can be asked again."""
        ...


class GgufJudge:
    """A judge that asks a local GGUF model.

    Build it with `GgufJudge.load`. The model file is read when the first question is asked.
    """

    def __init__(
        self,
        model: ResolvedModel,
        *,
        prompts: str | None = None,
        use_adapters: bool = True,
        window: int | None = None,
        threads: int | None = None,
        gpu_layers: int = 0,
        threshold: float | None = None,
    ) -> None:
        self.model = model
        self._use_adapters = use_adapters
        self._wanted_profile = prompts or model.entry.prompts
        self._window = window or model.entry.window
        self._threads = threads
        self._gpu_layers = gpu_layers
        self._threshold = threshold
        self._engine: Engine | None = None
        self._turns: dict[str | None, tuple[Tokens, Tokens]] = {}
        self._choices: dict[tuple[str, str], tuple[tuple[int, ...], ...]] = {}

    @classmethod
    def load(
        cls, model: str | Path | None = None, *, models_dir: str | Path | None = None, **options: Any
    ) -> Self:
        """A judge from a name in the model registry or the path of a GGUF file.

        Args:
            model: a name (`smollm2-135m`), a path, or None for the default model.
            models_dir: the folder of installed models; ANVIL_MODELS_DIR or the user's data folder by default.
            options: `prompts` (profile name), `use_adapters`, `window` (tokens), `threads`,
                `gpu_layers`, `threshold` (logit margin above which a verdict is 1).

        Raises:
            ModelNotFound: neither a name that is installed nor a file.
            ModelFileInvalid: not the pinned bytes, or not a usable GGUF file.
        """
        from anvil_local.models import resolve_model

        return cls(resolve_model(model, folder=models_dir), **options)

    @property
    def engine(self) -> Engine:
        """The loaded model."""
        if self._engine is None:
            from anvil_local.engine import Engine, EngineOptions

            options = EngineOptions(window=self._window, threads=self._threads, gpu_layers=self._gpu_layers)
            self._engine = Engine(self.model.path, adapters=self._adapter_paths, options=options)
            for skill in self._adapter_paths:
                self._check_adapter(skill)
        return self._engine

    def close(self) -> None:
        """Free the model. The next question loads it again."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None
            for name in ("_pieces", "_grammar"):
                self.__dict__.pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Questions

    def ask(self, task: str, fields: Mapping[str, str]) -> Verdict:
        """See `Judge.ask`."""
        prompt = self._prompt(task)
        if prompt.labels is None:
            raise UsageError("this task asks for text, not for a verdict", value=task)
        logits = self._read(prompt, fields)
        zeros, ones = self._choices_of(prompt.labels)
        return _verdict(logits, zeros, ones, self.threshold_of(task))

    def write(self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None) -> Writing:
        """See `Judge.write`. A line that repeats an earlier one ends the text: small models loop."""
        from anvil_local.grammar import PATTERNS

        prompt = self._prompt(task)
        if prompt.grammar is None:
            raise UsageError("this task asks for a verdict, not for text", value=task)
        logits = self._read(prompt, fields)
        engine, walk = self.engine, self._grammar.walk(PATTERNS[prompt.grammar])
        limit = min(limit, engine.window - engine.position)
        pick = _greedy if seed is None else _sampler(seed, prompt.id, fields)
        written = bytearray()
        lines: set[bytes] = set()
        complete = False
        for _ in range(limit):
            token = pick(logits, walk, engine)
            if token == engine.end_token or engine.is_end(token):
                complete = True
                break
            walk.advance(token)
            written += self._pieces[token]
            if written.endswith(b"\n"):
                *_, last, _ = written.split(b"\n")
                if bytes(last) in lines:
                    del written[-len(last) - 1 :]
                    complete = True
                    break
                lines.add(bytes(last))
            logits = engine.extend(token)
        else:
            complete = walk.may_end
        # A text cut at the limit can end inside a character.
        return Writing(written.decode("utf-8", "ignore"), complete)

    def count_tokens(self, text: str) -> int:
        """See `Judge.count_tokens`."""
        return len(self.engine.tokenize(text, control=False))

    def room(self, task: str, fields: Mapping[str, str]) -> int:
        """See `Judge.room`."""
        prompt = self._prompt(task)
        left = self.engine.window - sum(map(len, self._segments(prompt, fields)))
        return left if prompt.room is None else min(left, prompt.room)

    def threshold_of(self, task: str) -> float:
        """The margin above which a verdict is 1: given by the user, or measured with the adapter, or 0."""
        # The user's threshold was chosen for support and goal; these are other questions.
        if self._threshold is not None and task not in ("bears", "contradict"):
            return self._threshold
        if (own := self._prompt(task).threshold) is not None:
            return own
        adapter = self._prompt(task).adapter
        return self.model.entry.adapters[adapter].threshold if adapter else 0.0

    # Fingerprint

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """See `Judge.fingerprint`. Does not load the weights."""
        from importlib.metadata import version

        from anvil_local.engine import CHUNK, build_info
        from anvil_local.grammar import PATTERNS

        tasks = ["support", "goal", "decompose", "workflow"]
        # Only some profiles have it, and the fingerprints of the others do not change for it.
        tasks += ["contradict"] if "contradict" in load_profile(self._profile) else []
        prompts = {task: self._prompt(task) for task in tasks}
        parts: dict[str, Any] = {
            "model": {
                "name": self.model.entry.name,
                "file": self.model.path.name,
                "sha256": self.model.entry.sha256,
            },
            "adapters": {
                skill: self.model.entry.adapters[skill].sha256 for skill in sorted(self._adapter_paths)
            },
            "prompts": {
                task: {
                    "id": prompt.id,
                    "sha256": digest(
                        [prompt.segments, prompt.labels, prompt.wrap, prompt.system, prompt.room]
                    ),
                }
                for task, prompt in prompts.items()
            },
            "options": {
                "profile": self._profile,
                "adapter": self._use_adapters,
                "threshold": self._threshold,
            },
            "thresholds": {task: self.threshold_of(task) for task in ("support", "goal")},
            "grammar": {name: digest(pattern) for name, pattern in sorted(PATTERNS.items())},
            "decode": {
                "path": DECODE_PATH,
                "chunk": CHUNK,
                "flash_attention": False,
                "window": self._window,
                "gpu_layers": self._gpu_layers,
            },
            "build": build_info() | {"outlines_core": version("outlines_core")},
        }
        return Fingerprint(digest=digest(parts), parts=parts)

    # Inner parts

    @cached_property
    def _profile(self) -> str:
        if self._wanted_profile != "auto":
            return self._wanted_profile
        from anvil_local.gguf import check_gguf

        return "chat" if check_gguf(self.model.path).chat_template else "plain"

    @property
    def _adapter_paths(self) -> dict[str, Path]:
        """The adapters that the chosen profile has a prompt for."""
        if not self._use_adapters:
            return {}
        skills = {prompt.adapter for prompt in load_profile(self._profile).values() if prompt.adapter}
        return {skill: path for skill, path in self.model.adapters.items() if skill in skills}

    def _prompt(self, task: str) -> Prompt:
        profile = load_profile(self._profile)
        prompt = profile.get(task)
        if prompt is None:
            raise UsageError("the prompt profile has no such task", where=self._profile, value=task)
        if prompt.adapter and prompt.adapter not in self._adapter_paths:
            return profile.get(f"{task}@base", prompt)
        return prompt

    def _check_adapter(self, skill: str) -> None:
        assert self._engine is not None
        metadata, path = self._engine.adapter_metadata(skill), str(self.model.adapters[skill])
        wanted = {"anvil.base_sha256": self.model.entry.sha256, "anvil.prompt": self._prompt(skill).id}
        for key, value in wanted.items():
            if metadata.get(key) != value:
                raise AdapterInvalid(
                    f"the adapter was made for another {key.removeprefix('anvil.')}; wanted {value!r}",
                    where=path,
                    value=metadata.get(key),
                    hint="use the adapter that the manifest names for this model, with the file that "
                    f"`anvil-local models install {self.model.entry.name}` writes (without a network if the "
                    "published file lies in the models folder), or --no-adapter",
                )

    @cached_property
    def _pieces(self) -> Mapping[int, bytes]:
        return self.engine.token_bytes()

    @cached_property
    def _grammar(self) -> Grammar:
        from anvil_local.grammar import Grammar

        return Grammar(self._pieces, self.engine.end_token)

    def _chat(self, system: str | None) -> tuple[Tokens, Tokens]:
        """What the model's chat template puts before and after the user's turn."""
        from anvil_local.prompts.templates import split_chat_template

        engine = self.engine
        if not engine.info.chat_template:
            raise UsageError(
                "the model has no chat template, which this prompt profile needs",
                where=str(self.model.path),
                value=self._profile,
                hint="choose --prompts plain",
            )
        if system not in self._turns:
            bos = engine.text_of(engine.bos_token) if engine.bos_token is not None else ""
            before, after = split_chat_template(
                engine.info.chat_template, system=system, bos=bos, eos=engine.text_of(engine.end_token)
            )
            self._turns[system] = (
                engine.tokenize(before, control=True),
                engine.tokenize(after, control=True),
            )
        return self._turns[system]

    def _choices_of(self, labels: tuple[str, str]) -> tuple[tuple[int, ...], ...]:
        if labels not in self._choices:
            self._choices[labels] = self._grammar.choices(labels)
        return self._choices[labels]

    def _read(self, prompt: Prompt, fields: Mapping[str, str]) -> Logits:
        self.engine.use_adapter(prompt.adapter if prompt.adapter in self._adapter_paths else None)
        return self.engine.read(self._segments(prompt, fields))

    def _segments(self, prompt: Prompt, fields: Mapping[str, str]) -> list[Tokens]:
        """The exact tokens of a question: our own text with control tokens, data without."""
        engine = self.engine
        segments = [self._tokens(segment) for segment in prompt.render(fields)]
        if prompt.wrap == "chat":
            before, after = self._chat(prompt.system)
            segments[0] = before + segments[0]
            segments[-1] += after
        lead = engine.leading_tokens
        if lead and segments[0][: len(lead)] != lead:  # a chat template may write BOS itself
            segments[0] = lead + segments[0]
        return segments

    def _tokens(self, segment: Sequence[Piece]) -> Tokens:
        tokens: Tokens = ()
        for piece in segment:
            tokens += self.engine.tokenize(piece.text, control=not piece.is_data)
        return tokens


def _verdict(logits: Logits, zeros: Sequence[int], ones: Sequence[int], threshold: float) -> Verdict:
    """The verdict from next-token logits.

    The logit of a label with several tokens is the log of the sum of their exponentials. The margin
    is computed in double precision from single logits, so it is the same on every numpy; the mass,
    a sum over the vocabulary, is rounded to six digits because its last bits are not.
    """
    import numpy as np

    peak = float(logits.max())
    if not math.isfinite(peak):
        raise EngineError("the model's logits are not finite", hint="the model file may be damaged")
    zero, one = (_log_sum_exp([float(logits[token]) for token in tokens]) for tokens in (zeros, ones))
    margin = one - zero
    total = float(np.exp(logits - np.float32(peak)).sum(dtype=np.float64))
    mass = (math.exp(zero - peak) + math.exp(one - peak)) / total
    return Verdict(
        value=1 if margin > threshold else 0,
        p_supported=_logistic(margin),
        margin=margin,
        mass=min(1.0, round(mass, 6)),
        window=0,
    )


def _log_sum_exp(values: Sequence[float]) -> float:
    peak = max(values)
    if len(values) == 1:
        return peak
    return peak + math.log(math.fsum(math.exp(value - peak) for value in values))


def _logistic(margin: float) -> float:
    if margin >= 0:
        return 1.0 / (1.0 + math.exp(-margin))
    power = math.exp(margin)
    return power / (1.0 + power)


def _greedy(logits: Logits, walk: Walk, engine: Engine) -> int:
    """The likeliest token that the grammar allows; the lowest number of equals."""
    best = int(logits.argmax())
    if engine.is_end(best):
        if walk.may_end:
            return best
    elif walk.allows(best):
        return best
    import numpy as np

    allowed = walk.allowed(len(logits))
    return int(np.where(allowed, logits, -np.inf).argmax())


def _sampler(seed: int, prompt: str, fields: Mapping[str, str]) -> Callable[[Logits, Walk, Engine], int]:
    """Draws by the model's own probabilities; the stream depends on the seed and the question alone."""
    import numpy as np

    entropy = int(digest([seed, prompt, dict(fields)])[:32], 16)
    random = np.random.Generator(np.random.PCG64(entropy))

    def sample(logits: Logits, walk: Walk, engine: Engine) -> int:
        allowed = walk.allowed(len(logits))
        scores = np.where(allowed, logits.astype(np.float64), -np.inf)
        weights = np.exp(scores - scores.max()).cumsum()
        return int(np.searchsorted(weights, random.random() * weights[-1], side="right"))

    return sample


def digest(value: Any) -> str:
    """The sha256 of a JSON value, as hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


Answer = Literal[0, 1] | float
"""A fake answer: a verdict, or a margin as a float."""


class FakeJudge:
    """A judge without a model: it answers what it is told and remembers what it was asked.

    Args:
        answers: the answers in order (0, 1, or a margin as float; the last one repeats), or a function
            of task and fields. An answer that is an exception is raised.
        writings: the texts in order, or a function; by default a sentence decomposes into itself and
            a workflow repeats the first and the last turn.

    Example:
        >>> judge = FakeJudge([1, 0])
        >>> judge.ask("support", {"context": "c", "statement": "s"}).value
        1
        >>> judge.asked
        [('support', {'context': 'c', 'statement': 's'})]
    """

    def __init__(
        self,
        answers: Iterable[Answer | Exception] | Callable[[str, Mapping[str, str]], Answer] = (1,),
        writings: Iterable[str] | Callable[[str, Mapping[str, str]], str] | None = None,
        *,
        window: int = 2048,
    ) -> None:
        self._answers = answers if callable(answers) else list(answers)
        self._writings = writings if callable(writings) or writings is None else list(writings)
        self._window = window
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Every question in order: task and fields."""
        self.wrote: list[tuple[str, dict[str, str]]] = []
        """Every text asked for, in order: task and fields."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Says that it is a fake."""
        parts = {"model": {"name": "fake"}}
        return Fingerprint(digest=digest(parts), parts=parts)

    def ask(self, task: str, fields: Mapping[str, str]) -> Verdict:
        """See `Judge.ask`."""
        number = len(self.asked)
        self.asked.append((task, dict(fields)))
        if callable(self._answers):
            answer: Answer | Exception = self._answers(task, fields)
        else:
            answer = self._answers[min(number, len(self._answers) - 1)]
        if isinstance(answer, Exception):
            raise answer
        margin = answer if isinstance(answer, float) else (4.0 if answer else -4.0)
        return Verdict(
            value=1 if margin > 0 else 0, p_supported=_logistic(margin), margin=margin, mass=1.0, window=0
        )

    def write(self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None) -> Writing:
        """See `Judge.write`."""
        number = len(self.wrote)
        self.wrote.append((task, dict(fields)))
        if callable(self._writings):
            return Writing(self._writings(task, fields), True)
        if self._writings is not None:
            return Writing(self._writings[min(number, len(self._writings) - 1)], True)
        if task == "decompose":
            return Writing(f"- {' '.join(fields['sentence'].split())}\n", True)
        said = [line.split(": ", 1)[1] for line in fields["trace"].split("\n") if ": " in line] or ["nothing"]
        return Writing(f"user_goal: {said[0]}\nend_state: {said[-1]}\n", True)

    def count_tokens(self, text: str) -> int:
        """Words, as a stand-in."""
        return len(text.split())

    def room(self, task: str, fields: Mapping[str, str]) -> int:
        """The window less the words of the given fields."""
        return self._window - sum(self.count_tokens(text) for text in fields.values())

    def threshold_of(self, task: str) -> float:
        """Always 0."""
        return 0.0

    def close(self) -> None:
        """Nothing to free."""
