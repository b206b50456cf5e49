"""A plain PyTorch llama whose frozen weights are the dequantised weights of a GGUF.

The adapter is trained on exactly what it will run on.  Base weights are bf16
and frozen; LoRA factors are fp32 masters, cast per step.  Query, key and value
share one matrix product, and so do gate and up; their LoRA `B` factors are laid
out block-diagonally.

GGUF files of the llama architecture store query and key rows permuted for
interleaved ("NORM") rotary embeddings.  They are put back to halves here
(`rope_rows`), and the exporter permutes the adapter's rows again.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

LINEARS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


@dataclass(frozen=True)
class Shape:
    """Sizes read from the GGUF header."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    eps: float
    theta: float
    name: str

    def io(self, linear: str) -> tuple[int, int]:
        """(inputs, outputs) of one linear layer."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "attn_q": (self.width, q),
            "attn_k": (self.width, kv),
            "attn_v": (self.width, kv),
            "attn_output": (q, self.width),
            "ffn_gate": (self.width, self.ffn),
            "ffn_up": (self.width, self.ffn),
            "ffn_down": (self.ffn, self.width),
        }[linear]


def rope_rows(rows: int, heads: int) -> np.ndarray:
    """Index `i` so that `gguf_matrix[i]` has each head's rotary pairs as two halves."""
    dim = rows // heads
    return np.arange(rows).reshape(heads, dim // 2, 2).swapaxes(1, 2).reshape(-1)


def sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def read_gguf(path: Path) -> tuple[Shape, dict[str, np.ndarray]]:
    """The header's sizes and every tensor, dequantised to fp32."""
    from gguf import GGUFReader, quants

    reader = GGUFReader(path)

    def field(key: str, default=None):
        found = reader.fields.get(key)
        if found is None:
            if default is None:
                raise SystemExit(f"{path}: the GGUF has no {key}")
            return default
        return found.contents()

    arch = field("general.architecture")
    if arch != "llama":
        raise SystemExit(f"{path}: architecture {arch}; only llama is supported")
    heads = field("llama.attention.head_count")
    width = field("llama.embedding_length")
    shape = Shape(
        layers=field("llama.block_count"),
        width=width,
        heads=heads,
        kv_heads=field("llama.attention.head_count_kv", heads),
        head_dim=field("llama.attention.key_length", width // heads),
        ffn=field("llama.feed_forward_length"),
        eps=field("llama.attention.layer_norm_rms_epsilon"),
        theta=field("llama.rope.freq_base", 10000.0),
        name=field("general.name", path.stem),
    )
    tensors = {t.name: quants.dequantize(t.data, t.tensor_type) for t in reader.tensors}
    return shape, tensors


# Where the processor has no fast bf16, emulating it is a hundred times slower than fp32.
DTYPE = torch.bfloat16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else torch.float32


def _norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


def _lora(x, weight, a, b):
    return F.linear(x, weight) + F.linear(F.linear(x, a), b)


def _layer(x, cos, sin, mask, n1, n2, w_qkv, w_o, w_gu, w_d, qkv_a, qkv_b, o_a, o_b, gu_a, gu_b, d_a, d_b,
           heads, kv_heads, dim, eps):  # fmt: skip
    """One transformer block.

    Attention is written out (two batched products and a masked softmax): the
    fused CPU kernel's backward pass is several times slower in bf16.  Query
    heads of a group are stacked along the rows, so keys are never repeated.
    """
    batch, length, _ = x.shape
    group = heads // kv_heads
    qkv = _lora(_norm(x, n1, eps), w_qkv, qkv_a, qkv_b).view(batch, length, heads + 2 * kv_heads, dim)
    q = _rotate(qkv[:, :, :heads], cos, sin) * dim**-0.5
    k = _rotate(qkv[:, :, heads : heads + kv_heads], cos, sin)
    v = qkv[:, :, heads + kv_heads :]
    q = (
        q.view(batch, length, kv_heads, group, dim)
        .permute(0, 2, 3, 1, 4)
        .reshape(batch * kv_heads, group * length, dim)
    )
    k = k.permute(0, 2, 1, 3).reshape(batch * kv_heads, length, dim)
    v = v.permute(0, 2, 1, 3).reshape(batch * kv_heads, length, dim)
    scores = torch.bmm(q, k.transpose(1, 2)).view(batch, heads, length, length)
    weights = torch.softmax(scores.float() + mask, dim=-1).to(x.dtype)
    att = torch.bmm(weights.view(batch * kv_heads, group * length, length), v)
    att = att.view(batch, heads, length, dim).transpose(1, 2).reshape(batch, length, heads * dim)
    x = x + _lora(att, w_o, o_a, o_b)
    gate, up = _lora(_norm(x, n2, eps), w_gu, gu_a, gu_b).chunk(2, dim=-1)
    return x + _lora(F.silu(gate) * up, w_d, d_a, d_b)


class Llama:
    """Frozen llama with trainable LoRA factors.

    `lora[(layer, linear)] = [A, B]` are fp32 leaf tensors in GGUF orientation
    (A: rank x inputs, B: outputs x rank), rows of query and key in halves.
    """

    def __init__(self, path: Path, rank: int, alpha: float, seed: int, compiled: bool = True):
        self.path, self.rank, self.alpha = path, rank, alpha
        self.shape, raw = read_gguf(path)
        s = self.shape

        def put(array: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(DTYPE).contiguous()

        q_rows = rope_rows(s.heads * s.head_dim, s.heads)
        k_rows = rope_rows(s.kv_heads * s.head_dim, s.kv_heads)
        self.embed = put(raw["token_embd.weight"])
        self.head = put(raw["output.weight"]) if "output.weight" in raw else self.embed
        self.final_norm = torch.from_numpy(raw["output_norm.weight"].copy())
        self.base = []
        for i in range(s.layers):

            def get(name: str, i: int = i) -> np.ndarray:
                return raw[f"blk.{i}.{name}.weight"]

            qkv = np.concatenate([get("attn_q")[q_rows], get("attn_k")[k_rows], get("attn_v")])
            gu = np.concatenate([get("ffn_gate"), get("ffn_up")])
            self.base.append(
                {
                    "n1": torch.from_numpy(get("attn_norm").copy()),
                    "n2": torch.from_numpy(get("ffn_norm").copy()),
                    "qkv": put(qkv),
                    "o": put(get("attn_output")),
                    "gu": put(gu),
                    "d": put(get("ffn_down")),
                }
            )
        gen = torch.Generator().manual_seed(seed)
        self.lora: dict[tuple[int, str], list[torch.Tensor]] = {}
        for i in range(s.layers):
            for linear in LINEARS:
                inputs, outputs = s.io(linear)
                bound = 1.0 / math.sqrt(inputs)
                a = (torch.rand(rank, inputs, generator=gen) * 2 - 1) * bound * math.sqrt(3)
                self.lora[i, linear] = [a.requires_grad_(), torch.zeros(outputs, rank).requires_grad_()]
        half = torch.arange(0, s.head_dim, 2, dtype=torch.float64) / s.head_dim
        self.inv_freq = (1.0 / s.theta**half).float()
        self.layer = _layer
        if compiled:
            torch._dynamo.config.recompile_limit = 64  # row lengths, with and without gradients
            self.layer = torch.compile(_layer, dynamic=False)

    def parameters(self) -> list[torch.Tensor]:
        return [t for pair in self.lora.values() for t in pair]

    def _factors(self, layer: int) -> dict[str, torch.Tensor]:
        """bf16 LoRA factors of one layer, fused for the fused products."""
        scale = self.alpha / self.rank

        def fuse(*names: str) -> tuple[torch.Tensor, torch.Tensor]:
            pairs = [self.lora[layer, n] for n in names]
            a = torch.cat([p[0] for p in pairs]) if len(pairs) > 1 else pairs[0][0]
            b = torch.block_diag(*[p[1] for p in pairs]) if len(pairs) > 1 else pairs[0][1]
            return a.to(DTYPE), (b * scale).to(DTYPE)

        return {
            "qkv": fuse("attn_q", "attn_k", "attn_v"),
            "o": fuse("attn_output"),
            "gu": fuse("ffn_gate", "ffn_up"),
            "d": fuse("ffn_down"),
        }

    def hidden(self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Final hidden states [rows, length, width]; mask is additive [rows, 1, length, length]."""
        s = self.shape
        x = F.embedding(tokens, self.embed)
        angle = positions.float()[:, :, None, None] * self.inv_freq
        cos, sin = angle.cos(), angle.sin()
        for i, w in enumerate(self.base):
            f = self._factors(i)
            x = self.layer(
                x, cos, sin, mask, w["n1"], w["n2"], w["qkv"], w["o"], w["gu"], w["d"],
                *f["qkv"], *f["o"], *f["gu"], *f["d"], s.heads, s.kv_heads, s.head_dim, s.eps,
            )  # fmt: skip
        return x

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """fp32 logits of chosen hidden states [n, width]."""
        return F.linear(_norm(hidden, self.final_norm, self.shape.eps), self.head).float()
