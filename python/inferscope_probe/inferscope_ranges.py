"""Ranges for whoever watches this process: NVTX for nsys and ncu, record_function for a torch profiler.

Standard library only; torch is used where the program has already imported it.
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
    """Whether the probe of --evaluator torch wants ranges of this process; None: it is not here."""
    probe = sys.modules.get("inferscope_torch")
    return None if probe is None else bool(probe.wants_ranges())


def evaluated() -> bool:
    """Whether an evaluator is attached. Marks that nobody needs for timing are made only then."""
    wanted = _torch_probe()
    if wanted is not None:
        return wanted
    return os.environ.get("INFERSCOPE_EVALUATOR") in ("nsys", "ncu") or any(name in os.environ for name in _WATCHED_BY)


def computes_on_cpu() -> None:
    """Informs the torch probe that there is no GPU to wait for: the CPU was asked for, or there is none."""
    probe = sys.modules.get("inferscope_torch")
    if probe is not None:
        probe.on_cpu()


def range_opener() -> Optional[Callable[[str], Close]]:
    """What opens a range here and now and returns what closes it; None where nobody could see one.

    Ranges cost microseconds each, so each kind only where somebody may listen: NVTX where there is a GPU, for a tool can
    attach without being seen.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    wanted = _torch_probe()
    # A profiler of all threads does not show in _profiler_enabled(), which asks for this thread.
    annotated = torch.autograd._profiler_enabled() if wanted is None else wanted
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
    """Ranges that a fault in the middle closes as well: one that stays open would hold all that come after."""

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
    """A range that is there for evaluators alone."""
    with Ranges(range_opener() if evaluated() else None) as ranges:
        ranges.begin(name)
        yield
