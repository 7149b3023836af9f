"""torch.cuda.empty_cache() behind every layer, so that memory is freed and allocated anew by the driver; repaired: without."""

import torch
from case import Case
from decoder import Decoder, Shape, random_tokens, sized


def prepare(variant: str, device: str) -> Case:
    batch, length = (4, 512) if device != "cpu" else (2, 16)
    shape = sized(Shape(), device)
    model = Decoder(shape, batch, length, device)
    if variant == "fault" and device != "cpu":
        model.after_layer = lambda x: torch.cuda.empty_cache()
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
