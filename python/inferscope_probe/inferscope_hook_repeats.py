"""The call of a model that is likely to repeat the previous decode step, at little cost.

A step leaves the caches of the CPU cold, so that a call here costs ten times what it costs in a loop. Therefore everything
is in one function, which touches few objects and calls few functions.
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

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced():
            return source.__call__(self, *args, **kwargs)
        thread = local.thread
        if thread.busy:
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
            return source.__call__(self, *args, **kwargs)
        finally:
            steps = repeated.steps
            steps.append((start_ns, monotonic_ns()))
            thread.busy = False
            if len(steps) >= repeated.limit:
                repeated.add_group()

    return call
