"""A small model decodes one sequence with a kernel launch per operation; repaired: the step is one CUDA graph."""

from case import Case
from decoder import Decoder, Shape, graphed, sized


def prepare(variant: str, device: str) -> Case:
    shape = sized(Shape(hidden=1024, inner=2816, layers=40, heads=16, kv_heads=4, head_dim=64), device)
    model = Decoder(shape, 1, 128, device)
    model.fill_cache()
    step = graphed(model.decode, device) if variant == "fixed" else model.decode
    return Case("decode", 6, lambda _: step(), synchronize=True, batch=1, new_tokens=1, context=129, model=shape.config())
