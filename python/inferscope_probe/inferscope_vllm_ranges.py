"""Stages of vLLM's workers (V1) as ranges for evaluators, in whatever process a worker runs.

vLLM marks its batches only while its own profiler runs, which cannot be together with another one. A batch is named as
vLLM names it: execute_context_<requests>(<tokens>)_generation_<requests>(<tokens>). Needs no vLLM.
"""

import functools
import inspect
import os
import sys
import threading
from typing import Any, Callable, Optional, Tuple

from inferscope_after_import import after_import, guarded
from inferscope_ranges import Close, evaluated, range_opener

# Requests of a benchmark's warm-up begin so (inferscope_vllm.py).
WARMUP_REQUEST = "warmup-"
_MODULES = ("gpu_worker", "cpu_worker", "xpu_worker", "tpu_worker", "hpu_worker")
_WARMUP = "inferscope:warmup:-1:0"
_NAMES = {
    "load_model": "inferscope:load:0:0",
    # A forward pass of the largest batch, to see what memory it needs; then compilation and CUDA graphs.
    "determine_available_memory": _WARMUP,
    "compile_or_warm_up_model": _WARMUP,
    "sample_tokens": "inferscope:sampling",
}
# To write a trace; vLLM gives its processes 5 s to end.
_GRACE_S = 120


class _Thread(threading.local):
    def __init__(self) -> None:
        self.inside: Tuple[str, ...] = ()
        # Of a range over all batches of a warm-up, one after the other.
        self.warmup: Optional[Close] = None


_thread = _Thread()


def watch_workers() -> None:
    """Waits for the import of vLLM's workers; costs nothing to programs without them."""
    after_import({"vllm.v1.worker.%s" % name: _on_worker for name in _MODULES})
    # What nsys has injected hands its buffers over when the process ends; a killed one loses them.
    if os.environ.get("INFERSCOPE_EVALUATOR") in ("nsys", "ncu"):
        wait_for_traces()


def wait_for_traces() -> None:
    """Lets processes of vLLM write their traces before it kills them; it goes on as soon as they have ended."""
    os.environ.setdefault("VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS", str(_GRACE_S))
    after_import({"vllm.v1.engine.utils": _on_engine})


def spawn_processes() -> None:
    """vLLM forks its engine's process by default, and a process that is forked with a profiler running has no trace (on a
    CPU; on a GPU the profiler begins later). Only for a main module that may be imported again."""
    if "inferscope_torch" in sys.modules:
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")


def _on_engine(module: Any) -> None:
    shutdown = getattr(module, "shutdown", None)
    if shutdown is None or "timeout" not in inspect.signature(shutdown).parameters:
        return

    @functools.wraps(shutdown)
    def patient(processes: Any, timeout: Optional[float] = None) -> Any:
        return shutdown(processes, timeout=max(timeout or 0, _GRACE_S))

    module.shutdown = patient


def _on_worker(module: Any) -> None:
    for worker in [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]:
        for name, method in list(vars(worker).items()):
            if name in _NAMES:
                setattr(worker, name, _ranged(method, name, lambda _batch, range_name=_NAMES[name]: range_name))
            elif name == "execute_model":
                worker.execute_model = _ranged(method, name, batch_name)
                worker.inferscope_finish_trace = _finish_trace


def _ranged(method: Callable[..., Any], name: str, named: Callable[[Any], Optional[str]]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A subclass calls the method that it overrides: one range. Its second model runner (0.26 takes it for dense
        # models) warms up with requests of its own, through these methods: they belong to the warm-up.
        inner = name in _thread.inside or any(_NAMES.get(outer) == _WARMUP for outer in _thread.inside)
        opener = range_opener() if evaluated() and not inner else None
        first = args[0] if args else next(iter(kwargs.values()), None)
        text = named(first) if opener else None
        if opener is None or text is None:
            return method(self, *args, **kwargs)
        if name == "execute_model":
            _warm_up(opener, is_warmup(first))
        outer, _thread.inside = _thread.inside, _thread.inside + (name,)
        close = opener(text)
        try:
            return method(self, *args, **kwargs)
        finally:
            close()
            _thread.inside = outer

    return call


def _warm_up(opener: Callable[[str], Close], warm: bool) -> None:
    if warm and _thread.warmup is None:
        _thread.warmup = opener(_WARMUP)
    elif not warm and _thread.warmup is not None:
        _thread.warmup()
        _thread.warmup = None


def is_warmup(scheduled: Any) -> bool:
    return all(str(request).startswith(WARMUP_REQUEST) for request in scheduled.num_scheduled_tokens)


def batch_name(scheduled: Any) -> Optional[str]:
    """Of a SchedulerOutput; None where nothing is scheduled."""
    if not scheduled.num_scheduled_tokens:
        return None
    context, generation = _split(scheduled)
    return "execute_context_%d(%d)_generation_%d(%d)" % (context + generation)


def _split(scheduled: Any) -> Tuple[Tuple[int, int], Tuple[int, int]]:
    """(requests, tokens) in prefill and in generation: a request is in prefill until its first token, as vLLM counts."""
    new = {request.req_id for request in scheduled.scheduled_new_reqs}
    in_prefill = getattr(scheduled.scheduled_cached_reqs, "is_context_phase", None)
    context, generation = [0, 0], [0, 0]
    for request, count in scheduled.num_scheduled_tokens.items():
        # Where nobody tells: a chunk of a prompt has many tokens, a step of generation has one or a few drafts.
        first = request in new or (in_prefill(request) if in_prefill else count > 16)
        own = context if first else generation
        own[0] += 1
        own[1] += count
    return (context[0], context[1]), (generation[0], generation[1])


def _finish_trace(_worker: Any) -> None:
    probe = sys.modules.get("inferscope_torch")
    if probe is None:
        return
    if _thread.warmup is not None:
        _thread.warmup()
        _thread.warmup = None
    probe.finish()


def finish_traces(llm: Any) -> None:
    """Lets the workers write their traces while they are still there to be asked."""
    if "inferscope_torch" in sys.modules:
        guarded(lambda: llm.collective_rpc("inferscope_finish_trace"), "writing the traces of vLLM's workers")
