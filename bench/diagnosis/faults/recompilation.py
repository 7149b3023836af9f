"""torch.compile specializes on the length of the input, which changes in every step; repaired: the length is marked
dynamic.
"""

import torch
from case import Case


def prepare(variant: str, device: str) -> Case:
    import torch._dynamo

    torch._dynamo.config.recompile_limit = 10_000
    torch._dynamo.config.accumulated_recompile_limit = 10_000
    hidden = 4096 if device != "cpu" else 64
    weight = torch.randn(hidden, device=device, dtype=torch.bfloat16)
    projection = torch.randn(hidden, hidden, device=device, dtype=torch.bfloat16) * hidden**-0.5
    x = torch.randn(16384 if device != "cpu" else 256, hidden, device=device, dtype=torch.bfloat16)

    def block(rows: torch.Tensor) -> torch.Tensor:
        y = rows.float()
        y = (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(rows.dtype) * weight
        return torch.nn.functional.linear(torch.nn.functional.silu(y), projection)

    # Compiled code is stored with the code object, so each variant needs its own.
    block.__code__ = block.__code__.replace(co_name="block_" + variant)
    backend = "inductor" if device != "cpu" else "eager"
    compiled = torch.compile(block, dynamic=variant == "fixed", backend=backend)
    length = [x.shape[0] // 2]

    def step(_: int) -> None:
        length[0] += 1
        rows = x[: length[0]]
        if variant == "fixed":
            torch._dynamo.mark_dynamic(rows, 0)
        for _ in range(4):
            rows = compiled(rows)

    return Case("decode", 2, step, synchronize=True, batch=1, new_tokens=1, more={"cold": variant == "fault", "warm": 1, "pairs": 24})
