"""Weights are stored in float32 and cast to bfloat16 at every use; repaired: stored in bfloat16. A step is a CUDA
graph in both.
"""

import torch
import torch.nn.functional as F
from case import Case
from decoder import Decoder, Shape, graphed, sized


def prepare(variant: str, device: str) -> Case:
    batch, context = (256, 128) if device != "cpu" else (2, 8)
    shape = sized(Shape(), device)
    model = Decoder(shape, batch, context, device, weights=torch.float32 if variant == "fault" else None)
    if variant == "fault":
        model.linear = lambda x, weight: F.linear(x, weight.to(x.dtype))
    model.fill_cache()
    step = graphed(model.decode, device)
    return Case(
        "decode", 8, lambda _: step(), batch=batch, new_tokens=batch, context=batch * (context + 1), model=shape.config()
    )
