"""Watches the model calls of PyTorch programs that mark no stages: armed by sitecustomize.py under every evaluator of
`inferscope run`.

Watched are the models of transformers, and any module called with token ids, with the output of an embedding, or with
hidden states from another process (a later pipeline stage). A compiled function around a model and the replay of a CUDA
graph of one are steps, too (inferscope_hook_calls.py).
"""

import atexit
import functools
import os
import sys
import time
import types
from _thread import get_ident
from typing import Any, Callable, Dict, Iterator, List, Optional

import inferscope_hook_calls as calls
from inferscope_after_import import after_import, guarded
from inferscope_hook_batches import watch_batches
from inferscope_hook_calls import fail, is_silent, run_step
from inferscope_hook_inputs import first_tensor, holds_embedding, main_module, receives_hidden_states
from inferscope_hook_loops import has_loop, run_outermost
from inferscope_hook_repeats import repeating, restore_inner
from inferscope_hook_threads import forget_parent, this_thread, threads

# Engines that call models with their own batches and are marked elsewhere.
_ENGINES = ("vllm", "sglang", "tensorrt_llm")
_HIDDEN = "hidden states"
_EMPTY_CELL = types.CellType()
# What the forward of torch.nn.Embedding reads, in the versions that were seen.
_EMBEDDING_NAMES = ("F", "embedding", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")

_torch: Any = None
_calls_parts = False  # the program calls an embedding itself, and then a watched module
_undo: List[Callable[[], None]] = []
_start_discovery: Callable[[], None] = lambda: None
_stop_discovery: Callable[[], None] = lambda: None


def arm() -> None:
    """Waits for the import of torch; costs nothing to programs without it."""
    if os.environ.get("INFERSCOPE_HOOKS", "on") == "off" or "INFERSCOPE_EXECUTION_ID" in os.environ:
        return
    probe = sys.modules.get("inferscope_torch")
    calls.set_up(None if probe is None else probe._model, os.environ.get("INFERSCOPE_EVALUATOR") != "none")
    callbacks: Dict[str, Callable[[Any], None]] = {
        "torch": _on_torch,
        "transformers.modeling_utils": _on_modeling if probe is not None else _on_modeling_alone,
        "transformers.cache_utils": lambda module: _watch_cache(module.Cache),
        "transformers.generation.utils": lambda module: _watch_generate(module.GenerationMixin),
        "transformers.generation.continuous_batching.model_runner": watch_batches,
        "torch._dynamo.eval_frame": lambda module: _watch_calls(module.OptimizedModule, "_orig_mod"),
        "peft.peft_model": lambda module: _watch_calls(module.PeftModel),
    }
    callbacks.update((name, _on_engine) for name in _ENGINES)
    after_import(callbacks)


def _on_engine(_: Any) -> None:
    """Stops recording and restores torch."""
    calls.be_quiet()
    while _undo:
        _undo.pop()()


def _replace(owner: Any, name: str, value: Any) -> None:
    original = vars(owner)[name]
    setattr(owner, name, value)
    _undo.append(lambda: setattr(owner, name, original))


def _on_torch(torch: Any) -> None:
    global _torch
    _torch = torch
    calls.on_torch(torch)
    _discover()
    _watch_graphs(torch.cuda.CUDAGraph)
    _watch_compiled_functions()
    for name in ("to", "cuda", "load_state_dict"):
        _watch_load(torch.nn.Module, name, holds_embedding)
    os.register_at_fork(after_in_child=forget_parent)
    os.register_at_fork(after_in_child=calls.times.forget)
    atexit.register(lambda: guarded(calls.write_at_exit, "writing the stages"))


def _on_modeling_alone(module: Any) -> None:
    """Without the torch probe, which otherwise watches the construction of models."""
    calls.recorded_model.watch(module)
    _on_modeling(module)


def _on_modeling(module: Any) -> None:
    model = module.PreTrainedModel
    _watch_calls(model)
    for name in ("from_pretrained", "_from_config", "to", "cuda"):
        _watch_load(model, name)
    _watch_construction(model)
    get_compiled_call = getattr(model, "get_compiled_call", None)
    if get_compiled_call is not None:
        model.get_compiled_call = _watch_compiled_call(get_compiled_call)


def _watch_calls(kind: Any, wrapped: Optional[str] = None) -> None:
    """`wrapped`: the attribute that contains the model in a wrapper around a module."""
    original, module = vars(kind).get("__call__"), sys.modules["torch"].nn.Module

    def other(self: Any, args: Any, kwargs: Any) -> Any:
        called = self if wrapped is None else getattr(self, wrapped, None)
        return run_step(called, original or module.__call__, (self, *args), kwargs, 1, wrapped is not None)

    __call__ = repeating(original, other)
    __call__.inferscope = True  # type: ignore[attr-defined]
    kind.__call__ = __call__


def _watch_compiled_call(get: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(get)
    def get_compiled_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = get(self, *args, **kwargs)

        def other(self: Any, args: Any, kwargs: Any) -> Any:
            return run_step(self, compiled, args, kwargs, 0, True)

        return functools.partial(repeating(lambda _, *args, **kwargs: compiled(*args, **kwargs), other), self)

    return get_compiled_call


def _discover() -> None:
    """Watches the calls of all modules until one takes token ids; then only its class is watched. An embedding called
    outside of any step reveals another model.
    """
    global _start_discovery, _stop_discovery
    module, embedding = _torch.nn.Module, _torch.nn.Embedding
    original, look_up, convolution = module.__call__, embedding.forward, _torch.nn.Conv2d.forward
    is_compiling, is_traced = _torch.compiler.is_compiling, _torch.compiler.is_dynamo_compiling
    functional, is_known = _torch.nn.functional, look_up.__code__.co_names == _EMBEDDING_NAMES

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or this_thread().busy or module.__call__ is not __call__ or is_silent():
            return original(self, *args, **kwargs)
        try:
            takes: Any = _takes_tokens(self, args, kwargs)
        except Exception as error:
            takes = False
            fail("looking for the model", error)
        if not takes:
            return run_outermost(self, original, args, kwargs, stop)
        if takes is _HIDDEN:  # nested calls are part of it
            this_thread().busy = True
            try:
                return original(self, *args, **kwargs)
            finally:
                this_thread().busy = False
        _watch_class(type(self))
        return run_step(self, original, (self, *args), kwargs, 1, False)

    def forward(self: Any, input: Any) -> Any:
        if is_traced():
            return look_up(self, input)
        if not threads[get_ident()].busy and not is_compiling():
            _on_embedding(input)
        if not is_known:
            return look_up(self, input)
        return functional.embedding(  # what look_up does, without its frame
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def start() -> None:
        if module.__call__ is original:
            module.__call__ = __call__

    def stop() -> None:
        # A tracer replaces it temporarily and restores it.
        if module.__call__ is __call__:
            module.__call__ = original

    def convolve(self: Any, input: Any) -> Any:
        # Outside of any step: after a model with tokens comes one for images, such as a U-Net.
        if not is_compiling() and not this_thread().busy and not has_loop():
            start()
        return convolution(self, input)

    _start_discovery, _stop_discovery = start, stop
    calls.on_first_call(stop)
    _undo.append(stop)
    _replace(embedding, "forward", forward)
    _replace(_torch.nn.Conv2d, "forward", convolve)
    # Compilers compare a module's call with it.
    after_import({"torch._dynamo.utils": lambda utils: setattr(utils, "unpatched_nn_module_call", original)})
    start()


def _watch_class(kind: Any) -> None:
    if not getattr(kind.__call__, "inferscope", False):
        _watch_calls(kind)


def _takes_tokens(module: Any, args: Any, kwargs: Any) -> Any:
    """-> whether it takes token ids, or is seen to be a later stage of a pipeline; _HIDDEN if it takes hidden states"""
    if isinstance(module, _torch.nn.Embedding):
        return False
    if first_tensor(args, kwargs, 2) is not None and holds_embedding(module):
        return True
    thread = this_thread()
    hidden = None if thread.embedded_shape is None else first_tensor(args, kwargs, 3)
    if hidden is not None and set(hidden.shape[:2]) == set(thread.embedded_shape) and next(module.children(), None) is not None:
        thread.called_since = [*(thread.called_since or []), module]
        return _HIDDEN
    if thread.embedded_shape is None and receives_hidden_states(module, args, kwargs):
        called = thread.called_since or []
        if module in called:
            return main_module(called) is module
        thread.called_since = [*called, module]
        return _HIDDEN
    return False


def _on_embedding(ids: Any) -> None:
    """An embedding outside of any step: the program calls the parts of its model itself, or calls an unwatched model.
    """
    global _calls_parts
    if restore_inner() or ids.dim() != 2 or is_silent():
        return
    thread = this_thread()
    called, thread.called_since = thread.called_since, None
    if called:
        main = main_module(called)
        if main is not None:
            _watch_class(type(main))
            _calls_parts = True
            _stop_discovery()
    elif thread.embedded_shape is None and not _calls_parts:
        _start_discovery()
    if thread.embedded_shape is None or called or ids.shape[0] == thread.embedded_shape[0]:
        thread.embedded_shape = tuple(ids.shape)


def _watch_graphs(graph: Any) -> None:
    """A replay counts as the model call that was captured in its graph."""
    begin, end, original_replay = graph.capture_begin, graph.capture_end, graph.replay

    @functools.wraps(begin)
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        this_thread().stop_repeating()
        this_thread().graph = self
        return begin(self, *args, **kwargs)

    @functools.wraps(end)
    def capture_end(self: Any) -> None:
        this_thread().graph = None
        return end(self)

    def replay_other(self: Any, _args: Any, _kwargs: Any) -> None:
        captured = getattr(self, "inferscope_call", None)
        if captured is None or is_silent():
            return original_replay(self)
        opened = None
        try:
            if captured.facts.model() is not None:
                opened = calls.open_step(captured, self)
        except Exception as error:
            fail("reading a replay", error)
        original_replay(self)
        if opened is not None:
            try:
                calls.close_step(opened, None, time.monotonic_ns())
            except Exception as error:
                fail("recording a replay", error)
        return None

    replay = functools.wraps(original_replay)(repeating(original_replay, replay_other))
    for name, value in (("capture_begin", capture_begin), ("capture_end", capture_end), ("replay", replay)):
        _replace(graph, name, value)


def _watch_compiled_functions() -> None:
    """A function that was compiled as a whole no longer calls its model."""
    original_compile = _torch.compile
    is_compiling = _torch.compiler.is_compiling

    @functools.wraps(original_compile)
    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        compiled = original_compile(model, *args, **kwargs)
        if not callable(model) or isinstance(model, (type, _torch.nn.Module)):
            return compiled

        first_reached: List[Any] = []

        @functools.wraps(compiled)
        def call(*call_args: Any, **call_kwargs: Any) -> Any:
            if is_compiling() or this_thread().busy or is_silent():
                return compiled(*call_args, **call_kwargs)
            if not first_reached:
                first_reached.append(next((module for module in _modules_reached_by(model) if holds_embedding(module)), None))
            modules = (value for value in (*call_args, *call_kwargs.values()) if isinstance(value, _torch.nn.Module))
            return run_step(next(modules, first_reached[0]), compiled, call_args, call_kwargs, 0, True)

        return call

    _replace(_torch, "compile", compile)


def _modules_reached_by(function: Any) -> Iterator[Any]:
    """Modules that a function is a method of, captures, or names."""
    code, variables = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    captured = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell != _EMPTY_CELL]
    named = [variables.get(name) for name in (code.co_names if code is not None else ())]
    for value in (getattr(function, "__self__", None), *captured, *named):
        if isinstance(value, _torch.nn.Module):
            yield value


def _watch_generate(mixin: Any) -> None:
    original = mixin.generate
    is_compiling = sys.modules["torch"].compiler.is_compiling

    @functools.wraps(original)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        thread = this_thread()
        if is_compiling() or thread.busy or is_silent():
            return original(self, *args, **kwargs)
        if thread.generating == 0:
            try:
                drafts = kwargs.get("assistant_model") is not None or kwargs.get("prompt_lookup_num_tokens") is not None
                calls.start_sequence(drafts)
                thread.generator = self
            except Exception as error:
                fail("starting a generation", error)
        thread.generating += 1
        try:
            return original(self, *args, **kwargs)
        finally:
            thread.generating -= 1
            if thread.generating == 0:
                thread.stop_repeating()
                thread.sequence = thread.generator = None

    mixin.generate = generate


def _watch_cache(cache: Any) -> None:
    """After a crop or a reset, the length is read again."""
    for name in ("crop", "reset"):
        original = vars(cache).get(name)
        if original is not None:
            setattr(cache, name, _stopping_repeats(original))


def _stopping_repeats(method: Callable[..., Any]) -> Callable[..., Any]:
    is_traced = sys.modules["torch"].compiler.is_dynamo_compiling

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_traced():
            this_thread().stop_repeating()
        return method(*args, **kwargs)

    return call


def _watch_construction(kind: Any) -> None:
    """`Model(config)`: every model class has its own constructor, which first calls that of its base class."""
    original = kind.__init_subclass__.__func__

    def __init_subclass__(cls: Any, **kwargs: Any) -> None:
        original(cls, **kwargs)
        if "__init__" in vars(cls):
            _watch_load(cls, "__init__")

    kind.__init_subclass__ = classmethod(__init_subclass__)


def _watch_load(kind: Any, name: str, loads_model: Optional[Callable[[Any], bool]] = None) -> None:
    """`loads_model`: whether a call with this first argument is the load of a model (default: always)."""
    method = vars(kind).get(name)
    if method is None:
        return
    original = getattr(method, "__func__", method)
    is_compiling = sys.modules["torch"].compiler.is_compiling

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or this_thread().busy or is_silent() or not (loads_model is None or loads_model(args[0])):
            return original(*args, **kwargs)
        return calls.run_stage("load", original, args, kwargs)

    setattr(kind, name, classmethod(load) if isinstance(method, classmethod) else load)
