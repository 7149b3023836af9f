"""Batches of an inference engine as steps: ranges for an evaluator, else stage lines of the record."""

import os
import sys
import time
from typing import Any, Optional, Tuple

from inferscope_after_import import guarded
from inferscope_hook_times import Step, StepEvents, Times
from inferscope_ranges import Close
from inferscope_record import at_process_end


def records_engine() -> bool:
    """Whether `inferscope run` watches a program that runs an engine. inferscope's own engines record their batches themselves."""
    return os.environ.get("INFERSCOPE_HOOKS", "on") != "off" and "INFERSCOPE_EXECUTION_ID" not in os.environ


def records_batches() -> bool:
    """Whether batches become stage lines: `inferscope run --evaluator none` around a program."""
    return records_engine() and os.environ.get("INFERSCOPE_EVALUATOR") == "none" and "INFERSCOPE_RECORD" in os.environ


class RecordedBatches:
    """Stage lines of one process of an engine."""

    def __init__(self, engine: str, marked_by: str) -> None:
        """`engine`: its name in messages."""
        self._engine = engine
        self._times = Times(marked_by=marked_by)
        if "torch" in sys.modules:
            self._times.on_torch(sys.modules["torch"])
        self._times.records.clock()
        self._iteration, self._step = -1, 0
        self._ended = False
        at_process_end(self.end)

    def open(self, kind: str) -> Close:
        """`kind`: load, warmup or sampling."""
        return self._open_stage(kind, (None, None, None), None, False)

    def number_batch(self, starts_iteration: bool) -> Tuple[int, int]:
        """-> iteration and step of the next batch"""
        self._iteration, self._step = (self._iteration + 1, 0) if starts_iteration else (max(self._iteration, 0), self._step + 1)
        return self._iteration, self._step

    def open_batch(
        self, kind: str, requests: int, new: int, context: Optional[int], starts_iteration: bool, device: Any, is_first: bool = False
    ) -> Close:
        """`new`: tokens computed; `context`: tokens attended to, summed over the requests. Writes complete batches about once per
        second.
        """
        self._times.flush_if_due()
        self.number_batch(starts_iteration)
        events = self._times.open(device) if getattr(device, "type", None) == "cuda" and device.index is not None else None
        return self._open_stage(kind, (requests, new, context), events, is_first)

    def _open_stage(self, kind: str, sizes: Tuple[Optional[int], ...], events: Optional[StepEvents], is_first: bool) -> Close:
        start_ns = time.monotonic_ns()

        def close() -> None:
            if events is not None:
                self._times.record(events.after, events.stream)
            step = Step(kind, max(self._iteration, 0), self._step, start_ns, *sizes, is_first=is_first, events=events)
            self._times.add_step(step, time.monotonic_ns())

        return close

    def end(self) -> None:
        """Writes the pending batches, once."""
        if self._ended:
            return
        self._ended = True
        guarded(lambda: self._times.flush(wait=True), "writing the batches of %s" % self._engine)
        self._times.records.clock()
        self._times.records.flush()
