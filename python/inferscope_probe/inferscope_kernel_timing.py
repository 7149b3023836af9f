"""Times the operations of `inferscope kernels`.

On a GPU, events are recorded around runs and read after a batch of them, so nothing waits inside the timed region. A spinning
kernel before the batch keeps the device busy until the batch is enqueued, so that the speed of the host is not measured.
Several runs shorter than 0.2 ms share a sample, because an event costs one or two microseconds; an operation that is shorter than
its own launch is captured, many runs at once, in a CUDA graph. Before a run of 0.1 ms or more, the cache is overwritten outside
of the timed region, as triton's do_bench does: run back to back, a GPU at its power limit lowers its clocks by several percent,
so the measured peak would depend on the duration of the measurement. Inputs and outputs rotate over copies that exceed the cache
three times. On the CPU a sample is time.monotonic_ns around a run, or around as many as take 20 us.
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

    def is_narrow(self, share: float) -> bool:
        """Whether half of the 95 % interval of the mean is within `share` of it."""
        n = len(self.ns)
        if n < 3:
            return False
        mean = sum(self.ns) / n
        variance = sum((ns - mean) ** 2 for ns in self.ns) / (n - 1)
        return 1.96 * math.sqrt(variance / n) <= share * mean


class RotatingCalls:
    """Calls an operation on its input sets in turn, and keeps as many outputs, so that new outputs are not in the cache,
    either.
    """

    def __init__(self, op: Operation, sets: List[Tuple[Any, ...]]) -> None:
        self.op, self.sets, self.next = op, sets, 0
        self.outputs: List[Any] = [None] * len(sets)

    def __call__(self) -> None:
        index = self.next
        self.next = (index + 1) % len(self.sets)
        self.outputs[index] = self.op.run(*self.sets[index])


def time_once_ns(call: Callable[[], Any], device: str) -> float:
    """A rough time of one synchronized call."""
    wait(device)
    start = time.monotonic_ns()
    if device == "cpu":
        call()
        return time.monotonic_ns() - start
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
    """Samples until the interval is narrow, `max_runs` or `max_seconds` is reached, or `stop()` is true."""
    call_next = RotatingCalls(op, sets)
    rough_ns = _warm_up(call_next, device)
    if device == "cpu" or op.clock in ("host", "enqueue"):
        return _measure_on_host(call_next, order, device, stop, rough_ns)
    return _measure_on_device(call_next, order, device, stop)


def _warm_up(call_next: RotatingCalls, device: str) -> float:
    """Calls every set at least once, which also warms up the allocator. -> ns per call"""
    start, calls, chunk = time.monotonic_ns(), 0, 1
    while True:
        for _ in range(chunk):
            call_next()
        calls += chunk
        wait(device)
        spent = time.monotonic_ns() - start
        if calls > len(call_next.sets) and calls >= 3 and spent >= WARM_UP_NS:
            return _measure_roughly(call_next, device)
        chunk = min(calls, 256) if spent / calls < 1e6 else 1


def _measure_roughly(call_next: RotatingCalls, device: str) -> float:
    start = time.monotonic_ns()
    for _ in range(3):
        call_next()
    wait(device)
    return max(1.0, (time.monotonic_ns() - start) / 3)


def _collect(
    samples: Samples,
    batch: Callable[[int], List[float]],
    max_batch: int,
    order: Dict[str, Any],
    stop: Callable[[], bool],
    min_ns: float = 0,
) -> Samples:
    """Runs batches of at most `max_batch` samples until there are enough."""
    samples.t_ns = time.monotonic_ns()
    while True:
        count = len(samples.ns)
        samples.ns += batch(max(1, min(max_batch, order["max_runs"] - count, max(order["runs"] - count, order["runs"] // 4))))
        samples.end_ns = time.monotonic_ns()
        count = len(samples.ns)
        spent_ns = samples.end_ns - samples.t_ns
        if stop() or spent_ns >= order["max_seconds"] * 1e9 or count >= order["max_runs"]:
            return samples
        if count >= order["runs"] and spent_ns >= min_ns and samples.is_narrow(order["target_half_width"]):
            return samples


def _measure_on_host(call_next: RotatingCalls, order: Dict[str, Any], device: str, stop: Callable[[], bool], rough_ns: float) -> Samples:
    op = call_next.op
    enqueue = op.clock == "enqueue"
    calls_per_sample = 100 if enqueue else 1 if op.clock == "host" else max(1, math.ceil(HOST_SAMPLE_NS / rough_ns))

    def batch(count: int) -> List[float]:
        sample_times = []
        for _ in range(count):
            start = time.monotonic_ns()
            for _ in range(calls_per_sample):
                call_next()
            if not enqueue:
                wait(device)
            sample_times.append((time.monotonic_ns() - start) / (calls_per_sample * op.passes))
            if enqueue:  # outside of the timed part, so that the queue does not fill
                wait(device)
        return sample_times

    max_batch = max(1, int(BATCH_NS / (calls_per_sample * rough_ns)))
    return _collect(Samples("host", calls_per_sample * op.passes), batch, max_batch, order, stop)


def _measure_on_device(call_next: RotatingCalls, order: Dict[str, Any], device: str, stop: Callable[[], bool]) -> Samples:
    op = call_next.op
    host_ns, run_ns = _measure_enqueue_and_run(call_next, device)
    call: Callable[[], Any] = call_next
    calls_per_sample, method, note = 1, "events", None
    if op.clock == "graph":
        method = "graph"
    elif op.clock == "events":
        calls_per_sample = 100
    elif order["graph"] == "always" or (order["graph"] == "auto" and run_ns < 1.5 * host_ns):
        calls = max(len(call_next.sets), min(GRAPH_NODES, math.ceil(GRAPH_SAMPLE_NS / run_ns)))
        try:
            # The outputs must live until the last replay.
            graph, _outputs = _capture(op, call_next.sets, calls, device)
        except Exception as error:  # whatever it is, the operation runs without a graph
            note = "Not captured in a CUDA graph (%s), so its time includes launches by the host." % _first_line(error)
        else:
            call, method = graph.replay, "graph"
            # A replay's host time grows with the number of nodes.
            replay_ns = [time_once_ns(call, device) for _ in range(3)][-1]
            host_ns, run_ns = max(host_ns, replay_ns / 4), replay_ns
            return _time_between_events(Samples(method, calls * op.passes, note), call, 1, host_ns, run_ns, order, stop)
    if method == "events" and op.clock is None:
        if run_ns >= FLUSH_FROM_NS and op.rotate:  # operations that do not rotate measure a warm cache
            return _time_with_flushes(Samples(method, op.passes, note), call, host_ns, run_ns, order, stop, device)
        calls_per_sample = max(1, math.ceil(EVENT_SAMPLE_NS / run_ns))
    return _time_between_events(Samples(method, calls_per_sample * op.passes, note), call, calls_per_sample, host_ns, run_ns, order, stop)


def _time_between_events(
    samples: Samples,
    call: Callable[[], Any],
    calls_per_sample: int,
    host_ns: float,
    run_ns: float,
    order: Dict[str, Any],
    stop: Callable[[], bool],
) -> Samples:
    """`host_ns`, `run_ns`: time until a call is enqueued, and until it is done."""

    def batch(count: int) -> List[float]:
        events = [_event() for _ in range(count + 1)]
        ahead_ns = min(20e6, count * (calls_per_sample * host_ns + 5e3))
        torch.cuda._sleep(int(ahead_ns * 2))  # cycles, at about 2 GHz
        events[0].record()
        for event in events[1:]:
            for _ in range(calls_per_sample):
                call()
            event.record()
        events[-1].synchronize()
        return [start.elapsed_time(end) * 1e6 / samples.per_sample for start, end in zip(events, events[1:])]

    max_batch = max(1, min(int(QUEUE / calls_per_sample), int(BATCH_NS / (calls_per_sample * run_ns))))
    return _collect(samples, batch, max_batch, order, stop, MIN_NS)


def _time_with_flushes(
    samples: Samples,
    call: Callable[[], Any],
    host_ns: float,
    run_ns: float,
    order: Dict[str, Any],
    stop: Callable[[], bool],
    device: str,
) -> Samples:
    """Like _time_between_events with one run per sample; the cache is overwritten between runs."""
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


def _measure_enqueue_and_run(call_next: RotatingCalls, device: str) -> Tuple[float, float]:
    """-> ns per call until the host has enqueued it, and until it is done"""
    calls = 20 if time_once_ns(call_next, device) < 20e6 else 2
    first, last = _event(), _event()
    wait(device)
    first.record()
    start = time.monotonic_ns()
    for _ in range(calls):
        call_next()
    host_ns = (time.monotonic_ns() - start) / calls
    last.record()
    wait(device)
    return host_ns, max(500.0, first.elapsed_time(last) * 1e6 / calls)


def _capture(op: Operation, sets: List[Tuple[Any, ...]], calls: int, device: str) -> Tuple[Any, RotatingCalls]:
    """A graph of `calls` runs, and the outputs, which must live as long."""
    call_next = RotatingCalls(op, sets)
    graph = torch.cuda.CUDAGraph()
    wait(device)
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call_next()
    graph.replay()
    wait(device)
    return graph, call_next


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().split("\n")[0] or type(error).__name__)[:300]
