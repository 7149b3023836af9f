"""The parts of a machine's roofline other than GEMMs: memory, launches, and transfers between host and device.

copy, triad and write are copy_, add(b, c, alpha, out=a) and fill_. read is the fastest of several reductions, l2-read the
same over an array that is read repeatedly; their backend names the reduction. launch depends on its backend: host (or none),
the time of the host to enqueue a kernel through PyTorch; device, the time from one empty kernel to the next in a full queue;
round-trip, from the call until the host has seen that it is done. graph-node is the time from one tiny kernel to the next
inside a CUDA graph.
"""

from typing import Any, Callable, Dict, List, Tuple

import torch
from inferscope_kernel_cases import KERNELS, Operation, Pairs, Params, Source, Unsupported, spread

# Passes of l2-read over its array in one kernel, so that it takes much longer than its launch.
L2_PASSES = 64
GRAPH_NODES = 1000


def _elements(source: Source, bytes_: int) -> int:
    return max(1, int(bytes_) // source.dtype.itemsize)


def _compare_samples(expected: Callable[..., Any]) -> Callable[[Any, Tuple[Any, ...]], Pairs]:
    """Compares some elements, because a float64 copy of the whole array may not fit."""

    def check(out: Any, inputs: Tuple[Any, ...]) -> Pairs:
        sampled = spread(out.numel(), 4096, "cpu")
        return [(out.flatten()[sampled.to(out.device)].cpu(), expected(*(tensor.flatten()[sampled.to(tensor.device)].double().cpu() for tensor in inputs)))]

    return check


def copy(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    n = _elements(source, p["bytes"])
    return Operation(lambda: (source(n), source(n)), lambda a, b: a.copy_(b), _compare_samples(lambda _a, b: b))


def write(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    n, value = _elements(source, p["bytes"]), 0.71875
    return Operation(lambda: (source(n),), lambda a: a.fill_(value), _compare_samples(lambda a: torch.full_like(a, value)))


def triad(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    n, scale = _elements(source, p["bytes"]), 1.5
    return Operation(
        lambda: (source(n), source(n), source(n)),
        lambda a, b, c: torch.add(b, c, alpha=scale, out=a),
        _compare_samples(lambda _a, b, c: b + scale * c),
    )


# Name, reduction over rows of float32, its float64 reference.
Reduction = Tuple[str, Callable[[Any], Any], Callable[[Any], Any]]
REDUCTIONS: List[Reduction] = [
    ("sum-float32", lambda x: x.sum(-1), lambda x: sum(part.double().sum() for part in x.chunk(64))),
    ("sum-float64", lambda x: x.view(torch.float64).sum(-1), lambda x: sum(part.sum() for part in x.view(torch.float64).chunk(64))),
    ("amax-float32", lambda x: x.amax(-1), lambda x: max(part.double().amax() for part in x.chunk(64))),
]


def _fastest(candidates: List[Reduction], rows: Any, device: str) -> Reduction:
    """The reduction with the shortest of five runs."""
    from inferscope_kernel_timing import time_once_ns

    return min(candidates, key=lambda candidate: min(time_once_ns(lambda: candidate[1](rows), device) for _ in range(5)))


def _floats(bytes_: int, device: str) -> Any:
    """Uniform in [1, 2): every double made of two of them is finite, so no reduction reads a NaN."""
    return torch.rand(max(4, int(bytes_) // 8 * 2), device=device) + 1


def read(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    name, reduce, reference = _fastest(REDUCTIONS, _floats(p["bytes"], source.device), source.device)

    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        return [(out, reference(x[0]))]

    return Operation(lambda: (_floats(p["bytes"], source.device),), reduce, check, backend=name)


def l2_read(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    # One row per pass; all rows are the same memory.
    def rows(x: Any) -> Any:
        return x.expand(L2_PASSES, x.shape[0])

    float32_reductions = [reduction for reduction in REDUCTIONS if reduction[0] in ("sum-float32", "amax-float32")]
    name, reduce, reference = _fastest(float32_reductions, rows(_floats(p["bytes"], source.device)), source.device)

    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        return [(out, reference(x[0]).expand(L2_PASSES))]

    return Operation(
        lambda: (_floats(p["bytes"], source.device),),
        lambda x: reduce(rows(x)),
        check,
        passes=L2_PASSES,
        rotate=False,
        backend=name,
    )


def launch(_p: Params, source: Source, case: Dict[str, Any]) -> Operation:
    if source.device == "cpu":
        raise Unsupported("The CPU has no kernel launches.")
    clocks = {None: "enqueue", "host": "enqueue", "device": "events", "round-trip": "host"}
    if case.get("backend") not in clocks:
        raise Unsupported("the backend of launch is host, device or round-trip, not %s" % case["backend"])
    return Operation(lambda: (), lambda: torch.cuda._sleep(0), rotate=False, clock=clocks[case.get("backend")])


def graph_node(_p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    if source.device == "cpu":
        raise Unsupported("The CPU has no CUDA graphs.")

    def nodes() -> None:
        for _ in range(GRAPH_NODES):
            torch.cuda._sleep(0)

    nodes()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        nodes()
    return Operation(lambda: (), graph.replay, rotate=False, passes=GRAPH_NODES, clock="graph")


def _transfer(to_device: bool) -> Callable[[Params, Source, Dict[str, Any]], Operation]:
    def build(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
        if source.device == "cpu":
            raise Unsupported("The CPU has no device to copy to.")
        pinned = bool(p.get("pinned", 0))

        def make() -> Tuple[Any, ...]:
            device = source(_elements(source, p["bytes"]))
            host = torch.empty(device.shape, dtype=device.dtype, pin_memory=pinned)
            host.copy_(source(*device.shape))
            return (device, host) if to_device else (host, device)

        # The driver stages pageable memory in host time, which events count only partly.
        clock = None if pinned else "host"
        return Operation(make, lambda a, b: a.copy_(b, non_blocking=True), _compare_samples(lambda _a, b: b), clock=clock, max_sets=2)

    return build


PROBES = {
    "copy": copy,
    "read": read,
    "write": write,
    "triad": triad,
    "l2-read": l2_read,
    "launch": launch,
    "graph-node": graph_node,
    "host-to-device": _transfer(True),
    "device-to-host": _transfer(False),
}
OPERATIONS = dict(KERNELS, **PROBES)
