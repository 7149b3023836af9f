"""Captures of the torch probe that start and stop where the program requests it."""

from typing import Any, Callable, List

from inferscope_after_import import guarded, warn

Action = Callable[[], None]


def watch_profiler_api(torch: Any, start: Action, stop: Action) -> None:
    """Between cudaProfilerStart and cudaProfilerStop."""
    cudart = getattr(torch._C, "_cudart", None)
    if cudart is None:
        warn("torch probe: this torch has no CUDA, so cudaProfilerStart is never called; nothing is traced")
        return
    begin, end = cudart.cudaProfilerStart, cudart.cudaProfilerStop

    def profiler_start() -> Any:
        guarded(start, "starting torch.profiler")
        return begin()

    def profiler_stop() -> Any:
        guarded(stop, "writing the trace")
        return end()

    cudart.cudaProfilerStart, cudart.cudaProfilerStop = profiler_start, profiler_stop


def watch_ranges(torch: Any, prefix: str, start: Action, stop: Action) -> None:
    """Inside the outermost NVTX or record_function ranges with names that start with `prefix`."""
    open_ranges: List[str] = []

    def on_open(name: str) -> None:
        if open_ranges or name.startswith(prefix):
            open_ranges.append(name)
            guarded(start, "starting torch.profiler")

    def on_close() -> None:
        if open_ranges:
            open_ranges.pop()
            if not open_ranges:
                guarded(stop, "writing the trace")

    nvtx, annotation = torch.cuda.nvtx, torch.profiler.record_function
    push, pop, enter, leave = nvtx.range_push, nvtx.range_pop, annotation.__enter__, annotation.__exit__

    def range_push(message: str, *args: Any, **kwargs: Any) -> Any:
        on_open(message)
        return push(message, *args, **kwargs)

    def range_pop() -> Any:
        result = pop()
        on_close()
        return result

    def on_enter(self: Any) -> Any:
        on_open(self.name)
        return enter(self)

    def on_exit(self: Any, *args: Any) -> Any:
        result = leave(self, *args)
        on_close()
        return result

    nvtx.range_push, nvtx.range_pop = range_push, range_pop
    annotation.__enter__, annotation.__exit__ = on_enter, on_exit
