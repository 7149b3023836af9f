"""Measures the operations of `inferscope kernels` and `inferscope roofline`: python inferscope_kernels.py ORDER.json

Reads a KernelOrder (src/model/kernels.ts) and writes a `microbenchmark` line per case to INFERSCOPE_RECORD, each when it is
done. stdout has only progress, as JSON lines. SIGINT and SIGTERM end it after the current batch; the remaining cases are
recorded as stopped. Cases run in their order, each with an empty cache of the allocator.
"""

import gc
import os
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from inferscope_fault import Fault
from inferscope_points import EngineError, StopFlag, claim_stdout, read_order, record_failure, send_progress
from inferscope_ranges import evaluator_range, stop_waiting_for_gpu
from inferscope_record import recorder

# Input sets together exceed the cache this many times.
CACHE_TIMES = 3
# Defaults in bytes where torch (GPU) or the CPU does not report a cache size.
L2_UNKNOWN = 64 << 20
LLC_UNKNOWN = 32 << 20


def cache_bytes(device: str) -> int:
    """Size of the cache in which repeated inputs could stay: L2 of a GPU, last level of a CPU."""
    import torch

    if device != "cpu":
        return int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0) or L2_UNKNOWN)
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text().strip()
        return int(text.rstrip("KM")) * (1 << 20 if text.endswith("M") else 1024)
    except (OSError, ValueError):
        return LLC_UNKNOWN


def tensors(value: Any) -> List[Any]:
    """All tensors of a set of inputs or of outputs, including those of modules."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, torch.nn.Module):
        return list(value.parameters())
    return [tensor for part in value for tensor in tensors(part)] if isinstance(value, (tuple, list)) else []


def total_bytes(value: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(value))


def free_bytes(device: str) -> int:
    import torch

    if device != "cpu":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        (available,) = [line for line in lines if line.startswith("MemAvailable:")]
        return int(available.split()[1]) * 1024
    except (OSError, ValueError):  # not Linux: installed memory, an upper bound
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def set_precision(dtype: str) -> None:
    import torch

    tf32 = dtype == "tfloat32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


class Case:
    """A case and its outcome."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self.spec = spec
        self.outcome, self.text = "measured", None  # type: str, Optional[str]
        self.t_ns = self.end_ns = time.monotonic_ns()
        self.samples: List[float] = []
        self.method, self.per_sample, self.backend = "host", 1, spec["backend"]
        self.rotated: Optional[int] = None
        self.peak: Optional[int] = None
        self.max_error: Optional[float] = None
        self.ran = False

    def record(self, device: str) -> None:
        import torch

        index = None if device == "cpu" else torch.device(device).index or 0
        recorder().microbenchmark(
            self.spec, self.outcome, self.text, self.t_ns, self.end_ns, self.samples, self.method, self.per_sample,
            backend=self.backend, device=index, threads=torch.get_num_threads() if device == "cpu" else None,
            rotated_bytes=self.rotated, peak_memory_bytes=self.peak, max_error=self.max_error,
        )  # fmt: skip
        recorder().flush()


class Bench:
    def __init__(self, order: Dict[str, Any], device: str, stop: StopFlag) -> None:
        self.order, self.device, self.stop = order, device, stop
        self.cache = cache_bytes(device)
        # After an illegal access or a hardware fault, nothing more can run on the device in this process.
        self.device_lost = False

    def run(self) -> None:
        cases = self.order["cases"]
        measured: List[Dict[str, Any]] = []
        if self.device != "cpu":
            self._raise_clocks()
        for done, spec in enumerate(cases):
            case = Case(spec)
            if not self.stop.stopped:
                send_progress(type="case", case=spec["case"], done=done, total=len(cases))
                self._attempt(case)
            else:
                case.outcome, case.text = "stopped", "Stopped before its turn."
            case.record(self.device)
            if case.outcome == "measured":
                measured.append(spec)
            if self.device_lost:
                raise EngineError(
                    "E_WORKLOAD_FAILED", "the device's context is lost after %s" % spec["case"],
                    case.text or "torch reports no reason.", "Leave this case out.",
                )  # fmt: skip
        if self.order.get("trace") and measured:
            self._trace(measured, self.order["trace"])
        send_progress(type="case", case=cases[-1]["case"], done=len(cases), total=len(cases))

    def _trace(self, specs: List[Dict[str, Any]], trace: Dict[str, Any]) -> None:
        """Runs each case a few more times under the profiler; last, because its overhead would be measured, too."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if self.device != "cpu" else [])
        with profile(activities=activities, record_shapes=True) as profiler:
            for spec in specs:
                if self.stop.stopped:
                    break
                try:
                    self._trace_case(spec, trace["runs"])
                except Exception:
                    traceback.print_exc()
                self._clear()
        profiler.export_chrome_trace(os.path.join(trace["folder"], "torch-%d.json.gz" % os.getpid()))

    def _trace_case(self, spec: Dict[str, Any], runs: int) -> None:
        import torch
        from inferscope_kernel_cases import Source
        from inferscope_kernel_probes import OPERATIONS
        from inferscope_kernel_timing import wait
        from torch.profiler import record_function

        set_precision(spec["dtype"])
        op = OPERATIONS[spec["kernel"]](spec["params"], Source(spec["dtype"], self.device), spec)
        with op.scope():
            inputs = op.make()
            op.run(*inputs)  # setup during the first run is not part of the operation
            wait(self.device)
            for _ in range(runs):
                with record_function("case:" + spec["case"]):
                    op.run(*inputs)
                    wait(self.device)

    def _raise_clocks(self) -> None:
        """An idle GPU needs a few tenths of a second of load to reach its clocks."""
        import torch

        start, x = time.monotonic(), torch.randn(2048, 2048, device=self.device)
        while time.monotonic() - start < 0.3:
            for _ in range(10):
                torch.mm(x, x)
            torch.cuda.synchronize(self.device)

    def _attempt(self, case: Case) -> None:
        from inferscope_kernel_cases import Unsupported

        created_ns = case.t_ns
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self._measure(case)
            except Unsupported as error:
                case.outcome, case.text = "unsupported", str(error)
            except NotImplementedError as error:
                case.outcome, case.text = "unsupported", _one_line(error)
            except Exception as error:
                traceback.print_exc()
                fault = Fault(error)
                case.text = fault.text
                if fault.is_out_of_memory:
                    case.outcome = "out_of_memory"
                elif not case.ran and _may_be_unsupported(case.spec):
                    # PyTorch reports in warnings why a backend does not accept the case.
                    warnings_text = [_one_line(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
                    case.outcome, case.text = "unsupported", " ".join([fault.text] + warnings_text)[:2000]
                else:
                    case.outcome = "failed"
        if case.outcome != "measured" and case.end_ns <= created_ns:
            case.end_ns = time.monotonic_ns()
        self._clear()

    def _measure(self, case: Case) -> None:
        import torch
        from inferscope_kernel_cases import BOUND_FACTORS, Source
        from inferscope_kernel_probes import OPERATIONS
        from inferscope_kernel_timing import measure, wait

        spec = case.spec
        _check_dtype(spec)
        set_precision(spec["dtype"])
        torch.manual_seed(self.order["seed"])
        if self.device == "cpu" and spec["bytes"] > 0.8 * free_bytes("cpu"):
            raise MemoryError("out of memory: it needs %d bytes, but %d are free" % (spec["bytes"], free_bytes("cpu")))
        op = OPERATIONS[spec["kernel"]](spec["params"], Source(spec["dtype"], self.device), spec)
        if op.backend is not None:
            case.backend = op.backend
        with op.scope():
            first = op.make()
            needed = self._first_runs(case, op, first)
            if self.order["check"] and op.check is not None:
                out = op.run(*first)
                wait(self.device)  # copies to the host finish after the call returns
                self._compare(case, op.check(out, first), BOUND_FACTORS.get(spec["kernel"], 1.0))
                del out
            sets = [first] + self._more_sets(op, needed)
            case.rotated = len(sets) * needed + total_bytes(op.shared) if op.rotate and needed > 0 else None
            with evaluator_range("case:" + spec["case"]):
                samples = measure(op, sets, self.order, self.device, lambda: self.stop.stopped)
        case.t_ns, case.end_ns, case.method, case.per_sample = samples.t_ns, samples.end_ns, samples.method, samples.per_sample
        if self.stop.stopped and len(samples.ns) < self.order["runs"]:
            case.outcome, case.text = "stopped", "Stopped after %d of %d runs." % (len(samples.ns), self.order["runs"])
            return
        case.samples = samples.ns
        if case.text is None:
            case.text = samples.note

    def _first_runs(self, case: Case, op: Any, first: Tuple[Any, ...]) -> int:
        """Sets the peak memory of a run, without the setup of the first one. -> bytes of its inputs and outputs"""
        import torch

        out = op.run(*first)
        case.ran = True
        addresses = {tensor.data_ptr() for tensor in tensors(first)}
        needed = total_bytes(first) + sum(total_bytes(tensor) for tensor in tensors(out) if tensor.data_ptr() not in addresses)
        del out
        if self.device == "cpu" or needed == 0:
            return needed
        torch.cuda.synchronize(self.device)
        other_bytes = torch.cuda.memory_allocated(self.device) - total_bytes([tensor for tensor in tensors(first) if tensor.is_cuda])
        torch.cuda.reset_peak_memory_stats(self.device)
        op.run(*first)
        torch.cuda.synchronize(self.device)
        case.peak = int(torch.cuda.max_memory_allocated(self.device)) - other_bytes + total_bytes(op.shared)
        return needed

    def _more_sets(self, op: Any, needed: int) -> List[Tuple[Any, ...]]:
        if not op.rotate or needed == 0:
            return []
        # At least two, because the end of a set that exceeds the cache would still be in it at the start of the next run.
        count = max(2, -(-CACHE_TIMES * self.cache // needed))
        count = min(count, op.max_sets, 64 if self.device == "cpu" else op.max_sets)
        max_that_fit = int(0.5 * free_bytes(self.device) // needed)
        return [op.make() for _ in range(min(count - 1, max_that_fit))]

    def _compare(self, case: Case, pairs: List[Tuple[Any, Any]], bound_factor: float) -> None:
        from inferscope_kernel_cases import BOUNDS

        worst = 0.0
        for got, want in pairs:
            largest = float(want.abs().max()) or 1.0
            error = float((got.double() - want.to(got.device)).abs().max()) / largest
            worst = error if error != error else max(worst, error)
        bound = BOUNDS[case.spec["dtype"]] * bound_factor
        case.max_error = worst if worst == worst else None
        if not worst <= bound:
            case.outcome = "wrong"
            case.text = "Off by %s of the largest value of a float64 reference; rounding explains %g." % (
                "%.3g" % worst if worst == worst else "NaN", bound,
            )  # fmt: skip

    def _clear(self) -> None:
        import torch

        gc.collect()
        if self.device != "cpu":
            try:
                torch.cuda.synchronize(self.device)
                torch.cuda.empty_cache()
            except Exception:
                traceback.print_exc()
                self.device_lost = True


def _check_dtype(spec: Dict[str, Any]) -> None:
    from inferscope_kernel_cases import GEMM_DTYPES, TORCH_DTYPES, Unsupported

    dtype, kernel = spec["dtype"], spec["kernel"]
    if dtype != "float8" and dtype not in TORCH_DTYPES:
        raise Unsupported("PyTorch is not measured in %s." % dtype)
    if dtype in GEMM_DTYPES and kernel not in ("gemm", "linear", "copy"):
        raise Unsupported("%s has no %s kernel in PyTorch." % (kernel, dtype))


def _may_be_unsupported(spec: Dict[str, Any]) -> bool:
    """Whether an error in the first run probably means that the kernel does not exist."""
    return spec["backend"] is not None or spec["dtype"] in ("float8", "int8", "bfloat16")


def _one_line(error: Any) -> str:
    return " ".join(str(error).split())[:2000]


def choose_device(order: Dict[str, Any]) -> str:
    import torch

    requested = order["device"] or ("cuda:0" if torch.cuda.is_available() else "cpu")
    if requested == "cpu":
        return "cpu"
    index = int(requested.split(":")[1]) if ":" in requested else 0
    if not requested.startswith("cuda") or index >= torch.cuda.device_count():
        raise EngineError(
            "E_ENGINE_MISSING", "no device %s" % requested,
            "torch %s finds %d GPUs." % (torch.__version__, torch.cuda.device_count()), "Use --device cpu.",
        )  # fmt: skip
    torch.cuda.set_device(index)
    return "cuda:%d" % index


def describe(device: str) -> Dict[str, Any]:
    """KernelDevice of src/model/kernels.ts"""
    import platform

    import torch

    facts: Dict[str, Any] = dict.fromkeys(("sm_count", "l2_bytes", "memory_bytes", "compute_capability", "driver"))
    facts.update(name=platform.processor() or platform.machine(), device=device, framework="torch %s" % torch.__version__)
    if device != "cpu":
        properties = torch.cuda.get_device_properties(device)
        facts.update(
            name=properties.name,
            sm_count=properties.multi_processor_count,
            l2_bytes=getattr(properties, "L2_cache_size", None) or None,
            memory_bytes=properties.total_memory,
            compute_capability="%d.%d" % (properties.major, properties.minor),
        )
    return facts


def check_order(order: Dict[str, Any]) -> None:
    from inferscope_kernel_probes import OPERATIONS

    unknown = sorted({case["kernel"] for case in order["cases"]} - set(OPERATIONS))
    if unknown or not order["cases"]:
        raise EngineError(
            "E_USAGE", "unknown kernel %s" % ", ".join(unknown) if unknown else "no case to measure",
            "Known are %s." % ", ".join(OPERATIONS), "Use one of these.",
        )  # fmt: skip


def main(path: str) -> int:
    order = read_order(path)
    os.environ["INFERSCOPE_EXECUTION_ID"] = order["execution_id"]
    claim_stdout()
    stop = StopFlag()
    recorder()
    try:
        check_order(order)
        device = choose_device(order)
        if device == "cpu":
            stop_waiting_for_gpu()
        send_progress(type="device", device=describe(device))
        import torch

        with torch.no_grad():
            Bench(order, device, stop).run()
        return 0
    except EngineError as error:
        record_failure(recorder(), error)
        return 2 if error.code == "E_USAGE" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
