"""Classifies a model call as prefill or decode by the shapes of its query and its cache. Needs no torch."""

from typing import Any, Optional, Tuple

# Caches with a shape that shows their length; the others (static ones) count on the device, so their tokens are
# counted here.
_DYNAMIC = frozenset(("DynamicCache", "OffloadedCache", "QuantizedCache", "QuantoQuantizedCache", "HQQQuantizedCache"))
# A query after the first decode step that is at most this long verifies drafts; it is not a chunk of a prompt.
_MAX_DRAFTS = 16


class Sequence:
    """A call of generate, or, in the program's own loop, the calls that follow a prefill."""

    def __init__(self, iteration: int, speculative: bool = False) -> None:
        self.iteration, self.speculative = iteration, speculative
        self.steps = {"prefill": 0, "decode": 0}
        self.batch = self.tokens = 0
        # Tokens written to a cache that does not report its length; None if its start was not observed.
        self.counted: Optional[int] = 0

    def advance(self, batch: int, length: int, past: Optional[int]) -> None:
        self.batch, self.tokens, self.counted = batch, length, None if past is None else past + length


def place(
    sequence: Optional[Sequence], batch: int, length: int, cache: Any, encoded: bool, generating: bool
) -> Tuple[str, bool, int]:
    """Classifies a call with a query of `length` tokens. -> (kind, whether a sequence starts, tokens in the cache
    before it). `encoded`: a decoder after its encoder ran; `generating`: inside generate, which starts its
    sequence itself.
    """
    cache_length = _length(cache)
    counted = 0 if sequence is None or (encoded and sequence.steps["decode"] == 0) else sequence.counted or 0
    past = counted if cache_length is None else cache_length
    fresh = sequence is None or sequence.steps["prefill"] == 0
    # The whole prefix is computed again for one more token: a decode step of a loop without a cache.
    again = not fresh and cache is None and batch == sequence.batch and length == sequence.tokens + 1  # type: ignore[union-attr]
    drafts = sequence is not None and (sequence.speculative or (sequence.steps["decode"] > 0 and length <= _MAX_DRAFTS))
    if encoded:
        decodes = length == 1 or past > 0 or again
    elif fresh:
        decodes = past > 0 and length == 1 and not generating
    elif past == 0 or (cache_length is None and length > 1 and not generating):
        decodes = again
    else:
        decodes = length == 1 or drafts
    begins = not decodes and not generating and not encoded and (past == 0 or cache_length is None)
    return "decode" if decodes else "prefill", begins, (cache_length or 0) if begins else past


def place_plain(
    sequence: Optional[Sequence], batch: int, length: int, position: Optional[int], causal: Optional[bool]
) -> Tuple[str, bool, Optional[int]]:
    """Like the above for a call without a visible cache. -> (kind, whether a sequence starts, tokens before it; None:
    unknown). `position`: from the program's arguments; `causal`: whether the model generates tokens (None: not
    known yet).
    """
    if causal is False:
        return "prefill", True, 0
    if position is not None:
        decodes = length == 1 and position > 0
        return "decode" if decodes else "prefill", position == 0 or sequence is None, position
    if length == 1:
        known = sequence is not None and sequence.batch == batch
        return "decode", False, sequence.counted if known else None  # type: ignore[union-attr]
    # The whole prefix is computed again for one more token.
    again = sequence is not None and sequence.batch == batch and length == sequence.tokens + 1
    return ("decode", False, 0) if again else ("prefill", True, 0)


def _length(cache: Any) -> Optional[int]:
    """Tokens in a cache, if known without asking the device."""
    if cache is None:
        return 0
    if isinstance(cache, tuple):
        return int(cache[0][0].shape[-2]) if cache else 0
    cache = getattr(cache, "self_attention_cache", cache)
    length = cache.get_seq_length() if type(cache).__name__ in _DYNAMIC else None
    return length if type(length) is int else None
