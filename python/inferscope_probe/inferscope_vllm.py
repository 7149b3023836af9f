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
from inferscope_vllm_end import end_below, end_engine, watch_from_outside
from inferscope_vllm_memory import MemoryOfWorkers
from inferscope_vllm_model import model_line
from inferscope_vllm_options import engine_options, field_types, installed_version
from inferscope_vllm_ranges import WARMUP_REQUEST, finish_traces, spawn_processes
from inferscope_vllm_steps import (
    blocks_needed,
    cache_of,
    check_lengths,
    config_of,
    kv_usage,
    step_batch,
    write_lines,
)


def classify(error: BaseException) -> Optional[str]:
    """An engine without its core measures nothing more; an out-of-memory error is the limit."""
    text = type(error).__name__ + " " + str(error)
    memory = "out of memory" in text.lower() or "OutOfMemory" in text
    if "EngineDead" in text or "EngineCore" in text:
        return None
    return "out_of_memory" if memory else "failed"


def run(order: Dict[str, Any]) -> None:
    version = installed_version()
    os.environ["INFERSCOPE_EXECUTION_ID"] = order["execution_id"]
    stop = StopFlag()
    records = recorder()
    send_progress(type="phase", phase="load")
    began = time.monotonic_ns()
    spawn_processes()
    from vllm import LLM, SamplingParams  # type: ignore[import-not-found]
    from vllm.engine.arg_utils import EngineArgs  # type: ignore[import-not-found]
    from vllm.sampling_params import RequestOutputKind  # type: ignore[import-not-found]

    watch_from_outside()
    fields = field_types(EngineArgs)
    options = engine_options(order, fields)
    memory = MemoryOfWorkers(records) if order.get("memory") is not None else None
    if memory is not None:
        options.update(memory.options(options, fields))
    try:
        llm = LLM(**options)
    except Exception as error:
        raise start_failure(order, error) from error
    records.stage("load", began, time.monotonic_ns())
    engine = llm.llm_engine
    config = engine.model_config
    record_model(records, order, options, version, engine)
    blocks, block_size = cache_of(engine)
    at_once = getattr(config_of(engine, "scheduler_config"), "max_num_seqs", None)
    vocabulary = config.hf_text_config.vocab_size
    usage_by_point: Dict[str, float] = {}

    def measure(point: Dict[str, Any], iteration: int, warmup: bool) -> int:
        draw = random.Random("%d %d" % (order["seed"], iteration))
        prompts = [
            [draw.randrange(vocabulary) for _ in range(point["input_len"])] for _ in range(point["batch_size"])
        ]
        params = SamplingParams(
            temperature=0.0,
            ignore_eos=True,
            max_tokens=point["output_len"],
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        usages: List[float] = []

        def sample() -> None:
            usage = kv_usage(llm.get_metrics())
            if usage is not None:
                usages.append(usage)

        # Reading the gauges takes time, so only in warm-up, and only if the user asked vLLM for them.
        watched = warmup and options.get("disable_log_stats") is False and hasattr(llm, "get_metrics")
        prefix = "%s%s-%d" % (WARMUP_REQUEST if warmup else "", point["point"], iteration)
        seen = step_batch(engine, prompts, params, prefix, sample if watched else None)
        check_lengths(seen, point)
        took = write_lines(records, order, point, iteration, warmup, seen)
        if usages:
            usage_by_point[point["point"]] = max(usages)
        usage = usage_by_point.get(point["point"])
        if usage is None and blocks and block_size:
            usage = blocks_needed(point, block_size, at_once) / blocks
        if usage is not None:
            records._add(
                "telemetry", max(seen.last.values()), scope="engine", metric="kv_cache_usage_ratio", value=usage
            )
        if seen.reported_ttft and not warmup:
            observed, reported = seen.ttft_ns() / 1e9, sum(seen.reported_ttft) / len(seen.reported_ttft)
            if abs(reported - observed) > 0.2 * observed:
                sys.stderr.write(
                    "inferscope: %s: vLLM reports a TTFT of %.1f ms, measured %.1f ms\n"
                    % (point["point"], reported * 1e3, observed * 1e3)
                )
        return took

    try:
        if memory is not None:
            memory.ask(llm, "load")
        measure_points(order, records, measure, classify, lambda: stop.stopped)
        if memory is not None:
            memory.ask(llm, "end")
    finally:
        finish_traces(llm)
        end_engine(llm)


def start_failure(order: Dict[str, Any], error: Exception) -> EngineError:
    """The cause is in the log of the engine's processes; the error that arrives here often states only that they
    exited.
    """
    memory = classify(error) == "out_of_memory" or "KV cache" in str(error)
    return EngineError(
        "E_OUT_OF_MEMORY" if memory else "E_WORKLOAD_FAILED",
        "vLLM could not start with %s" % (order.get("name") or order["model"]),
        "%s: %s" % (type(error).__name__, message_of(error)),
        "Try --engine-arg gpu_memory_utilization=0.8 or --engine-arg max_model_len=4096."
        if memory
        else "Its log is saved with the session.",
    )


def message_of(error: Exception) -> str:
    """One line. pydantic's first line counts its errors: "1 validation error for ModelConfig"."""
    for line in str(error).split("\n")[1:]:
        if line.strip().startswith(("Value error, ", "Assertion failed, ")):
            return line.strip().split(", ", 1)[1].split(" [type=", 1)[0]
    return first_line(error)


def record_model(records: Recorder, order: Dict[str, Any], options: Dict[str, Any], version: str, engine: Any) -> None:
    device = getattr(config_of(engine, "device_config"), "device_type", None)
    model_line(
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
        words = "%s: %s" % (type(error).__name__, first_line(error))
        fix = "Its whole output is in the log of the launch."
        record_failure(recorder(), EngineError("E_WORKLOAD_FAILED", "vLLM broke off", words, fix))
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
    end_below(os.getpid())
    os._exit(status)
