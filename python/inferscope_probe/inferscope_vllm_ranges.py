"""Stages of vLLM's workers (V1) as ranges for evaluators, in whatever process a worker runs.

vLLM marks its batches only while its own profiler runs, which cannot be together with another one. A batch is named as
vLLM names it: execute_context_<requests>(<tokens>)_generation_<requests>(<tokens>). Needs no vLLM.
"""

import functools
import sys
import threading
from typing import Any, Callable, Optional, Tuple

from inferscope_after_import import after_import
from inferscope_ranges import evaluated, range_opener

# Requests of a benchmark's warm-up begin so (inferscope_vllm.py).
WARMUP_REQUEST = "warmup-"
_MODULES = ("gpu_worker", "cpu_worker", "xpu_worker", "tpu_worker", "hpu_worker")
_KINDS = {
    "load_model": "inferscope:load:0:0",
    # A forward pass of the largest batch, to see what memory it needs; then compilation and CUDA graphs.
    "determine_available_memory": "inferscope:warmup:-1:0",
    "compile_or_warm_up_model": "inferscope:warmup:-1:0",
    "sample_tokens": "inferscope:sampling",
}
_inside = threading.local()


def watch_workers() -> None:
    """Waits for the import of vLLM's workers; costs nothing to programs without them."""
    after_import({"vllm.v1.worker.%s" % name: _on_worker for name in _MODULES})


def _on_worker(module: Any) -> None:
    for worker in [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]:
        for name, method in list(vars(worker).items()):
            if name in _KINDS:
                setattr(worker, name, _ranged(method, name, lambda _batch, range_name=_KINDS[name]: range_name))
            elif name == "execute_model":
                worker.execute_model = _ranged(method, name, batch_name)
                worker.inferscope_finish_trace = _finish_trace


def _ranged(method: Callable[..., Any], name: str, named: Callable[[Any], Optional[str]]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A subclass calls the method that it overrides: one range.
        open_names = _inside.__dict__.setdefault("names", [])
        opener = range_opener() if evaluated() and name not in open_names else None
        text = named(args[0] if args else next(iter(kwargs.values()), None)) if opener else None
        if opener is None or text is None:
            return method(self, *args, **kwargs)
        open_names.append(name)
        close = opener(text)
        try:
            return method(self, *args, **kwargs)
        finally:
            close()
            open_names.pop()

    return call


def batch_name(scheduled: Any) -> Optional[str]:
    """Of a SchedulerOutput; None where nothing is scheduled."""
    tokens = scheduled.num_scheduled_tokens
    if not tokens:
        return None
    context, generation = _split(scheduled)
    name = "execute_context_%d(%d)_generation_%d(%d)" % (context + generation)
    warmup = all(str(request).startswith(WARMUP_REQUEST) for request in tokens)
    return "warmup " + name if warmup else name


def _split(scheduled: Any) -> Tuple[Tuple[int, int], Tuple[int, int]]:
    """(requests, tokens) in prefill and in generation: a request is in prefill until its first token, as vLLM counts."""
    new = {request.req_id for request in scheduled.scheduled_new_reqs}
    cached = scheduled.scheduled_cached_reqs
    in_prefill = getattr(cached, "is_context_phase", None)
    context, generation = [0, 0], [0, 0]
    for request, count in scheduled.num_scheduled_tokens.items():
        # Before 0.11 nobody tells; a chunk of a prompt has many tokens, a step of generation has one or a few drafts.
        first = request in new or (in_prefill(request) if in_prefill else count > 16)
        own = context if first else generation
        own[0] += 1
        own[1] += count
    return (context[0], context[1]), (generation[0], generation[1])


def _finish_trace(_worker: Any) -> None:
    """Asked by LLM.collective_rpc before the engine ends: its processes have seconds to end then, a trace may take more."""
    probe = sys.modules.get("inferscope_torch")
    if probe is not None:
        probe.finish()
