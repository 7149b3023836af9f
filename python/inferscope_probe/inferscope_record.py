"""The recording protocol (docs/reference/recording-protocol.md) and stage marks, for Python workloads.

Standard library only; torch is used only if the program has already imported it. Lines stay in memory until `flush`
appends them, which belongs between timed regions. Without INFERSCOPE_RECORD nothing is written, but stages are still
marked.
"""

import atexit
import contextlib
import json
import os
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from inferscope_ranges import range_opener


def rank() -> int:
    """Rank in the process group: torch.distributed's, else torchrun's RANK, else 0."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
        return int(os.environ.get("RANK", "0"))
    except (RuntimeError, ValueError):
        return 0


def at_process_end(action: Callable[[], None]) -> None:
    """Calls `action` when this process ends, possibly twice; also in a process that multiprocessing forked, which skips atexit."""
    atexit.register(action)
    from multiprocessing import util  # imports subprocess, which ncu's embedded Python lacks

    util.Finalize(None, action, exitpriority=100)


class Recorder:
    """Collects record lines of one process. `t_ns` and `end_ns` are time.monotonic_ns()."""

    def __init__(self, path: Optional[str] = None) -> None:
        self.path = path or os.environ.get("INFERSCOPE_RECORD")
        # Lines to be written, or formatted text of several lines.
        self._lines: List[Any] = []
        self._types: Optional[Sequence[str]] = None

    def keep_only(self, types: Optional[Sequence[str]]) -> None:
        """Drops later lines of other types; None keeps all again."""
        self._types = types

    def add_line(self, type_: str, t_ns: Optional[int], **fields: Any) -> None:
        if self.path is None or (self._types is not None and type_ not in self._types):
            return
        line: Dict[str, Any] = {
            "v": 1,
            "type": type_,
            "execution_id": os.environ.get("INFERSCOPE_EXECUTION_ID", "run"),
            "rank": rank(),
            "pid": os.getpid(),
            "t_ns": time.monotonic_ns() if t_ns is None else t_ns,
        }
        line.update(fields)
        self._lines.append(line)

    def clock(self) -> None:
        """A (monotonic, realtime) pair, which relates this recorder's clock to wall time."""
        self.add_line("clock", None, realtime_ns=str(time.time_ns()))

    def model(
        self,
        name: str,
        config: Dict[str, Any],
        dtype: str,
        device: str,
        weights: str = "unknown",
        weight_bytes: Optional[int] = None,
        quantization: Optional[str] = None,
        engine: str = "transformers",
        engine_version: Optional[str] = None,
        threads: Optional[int] = None,
        tensor_parallel_size: int = 1,
        **more: Any,
    ) -> None:
        """`config` is the model's config.json; `weights` is random, trained or unknown; `more`: facts, tensors."""
        self.add_line(
            "model",
            None,
            name=name,
            config=config,
            dtype=dtype,
            quantization=quantization,
            weights=weights,
            weight_bytes=weight_bytes,
            tensor_parallel_size=tensor_parallel_size,
            engine={"name": engine, "version": engine_version},
            device=device,
            threads=threads,
            **more,
        )

    def stage(
        self,
        kind: str,
        t_ns: int,
        end_ns: int,
        iteration: Optional[int] = None,
        step: Optional[int] = None,
        batch_size: Optional[int] = None,
        new_tokens: Optional[int] = None,
        context_tokens_sum: Optional[int] = None,
        warmup: bool = False,
        device_dur_ns: Optional[int] = None,
        device_start_ns: Optional[int] = None,
    ) -> None:
        """`kind`: prefill, decode, mixed, sampling, load, warmup or other; tokens are summed over sequences.

        `device_dur_ns`: between two events of the device around its work; `device_start_ns`: time of the first one, which can
        be compared within a process.
        """
        self.add_line(
            "stage",
            t_ns,
            kind=kind,
            name=mark_name(kind, iteration, step),
            end_ns=end_ns,
            iteration=iteration,
            step=step,
            batch_size=batch_size,
            new_tokens=new_tokens,
            context_tokens_sum=context_tokens_sum,
            warmup=warmup,
            device_dur_ns=device_dur_ns,
            device_start_ns=device_start_ns,
        )

    def request(
        self,
        t_ns: int,
        first_token_ns: int,
        end_ns: int,
        iteration: int,
        batch_size: int,
        input_len: int,
        output_len: int,
        warmup: bool = False,
        launch: int = 0,
        point: Optional[str] = None,
    ) -> None:
        """One batch from its start to its last token; lengths are tokens per sequence. `point` is a benchmark's."""
        self.add_line(
            "request",
            t_ns,
            iteration=iteration,
            launch=launch,
            warmup=warmup,
            batch_size=batch_size,
            input_len=input_len,
            output_len=output_len,
            first_token_ns=first_token_ns,
            end_ns=end_ns,
            point=point,
        )

    def point(
        self,
        point: str,
        launch: int,
        outcome: str,
        text: Optional[str] = None,
        warmup_iterations: Optional[int] = None,
        stable: Optional[bool] = None,
        interleaved: bool = True,
        memory_bytes: Optional[int] = None,
        memory_source: Optional[str] = None,
    ) -> None:
        """The outcome of a benchmark point: measured, out_of_memory, failed, skipped or stopped; `text` is the
        reason.
        """
        self.add_line(
            "point",
            None,
            point=point,
            launch=launch,
            outcome=outcome,
            text=text,
            warmup_iterations=warmup_iterations,
            stable=stable,
            interleaved=interleaved,
            memory_bytes=memory_bytes,
            memory_source=memory_source,
        )

    def device_work(self, point: str, launch: int, kind: str, **sums: int) -> None:
        """Device work of the stages of one kind in one watched iteration.

        `sums`: stages, kernels, kernel_ns (sum), copies, copy_ns (sum), busy_ns (union), wall_ns (host).
        """
        self.add_line("device_work", None, point=point, launch=launch, kind=kind, **sums)

    def microbenchmark(
        self,
        case: Dict[str, Any],
        outcome: str,
        text: Optional[str],
        t_ns: int,
        end_ns: int,
        samples_ns: List[float],
        method: str,
        per_sample: int,
        **more: Any,
    ) -> None:
        """A KernelCase of src/model/kernels.ts and its outcome; t_ns to end_ns is its timed part.

        `samples_ns`: time per operation; `more`: backend, device, threads, rotated_bytes, peak_memory_bytes,
        max_error.
        """
        keys = ("case", "kernel", "backend", "dtype", "params", "flops", "bytes")
        fields = {key: case.get(key) for key in keys}
        fields.update(more)
        self.add_line(
            "microbenchmark",
            t_ns,
            outcome=outcome,
            text=text,
            end_ns=end_ns,
            samples_ns=samples_ns,
            method=method,
            per_sample=per_sample,
            **fields,
        )

    def memory(
        self,
        kind: str,
        bytes_: int,
        source: str,
        device: Optional[int] = None,
        point: Optional[str] = None,
        blocks: Optional[int] = None,
    ) -> None:
        """`point`: baseline, post_warmup, peak or None; `source`: who reported it; `blocks`: of an allocation."""
        optional = {} if blocks is None else {"blocks": blocks}
        self.add_line("memory", None, device=device, kind=kind, bytes=bytes_, point=point, source=source, **optional)

    def cuda_memory(self, point: Optional[str]) -> None:
        """Memory allocated by torch's allocator on each device that it has used; peaks if `point` is peak."""
        torch = sys.modules.get("torch")
        if self.path is None or torch is None or not torch.cuda.is_initialized():
            return
        for device in range(torch.cuda.device_count()):
            prefix = "max_memory_" if point == "peak" else "memory_"
            if torch.cuda.max_memory_reserved(device) == 0:
                continue
            for kind in ("allocated", "reserved"):
                name = prefix + kind
                self.memory(kind, int(getattr(torch.cuda, name)(device)), "torch.cuda." + name, device, point)

    def error(self, code: str, text: str) -> None:
        """An error with a code of docs/reference/errors.md."""
        self.add_line("error", None, code=code, text=text)

    def add_text(self, lines: str) -> None:
        """Adds complete lines that the caller formatted."""
        if self.path is not None and lines:
            self._lines.append(lines)

    def flush(self) -> None:
        """Appends the stored lines in one write, so that several processes may share the file."""
        if not self._lines or self.path is None:
            return
        text = "".join(line if isinstance(line, str) else json.dumps(line, default=str) + "\n" for line in self._lines)
        self._lines = []
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)


_recorder: Optional[Recorder] = None


def recorder() -> Recorder:
    """This process's recorder; writes clock pairs when it is created and at exit."""
    global _recorder
    if _recorder is None:
        _recorder = Recorder()
        _recorder.clock()
        atexit.register(_close, _recorder)
    return _recorder


def _close(record: Recorder) -> None:
    record.clock()
    record.flush()


def mark_name(kind: str, iteration: Optional[int], step: Optional[int]) -> str:
    """`inferscope:<kind>:<iteration>:<step>`, the name of a stage in every tool; 0 if a part does not apply."""
    return "inferscope:%s:%d:%d" % (kind, iteration or 0, step or 0)


def hook_name(
    kind: str, iteration: int, step: int, how: str, batch: Optional[int], new: Optional[int], context: Optional[int]
) -> str:
    """The name of a step that hooks mark, with its sizes. `how`: first (call of a shape, which may compile and plan), graph
    (replay of a CUDA graph) or hook.
    """
    sizes = "".join(":%s%d" % size for size in (("b", batch), ("t", new), ("c", context)) if size[1] is not None)
    return "inferscope:%s:%d:%d:%s%s" % (kind, iteration, step, how, sizes)


@contextlib.contextmanager
def mark(
    kind: str,
    iteration: Optional[int] = None,
    step: Optional[int] = None,
    batch_size: Optional[int] = None,
    new_tokens: Optional[int] = None,
    context_tokens_sum: Optional[int] = None,
    warmup: bool = False,
) -> Iterator[None]:
    """Marks a stage as an NVTX range, as a record_function of a running torch profiler and as a stage line.

    It does not synchronize: the caller does so inside if the range must cover the work of the device.
    """
    opener = range_opener()
    close = opener(mark_name(kind, iteration, step)) if opener else None
    start_ns = time.monotonic_ns()
    try:
        yield
    finally:
        end_ns = time.monotonic_ns()
        if close:
            close()
        recorder().stage(
            kind, start_ns, end_ns, iteration, step, batch_size, new_tokens, context_tokens_sum, warmup
        )
