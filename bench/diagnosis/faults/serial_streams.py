"""Four independent chains of kernels, each too small for the GPU, run one after another on one stream; repaired: one
stream per chain. Both are CUDA graphs.
"""

import torch
from case import Case
from decoder import graphed


def prepare(variant: str, device: str) -> Case:
    chains, length = 4, 6
    rows = [torch.randn(2, 1 << (17 if device != "cpu" else 8), device=device) for _ in range(chains)]

    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(length):
            x = torch.cumsum(x, -1)
        return x

    streams = [torch.cuda.Stream() for _ in rows] if variant == "fixed" and device != "cpu" else []

    def work() -> None:
        if not streams:
            for row in rows:
                chain(row)
            return
        here = torch.cuda.current_stream()
        for stream, row in zip(streams, rows):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                chain(row)
        for stream in streams:
            here.wait_stream(stream)

    step = graphed(work, device)
    return Case("decode", 4, lambda _: step(), batch=chains, new_tokens=chains)
