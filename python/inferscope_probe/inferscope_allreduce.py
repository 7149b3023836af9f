"""Measures all-reduce between the GPUs of this machine: python inferscope_allreduce.py ORDER.json

Reads a KernelOrder (src/model/kernels.ts) with all-reduce cases {bytes, ranks} only, starts one process per rank (NCCL;
gloo on the CPU) and writes `microbenchmark` lines: a sample is the time of the slowest rank for one reduction of `bytes`
bytes, in place, by events of each rank's device. A batch is enqueued after a spinning kernel and one reduction that is not
timed, so that neither the host nor different starts of the ranks are measured. stdout, signals and outcomes are those of
inferscope_kernels.py.
"""

import datetime
import math
import os
import queue
import signal
import sys
import tempfile
import time
import traceback
from typing import Any, Callable, Dict, List, Optional

from inferscope_fault import Fault
from inferscope_points import EngineError, StopFlag, claim_stdout, read_order, record_failure, send_progress
from inferscope_record import recorder

WARM_UP = 5
BATCH = 20
QUEUE = 400
SAMPLE_NS = 200e3
# A rank that waits this long for another assumes that it has exited.
TIMEOUT_S = 60


class Rank:
    """One process of the group. All ranks decide the same, because a rank that decides differently leaves the others waiting."""

    def __init__(self, rank: int, order: Dict[str, Any], gpu: bool, stop: Any) -> None:
        import torch
        import torch.distributed as dist

        self.rank, self.order, self.gpu, self.stop = rank, order, gpu, stop
        self.torch, self.dist = torch, dist
        self.device = "cuda:%d" % rank if gpu else "cpu"
        self.world = dist.get_world_size()
        self.stopping = False
        self.parent = os.getppid()

    def max_over_ranks(self, value: float) -> float:
        maximum = self.torch.tensor([value], dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(maximum, op=self.dist.ReduceOp.MAX)
        return float(maximum.item())

    def wait(self) -> None:
        if self.gpu:
            self.torch.cuda.synchronize(self.device)

    def measure(self, spec: Dict[str, Any]) -> Dict[str, Any]:
        """-> fields of the case's record line"""
        from inferscope_kernel_cases import BOUNDS, TORCH_DTYPES, Source, Unsupported, spread
        from inferscope_kernel_timing import Samples

        samples = Samples("events" if self.gpu else "host", 1)
        fields: Dict[str, Any] = dict(outcome="measured", text=None, max_error=None)
        fault: Optional[Fault] = None
        # These may fail on one rank only, before any rank waits for another.
        try:
            if spec["dtype"] not in TORCH_DTYPES:
                raise Unsupported("all-reduce is not measured in %s." % spec["dtype"])
            self.torch.manual_seed(self.order["seed"] + self.rank)
            source = Source(spec["dtype"], self.device)
            first = source(max(1, int(spec["params"]["bytes"]) // source.dtype.itemsize))
            data = first.clone()
        except Unsupported as error:
            return dict(fields, outcome="unsupported", text=str(error), **_fields(samples))
        except Exception as error:
            fault = Fault(error)
        if self.max_over_ranks(fault is not None):
            is_out_of_memory = self.max_over_ranks(fault is not None and fault.is_out_of_memory)
            text = fault.text if fault else "It failed on another rank."
            return dict(fields, outcome="out_of_memory" if is_out_of_memory else "failed", text=text, **_fields(samples))
        if self.order["check"]:
            sampled = spread(data.numel(), 4096, self.device)
            parts = [self.torch.empty(sampled.numel(), dtype=self.torch.float64, device=self.device) for _ in range(self.world)]
            self.dist.all_gather(parts, first[sampled].double())
            self.dist.all_reduce(data)
            expected = sum(parts)
            error = self.max_over_ranks(float((data[sampled].double() - expected).abs().max()) / (float(expected.abs().max()) or 1.0))
            fields["max_error"] = error if error == error else None
            if not error <= BOUNDS[spec["dtype"]] and spec["dtype"] != "int8":  # bytes overflow
                fields.update(outcome="wrong", text="Off by %.3g of the largest value of a float64 reference." % error)
        self._take_samples(samples, data, first)
        if self.stopping and len(samples.ns) < self.order["runs"]:
            fields.update(outcome="stopped", text="Stopped after %d of %d runs." % (len(samples.ns), self.order["runs"]))
            samples.ns = []
        return dict(fields, **_fields(samples))

    def _take_samples(self, samples: Any, data: Any, first: Any) -> None:
        batch = self._on_device if self.gpu else self._on_host
        data.copy_(first)
        batch(data, WARM_UP, 1)
        data.copy_(first)
        rough_ns = self.max_over_ranks(sum(batch(data, WARM_UP, 1)) / WARM_UP)
        per_sample = max(1, min(BATCH, math.ceil(SAMPLE_NS / max(rough_ns, 1)))) if self.gpu else 1
        samples.per_sample = per_sample
        batch_size = max(1, min(BATCH, QUEUE // per_sample, int(1e9 / (per_sample * max(rough_ns, 1)))))
        samples.t_ns = start_ns = time.monotonic_ns()
        order = self.order
        while True:
            data.copy_(first)  # sums grow with every reduction
            batch_ns = self.torch.tensor(batch(data, batch_size, per_sample), dtype=self.torch.float64, device=self.device)
            self.dist.all_reduce(batch_ns, op=self.dist.ReduceOp.MAX)
            samples.ns += batch_ns.tolist()
            samples.end_ns = time.monotonic_ns()
            if os.getppid() != self.parent:  # the parent has exited
                os._exit(1)
            # The clock and the request to stop may differ between ranks.
            late = self.max_over_ranks(samples.end_ns - start_ns >= order["max_seconds"] * 1e9)
            self.stopping = bool(self.max_over_ranks(self.stop.is_set()))
            enough = len(samples.ns) >= order["runs"] and samples.is_narrow(order["target_half_width"])
            if late or self.stopping or enough or len(samples.ns) >= order["max_runs"]:
                return

    def _on_device(self, data: Any, count: int, per_sample: int) -> List[float]:
        cuda, reduce = self.torch.cuda, self.dist.all_reduce
        events = [cuda.Event(enable_timing=True) for _ in range(count + 1)]
        self.wait()
        cuda._sleep(int(2 * min(20e6, 30e3 * count * per_sample)))  # cycles, at about 2 GHz
        reduce(data)
        events[0].record()
        for event in events[1:]:
            for _ in range(per_sample):
                reduce(data)
            event.record()
        self.wait()
        return [start.elapsed_time(end) * 1e6 / per_sample for start, end in zip(events, events[1:])]

    def _on_host(self, data: Any, count: int, per_sample: int) -> List[float]:
        times = []
        self.dist.all_reduce(data)
        for _ in range(count):
            start_ns = time.monotonic_ns()
            for _ in range(per_sample):
                self.dist.all_reduce(data)
            times.append((time.monotonic_ns() - start_ns) / per_sample)
        return times


def _fields(samples: Any) -> Dict[str, Any]:
    return dict(
        t_ns=samples.t_ns, end_ns=samples.end_ns, samples_ns=samples.ns, method=samples.method, per_sample=samples.per_sample
    )


def _run_rank(
    rank: int, world: int, order: Dict[str, Any], cases: List[Dict[str, Any]], gpu: bool, rendezvous: str, stop: Any, out: Any
) -> None:
    """The process of a rank. Rank 0 puts ("begin", case, None) and ("end", case, fields) into `out`."""
    # The parent receives the stop signal and stops all ranks together.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.environ.pop("INFERSCOPE_RECORD", None)
    import torch
    import torch.distributed as dist

    if gpu:
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl" if gpu else "gloo", init_method="file://" + rendezvous, rank=rank, world_size=world,
        timeout=datetime.timedelta(seconds=TIMEOUT_S + 4 * order["max_seconds"]),
    )  # fmt: skip
    member = Rank(rank, order, gpu, stop)
    for spec in cases:
        if member.max_over_ranks(stop.is_set()):
            break
        if rank == 0:
            out.put(("begin", spec["case"], None))
        fields = member.measure(spec)
        if gpu:
            torch.cuda.empty_cache()
        if rank == 0:
            out.put(("end", spec["case"], fields))
    dist.barrier()
    dist.destroy_process_group()


class Group:
    """The cases of one number of ranks, in the parent process."""

    def __init__(self, order: Dict[str, Any], gpu: bool, stop: StopFlag, on_start: Callable[[str], None]) -> None:
        self.order, self.gpu, self.stop, self.on_start = order, gpu, stop, on_start

    def run(self, ranks: int, cases: List[Dict[str, Any]]) -> None:
        import torch
        import torch.multiprocessing as multiprocessing

        remaining = {spec["case"]: spec for spec in cases}
        visible = torch.cuda.device_count() if self.gpu else ranks
        if ranks > visible or ranks < 2:
            text = "%d ranks, and torch finds %d GPUs." % (ranks, visible) if ranks > visible else "One rank reduces nothing."
            return self._end_all(remaining, "unsupported", text)
        if self.stop.stopped:
            return self._end_all(remaining, "stopped", "Stopped before its turn.")
        context = multiprocessing.get_context("spawn")
        stop, out = context.Event(), context.Queue()
        with tempfile.TemporaryDirectory(prefix="inferscope-") as folder:
            args = (ranks, self.order, cases, self.gpu, os.path.join(folder, "rendezvous"), stop, out)
            processes = multiprocessing.spawn(_run_rank, args=args, nprocs=ranks, join=False)
            failure: Optional[str] = None
            has_ended = False
            try:
                while not has_ended:
                    if self.stop.stopped:
                        stop.set()
                    self._receive(out, remaining)
                    try:
                        has_ended = processes.join(timeout=0.05)
                    except Exception as error:  # torch then stops the others
                        traceback.print_exc()
                        has_ended, failure = True, " ".join(str(error).split())[-1500:]
                while self._receive(out, remaining):
                    pass
            finally:  # the parent may have exited
                stop.set()
        if failure is not None:
            self._end_all(remaining, "failed", "A rank died: " + failure)
        self._end_all(remaining, "stopped", "Stopped before its turn.")

    def _receive(self, out: Any, remaining: Dict[str, Any]) -> bool:
        try:
            what, name, fields = out.get(timeout=0.2)
        except queue.Empty:
            return False
        if what == "begin":
            self.on_start(name)
        else:
            self._record(remaining.pop(name), fields)
        return True

    def _end_all(self, remaining: Dict[str, Any], outcome: str, text: str) -> None:
        now = time.monotonic_ns()
        method = "events" if self.gpu else "host"
        while remaining:
            fields = dict(outcome=outcome, text=text, t_ns=now, end_ns=now, samples_ns=[], method=method, per_sample=1)
            self._record(remaining.pop(next(iter(remaining))), fields)

    def _record(self, spec: Dict[str, Any], fields: Dict[str, Any]) -> None:
        recorder().microbenchmark(spec, device=None, backend="nccl" if self.gpu else "gloo", **fields)
        recorder().flush()


def main(path: str) -> int:
    from inferscope_kernels import describe

    order = read_order(path)
    os.environ["INFERSCOPE_EXECUTION_ID"] = order["execution_id"]
    claim_stdout()
    stop = StopFlag()
    recorder()
    try:
        others = sorted({case["kernel"] for case in order["cases"]} - {"all-reduce"})
        if others or not order["cases"]:
            raise EngineError("E_USAGE", "kernels other than all-reduce: %s" % ", ".join(others), "This script measures only all-reduce.", "Order these separately.")
        import torch

        gpu = order["device"] != "cpu" and torch.cuda.is_available()
        send_progress(type="device", device=describe("cuda:0" if gpu else "cpu"))
        total, begun = len(order["cases"]), []  # type: int, List[str]

        def begin(name: str) -> None:
            send_progress(type="case", case=name, done=len(begun), total=total)
            begun.append(name)

        for ranks in sorted({int(case["params"]["ranks"]) for case in order["cases"]}):
            Group(order, gpu, stop, begin).run(ranks, [c for c in order["cases"] if int(c["params"]["ranks"]) == ranks])
        send_progress(type="case", case=order["cases"][-1]["case"], done=total, total=total)
        return 0
    except EngineError as error:
        record_failure(recorder(), error)
        return 2 if error.code == "E_USAGE" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
