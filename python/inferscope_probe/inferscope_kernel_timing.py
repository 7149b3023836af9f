"""How the operations of `inferscope kernels` are timed.

On a GPU events are recorded around runs and read after a batch of them: nothing waits inside the timed region. A spinning
kernel in front keeps the device busy until the batch is enqueued, so that the host's pace is not what is measured. Runs
shorter than 0.2 ms are taken several to a sample, since an event costs a microsecond or two; what is shorter than its own
launch is captured, many runs in turn, in a CUDA graph. Before a run of 0.1 ms or more the cache is overwritten outside of the
time taken, as triton's do_bench does: back to back, a GPU at its power limit lowers its clocks by several percent, and what
a peak means would depend on how long it was measured. Inputs and outputs are taken in turn from copies that exceed the
cache three times. On the CPU a sample is time.monotonic_ns around a run, or around as many as take 20 us.
"""

import math
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from inferscope_kernel_cases import Operation

WARM_UP_NS = 50e6
EVENT_SAMPLE_NS = 200e3
GRAPH_SAMPLE_NS = 4e6
FLUSH_FROM_NS = 100e3
FLUSH_BYTES = 256 << 20
HOST_SAMPLE_NS = 20e3
GRAPH_NODES = 4096
# The driver accepts about a thousand launches before it blocks the host.
QUEUE = 500
BATCH_NS = 250e6
# Clocks and power are sampled 20 times per second: on a device a case lasts two samples, if `max_runs` allows.
MIN_NS = 100e6


class Samples:
    """Times of one operation, ns, and how they were measured."""

    def __init__(self, method: str, per_sample: int, note: Optional[str] = None) -> None:
        self.method, self.per_sample, self.note = method, per_sample, note
        self.ns: List[float] = []
        self.t_ns = self.end_ns = time.monotonic_ns()

    def narrow(self, share: float) -> bool:
        """Whether half of the 95 % interval of the mean is within `share` of it."""
        n = len(self.ns)
        if n < 3:
            return False
        mean = sum(self.ns) / n
        variance = sum((ns - mean) ** 2 for ns in self.ns) / (n - 1)
        return 1.96 * math.sqrt(variance / n) <= share * mean


class Turns:
    """Calls an operation on its input sets in turn, and keeps as many outputs, so that these are not in the cache
    either.
    """

    def __init__(self, op: Operation, sets: List[Tuple[Any, ...]]) -> None:
        self.op, self.sets, self.next = op, sets, 0
        self.kept: List[Any] = [None] * len(sets)

    def __call__(self) -> None:
        index = self.next
        self.next = (index + 1) % len(self.sets)
        self.kept[index] = self.op.run(*self.sets[index])


def once_ns(call: Callable[[], Any], device: str) -> float:
    """A rough time of one synchronized call."""
    wait(device)
    begin = time.monotonic_ns()
    if device == "cpu":
        call()
        return time.monotonic_ns() - begin
    first, last = _event(), _event()
    first.record()
    call()
    last.record()
    wait(device)
    return first.elapsed_time(last) * 1e6


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def measure(
    op: Operation, sets: List[Tuple[Any, ...]], order: Dict[str, Any], device: str, stop: Callable[[], bool]
) -> Samples:
    """Samples until the interval is narrow, `max_runs` or `max_seconds` is reached, or `stop` is set."""
    turns = Turns(op, sets)
    rough_ns = _warm_up(turns, device)
    if device == "cpu" or op.clock in ("host", "enqueue"):
        return _on_host(turns, order, device, stop, rough_ns)
    return _on_device(turns, order, device, stop)


def _warm_up(turns: Turns, device: str) -> float:
    """Calls every set at least once, which also warms up the allocator. -> ns per call"""
    begin, calls, chunk = time.monotonic_ns(), 0, 1
    while True:
        for _ in range(chunk):
            turns()
        calls += chunk
        wait(device)
        spent = time.monotonic_ns() - begin
        if calls > len(turns.sets) and calls >= 3 and spent >= WARM_UP_NS:
            return _rough(turns, device)
        chunk = min(calls, 256) if spent / calls < 1e6 else 1


def _rough(turns: Turns, device: str) -> float:
    begin = time.monotonic_ns()
    for _ in range(3):
        turns()
    wait(device)
    return max(1.0, (time.monotonic_ns() - begin) / 3)


def _collect(
    samples: Samples,
    batch: Callable[[int], List[float]],
    max_batch: int,
    order: Dict[str, Any],
    stop: Callable[[], bool],
    min_ns: float = 0,
) -> Samples:
    """Batches of at most `max_batch` samples until there are enough."""
    samples.t_ns = time.monotonic_ns()
    while True:
        have = len(samples.ns)
        samples.ns += batch(max(1, min(max_batch, order["max_runs"] - have, max(order["runs"] - have, order["runs"] // 4))))
        samples.end_ns = time.monotonic_ns()
        have = len(samples.ns)
        spent_ns = samples.end_ns - samples.t_ns
        if stop() or spent_ns >= order["max_seconds"] * 1e9 or have >= order["max_runs"]:
            return samples
        if have >= order["runs"] and spent_ns >= min_ns and samples.narrow(order["narrow"]):
            return samples


def _on_host(turns: Turns, order: Dict[str, Any], device: str, stop: Callable[[], bool], rough_ns: float) -> Samples:
    op = turns.op
    enqueue = op.clock == "enqueue"
    per = 100 if enqueue else 1 if op.clock == "host" else max(1, math.ceil(HOST_SAMPLE_NS / rough_ns))

    def batch(count: int) -> List[float]:
        taken = []
        for _ in range(count):
            begin = time.monotonic_ns()
            for _ in range(per):
                turns()
            if not enqueue:
                wait(device)
            taken.append((time.monotonic_ns() - begin) / (per * op.passes))
            if enqueue:  # outside of the timed part, so that the queue does not fill
                wait(device)
        return taken

    max_batch = max(1, int(BATCH_NS / (per * rough_ns)))
    return _collect(Samples("host", per * op.passes), batch, max_batch, order, stop)


def _on_device(turns: Turns, order: Dict[str, Any], device: str, stop: Callable[[], bool]) -> Samples:
    op = turns.op
    host_ns, run_ns = _enqueue_and_run(turns, device)
    call: Callable[[], Any] = turns
    per, method, note, kept = 1, "events", None, None
    if op.clock == "graph":
        method = "graph"
    elif op.clock == "events":
        per = 100
    elif order["graph"] == "always" or (order["graph"] == "auto" and run_ns < 1.5 * host_ns):
        calls = max(len(turns.sets), min(GRAPH_NODES, math.ceil(GRAPH_SAMPLE_NS / run_ns)))
        try:
            graph, kept = _captured(op, turns.sets, calls, device)
        except Exception as error:  # any error: the operation itself works
            note = "Not captured in a CUDA graph (%s): the host's launches are part of its time." % _words(error)
        else:
            call, method = graph.replay, "graph"
            # A replay's host time grows with the number of nodes.
            replay_ns = [once_ns(call, device) for _ in range(3)][-1]
            host_ns, run_ns = max(host_ns, replay_ns / 4), replay_ns
            return _between_events(Samples(method, calls * op.passes, note), call, 1, host_ns, run_ns, order, stop)
    if method == "events" and op.clock is None:
        if run_ns >= FLUSH_FROM_NS and op.rotate:  # cases about the cache need it warm
            return _flushed(Samples(method, op.passes, note), call, host_ns, run_ns, order, stop, device)
        per = max(1, math.ceil(EVENT_SAMPLE_NS / run_ns))
    del kept
    return _between_events(Samples(method, per * op.passes, note), call, per, host_ns, run_ns, order, stop)


def _between_events(
    samples: Samples,
    call: Callable[[], Any],
    per: int,
    host_ns: float,
    run_ns: float,
    order: Dict[str, Any],
    stop: Callable[[], bool],
) -> Samples:
    """`host_ns`, `run_ns`: time until a call is enqueued, and until it is done."""

    def batch(count: int) -> List[float]:
        events = [_event() for _ in range(count + 1)]
        ahead_ns = min(20e6, count * (per * host_ns + 5e3))
        torch.cuda._sleep(int(ahead_ns * 2))  # cycles, at about 2 GHz
        events[0].record()
        for event in events[1:]:
            for _ in range(per):
                call()
            event.record()
        events[-1].synchronize()
        return [start.elapsed_time(end) * 1e6 / samples.per_sample for start, end in zip(events, events[1:])]

    max_batch = max(1, min(int(QUEUE / per), int(BATCH_NS / (per * run_ns))))
    return _collect(samples, batch, max_batch, order, stop, MIN_NS)


def _flushed(
    samples: Samples,
    call: Callable[[], Any],
    host_ns: float,
    run_ns: float,
    order: Dict[str, Any],
    stop: Callable[[], bool],
    device: str,
) -> Samples:
    """Like _between_events with one run per sample; the cache is overwritten between runs."""
    buffer = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device=device)

    def batch(count: int) -> List[float]:
        pairs = [(_event(), _event()) for _ in range(count)]
        torch.cuda._sleep(int(min(20e6, count * (host_ns + 15e3)) * 2))  # cycles, at about 2 GHz
        for first, last in pairs:
            buffer.zero_()
            first.record()
            call()
            last.record()
        pairs[-1][1].synchronize()
        return [first.elapsed_time(last) * 1e6 / samples.per_sample for first, last in pairs]

    max_batch = max(1, min(QUEUE // 2, int(BATCH_NS / run_ns)))
    return _collect(samples, batch, max_batch, order, stop, MIN_NS)


def _enqueue_and_run(turns: Turns, device: str) -> Tuple[float, float]:
    """-> ns per call until the host has enqueued it, and until it is done"""
    calls = 20 if once_ns(turns, device) < 20e6 else 2
    first, last = _event(), _event()
    wait(device)
    first.record()
    begin = time.monotonic_ns()
    for _ in range(calls):
        turns()
    host_ns = (time.monotonic_ns() - begin) / calls
    last.record()
    wait(device)
    return host_ns, max(500.0, first.elapsed_time(last) * 1e6 / calls)


def _captured(op: Operation, sets: List[Tuple[Any, ...]], calls: int, device: str) -> Tuple[Any, Turns]:
    """A graph of `calls` runs, and the objects that must live as long."""
    turns = Turns(op, sets)
    graph = torch.cuda.CUDAGraph()
    wait(device)
    with torch.cuda.graph(graph):
        for _ in range(calls):
            turns()
    graph.replay()
    wait(device)
    return graph, turns


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)


def _words(error: BaseException) -> str:
    return (str(error).strip().split("\n")[0] or type(error).__name__)[:300]
