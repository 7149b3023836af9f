"""A vLLM worker's report of its own memory. Mixed into its worker class by `worker_extension_cls` (0.7 and later) and
called by LLM.collective_rpc, so that it runs in the process that holds the tensors. Needs no vLLM.
"""

import ctypes
import mmap
import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

from inferscope_memory import driver_index, tensor_bytes
from inferscope_resident import read_memory_field

# Kind without its stage, bytes, GPU by the driver's number (None: host memory), source.
Line = Tuple[str, int, Optional[int], str]


class MemoryExtension:
    """Methods of a worker; their names have a prefix that vLLM does not use, because a clash stops the engine."""

    def inferscope_memory(self) -> Dict[str, Any]:
        """-> {"pid", "rank", "lines"} of this worker"""
        runner: Any = self.model_runner  # type: ignore[attr-defined]
        model = getattr(runner, "model", None)
        caches = list(cache_tensors(self, runner))
        lines: List[Line] = []
        if model is not None:
            for (device, dtype), count in tensor_bytes(model.parameters()).items():
                lines.append(("weights:" + dtype, count, device, "torch: storages of the worker's parameters"))
            for dtype, count in packed_bytes(model).items():
                lines.append(("packed:" + dtype, count, None, "packed for the CPU's kernels: out x in of these layers"))
        for (device, dtype), count in tensor_bytes(caches).items():
            lines.append(("kv_cache:" + dtype, count, device, "torch: storages of the worker's KV cache"))
        host_caches = [tensor for tensor in caches if tensor.device.type == "cpu"]
        if host_caches:
            count_in_memory = resident_bytes(host_caches)
            if count_in_memory is not None:
                lines.append(("kv_resident", count_in_memory, None, "mincore: pages of the KV cache that are in memory"))
        for kind, field in (("rss", "VmRSS"), ("rss_file", "RssFile")):
            now = read_memory_field(field)
            if now is not None:
                lines.append((kind, now, None, "/proc/<pid>/status %s of the worker" % field))
        return {"pid": os.getpid(), "rank": int(getattr(self, "rank", 0)), "lines": lines}


def cache_tensors(worker: Any, runner: Any) -> Iterator[Any]:
    """V1 has the caches in its runner, V0 in a cache engine per pipeline stage; states of Mamba are lists."""
    engines = getattr(worker, "cache_engine", None) or []
    caches = list(getattr(runner, "kv_caches", None) or [])
    for engine in engines if isinstance(engines, list) else [engines]:
        caches.extend(getattr(engine, "gpu_cache", None) or [])
    for cache in caches:
        yield from cache if isinstance(cache, (list, tuple)) else [cache]


def packed_bytes(model: Any) -> Dict[str, int]:
    """dtype -> bytes of linear layers that deleted their weight after a kernel made its own copy."""
    sums: Dict[str, int] = {}
    for layer in model.modules():
        weight = getattr(layer, "weight", None)
        if getattr(weight, "numel", lambda: 1)() != 0 or not hasattr(layer, "cpu_linear"):
            continue
        out = getattr(layer, "output_size_per_partition", None) or getattr(layer, "num_embeddings_per_partition", None)
        width = getattr(layer, "input_size_per_partition", None) or getattr(layer, "embedding_dim", None)
        if out and width:
            dtype = str(weight.dtype).replace("torch.", "")
            sums[dtype] = sums.get(dtype, 0) + int(out) * int(width) * int(weight.element_size())
    return sums


def resident_bytes(tensors: List[Any]) -> Optional[int]:
    """Bytes of the tensors' pages that are in memory, which excludes pages that were never written. None without mincore."""
    try:
        mincore = ctypes.CDLL(None, use_errno=True).mincore
    except (OSError, AttributeError):
        return None
    page, total, seen = mmap.PAGESIZE, 0, set()
    for tensor in tensors:
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), int(storage.nbytes())
        if address in seen or size == 0:
            continue
        seen.add(address)
        begin = address - address % page
        pages = -(-(address + size - begin) // page)
        page_states = (ctypes.c_ubyte * pages)()
        if mincore(ctypes.c_void_p(begin), ctypes.c_size_t(pages * page), page_states) != 0:
            return None
        total += min(size, sum(state & 1 for state in bytes(page_states)) * page)
    return total
