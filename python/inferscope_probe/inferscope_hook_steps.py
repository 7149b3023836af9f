"""Classifies a model call as prefill or decode by the shapes of its query and its cache. Needs no torch."""

from typing import Any, Optional, Tuple

# Caches with a shape that shows their length. Static caches count on the device, so their tokens are counted here.
_DYNAMIC_CACHES = frozenset(("DynamicCache", "OffloadedCache", "QuantizedCache", "QuantoQuantizedCache", "HQQQuantizedCache"))
# A query after the first decode step that is at most this long verifies drafts; it is not a chunk of a prompt.
_MAX_DRAFTS = 16


class Sequence:
    """A call of generate, or, in the program's own loop, the calls that follow a prefill."""

    def __init__(self, iteration: int, speculative: bool = False) -> None:
        self.iteration, self.speculative = iteration, speculative
        self.steps = {"prefill": 0, "decode": 0}
        # Batch and query length of the last call.
        self.batch = self.length = 0
        # Tokens written to a cache that does not report its length; None if its start was not observed.
        self.cached_tokens: Optional[int] = 0

    def advance(self, batch: int, length: int, past: Optional[int]) -> None:
        self.batch, self.length, self.cached_tokens = batch, length, None if past is None else past + length

    def is_extended_by(self, batch: int, length: int) -> bool:
        """Whether a call computes the whole prefix again for one more token: a decode step without a cache."""
        return batch == self.batch and length == self.length + 1


def classify_call(
    sequence: Optional[Sequence], batch: int, length: int, cache: Any, is_encoded: bool, is_generating: bool
) -> Tuple[str, bool, int]:
    """Classifies a call with a query of `length` tokens. -> (kind, whether a sequence starts, tokens in the cache
    before it). `is_encoded`: a decoder after its encoder ran; `is_generating`: inside generate, which starts its
    sequence itself.
    """
    cache_length = _cache_length(cache)
    if cache_length is not None:
        past = cache_length
    elif sequence is None or (is_encoded and sequence.steps["decode"] == 0):
        past = 0
    else:
        past = sequence.cached_tokens or 0
    if sequence is None or sequence.steps["prefill"] == 0:
        recomputes = False
        is_decode = past > 0 and length == 1 and not is_generating
    else:
        recomputes = cache is None and sequence.is_extended_by(batch, length)
        if past == 0 or (cache_length is None and length > 1 and not is_generating):
            is_decode = recomputes
        else:
            verifies = sequence.speculative or (sequence.steps["decode"] > 0 and length <= _MAX_DRAFTS)
            is_decode = length == 1 or verifies
    if is_encoded:
        is_decode = length == 1 or past > 0 or recomputes
    starts = not is_decode and not is_generating and not is_encoded and (past == 0 or cache_length is None)
    return "decode" if is_decode else "prefill", starts, (cache_length or 0) if starts else past


def classify_plain_call(
    sequence: Optional[Sequence], batch: int, length: int, position: Optional[int], is_causal: Optional[bool]
) -> Tuple[str, bool, Optional[int]]:
    """Like classify_call for a call without a visible cache. -> (kind, whether a sequence starts, tokens before it;
    None: unknown). `position`: from the program's arguments; `is_causal`: whether the model generates tokens (None:
    not known yet).
    """
    if is_causal is False:
        return "prefill", True, 0
    if position is not None:
        is_decode = length == 1 and position > 0
        return "decode" if is_decode else "prefill", position == 0 or sequence is None, position
    if length == 1:
        continues = sequence is not None and sequence.batch == batch
        return "decode", False, sequence.cached_tokens if continues else None  # type: ignore[union-attr]
    recomputes = sequence is not None and sequence.is_extended_by(batch, length)
    return ("decode", False, 0) if recomputes else ("prefill", True, 0)


def _cache_length(cache: Any) -> Optional[int]:
    """Tokens in a cache, if known without asking the device."""
    if cache is None:
        return 0
    if isinstance(cache, tuple):
        return int(cache[0][0].shape[-2]) if cache else 0
    cache = getattr(cache, "self_attention_cache", cache)
    if type(cache).__name__ not in _DYNAMIC_CACHES:
        return None
    try:
        length = cache.get_seq_length()
    except ValueError:  # no layer has attention
        return None
    return length if type(length) is int else None
