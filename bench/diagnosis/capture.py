"""Captures the planted faults and their repaired twins on a GPU, all in one process, because importing torch takes longer than each of them.

time: pairs of both variants without a profiler, then a trace of PyTorch's profiler of each.
nsys: under `nsys profile -c cudaProfilerApi --capture-range-end=repeat:N`, a report of each, in the order of order.jsonl.
ncu:  under `ncu --profile-from-start off`, a stage of each fault that only counters show, in that order.
Writes into --out; a program that fails is reported in order.jsonl and does not stop the others.
"""

import argparse
import contextlib
import gc
import gzip
import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

HERE = Path(__file__).resolve().parent
# The planted recompilation must compile in this process every time. Variables that capture.sh has set stay.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python" / "inferscope_probe")]
import engine  # noqa: E402
import generated  # noqa: E402
import stock  # noqa: E402
import torch  # noqa: E402
from case import Case, run, sized_marker, unmarked, wait  # noqa: E402
from inferscope_record import Recorder  # noqa: E402

_ALL = json.loads((HERE / "faults.json").read_text())["faults"]
FAULTS = [fault["id"] for fault in _ALL if fault.get("gpus", 1) == 1]
COUNTERS = [fault["id"] for fault in _ALL if fault.get("ncu")]
VARIANTS = ("fault", "fixed")
ALL_CORES = os.sched_getaffinity(0)
SEEDED: Tuple[Any, ...] = (generated, stock, engine)
"""Modules with programs made from a seed."""


class Session:
    """The folder for the outcomes of one mode."""

    def __init__(self, out: Path, device: str, limit_s: float) -> None:
        self.out, self.device, self.until = out, device, time.monotonic() + limit_s
        out.mkdir(parents=True, exist_ok=True)

    def report(self, **line: Any) -> None:
        with open(self.out / "order.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line)[:300], file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def guarded(self, fault: str, variant: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        except Exception as error:
            traceback.print_exc()
            self.report(fault=fault, variant=variant, failed=str(error)[:500])
        finally:
            if self.device != "cpu":
                with contextlib.suppress(Exception):
                    torch.cuda.synchronize()
            gc.collect()
            if self.device != "cpu":
                with contextlib.suppress(Exception):
                    torch.cuda.empty_cache()
            print("%s %s %.1f s" % (fault, variant, time.monotonic() - started), file=sys.stderr, flush=True)

    def is_late(self, fault: str) -> bool:
        if time.monotonic() < self.until:
            return False
        self.report(fault=fault, variant="", failed="no time was left")
        return True


def prepare(fault: str, variant: str, device: str) -> Case:
    torch.manual_seed(0)
    for programs in SEEDED:
        entry = programs.entries().get(fault)
        if entry is not None:
            return programs.prepare(entry, variant, device)
    return importlib.import_module("faults." + fault).prepare(variant, device)


def warm(case: Case, device: str, runs: int = 2) -> None:
    for _ in range(int(case.more.get("warm", runs))):
        run(case, unmarked, device)


Run = Tuple[int, int, List[int], bool]
"""A run: its start and end and the boundaries of its stages (ns of CLOCK_MONOTONIC), and whether these are device events."""


def record(path: Path, case: Case, execution: str, runs: List[Run]) -> None:
    """Lines that a workload records itself (docs/reference/recording-protocol.md): the model, the batch and, without
    a profiler, its stages.
    """
    os.environ["INFERSCOPE_EXECUTION_ID"] = execution
    lines = Recorder(str(path))
    lines.clock()
    if case.model is not None:
        lines.model("decoder", case.model, case.dtype, "cuda", weights="random", engine="torch", engine_version=torch.__version__)
    for iteration, (start_ns, end_ns, boundaries, by_device) in enumerate(runs):
        if case.batch is not None:
            context = (case.context or 0) // case.batch
            decodes = case.kind == "decode"
            size = (case.batch, max(context - 1, 0), case.stages) if decodes else (case.batch, context, 1)
            lines.request(start_ns, None, end_ns, iteration, *size)  # type: ignore[arg-type]
        for index, (start, until) in enumerate(zip(boundaries, boundaries[1:])):
            device = dict(device_start_ns=start, device_dur_ns=until - start) if by_device else {}
            lines.stage(case.kind, start, until, iteration, index, case.batch, case.new_tokens, case.context, **device)
    lines.flush()


def record_hooked(path: Path, case: Case, device: str) -> None:
    """Lines that inferscope's hooks record for a program without marks, as if it were the first one of this process."""
    import inferscope_hook_calls as hooks
    from inferscope_torch_model import RecordedModel

    os.environ["INFERSCOPE_EXECUTION_ID"] = "clean"
    # Steps of the timed runs are not recorded, not even the last ones, which no step has ended.
    hooks.this_thread().stop_repeating()
    hooks.times.flush(wait=True)
    hooks.times.records = Recorder(str(path))
    hooks.recorded_model = RecordedModel()
    hooks._facts.clear()
    hooks._iterations = hooks._loads = -1
    for _ in range(4):
        run(case, unmarked, device)
    hooks.write_at_exit()
    hooks.times.records = Recorder()


def nsys(session: Session, faults: List[str]) -> None:
    index = 0
    for fault in faults:
        for variant in VARIANTS:
            if session.is_late(fault):
                return
            with session.guarded(fault, variant):
                case = prepare(fault, variant, session.device)
                warm(case, session.device)
                run(case, sized_marker(case, False), session.device)
                index += 1
                torch.cuda.profiler.start()
                try:
                    run(case, sized_marker(case, False), session.device)
                finally:
                    torch.cuda.profiler.stop()
                    session.report(fault=fault, variant=variant, report=index)
                if not case.more.get("hooked"):
                    record(session.out / ("%s-%s.jsonl" % (fault, variant)), case, "clean", [])
                del case


def ncu(session: Session, faults: List[str]) -> None:
    for fault in faults:
        for variant in VARIANTS:
            if session.is_late(fault):
                return
            with session.guarded(fault, variant):
                case = prepare(fault, variant, session.device)
                warm(case, session.device, 1)
                case.stages = 1
                torch.cuda.profiler.start()
                try:
                    run(case, sized_marker(case, False), session.device)
                finally:
                    torch.cuda.profiler.stop()
                    session.report(fault=fault, variant=variant, kernels=case.more.get("kernels", 1))
                del case


def time_run(case: Case, device: str) -> Dict[str, float]:
    """Wall time of one run on the host, and the time between device events at its start and end; ms per stage."""
    if not case.more.get("cold"):
        run(case, unmarked, device)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if device != "cpu" else []
    wait(device)
    start = time.perf_counter_ns()
    if events:
        events[0].record()
    run(case, unmarked, device)
    if events:
        events[1].record()
        events[1].synchronize()
    wall = (time.perf_counter_ns() - start) / 1e6 / case.stages
    return {"wall_ms": wall, "device_ms": events[0].elapsed_time(events[1]) / case.stages if events else wall}


def run_untraced(case: Case, device: str) -> Run:
    """One run without a profiler. Stages are timed with device events, or with the host's clock if there is no
    device.
    """
    starts: List[Any] = []
    # Created before the run and recorded once, because only recording creates an event.
    events = [torch.cuda.Event(enable_timing=True) for _ in range(case.stages + 2)] if device != "cpu" else []
    for event in events:
        event.record()

    @contextlib.contextmanager
    def mark(kind: str, index: int) -> Iterator[None]:
        if kind == case.kind:
            event = events.pop() if events else None
            if event is not None:
                event.record()
            starts.append((time.monotonic_ns(), event))
        yield

    wait(device)
    ends = [events.pop(), events.pop()] if events else []
    start_ns = time.monotonic_ns()
    if ends:
        ends[0].record()
    run(case, mark, device)
    end_ns = time.monotonic_ns()
    if case.whole is not None:
        return start_ns, end_ns, [], False
    if starts[0][1] is None:
        return start_ns, end_ns, [start for start, _ in starts] + [end_ns], False
    ends[1].record()
    ends[1].synchronize()
    boundaries = [event for _, event in starts] + [ends[1]]
    return start_ns, end_ns, [start_ns + int(ends[0].elapsed_time(event) * 1e6) for event in boundaries], True


@contextlib.contextmanager
def record_delay(path: Path) -> Iterator[None]:
    """Records how long this thread waits for a core, a line per 50 ms, as inferscope's sampler does (src/capture/host.ts)."""
    pid = os.getpid()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, ALL_CORES)
        lines = Recorder(str(path))
        lines.clock()
        lines.flush()
        before = None
        while os.getppid() == pid:
            now, waited = time.monotonic_ns(), int(Path("/proc/%d/task/%d/schedstat" % (pid, pid)).read_text().split()[1])
            if before is not None:
                value = 100 * (waited - before[1]) / (now - before[0])
                line = dict(v=1, type="telemetry", execution_id="profiled", rank=0, pid=pid, t_ns=now)
                line.update(scope="thread%d" % pid, metric="run_delay_percent", value=value)
                with open(path, "a") as file:
                    file.write(json.dumps(line) + "\n")
            before = now, waited
            time.sleep(0.05)
        os._exit(0)
    try:
        yield
        time.sleep(0.1)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def kineto(case: Case, device: str, path: Path) -> Dict[str, float]:
    """Writes one trace of one run. -> sums of its device activities, ms per stage"""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device != "cpu":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    log = path.with_name(path.name.replace(".kineto.json.gz", "-delay.jsonl"))
    delays = record_delay(log) if case.more.get("delay") else contextlib.nullcontext()
    with delays, torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        run(case, sized_marker(case, True), device)
    profile.export_chrome_trace(str(path))
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    sums = {"kernel_ms": 0.0, "copy_ms": 0.0, "kernels": 0.0}
    for event in events:
        if event.get("cat") == "kernel":
            sums["kernel_ms"] += event["dur"] / 1e3 / case.stages
            sums["kernels"] += 1 / case.stages
        elif event.get("cat") in ("gpu_memcpy", "gpu_memset"):
            sums["copy_ms"] += event["dur"] / 1e3 / case.stages
    return sums


def time_faults(session: Session, faults: List[str], pairs: int) -> None:
    """Runs each fault in a child process that has already imported torch, so that a device error affects only one
    fault.
    """
    for fault in faults:
        if session.is_late(fault):
            return
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with session.guarded(fault, "both"):
                    time_pairs(session, fault, pairs)
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        limit_s = next((programs.LIMIT_S for programs in SEEDED if fault in programs.entries()), generated.LIMIT_S)
        until = time.monotonic() + limit_s
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                session.report(fault=fault, variant="both", failed="it took longer than %d s" % limit_s)
                os.waitpid(child, 0)
                break
            time.sleep(0.02)


def time_pairs(session: Session, fault: str, pairs: int) -> None:
    cases = {variant: prepare(fault, variant, session.device) for variant in VARIANTS}
    for case in cases.values():
        warm(case, session.device, 3)
    rows: List[Dict[str, Any]] = []
    for pair in range(max(pairs, cases["fault"].more.get("pairs", 0))):
        row: Dict[str, Any] = {}
        for variant in VARIANTS if pair % 2 == 0 else VARIANTS[::-1]:
            row[variant] = time_run(cases[variant], session.device)
        rows.append(row)
    result: Dict[str, Any] = {
        "fault": fault,
        "kind": cases["fault"].kind,
        "per": {variant: case.more.get("per", 1) for variant, case in cases.items()},
        "stages": {variant: case.stages for variant, case in cases.items()},
        "pairs": rows,
    }
    path = session.out / ("%s.json" % fault)
    path.write_text(json.dumps(result))
    for variant, case in cases.items():
        if case.more.get("engine"):
            engine.record(session.out / ("%s-%s.jsonl" % (fault, variant)), case, session.device)
            continue
        if case.more.get("hooked"):
            record_hooked(session.out / ("%s-%s.jsonl" % (fault, variant)), case, session.device)
            continue
        runs = [run_untraced(case, session.device) for _ in range(1 if case.more.get("cold") else 3)]
        record(session.out / ("%s-%s.jsonl" % (fault, variant)), case, "clean", runs)
    # Traces are last, because a profiler may slow the process down after it has stopped. The first one is discarded.
    with torch.profiler.profile():
        torch.ones(1, device=session.device).sum().item()
    result["device"] = {
        variant: kineto(case, session.device, session.out / ("%s-%s.kineto.json.gz" % (fault, variant)))
        for variant, case in cases.items()
    }
    path.write_text(json.dumps(result))
    session.report(fault=fault, device=result["device"], first=rows[0], last=rows[-1])


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("mode", choices=["time", "nsys", "ncu"])
    flags.add_argument("--out", type=Path, required=True)
    flags.add_argument("--faults", default="", help="ids separated by commas, or a half of generated.py, stock.py or engine.py (default: all of faults.json)")
    flags.add_argument("--pairs", type=int, default=12)
    flags.add_argument("--limit-s", type=float, default=150)
    flags.add_argument("--device", default="cuda")
    args = flags.parse_args()
    session = Session(args.out, args.device, args.limit_s)
    halves = {half: [program["id"] for program in seeded.programs(half)] for seeded in SEEDED for half in seeded.SEEDS}
    chosen = halves.get(args.faults) or (args.faults.split(",") if args.faults else COUNTERS if args.mode == "ncu" else FAULTS)
    if any(program in stock.entries() for program in chosen):
        stock.import_libraries()
    modes: Dict[str, Callable[[], None]] = {
        "time": lambda: time_faults(session, chosen, args.pairs),
        "nsys": lambda: nsys(session, chosen),
        "ncu": lambda: ncu(session, chosen),
    }
    with torch.inference_mode():
        modes[args.mode]()


if __name__ == "__main__":
    main()
