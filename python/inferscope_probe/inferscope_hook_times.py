"""Times of steps, stored as tuples until they are written. Device times are from CUDA events that nothing waits for."""

import os
import time
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

import inferscope_record

_MAX_PENDING = 20_000
_FLUSH_NS = 1_000_000_000
# Events created in advance, because creating one costs as much as recording it.
_EVENTS = 512
# A decode step as short as 1.5 ms shares an event with its neighbors, because recording one costs 9 us: after so many
# steps, or after steps that took so long on the host.
_SHARED_STEPS = 6
_SHARED_NS = 8_000_000
# Number of counts that the device writes at once.
_COUNTS = 256

_LINE = (
    '{"v":1,"type":"stage","execution_id":"%s","rank":%d,"pid":%d,"t_ns":%d,"kind":"%s","name":"inferscope:%s:%d:%d","end_ns":%d,'
    '"iteration":%d,"step":%d,"batch_size":%s,"new_tokens":%s,"context_tokens_sum":%s,"warmup":false,"device_start_ns":%s,'
    '"device_dur_ns":%s,"first_of_shape":%s,"padding_tokens":%s,"marked_by":"%s"}\n'
)


def _json(value: Optional[int]) -> str:
    return "null" if value is None else "%d" % value


class LastStep:
    """A decode step that the next ones of its sequence are likely to repeat, with the state that they need. Their
    device time is measured from the end of the previous step; short steps are measured together.
    """

    __slots__ = (
        "times", "owner", "sequence", "cache", "shape", "batch", "number", "stream", "raw", "device", "end", "steps", "host_ns", "__weakref__",
    )  # fmt: skip

    def __init__(
        self, times: "Times", owner: Any, sequence: Any, cache: Any, shape: Any, sizes: Tuple[int, int], events: Optional[Tuple[Any, ...]]
    ) -> None:
        """`owner`: the called model or CUDA graph; `sizes`: its batch, and the number of the next step."""
        self.times, self.sequence, self.shape = times, sequence, shape
        self.owner = weakref.ref(owner)
        self.cache = _nothing if cache is None else weakref.ref(cache)
        self.batch, self.number = sizes
        self.stream = self.end = None
        # Since the last event: start_ns and end_ns of each step, and the sum of their times on the host.
        self.steps: List[Tuple[int, int]] = []
        self.host_ns = 0
        if events is not None:
            _, self.end, self.stream, self.raw = events
            self.device = self.stream.device_index

    def is_like(self, thread: Any, owner: Any, ids: Any, cache: Any) -> bool:
        """`thread`: its state in inferscope_hooks.py; `ids`: None for a graph."""
        return (
            self.owner() is owner
            and self.cache() is cache
            and getattr(ids, "shape", None) == self.shape
            and (self.stream is None or (thread.graph is None and self.times.raw_stream(self.device) == self.raw))
        )

    def run(self, thread: Any, call: Any, args: Any, kwargs: Any) -> Any:
        """The step, stored only as a tuple."""
        thread.busy = True
        start_ns = time.monotonic_ns()
        try:
            return call(*args, **kwargs)
        finally:
            end_ns = time.monotonic_ns()
            thread.busy = False
            steps = self.steps
            steps.append((start_ns, end_ns))
            self.host_ns += end_ns - start_ns
            if self.host_ns >= _SHARED_NS or len(steps) == _SHARED_STEPS:
                self.add(self.stream)

    def add(self, stream: Any) -> None:
        """Adds the steps since the last event to the pending ones; `stream`: of an event at their end, None for no event."""
        steps, self.steps, self.host_ns = self.steps, [], 0
        number, past = self.number, self.sequence.counted
        self.number = number + len(steps)
        self.sequence.counted = past + len(steps)
        times, event = self.times, None
        if stream is not None:
            event = times.free.pop() if times.free else times.new_event()
            try:
                times.record(event, stream)
            except RuntimeError:  # after an error of the device, which the program itself gets
                event = self.stream = None
        times.add((event, self, (number, past, steps)))

    def stop(self) -> None:
        """After a pause no event is recorded, because it would measure the pause."""
        if self.steps:
            paused = time.monotonic_ns() - self.steps[-1][1] > _SHARED_NS
            self.add(None if paused else self.stream)
        self.sequence.steps["decode"] = self.number


def _nothing() -> None:
    return None


class PaddingCount:
    """Padding positions of a batch, counted by the device and read after the next step."""

    __slots__ = ("positions", "count")

    def __init__(self, positions: int, count: Any) -> None:
        """`count`: a number in host memory that the device has written by then."""
        self.positions, self.count = positions, count

    def read(self) -> int:
        return self.positions - int(self.count[0])


class Times:
    """A step is (how to close its range, events, what it shows, start_ns, iteration, step, batch, new tokens,
    context, kind, first of its shape, padding, cache). Pending are (the event at its end, the step, end_ns), and for repeated
    decode steps (the event at their end, their LastStep, (number and past of the first, (start_ns, end_ns) of each)).
    """

    def __init__(self, marked_by: str = "hooks") -> None:
        self.marked_by = marked_by
        self.torch: Any = None
        self.raw_stream: Any = None
        self.record: Any = None
        self.records = inferscope_record.Recorder()
        self._pending: List[Tuple[Any, ...]] = []
        self.add = self._pending.append
        self.free: List[Any] = []
        self._counts: List[Any] = []
        self._streams: Dict[int, Tuple[int, Any]] = {}
        self._flushed_ns = 0
        # By device, of the last step that was read: the event at its end, the time of its end, its duration.
        self._last: Dict[int, Tuple[Any, float, float]] = {}

    def on_torch(self, torch: Any) -> None:
        """The C++ functions, because their Python wrappers cost more than they do."""
        self.torch = torch
        self.raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self.record = getattr(getattr(torch._C, "_CudaEventBase", None), "record", None)

    def open(self, device: Any) -> Tuple[Any, ...]:
        """-> (event before the step, event for its end, the stream, its handle)"""
        index = device.index
        raw = self.raw_stream(index)
        known = self._streams.get(index)
        if known is None or known[0] != raw:
            if known is None:
                self._make_events(device)
            known = self._streams[index] = (raw, self.torch.cuda.current_stream(device))
        stream = known[1]
        free = self.free
        before = free.pop() if free else self.new_event()
        after = free.pop() if free else self.new_event()
        self.record(before, stream)
        return before, after, stream, raw

    def count_padding(self, mask: Any) -> PaddingCount:
        """Before the step's first event, so that the step's time excludes it."""
        if not self._counts:
            self._counts = list(self.torch.empty(_COUNTS, 1, dtype=self.torch.int64, pin_memory=True))
        count = self._counts.pop()
        count.copy_(self.torch.count_nonzero(mask).view(1), non_blocking=True)
        return PaddingCount(mask.numel(), count)

    def add_step(self, step: Tuple[Any, ...], end_ns: int) -> None:
        events = step[1]
        self.add((None if events is None else events[1], step, end_ns))

    def new_event(self) -> Any:
        return self.torch.cuda.Event(enable_timing=True)

    def _make_events(self, device: Any) -> None:
        """Each event is recorded once, because only recording creates it."""
        stream = self.torch.cuda.current_stream(device)
        made = [self.new_event() for _ in range(_EVENTS)]
        for event in made:
            self.record(event, stream)
        self.free.extend(made)

    def warmed_up(self, kind: str, batch: int, new: int) -> None:
        """A graph of these sizes is replayed, so the earlier calls of these sizes were its warm-up."""
        for index, (end, step, end_ns) in enumerate(self._pending):
            if not isinstance(step, LastStep) and step[9] == kind and step[6:8] == (batch, new):
                self._pending[index] = (end, (*step[:10], True, *step[11:]), end_ns)

    def flush_now_and_then(self) -> None:
        if time.monotonic_ns() - self._flushed_ns > _FLUSH_NS or len(self._pending) > _MAX_PENDING:
            self.flush()

    def flush(self, wait: bool = False) -> None:
        """Writes the steps with complete events in order; with `wait` all steps."""
        if self.records.path is None:
            self._pending.clear()
            return
        header = os.environ.get("INFERSCOPE_EXECUTION_ID", "run"), inferscope_record.rank(), os.getpid()
        done = 0
        lines: List[str] = []
        for end, step, rest in list(self._pending):
            if end is not None:
                if wait:
                    end.synchronize()
                elif not end.query():
                    break
            done += 1
            if isinstance(step, LastStep):
                lines.extend(self._lines_of_repeated(header, step, rest, end))
            else:
                lines.append(self._line_of(header, step, rest))
        del self._pending[:done]
        self.records.text("".join(lines))
        self._flushed_ns = time.monotonic_ns()
        self.records.flush()

    def _line_of(self, header: Tuple[str, int, int], step: Tuple[Any, ...], end_ns: int) -> str:
        _, events, _, start_ns, iteration, number, batch, new, context, kind, first, padding, _ = step
        device = (None, None) if events is None else self._around(events, start_ns)
        if isinstance(padding, PaddingCount):
            padding = padding.read()
        sizes = batch, new, context
        return self._line(header, kind, iteration, number, start_ns, end_ns, sizes, device, first, padding)

    def _lines_of_repeated(self, header: Tuple[str, int, int], last: LastStep, rest: Tuple[int, int, List[Tuple[int, int]]], end: Any) -> Iterator[str]:
        number, past, steps = rest
        device_start = device_dur = None
        if last.stream is not None:
            device_start, device_dur = self._since(last, end, len(steps))
        for index, (start_ns, end_ns) in enumerate(steps):
            sizes = last.batch, last.batch, last.batch * (past + index + 1)
            device = device_start, device_dur
            yield self._line(header, "decode", last.sequence.iteration, number + index, start_ns, end_ns, sizes, device)
            if device_start is not None and device_dur is not None:
                device_start += device_dur

    def _line(
        self, header: Tuple[str, int, int], kind: str, iteration: int, number: int, start_ns: int, end_ns: int, sizes: Tuple[Any, ...],
        device: Tuple[Optional[float], Optional[float]], first: bool = False, padding: Optional[int] = None,
    ) -> str:  # fmt: skip
        """`header`: execution, rank, pid; `sizes`: batch, new tokens, context; `device`: start, duration (ns)"""
        execution, rank, pid = header
        batch, new, context = sizes
        device_start, device_dur = (None if value is None else round(value) for value in device)
        return _LINE % (
            execution, rank, pid, start_ns, kind, kind, iteration, number, end_ns, iteration, number, _json(batch), _json(new),
            _json(context), _json(device_start), _json(device_dur), "true" if first else "false", _json(padding), self.marked_by,
        )  # fmt: skip

    def _around(self, events: Tuple[Any, ...], start_ns: int) -> Tuple[float, float]:
        """Each start is measured from the end of the previous step, because the difference of distant events has too
        few digits.
        """
        before, after, stream = events[:3]
        dur = 1e6 * before.elapsed_time(after)
        last = self._last.get(stream.device_index)
        start = float(start_ns) if last is None else last[1] + 1e6 * last[0].elapsed_time(before)
        self.free.append(before)
        self._last[stream.device_index] = (after, start + dur, dur)
        return start, dur

    def _since(self, last: LastStep, end: Any, steps: int) -> Tuple[float, Optional[float]]:
        """-> when these steps started, and the mean time of each. They are measured from the end of the previous step,
        unless that belongs to another thread; without an event at their end they took as long as the previous one.
        """
        event, start, previous_dur = self._last[last.device]
        follows = event is last.end
        if not follows:
            start += 1e6 * event.elapsed_time(last.end)
        if end is None:
            return start, previous_dur if follows else None
        total = 1e6 * last.end.elapsed_time(end)
        if follows:
            self.free.append(event)
        last.end = end
        self._last[last.device] = (end, start + total, total / steps)
        return start, total / steps

    def forget(self) -> None:
        """In a forked child: the parent's records stay with the parent."""
        self._pending.clear()
        self.free.clear()
        self._counts.clear()
        self._streams.clear()
        self._last.clear()
        self.records._lines = []
