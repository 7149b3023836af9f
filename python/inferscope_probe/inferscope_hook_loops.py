"""Steps of programs without tokens: an outermost module that is called again and again, such as the U-Net of a denoising loop.

A module counts as soon as two calls with equal sizes follow each other, without a call of another outermost module and without a step
of a model inside. Its later calls are steps of unknown kind: without batch and tokens.
"""

import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, Optional, Set, Tuple

import inferscope_hook_calls as calls
import inferscope_record
from inferscope_hook_calls import fail, is_silent
from inferscope_hook_threads import this_thread
from inferscope_hook_times import Step

Sizes = Tuple[int, ...]


class _Loop:
    """A module with steps, and the sizes that it was called with."""

    def __init__(self, module: Any, sizes: Sizes) -> None:
        self.module, self.seen = weakref.ref(module), {sizes}  # type: ignore[var-annotated]


class _Outermost(threading.local):
    module: Any = None  # the outermost module without tokens that is being called
    previous: Any = None  # the one before it, with its sizes


_outermost = _Outermost()
_loops: Dict[int, _Loop] = {}
_watched: Set[type] = set()
_steps = 0


def has_loop() -> bool:
    return bool(_loops)


def run_outermost(module: Any, call: Callable[..., Any], args: Any, kwargs: Any, on_found: Callable[[], None]) -> Any:
    """Calls a module that takes no tokens. `on_found`: called when it turns out to have steps."""
    steps_before = this_thread().steps
    sizes = None if _outermost.module is not None else _sizes_of(module, args, kwargs)
    if sizes is None:
        return call(module, *args, **kwargs)
    _outermost.module = module
    try:
        return call(module, *args, **kwargs)
    finally:
        _outermost.module = None
        previous, _outermost.previous = _outermost.previous, (weakref.ref(module), sizes)
        is_repeated = previous is not None and (previous[0](), previous[1]) == (module, sizes)
        if is_repeated and this_thread().steps == steps_before:
            _loops[id(module)] = _Loop(module, sizes)
            _watch(type(module))
            on_found()


def _watch(kind: Any) -> None:
    if kind in _watched:
        return
    _watched.add(kind)
    torch = sys.modules["torch"]
    original, base = vars(kind).get("__call__"), torch.nn.Module
    is_traced = torch.compiler.is_dynamo_compiling

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = base.__call__ if original is None else original
        if is_traced() or this_thread().busy or is_silent():
            return call(self, *args, **kwargs)
        return _run_step(self, call, args, kwargs)

    kind.__call__ = __call__


def _run_step(module: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    opened = None
    try:
        loop = _loops.get(id(module))
        sizes = None if loop is None or loop.module() is not module else _sizes_of(module, args, kwargs)
        if sizes is not None:
            opened = _open(loop, sizes, _first_tensor(args, kwargs))
    except Exception as error:
        fail("reading a step", error)
    if opened is None:
        return call(module, *args, **kwargs)
    this_thread().busy = True
    try:
        return call(module, *args, **kwargs)
    finally:
        this_thread().busy = False
        end_ns = time.monotonic_ns()
        try:
            calls.close_step(opened, None, end_ns)
        except Exception as error:
            fail("recording a step", error)


def _open(loop: Any, sizes: Sizes, tensor: Any) -> Optional[calls.Opened]:
    """None while a CUDA graph is captured."""
    global _steps
    torch = sys.modules["torch"]
    if tensor.is_cuda and torch._C._cuda_isCurrentStreamCapturing():
        return None
    is_first = sizes not in loop.seen
    loop.seen.add(sizes)
    number, _steps = _steps, _steps + 1
    calls.times.flush_if_due()
    opener = calls.step_opener()
    close_range = events = None
    if opener is not None:
        how = "first" if is_first else "hook"
        close_range = opener(inferscope_record.hook_name("other", number, 0, how, None, None, None))
    elif tensor.is_cuda:
        events = calls.times.open(tensor.device)
    return Step("other", number, 0, time.monotonic_ns(), is_first=is_first, events=events), close_range, None, None


def _sizes_of(module: Any, args: Any, kwargs: Any) -> Optional[Sizes]:
    """Sizes of its first input; None for a layer, for training, and without images or hidden states."""
    tensor = _first_tensor(args, kwargs)
    if tensor is None or next(module.children(), None) is None:
        return None
    return None if module.training and sys.modules["torch"].is_grad_enabled() else tuple(tensor.shape)


def _first_tensor(args: Any, kwargs: Any) -> Any:
    tensor_type = sys.modules["torch"].Tensor
    for value in (*args, *kwargs.values()):
        if isinstance(value, tensor_type) and value.dim() >= 3 and value.is_floating_point():
            return value
    return None
