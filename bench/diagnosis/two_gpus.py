"""Faults that need two GPUs: torchrun --nproc_per_node 2 two_gpus.py --fault exposed_communication --variant fault [--times FILE]

exposed_communication: an exposed all-reduce after every MLP; repaired: two halves, so that the all-reduce of one overlaps the GEMMs of the other.
straggler: rank 1 computes three times the tokens of rank 0 before each all-reduce; repaired: both compute half of the total.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "python" / "inferscope_probe"))
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from inferscope_record import mark  # noqa: E402

HIDDEN, INNER, LAYERS = 4096, 8192, 4


def exposed_communication(variant: str, rank: int) -> Callable[[], None]:
    tokens = 4096
    x = torch.randn(tokens, HIDDEN, device="cuda", dtype=torch.bfloat16)
    up = torch.randn(INNER, HIDDEN, device="cuda", dtype=torch.bfloat16) * HIDDEN**-0.5
    down = torch.randn(HIDDEN, INNER, device="cuda", dtype=torch.bfloat16) * INNER**-0.5

    def mlp(rows: torch.Tensor) -> torch.Tensor:
        return torch.relu(rows @ up.T) @ down.T

    def step() -> None:
        if variant == "fault":
            y = x
            for _ in range(LAYERS):
                y = mlp(y)
                dist.all_reduce(y)
            return
        halves: List[torch.Tensor] = list(x.chunk(2))
        waits: List[object] = [None, None]
        for _ in range(LAYERS):
            for i in range(2):
                if waits[i] is not None:
                    waits[i].wait()  # type: ignore[attr-defined]
                halves[i] = mlp(halves[i])
                waits[i] = dist.all_reduce(halves[i], async_op=True)
        for handle in waits:
            handle.wait()  # type: ignore[attr-defined]

    return step


def straggler(variant: str, rank: int) -> Callable[[], None]:
    tokens = {"fault": (2048, 6144), "fixed": (4096, 4096)}[variant][rank]
    x = torch.randn(tokens, HIDDEN, device="cuda", dtype=torch.bfloat16)
    up = torch.randn(INNER, HIDDEN, device="cuda", dtype=torch.bfloat16) * HIDDEN**-0.5
    down = torch.randn(HIDDEN, INNER, device="cuda", dtype=torch.bfloat16) * INNER**-0.5
    shared = torch.randn(256, HIDDEN, device="cuda", dtype=torch.bfloat16)

    def step() -> None:
        for _ in range(LAYERS):
            torch.relu(x @ up.T) @ down.T
            dist.all_reduce(shared)

    return step


def main() -> None:
    faults = {"exposed_communication": exposed_communication, "straggler": straggler}
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--fault", choices=list(faults), required=True)
    flags.add_argument("--variant", choices=["fault", "fixed"], default="fault")
    flags.add_argument("--times", type=Path, help="file for the times of 12 pairs of both variants, measured in turn before the capture")
    args = flags.parse_args()
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    steps = {variant: faults[args.fault](variant, rank) for variant in ("fault", "fixed")}

    def time_step_ms(variant: str) -> float:
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        steps[variant]()
        torch.cuda.synchronize()
        return (time.perf_counter_ns() - start) / 1e6

    with torch.inference_mode():
        for _ in range(5):
            for variant in steps:
                time_step_ms(variant)
        if args.times is not None:
            pairs: List[Dict[str, Dict[str, float]]] = []
            for pair in range(12):
                row = {}
                for variant in list(steps) if pair % 2 == 0 else list(steps)[::-1]:
                    # A step ends when its slowest rank ends.
                    wall = torch.tensor(time_step_ms(variant), device="cuda")
                    dist.all_reduce(wall, op=dist.ReduceOp.MAX)
                    row[variant] = {"wall_ms": wall.item(), "device_ms": wall.item()}
                pairs.append(row)
            if rank == 0:
                ones = {"fault": 1, "fixed": 1}
                result = {"fault": args.fault, "kind": "prefill", "per": ones, "stages": ones, "pairs": pairs}
                args.times.write_text(json.dumps(result))
        dist.barrier()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        for iteration in range(3):
            with mark("prefill", iteration, 0):
                steps[args.variant]()
                torch.cuda.synchronize()
        torch.cuda.profiler.stop()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
