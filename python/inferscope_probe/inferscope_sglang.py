"""Marks the batches of SGLang's model runners as steps: as ranges for an evaluator, or else as lines of the record.

SGLang marks them only while torch's profiler runs. The first rank also records the model. Needs no SGLang.
"""

import atexit
import ctypes
import functools
import json
import os
import signal
import sys
import threading
import time
from typing import Any, Callable, Dict, Optional, Tuple

from inferscope_after_import import after_import, guarded, warn
from inferscope_batches import RecordedBatches, records_batches, records_engine
from inferscope_ranges import Close, is_evaluated, range_opener
from inferscope_record import Recorder, hook_name, mark_name

_KINDS = {"EXTEND": "prefill", "MIXED": "mixed", "DECODE": "decode", "TARGET_VERIFY": "decode"}
# Captures of CUDA graphs and first calls of kernels, by the names of several versions.
_STAGES = {"load_model": "load", "init_cuda_graphs": "warmup", "init_device_graphs": "warmup", "kernel_warmup": "warmup"}
# Keys of a config that differ between runs, or that SGLang derives from the others.
_ADDED_KEYS = ("_name_or_path", "v_head_dim", "swa_head_dim", "swa_v_head_dim")
# Time to write a trace at the end.
_TRACE_GRACE_S = 120


class _Thread(threading.local):
    busy = False  # inside a step or a stage: nested calls belong to it


_thread = _Thread()
_steps: Optional["Steps"] = None
_failed = False


def watch_runners() -> None:
    """Waits for the import of SGLang's model runner; costs nothing in programs without it."""
    if not records_engine():
        return
    after_import({
        "sglang.srt.model_executor.model_runner": _on_runner,
        "sglang.srt.managers.scheduler": _on_scheduler,
        "sglang.srt.utils.common": _on_utils,
        "sglang.srt.utils": _on_utils,  # one file in old versions
    })  # fmt: skip


class Steps:
    """The steps of one process."""

    def __init__(self) -> None:
        self._batches = RecordedBatches("SGLang", marked_by="hooks")
        self._last_kind: Optional[str] = None
        self._seen: Dict[str, int] = {}

    def open_batch(self, runner: Any, batch: Any) -> Optional[Close]:
        """The step of a ForwardBatch; None if it computes nothing, or only a part of a step. An iteration starts with the first
        prefill after other steps.
        """
        kind, requests, new, context = sizes_of(batch)
        if kind is None:
            return None
        starts_iteration = kind == "prefill" and self._last_kind != "prefill"
        self._last_kind = kind
        is_first = kind not in self._seen
        number = self._seen[kind] = 0 if starts_iteration else self._seen.get(kind, -1) + 1
        opener = _opener()
        if opener is None:
            return self._batches.open_batch(kind, requests, new, context, starts_iteration, _device_of(runner), is_first)
        iteration, _ = self._batches.number_batch(starts_iteration)
        return opener(hook_name(kind, iteration, number, "first" if is_first else "hook", requests, new, context))

    def open_stage(self, kind: str) -> Close:
        opener = _opener()
        return self._batches.open(kind) if opener is None else opener(mark_name(kind, 0, 0))


def sizes_of(batch: Any) -> Tuple[Optional[str], int, int, Optional[int]]:
    """-> (kind of a ForwardBatch, requests, tokens computed, tokens attended to); None: no step of its own"""
    mode = batch.forward_mode.name
    kind, requests, context = _KINDS.get(mode), int(batch.batch_size), batch.seq_lens_sum
    if kind is None or requests == 0:
        return None, 0, 0, None
    new = requests if mode == "DECODE" else int(batch.input_ids.shape[0])
    if context is not None and mode == "TARGET_VERIFY":
        context += new  # the drafts are not in the cache yet
    return kind, requests, new, None if context is None else int(context)


def _opener() -> Optional[Callable[[str], Close]]:
    return range_opener() if is_evaluated() else None


def _device_of(runner: Any) -> Any:
    torch = sys.modules["torch"]
    return torch.device(runner.device, runner.gpu_id) if runner.device == "cuda" else None


def _on_runner(module: Any) -> None:
    runner = module.ModelRunner
    runner.forward = _mark(runner.forward, lambda self, batch: _all_steps().open_batch(self, batch))
    for name, kind in _STAGES.items():
        if name in vars(runner):
            after = _record_model if name == "load_model" else None
            method = _mark(vars(runner)[name], lambda _self, _first, kind=kind: _all_steps().open_stage(kind), after)
            setattr(runner, name, method)


def _all_steps() -> Steps:
    global _steps
    if _steps is None:
        _steps = Steps()
    return _steps


def _mark(method: Callable[..., Any], open_: Callable[..., Optional[Close]], after: Optional[Callable[[Any], None]] = None) -> Any:
    """`open_`: opens a step from the runner and the method's first argument; `after`: called with the runner at the end."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _failed
        if _thread.busy or _failed or self.is_draft_worker or not (is_evaluated() or records_batches()):
            return method(self, *args, **kwargs)
        close = None
        try:
            close = open_(self, args[0] if args else next(iter(kwargs.values()), None))
        except Exception as error:
            _failed = True
            warn("SGLang: reading a batch failed, steps end here and the program goes on: %r" % (error,))
        _thread.busy = True
        try:
            return method(self, *args, **kwargs)
        finally:
            _thread.busy = False
            if close is not None:
                guarded(close, "recording a batch of SGLang")
            if after is not None:
                guarded(lambda: after(self), "recording the model")

    return call


def _record_model(runner: Any) -> None:
    """The first rank records the model after it has loaded it."""
    if runner.tp_rank != 0 or getattr(runner, "pp_rank", 0) != 0:
        return
    config, arguments = runner.model_config, runner.server_args
    hf = {key: value for key, value in config.hf_config.to_dict().items() if key not in _ADDED_KEYS}
    overlap = getattr(arguments, "disable_overlap_schedule", None)
    records = Recorder()
    records.clock()
    records.model(
        name=str(getattr(arguments, "served_model_name", None) or arguments.model_path),
        config=json.loads(json.dumps(hf, default=str)),
        dtype=str(config.dtype).replace("torch.", ""),
        device=str(runner.device),
        weights="random" if arguments.load_format == "dummy" else "unknown",
        quantization=None if config.quantization is None else str(config.quantization),
        engine="sglang",
        engine_version=getattr(sys.modules.get("sglang"), "__version__", None),
        tensor_parallel_size=int(arguments.tp_size),
        facts={"async_scheduling": None if overlap is None else not overlap},
    )
    records.flush()


def _on_scheduler(module: Any) -> None:
    """SGLang kills its processes at the end; the one of a scheduler then has time to write its steps and traces."""
    scheduler = module.Scheduler
    create = scheduler.__init__

    @functools.wraps(create)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        import multiprocessing  # imports subprocess, which ncu's embedded Python lacks

        is_main = threading.current_thread() is threading.main_thread()
        if is_main and multiprocessing.parent_process() is not None and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _exit)
        create(self, *args, **kwargs)

    scheduler.__init__ = __init__


def _exit(*_: Any) -> None:
    """Ends the process without waiting for SGLang's threads. Profilers write their buffers when the C library exits."""
    atexit._run_exitfuncs()
    ctypes.PyDLL(None).exit(0)


def _on_utils(module: Any) -> None:
    kill = getattr(module, "kill_process_tree", None)
    if kill is None or hasattr(kill, "inferscope"):
        return

    @functools.wraps(kill)
    def kill_process_tree(parent_pid: Optional[int] = None, *args: Any, **kwargs: Any) -> Any:
        if parent_pid is None or parent_pid == os.getpid():
            guarded(_end_children, "ending the processes of SGLang")
        return kill(parent_pid, *args, **kwargs)

    kill_process_tree.inferscope = True  # type: ignore[attr-defined]
    module.kill_process_tree = kill_process_tree


def _end_children() -> None:
    """Asks the processes that are about to be killed to end, and waits for them."""
    from inferscope_vllm_end import GRACE_S, engine_processes

    children = engine_processes(os.getpid())
    for pid in children:
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError:
            pass
    deadline = time.monotonic() + (_TRACE_GRACE_S if is_evaluated() or "inferscope_torch" in sys.modules else GRACE_S)
    while children & engine_processes(os.getpid()) and time.monotonic() < deadline:
        time.sleep(0.05)
