"""Stages of PyTorch programs that mark nothing: armed by sitecustomize.py under every evaluator of `inferscope run`.

The outermost call of a model is a step: prefill or decode by the length of its query and what its cache holds, sizes from
shapes alone. Models are those of transformers, and any module that takes token ids or the hidden states of an embedding.
A compiled function around a model and the replay of a CUDA graph of one are steps, too. A step is an NVTX or
record_function range where an evaluator listens, else a stage line of the record (inferscope_hook_times.py).
"""

import atexit
import functools
import os
import sys
import threading
import time
import types
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import inferscope_record
from inferscope_after_import import after_import, guarded, warn
from inferscope_hook_steps import Sequence, place, place_plain
from inferscope_hook_times import LastStep, Times
from inferscope_ranges import Close, evaluated, range_opener
from inferscope_torch_model import SeenModel, holds_embedding, tokens_of_vocabulary

# First calls of a compiled model: compilation, recording of its CUDA graph, its first replay.
_FIRST_COMPILED = 3
# Engines that call models with their own batches and are marked elsewhere.
_ENGINES = ("vllm", "sglang", "tensorrt_llm")
# Arguments of hand-written models that contain the number of tokens in the cache.
_POSITIONS = ("start_pos", "input_pos", "position", "pos", "offset", "past_length", "cache_len")
# Minimum share of the parameters of the modules between two embeddings for a module to be the model.
_MAIN_SHARE = 0.8
_HIDDEN = "hidden states"
_EMPTY_CELL = types.CellType()


class _Thread:
    busy = False  # inside a step or a load: nested calls belong to it
    generating = 0
    generator: Any = None  # the model of the outermost generate
    sequence: Optional[Sequence] = None
    graph: Any = None  # the CUDA graph that is being captured
    last: Optional[LastStep] = None  # the last decode step, if the next one is likely to be equal
    shape: Optional[Tuple[int, ...]] = None  # of the ids passed to an embedding outside of any step
    between: Optional[List[Any]] = None  # modules called since then

    def forget_last(self) -> None:
        last, self.last = self.last, None
        if last is not None:
            last.stop()


class _Seen:
    """What is asked of a model once."""

    __slots__ = ("model", "plain", "causal", "encodes", "features", "devices", "calls", "replayed")

    def __init__(self, model: Any) -> None:
        config = getattr(model, "config", None)
        self.model = weakref.ref(model)
        self.plain = not hasattr(model, "get_input_embeddings") or config is None
        # Whether it computes logits over its vocabulary; otherwise it returns hidden states or classes, and no decode
        # follows.
        self.causal: Optional[bool] = None
        generates = getattr(model, "can_generate", None)
        self.encodes = not self.plain and generates is not None and not generates()
        self.features = not self.plain and getattr(model, "main_input_name", "input_ids") not in ("input_ids", "inputs_embeds")
        self.devices = len(set((getattr(model, "hf_device_map", None) or {}).values()))
        self.calls: Dict[Tuple[Any, ...], int] = {}
        self.replayed: Set[Tuple[Any, ...]] = set()


class _Local(threading.local):
    def __init__(self) -> None:
        self.thread = _Thread()


_local = _Local()
_torch: Any = None
_model = SeenModel()
_times = Times()
_seen: Dict[int, _Seen] = {}
_iterations = -1
_loads = -1
_broken = False
_parts = False  # the program calls an embedding itself, and then a watched module
_quiet = False  # an engine with its own marks, or a workload that records itself
_opens_ranges = False
_undo: List[Callable[[], None]] = []
_discovering: Callable[[], None] = lambda: None
_discovered: Callable[[], None] = lambda: None


def arm() -> None:
    """Waits for the import of torch; costs nothing to programs without it."""
    global _model, _opens_ranges
    if os.environ.get("INFERSCOPE_HOOKS", "on") == "off" or "INFERSCOPE_EXECUTION_ID" in os.environ:
        return
    _opens_ranges = os.environ.get("INFERSCOPE_EVALUATOR") != "none"
    probe = sys.modules.get("inferscope_torch")
    callbacks: Dict[str, Callable[[Any], None]] = {
        "torch": _on_torch,
        "transformers.modeling_utils": _on_modeling,
        "transformers.cache_utils": lambda module: _watch_cache(module.Cache),
        "transformers.generation.utils": lambda module: _watch_generate(module.GenerationMixin),
        "torch._dynamo.eval_frame": lambda module: _watch_calls(module.OptimizedModule, "_orig_mod"),
        "peft.peft_model": lambda module: _watch_calls(module.PeftModel),
    }
    callbacks.update((name, _on_engine) for name in _ENGINES)
    if probe is not None:
        _model = probe._model
    else:
        callbacks["transformers.modeling_utils"] = _on_modeling_alone
    after_import(callbacks)


def _on_engine(_: Any) -> None:
    """Restores torch."""
    global _quiet
    _quiet = True
    while _undo:
        _undo.pop()()


def _replace(owner: Any, name: str, value: Any) -> None:
    original = vars(owner)[name]
    setattr(owner, name, value)
    _undo.append(lambda: setattr(owner, name, original))


def _silent() -> bool:
    """inferscope's engines and workloads, and programs that use inferscope_record: their stages are not recorded
    twice.
    """
    return _broken or _quiet or inferscope_record._recorder is not None


def _opener() -> Optional[Callable[[str], Close]]:
    return range_opener() if evaluated() else None


def _fails(what: str, error: BaseException) -> None:
    global _broken
    if not _broken:
        _broken = True
        _local.thread.last = None
        warn("hooks: %s failed, stages end here and the program goes on: %r" % (what, error))


def _on_torch(torch: Any) -> None:
    global _torch
    _torch = torch
    _times.on_torch(torch)
    _discover()
    _watch_graphs(torch.cuda.CUDAGraph)
    _watch_compiled_functions()
    for name in ("to", "cuda", "load_state_dict"):
        _watch_load(torch.nn.Module, name, holds_embedding)
    os.register_at_fork(after_in_child=_times.forget)
    atexit.register(lambda: guarded(_at_exit, "writing the stages"))


def _on_modeling_alone(module: Any) -> None:
    _model.watch(module)
    _on_modeling(module)


def _on_modeling(module: Any) -> None:
    model = module.PreTrainedModel
    _watch_calls(model)
    for name in ("from_pretrained", "_from_config", "to", "cuda"):
        _watch_load(model, name)
    _watch_construction(model)
    compiled_call = getattr(model, "get_compiled_call", None)
    if compiled_call is not None:
        model.get_compiled_call = _marked_compiled(compiled_call)


# What is watched


def _watch_calls(kind: Any, wrapped: Optional[str] = None) -> None:
    """`wrapped`: the attribute that contains the model in a wrapper around a module."""
    torch = sys.modules["torch"]
    own = vars(kind).get("__call__")
    module = torch.nn.Module
    is_traced = torch.compiler.is_dynamo_compiling

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Looked up at each call, as Python does, because torch.fx replaces it while it traces.
        call = module.__call__ if own is None else own
        if is_traced():
            return call(self, *args, **kwargs)
        thread = _local.thread
        if thread.busy:
            return call(self, *args, **kwargs)
        last = thread.last
        if last is not None:
            ids = args[0] if args else kwargs.get("input_ids")
            if last.is_like(thread, self, ids, kwargs.get("past_key_values")):
                return last.run(thread, call, (self, *args), kwargs)
        if wrapped is None:
            return _step(self, call, (self, *args), kwargs, 1, False)
        return _step(getattr(self, wrapped, None), call, (self, *args), kwargs, 1, True)

    __call__.inferscope = True  # type: ignore[attr-defined]
    kind.__call__ = __call__


def _marked_compiled(get: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(get)
    def get_compiled_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = get(self, *args, **kwargs)

        def call(*call_args: Any, **call_kwargs: Any) -> Any:
            thread = _local.thread
            last = thread.last
            if last is not None and not thread.busy:
                ids = call_args[0] if call_args else call_kwargs.get("input_ids")
                if last.is_like(thread, self, ids, call_kwargs.get("past_key_values")):
                    return last.run(thread, compiled, call_args, call_kwargs)
            return _step(self, compiled, call_args, call_kwargs, 0, True)

        return call

    return get_compiled_call


def _discover() -> None:
    """Watches the calls of all modules until one takes token ids; then only its class is watched. An embedding called
    outside of any step reveals another model.
    """
    global _discovering, _discovered
    module, embedding = _torch.nn.Module, _torch.nn.Embedding
    original, look_up = module.__call__, embedding.forward
    is_compiling = _torch.compiler.is_compiling

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or _local.thread.busy or module.__call__ is not __call__ or _silent():
            return original(self, *args, **kwargs)
        try:
            model_call: Any = _takes(self, args, kwargs)
        except Exception as error:
            model_call = False
            _fails("looking for the model", error)
        if not model_call:
            return original(self, *args, **kwargs)
        if model_call is _HIDDEN:  # nested calls are part of it
            _local.thread.busy = True
            try:
                return original(self, *args, **kwargs)
            finally:
                _local.thread.busy = False
        _watch(type(self))
        return _step(self, original, (self, *args), kwargs, 1, False)

    def forward(self: Any, input: Any) -> Any:
        if not is_compiling() and not _local.thread.busy:
            _embeds(input)
        return look_up(self, input)

    def start() -> None:
        if module.__call__ is original:
            module.__call__ = __call__

    def stop() -> None:
        # A tracer replaces it temporarily and restores it.
        if module.__call__ is __call__:
            module.__call__ = original

    _discovering, _discovered = start, stop
    _undo.append(stop)
    _replace(embedding, "forward", forward)
    # Compilers compare a module's call with it.
    after_import({"torch._dynamo.utils": lambda utils: setattr(utils, "unpatched_nn_module_call", original)})
    start()


def _watch(kind: Any) -> None:
    if not getattr(kind.__call__, "inferscope", False):
        _watch_calls(kind)


def _takes(model: Any, args: Any, kwargs: Any) -> Any:
    """-> whether it takes token ids; _HIDDEN if it takes the output of an embedding."""
    if isinstance(model, _torch.nn.Embedding):
        return False
    if _first(args, kwargs, 2) is not None and holds_embedding(model):
        return True
    hidden = None if _local.thread.shape is None else _first(args, kwargs, 3)
    if hidden is not None and set(hidden.shape[:2]) == set(_local.thread.shape) and next(model.children(), None) is not None:
        _local.thread.between = [*(_local.thread.between or []), model]
        return _HIDDEN
    return False


def _embeds(ids: Any) -> None:
    """An embedding outside of any step: the program calls the parts of its model itself, or calls an unwatched model.
    """
    global _parts
    if ids.dim() != 2 or _silent():
        return
    between, _local.thread.between = _local.thread.between, None
    if between:
        sizes = [sum(p.numel() for p in module.parameters()) for module in between]
        if max(sizes) >= _MAIN_SHARE * sum(sizes):
            _watch(type(between[sizes.index(max(sizes))]))
            _parts = True
            _discovered()
    elif _local.thread.shape is None and not _parts:
        _discovering()
    if _local.thread.shape is None or between or ids.shape[0] == _local.thread.shape[0]:
        _local.thread.shape = tuple(ids.shape)


def _watch_graphs(graph: Any) -> None:
    """The replay of a graph is equal to the model call that was captured in it."""
    begin, end, replay = graph.capture_begin, graph.capture_end, graph.replay

    @functools.wraps(begin)
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        _local.thread.graph = self
        return begin(self, *args, **kwargs)

    @functools.wraps(end)
    def capture_end(self: Any) -> None:
        _local.thread.graph = None
        return end(self)

    @functools.wraps(replay)
    def replayed(self: Any) -> None:
        captured = getattr(self, "inferscope_step", None)
        thread = _local.thread
        if captured is None or thread.busy or _silent():
            return replay(self)
        last = thread.last
        if last is not None and last.is_like(thread, self, None, None):
            return last.run(thread, replay, (self,), {})
        step = None
        try:
            model, *sizes = captured
            if model() is not None:
                step = _open(model(), *sizes, self)
        except Exception as error:
            _fails("reading a replay", error)
        replay(self)
        if step is not None:
            try:
                _close(step, None, time.monotonic_ns())
            except Exception as error:
                _fails("recording a replay", error)
        return None

    for name, value in (("capture_begin", capture_begin), ("capture_end", capture_end), ("replay", replayed)):
        _replace(graph, name, value)


def _watch_compiled_functions() -> None:
    """A function that was compiled as a whole no longer calls its model."""
    compile_it = _torch.compile
    is_compiling = _torch.compiler.is_compiling

    @functools.wraps(compile_it)
    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        compiled = compile_it(model, *args, **kwargs)
        if not callable(model) or isinstance(model, (type, _torch.nn.Module)):
            return compiled

        first_reached: List[Any] = []

        @functools.wraps(compiled)
        def call(*call_args: Any, **call_kwargs: Any) -> Any:
            if is_compiling() or _local.thread.busy or _silent():
                return compiled(*call_args, **call_kwargs)
            if not first_reached:
                first_reached.append(next((module for module in _reached_by(model) if holds_embedding(module)), None))
            modules = (value for value in (*call_args, *call_kwargs.values()) if isinstance(value, _torch.nn.Module))
            return _step(next(modules, first_reached[0]), compiled, call_args, call_kwargs, 0, True)

        return call

    _replace(_torch, "compile", compile)


def _reached_by(function: Any) -> Iterator[Any]:
    """Modules that a function is a method of, captures, or names."""
    code, names = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell != _EMPTY_CELL]
    named = [names.get(name) for name in (code.co_names if code is not None else ())]
    for value in (getattr(function, "__self__", None), *cells, *named):
        if isinstance(value, _torch.nn.Module):
            yield value


def _watch_generate(mixin: Any) -> None:
    original = mixin.generate
    is_compiling = sys.modules["torch"].compiler.is_compiling

    @functools.wraps(original)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or _local.thread.busy or _silent():
            return original(self, *args, **kwargs)
        if _local.thread.generating == 0:
            try:
                drafts = kwargs.get("assistant_model") is not None or kwargs.get("prompt_lookup_num_tokens") is not None
                _start_sequence(drafts)
                _local.thread.generator = self
            except Exception as error:
                _fails("starting a generation", error)
        _local.thread.generating += 1
        try:
            return original(self, *args, **kwargs)
        finally:
            _local.thread.generating -= 1
            if _local.thread.generating == 0:
                _local.thread.forget_last()
                _local.thread.sequence = _local.thread.generator = None

    mixin.generate = generate


def _watch_cache(cache: Any) -> None:
    """After a crop or a reset, the length is read again."""
    for name in ("crop", "reset"):
        original = vars(cache).get(name)
        if original is not None:
            setattr(cache, name, _forgetting(original))


def _forgetting(method: Callable[..., Any]) -> Callable[..., Any]:
    is_traced = sys.modules["torch"].compiler.is_dynamo_compiling

    @functools.wraps(method)
    def changed(*args: Any, **kwargs: Any) -> Any:
        if not is_traced():
            _local.thread.forget_last()
        return method(*args, **kwargs)

    return changed


def _watch_construction(kind: Any) -> None:
    """`Model(config)`: every model class has its own constructor, which first calls that of its base class."""
    original = kind.__init_subclass__.__func__

    def __init_subclass__(cls: Any, **kwargs: Any) -> None:
        original(cls, **kwargs)
        if "__init__" in vars(cls):
            _watch_load(cls, "__init__")

    kind.__init_subclass__ = classmethod(__init_subclass__)


def _watch_load(kind: Any, name: str, concerns: Optional[Callable[[Any], bool]] = None) -> None:
    method = vars(kind).get(name)
    if method is None:
        return
    original = getattr(method, "__func__", method)
    is_compiling = sys.modules["torch"].compiler.is_compiling

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or _local.thread.busy or _silent() or not (concerns is None or concerns(args[0])):
            return original(*args, **kwargs)
        global _loads
        _loads += 1
        number, opener = _loads, _opener() if _opens_ranges else None
        close = opener(inferscope_record.mark_name("load", number, 0)) if opener else None
        _local.thread.busy = True
        start_ns = time.monotonic_ns()
        try:
            return original(*args, **kwargs)
        finally:
            _local.thread.busy = False
            if close is not None:
                close()
            else:
                load = (None, None, None, start_ns, number, 0, None, None, None, "load", False, None, None)
                _times.add_step(load, time.monotonic_ns())

    setattr(kind, name, classmethod(load) if isinstance(method, classmethod) else load)


# A step


def _step(model: Any, call: Callable[..., Any], args: Any, kwargs: Any, first: int, compiled: bool) -> Any:
    """`first`: index of the first argument of the model in `args`."""
    if _broken or _quiet or inferscope_record._recorder is not None or model is None:
        return call(*args, **kwargs)
    step = None
    try:
        step = _read(model, args, kwargs, first, compiled)
    except Exception as error:
        _fails("reading a step", error)
    if step is None:
        return call(*args, **kwargs)
    result = None
    _local.thread.busy = True
    try:
        result = call(*args, **kwargs)
        return result
    finally:
        _local.thread.busy = False
        end_ns = time.monotonic_ns()
        try:
            _close(step, result, end_ns)
        except Exception as error:
            _fails("recording a step", error)


def _first(args: Any, kwargs: Any, dimensions: int) -> Any:
    """The first tensor with this number of dimensions: token ids have two, hidden states three."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, _torch.Tensor) and value.dim() == dimensions:
            whole = not value.is_floating_point() and value.dtype is not _torch.bool
            if whole == (dimensions == 2):
                return value
    return None


def _read(model: Any, args: Any, kwargs: Any, first: int, compiled: bool) -> Optional[Tuple[Any, ...]]:
    """Opens the step of this call; None if it is not a step: drafts, training, no tokens."""
    if _local.thread.generating > 1 or (model.training and _torch.is_grad_enabled()) or _torch.compiler.is_compiling():
        return None
    seen = _seen.get(id(model))
    if seen is None or seen.model() is not model:
        seen = _seen[id(model)] = _Seen(model)
    position = None
    decoder = None
    if seen.plain:
        ids = query = _first(args[first:], kwargs, 2)
        if query is None:
            ids = query = _first(args[first:], kwargs, 3) if _local.thread.shape is not None else None
            if query is None:
                return None
            (batch, length), _local.thread.shape = _local.thread.shape, None  # type: ignore[misc]
            if set(query.shape[:2]) != {batch, length}:
                return None
        else:
            if not holds_embedding(model):
                return None
            batch, length = query.shape
        position = next((value for value in args[first:] if type(value) is int), None)
        if position is None:
            position = next((kwargs[name] for name in _POSITIONS if type(kwargs.get(name)) is int), None)
    else:
        decoder = kwargs.get("decoder_input_ids")
        if decoder is None:
            decoder = kwargs.get("decoder_inputs_embeds")
        ids = kwargs.get("input_ids")
        if ids is None:
            ids = kwargs.get("inputs_embeds")
        if ids is None and len(args) > first:
            ids = args[first]
        if ids is None and seen.features:
            ids = kwargs.get(model.main_input_name)
        query = ids if decoder is None else decoder
        shape = getattr(query, "shape", ())
        if len(shape) < 2 or (len(shape) == 2 and query.is_floating_point()):
            return None
        batch, length = shape[0], shape[1]
    if query.is_cuda and _torch._C._cuda_isCurrentStreamCapturing():
        graph = _local.thread.graph
        if graph is not None and not hasattr(graph, "inferscope_step"):
            ids = types.SimpleNamespace(is_cuda=True, device=query.device, shape=None)
            graph.inferscope_step = (weakref.ref(model), seen, batch, length, None, None, None, ids, None, False)
        return None
    return _open(model, seen, batch, length, position, ids, decoder, query, kwargs, compiled, model)


def _open(
    model: Any, seen: _Seen, batch: int, length: int, position: Optional[int], ids: Any, decoder: Any, query: Any, kwargs: Any,
    compiled: bool, owner: Any,
) -> Tuple[Any, ...]:
    """`kwargs`: None for the replay of a graph; `owner`: that graph, or the called model. -> the argument of _close"""
    if not seen.calls:
        _discovered()
    thread = _local.thread
    thread.forget_last()
    sequence = thread.sequence
    encoded = past = cache = None
    if seen.plain or kwargs is None:
        kind, starts, past = place_plain(sequence, batch, length, position, seen.causal)
    else:
        cache = kwargs.get("past_key_values")
        encoded = decoder is not None and kwargs.get("encoder_outputs") is not None
        if seen.encodes and cache is None:
            kind, starts, past = "prefill", _local.thread.generating == 0, 0
        else:
            kind, starts, past = place(sequence, batch, length, cache, encoded, _local.thread.generating > 0)
    if starts or sequence is None:
        sequence = _start_sequence(False)
    sequence.advance(batch, length, past)
    if decoder is not None and not encoded and getattr(ids, "shape", None) is not None and not seen.features:
        length += ids.shape[1]  # encoder and decoder in one call
    number = sequence.steps[kind]
    sequence.steps[kind] = number + 1
    key = (kind, batch, length)
    calls = seen.calls.get(key, 0)
    seen.calls[key] = calls + 1
    if kwargs is None and key not in seen.replayed:
        seen.replayed.add(key)
        _times.warmed_up(kind, batch, batch * length)
    first = calls < _FIRST_COMPILED and (calls == 0 or compiled or _is_compiled(model))
    new: Optional[int] = batch * length
    context = None if past is None else batch * (past + length)
    if seen.features and decoder is None:
        new = context = None  # frames; the output has their number
    mask = kwargs.get("attention_mask") if kind == "prefill" and kwargs is not None else None
    padding: Any = _padding(mask)
    close_range = events = None
    opener = _opener() if _opens_ranges else None
    if opener is not None:
        how = "first" if first else "hook" if kwargs is not None else "graph"
        close_range = opener(inferscope_record.hook_name(kind, sequence.iteration, number, how, batch, new, context))
    elif query.is_cuda and seen.devices < 2:
        if _is_mask(mask, query.device.type):
            padding = _times.count_padding(mask)
        events = _times.open(query.device)
    alike = kind == "decode" and batch == new and past is not None and not sequence.speculative and calls >= _FIRST_COMPILED
    shown = kwargs is None or (position is None if seen.plain else cache is not None and decoder is None)
    if alike and shown and not _opens_ranges and not isinstance(cache, tuple) and not (query.is_cuda and events is None):
        thread.last = LastStep(_times, owner, sequence, cache, query.shape, (batch, number + 1), events)
    learns = seen if not _model.known or (seen.plain and seen.causal is None) or new is None else None
    return (
        close_range, events, learns, time.monotonic_ns(), sequence.iteration, number, batch, new, context, kind, first, padding,
        cache if learns is not None else None,
    )


def _close(step: Tuple[Any, ...], result: Any, end_ns: int) -> None:
    close_range, events, learns = step[:3]
    if close_range is not None:
        close_range()
    elif events is not None:
        _times.record(events[1], events[2])
    if learns is not None and result is not None:
        _learn(learns, result, step[-1])
        step = (*step[:12], None)  # does not keep the cache alive
        if step[7] is None and step[6] is not None:  # of features; the output has their number
            hidden = getattr(result, "last_hidden_state", None)
            if hidden is not None:
                tokens = step[6] * int(hidden.shape[1])
                step = (*step[:7], tokens, tokens, *step[9:])
    if close_range is None:
        _times.add_step(step, end_ns)


def _learn(seen: _Seen, result: Any, cache: Any) -> None:
    """Facts that only the first result of a model shows."""
    model = seen.model()
    if seen.plain and seen.causal is None:
        seen.causal = tokens_of_vocabulary(model, result)
    if _model.ran(_local.thread.generator or model):
        cache = getattr(result, "past_key_values", None) if cache is None else cache
        _model.facts["cache"] = None if cache is None else type(cache).__name__
        _record_model()


def _padding(mask: Any) -> Optional[int]:
    """Padding positions of a batch, if the host knows them."""
    return int(mask.numel() - mask.count_nonzero().item()) if _is_mask(mask, "cpu") else None


def _is_mask(mask: Any, device: str) -> bool:
    """Whether it has a value for each position of each sequence."""
    return isinstance(mask, _torch.Tensor) and mask.dim() == 2 and mask.device.type == device and not mask.dtype.is_floating_point


def _is_compiled(model: Any) -> bool:
    attributes = vars(model)
    return attributes.get("_compiled_call_impl") is not None or hasattr(attributes.get("forward"), "_torchdynamo_orig_callable")


def _start_sequence(speculative: bool) -> Sequence:
    global _iterations
    _iterations += 1
    _local.thread.forget_last()
    _local.thread.sequence = Sequence(_iterations, speculative)
    _times.flush_now_and_then()
    return _local.thread.sequence


def _at_exit() -> None:
    if _silent() and not _broken:
        return
    _record_model()  # if none of its steps was observed
    _local.thread.forget_last()
    _times.flush(wait=True)
    _times.records.clock()
    _times.records.flush()


def _record_model() -> None:
    _times.records.clock()
    if inferscope_record.rank() == 0:
        guarded(lambda: _model.record(_times.records, _torch), "recording the model")
