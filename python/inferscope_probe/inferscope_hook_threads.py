"""What the hooks know of each thread that calls models."""

from _thread import get_ident
from typing import Any, Dict, List, Optional, Tuple

from inferscope_hook_steps import Sequence
from inferscope_hook_times import RepeatedStep


class ThreadState:
    __slots__ = ("busy", "repeated", "generating", "generator", "sequence", "graph", "embedded_shape", "called_since", "steps")

    def __init__(self) -> None:
        self.busy = False  # inside a step or a load: nested calls belong to it
        self.repeated: Optional[RepeatedStep] = None  # the previous decode step, if the next one is likely to repeat it
        self.generating = 0  # depth of nested calls of generate
        self.generator: Any = None  # the model of the outermost generate
        self.sequence: Optional[Sequence] = None
        self.graph: Any = None  # the CUDA graph that is being captured
        self.embedded_shape: Optional[Tuple[int, ...]] = None  # of the ids passed to an embedding outside of any step
        self.called_since: Optional[List[Any]] = None  # modules called since then
        self.steps = 0  # opened so far

    def stop_repeating(self) -> None:
        repeated, self.repeated = self.repeated, None
        if repeated is not None:
            repeated.stop()


class _Threads(Dict[int, ThreadState]):
    """By number of the thread, because threading.local costs 1 us more after a step. A thread that gets the number of one
    that ended goes on with its state, as if both were one thread.
    """

    def __missing__(self, number: int) -> ThreadState:
        state = self[number] = ThreadState()
        return state


threads = _Threads()


def this_thread() -> ThreadState:
    return threads[get_ident()]


def forget_parent() -> None:
    """In a forked child: the parent's other threads, and its steps that share the next event, stay with the parent."""
    state = this_thread()
    threads.clear()
    threads[get_ident()] = state
    state.repeated = None
