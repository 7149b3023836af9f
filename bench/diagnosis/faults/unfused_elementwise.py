"""Norms and the gated activation of a prefill are chains of elementwise kernels in float32; repaired: one kernel each."""

import torch
from case import Case
from decoder import Decoder, Shape, random_tokens, sized


def chained_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight


def chained_activation(both: torch.Tensor) -> torch.Tensor:
    gate, up = both.chunk(2, -1)
    gate = gate.float()
    return (gate * (1 / (1 + torch.exp(-gate)))).to(both.dtype) * up


def prepare(variant: str, device: str) -> Case:
    batch, length = (16, 512) if device != "cpu" else (2, 16)
    shape = sized(Shape(hidden=2048, inner=8192, layers=4, heads=16, kv_heads=4), device)
    model = Decoder(shape, batch, length, device)
    if variant == "fault":
        model.norm, model.activation = chained_norm, chained_activation
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
