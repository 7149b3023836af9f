"""A GEMM with tiles for slightly more than one wave, so that the second wave runs almost empty; repaired: rows that fill whole waves. Compared per row."""

import torch
from case import Case

try:
    import triton
    import triton.language as tl

    @triton.jit
    def _matmul(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
        rows = tl.program_id(0) * bm + tl.arange(0, bm)
        columns = tl.program_id(1) * bn + tl.arange(0, bn)
        inner = tl.arange(0, bk)
        sum_ = tl.zeros((bm, bn), dtype=tl.float32)
        left = a + rows[:, None] * k + inner[None, :]
        right = b + columns[None, :] * k + inner[:, None]
        for _ in range(0, k, bk):
            sum_ += tl.dot(tl.load(left), tl.load(right))
            left += bk
            right += bk
        tl.store(c + rows[:, None] * n + columns[None, :], sum_.to(tl.bfloat16))

except ImportError:
    triton = None


def prepare(variant: str, device: str) -> Case:
    # Tiles of 128 x 256, one per multiprocessor: 17 x 8 = 136 tiles on 132 multiprocessors, compared with 16 x 8 =
    # 128.
    tiles = 17 if variant == "fault" else 16
    m, n, k = (tiles * 128, 2048, 8192) if device != "cpu" else (64, 64, 64)
    a = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    b = torch.randn(n, k, device=device, dtype=torch.bfloat16)
    c = torch.empty(m, n, device=device, dtype=torch.bfloat16)

    def step(_: int) -> None:
        for _ in range(8):
            if device == "cpu":
                torch.matmul(a, b.T, out=c)
            else:
                _matmul[(m // 128, n // 256)](a, b, c, m, n, k, bm=128, bn=256, bk=64, num_warps=8, num_stages=3)

    return Case("prefill", 3, step, synchronize=True, batch=m, new_tokens=m, context=m, more={"per": m, "kernels": 8})
