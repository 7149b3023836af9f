"""Batches of transformers' continuous batching (`generate_batch`, `transformers serve`) as steps of the record.

Its model calls have the tokens of all requests in one row, and its CUDA graphs have padded sizes: the requests of a
batch, which the host knows, show what it computes.
"""

import functools
import sys
import time
from typing import Any, List, Tuple

import inferscope_hook_calls as calls
import inferscope_record
from inferscope_hook_calls import fail, is_silent
from inferscope_hook_threads import this_thread
from inferscope_hook_times import Step


def watch_batches(module: Any) -> None:
    """`module`: transformers.generation.continuous_batching.model_runner after its import."""
    runner = module.ModelRunner
    compute_batch, warm_up = runner.compute_batch, runner.warmup

    @functools.wraps(compute_batch)
    def compute(self: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        thread = this_thread()
        if thread.busy or is_silent():
            return compute_batch(self, model, *args, **kwargs)
        close = None
        try:
            close = _open_batch(self, model)
        except Exception as error:
            fail("reading a batch", error)
        if close is None:
            return compute_batch(self, model, *args, **kwargs)
        thread.busy = True
        try:
            return compute_batch(self, model, *args, **kwargs)
        finally:
            thread.busy = False
            end_ns = time.monotonic_ns()
            try:
                close(end_ns)
            except Exception as error:
                fail("recording a batch", error)

    @functools.wraps(warm_up)
    def warmup(self: Any, *args: Any, **kwargs: Any) -> Any:
        if this_thread().busy or is_silent():
            return warm_up(self, *args, **kwargs)
        return calls.run_stage("warmup", warm_up, (self, *args), kwargs)

    runner.compute_batch, runner.warmup = compute, warmup


def _open_batch(runner: Any, model: Any) -> Any:
    """-> a function that closes the step, with the time of its end"""
    tensors = runner.inputs_and_outputs
    pairs = getattr(tensors, "io_pairs", None)  # of the asynchronous mode
    requests = (tensors if pairs is None else pairs[tensors.current_pair].host_io).requests_in_batch
    kind, new, context, starts = _sizes_of(requests)
    calls.begin_calls()
    sequence = this_thread().sequence
    if starts or sequence is None:
        sequence = calls.start_sequence(False)
    number = sequence.steps.get(kind, 0)
    sequence.steps[kind] = number + 1
    _, replays = runner._get_forward_fn(use_block_table=tensors.use_block_table)
    is_first = (number == 0 and sequence.iteration == 0) or (replays and tensors.get_graph() is None)
    batch, stream = len(requests), tensors.compute_stream
    close_range = events = None
    opener = calls.step_opener()
    start_ns = time.monotonic_ns()
    if opener is not None:
        how = "first" if is_first else "graph" if replays else "hook"
        close_range = opener(inferscope_record.hook_name(kind, sequence.iteration, number, how, batch, new, context))
    elif stream is not None:
        with sys.modules["torch"].cuda.stream(stream):
            events = calls.times.open(stream.device)

    def close(end_ns: int) -> None:
        if close_range is not None:
            close_range()
        else:
            if events is not None:
                calls.times.record(events.after, events.stream)
            calls.times.add_step(Step(kind, sequence.iteration, number, start_ns, batch, new, context, is_first, None, events), end_ns)
            calls.times.flush_if_due()
        calls.note_model(model, "PagedAttentionCache")

    return close


def _sizes_of(requests: List[Any]) -> Tuple[str, int, int, bool]:
    """-> (kind, new tokens, tokens attended to, whether all requests are new). The positions of the requests are those
    after the batch.
    """
    new = context = decoding = fresh = 0
    for request in requests:
        query, end = request.query_length, request.state.position_offset
        new += query
        context += end
        decoding += query == 1 and end > 1
        fresh += end == query
    kind = "decode" if decoding == len(requests) else "mixed" if decoding > 0 else "prefill"
    return kind, new, context, fresh == len(requests)
