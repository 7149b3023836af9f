"""torch.cuda.empty_cache() before every GEMM, so that the driver frees and allocates memory again; repaired:
without.
"""

import torch
import torch.nn.functional as F
from case import Case
from decoder import Decoder, Shape, random_tokens, sized


def emptied(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    torch.cuda.empty_cache()
    return F.linear(x, weight)


def prepare(variant: str, device: str) -> Case:
    batch, length = (4, 1024) if device != "cpu" else (2, 16)
    shape = sized(Shape(hidden=2048, inner=5632, layers=4, heads=16, kv_heads=4), device)
    model = Decoder(shape, batch, length, device)
    if variant == "fault" and device != "cpu":
        model.linear = emptied
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
