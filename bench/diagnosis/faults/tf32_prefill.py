"""float32 with TF32 tensor cores; repaired: bfloat16."""

from contextlib import contextmanager
from dataclasses import replace
from typing import Iterator

import torch
from case import Case
from faults.float32_prefill import prepare as float32


@contextmanager
def allowed() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def prepare(variant: str, device: str) -> Case:
    case = float32(variant, device)
    if variant == "fixed":
        return case
    float32_step = case.step
    assert float32_step is not None

    def step(index: int) -> None:
        with allowed():
            float32_step(index)

    return replace(case, step=step)
