"""Stages of programs on transformers that mark nothing: armed by sitecustomize.py under every evaluator of `inferscope run`.

The outermost call of a model is a step: prefill or decode by the length of its query and what its cache holds, sizes from
shapes alone. Nothing here waits for the device: device times are of CUDA events, read once they are complete. A step is an
NVTX or record_function range where an evaluator listens, and a stage line of the record always.
"""

import atexit
import functools
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import inferscope_record
from inferscope_after_import import after_import, guarded, say
from inferscope_hook_steps import Sequence, place
from inferscope_ranges import Close, evaluated, range_opener
from inferscope_torch_model import SeenModel

# First calls of a compiled model: compilation, recording of its CUDA graph, its first replay.
_FIRST_COMPILED = 3
_MOST_PENDING = 20_000
_FLUSH_NS = 1_000_000_000
# Engines that call models of transformers with batches of their own, and that are marked elsewhere.
_ENGINES = ("vllm", "sglang", "tensorrt_llm")


class _Thread(threading.local):
    def __init__(self) -> None:
        self.busy = False  # inside a step or a load: what it calls belongs to it
        self.generating = 0
        self.sequence: Optional[Sequence] = None


_thread = _Thread()
_torch: Any = None
_model = SeenModel()
_records = inferscope_record.Recorder()
_pending: List[Any] = []
_events: List[Any] = []
_calls: Dict[Tuple[Any, ...], int] = {}
_iterations = -1
_loads = -1
_flushed_ns = 0
_broken = False
_device_times = False


def arm() -> None:
    """Waits for the import of transformers; costs nothing to programs without it."""
    global _device_times, _model
    if os.environ.get("INFERSCOPE_HOOKS", "on") == "off":
        return
    _device_times = os.environ.get("INFERSCOPE_EVALUATOR") == "none"
    probe = sys.modules.get("inferscope_torch")
    callbacks: Dict[str, Callable[[Any], None]] = {
        "transformers.modeling_utils": _on_modeling,
        "transformers.generation.utils": lambda module: _watch_generate(module.GenerationMixin),
        "torch._dynamo.eval_frame": lambda module: _watch_calls(module.OptimizedModule, "_orig_mod"),
        "peft.peft_model": lambda module: _watch_calls(module.PeftModel, None),
    }
    if probe is not None:
        _model = probe._model
    else:
        callbacks["transformers.modeling_utils"] = _on_modeling_alone
    after_import(callbacks)


def _records_itself() -> bool:
    """Our engines and workloads, and programs that use inferscope_record: what they say is not said twice."""
    return inferscope_record._recorder is not None or "INFERSCOPE_EXECUTION_ID" in os.environ


def _silent() -> bool:
    return _broken or _records_itself() or any(name in sys.modules for name in _ENGINES)


def _opener() -> Optional[Callable[[str], Close]]:
    return range_opener() if not _device_times and evaluated() else None


def _fails(what: str, error: BaseException) -> None:
    global _broken
    if not _broken:
        _broken = True
        say("hooks: %s failed, stages end here and the program goes on: %r" % (what, error))


def _on_modeling_alone(module: Any) -> None:
    _model.watch(module)
    _on_modeling(module)


def _on_modeling(module: Any) -> None:
    global _torch
    _torch = sys.modules["torch"]
    model = module.PreTrainedModel
    _watch_calls(model, None)
    for name in ("from_pretrained", "_from_config", "to", "cuda"):
        _watch_load(model, name)
    compiled_call = getattr(model, "get_compiled_call", None)
    if compiled_call is not None:
        model.get_compiled_call = _marked_compiled(compiled_call)
    os.register_at_fork(after_in_child=_forget)
    atexit.register(lambda: guarded(_at_exit, "writing the stages"))


def _watch_calls(kind: Any, wrapped: Optional[str]) -> None:
    """`wrapped`: the attribute with the model, of a wrapper around any module; only calls of models are steps."""
    torch = sys.modules["torch"]
    own = vars(kind).get("__call__")
    is_compiling = torch.compiler.is_compiling

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Looked up at each call, as Python does: torch.fx replaces it while it traces.
        call = torch.nn.Module.__call__ if own is None else own
        if is_compiling():
            return call(self, *args, **kwargs)
        model = self if wrapped is None else getattr(self, wrapped, None)
        if wrapped is not None and not hasattr(model, "get_input_embeddings"):
            return call(self, *args, **kwargs)
        return _step(model, functools.partial(call, self), args, kwargs, wrapped is not None)

    kind.__call__ = __call__


def _marked_compiled(get: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(get)
    def get_compiled_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = get(self, *args, **kwargs)
        return lambda *call_args, **call_kwargs: _step(self, compiled, call_args, call_kwargs, True)

    return get_compiled_call


def _step(model: Any, run: Callable[..., Any], args: Any, kwargs: Any, compiled: bool) -> Any:
    if _thread.busy or _silent():
        return run(*args, **kwargs)
    close = None
    try:
        close = _open(model, args, kwargs, compiled)
    except Exception as error:
        _fails("reading a step", error)
    if close is None:
        return run(*args, **kwargs)
    _thread.busy = True
    try:
        return run(*args, **kwargs)
    finally:
        _thread.busy = False
        try:
            close()
        except Exception as error:
            _fails("recording a step", error)


def _open(model: Any, args: Any, kwargs: Any, compiled: bool) -> Optional[Close]:
    """Opens the step that this call is; None where it is none: drafts, training, capture of a CUDA graph, no tokens."""
    if _thread.generating > 1 or (model.training and _torch.is_grad_enabled()):
        return None
    decoder = kwargs.get("decoder_input_ids", kwargs.get("decoder_inputs_embeds"))
    ids = kwargs.get("input_ids")
    ids = kwargs.get("inputs_embeds") if ids is None else ids
    ids = args[0] if ids is None and args else ids
    query = ids if decoder is None else decoder
    shape = getattr(query, "shape", ())
    if len(shape) < 2 or (len(shape) == 2 and query.is_floating_point()):
        return None
    on_gpu = query.is_cuda
    if on_gpu and _torch.cuda.is_current_stream_capturing():
        return None
    batch, length = int(shape[0]), int(shape[1])
    encoded = decoder is not None and kwargs.get("encoder_outputs") is not None
    cache = kwargs.get("past_key_values")
    kind, begins, past = place(_thread.sequence, batch, length, cache, encoded, _thread.generating > 0)
    sequence = _begin(False) if begins or _thread.sequence is None else _thread.sequence
    sequence.took(batch, length, past)
    if decoder is not None and not encoded and getattr(ids, "shape", None) is not None:
        length += int(ids.shape[1])  # encoder and decoder in one call
    number = sequence.steps[kind]
    sequence.steps[kind] = number + 1
    key = (id(model), kind, batch, length)
    seen = _calls.get(key, 0)
    first = seen < (_FIRST_COMPILED if compiled or _is_compiled(model) else 1)
    _calls[key] = seen + 1
    if _model.ran(model):
        _tell_model()
    opener = _opener()
    name = inferscope_record.hook_name(kind, sequence.iteration, number, first)
    events = _open_events(model, query) if on_gpu and _device_times else None
    new, context = batch * length, batch * (past + length)
    close_range = opener(name) if opener else None
    start_ns = time.monotonic_ns()

    def close() -> None:
        end_ns = time.monotonic_ns()
        if close_range is not None:
            close_range()
        if events is not None:
            events[1].record(events[2])
        _pending.append((kind, start_ns, end_ns, sequence.iteration, number, batch, new, context, first, events))
        if len(_pending) > _MOST_PENDING:
            _flush()

    return close


def _is_compiled(model: Any) -> bool:
    own = vars(model)
    return own.get("_compiled_call_impl") is not None or hasattr(own.get("forward"), "_torchdynamo_orig_callable")


def _begin(speculative: bool) -> Sequence:
    global _iterations
    _iterations += 1
    _thread.sequence = Sequence(_iterations, speculative)
    if time.monotonic_ns() - _flushed_ns > _FLUSH_NS:
        _flush()
    return _thread.sequence


def _watch_generate(mixin: Any) -> None:
    original = mixin.generate
    is_compiling = sys.modules["torch"].compiler.is_compiling

    @functools.wraps(original)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or _thread.busy or _silent():
            return original(self, *args, **kwargs)
        if _thread.generating == 0:
            try:
                drafts = kwargs.get("assistant_model") is not None or kwargs.get("prompt_lookup_num_tokens") is not None
                _begin(drafts)
            except Exception as error:
                _fails("beginning a generation", error)
        _thread.generating += 1
        try:
            return original(self, *args, **kwargs)
        finally:
            _thread.generating -= 1
            if _thread.generating == 0:
                _thread.sequence = None

    mixin.generate = generate


def _watch_load(kind: Any, name: str) -> None:
    method = vars(kind).get(name)
    if method is None:
        return
    original = getattr(method, "__func__", method)
    is_compiling = sys.modules["torch"].compiler.is_compiling

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or _thread.busy or _silent():
            return original(*args, **kwargs)
        global _loads
        _loads += 1
        number, opener = _loads, _opener()
        close = opener(inferscope_record.mark_name("load", number, 0)) if opener else None
        _thread.busy = True
        start_ns = time.monotonic_ns()
        try:
            return original(*args, **kwargs)
        finally:
            _thread.busy = False
            if close is not None:
                close()
            _pending.append(("load", start_ns, time.monotonic_ns(), number, 0, None, None, None, False, None))

    setattr(kind, name, classmethod(load) if isinstance(method, classmethod) else load)


def _open_events(model: Any, query: Any) -> Optional[Tuple[Any, Any, Any]]:
    """Around a step on one device; of a model on several, the first would not know when the last is done."""
    if len(set((getattr(model, "hf_device_map", None) or {}).values())) > 1:
        return None
    stream = _torch.cuda.current_stream(query.device)
    pair = [_events.pop() if _events else _torch.cuda.Event(enable_timing=True) for _ in range(2)]
    pair[0].record(stream)
    return pair[0], pair[1], stream


def _flush(wait: bool = False) -> None:
    """Writes, in order, the steps with complete events; with `wait` all steps."""
    global _flushed_ns
    if _records_itself():
        _pending.clear()
        return
    done = 0
    for kind, start_ns, end_ns, iteration, step, batch, new, context, first, events in list(_pending):
        device_ns = None
        if events is not None:
            if wait:
                events[1].synchronize()
            elif not events[1].query():
                break
            device_ns = round(events[0].elapsed_time(events[1]) * 1e6)
            _events.extend(events[:2])
        _records.stage(
            kind, start_ns, end_ns, iteration, step, batch, new, context, device_dur_ns=device_ns, first_of_shape=first, marked_by="hooks"
        )
        done += 1
    del _pending[:done]
    _flushed_ns = time.monotonic_ns()
    _records.flush()


def _forget() -> None:
    _pending.clear()
    _events.clear()
    _records._lines = []


def _at_exit() -> None:
    if _records_itself():
        return
    _tell_model()  # where no step of it was seen
    _flush(wait=True)
    _records.clock()
    _records.flush()


def _tell_model() -> None:
    _records.clock()
    if inferscope_record.rank() == 0:
        guarded(lambda: _model.record(_records, _torch), "recording the model")
