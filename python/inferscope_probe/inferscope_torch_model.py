"""Which model a watched program ran, as the `model` line of its record: config, facts, and the shapes of its weights."""

import functools
import re
import sys
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from inferscope_after_import import guarded
from inferscope_record import Recorder

def returns_tokens(model: Any, result: Any) -> bool:
    """Whether the output of a model is tokens, or logits over the vocabulary of one of its embeddings."""
    out = getattr(result, "logits", result)
    while isinstance(out, (tuple, list)) and out:
        out = out[0]
    shape = getattr(out, "shape", ())
    if len(shape) < 2 or not out.is_floating_point():
        return len(shape) > 0
    return any(shape[-1] == getattr(part, "num_embeddings", None) for part in model.modules())


class RecordedModel:
    """The model of the record: the first one that ran if its steps are watched (inferscope_hooks.py); else the first one
    that was built, which is the outermost one, because its parts are built inside.
    """

    def __init__(self) -> None:
        self._model: Optional[Callable[[], Any]] = None
        self._config: Dict[str, Any] = {}
        self.has_run = False
        self._is_recorded = False
        # Further facts of the model, by name.
        self.facts: Dict[str, Any] = {}

    def watch(self, modeling: Any) -> None:
        """`modeling`: transformers.modeling_utils after its import."""
        construct = modeling.PreTrainedModel.__init__

        @functools.wraps(construct)
        def init(model: Any, *args: Any, **kwargs: Any) -> None:
            construct(model, *args, **kwargs)
            if self._model is None:
                guarded(lambda: self._set_model(model), "reading the model's config")

        modeling.PreTrainedModel.__init__ = init

    def _set_model(self, model: Any) -> None:
        self._model = weakref.ref(model)
        to_dict = getattr(getattr(model, "config", None), "to_dict", None)
        self._config = dict(to_dict()) if to_dict is not None else {}

    def note_run(self, model: Any) -> bool:
        """-> whether it is the first model that ran"""
        if self.has_run:
            return False
        self.has_run = True
        self._set_model(model)
        return True

    def record(self, records: Recorder, torch: Any) -> None:
        """Writes the line once; nothing if no model was built."""
        model = self._model() if self._model is not None else None
        if self._is_recorded or self._model is None or (model is None and not self._config):
            return
        self._is_recorded = True
        parameters = list(model.parameters()) if model is not None else []
        config_dtype = self._config.get("dtype") or self._config.get("torch_dtype") or "unknown"
        dtype = str(parameters[0].dtype if parameters else config_dtype).replace("torch.", "")
        stored_dtype = None
        device = _device(model, parameters)
        # The line is written at the end of the first step, where autocast is still enabled.
        if device is not None and torch.is_autocast_enabled(device.type):
            stored_dtype, dtype = dtype, str(torch.get_autocast_dtype(device.type)).replace("torch.", "")
        quantization = (self._config.get("quantization_config") or {}).get("quant_method")
        tensors: List[Dict[str, Any]] = list_weights(model) if model is not None else []
        # Vectors, as of norms; those of linear layers are counted with their weights.
        vector_bytes = sum(
            _tensor_bytes(parameter)
            for part in (model.modules() if model is not None else ())
            if not isinstance(getattr(part, "out_features", None), int)
            for parameter in part._parameters.values()
            if parameter is not None and parameter.dim() < 2
        )
        if model is not None:
            self.facts.update(read_facts(model), stored_dtype=stored_dtype)
        records.model(
            name=str(self._config.get("_name_or_path") or self._config.get("model_type") or type(model).__name__),
            config=self._config,
            dtype=dtype,
            device="unknown" if device is None else str(device),
            weight_bytes=sum(tensor["bytes"] * tensor["count"] for tensor in tensors) + vector_bytes or None,
            quantization=None if quantization is None else str(quantization),
            engine="transformers" if self._config else "torch",
            engine_version=getattr(sys.modules.get("transformers" if self._config else "torch"), "__version__", None),
            threads=int(torch.get_num_threads()),
            tensor_parallel_size=int(getattr(model, "tp_size", None) or 1),
            facts=self.facts,
            tensors=tensors,
        )


def _device(model: Any, parameters: List[Any]) -> Any:
    """Where the model runs: offloaded parameters (accelerate) are on no device between their uses, its buffers are. None if
    unknown.
    """
    buffers = list(model.buffers()) if model is not None else []
    return next((tensor.device for tensor in parameters + buffers if tensor.device.type != "meta"), None)


def read_facts(model: Any) -> Dict[str, Any]:
    """Facts that are neither in config.json nor in the weights; None if they do not apply."""
    modules_by_device: Dict[str, int] = {}
    for device in (getattr(model, "hf_device_map", None) or {}).values():
        modules_by_device[str(device)] = modules_by_device.get(str(device), 0) + 1
    layers = [part for part in model.modules() if hasattr(part, "lora_A") and hasattr(part, "merged")]
    ranks = sorted({int(rank) for part in layers for rank in getattr(part, "r", {}).values()})
    adapters = {"kind": "LoRA", "layers": len(layers), "ranks": ranks, "merged": sum(1 for part in layers if part.merged)}
    return {
        "class": type(model).__name__,
        "attention": getattr(getattr(model, "config", None), "_attn_implementation", None),
        "device_map": modules_by_device or None,
        "adapters": adapters if layers else None,
    }


def list_weights(model: Any) -> List[Dict[str, Any]]:
    """Weights of two or more dimensions; equal ones of numbered layers once with their count. `type`: of a tensor
    that is not plain (torchao); `module`: the class, which shows quantized layers without a plain weight.
    """
    groups: Dict[Tuple[Any, ...], Dict[str, Any]] = {}
    counted_ids: Set[int] = set()
    for path, module in model.named_modules():
        if any(hasattr(part, "out_features") for part in module.children()):
            continue  # a wrapper around a layer, which is visited itself (PEFT)
        for weight_path, tensor, shape, size in _weights_of_module(path, module, counted_ids):
            pattern = re.sub(r"(?:^|(?<=\.))\d+(?=\.|$)", "*", weight_path)
            is_plain = tensor is None or type(tensor).__name__ in ("Parameter", "Tensor")
            line = {
                "path": pattern,
                "module": type(module).__name__,
                "type": None if is_plain else type(tensor).__name__,
                "shape": shape,
                "dtype": "qint8" if tensor is None else str(tensor.dtype).replace("torch.", ""),
                "bytes": size,
            }
            key = (pattern, line["module"], line["type"], tuple(shape), line["dtype"], size)
            group = groups.setdefault(key, dict(line, count=0))
            group["count"] += 1
    return list(groups.values())


def _weights_of_module(path: str, module: Any, counted_ids: Set[int]) -> Iterator[Tuple[str, Any, List[int], int]]:
    """(path, tensor if it is plain or a subclass, shape, bytes) of each weight. A tensor that several modules share has
    bytes only once: `counted_ids` are those of earlier modules, to which this one's are added.
    """
    parameters = [(name, parameter) for name, parameter in module._parameters.items() if parameter is not None]
    sizes = [getattr(module, "out_features", None), getattr(module, "in_features", None)]
    if not all(type(size) is int for size in sizes):
        for name, parameter in parameters:
            if parameter.dim() > 1:
                size = 0 if id(parameter) in counted_ids else _tensor_bytes(parameter)
                counted_ids.add(id(parameter))
                yield ("%s.%s" % (path, name)).lstrip("."), parameter, list(parameter.shape), size
        return
    tensors = [tensor for _, tensor in parameters] + [tensor for tensor in module._buffers.values() if tensor is not None]
    # Without tensors, the weight is in a C++ object, with one byte per value.
    packed_bytes = 0 if tensors else sizes[0] * sizes[1]
    size = packed_bytes + sum(_tensor_bytes(tensor) for tensor in tensors if id(tensor) not in counted_ids)
    counted_ids.update(map(id, tensors))
    weight = getattr(module, "weight", None)
    yield path, weight if hasattr(weight, "dtype") else None, sizes, size


def _tensor_bytes(tensor: Any) -> int:
    """For a tensor subclass (torchao), the bytes of the tensors that it wraps; for one divided among ranks (DTensor), those of
    all parts.
    """
    local = getattr(tensor, "_local_tensor", None)
    if local is not None and local.numel() > 0:
        return _tensor_bytes(local) * int(tensor.numel()) // int(local.numel())
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        return int(tensor.numel() * tensor.element_size())
    return sum(_tensor_bytes(getattr(tensor, name)) for name in flatten()[0])
