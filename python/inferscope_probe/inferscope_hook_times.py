"""Times of steps, stored as tuples until they are written. Device times are from CUDA events that nothing waits for."""

import os
import time
import weakref
from typing import Any, Dict, List, Optional, Tuple

import inferscope_record

_MAX_PENDING = 20_000
_FLUSH_NS = 1_000_000_000
# Events created in advance, because creating one costs as much as recording it.
_EVENTS = 512
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
    time is measured from the end of the previous step.
    """

    __slots__ = ("times", "owner", "sequence", "cache", "shape", "batch", "number", "stream", "raw", "device", "end", "__weakref__")

    def __init__(
        self, times: "Times", owner: Any, sequence: Any, cache: Any, shape: Any, sizes: Tuple[int, int], events: Optional[Tuple[Any, ...]]
    ) -> None:
        """`owner`: the called model or CUDA graph; `sizes`: its batch, and the number of the next step."""
        self.times, self.sequence, self.shape = times, sequence, shape
        self.owner = weakref.ref(owner)
        self.cache = _nothing if cache is None else weakref.ref(cache)
        self.batch, self.number = sizes
        self.stream = self.end = None
        if events is not None:
            _, self.end, self.stream, self.raw = events
            self.device = self.stream.device_index

    def is_like(self, thread: Any, owner: Any, ids: Any, cache: Any) -> bool:
        """`thread`: its state in inferscope_hooks.py; `ids`: None for a graph."""
        return (
            self.owner() is owner
            and self.sequence is thread.sequence
            and self.cache() is cache
            and getattr(ids, "shape", None) == self.shape
            and (self.stream is None or (self.times.raw_stream(self.device) == self.raw and not self.times.is_capturing()))
        )

    def run(self, thread: Any, call: Any, args: Any, kwargs: Any) -> Any:
        """The step, stored only as a tuple."""
        times, sequence = self.times, self.sequence
        past = sequence.counted
        sequence.counted = past + 1
        thread.busy = True
        start_ns = time.monotonic_ns()
        try:
            return call(*args, **kwargs)
        finally:
            thread.busy = False
            end_ns = time.monotonic_ns()
            event = None
            if self.stream is not None:
                event = times.free.pop() if times.free else times.new_event()
                times.record(event, self.stream)
            number = self.number
            self.number = number + 1
            times.add((self, number, past, start_ns, end_ns, event))


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
    context, kind, first of its shape, padding, cache); it is stored with its end_ns.
    """

    def __init__(self, marked_by: str = "hooks") -> None:
        self.marked_by = marked_by
        self.torch: Any = None
        self.raw_stream: Any = None
        self.is_capturing: Any = None
        self.record: Any = None
        self.records = inferscope_record.Recorder()
        self._pending: List[Tuple[Any, ...]] = []
        self.add = self._pending.append
        self.free: List[Any] = []
        self._counts: List[Any] = []
        self._streams: Dict[int, Tuple[int, Any]] = {}
        self._flushed_ns = 0
        # By device, the end of the last step that was read: its event and its time.
        self._last: Dict[int, Tuple[Any, float]] = {}

    def on_torch(self, torch: Any) -> None:
        """The C++ functions, because their Python wrappers cost more than they do."""
        self.torch = torch
        self.raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self.is_capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
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
        for index, entry in enumerate(self._pending):
            if len(entry) > 2:
                continue
            step, end_ns = entry
            if step[9] == kind and step[6:8] == (batch, new):
                self._pending[index] = ((*step[:10], True, *step[11:]), end_ns)

    def flush_now_and_then(self) -> None:
        if time.monotonic_ns() - self._flushed_ns > _FLUSH_NS or len(self._pending) > _MAX_PENDING:
            self.flush()

    def flush(self, wait: bool = False) -> None:
        """Writes the steps with complete events in order; with `wait` all steps."""
        if self.records.path is None:
            self._pending.clear()
            return
        rank, pid = inferscope_record.rank(), os.getpid()
        execution = os.environ.get("INFERSCOPE_EXECUTION_ID", "run")
        done = 0
        lines: List[str] = []
        for entry in list(self._pending):
            first, padding = False, None
            if len(entry) == 2:
                step, end_ns = entry
                _, events, _, start_ns, iteration, number, batch, new, context, kind, first, padding, _ = step
                end = None if events is None else events[1]
            else:
                last, number, past, start_ns, end_ns, end = entry
                kind, iteration, batch = "decode", last.sequence.iteration, last.batch
                new, context = batch, batch * (past + 1)
            device_start = device_dur = None
            if end is not None:
                if wait:
                    end.synchronize()
                elif not end.query():
                    break
                device_start, device_dur = self._around(events, start_ns) if len(entry) == 2 else self._since(last, end)
            if isinstance(padding, PaddingCount):
                padding = padding.read()
            done += 1
            lines.append(
                _LINE
                % (
                    execution, rank, pid, start_ns, kind, kind, iteration, number, end_ns, iteration, number, _json(batch), _json(new),
                    _json(context), _json(device_start), _json(device_dur), "true" if first else "false", _json(padding), self.marked_by,
                )
            )
        del self._pending[:done]
        self.records.text("".join(lines))
        self._flushed_ns = time.monotonic_ns()
        self.records.flush()

    def _around(self, events: Tuple[Any, ...], start_ns: int) -> Tuple[int, int]:
        """Each start is measured from the end of the previous step, because the difference of distant events has too
        few digits.
        """
        before, after, stream = events[:3]
        dur = 1e6 * before.elapsed_time(after)
        last = self._last.get(stream.device_index)
        start = float(start_ns) if last is None else last[1] + 1e6 * last[0].elapsed_time(before)
        self.free.append(before)
        self._last[stream.device_index] = (after, start + dur)
        return round(start), round(dur)

    def _since(self, last: LastStep, end: Any) -> Tuple[int, int]:
        """A step measured from the end of the previous one, unless that belongs to another thread."""
        event, end_ns = self._last[last.device]
        start = end_ns if event is last.end else end_ns + 1e6 * event.elapsed_time(last.end)
        dur = 1e6 * last.end.elapsed_time(end)
        if event is last.end:
            self.free.append(event)
        last.end = end
        self._last[last.device] = (end, start + dur)
        return round(start), round(dur)

    def forget(self) -> None:
        """In a forked child: the parent's records stay with the parent."""
        self._pending.clear()
        self.free.clear()
        self._counts.clear()
        self._streams.clear()
        self._last.clear()
        self.records._lines = []
