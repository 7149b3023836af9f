"""Times of steps, collected until they are written. Device times come from CUDA events that nothing waits for."""

import os
import time
import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import inferscope_record

# Pending steps are written when there are this many, or when this much time has passed since the last write.
_MAX_PENDING = 20_000
_FLUSH_NS = 1_000_000_000
# Events created in advance, because creating one costs as much as recording it.
_EVENTS = 512
# Short decode steps share an event, because recording one costs 9 us: at most this many, and about this much time on the host.
SHARED_STEPS = 16
_SHARED_NS = 12_000_000
# Counts of padding positions that are allocated at once.
_COUNTS = 256

_LINE = (
    '{"v":1,"type":"stage","execution_id":"%s","rank":%d,"pid":%d,"t_ns":%d,"kind":"%s","name":"inferscope:%s:%d:%d","end_ns":%d,'
    '"iteration":%d,"step":%d,"batch_size":%s,"new_tokens":%s,"context_tokens_sum":%s,"warmup":false,"device_start_ns":%s,'
    '"device_dur_ns":%s,"first_of_shape":%s,"padding_tokens":%s,"marked_by":"%s"}\n'
)


def _json(value: Optional[int]) -> str:
    return "null" if value is None else "%d" % value


class StepEvents(NamedTuple):
    """The CUDA events around a step, on its stream; `handle`: the stream's, which is cheap to compare."""

    before: Any
    after: Any
    stream: Any
    handle: int


class Step(NamedTuple):
    """A stage of the program. None: unknown, or it does not apply."""

    kind: str
    iteration: int
    number: int  # among the stages of its kind in the iteration
    start_ns: int
    batch: Optional[int] = None
    new_tokens: Optional[int] = None
    context_tokens: Optional[int] = None  # attended to, summed over the batch
    is_first: bool = False  # of its kind and sizes
    padding: Any = None  # padding positions, or their PaddingCount
    events: Optional[StepEvents] = None


class RepeatedStep:
    """A decode step that the next ones of its sequence are likely to repeat, with the state that they need
    (inferscope_hook_repeats.py). Their device time is measured from the end of the previous step; short steps are measured
    together.
    """

    __slots__ = (
        "times", "owner_id", "cache_id", "cache_name", "positions", "references", "sequence", "batch", "number", "stream", "handle",
        "stream_handle", "device", "end", "spans", "limit", "is_module_call", "__weakref__",
    )  # fmt: skip

    def __init__(
        self, times: "Times", owner: Any, sequence: Any, cache: Any, cache_name: str, positions: Optional[int], batch: int, number: int,
        events: Optional[StepEvents],
    ) -> None:  # fmt: skip
        """`owner`: the called model or CUDA graph; `cache_name`: of the argument; `positions`: elements of the first argument,
        None for a graph; `number`: of the next step.
        """
        self.times, self.sequence, self.positions, self.batch, self.number = times, sequence, positions, batch, number
        # Compared instead of weak references, which cost 1 us per call; they change when the objects are deleted.
        self.owner_id, self.cache_id, self.cache_name = id(owner), id(cache), cache_name
        self.references = [weakref.ref(value, self._forget) for value in (owner, cache) if value is not None]
        # None without a GPU, and after an error of the device.
        self.stream = self.stream_handle = None
        # The event at the end of the steps that were measured last.
        self.end = None
        # When each step since the last event started and ended, in turn. Numbers cost less than tuples.
        self.spans: List[int] = []
        # Numbers in `spans` at which an event is recorded, from the time of the previous ones on the host.
        self.limit = 2
        # Whether the owner has the call of torch.nn.Module, by the end of the last group.
        self.is_module_call = False
        if events is not None:
            _, self.end, self.stream, self.handle = events
            self.device, self.stream_handle = self.stream.device_index, times.stream_handle

    def _forget(self, _: Any) -> None:
        self.owner_id = None

    def add_group(self, after_pause: bool = False) -> None:
        """Adds the steps since the last event to the pending ones. After a pause no event is recorded, because it
        would measure the pause.
        """
        spans, self.spans = self.spans, []
        starts, ends = spans[::2], spans[1::2]
        steps, number, past = len(ends), self.number, self.sequence.cached_tokens
        self.number = number + steps
        self.sequence.cached_tokens = past + steps
        self.limit = 2 * max(1, min(SHARED_STEPS, _SHARED_NS * steps // max(1, sum(ends) - sum(starts))))
        times, event = self.times, None
        if self.stream is not None and not after_pause:
            event = times.free.pop() if times.free else times.new_event()
            try:
                times.record(event, self.stream)
            except RuntimeError:  # after an error of the device, which the program itself gets
                event = self.stream = self.stream_handle = None
        times.add((event, self, StepGroup(number, past, starts, ends, self.stream is not None)))

    def stop(self) -> None:
        if self.spans:
            self.add_group(after_pause=time.monotonic_ns() - self.spans[-1] > _SHARED_NS)
        self.references.clear()
        self.sequence.steps["decode"] = self.number


class StepGroup(NamedTuple):
    """Repeated decode steps that share an event: number of the first, tokens in the cache before it, when each started and
    ended (ns), and whether the device was measured.
    """

    number: int
    past: int
    starts: List[int]
    ends: List[int]
    on_device: bool


class PaddingCount:
    """Padding positions of a batch, counted by the device and read after the next step."""

    __slots__ = ("positions", "count")

    def __init__(self, positions: int, count: Any) -> None:
        """`count`: positions that are not padding, in host memory that the device has written by then."""
        self.positions, self.count = positions, count

    def read(self) -> int:
        return self.positions - int(self.count[0])


class Times:
    """The steps of this process, pending until the events at their ends are complete."""

    def __init__(self, marked_by: str = "hooks") -> None:
        self.marked_by = marked_by
        self.torch: Any = None
        self.stream_handle: Any = None
        self.record: Any = None
        self.records = inferscope_record.Recorder()
        # (the event at its end, Step, end_ns), and for repeated decode steps (the event at their end, RepeatedStep,
        # StepGroup).
        self._pending: List[Tuple[Any, ...]] = []
        self.add = self._pending.append
        # Events that can be recorded again.
        self.free: List[Any] = []
        self._counts: List[Any] = []
        # By device: the current stream, with its handle.
        self._streams: Dict[int, Tuple[int, Any]] = {}
        self._flushed_ns = 0
        # By device, of the step that was read last: the event at its end, the time of its end, its duration.
        self._last: Dict[int, Tuple[Any, float, float]] = {}
        self._device_failed = False

    def on_torch(self, torch: Any) -> None:
        """The C++ functions, because their Python wrappers cost more than they do."""
        self.torch = torch
        self.stream_handle = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self.record = getattr(getattr(torch._C, "_CudaEventBase", None), "record", None)

    def open(self, device: Any) -> StepEvents:
        """Records the event before a step."""
        index = device.index
        handle = self.stream_handle(index)
        known = self._streams.get(index)
        if known is None or known[0] != handle:
            if known is None:
                self._make_events(device)
            known = self._streams[index] = (handle, self.torch.cuda.current_stream(device))
        stream = known[1]
        free = self.free
        before = free.pop() if free else self.new_event()
        after = free.pop() if free else self.new_event()
        self.record(before, stream)
        return StepEvents(before, after, stream, handle)

    def count_padding(self, mask: Any) -> PaddingCount:
        """Before the step's first event, so that the step's time excludes it."""
        if not self._counts:
            self._counts = list(self.torch.empty(_COUNTS, 1, dtype=self.torch.int64, pin_memory=True))
        count = self._counts.pop()
        count.copy_(self.torch.count_nonzero(mask).view(1), non_blocking=True)
        return PaddingCount(mask.numel(), count)

    def add_step(self, step: Step, end_ns: int) -> None:
        self.add((None if step.events is None else step.events.after, step, end_ns))

    def new_event(self) -> Any:
        return self.torch.cuda.Event(enable_timing=True)

    def _make_events(self, device: Any) -> None:
        """Each event is recorded once, because only recording creates it."""
        stream = self.torch.cuda.current_stream(device)
        made = [self.new_event() for _ in range(_EVENTS)]
        for event in made:
            self.record(event, stream)
        self.free.extend(made)

    def warmed_up(self, kind: str, batch: int, new_tokens: int) -> None:
        """A graph of these sizes is replayed, so the earlier calls of these sizes were its warm-up."""
        for index, (event, step, end_ns) in enumerate(self._pending):
            if isinstance(step, Step) and (step.kind, step.batch, step.new_tokens) == (kind, batch, new_tokens):
                self._pending[index] = (event, step._replace(is_first=True), end_ns)

    def flush_if_due(self) -> None:
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
        for event, step, detail in list(self._pending):
            if event is not None and not self._is_complete(event, wait):
                break
            done += 1
            if isinstance(step, RepeatedStep):
                lines.extend(self._lines_of_group(header, step, detail, event))
            else:
                lines.append(self._line_of_step(header, step, detail))
        del self._pending[:done]
        self.records.add_text("".join(lines))
        self._flushed_ns = time.monotonic_ns()
        self.records.flush()

    def _is_complete(self, event: Any, wait: bool) -> bool:
        """After an error of the device no event can be read: the steps are then written without device times."""
        if self._device_failed:
            return True
        try:
            if wait:
                event.synchronize()
            return wait or bool(event.query())
        except RuntimeError:
            self._device_failed = True
            return True

    def _line_of_step(self, header: Tuple[str, int, int], step: Step, end_ns: int) -> str:
        device: Tuple[Optional[float], Optional[float]] = (None, None)
        if step.events is not None and not self._device_failed:
            device = self._measure_step(step.events, step.start_ns)
        padding = step.padding
        if isinstance(padding, PaddingCount):
            padding = None if self._device_failed else padding.read()
        sizes = step.batch, step.new_tokens, step.context_tokens
        return self._line(header, step.kind, step.iteration, step.number, step.start_ns, end_ns, sizes, device, step.is_first, padding)

    def _lines_of_group(self, header: Tuple[str, int, int], repeated: RepeatedStep, group: StepGroup, event: Any) -> Iterator[str]:
        device_start = device_dur = None
        if group.on_device and not self._device_failed:
            device_start, device_dur = self._measure_group(repeated, event, len(group.ends))
        iteration, batch = repeated.sequence.iteration, repeated.batch
        for index, (start_ns, end_ns) in enumerate(zip(group.starts, group.ends)):
            sizes = batch, batch, batch * (group.past + index + 1)
            device = device_start, device_dur
            yield self._line(header, "decode", iteration, group.number + index, start_ns, end_ns, sizes, device)
            if device_start is not None and device_dur is not None:
                device_start += device_dur

    def _line(
        self, header: Tuple[str, int, int], kind: str, iteration: int, number: int, start_ns: int, end_ns: int, sizes: Tuple[Any, ...],
        device: Tuple[Optional[float], Optional[float]], is_first: bool = False, padding: Optional[int] = None,
    ) -> str:  # fmt: skip
        """`header`: execution, rank, pid; `sizes`: batch, new tokens, context; `device`: start, duration (ns)"""
        execution, rank, pid = header
        batch, new_tokens, context_tokens = sizes
        device_start, device_dur = (None if value is None else round(value) for value in device)
        return _LINE % (
            execution, rank, pid, start_ns, kind, kind, iteration, number, end_ns, iteration, number, _json(batch), _json(new_tokens),
            _json(context_tokens), _json(device_start), _json(device_dur), "true" if is_first else "false", _json(padding),
            self.marked_by,
        )  # fmt: skip

    def _measure_step(self, events: StepEvents, start_ns: int) -> Tuple[float, float]:
        """-> start and duration (ns). The start is measured from the end of the previous step, because the difference
        of distant events has too few digits.
        """
        before, after, stream, _ = events
        dur = 1e6 * before.elapsed_time(after)
        last = self._last.get(stream.device_index)
        start = float(start_ns) if last is None else last[1] + 1e6 * last[0].elapsed_time(before)
        self.free.append(before)
        self._last[stream.device_index] = (after, start + dur, dur)
        return start, dur

    def _measure_group(self, repeated: RepeatedStep, end: Any, steps: int) -> Tuple[float, Optional[float]]:
        """-> when these steps started, and the mean time of each (ns). They are measured from the end of the previous
        step, unless that belongs to another thread; without an event at their end they took as long as the previous one.
        """
        event, start, previous_dur = self._last[repeated.device]
        follows = event is repeated.end
        if not follows:
            start += 1e6 * event.elapsed_time(repeated.end)
        if end is None:
            return start, previous_dur if follows else None
        total = 1e6 * repeated.end.elapsed_time(end)
        if follows:
            self.free.append(event)
        repeated.end = end
        self._last[repeated.device] = (end, start + total, total / steps)
        return start, total / steps

    def forget(self) -> None:
        """In a forked child: the parent's records stay with the parent."""
        self._pending.clear()
        self.free.clear()
        self._counts.clear()
        self._streams.clear()
        self._last.clear()
        self.records._lines = []
