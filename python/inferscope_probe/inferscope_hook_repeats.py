"""The call of a model that is likely to repeat the previous decode step, at little cost.

A step leaves the caches of the CPU cold, so that a call here costs ten times what it costs in a loop. Therefore everything
is in one function, which touches few objects and calls few functions, and which takes the place of torch's own.
"""

import sys
import time
from typing import Any, Callable

from inferscope_hook_calls import local


def repeating(source: Any, other: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """-> a function for `source.__call__`, which is looked up at each call, as Python does, because torch.fx replaces that of
    torch.nn.Module while it traces. `other(self, args, kwargs)`: called if the call repeats no step and is not part of one.
    """
    is_traced = sys.modules["torch"].compiler.is_dynamo_compiling
    monotonic_ns = time.monotonic_ns
    module_call = _module_call()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced():
            return source.__call__(self, *args, **kwargs)
        thread = local.thread
        if thread.busy:
            if source.__call__ is module_call and self._compiled_call_impl is None:
                return self._call_impl(*args, **kwargs)  # what module_call does, without its frame
            return source.__call__(self, *args, **kwargs)
        repeated = thread.repeated
        if repeated is None or repeated.owner_id != id(self) or repeated.cache_id != id(kwargs.get(repeated.cache_name)):
            return other(self, args, kwargs)
        ids = args[0] if args else kwargs.get("input_ids")
        try:
            if (None if ids is None else ids.numel()) != repeated.positions:
                return other(self, args, kwargs)
        except AttributeError:  # not a tensor
            return other(self, args, kwargs)
        handle = repeated.stream_handle
        if handle is not None and handle(repeated.device) != repeated.handle:
            return other(self, args, kwargs)
        thread.busy = True
        start_ns = monotonic_ns()
        try:
            if source.__call__ is module_call and self._compiled_call_impl is None:
                return self._call_impl(*args, **kwargs)
            return source.__call__(self, *args, **kwargs)
        finally:
            ends = repeated.ends
            ends.append(monotonic_ns())
            repeated.starts.append(start_ns)
            thread.busy = False
            if len(ends) >= repeated.limit:
                repeated.add_group()

    return call


def _module_call() -> Any:
    """The call of torch.nn.Module if it only calls what it has compiled or else `_call_impl`; None in other versions."""
    call = getattr(sys.modules["torch"].nn.Module, "_wrapped_call_impl", None)
    return call if call is not None and call.__code__.co_names == ("_compiled_call_impl", "_call_impl") else None
