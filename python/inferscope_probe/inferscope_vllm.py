"""vLLM's offline engine for a benchmark order: python inferscope_vllm.py ORDER.json (versions 0.6 to 0.32, V0 and V1).

Prompts are token ids, outputs are not detokenized.
"""

import os
import random
import sys
import time
import traceback
from typing import Any, Dict, List, Optional

from inferscope_points import (
    EngineError,
    StopFlag,
    claim_stdout,
    first_line,
    measure_points,
    read_order,
    record_failure,
    send_progress,
)
from inferscope_record import Recorder, recorder
from inferscope_vllm_end import end_engine_processes, end_engine, watch_from_outside
from inferscope_vllm_memory import WorkerMemory
from inferscope_vllm_model import record_vllm_model
from inferscope_vllm_options import engine_options, field_types, installed_version
from inferscope_vllm_ranges import WARMUP_REQUEST, finish_traces, spawn_processes
from inferscope_vllm_steps import (
    BatchTimes,
    blocks_needed,
    cache_of,
    check_lengths,
    config_of,
    kv_usage,
    step_batch,
    write_lines,
)


def classify(error: BaseException) -> Optional[str]:
    """None for an engine that lost its core, which can measure no further point."""
    text = type(error).__name__ + " " + str(error)
    if "EngineDead" in text or "EngineCore" in text:
        return None
    return "out_of_memory" if "out of memory" in text.lower() or "OutOfMemory" in text else "failed"


class Measurement:
    """Repeats of one engine."""

    def __init__(self, order: Dict[str, Any], llm: Any, keeps_stats: bool) -> None:
        """`keeps_stats`: whether the user asked vLLM for its statistics."""
        self.order, self.llm, self.engine = order, llm, llm.llm_engine
        self.keeps_stats = keeps_stats and hasattr(llm, "get_metrics")
        self.blocks, self.block_size = cache_of(self.engine)
        self.max_num_seqs = getattr(config_of(self.engine, "scheduler_config"), "max_num_seqs", None)
        self.vocabulary = self.engine.model_config.hf_text_config.vocab_size
        self.usage_by_point: Dict[str, float] = {}

    def measure(self, point: Dict[str, Any], iteration: int, warmup: bool) -> int:
        """Runs one repeat and writes its lines. -> end-to-end ns"""
        usages: List[float] = []

        def sample() -> None:
            usage = kv_usage(self.llm.get_metrics())
            if usage is not None:
                usages.append(usage)

        prefix = "%s%s-%d" % (WARMUP_REQUEST if warmup else "", point["point"], iteration)
        # Reading the gauges takes time, so only in warm-up.
        on_step = sample if warmup and self.keeps_stats else None
        times = step_batch(self.engine, self._prompts(point, iteration), _sampling_params(point), prefix, on_step)
        check_lengths(times, point)
        took_ns = write_lines(recorder(), self.order, point, iteration, warmup, times)
        if usages:
            self.usage_by_point[point["point"]] = max(usages)
        self._record_usage(point, times)
        if not warmup:
            _warn_about_ttft(point, times)
        return took_ns

    def _prompts(self, point: Dict[str, Any], iteration: int) -> List[List[int]]:
        draw = random.Random("%d %d" % (self.order["seed"], iteration))
        return [[draw.randrange(self.vocabulary) for _ in range(point["input_len"])] for _ in range(point["batch_size"])]

    def _record_usage(self, point: Dict[str, Any], times: BatchTimes) -> None:
        """KV cache usage by vLLM's gauges if it was sampled, else computed from the lengths."""
        usage = self.usage_by_point.get(point["point"])
        if usage is None and self.blocks and self.block_size:
            usage = blocks_needed(point, self.block_size, self.max_num_seqs) / self.blocks
        if usage is not None:
            end_ns = max(times.last_ns.values())
            recorder().add_line("telemetry", end_ns, scope="engine", metric="kv_cache_usage_ratio", value=usage)


def _sampling_params(point: Dict[str, Any]) -> Any:
    from vllm import SamplingParams  # type: ignore[import-not-found]
    from vllm.sampling_params import RequestOutputKind  # type: ignore[import-not-found]

    return SamplingParams(
        temperature=0.0,
        ignore_eos=True,
        max_tokens=point["output_len"],
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
    )


def _warn_about_ttft(point: Dict[str, Any], times: BatchTimes) -> None:
    if not times.reported_ttft:
        return
    measured, reported = times.ttft_ns() / 1e9, sum(times.reported_ttft) / len(times.reported_ttft)
    if abs(reported - measured) > 0.2 * measured:
        sys.stderr.write(
            "inferscope: %s: vLLM reports a TTFT of %.1f ms, measured %.1f ms\n" % (point["point"], reported * 1e3, measured * 1e3)
        )


def run(order: Dict[str, Any]) -> None:
    version = installed_version()
    os.environ["INFERSCOPE_EXECUTION_ID"] = order["execution_id"]
    stop = StopFlag()
    records = recorder()
    send_progress(type="phase", phase="load")
    start_ns = time.monotonic_ns()
    spawn_processes()
    from vllm import LLM
    from vllm.engine.arg_utils import EngineArgs  # type: ignore[import-not-found]

    watch_from_outside()
    fields = field_types(EngineArgs)
    options = engine_options(order, fields)
    memory = WorkerMemory(records) if order.get("memory") is not None else None
    if memory is not None:
        options.update(memory.options(options, fields))
    try:
        llm = LLM(**options)
    except Exception as error:
        raise start_failure(order, error) from error
    records.stage("load", start_ns, time.monotonic_ns())
    record_model_of_order(records, order, options, version, llm.llm_engine)
    measurement = Measurement(order, llm, options.get("disable_log_stats") is False)
    try:
        if memory is not None:
            memory.record(llm, "load")
        measure_points(order, records, measurement.measure, classify, lambda: stop.stopped)
        if memory is not None:
            memory.record(llm, "end")
    finally:
        finish_traces(llm)
        end_engine(llm)


def start_failure(order: Dict[str, Any], error: Exception) -> EngineError:
    """The error that arrives here often states only that the engine's processes exited; the cause is in their log."""
    is_memory_error = classify(error) == "out_of_memory" or "KV cache" in str(error)
    return EngineError(
        "E_OUT_OF_MEMORY" if is_memory_error else "E_WORKLOAD_FAILED",
        "vLLM could not start with %s" % (order.get("name") or order["model"]),
        "%s: %s" % (type(error).__name__, message_of(error)),
        "Try --engine-arg gpu_memory_utilization=0.8 or --engine-arg max_model_len=4096."
        if is_memory_error
        else "Its log is saved with the session.",
    )


def message_of(error: Exception) -> str:
    """One line; from pydantic the first error, because its first line only counts them: "1 validation error for ModelConfig"."""
    for line in str(error).split("\n")[1:]:
        if line.strip().startswith(("Value error, ", "Assertion failed, ")):
            return line.strip().split(", ", 1)[1].split(" [type=", 1)[0]
    return first_line(error)


def record_model_of_order(records: Recorder, order: Dict[str, Any], options: Dict[str, Any], version: str, engine: Any) -> None:
    device = getattr(config_of(engine, "device_config"), "device_type", None)
    record_vllm_model(
        records,
        engine.model_config,
        name=str(order.get("name") or order["model"]),
        device=str(device or options.get("device") or "cuda"),
        weights=order["weights"],
        version=version,
        tensor_parallel_size=int(options.get("tensor_parallel_size") or 1),
        scheduler=config_of(engine, "scheduler_config"),
    )


def main(arguments: List[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write(__doc__ or "")
        return 2
    claim_stdout()
    try:
        run(read_order(arguments[0]))
        return 0
    except EngineError as error:
        record_failure(recorder(), error)
        return {"E_USAGE": 2, "E_ENGINE_MISSING": 3, "E_TOOL_VERSION": 3}.get(error.code, 4)
    except Exception as error:
        traceback.print_exc()
        why = "%s: %s" % (type(error).__name__, first_line(error))
        fix = "Its whole output is in the log of the launch."
        record_failure(recorder(), EngineError("E_WORKLOAD_FAILED", "vLLM failed", why, fix))
        return 4


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except SystemExit as end:
        status = int(end.code or 0)
    recorder().clock()
    recorder().flush()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of the engine can keep the interpreter from exiting, and its processes outlive it.
    end_engine_processes(os.getpid())
    os._exit(status)
