"""Two faults: pure Python between the steps takes longest and hides that keys and values are concatenated in every
step; repaired: both.
"""

from case import Case
from decoder import Decoder, Shape, graphed, sized
from faults.cpu_bound_host import block_tables


def prepare(variant: str, device: str) -> Case:
    batch, context = (256, 256) if device != "cpu" else (2, 8)
    shape = sized(Shape(layers=3), device)
    model = Decoder(shape, batch, context, device)
    model.cache = "cat" if variant == "fault" else "static"
    model.fill_cache()
    step = graphed(model.decode, device)

    def between(index: int) -> None:
        if variant == "fault":
            block_tables(batch * 6, context, 16)

    return Case(
        "decode", 8, lambda _: step(), between=between, batch=batch, new_tokens=batch, context=batch * (context + 1), model=shape.config()
    )
