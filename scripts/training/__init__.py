"""Training of the judge's LoRA adapters on the weights of a quantised GGUF.

    gguf file -> model.Llama (frozen) -> trees of prompts -> trainer -> export -> GGUF adapter

Nothing here is imported by the product; `scripts/train_judge` is the entry.
"""
