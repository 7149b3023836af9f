"""Stages of vLLM's workers (V1), in whatever process a worker runs: ranges for evaluators, without one lines of the record.

vLLM marks its batches only while its own profiler runs, which cannot be together with another one. The worker also records
its model, once. Needs no vLLM.
"""

import ast
import functools
import inspect
import os
import sys
import threading
from typing import Any, Callable, Optional, Tuple

from inferscope_after_import import after_import, guarded, warn
from inferscope_ranges import Close, evaluated, range_opener
from inferscope_vllm_batches import RecordedBatches, batch_name, records_batches
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
# To write a trace, because vLLM gives its processes only 5 s to exit.
_GRACE_S = 120


class _Thread(threading.local):
    def __init__(self) -> None:
        self.inside: Tuple[str, ...] = ()
        # Closes the range over all batches of a warm-up.
        self.warmup: Optional[Close] = None


_thread = _Thread()
_batches: Optional[RecordedBatches] = None


def watch_workers() -> None:
    """Waits for the import of vLLM's workers; costs nothing in programs without them."""
    after_import({"vllm.v1.worker.%s" % name: _on_worker for name in _MODULES})
    # nsys's injected library writes its buffers when the process exits; a killed process loses them.
    if os.environ.get("INFERSCOPE_EVALUATOR") in ("nsys", "ncu"):
        wait_for_traces()


def wait_for_traces() -> None:
    """Lets vLLM's processes write their traces before they are killed; continues as soon as they have exited."""
    os.environ.setdefault("VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS", str(_GRACE_S))
    after_import({"vllm.v1.engine.utils": _on_engine})


def spawn_processes() -> None:
    """vLLM forks its engine's process by default, and of a process that was forked below it a profiler has no trace: of
    torch's on a CPU (on a GPU it begins later), and nsys 2025.3 on an H200 had the NVTX ranges of the forked engine core and
    not one CUDA kernel. Only for a main module that may be imported again."""
    if "inferscope_torch" in sys.modules or evaluated():
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")


def _on_engine_processes(module: Any) -> None:
    """Uses spawn if the program allows it: it is currently below `if __name__ == "__main__"`. Not for torch's
    profiler, which starts in the forked process itself.
    """
    context = getattr(module, "get_mp_context", None)
    if context is None or os.environ.get("INFERSCOPE_EVALUATOR") not in ("nsys", "ncu"):
        return

    @functools.wraps(context)
    def spawning() -> Any:
        if "VLLM_WORKER_MULTIPROC_METHOD" not in os.environ and below_main_guard():
            warn("vLLM's processes are spawned, not forked: of forked ones nsys and ncu record no kernel")
            os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
        return context()

    module.get_mp_context = spawning


def below_main_guard() -> bool:
    """Whether the main module is a file and is executing a line below its `if __name__ == "__main__":`, so that
    importing it again in a spawned process has no effect.
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
    guards = [guard for guard in tree.body if isinstance(guard, ast.If) and _names_main(guard.test)]
    return any(guard.body[0].lineno <= line <= (guard.body[-1].end_lineno or 0) for guard in guards for line in lines)


def _names_main(test: ast.expr) -> bool:
    """`__name__ == "__main__"` in either order, alone or with more conditions joined by `and`."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and any(map(_names_main, test.values))
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
    def patient(processes: Any, timeout: Optional[float] = None) -> Any:
        return shutdown(processes, timeout=max(timeout or 0, _GRACE_S))

    module.shutdown = patient


def _on_worker(module: Any) -> None:
    for worker in [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]:
        for name, method in list(vars(worker).items()):
            if name in _NAMES:
                setattr(worker, name, _ranged(method, name, lambda _batch, range_name=_NAMES[name]: range_name))
            elif name == "execute_model":
                worker.execute_model = _ranged(method, name, batch_name)
                worker.inferscope_finish_trace = _finish_trace
            elif name == "shutdown":
                worker.shutdown = _ending(method)


def _ranged(method: Callable[..., Any], name: str, named: Callable[[Any], Optional[str]]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A subclass calls the method that it overrides: one range. Its second model runner (0.26 takes it for dense
        # models) warms up with requests of its own, through these methods: they belong to the warm-up.
        inner = name in _thread.inside or any(_NAMES.get(outer) == _WARMUP for outer in _thread.inside)
        close = None if inner else _open(self, name, named, args[0] if args else next(iter(kwargs.values()), None))
        if close is None:
            return method(self, *args, **kwargs)
        outer, _thread.inside = _thread.inside, _thread.inside + (name,)
        try:
            return method(self, *args, **kwargs)
        finally:
            close()
            _thread.inside = outer
            # The range covers the timed work; the line is written outside of it.
            if name == "load_model":
                guarded(lambda: record_loaded_model(self), "recording the model")

    return call


def _open(worker: Any, name: str, named: Callable[[Any], Optional[str]], first: Any) -> Optional[Close]:
    """A range if an evaluator listens, else the start of a stage line; None if neither is wanted."""
    opener = range_opener() if evaluated() else None
    if opener is None:
        return _recorded(worker, name, first) if records_batches() else None
    text = named(first)
    if text is None:
        return None
    if name == "execute_model":
        _warm_up(opener, is_warmup(first))
    return opener(text)


def _recorded(worker: Any, name: str, first: Any) -> Optional[Close]:
    global _batches
    if _batches is None:
        _batches = RecordedBatches()
    if name == "execute_model":
        return _batches.open_batch(first, getattr(worker, "device", None))
    return _batches.open(_NAMES[name].split(":")[1])


def _ending(shutdown: Callable[..., Any]) -> Callable[..., Any]:
    """Before the device is released, and before the worker's parent kills it."""

    @functools.wraps(shutdown)
    def end(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _batches is not None:
            _batches.end()
        return shutdown(self, *args, **kwargs)

    return end


def _warm_up(opener: Callable[[str], Close], warm: bool) -> None:
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
    """Lets the workers write their traces while they can still be asked."""
    if "inferscope_torch" in sys.modules:
        guarded(lambda: llm.collective_rpc("inferscope_finish_trace"), "writing the traces of vLLM's workers")
