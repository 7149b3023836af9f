"""A server decodes its sequences one at a time; repaired: 256 of them in one step. A step is a CUDA graph in both.
Times are compared per token.
"""

from case import Case
from decoder import Decoder, Shape, graphed, sized


def prepare(variant: str, device: str) -> Case:
    batch = 1 if variant == "fault" else (256 if device != "cpu" else 4)
    context = 128
    shape = sized(Shape(), device)
    model = Decoder(shape, batch, context, device)
    model.fill_cache()
    step = graphed(model.decode, device)
    return Case(
        "decode",
        8,
        lambda _: step(),
        batch=batch,
        new_tokens=batch,
        context=batch * (context + 1),
        model=shape.config(),
        more={"per": batch},
    )
