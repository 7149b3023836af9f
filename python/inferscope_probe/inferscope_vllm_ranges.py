"""Marks stages in the processes of vLLM's workers (V1): as ranges for an evaluator, or else as lines of the record.

vLLM marks its batches only while its own profiler runs, which excludes other profilers. The first worker also records the
model. Needs no vLLM.
"""

import ast
import functools
import inspect
import os
import sys
import threading
from typing import Any, Callable, Optional, Tuple

from inferscope_after_import import after_import, guarded, warn
from inferscope_batches import records_batches
from inferscope_ranges import Close, is_evaluated, range_opener
from inferscope_vllm_batches import VllmBatches, batch_name
from inferscope_vllm_model import record_loaded_model

# Prefix of the requests of a benchmark's warm-up (inferscope_vllm.py).
WARMUP_REQUEST = "warmup-"
_MODULES = ("gpu_worker", "cpu_worker", "xpu_worker", "tpu_worker", "hpu_worker")
_WARMUP = "inferscope:warmup:-1:0"
_NAMES = {
    "load_model": "inferscope:load:0:0",
    # A forward pass of the largest batch, to measure the memory it needs; then compilation and CUDA graphs.
    "determine_available_memory": _WARMUP,
    "compile_or_warm_up_model": _WARMUP,
    "sample_tokens": "inferscope:sampling",
}
# Time to write a trace; vLLM gives its processes 5 s to exit.
_GRACE_S = 120


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open_methods: Tuple[str, ...] = ()
        # Closes the range over all batches of a warm-up.
        self.warmup: Optional[Close] = None


_thread = _Thread()
_batches: Optional[VllmBatches] = None


def watch_workers() -> None:
    """Waits for the import of vLLM's workers; costs nothing in programs without them."""
    after_import({"vllm.v1.worker.%s" % name: _on_worker for name in _MODULES})
    # nsys's injected library writes its buffers when the process exits; a killed process loses them.
    if os.environ.get("INFERSCOPE_EVALUATOR") in ("nsys", "ncu"):
        wait_for_traces()


def wait_for_traces() -> None:
    """Gives vLLM's processes time to write their traces before they are killed; those that exit sooner delay nothing."""
    os.environ.setdefault("VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS", str(_GRACE_S))
    after_import({"vllm.v1.engine.utils": _on_engine})


def spawn_processes() -> None:
    """Makes vLLM spawn its processes, which it forks by default. Profilers miss forked ones: torch's records nothing on the
    CPU, where it starts before the fork, and nsys 2025.3 on an H200 recorded the NVTX ranges of a forked engine core but none
    of its CUDA kernels. Only for a main module that may be imported again.
    """
    if "inferscope_torch" in sys.modules or is_evaluated():
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")


def _on_engine_processes(module: Any) -> None:
    """Uses spawn under nsys and ncu if the program allows it, because it is below `if __name__ == "__main__"`. torch's
    profiler starts in the forked process itself.
    """
    context = getattr(module, "get_mp_context", None)
    if context is None or os.environ.get("INFERSCOPE_EVALUATOR") not in ("nsys", "ncu"):
        return

    @functools.wraps(context)
    def get_context() -> Any:
        if "VLLM_WORKER_MULTIPROC_METHOD" not in os.environ and is_below_main_guard():
            warn("vLLM's processes are spawned, not forked, because nsys and ncu record no kernels of forked ones")
            os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
        return context()

    module.get_mp_context = get_context


def is_below_main_guard() -> bool:
    """Whether the main module is a file that is executing a line below its `if __name__ == "__main__":`. A spawned process,
    which imports the file again, does not execute that line.
    """
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    lines = []
    while frame is not None:
        if frame.f_globals is getattr(main, "__dict__", None) and frame.f_code.co_name == "<module>":
            lines.append(frame.f_lineno)
        frame = frame.f_back
    if path is None or not lines:
        return False
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return False
    guards = [guard for guard in tree.body if isinstance(guard, ast.If) and _tests_for_main(guard.test)]
    return any(guard.body[0].lineno <= line <= (guard.body[-1].end_lineno or 0) for guard in guards for line in lines)


def _tests_for_main(test: ast.expr) -> bool:
    """Whether it is `__name__ == "__main__"`, in either order, alone or joined with more conditions by `and`."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and any(map(_tests_for_main, test.values))
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = (test.left, test.comparators[0])
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    return names == ["__name__"] and [side.value for side in sides if isinstance(side, ast.Constant)] == ["__main__"]


def _on_engine(module: Any) -> None:
    _on_engine_processes(module)
    shutdown = getattr(module, "shutdown", None)
    if shutdown is None or "timeout" not in inspect.signature(shutdown).parameters:
        return

    @functools.wraps(shutdown)
    def shutdown_later(processes: Any, timeout: Optional[float] = None) -> Any:
        return shutdown(processes, timeout=max(timeout or 0, _GRACE_S))

    module.shutdown = shutdown_later


def _on_worker(module: Any) -> None:
    for worker in [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]:
        for name, method in list(vars(worker).items()):
            if name in _NAMES:
                setattr(worker, name, _mark_method(method, name, lambda _batch, range_name=_NAMES[name]: range_name))
            elif name == "execute_model":
                worker.execute_model = _mark_method(method, name, batch_name)
                worker.inferscope_finish_trace = _finish_trace
            elif name == "shutdown":
                worker.shutdown = _ending_batches(method)


def _mark_method(method: Callable[..., Any], name: str, name_of: Callable[[Any], Optional[str]]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        # One range where a subclass calls the method that it overrides. The requests with which vLLM's second model runner
        # (0.26, for dense models) warms up arrive through these methods, too, and belong to the warm-up.
        inner = name in _thread.open_methods or any(_NAMES.get(outer) == _WARMUP for outer in _thread.open_methods)
        close_stage = None if inner else _open_stage(self, name, name_of, args[0] if args else next(iter(kwargs.values()), None))
        if close_stage is None:
            return method(self, *args, **kwargs)
        outer, _thread.open_methods = _thread.open_methods, _thread.open_methods + (name,)
        try:
            return method(self, *args, **kwargs)
        finally:
            close_stage()
            _thread.open_methods = outer
            # The range covers the timed work; the line is written outside of it.
            if name == "load_model":
                guarded(lambda: record_loaded_model(self), "recording the model")

    return call


def _open_stage(worker: Any, name: str, name_of: Callable[[Any], Optional[str]], first: Any) -> Optional[Close]:
    """A range if an evaluator listens, else the start of a stage line; None if neither is wanted."""
    opener = range_opener() if is_evaluated() else None
    if opener is None:
        return _open_recorded(worker, name, first) if records_batches() else None
    text = name_of(first)
    if text is None:
        return None
    if name == "execute_model":
        _mark_warmup(opener, is_warmup(first))
    return opener(text)


def _open_recorded(worker: Any, name: str, first: Any) -> Optional[Close]:
    global _batches
    if _batches is None:
        _batches = VllmBatches()
    if name == "execute_model":
        return _batches.open_scheduled(first, getattr(worker, "device", None))
    return _batches.open(_NAMES[name].split(":")[1])


def _ending_batches(shutdown: Callable[..., Any]) -> Callable[..., Any]:
    """Writes the batches before the device is released, and before the parent kills the worker."""

    @functools.wraps(shutdown)
    def end(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _batches is not None:
            _batches.end()
        return shutdown(self, *args, **kwargs)

    return end


def _mark_warmup(opener: Callable[[str], Close], warm: bool) -> None:
    if warm and _thread.warmup is None:
        _thread.warmup = opener(_WARMUP)
    elif not warm and _thread.warmup is not None:
        _thread.warmup()
        _thread.warmup = None


def is_warmup(scheduled: Any) -> bool:
    return all(str(request).startswith(WARMUP_REQUEST) for request in scheduled.num_scheduled_tokens)


def _finish_trace(_worker: Any) -> None:
    probe = sys.modules.get("inferscope_torch")
    if probe is None:
        return
    if _thread.warmup is not None:
        _thread.warmup()
        _thread.warmup = None
    probe.finish()


def finish_traces(llm: Any) -> None:
    """Lets the workers write their traces before the engine shuts down."""
    if "inferscope_torch" in sys.modules:
        guarded(lambda: llm.collective_rpc("inferscope_finish_trace"), "writing the traces of vLLM's workers")
