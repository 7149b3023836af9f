"""vLLM's offline engine for a benchmark order: python inferscope_vllm.py ORDER.json (versions 0.6 to 0.11, V0 and V1).

The engine is stepped here, as vllm.LLM.generate does it, so that every token is stamped on CLOCK_MONOTONIC in this
process: V0 and V1 tell different things about a request (RequestOutput.metrics), and V1 tells nothing by default.
Prompts are token ids, outputs are not detokenized.
"""

import dataclasses
import importlib.metadata
import json
import os
import random
import sys
import time
import traceback
import typing
from typing import Any, Dict, List, Optional, Tuple

from inferscope_points import (
    EngineError,
    StopFlag,
    claim_stdout,
    first_line,
    measure_points,
    read_order,
    record_failure,
    tell,
)
from inferscope_record import Recorder, mark_name, recorder

OLDEST = (0, 6)
# What differs from vLLM's own choice, and why.
_OURS: Dict[str, Any] = {
    "enable_prefix_caching": False,  # a repeated block of a prompt would skip its prefill; vllm bench latency does so too
    "disable_log_stats": True,  # as vllm.LLM itself has it
    "skip_tokenizer_init": True,  # prompts are token ids
}
_GAUGES = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")  # since 0.9.2, before


def version_of(text: str) -> Tuple[int, int]:
    """'0.6.6.post1' -> (0, 6); a development build (0.1.dev…) counts as newest."""
    parts = text.split(".")
    try:
        found = (int(parts[0]), int(parts[1]))
    except (IndexError, ValueError):
        return (99, 0)
    return (99, 0) if "dev" in text and found < OLDEST else found


def installed_version() -> str:
    try:
        text = importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        raise EngineError(
            "E_ENGINE_MISSING",
            "vLLM is not installed for %s" % sys.executable,
            "The engine vllm runs in a Python that has the package vllm.",
            "Type: %s -m pip install vllm   or name another Python: --python PATH" % sys.executable,
        ) from None
    if version_of(text) < OLDEST:
        raise EngineError(
            "E_TOOL_VERSION",
            "vLLM %s is too old" % text,
            "Its engine is driven step by step, which is written for 0.6 and later.",
            "Type: %s -m pip install --upgrade vllm" % sys.executable,
        )
    return text


def coerced(key: str, text: str, annotation: Any) -> Any:
    """The value of --engine-arg key=text for a field of EngineArgs with this type annotation.

    Raises EngineError(E_USAGE) where no member of the type takes it.
    """
    kinds = _kinds(annotation)
    if text.lower() in ("none", "null") and type(None) in kinds:
        return None
    if bool in kinds and text.lower() in ("true", "false", "1", "0", "yes", "no"):
        return text.lower() in ("true", "1", "yes")
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            raise _bad_value(key, text, "JSON") from None
    if bool in kinds and str not in kinds:
        raise _bad_value(key, text, "true or false")
    if kinds and kinds <= {int, float, type(None)}:
        raise _bad_value(key, text, "a number")
    return text


def field_types(engine_args: Any) -> Dict[str, Any]:
    """name -> type of the fields of EngineArgs; its annotation as text where a name in it cannot be resolved."""
    try:
        hints = typing.get_type_hints(engine_args)
    except Exception:
        hints = {}
    return {field.name: hints.get(field.name, field.type) for field in dataclasses.fields(engine_args)}


def _kinds(annotation: Any) -> set:
    """The plain types that an annotation allows: Optional, Union (also X | Y), Literal and Annotated taken apart."""
    if isinstance(annotation, str):
        names = {"int": int, "float": float, "bool": bool, "str": str, "None": type(None)}
        words = set(_words(annotation))
        found = {kind for name, kind in names.items() if name in words}
        found |= {type(None)} if "Optional" in words else set()
        return found if words <= set(names) | {"Optional", "Union", "typing"} else found | {str}
    origin = typing.get_origin(annotation)
    if origin is None:
        return {annotation} if annotation in (int, float, bool, str, type(None)) else {str}
    if str(origin) == "typing.Literal":
        return {type(value) for value in typing.get_args(annotation)}
    if origin is typing.Union or "UnionType" in str(origin) or "Annotated" in str(annotation):
        return set().union(*(_kinds(part) for part in typing.get_args(annotation)))
    return {str}


def _words(text: str) -> List[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def _bad_value(key: str, text: str, takes: str) -> EngineError:
    return EngineError(
        "E_USAGE", "--engine-arg %s=%s cannot be read" % (key, text), "vLLM takes %s there." % takes,
        "Leave it out for vLLM's own default.",
    )


def engine_options(order: Dict[str, Any], fields: Dict[str, Any]) -> Dict[str, Any]:
    """Keyword arguments of EngineArgs. `fields`: name -> type annotation of this vLLM's EngineArgs."""
    options: Dict[str, Any] = {"model": order["model"], "seed": order["seed"]}
    options.update((key, value) for key, value in _OURS.items() if key in fields)
    if order["weights"] == "random":
        options["load_format"] = "dummy"
    if order.get("dtype"):
        options["dtype"] = order["dtype"]
    if order.get("device") and "device" in fields:  # newer ones find it themselves
        options["device"] = order["device"].split(":")[0]
    largest = max(point["batch_size"] for point in order["points"])
    if largest > 256:  # else a batch would be run as several
        options["max_num_seqs"] = largest
    for key, text in order["engine_args"].items():
        name = key.replace("-", "_")
        if name not in fields or name == "model":
            raise EngineError(
                "E_USAGE",
                "vLLM has no engine argument %s" % key,
                "This version knows %s, …" % ", ".join(_near(name, list(fields))),
                "vllm serve --help lists all of them.",
            )
        options[name] = coerced(key, text, fields[name])
    return options


def _near(name: str, names: List[str]) -> List[str]:
    import difflib

    near = difflib.get_close_matches(name, names, 5, 0.5)
    return near or ["max_num_seqs", "gpu_memory_utilization", "enforce_eager", "quantization"]


def told_ttft(metrics: Any) -> Optional[float]:
    """TTFT in seconds as the engine itself tells it, of RequestOutput.metrics of either generation; None without.

    V0: RequestMetrics with arrival_time and first_token_time. V1, where it has them: RequestStateStats with
    first_token_latency (arrival at the front end to its first token).
    """
    if metrics is None:
        return None
    latency = getattr(metrics, "first_token_latency", None)
    if latency:
        return float(latency)
    arrival, first = getattr(metrics, "arrival_time", None), getattr(metrics, "first_token_time", None)
    return float(first) - float(arrival) if arrival and first else None


def kv_usage(metrics: List[Any]) -> Optional[float]:
    """Share of the KV blocks in use, of LLM.get_metrics(); the fullest engine of several."""
    for name in _GAUGES:
        found = [float(metric.value) for metric in metrics if metric.name == name]
        if found:
            return max(found)
    return None


def blocks_needed(point: Dict[str, Any], block_size: int) -> int:
    """KV blocks that the sequences of a point fill at their ends; the last token is never fed back."""
    length = point["input_len"] + point["output_len"] - 1
    return int(point["batch_size"]) * -(-length // block_size)


class Stepped:
    """Stamps of one batch: monotonic ns."""

    def __init__(self) -> None:
        self.begin_ns = 0
        self.added: Dict[str, int] = {}
        self.first: Dict[str, int] = {}
        self.last: Dict[str, int] = {}
        self.tokens: Dict[str, int] = {}
        self.steps: List[Tuple[int, int, int]] = []  # begin, end, tokens that came
        self.told: List[float] = []

    def add_step(self, begin_ns: int, end_ns: int, outputs: List[Any]) -> None:
        came = 0
        for output in outputs:
            count = len(output.outputs[0].token_ids)
            if count == 0:
                continue
            came += count
            name = output.request_id
            self.first.setdefault(name, end_ns)
            self.last[name] = end_ns
            self.tokens[name] = self.tokens.get(name, 0) + count
            if output.finished:
                told = told_ttft(getattr(output, "metrics", None))
                if told is not None:
                    self.told.append(told)
        if came > 0:
            self.steps.append((begin_ns, end_ns, came))

    def ttft_ns(self) -> float:
        return sum(self.first[name] - at for name, at in self.added.items()) / len(self.added)

    def tpot_ns(self, output_len: int) -> Optional[float]:
        if output_len < 2:
            return None
        gaps = [(self.last[name] - self.first[name]) / (output_len - 1) for name in self.added]
        return sum(gaps) / len(gaps)

    def stages(self) -> List[Tuple[str, int, int, int]]:
        """kind, begin, end, tokens: one stage until every sequence has its first token, then a decode step each."""
        ready = max(self.first.values())
        head = [step for step in self.steps if step[1] <= ready]
        kind = "prefill" if len(head) == 1 else "mixed"
        rows = [(kind, self.begin_ns, ready, sum(step[2] for step in head))]
        return rows + [("decode",) + step for step in self.steps if step[1] > ready]


def step_batch(engine: Any, prompts: List[List[int]], params: Any, prefix: str, sample: Any = None) -> Stepped:
    """Adds all prompts and steps the engine until they are done. `sample()` is called after each step."""
    seen = Stepped()
    seen.begin_ns = time.monotonic_ns()
    for number, ids in enumerate(prompts):
        name = "%s-%d" % (prefix, number)
        seen.added[name] = time.monotonic_ns()
        engine.add_request(name, {"prompt_token_ids": ids}, params)
    while engine.has_unfinished_requests():
        begin = time.monotonic_ns()
        outputs = engine.step()
        seen.add_step(begin, time.monotonic_ns(), outputs)
        if sample is not None:
            sample()
    return seen


def check_lengths(seen: Stepped, point: Dict[str, Any]) -> None:
    short = [name for name in seen.added if seen.tokens.get(name, 0) != point["output_len"]]
    if short:
        raise ValueError(
            "%d of %d sequences had %d tokens, not the %d asked for: the context of the engine may be too short"
            % (len(short), len(seen.added), seen.tokens.get(short[0], 0), point["output_len"])
        )


def classify(error: BaseException) -> Optional[str]:
    """An engine whose core died measures nothing more; what it says of memory is the limit found."""
    text = type(error).__name__ + " " + str(error)
    memory = "out of memory" in text.lower() or "OutOfMemory" in text
    if "EngineDead" in text or "EngineCore" in text:
        return None
    return "out_of_memory" if memory else "failed"


def write_lines(records: Recorder, order: Dict[str, Any], point: Dict[str, Any], iteration: int, warmup: bool, seen: Stepped) -> int:
    end_ns = max(seen.last.values())
    batch, context = point["batch_size"], point["input_len"]
    for step, (kind, begin, end, tokens) in enumerate(seen.stages()):
        head = step == 0
        records.stage(
            kind, begin, end, iteration, None if head else step - 1, batch,
            batch * context if head else tokens,
            batch * (context if head else context + step), warmup,
        )
    records._add(
        "request",
        seen.begin_ns,
        iteration=iteration,
        launch=order["launch"],
        warmup=warmup,
        batch_size=batch,
        input_len=context,
        output_len=point["output_len"],
        first_token_ns=seen.begin_ns + round(seen.ttft_ns()),
        end_ns=end_ns,
        tpot_ns=seen.tpot_ns(point["output_len"]),
        point=point["point"],
    )
    return end_ns - seen.begin_ns


def run(order: Dict[str, Any]) -> None:
    version = installed_version()
    os.environ["INFERSCOPE_EXECUTION_ID"] = order["execution_id"]
    stop = StopFlag()
    records = recorder()
    tell(type="phase", phase="load")
    began = time.monotonic_ns()
    from vllm import LLM, SamplingParams  # type: ignore[import-not-found]
    from vllm.engine.arg_utils import EngineArgs  # type: ignore[import-not-found]
    from vllm.sampling_params import RequestOutputKind  # type: ignore[import-not-found]

    options = engine_options(order, field_types(EngineArgs))
    try:
        llm = LLM(**options)
    except Exception as error:
        memory = classify(error) == "out_of_memory" or "KV cache" in str(error)
        raise EngineError(
            "E_OUT_OF_MEMORY" if memory else "E_WORKLOAD_FAILED",
            "vLLM could not start with %s" % order["model"],
            first_line(error),
            "Try --engine-arg gpu_memory_utilization=0.8 or --engine-arg max_model_len=4096."
            if memory
            else "Its log is kept with the session.",
        ) from error
    records.stage("load", began, time.monotonic_ns())
    engine = llm.llm_engine
    config = engine.model_config
    record_model(records, order, options, version, config)
    blocks, block_size = cache_of(engine)
    vocabulary = config.hf_text_config.vocab_size
    kept: Dict[str, float] = {}

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
        most: List[float] = []

        def sample() -> None:
            usage = kv_usage(llm.get_metrics())
            if usage is not None:
                most.append(usage)

        # Reading the gauges costs time: in warm-up only, and only where the user asked vLLM to keep them.
        watched = warmup and options.get("disable_log_stats") is False and hasattr(llm, "get_metrics")
        seen = step_batch(engine, prompts, params, "%s-%d" % (point["point"], iteration), sample if watched else None)
        check_lengths(seen, point)
        took = write_lines(records, order, point, iteration, warmup, seen)
        if most:
            kept[point["point"]] = max(most)
        usage = kept.get(point["point"])
        if usage is None and blocks and block_size:
            usage = blocks_needed(point, block_size) / blocks
        if usage is not None:
            records._add(
                "telemetry", max(seen.last.values()), scope="engine", metric="kv_cache_usage_ratio", value=usage
            )
        if seen.told and not warmup:
            own, told = seen.ttft_ns() / 1e9, sum(seen.told) / len(seen.told)
            if abs(told - own) > 0.2 * own:
                sys.stderr.write(
                    "inferscope: %s: vLLM tells a TTFT of %.1f ms, stamped were %.1f ms\n"
                    % (point["point"], told * 1e3, own * 1e3)
                )
        return took

    measure_points(order, records, measure, classify, lambda: stop.stopped)


def record_model(records: Recorder, order: Dict[str, Any], options: Dict[str, Any], version: str, config: Any) -> None:
    hf = config.hf_config.to_dict()
    records.model(
        name=str(order.get("name") or order["model"]),
        config=json.loads(json.dumps(hf, default=str)),
        dtype=str(config.dtype).replace("torch.", ""),
        device=str(options.get("device") or "cuda"),
        weights=order["weights"],
        quantization=None if config.quantization is None else str(config.quantization),
        engine="vllm",
        engine_version=version,
        tensor_parallel_size=int(options.get("tensor_parallel_size") or 1),
    )


def cache_of(engine: Any) -> Tuple[Optional[int], Optional[int]]:
    """KV blocks and tokens a block; V1 keeps them in vllm_config, V0 in the engine itself too."""
    config = getattr(getattr(engine, "vllm_config", None), "cache_config", None) or getattr(engine, "cache_config", None)
    blocks, size = getattr(config, "num_gpu_blocks", None), getattr(config, "block_size", None)
    return (int(blocks) if blocks else None, int(size) if size else None)


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
    # Threads and worker processes of the engine can keep the interpreter from ending.
    os._exit(status)
