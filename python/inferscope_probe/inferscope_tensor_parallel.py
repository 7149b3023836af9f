"""Tensor parallelism by transformers' own plan (`tp_plan="auto"`): one process (rank) per GPU, started by torchrun.
All ranks run the same repeats. Rank 0 makes the decisions that depend on the clock or a signal, because ranks that
decide differently would wait for each other forever. Only rank 0 reports times and progress; each rank reports its own memory.
"""

import json
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, Dict, Tuple

from inferscope_points import silence
from inferscope_record import recorder

# Types of lines that ranks other than 0 record.
_TYPES_OF_OTHER_RANKS = ("memory", "clock", "error")
_CODES = {"float16": "F16", "bfloat16": "BF16", "float32": "F32"}


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


class Group:
    """The ranks of this run. `device`: cpu or cuda."""

    def __init__(self, device: str) -> None:
        self.rank, self.size = int(os.environ["RANK"]), world_size()
        self.device = device if device == "cpu" else "cuda:%s" % os.environ.get("LOCAL_RANK", "0")
        if self.rank != 0:
            silence()
            recorder().keep_only(_TYPES_OF_OTHER_RANKS)

    def broadcast(self, seconds: float, stopping: bool) -> Tuple[float, bool]:
        """-> rank 0's time and whether it stops, on every rank"""
        import torch
        import torch.distributed

        shared = torch.tensor([seconds, float(stopping)], dtype=torch.float64, device=self.device)
        torch.distributed.broadcast(shared, 0)
        values = shared.tolist()
        return values[0], values[1] > 0

    def record_all_types(self) -> None:
        """Lets this rank record all types of lines: it failed, and the others do not know."""
        recorder().keep_only(None)


def trained_model(source: str, dtype: str, attn: str) -> Any:
    """from_pretrained with the model's own plan."""
    import torch
    import transformers

    try:
        from transformers.distributed import DistributedConfig

        plan = {"distributed_config": DistributedConfig(tp_plan="auto", tp_size=world_size())}
    except (ImportError, TypeError):  # before 5.x
        plan = {"tp_plan": "auto"}
    integration = sys.modules.get("transformers.integrations.accelerate")
    is_available = getattr(integration, "is_accelerate_available", None)
    if is_available is not None and not is_available():
        # transformers requires the package accelerate but does not use it here: each rank puts its part on one device.
        integration.is_accelerate_available = lambda *_: True
    try:
        return transformers.AutoModelForCausalLM.from_pretrained(
            source, dtype=getattr(torch, dtype), attn_implementation=attn, **plan
        )
    finally:
        if is_available is not None:
            integration.is_accelerate_available = is_available


def random_model(config: Any, dtype: str, attn: str, seed: int) -> Any:
    """A model with random weights, divided by its plan. The plan is applied only when a checkpoint is loaded, so an empty
    checkpoint is loaded, and its weights are filled afterwards.
    """
    import torch

    with tempfile.TemporaryDirectory(prefix="inferscope-tp-") as folder:
        write_empty_checkpoint(config, dtype, Path(folder))
        model = trained_model(folder, dtype, attn)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
            if local.dim() < 2:
                local.fill_(1.0 if "norm" in name else 0.0)
                continue
            generator = torch.Generator(local.device).manual_seed(zlib.crc32(name.encode()) + seed)
            local.normal_(0.0, 0.02, generator=generator)
    return model


def write_empty_checkpoint(config: Any, dtype: str, folder: Path) -> None:
    """Writes model.safetensors (u64 length, JSON header, data) with the right shapes; the data is a hole in the file, which
    reads as zeros.
    """
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(config)
    tied = getattr(empty, "all_tied_weights_keys", None) or getattr(empty, "_tied_weights_keys", None) or []
    header: Dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in empty.state_dict().items():
        if config.tie_word_embeddings and name in tied:
            continue
        size = tensor.numel() * getattr(torch, dtype).itemsize
        header[name] = {"dtype": _CODES[dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + offset)
    config.save_pretrained(folder)
