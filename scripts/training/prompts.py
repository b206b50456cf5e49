"""The native prompts of the adapters: version -> literals around the data.

An adapter is bound to its prompt: the version goes into its metadata.
`{name}` marks data, which is tokenised on its own and never parsed for
control tokens.  The part before `|` is the shared prefix.
"""

from __future__ import annotations

import re

PROMPTS = {
    "support/1": (
        "<|im_start|>user\nContext:\n{context}|\n\nStatement:\n{statement}\n\n"
        "Is the statement supported by the context?<|im_end|>\n<|im_start|>assistant\n"
    ),
    "decompose/1": (
        "<|im_start|>user\nQuestion:\n{question}\n\nAnswer:\n{answer}|\n\nSentence:\n{sentence}\n\n"
        "Write every claim of the sentence as a standalone statement.<|im_end|>\n"
        "<|im_start|>assistant\n"
    ),
    "goal/1": (
        "<|im_start|>user\nTrace:\n{trace}|\n\nDesired outcome:\n{outcome}\n\n"
        "Does the trace end with this outcome?<|im_end|>\n<|im_start|>assistant\n"
    ),
}


def split(version: str) -> tuple[list[str], list[str]]:
    """(pieces of the prefix, pieces of the branch); a data piece keeps its braces."""
    marker = "\0"
    text = re.sub(r"(\{\w+\})\|", r"\1" + marker, PROMPTS[version])
    prefix, branch = text.split(marker)
    cut = lambda part: [p for p in re.split(r"(\{\w+\})", part) if p]  # noqa: E731
    return cut(prefix), cut(branch)


def encode(
    tokenizer, pieces: list[str], data: dict[str, str], cap: dict[str, int] | None = None
) -> list[int]:
    """Token ids of the pieces; `cap` limits the tokens of a data piece."""
    out: list[int] = []
    for piece in pieces:
        if piece.startswith("{"):
            name = piece[1:-1]
            ids = tokenizer.data(data[name])
            if cap and name in cap:
                ids = ids[: cap[name]]
            out += ids
        else:
            out += tokenizer.literal(piece)
    return out
