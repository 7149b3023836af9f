"""Times of steps, kept as tuples until there is time to write them. Device times are of CUDA events that nothing waits for."""

import os
import time
from typing import Any, Dict, List, Optional, Tuple

import inferscope_record

_MOST_PENDING = 20_000
_FLUSH_NS = 1_000_000_000
# Events made before they are needed: one costs as much as recording it.
_EVENTS = 512

_LINE = (
    '{"v":1,"type":"stage","execution_id":"%s","rank":%d,"pid":%d,"t_ns":%d,"kind":"%s","name":"inferscope:%s:%d:%d","end_ns":%d,'
    '"iteration":%d,"step":%d,"batch_size":%s,"new_tokens":%s,"context_tokens_sum":%s,"warmup":false,"device_start_ns":%s,'
    '"device_dur_ns":%s,"first_of_shape":%s,"padding_tokens":%s,"marked_by":"hooks"}\n'
)


def _json(value: Optional[int]) -> str:
    return "null" if value is None else "%d" % value


class Times:
    """A step is (how to close its range, events, what it shows, start_ns, iteration, step, batch, new tokens, context, kind, first of
    its shape, padding, cache), and is kept with its end_ns."""

    def __init__(self) -> None:
        self.torch: Any = None
        self.records = inferscope_record.Recorder()
        self._pending: List[Tuple[Any, ...]] = []
        self.add = self._pending.append
        self._free: List[Any] = []
        self._streams: Dict[int, Tuple[int, Any]] = {}
        self._flushed_ns = 0
        # By device, the end of the last step that was read: its event, and its time.
        self._last: Dict[int, Tuple[Any, float]] = {}

    def open(self, device: Any) -> Tuple[Any, Any, Any]:
        """-> (event before the step, event for its end, the stream)"""
        index = device.index
        raw = self.torch._C._cuda_getCurrentRawStream(index)
        known = self._streams.get(index)
        if known is None or known[0] != raw:
            known = self._streams[index] = (raw, self.torch.cuda.current_stream(device))
        stream = known[1]
        free = self._free
        if len(free) < 2:
            self._make_events(stream)
        before, after = free.pop(), free.pop()
        before.record(stream)
        return before, after, stream

    def _make_events(self, stream: Any) -> None:
        made = [self.torch.cuda.Event(enable_timing=True) for _ in range(_EVENTS)]
        for event in made:
            event.record(stream)
        self._free.extend(made)

    def warmed_up(self, kind: str, batch: int, new: int) -> None:
        """A graph of these sizes is replayed: calls of them so far were to warm it up."""
        for at, (step, end_ns) in enumerate(self._pending):
            if step[9] == kind and step[6:8] == (batch, new):
                self._pending[at] = ((*step[:10], True, *step[11:]), end_ns)

    def flush_now_and_then(self) -> None:
        if time.monotonic_ns() - self._flushed_ns > _FLUSH_NS or len(self._pending) > _MOST_PENDING:
            self.flush()

    def flush(self, wait: bool = False) -> None:
        """Writes, in order, the steps with complete events; with `wait` all steps."""
        if self.records.path is None:
            self._pending.clear()
            return
        rank, pid = inferscope_record.rank(), os.getpid()
        execution = os.environ.get("INFERSCOPE_EXECUTION_ID", "run")
        done = 0
        lines: List[str] = []
        for kept, end_ns in list(self._pending):
            _, events, _, start_ns, iteration, step, batch, new, context, kind, first, padding, _ = kept
            device_start = device_dur = None
            if events is not None:
                if wait:
                    events[1].synchronize()
                elif not events[1].query():
                    break
                device_start, device_dur = self._device_times(events, start_ns)
            done += 1
            lines.append(
                _LINE
                % (
                    execution, rank, pid, start_ns, kind, kind, iteration, step, end_ns, iteration, step, _json(batch), _json(new),
                    _json(context), _json(device_start), _json(device_dur), "true" if first else "false", _json(padding),
                )
            )
        del self._pending[:done]
        self.records.text("".join(lines))
        self._flushed_ns = time.monotonic_ns()
        self.records.flush()

    def _device_times(self, events: Tuple[Any, Any, Any], start_ns: int) -> Tuple[int, int]:
        """Each start is counted from the end of the step before: the difference of far events has too few digits."""
        before, after, stream = events
        dur_ms = before.elapsed_time(after)
        last = self._last.get(stream.device_index)
        if last is None:
            start = float(start_ns)
        else:
            end_event, end = last
            start = end + 1e6 * end_event.elapsed_time(before)
            self._free.append(end_event)
        self._free.append(before)
        self._last[stream.device_index] = (after, start + 1e6 * dur_ms)
        return round(start), round(1e6 * dur_ms)

    def forget(self) -> None:
        """In a forked child: what its parent recorded is the parent's."""
        self._pending.clear()
        self._free.clear()
        self._streams.clear()
        self._last.clear()
        self.records._lines = []
