"""Requests that run and wait in vLLM's scheduler (V1), as telemetry lines of the record. Needs no vLLM."""

import functools
import os
import time
from typing import Any, Optional

from inferscope_after_import import after_import, guarded
from inferscope_record import Recorder, at_process_end

# A step of decode takes some milliseconds; the queue changes less often.
_PERIOD_NS = 10_000_000
_FLUSH_NS = 1_000_000_000


def records_queue() -> bool:
    """Whether `inferscope run` records a program. inferscope's own engine sends batches that fit."""
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

    def sample(self, scheduler: Any) -> None:
        now = time.monotonic_ns()
        if self._records is None or now < self._next_ns:
            return
        self._next_ns = now + _PERIOD_NS
        running, waiting = scheduler.get_request_counts()
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
            guarded(records.flush, "writing the queue of vLLM")


_queue: Optional[RecordedQueue] = None


def watch_queue() -> None:
    """Waits for the import of vLLM's scheduler; costs nothing in programs without it."""
    after_import({"vllm.v1.core.sched.scheduler": _on_scheduler})


def _on_scheduler(module: Any) -> None:
    schedule = module.Scheduler.schedule
    if not hasattr(module.Scheduler, "get_request_counts"):  # not in old versions
        return

    @functools.wraps(schedule)
    def scheduled(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = schedule(self, *args, **kwargs)
        guarded(lambda: _sample(self), "counting the requests of vLLM")
        return output

    module.Scheduler.schedule = scheduled


def _sample(scheduler: Any) -> None:
    global _queue
    if _queue is None and records_queue():
        _queue = RecordedQueue()
    if _queue is None:
        return
    try:
        _queue.sample(scheduler)
    except Exception:
        # One warning, not one per step.
        _queue.end()
        raise
