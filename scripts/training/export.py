"""Writes the LoRA factors as a GGUF adapter that llama.cpp loads."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from training.model import Llama, rope_rows, sha256


def write_adapter(
    model: Llama,
    path: Path,
    *,
    skill: str,
    prompt: str,
    sources: list[str],
    seed: int,
    steps: int,
    tokens: int,
) -> None:
    """f16 factors, rows of query and key permuted back to the GGUF's order."""
    import gguf

    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(model.alpha))
    writer.add_name(f"anvil {skill} judge for {model.shape.name}")
    writer.add_license("CC-BY-SA-4.0")
    writer.add_string("anvil.skill", skill)
    writer.add_string("anvil.prompt", prompt)
    writer.add_string("anvil.base_sha256", sha256(model.path))
    writer.add_array("anvil.sources", sources)
    writer.add_uint32("anvil.seed", seed)
    writer.add_uint32("anvil.steps", steps)
    writer.add_uint64("anvil.tokens", tokens)
    s = model.shape
    for (layer, linear), (a, b) in model.lora.items():
        b = b.detach().numpy()
        if linear in ("attn_q", "attn_k"):
            back = np.empty_like(b)
            back[rope_rows(b.shape[0], s.heads if linear == "attn_q" else s.kv_heads)] = b
            b = back
        name = f"blk.{layer}.{linear}.weight"
        writer.add_tensor(f"{name}.lora_a", a.detach().numpy().astype(np.float16))
        writer.add_tensor(f"{name}.lora_b", np.ascontiguousarray(b).astype(np.float16))
    part = path.with_suffix(".part")
    writer.path = path
    writer.write_header_to_file(part)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(path)


def read_adapter(model: Llama, path: Path) -> None:
    """Loads an adapter's factors into the model (the inverse of `write_adapter`)."""
    import torch
    from gguf import GGUFReader

    tensors = {t.name: np.array(t.data, dtype=np.float32) for t in GGUFReader(path).tensors}
    s = model.shape
    for (layer, linear), (a, b) in model.lora.items():
        name = f"blk.{layer}.{linear}.weight"
        rows = tensors[f"{name}.lora_b"]
        if linear in ("attn_q", "attn_k"):
            rows = rows[rope_rows(rows.shape[0], s.heads if linear == "attn_q" else s.kv_heads)]
        with torch.no_grad():
            a.copy_(torch.from_numpy(tensors[f"{name}.lora_a"]))
            b.copy_(torch.from_numpy(np.ascontiguousarray(rows)))
