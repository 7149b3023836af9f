"""What a module takes by its arguments: token ids, or hidden states."""

import sys
import weakref
from typing import Any, Dict, List, Optional, Tuple

# By id of a module: the module, and whether it holds an embedding.
_embeddings: Dict[int, Tuple[Any, bool]] = {}

# Minimum share of the parameters of the modules between two embeddings for a module to be the model.
_MAIN_SHARE = 0.8

# Names of the cache among the arguments and results of models of transformers: of attention, or of another state.
_CACHES = ("past_key_values", "cache_params", "state")


def cache_of(values: Dict[str, Any]) -> Any:
    """The cache among the arguments or results of a call."""
    for name in _CACHES:
        cache = values.get(name)
        if cache is not None:
            return cache
    return None


def cache_name(values: Dict[str, Any], cache: Any) -> str:
    """The name of the argument that is this cache; any of them if there is none."""
    return next((name for name in _CACHES if cache is not None and values.get(name) is cache), _CACHES[0])


def holds_embedding(module: Any) -> bool:
    """Whether one of its parts is an embedding, by name, because parallel engines have their own classes."""
    entry = _embeddings.get(id(module))
    if entry is None or entry[0]() is not module:
        holds = any("embed" in type(part).__name__.lower() for part in module.modules())
        entry = _embeddings[id(module)] = (weakref.ref(module), holds)
    return entry[1]


def first_tensor(args: Any, kwargs: Any, dimensions: int) -> Any:
    """The first tensor with this number of dimensions: token ids have two, hidden states three."""
    torch = sys.modules["torch"]
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor) and value.dim() == dimensions:
            holds_integers = not value.is_floating_point() and value.dtype is not torch.bool
            if holds_integers == (dimensions == 2):
                return value
    return None


def receives_hidden_states(module: Any, args: Any, kwargs: Any) -> bool:
    """Whether a module without an embedding takes hidden states in a process of several: a later stage of a pipeline."""
    distributed = sys.modules["torch"].distributed
    return (
        distributed.is_available()
        and distributed.is_initialized()
        and distributed.get_world_size() > 1
        and next(module.children(), None) is not None
        and first_tensor(args, kwargs, 3) is not None
        and not holds_embedding(module)
    )


def main_module(called: List[Any]) -> Any:
    """The module with most of the parameters of all; None if they are spread over several."""
    sizes = [sum(p.numel() for p in module.parameters()) for module in called]
    return called[sizes.index(max(sizes))] if max(sizes) >= _MAIN_SHARE * sum(sizes) else None


def count_padding(mask: Any) -> Optional[int]:
    """Padding positions of a batch, if the host knows them."""
    return int(mask.numel() - mask.count_nonzero().item()) if is_mask(mask, "cpu") else None


def is_mask(mask: Any, device: str) -> bool:
    """Whether it has a value for each position of each sequence."""
    return isinstance(mask, sys.modules["torch"].Tensor) and mask.dim() == 2 and mask.device.type == device and not mask.dtype.is_floating_point
