"""The model that vLLM runs, as the `model` line of the record. Needs no vLLM."""

import json
import os
import sys
from typing import Any, Optional

from inferscope_record import Recorder, rank


def record_vllm_model(
    records: Recorder, config: Any, name: str, device: str, weights: str, version: Optional[str], tensor_parallel_size: int,
    scheduler: Any,
) -> None:
    """`config`: a vllm.config.ModelConfig; `scheduler`: a SchedulerConfig."""
    asynchronous = getattr(scheduler, "async_scheduling", None)  # not in old versions
    hf = config.hf_config.to_dict()
    hf.pop("_name_or_path", None)  # differs between runs
    records.model(
        name=name,
        config=json.loads(json.dumps(hf, default=str)),
        dtype=str(config.dtype).replace("torch.", ""),
        device=device,
        weights=weights,
        quantization=None if config.quantization is None else str(config.quantization),
        engine="vllm",
        engine_version=version,
        tensor_parallel_size=tensor_parallel_size,
        facts={"async_scheduling": None if asynchronous is None else bool(asynchronous), "max_num_seqs": getattr(scheduler, "max_num_seqs", None)},
    )


def record_loaded_model(worker: Any) -> None:
    """The first rank records the model after its worker has loaded it. inferscope's own engine records it itself."""
    if os.environ.get("INFERSCOPE_EXECUTION_ID") or rank() != 0:
        return
    vllm_config = worker.vllm_config
    config = vllm_config.model_config
    device = getattr(getattr(worker, "device", None), "type", None) or getattr(vllm_config.device_config, "device_type", "cuda")
    records = Recorder()
    records.clock()
    record_vllm_model(
        records,
        config,
        name=str(config.served_model_name or config.model) if isinstance(config.model, str) else "unknown",
        device=str(device),
        weights="random" if str(getattr(vllm_config.load_config, "load_format", "")) == "dummy" else "unknown",
        version=getattr(sys.modules.get("vllm"), "__version__", None),
        tensor_parallel_size=int(vllm_config.parallel_config.tensor_parallel_size),
        scheduler=getattr(vllm_config, "scheduler_config", None),
    )
    records.flush()
