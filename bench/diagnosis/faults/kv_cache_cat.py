"""Keys and values of every layer are concatenated in every step; repaired: written into a preallocated cache. A step
is a CUDA graph in both.
"""

from case import Case
from decoder import Decoder, Shape, graphed, sized


def prepare(variant: str, device: str) -> Case:
    batch, context = (16, 8192) if device != "cpu" else (2, 8)
    shape = sized(Shape(), device)
    model = Decoder(shape, batch, context, device)
    model.cache = "cat" if variant == "fault" else "static"
    model.fill_cache()
    step = graphed(model.decode, device)
    return Case(
        "decode", stages=8, step=lambda _: step(), batch=batch, new_tokens=batch, context=batch * (context + 1), model=shape.config()
    )
