"""Describes a batch of vLLM's worker (V1). Needs no vLLM.

A batch is named as in vLLM 0.26, with more detail:
execute_<tokens>_context_<requests>(sq<new>sk<attended>…)_generation_<requests>(…).
"""

from typing import Any, Dict, Optional, Tuple

from inferscope_batches import RecordedBatches
from inferscope_ranges import Close


def batch_name(scheduled: Any) -> Optional[str]:
    """The batch of a SchedulerOutput; None if nothing is scheduled. In vLLM's short form if the computed tokens are
    not known.
    """
    if not scheduled.num_scheduled_tokens:
        return None
    computed = _computed_tokens(scheduled)
    context, generation = _count_requests(scheduled, computed or {})
    if computed is None:
        return "execute_context_%d(%d)_generation_%d(%d)" % (context[:2] + generation[:2])
    # As in gpu_worker.py of 0.26.
    return "execute_%d_context_%d(sq%dsk%dsqsq%dsqsk%d)_generation_%d(sq%dsk%dsqsq%dsqsk%d)" % (
        (context[1] + generation[1],) + context + generation
    )


# (requests, sq, sk, sqsq, sqsk): requests, their queries, the keys that these attend to, sums of sq * sq and of sq * sk.
RequestCounts = Tuple[int, int, int, int, int]


def _count_requests(scheduled: Any, computed: Dict[str, int]) -> Tuple[RequestCounts, RequestCounts]:
    """-> counts in prefill and in generation. A request is in prefill until its first token, as in vLLM."""
    new = {request.req_id for request in scheduled.scheduled_new_reqs}
    in_prefill = getattr(scheduled.scheduled_cached_reqs, "is_context_phase", None)
    context, generation = [0] * 5, [0] * 5
    for request, count in scheduled.num_scheduled_tokens.items():
        # Where vLLM does not report it: a chunk of a prompt has many tokens, a step of generation one or a few drafts.
        first = request in new or (in_prefill(request) if in_prefill else count > 16)
        sums = context if first else generation
        keys = computed.get(request, 0) + count
        for index, amount in enumerate((1, count, keys, count * count, count * keys)):
            sums[index] += amount
    return tuple(context), tuple(generation)  # type: ignore[return-value]


def _computed_tokens(scheduled: Any) -> Optional[Dict[str, int]]:
    """Tokens in the cache by scheduled request; None if this version does not report them."""
    try:
        computed = {request.req_id: int(request.num_computed_tokens) for request in scheduled.scheduled_new_reqs}
        cached = scheduled.scheduled_cached_reqs
        computed.update(zip(cached.req_ids, (int(count) for count in cached.num_computed_tokens)))
    except (AttributeError, TypeError, ValueError):
        return None
    return computed if all(request in computed for request in scheduled.num_scheduled_tokens) else None


class VllmBatches(RecordedBatches):
    """Stage lines of one worker."""

    def __init__(self) -> None:
        # "hooks" would make the first iterations warm-up, but vLLM warms up itself.
        super().__init__("vLLM", marked_by="program")

    def open_scheduled(self, scheduled: Any, device: Any) -> Optional[Close]:
        """The batch of a SchedulerOutput; None if nothing is scheduled. An iteration starts with a batch of only new requests."""
        if not scheduled.num_scheduled_tokens:
            return None
        computed = _computed_tokens(scheduled)
        context, generation = _count_requests(scheduled, computed or {})
        new = {request.req_id for request in scheduled.scheduled_new_reqs}
        starts_iteration = all(request in new for request in scheduled.num_scheduled_tokens)
        requests, tokens, attended = (context[index] + generation[index] for index in range(3))
        kind = "decode" if context[0] == 0 else "mixed" if generation[0] > 0 else "prefill"
        return self.open_batch(kind, requests, tokens, None if computed is None else attended, starts_iteration, device)
