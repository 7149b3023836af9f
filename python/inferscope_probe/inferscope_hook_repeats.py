"""The call of a model that is likely to repeat the previous decode step, at little cost.

A step leaves the caches of the CPU cold, so that a call here costs ten times what it costs in a loop. Therefore everything
is in one function, which touches few objects and calls few functions, and which takes the place of torch's own.
"""

import sys
import time
from _thread import get_ident
from typing import Any, Callable, List, Optional, Set

from inferscope_hook_threads import threads

# Classes of models that were called outside of any other model, and those inside others that have torch's own call.
_outermost: Set[type] = set()
_inner: List[Any] = []


def repeating(original: Optional[Callable[..., Any]], other: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """-> a function in the place of `original`. None: that of torch.nn.Module, which is looked up at each call, as Python does,
    because torch.fx replaces it while it traces; in repeated steps once per group. `other(self, args, kwargs)`: called if the
    call repeats no step and is not part of one.
    """
    torch = sys.modules["torch"]
    module, is_traced, numel = torch.nn.Module, torch.compiler.is_dynamo_compiling, torch.Tensor.numel
    monotonic_ns = time.monotonic_ns
    module_call = None if original is not None else _module_call()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced():
            return (original or module.__call__)(self, *args, **kwargs)
        thread = threads[get_ident()]
        repeated = thread.repeated
        if thread.busy:
            if repeated is not None and module.__call__ is module_call:
                _give_own_call(type(self), module_call)
            return (original or module.__call__)(self, *args, **kwargs)
        if repeated is None or repeated.owner_id != id(self) or repeated.cache_id != id(kwargs.get(repeated.cache_name)):
            _outermost.add(type(self))
            return other(self, args, kwargs)
        ids = args[0] if args else kwargs.get("input_ids")
        try:
            if (None if ids is None else numel(ids)) != repeated.positions:
                return other(self, args, kwargs)
        except TypeError:  # not a tensor
            return other(self, args, kwargs)
        handle = repeated.stream_handle
        if handle is not None and handle(repeated.device) != repeated.handle:
            return other(self, args, kwargs)
        thread.busy = True
        start_ns = monotonic_ns()
        try:
            if repeated.is_module_call and self._compiled_call_impl is None:
                return self._call_impl(*args, **kwargs)  # what module_call does, without its frame
            return (original or module.__call__)(self, *args, **kwargs)
        finally:
            spans = repeated.spans
            spans.append(start_ns)
            spans.append(monotonic_ns())
            thread.busy = False
            if len(spans) >= repeated.limit:
                repeated.add_group()
                repeated.is_module_call = module.__call__ is module_call

    return call


def restore_inner() -> bool:
    """After an embedding outside of any step: a model that was inside another may have been called by itself.
    -> whether there was any
    """
    had_any = bool(_inner)
    while _inner:
        kind = _inner.pop()
        _outermost.add(kind)
        del kind.__call__
    return had_any


def _give_own_call(kind: Any, module_call: Any) -> None:
    """A class of models that are only parts of others needs no hook, which would cost 1.5 us per step."""
    if not any(issubclass(outermost, kind) for outermost in _outermost) and "__call__" not in vars(kind):
        kind.__call__ = module_call
        _inner.append(kind)


def _module_call() -> Optional[Any]:
    """The call of torch.nn.Module if it only calls what it has compiled or else `_call_impl`; None in other versions."""
    call = getattr(sys.modules["torch"].nn.Module, "_wrapped_call_impl", None)
    return call if call is not None and call.__code__.co_names == ("_compiled_call_impl", "_call_impl") else None
