"""The logits of every step are copied to the host, which selects the next token; repaired: the GPU selects it. The
rest of a step is a CUDA graph in both.
"""

import torch
from case import Case
from decoder import Decoder, Shape, graphed, sized


def prepare(variant: str, device: str) -> Case:
    batch, context = (256, 128) if device != "cpu" else (2, 8)
    shape = sized(Shape(layers=4, vocab=128256), device)
    model = Decoder(shape, batch, context, device)
    model.fill_cache()
    step = graphed(model.decode, device)

    def on_host(_: int) -> None:
        logits = step().cpu()
        model.next.copy_(logits.argmax(-1, keepdim=True))

    step_of_variant = on_host if variant == "fault" else lambda _: step()
    return Case("decode", 8, step_of_variant, batch=batch, new_tokens=batch, context=batch * (context + 1), model=shape.config())
