"""Every prefill copies its embeddings from pageable host memory; repaired: pinned memory, copied during the previous
prefill.
"""

import torch
from case import Case, wait
from decoder import Decoder, Shape, sized


def prepare(variant: str, device: str) -> Case:
    batch, length = (16, 512) if device != "cpu" else (2, 16)
    shape = sized(Shape(hidden=4096, inner=8192, layers=1), device)
    model = Decoder(shape, batch, length, device)
    stages = 4
    source = [torch.randn(batch, length, shape.hidden).to(model.dtype) for _ in range(2)]
    common = dict(
        batch=batch, new_tokens=batch * length, context=batch * length, model=shape.config()
    )
    if variant == "fault" or device == "cpu":
        return Case("prefill", stages, lambda i: model.prefill_hidden(source[i % 2].to(device)), synchronize=True, **common)

    pinned = [tensor.pin_memory() for tensor in source]
    slots = [tensor.to(device) for tensor in source]
    copies = torch.cuda.Stream()
    arrived = [torch.cuda.Event() for _ in slots]
    used = [torch.cuda.Event() for _ in slots]

    def fetch(index: int) -> None:
        with torch.cuda.stream(copies):
            used[index % 2].wait(copies)
            slots[index % 2].copy_(pinned[index % 2], non_blocking=True)
            arrived[index % 2].record(copies)

    def step(index: int) -> None:
        fetch(index + 1)
        arrived[index % 2].wait()
        model.prefill_hidden(slots[index % 2])
        used[index % 2].record()

    fetch(0)
    wait(device)
    return Case("prefill", stages, step, synchronize=True, **common)
