"""Ranges for tools that watch this process: NVTX for nsys and ncu, record_function for a torch profiler.

Standard library only; torch is used only if the program has already imported it.
"""

import contextlib
import functools
import os
import sys
from typing import Any, Callable, Iterator, List, Optional

Close = Callable[[], None]

# Set by `inferscope run` around the program; by nsys; by tools that listen to NVTX or CUPTI through a library.
_WATCHED_BY = ("NSYS_PROFILING_SESSION_ID", "NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH")


@functools.lru_cache(maxsize=None)
def _has_nvtx() -> bool:
    return bool(sys.modules["torch"].cuda.is_available())


def _torch_probe() -> Optional[bool]:
    """Whether the probe of --evaluator torch wants ranges of this process; None without the probe."""
    probe = sys.modules.get("inferscope_torch")
    return None if probe is None else bool(probe.wants_ranges())


def evaluated() -> bool:
    """Whether an evaluator is attached. Marks that are not needed for timing are made only then."""
    requested = _torch_probe()
    if requested is not None:
        return requested
    return os.environ.get("INFERSCOPE_EVALUATOR") in ("nsys", "ncu") or any(name in os.environ for name in _WATCHED_BY)


def computes_on_cpu() -> None:
    """Informs the torch probe that it need not wait for a GPU: the CPU was requested, or there is no GPU."""
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
    requested = _torch_probe()
    # _profiler_enabled() asks about this thread only, so it does not show a profiler of all threads.
    annotated = torch.autograd._profiler_enabled() if requested is None else requested
    nvtx = torch.cuda.nvtx if _has_nvtx() else None
    if not annotated:
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
def evaluated_range(name: str) -> Iterator[None]:
    """A range for evaluators only."""
    with Ranges(range_opener() if evaluated() else None) as ranges:
        ranges.begin(name)
        yield
