"""The host looks at every layer's output (`.item()`) before it launches the next layer; repaired: it does not look. A layer is a CUDA graph in both."""

import torch
from case import Case
from decoder import Decoder, Shape, graphed, sized


def prepare(variant: str, device: str) -> Case:
    batch, context = (256, 128) if device != "cpu" else (2, 8)
    shape = sized(Shape(hidden=1024, inner=2816, layers=24, heads=16, kv_heads=4, head_dim=64), device)
    model = Decoder(shape, batch, context, device)
    model.fill_cache()
    x = model.hidden(model.token).clone()
    largest = torch.zeros((), device=device, dtype=x.dtype)

    def whole_layer(index: int) -> None:
        y = model.layer(index, x, True)
        x.copy_(y)
        largest.copy_(y.amax())

    def first() -> None:
        x.copy_(model.hidden(model.token))

    def last() -> None:
        model.next.copy_(model.logits(x).argmax(-1, keepdim=True))

    begin = graphed(first, device)
    layers = [graphed(lambda index=index: whole_layer(index), device) for index in range(shape.layers)]
    end = graphed(last, device)

    def step(_: int) -> None:
        begin()
        for layer in layers:
            layer()
            if variant == "fault" and largest.item() == float("inf"):
                raise FloatingPointError("overflow")
        end()

    return Case("decode", 8, step, synchronize=True, batch=batch, new_tokens=batch, context=batch * (context + 1), model=shape.config())
