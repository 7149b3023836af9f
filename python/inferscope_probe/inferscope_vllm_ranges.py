"""Stages of vLLM's workers (V1) as ranges for evaluators, in whatever process a worker runs.

vLLM marks its batches only while its own profiler runs, which cannot be together with another one. A batch is named as
vLLM 0.26 names it, with more detail: execute_<tokens>_context_<requests>(sq<new>sk<attended>…)_generation_<requests>(…).
The worker also records its model, once. Needs no vLLM.
"""

import ast
import functools
import inspect
import os
import sys
import threading
from typing import Any, Callable, Dict, Optional, Tuple

from inferscope_after_import import after_import, guarded, say
from inferscope_ranges import Close, evaluated, range_opener
from inferscope_vllm_model import tell_model

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
    """vLLM forks its engine's process by default, and of a process that was forked below it a profiler has no trace: of
    torch's on a CPU (on a GPU it begins later), and nsys 2025.3 on an H200 had the NVTX ranges of the forked engine core and
    not one CUDA kernel. Only for a main module that may be imported again."""
    if "inferscope_torch" in sys.modules or evaluated():
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")


def _on_engine_processes(module: Any) -> None:
    """Spawns where a program of any make allows it: it stands, at this moment, below `if __name__ == "__main__"`. Not for
    torch's profiler, which begins in the forked process itself."""
    context = getattr(module, "get_mp_context", None)
    if context is None or os.environ.get("INFERSCOPE_EVALUATOR") not in ("nsys", "ncu"):
        return

    @functools.wraps(context)
    def spawning() -> Any:
        if "VLLM_WORKER_MULTIPROC_METHOD" not in os.environ and below_main_guard():
            say("vLLM's processes are spawned, not forked: of forked ones nsys and ncu record no kernel")
            os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
        return context()

    module.get_mp_context = spawning


def below_main_guard() -> bool:
    """Whether the main module is executing a line below its `if __name__ == "__main__":`, and is a file: what a spawned
    process imports again is then without effect."""
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
    guards = [one for one in tree.body if isinstance(one, ast.If) and _names_main(one.test)]
    return any(one.body[0].lineno <= line <= (one.body[-1].end_lineno or 0) for one in guards for line in lines)


def _names_main(test: ast.expr) -> bool:
    """`__name__ == "__main__"`, either way round, alone or with more by `and`."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and any(map(_names_main, test.values))
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = (test.left, test.comparators[0])
    names = [one.id for one in sides if isinstance(one, ast.Name)]
    return names == ["__name__"] and [one.value for one in sides if isinstance(one, ast.Constant)] == ["__main__"]


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
            # Its range is what the time is of; the line is written outside of it.
            if name == "load_model":
                guarded(lambda: tell_model(self), "recording the model")

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
    """Of a SchedulerOutput; None where nothing is scheduled. Without what was computed before, in vLLM's short form."""
    if not scheduled.num_scheduled_tokens:
        return None
    computed = _computed(scheduled)
    context, generation = _split(scheduled, computed or {})
    if computed is None:
        return "execute_context_%d(%d)_generation_%d(%d)" % (context[:2] + generation[:2])
    # gpu_worker.py of 0.26: sq = queries, sk = keys they attend to, then sums of the squares and products of requests.
    return "execute_%d_context_%d(sq%dsk%dsqsq%dsqsk%d)_generation_%d(sq%dsk%dsqsq%dsqsk%d)" % (
        (context[1] + generation[1],) + context + generation
    )


Group = Tuple[int, int, int, int, int]


def _split(scheduled: Any, computed: Dict[str, int]) -> Tuple[Group, Group]:
    """(requests, sq, sk, sqsq, sqsk) in prefill and in generation: in prefill until its first token, as vLLM counts."""
    new = {request.req_id for request in scheduled.scheduled_new_reqs}
    in_prefill = getattr(scheduled.scheduled_cached_reqs, "is_context_phase", None)
    context, generation = [0] * 5, [0] * 5
    for request, count in scheduled.num_scheduled_tokens.items():
        # Without a record: a chunk of a prompt has many tokens, a step of generation has one or a few drafts.
        first = request in new or (in_prefill(request) if in_prefill else count > 16)
        own = context if first else generation
        keys = computed.get(request, 0) + count
        for at, one in enumerate((1, count, keys, count * count, count * keys)):
            own[at] += one
    return tuple(context), tuple(generation)  # type: ignore[return-value]


def _computed(scheduled: Any) -> Optional[Dict[str, int]]:
    """Tokens per scheduled request with keys in the cache already; None where this version does not report them."""
    try:
        computed = {request.req_id: int(request.num_computed_tokens) for request in scheduled.scheduled_new_reqs}
        cached = scheduled.scheduled_cached_reqs
        computed.update(zip(cached.req_ids, (int(one) for one in cached.num_computed_tokens)))
    except (AttributeError, TypeError, ValueError):
        return None
    return computed if all(request in computed for request in scheduled.num_scheduled_tokens) else None


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
