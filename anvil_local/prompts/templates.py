"""Chat templates of GGUF files: untrusted programs that say where our text goes.

The template is rendered once with a marker in place of the user turn, in Jinja's sandbox, and cut at
the marker. Data is never rendered by it.
"""

from __future__ import annotations

from anvil_local.errors import ModelFileInvalid

_MARKER = "\x02anvil-user-turn\x03"
_LONGEST = 100_000


def split_chat_template(
    template: str, *, system: str | None = None, bos: str = "", eos: str = ""
) -> tuple[str, str]:
    """What the template puts before and after the user's text, generation prompt included.

    Reasoning models are asked not to think (`enable_thinking=False`), so that the verdict is the next
    token.

    Raises:
        ModelFileInvalid: the template fails, or does not show the user's text exactly once.
    """
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    hint = "choose a prompt profile without a template: --prompts plain"

    def refuse(message: str) -> None:
        raise ModelFileInvalid(f"the model's chat template refuses: {message}", hint=hint)

    if len(template) > _LONGEST:
        raise ModelFileInvalid("the model's chat template is too long", value=len(template), hint=hint)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda _: ""  # a date would change the verdicts every day
    opening = [{"role": "system", "content": system}] if system else []
    try:
        text = environment.from_string(template).render(
            messages=[*opening, {"role": "user", "content": _MARKER}],
            add_generation_prompt=True,
            enable_thinking=False,
            bos_token=bos,
            eos_token=eos,
        )
    except (
        TemplateError,
        TypeError,
        ValueError,
        ArithmeticError,
        LookupError,
        AttributeError,
        RecursionError,
        MemoryError,
    ) as error:
        raise ModelFileInvalid(f"the model's chat template fails: {error}", hint=hint) from error
    if len(text) > _LONGEST or text.count(_MARKER) != 1:
        raise ModelFileInvalid("the model's chat template does not show the user's text once", hint=hint)
    before, after = text.split(_MARKER)
    return before, after
