"""Ranges for tools that watch this process: NVTX for nsys and ncu, record_function for a torch profiler.

Standard library only; torch is used only if the program has already imported it.
"""

import contextlib
import functools
import os
import sys
from typing import Any, Callable, Iterator, List, Optional

Close = Callable[[], None]

# Variables that nsys sets, and tools that listen to NVTX or CUPTI through an injected library.
_WATCHED_BY = ("NSYS_PROFILING_SESSION_ID", "NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH")


@functools.lru_cache(maxsize=None)
def _has_nvtx() -> bool:
    return bool(sys.modules["torch"].cuda.is_available())


def _probe_wants_ranges() -> Optional[bool]:
    """Whether the probe of --evaluator torch wants ranges of this process; None without the probe."""
    probe = sys.modules.get("inferscope_torch")
    return None if probe is None else bool(probe.wants_ranges())


def is_evaluated() -> bool:
    """Whether an evaluator is attached. Ranges that are not needed for timing are opened only then."""
    wants_ranges = _probe_wants_ranges()
    if wants_ranges is not None:
        return wants_ranges
    return os.environ.get("INFERSCOPE_EVALUATOR") in ("nsys", "ncu") or any(name in os.environ for name in _WATCHED_BY)


def stop_waiting_for_gpu() -> None:
    """For the torch probe: the CPU was requested, or there is no GPU."""
    probe = sys.modules.get("inferscope_torch")
    if probe is not None:
        probe.on_cpu()


def range_opener() -> Optional[Callable[[str], Close]]:
    """Returns the function that opens a range and returns its closing function; None if no tool could see a range.

    Ranges cost microseconds, so each kind is used only if a tool may listen: NVTX if there is a GPU, because a tool
    can attach unnoticed.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    wants_ranges = _probe_wants_ranges()
    # _profiler_enabled() asks about this thread only, so it does not show a profiler of all threads.
    annotates = torch.autograd._profiler_enabled() if wants_ranges is None else wants_ranges
    nvtx = torch.cuda.nvtx if _has_nvtx() else None
    if not annotates:
        return None if nvtx is None else lambda name: _push(nvtx, name)
    return lambda name: _annotate(torch, nvtx, name)


def _push(nvtx: Any, name: str) -> Close:
    nvtx.range_push(name)
    return nvtx.range_pop  # type: ignore[no-any-return]


def _annotate(torch: Any, nvtx: Any, name: str) -> Close:
    annotation = torch.profiler.record_function(name)
    annotation.__enter__()
    if nvtx is not None:
        nvtx.range_push(name)

    def close() -> None:
        if nvtx is not None:
            nvtx.range_pop()
        annotation.__exit__(None, None, None)

    return close


class Ranges:
    """Ranges that are closed after an error, too: an open one would contain all later ones."""

    def __init__(self, opener: Optional[Callable[[str], Close]]) -> None:
        self.on = opener is not None
        self._opener = opener
        self._open: List[Close] = []

    def begin(self, name: str) -> None:
        if self._opener:
            self._open.append(self._opener(name))

    def end(self) -> None:
        self._open.pop()()

    def __enter__(self) -> "Ranges":
        return self

    def __exit__(self, *_: Any) -> None:
        while self._open:
            self.end()


@contextlib.contextmanager
def evaluator_range(name: str) -> Iterator[None]:
    """A range for evaluators only."""
    with Ranges(range_opener() if is_evaluated() else None) as ranges:
        ranges.begin(name)
        yield
