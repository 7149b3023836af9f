"""The memory of a PyTorch process, as the process itself reports it: `memory` lines of the record, for `inferscope memory`.

Kinds of these lines are `<what>:<stage>`, followed by `:<dtype>` where tensors are counted: weights:load:float16,
kv_cache:decode:float16, max_allocated:prefill, reserved:post_warmup, allocation:prefill:<place in the program>. `device` is
the GPU as the driver counts it; null is host memory. Standard library and torch only.
"""

import gc
import os
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from inferscope_record import recorder
from inferscope_resident import read_memory_field

# Maximum places in a snapshot, largest first; the others are one line.
MAX_PLACES = 30
# Maximum entries of the allocator's history, each with a stack: a prefill of 100 layers has several thousand.
MAX_HISTORY = 200_000

Bytes = Dict[Tuple[Optional[int], str], int]


def driver_index(index: Optional[int]) -> Optional[int]:
    """The driver's number of torch's device `index`, which CUDA_VISIBLE_DEVICES renumbers if it contains numbers."""
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    if index is not None and index < len(names) and all(name.isdigit() for name in names):
        return int(names[index])
    return index


def tensor_bytes(tensors: Iterable[Any]) -> Bytes:
    """(device, dtype) -> bytes of their storages, each counted once; for a distributed tensor this rank's part."""
    sums: Bytes = {}
    seen = set()
    for tensor in tensors:
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        if local.device.type == "meta":
            continue
        storage = local.untyped_storage()
        place = (str(local.device), storage.data_ptr())
        if place in seen:
            continue
        seen.add(place)
        device = None if local.device.type == "cpu" else driver_index(local.device.index or 0)
        key = (device, str(local.dtype).replace("torch.", ""))
        sums[key] = sums.get(key, 0) + int(storage.nbytes())
    return sums


def cache_tensors(cache: Any) -> Iterator[Any]:
    """Tensors in a transformers Cache with any kind of layers: keys and values, states of linear attention."""
    import torch

    for layer in getattr(cache, "layers", None) or ([] if cache is None else [cache]):
        for value in vars(layer).values():
            if isinstance(value, dict):
                items = list(value.values())
            else:
                items = value if isinstance(value, (list, tuple)) else [value]
            yield from (item for item in items if isinstance(item, torch.Tensor) and item.dim() > 1)


class MemoryWatch:
    """Records the memory of model, KV cache and allocator after each stage, and the peak within the stage."""

    def __init__(self, device: str, snapshot: bool = False) -> None:
        self.gpu, self.snapshot = device != "cpu", snapshot
        # Peak of all stages since `reset_peak`, for the engine's memory of a point: a stage resets the allocator's own.
        self.peak_allocated = 0
        # By device: peaks of allocated and reserved bytes over the run.
        self._peaks: Dict[int, List[int]] = {}
        # Stages with a snapshot; each gets one.
        self._snapshot_stages: Set[str] = set()
        if not self.gpu:
            self._record_resident("baseline", "baseline")

    def record_alone(self, device: str, dtype: str) -> None:
        """Memory of a rank before it joins the others: its context with the first kernels, so that the memory of
        collectives is known separately.
        """
        if not self.gpu:
            return
        import torch

        torch.cuda.set_device(torch.device(device))
        square = torch.zeros(64, 64, dtype=getattr(torch, dtype), device=device)
        (square @ square).softmax(-1).sum().item()
        self.record_stage("alone")
        recorder().flush()

    def record_load(self, model: Any) -> None:
        for name, tensors in (("weights", model.parameters()), ("buffers", model.buffers())):
            for (device, dtype), count in tensor_bytes(tensors).items():
                recorder().memory("%s:load:%s" % (name, dtype), count, "torch: storages of the model's %s" % name, device)
        self.record_stage("load")

    def before_prefill(self) -> None:
        self._start_history("prefill")

    def after_prefill(self, cache: Any) -> None:
        self._record_snapshot("prefill")
        self.record_stage("prefill", cache)

    def before_last_decode(self) -> None:
        """The last decode step has the longest cache."""
        self._start_history("decode")

    def after_last_decode(self, cache: Any) -> None:
        self._record_snapshot("decode")
        self.record_stage("decode", cache)

    def record_stage(self, stage: str, cache: Any = None) -> None:
        """The current memory; `max_allocated` and `max_reserved` cover the time since the previous stage."""
        for (device, dtype), count in tensor_bytes(cache_tensors(cache)).items():
            source = "torch: storages in %s" % type(cache).__name__
            recorder().memory("kv_cache:%s:%s" % (stage, dtype), count, source, device)
        if not self.gpu:
            self._record_resident(stage, stage if stage == "post_warmup" else None)
            return
        import torch

        for index in range(torch.cuda.device_count()):
            stats = torch.cuda.memory_stats(index)
            peaks = (stats.get("allocated_bytes.all.peak", 0), stats.get("reserved_bytes.all.peak", 0))
            if peaks[1] == 0:
                continue
            device = driver_index(index)
            counts = {
                "allocated": stats.get("allocated_bytes.all.current"),
                "requested": stats.get("requested_bytes.all.current"),
                "reserved": stats.get("reserved_bytes.all.current"),
                "inactive_split": stats.get("inactive_split_bytes.all.current"),
                "max_allocated": peaks[0],
                "max_reserved": peaks[1],
            }
            for kind, count in counts.items():
                if count is not None:
                    recorder().memory("%s:%s" % (kind, stage), int(count), "torch.cuda.memory_stats", device)
            free, total = torch.cuda.mem_get_info(index)
            recorder().memory("device_used:%s" % stage, int(total - free), "torch.cuda.mem_get_info", device)
            before = self._peaks.get(index, [0, 0])
            self._peaks[index] = [max(before[0], peaks[0]), max(before[1], peaks[1])]
            if index == torch.cuda.current_device():
                self.peak_allocated = max(self.peak_allocated, int(peaks[0]))
            torch.cuda.reset_peak_memory_stats(index)

    def record_warm(self, caches: Iterable[Any]) -> None:
        """After warm-up: the memory of an idle model. `caches`: those that stay between repeats."""
        gc.collect()
        kept_tensors = [tensor for cache in caches for tensor in cache_tensors(cache)]
        for (device, dtype), count in tensor_bytes(kept_tensors).items():
            recorder().memory("kv_cache:post_warmup:%s" % dtype, count, "torch: storages in kept caches", device)
        self.record_stage("post_warmup")
        if not self.gpu:
            return
        import torch

        pools: Dict[int, List[int]] = {}
        for segment in torch.cuda.memory_snapshot():
            if tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0):
                sums = pools.setdefault(segment["device"], [0, 0])
                sums[0] += int(segment["total_size"])
                sums[1] += int(segment.get("allocated_size", 0))
        for index, (total, allocated) in pools.items():
            source = "torch.cuda.memory_snapshot: segments of private pools"
            recorder().memory("graph_pool:post_warmup", total, source, driver_index(index))
            # memory_allocated also counts a graph's workspace and the memory that it frees.
            recorder().memory("graph_allocated:post_warmup", allocated, source, driver_index(index))

    def record_end(self) -> None:
        """At the end of the run: the peak of all stages."""
        self.record_stage("end")
        for index, (allocated, reserved) in self._peaks.items():
            for kind, count, name in (("max_allocated", allocated, "memory_allocated"), ("max_reserved", reserved, "memory_reserved")):
                recorder().memory(kind, int(count), "torch.cuda.max_" + name, driver_index(index), "peak")
        if not self.gpu:
            peak = read_memory_field("VmHWM")
            if peak is not None:
                recorder().memory("peak_rss", peak, "/proc/<pid>/status VmHWM", None, "peak")
        recorder().flush()

    def reset_peak(self) -> None:
        self.peak_allocated = 0

    def _record_resident(self, stage: str, point: Optional[str]) -> None:
        now = read_memory_field("VmRSS")
        if now is not None:
            recorder().memory("rss:%s" % stage, now, "/proc/<pid>/status VmRSS", None, point)

    def _start_history(self, stage: str) -> None:
        import torch

        if self.gpu and self.snapshot and stage not in self._snapshot_stages:
            self._allocated_before = torch.cuda.memory_allocated()
            torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="python", max_entries=MAX_HISTORY)

    def _record_snapshot(self, stage: str) -> None:
        import torch

        if not self.gpu or not self.snapshot or stage in self._snapshot_stages:
            return
        self._snapshot_stages.add(stage)
        try:
            trace = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
        except Exception as error:  # a private function of torch: without it only the table is missing
            sys.stderr.write("inferscope: no snapshot of the allocator: %s\n" % error)
            return
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)
        device = driver_index(torch.cuda.current_device())
        for place, (count, blocks) in live_at_peak(trace, self._allocated_before).items():
            kind = "allocation:%s:%s" % (stage, place)
            recorder().memory(kind, count, "torch.cuda.memory._snapshot", device, blocks=blocks)


def live_at_peak(trace: List[Dict[str, Any]], before: int) -> Dict[str, Tuple[int, int]]:
    """Place in the program -> bytes and blocks at the peak; `before`: bytes allocated when the trace starts."""
    allocated, peak, events_until_peak = before, before, 0
    for number, event in enumerate(trace):
        if event["action"] == "alloc":
            allocated += event["size"]
        elif event["action"] == "free_requested":
            allocated -= event["size"]
        if allocated > peak:
            peak, events_until_peak = allocated, number + 1
    live: Dict[int, Tuple[int, str]] = {}
    older = before
    for event in trace[:events_until_peak]:
        if event["action"] == "alloc":
            live[event["addr"]] = (event["size"], place_of(event.get("frames") or []))
        elif event["action"] == "free_requested" and live.pop(event["addr"], None) is None:
            older -= event["size"]
    sums: Dict[str, List[int]] = {}
    for size, place in live.values():
        entry = sums.setdefault(place, [0, 0])
        entry[0] += size
        entry[1] += 1
    ordered = sorted(sums.items(), key=lambda item: -item[1][0])
    by_place = {place: (entry[0], entry[1]) for place, entry in ordered[:MAX_PLACES]}
    others = ordered[MAX_PLACES:]
    if others:
        by_place["%d other places" % len(others)] = (sum(entry[0] for _, entry in others), sum(entry[1] for _, entry in others))
    by_place["held before (model, earlier cache)"] = (older, 0)
    return by_place


def place_of(frames: List[Dict[str, Any]]) -> str:
    """`modeling_llama.py:172 forward, in linear.py`: the innermost frame outside of torch, and torch's frame below
    it.
    """
    import torch

    torch_folder = os.path.dirname(torch.__file__).replace("\\", "/") + "/"
    inner = None
    for frame in frames:
        name = frame["filename"].replace("\\", "/")
        if name.startswith((torch_folder, "<")):
            inner = inner or name.rsplit("/", 1)[-1]
            continue
        place = "%s:%d %s" % (name.rsplit("/", 1)[-1], frame["line"], frame["name"])
        return place if inner is None else "%s, in %s" % (place, inner)
    return inner or "unknown place"
