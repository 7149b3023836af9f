"""Runs torch.profiler over a program without changes to it; armed by sitecustomize.py.

INFERSCOPE_TORCH_TRACE names the folder for `kineto-<rank>-<pid>.json.gz`, one file per process (`-2`, `-3` for further
captures of the same process). INFERSCOPE_TORCH_OPTIONS is a JSON object:

  shapes, memory, stack, flops   booleans of torch.profiler (default: shapes)
  capture       "all" (default): from the first use of the device to the end of the process
                "cudaProfilerApi": between cudaProfilerStart and cudaProfilerStop
                "range:<prefix>": a capture for each outermost NVTX or record_function range with this name prefix
  max_seconds   the capture ends after this time (default 120; 0: no limit); torch keeps every event in memory until then
  device        "cpu": do not wait for the GPU

On a machine with a GPU the profiler starts when the process initializes CUDA: earlier would initialize it before the
program forks its workers, which would break them.
"""

import atexit
import ctypes
import gzip
import json
import os
import shutil
import signal
import sys
import threading
import warnings
from typing import Any, Callable, Dict, Optional

import inferscope_record as record
from inferscope_after_import import after_import, guarded, report_lost, warn
from inferscope_torch_json import repair_blocks
from inferscope_torch_model import RecordedModel
from inferscope_torch_ranges import watch_profiler_api, watch_ranges
from inferscope_vllm_ranges import wait_for_traces

_DEFAULTS: Dict[str, Any] = {
    "shapes": True,
    "memory": False,
    "stack": False,
    "flops": False,
    "capture": "all",
    "max_seconds": 120,
    "device": None,
}
_options: Dict[str, Any] = dict(_DEFAULTS)
_profile: Any = None
_owner_pid = 0
_captures = 0
_finished = False
# Until the process initializes CUDA. A program that never does gets a warning, unless "device" is "cpu".
_waiting_for_gpu = False
_model = RecordedModel()
_records = record.Recorder()


def arm() -> None:
    """Waits for the imports of torch and transformers; costs nothing to programs without them."""
    _options.update(json.loads(os.environ.get("INFERSCOPE_TORCH_OPTIONS") or "{}"))
    for name in sorted(set(_options) - set(_DEFAULTS)):
        warn("torch probe: the option %r is unknown and was left out" % name)
    after_import({"torch": _on_torch, "transformers.modeling_utils": _model.watch})
    wait_for_traces()


def wants_ranges() -> bool:
    """Whether ranges of this process are recorded, or may start a capture."""
    return not _finished and (_profile is None or _owner_pid == os.getpid())


def on_cpu() -> None:
    """The program computes on the CPU on purpose, so the capture does not wait for a GPU."""
    global _waiting_for_gpu
    if _waiting_for_gpu:
        _waiting_for_gpu = False
        guarded(start, "starting torch.profiler")


def finish() -> None:
    """Stops the trace: later work of this process does not belong in it."""
    global _finished
    _finished = True
    guarded(stop, "writing the trace")


def _on_torch(torch: Any) -> None:
    global _waiting_for_gpu
    _records.clock()
    atexit.register(lambda: guarded(_at_exit, "writing the trace"))
    _watch_sudden_ends()
    _yield_to_own_profilers(torch)
    os.register_at_fork(after_in_child=lambda: guarded(lambda: _in_forked_child(), "following a fork"))
    capture = str(_options["capture"])
    if capture == "cudaProfilerApi":
        watch_profiler_api(torch, start, stop)
    elif capture.startswith("range:"):
        watch_ranges(torch, capture[len("range:") :], start, stop)
    elif _options["device"] != "cpu" and _has_gpu(torch):
        _waiting_for_gpu = True
        original = torch.cuda._lazy_init

        def lazy_init() -> None:
            global _waiting_for_gpu
            original()
            if _waiting_for_gpu and torch.cuda.is_initialized():
                _waiting_for_gpu = False
                guarded(start, "starting torch.profiler")

        # Python and C++ both look the function up by this name.
        torch.cuda._lazy_init = lazy_init
    else:
        start()


def _has_gpu(torch: Any) -> bool:
    """Asks the file system, because asking CUDA would initialize it."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", os.environ.get("HIP_VISIBLE_DEVICES"))
    if visible is not None and visible.strip() in ("", "-1"):
        return False
    built = torch.version.cuda or getattr(torch.version, "hip", None)
    return bool(built) and (os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd"))


def start() -> None:
    """Starts torch.profiler in this process, once."""
    global _profile, _owner_pid
    if _profile is not None or _finished:
        return
    import torch

    # It is about several cycles; this profile has one.
    warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_initialized() or (_options["capture"] != "all" and torch.cuda.is_available()):
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    arguments: Dict[str, Any] = {
        "activities": activities,
        "record_shapes": bool(_options["shapes"]),
        "profile_memory": bool(_options["memory"]),
        "with_stack": bool(_options["stack"]),
        "with_flops": bool(_options["flops"]),
    }
    try:  # operators of all threads, but not with memory, because torch 2.11 then loses the memory events
        config = torch._C._profiler._ExperimentalConfig(profile_all_threads=not _options["memory"])
        profile = torch.profiler.profile(experimental_config=config, **arguments)
    except TypeError:  # an older torch
        profile = torch.profiler.profile(**arguments)
    _profile, _owner_pid = profile, os.getpid()
    try:
        profile.start()
    except BaseException:
        _profile = None
        raise
    _stop_after_limit(profile)


def _stop_after_limit(profile: Any) -> None:
    seconds = float(_options["max_seconds"] or 0)
    if seconds <= 0:
        return

    def expire(_: Any) -> int:
        global _finished
        if _profile is profile:
            _finished = True
            guarded(stop, "writing the trace")
            report_lost(
                "the torch trace ends here: its limit of %g s is reached, the program goes on untraced. "
                "For a longer trace: INFERSCOPE_TORCH_OPTIONS='{\"max_seconds\":600}'; 0 is no limit, and torch keeps all events in memory." % seconds
            )
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(expire)
    profile.inferscope_limit = callback  # C holds no reference
    # The profiler is stopped on the main thread, between two bytecodes.
    timer = threading.Timer(seconds, lambda: ctypes.pythonapi.Py_AddPendingCall(callback, None))
    timer.daemon = True
    profile.inferscope_timer = timer
    timer.start()


def stop() -> None:
    """Stops the profiler and writes its trace. Does nothing in a process that did not start it."""
    global _profile, _captures
    profile, _profile = _profile, None
    if profile is None or _owner_pid != os.getpid():
        return
    timer = getattr(profile, "inferscope_timer", None)
    if timer is not None:
        timer.cancel()
    import torch

    if torch.cuda.is_initialized():
        guarded(torch.cuda.synchronize, "waiting for the GPU")
    # torch writes the rank only if the process group exists when the profiler starts.
    if os.environ.get("RANK") or record.rank() > 0:
        guarded(lambda: profile.add_metadata_json("inferscope_rank", str(record.rank())), "recording the rank")
    profile.stop()
    results = profile.profiler.kineto_results if profile.profiler is not None else None
    if results is None or len(results.events()) == 0:
        return
    _captures += 1
    _export(profile)


def _export(profile: Any) -> None:
    folder = os.environ["INFERSCOPE_TORCH_TRACE"]
    os.makedirs(folder, exist_ok=True)
    suffix = "" if _captures == 1 else "-%d" % _captures
    path = os.path.join(folder, "kineto-%d-%d%s.json.gz" % (record.rank(), os.getpid(), suffix))
    unpacked, packed = path + ".json.part", path + ".part"
    try:
        profile.profiler.export_chrome_trace(unpacked)
        # Level 1: torch's own export packs at level 9, which takes minutes for a GB.
        with open(unpacked, "rb") as source, gzip.open(packed, "wb", compresslevel=1) as target:
            if _options["stack"]:
                target.writelines(repair_blocks(source))
            else:
                shutil.copyfileobj(source, target, 1 << 20)
        os.replace(packed, path)  # a reader never reads an incomplete trace
    finally:
        for leftover in (unpacked, packed):
            if os.path.exists(leftover):
                os.unlink(leftover)


def _at_exit() -> None:
    global _finished
    if _finished and _profile is None and _records.path is None:
        return
    torch = sys.modules.get("torch")
    guarded(stop, "writing the trace")
    # torchrun's own process starts the ranks and uses no GPU itself. Other launchers and tokenizer processes warn, too;
    # `inferscope run`, which reads the traces of all ranks, decides whether it matters.
    if _waiting_for_gpu and "torch.distributed.launcher.api" not in sys.modules:
        text = "the program imported torch and never used the GPU of this machine; nothing was traced"
        warn('%s. If it is meant to run on the CPU: INFERSCOPE_TORCH_OPTIONS=\'{"device":"cpu"}\'' % text)
    # inferscope's engines record this themselves; a second record would duplicate it.
    if torch is not None and not os.environ.get("INFERSCOPE_EXECUTION_ID"):
        guarded(lambda: _model.record(_records, torch), "recording the model")
        guarded(lambda: _records.cuda_memory("peak"), "reading the memory")
        _records.clock()
        _records.flush()
    _finished = True


def _watch_sudden_ends() -> None:
    """Writes the trace also at os._exit (multiprocessing's forked children exit that way) and SIGTERM, which skip atexit."""
    original_exit = os._exit

    def exit_now(status: int) -> Any:
        if not _finished:
            guarded(_at_exit, "writing the trace")
        original_exit(status)

    os._exit = exit_now  # type: ignore[assignment]
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def terminate(number: int, _frame: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        guarded(_at_exit, "writing the trace")
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, terminate)


def _yield_to_own_profilers(torch: Any) -> None:
    """Two profilers cannot run at once: one that the program starts itself stops ours."""
    import torch.autograd.profiler as profiler

    prepare, enable = profiler._prepare_profiler, profiler._enable_profiler

    def stop_for_own_profiler() -> None:
        global _finished
        starts_ours = _owner_pid == os.getpid() and not getattr(_profile, "inferscope_running", False)
        if _profile is not None and not starts_ours:
            report_lost("the program starts a profiler of its own: the torch trace ends here")
            _finished = True
            guarded(stop, "writing the trace")

    def watch(original: Callable[..., Any], last: bool) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            stop_for_own_profiler()
            result = original(*args, **kwargs)
            if last and _profile is not None:
                _profile.inferscope_running = True
            return result

        return call

    profiler._prepare_profiler = watch(prepare, False)
    profiler._enable_profiler = watch(enable, True)


def _in_forked_child() -> None:
    """A child has the profiler's state but not its threads; stopping it there could hang, so it is left unchanged.

    Workers that are spawned, or that fork before the device is used, have their own traces.
    """
    global _profile, _finished, _captures
    inherited, _profile = _profile, None
    _records._lines = []
    if inherited is not None:
        _finished = True
        report_lost("torch probe: process %d was forked with the profiler running and has no trace of its own" % os.getpid())
