"""The host reads every layer's output (`.item()`) before it launches the next layer, with one CUDA graph per layer;
repaired: it does not read it, and the step is one graph.
"""

from typing import Any, Callable, Dict, List, Tuple

import torch
from case import Case
from decoder import Decoder, Shape, graphed, sized


def prepare(variant: str, device: str) -> Case:
    batch, context = (256, 128) if device != "cpu" else (2, 8)
    shape = sized(Shape(hidden=1024, inner=2816, layers=24, heads=16, kv_heads=4, head_dim=64), device)
    model = Decoder(shape, batch, context, device)
    model.fill_cache()
    sizes: Dict[str, Any] = dict(batch=batch, new_tokens=batch, context=batch * (context + 1), model=shape.config())

    def run_layer(index: int, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        y = model.layer(index, x, True)
        return y, y.amax()

    if variant == "fixed":
        model.after_layer = lambda y: y.amax()
        step = graphed(model.decode, device)
        return Case("decode", 8, lambda _: step(), **sizes)

    begin = graphed(lambda: model.hidden(model.token), device)
    x = begin()
    layers: List[Callable[[], Tuple[torch.Tensor, torch.Tensor]]] = []
    for index in range(shape.layers):
        # Each graph reads the output of the previous one in its memory.
        layers.append(graphed(lambda index=index, x=x: run_layer(index, x), device))
        x, _ = layers[-1]()
    end = graphed(lambda x=x: model.next.copy_(model.logits(x).argmax(-1, keepdim=True)), device)

    def step_with_reads(_: int) -> None:
        begin()
        for layer in layers:
            _, largest = layer()
            if largest.item() == float("inf"):
                raise FloatingPointError("overflow")
        end()
        model.next[0].item()

    return Case("decode", 8, step_with_reads, **sizes)
