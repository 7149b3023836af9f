"""Requests that run and wait in the scheduler of vLLM (V1) or SGLang, as telemetry lines of the record. Imports neither itself."""

import functools
import os
import time
from typing import Any, Callable, Optional, Tuple

from inferscope_after_import import after_import, guarded
from inferscope_record import Recorder, at_process_end

# A step of decode takes some milliseconds; the queue changes less often.
_PERIOD_NS = 10_000_000
_FLUSH_NS = 1_000_000_000

Count = Callable[[Any], Tuple[int, int]]
"""scheduler -> requests that run, requests that wait"""


def records_queue() -> bool:
    """Whether `inferscope run` records a program. Engines that inferscope starts itself get batches that fit, so nothing waits there."""
    hooks = os.environ.get("INFERSCOPE_HOOKS", "on") != "off"
    return hooks and "INFERSCOPE_RECORD" in os.environ and "INFERSCOPE_EXECUTION_ID" not in os.environ


class RecordedQueue:
    """The queue of one scheduler: at most one sample per 10 ms, written about once per second."""

    def __init__(self) -> None:
        self._records: Optional[Recorder] = Recorder()
        self._records.clock()
        self._next_ns = 0
        self._flush_ns = time.monotonic_ns() + _FLUSH_NS
        at_process_end(self.end)

    def sample(self, scheduler: Any, count: Count) -> None:
        now = time.monotonic_ns()
        if self._records is None or now < self._next_ns:
            return
        self._next_ns = now + _PERIOD_NS
        running, waiting = count(scheduler)
        for metric, value in (("requests_running", running), ("requests_waiting", waiting)):
            self._records.add_line("telemetry", now, scope="engine", metric=metric, value=value)
        if now >= self._flush_ns:
            self._flush_ns = now + _FLUSH_NS
            self._records.flush()

    def end(self) -> None:
        """Writes the pending samples; there are none after it."""
        records, self._records = self._records, None
        if records is not None:
            records.clock()
            guarded(records.flush, "writing the queue of the engine")


_queue: Optional[RecordedQueue] = None


def watch_queues() -> None:
    """Waits for the import of a scheduler; costs nothing in programs without one."""
    after_import({"vllm.v1.core.sched.scheduler": _on_vllm, "sglang.srt.managers.scheduler": _on_sglang})


def _on_vllm(module: Any) -> None:
    if hasattr(module.Scheduler, "get_request_counts"):  # not in old versions
        _watch(module.Scheduler, "schedule", lambda scheduler: scheduler.get_request_counts())


def _on_sglang(module: Any) -> None:
    _watch(module.Scheduler, "get_next_batch_to_run", lambda scheduler: (len(scheduler.running_batch.reqs), len(scheduler.waiting_queue)))


def _watch(scheduler: Any, name: str, count: Count) -> None:
    """Samples after each call of the method `name`, which chooses the requests of a step."""
    choose = getattr(scheduler, name)

    @functools.wraps(choose)
    def chosen(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = choose(self, *args, **kwargs)
        guarded(lambda: _sample(self, count), "counting the requests of the engine")
        return result

    setattr(scheduler, name, chosen)


def _sample(scheduler: Any, count: Count) -> None:
    global _queue
    if _queue is None and records_queue():
        _queue = RecordedQueue()
    if _queue is None:
        return
    try:
        _queue.sample(scheduler, count)
    except Exception:
        # One warning, not one per step.
        _queue.end()
        raise
