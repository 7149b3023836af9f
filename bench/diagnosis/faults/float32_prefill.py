"""Everything in float32 without tensor cores; repaired: bfloat16."""

import torch
from case import Case
from decoder import Decoder, Shape, random_tokens, sized


def prepare(variant: str, device: str) -> Case:
    batch, length = (8, 1024) if device != "cpu" else (2, 16)
    dtype = torch.float32 if variant == "fault" else torch.bfloat16
    shape = sized(Shape(hidden=2048, inner=5632, layers=4, heads=16, kv_heads=16), device)
    model = Decoder(shape, batch, length, device, dtype)
    tokens = random_tokens(batch, length, shape.vocab, device)
    return Case(
        "prefill",
        2,
        lambda _: model.prefill(tokens),
        synchronize=True,
        batch=batch,
        new_tokens=batch * length,
        context=batch * length,
        model=shape.config(),
        dtype=str(dtype).split(".")[1],
    )
