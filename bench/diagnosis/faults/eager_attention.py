"""Attention of a long prefill as two GEMMs and a softmax over the whole score matrix; repaired: scaled_dot_product_attention."""

import torch
from case import Case
from decoder import Decoder, Shape, random_tokens, sized


def eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5
    queries, keys = scores.shape[2:]
    hidden = torch.full((queries, keys), float("-inf"), device=q.device, dtype=q.dtype).triu(keys - queries + 1)
    return torch.softmax(scores + hidden, -1, dtype=torch.float32).to(q.dtype) @ v


def prepare(variant: str, device: str) -> Case:
    batch, length = (2, 4096) if device != "cpu" else (2, 16)
    shape = sized(Shape(inner=8192, layers=2), device)
    model = Decoder(shape, batch, length, device)
    if variant == "fault":
        model.attention = eager
    tokens = random_tokens(batch, length, shape.vocab, device)
    return Case(
        "prefill",
        3,
        lambda _: model.prefill(tokens),
        synchronize=True,
        batch=batch,
        new_tokens=batch * length,
        context=batch * length,
        model=shape.config(),
    )
