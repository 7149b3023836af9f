"""The transformers engine of `inferscope bench`: python inferscope_engine.py ORDER.json

Reads a BenchOrder (src/model/bench.ts), measures every point of it in this process and writes record lines to
INFERSCOPE_RECORD. stdout has only progress, as JSON lines; messages go to stderr. SIGINT and SIGTERM end it after the
current iteration. Warm-up iterations are numbered from -1 downwards.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from inferscope_decoder import DTYPES, ModelError, check_mode, choose_device, load_model
from inferscope_engine_args import check_engine_args, usage_error
from inferscope_fault import Fault, find_allocator_error
from inferscope_points import claim_stdout, rotate, send_progress
from inferscope_ranges import evaluator_range, stop_waiting_for_gpu
from inferscope_record import mark_name, recorder
from inferscope_tensor_parallel import Group, world_size


class Point:
    """One shape and the state of its measurement."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self.name: str = spec["point"]
        self.batch_size, self.input_len, self.output_len = (spec[key] for key in ("batch_size", "input_len", "output_len"))
        self.decoder: Any = None
        self.warmups, self.stable = 0, None  # type: int, Optional[bool]
        # Whether it is measured in turn with other points; alone if it fits into memory only alone.
        self.interleaved = True
        self.memory_bytes: Optional[int] = None
        self.repeats_done = 0
        self.outcome: Optional[str] = None


class Engine:
    """Measures the points of an order with a loaded model."""

    def __init__(self, order: Dict[str, Any], runner: Any) -> None:
        self.order, self.runner, self.group = order, runner, runner.group
        self.points = [Point(spec) for spec in order["points"]]
        self.launch: int = order["launch"]
        self.stopping = False
        self._next = order["first_iteration"]
        self._next_warmup = -1 - self.launch * 10_000
        self._peak_bytes = 0
        self._weights_bytes = runner.allocated_bytes()

    def run(self) -> None:
        send_progress(type="phase", phase="warmup")
        self._prepare_interleaved()
        recorder().cuda_memory("post_warmup")
        if self.runner.watch_memory:
            self.runner.watch_memory.record_warm(point.decoder.cache for point in self.points if point.decoder)
        recorder().flush()
        send_progress(type="phase", phase="timed")
        self.runner.set_capturing(True)
        self._measure_interleaved()
        self._measure_alone()
        self.runner.set_capturing(False)
        measured = [point for point in self.points if point.outcome is None]
        for point in measured:
            is_complete = point.repeats_done == self.order["repeats"]
            text = None if is_complete else "stopped after %d repeats" % point.repeats_done
            self._end(point, "measured" if is_complete else "stopped", text)
        if self.order["device_work"] and self.runner.gpu and not self.stopping:
            send_progress(type="phase", phase="device_work")
            self._watch([point for point in measured if point.outcome == "measured"])
        self._update_peak()
        if self.runner.watch_memory:
            self.runner.watch_memory.record_end()
        else:
            self.runner.record_peak(self._peak_bytes)
        recorder().flush()

    def _interleaved_points(self) -> List[Point]:
        return [point for point in self.points if point.interleaved and point.outcome is None]

    def _prepare_interleaved(self) -> None:
        # A point that does not fit frees all others, which are then prepared again.
        while not self.stopping:
            waiting = [point for point in self._interleaved_points() if point.decoder is None]
            if not waiting:
                return
            self._prepare(waiting[0])

    def _measure_interleaved(self) -> None:
        for repeat in range(self.order["repeats"]):
            interleaved_points = self._interleaved_points()
            for point in rotate(interleaved_points, repeat + self.launch):
                if self.stopping:
                    return
                if point.decoder is None:
                    self._prepare(point)
                if point.interleaved and point.outcome is None and not self.stopping:
                    self._repeat(point)

    def _measure_alone(self) -> None:
        for point in self.points:
            if point.interleaved or point.outcome is not None or self.stopping:
                continue
            self.free()
            self._attempt_alone(point)
            while point.repeats_done < self.order["repeats"] and point.outcome is None and not self.stopping:
                self._repeat(point)
            self.free()

    def _prepare(self, point: Point) -> None:
        """Warms up a point with the others in memory, or alone if it does not fit."""
        fault = self._attempt(point, self._warm_up)
        if fault is None:
            return
        if not fault.is_out_of_memory:
            self._end(point, "failed", fault.text)
            return
        self.free()
        self._attempt_alone(point)
        if point.outcome is None:
            point.interleaved = False
            self.free()

    def _attempt_alone(self, point: Point) -> None:
        fault = self._attempt(point, self._warm_up)
        if fault is not None:
            self._end(point, "out_of_memory" if fault.is_out_of_memory else "failed", fault.text)
            self.free()

    def _repeat(self, point: Point) -> None:
        iteration = self._next
        fault = self._attempt(point, lambda attempted: self._iterate(attempted, iteration))
        self._next += 1
        if fault is None:
            point.repeats_done += 1
        elif not fault.is_out_of_memory or not point.interleaved:
            self._end(point, "out_of_memory" if fault.is_out_of_memory else "failed", fault.text)
        else:  # it did not fit next to the others
            point.interleaved = False
            self.free()

    def _attempt(self, point: Point, action: Callable[[Point], None]) -> Optional[Fault]:
        try:
            action(point)
            return None
        except Exception as error:
            traceback.print_exc()
            fault = Fault(error)
        if self.runner.watch_memory:
            self.runner.watch_memory.record_stage("failed")
        if self.group:
            self._fail_all(point, fault)
        point.decoder = None
        self.runner.release_memory()
        return fault

    def _fail_all(self, point: Point, fault: Fault) -> None:
        """The other ranks wait in a collective that this one will not reach, so the run ends."""
        self.group.record_all_types()
        self._end(point, "out_of_memory" if fault.is_out_of_memory else "failed", fault.text)
        fix = "Use a smaller --batch-size, --input-len or model, or more ranks." if fault.is_out_of_memory else "Read its log."
        code = "E_OUT_OF_MEMORY" if fault.is_out_of_memory else "E_WORKLOAD_FAILED"
        raise ModelError(code, "rank %d failed at %s" % (self.group.rank, point.name), fault.text, fix)

    def _warm_up(self, point: Point) -> None:
        bounds = self.order["warmup"]
        self._update_peak()
        outside_point = self.runner.allocated_bytes() - self._weights_bytes
        with evaluator_range(mark_name("warmup", self._next_warmup, None)):
            self._warm_until_stable(point, bounds)
        peak = self.runner.peak_bytes()
        point.memory_bytes = None if peak is None else peak - outside_point

    def _warm_until_stable(self, point: Point, bounds: Dict[str, Any]) -> None:
        point.decoder = self.runner.decoder(point)
        point.warmups, point.stable, before = 0, False, None
        while point.warmups < bounds["max"] and not self.stopping:
            took = self._iterate(point, self._next_warmup)
            self._next_warmup -= 1
            point.warmups += 1
            point.stable = before is not None and abs(took - before) <= bounds["within"] * before
            if point.stable and point.warmups >= bounds["min"]:
                break
            before = took

    def _iterate(self, point: Point, iteration: int) -> float:
        """-> end-to-end seconds; negative iterations are warm-up"""
        run = self.runner.generate(point, iteration)
        warmup = iteration < 0
        e2e_ns = run.record(point, self.launch, warmup)
        recorder().flush()
        send_progress(type="iteration", point=point.name, iteration=iteration, warmup=warmup, e2e_ms=e2e_ns / 1e6)
        if self.group is None:
            return e2e_ns / 1e9
        seconds, self.stopping = self.group.broadcast(e2e_ns / 1e9, self.stopping)
        return seconds

    def _watch(self, points: List[Point]) -> None:
        for point in points:
            if self.stopping:
                return
            if not point.interleaved:
                self.free()
            if point.decoder is None and self._attempt(point, self._warm_up) is not None:
                continue
            self._attempt(point, lambda attempted: self.runner.watch(attempted, self.launch, self._next))
            self._next += 1
            recorder().flush()

    def free(self) -> None:
        """Frees caches and graphs of all points."""
        for point in self.points:
            point.decoder = None
        self.runner.release_memory()

    def _update_peak(self) -> None:
        self._peak_bytes = max(self._peak_bytes, self.runner.peak_bytes() or 0)
        self.runner.reset_peak()

    def _end(self, point: Point, outcome: str, text: Optional[str]) -> None:
        point.outcome = outcome
        recorder().point(
            point.name,
            self.launch,
            outcome,
            text,
            point.warmups or None,
            point.stable,
            point.interleaved,
            point.memory_bytes,
            None if point.memory_bytes is None else "torch.cuda.max_memory_allocated",
        )
        recorder().flush()
        send_progress(type="point", point=point.name, outcome=outcome, text=text)


class Interrupted(Exception):
    pass


def load(order: Dict[str, Any]) -> Any:
    """Checks the order and loads the model. -> the runner of its iterations"""
    args = check_engine_args(order["engine_args"])
    _check_device_and_dtype(order)
    if args["mode"] != "eager":  # as torch.profiler does for CUDA graphs, which break when CUPTI shuts down
        os.environ.update(DISABLE_CUPTI_LAZY_REINIT="1", TEARDOWN_CUPTI="0")
    import torch

    device = choose_device(order["device"])
    if device == "cpu":
        stop_waiting_for_gpu()
    group = Group(device) if world_size() > 1 else None
    if group is not None:
        device = group.device
    check_mode(args["mode"], args["attn"], device, "--engine-arg %s=%s")
    if device == "cpu" and args["sync"] == "end":
        raise usage_error("--engine-arg sync=end needs a GPU", "On the CPU the host cannot run ahead.", "Leave it out.")
    if args["threads"]:
        torch.set_num_threads(args["threads"])
    torch.set_float32_matmul_precision("high" if args["tf32"] == "true" else "highest")
    if args["mode"] == "compile":  # one code object is compiled once for every point
        for name in ("recompile_limit", "cache_size_limit"):
            if hasattr(torch._dynamo.config, name):
                setattr(torch._dynamo.config, name, 8 + 2 * len(order["points"]))
    dtype = order["dtype"] or ("float32" if device == "cpu" else "float16")
    memory = _watch_memory(order["memory"], device, dtype, group) if order.get("memory") is not None else None
    source = order["model"]
    name = order.get("name") or source
    model = load_model(source, device, dtype, order["weights"], args["attn"], order["seed"], name, order.get("config"), world_size())
    if memory is not None:
        memory.record_load(model)
        recorder().flush()
    from inferscope_iteration import Runner

    runner = Runner(model, device, args, order["seed"])
    runner.watch_memory, runner.group = memory, group
    return runner


def _check_device_and_dtype(order: Dict[str, Any]) -> None:
    device, dtype = order["device"], order["dtype"]
    if device is not None and device.split(":")[0] not in ("cpu", "cuda"):
        raise usage_error("unknown --device %s" % device, "It is cpu, cuda or cuda:N.", "Use --device cuda.")
    if dtype not in (None,) + DTYPES:
        raise ModelError("E_DTYPE", "no dtype %s" % dtype, "torch runs %s." % ", ".join(DTYPES), "Use one of these.")


def _watch_memory(options: Dict[str, Any], device: str, dtype: str, group: Optional[Group]) -> Any:
    from transformers import AutoModelForCausalLM  # noqa: F401  so that the baseline includes its code

    from inferscope_memory import MemoryWatch

    memory = MemoryWatch(device, bool(options.get("snapshot")))
    if group is not None:
        memory.record_alone(device, dtype)
    return memory


def main(path: str) -> int:
    order = json.loads(Path(path).read_text(encoding="utf8"))
    os.environ["INFERSCOPE_EXECUTION_ID"] = order["execution_id"]
    claim_stdout()
    engine: Optional[Engine] = None
    interrupted = False

    def stop(_signal: int, _frame: Any) -> None:
        nonlocal interrupted
        first, interrupted = not interrupted, True
        if engine is not None:
            engine.stopping = True
        elif first:
            raise Interrupted()

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, stop)
    if world_size() > 1:
        # torchrun sends it after another rank has failed. This rank may wait for that one in a collective, where no
        # handler runs.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    recorder()
    try:
        send_progress(type="phase", phase="load")
        runner = load(order)
        import torch

        engine = Engine(order, runner)
        engine.stopping = interrupted
        with torch.inference_mode():
            engine.run()
        return 0
    except Interrupted:
        for spec in order["points"]:
            recorder().point(spec["point"], order["launch"], "stopped", "stopped while the model was loaded")
            send_progress(type="point", point=spec["point"], outcome="stopped", text="stopped while the model was loaded")
        return 0
    except ModelError as error:
        failure, code = error, 2 if error.code == "E_USAGE" else 1
    except Exception as error:
        traceback.print_exc()
        failure, code = _unexpected(error, order), 1
    recorder().error(failure.code, str(failure))
    sys.stderr.write("error: %s\n" % failure)
    if world_size() > 1:
        # A normal exit would wait for the other ranks, which wait for this one.
        recorder().clock()
        recorder().flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _unexpected(error: Exception, order: Dict[str, Any]) -> ModelError:
    what, why = "%s could not be loaded" % order["model"], " ".join(str(error).split())[:600] or repr(error)
    if isinstance(error, ModuleNotFoundError):
        fix = "Type: %s -m pip install torch transformers" % sys.executable
        return ModelError("E_ENGINE_MISSING", "Python has no module %s" % error.name, "%s ran." % sys.executable, fix)
    if "torch" in sys.modules and find_allocator_error(error):
        fix = "Use a smaller dtype (float16) or model, or stop other programs on the GPU (nvidia-smi lists them)."
        return ModelError("E_OUT_OF_MEMORY", what + ": its weights do not fit", why, fix)
    return ModelError("E_WORKLOAD_FAILED", what, "%s: %s" % (type(error).__name__, why), "Its whole output is in the log of the launch.")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
