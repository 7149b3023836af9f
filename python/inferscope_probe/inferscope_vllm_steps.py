"""Steps vLLM's engine through one batch, as vllm.LLM.generate does, and writes its lines of the record. Needs no vLLM.

The arrival of each token is taken from CLOCK_MONOTONIC in this process: V0 and V1 report different times of a request
(RequestOutput.metrics), and V1 reports none by default.
"""

import time
from typing import Any, Dict, List, Optional, Tuple

from inferscope_record import Recorder

# The name since 0.9.2, and the one before.
_GAUGES = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")


def engine_ttft(metrics: Any) -> Optional[float]:
    """TTFT in seconds as the engine itself reports it, from RequestOutput.metrics; None if it does not.
    V0: RequestMetrics with arrival_time and first_token_time. V1, if available: RequestStateStats with
    first_token_latency (arrival at the front end to its first token).
    """
    if metrics is None:
        return None
    latency = getattr(metrics, "first_token_latency", None)
    if latency:
        return float(latency)
    arrival, first_token = getattr(metrics, "arrival_time", None), getattr(metrics, "first_token_time", None)
    return float(first_token) - float(arrival) if arrival and first_token else None


def kv_usage(metrics: List[Any]) -> Optional[float]:
    """Share of the KV blocks in use, from LLM.get_metrics(); the maximum over several engines."""
    for name in _GAUGES:
        values = [float(metric.value) for metric in metrics if metric.name == name]
        if values:
            return max(values)
    return None


def blocks_needed(point: Dict[str, Any], block_size: int, max_num_seqs: Optional[int] = None) -> int:
    """KV blocks that the sequences of a point fill at their ends; the last token is never fed back. `max_num_seqs`: how many
    sequences run at once; the others wait without blocks.
    """
    length = point["input_len"] + point["output_len"] - 1
    running = int(point["batch_size"]) if max_num_seqs is None else min(int(point["batch_size"]), max_num_seqs)
    return running * -(-length // block_size)


def config_of(engine: Any, name: str) -> Any:
    """cache_config, scheduler_config, device_config: in vllm_config in V1, also in the engine itself in V0."""
    return getattr(getattr(engine, "vllm_config", None), name, None) or getattr(engine, name, None)


def cache_of(engine: Any) -> Tuple[Optional[int], Optional[int]]:
    """KV blocks and tokens per block."""
    config = config_of(engine, "cache_config")
    blocks, size = getattr(config, "num_gpu_blocks", None), getattr(config, "block_size", None)
    return (int(blocks) if blocks else None, int(size) if size else None)


class BatchTimes:
    """Times of one batch, ns of CLOCK_MONOTONIC; by request: when it was added, its first and its last token."""

    def __init__(self) -> None:
        self.start_ns = 0
        self.added_ns: Dict[str, int] = {}
        self.first_ns: Dict[str, int] = {}
        self.last_ns: Dict[str, int] = {}
        self.tokens: Dict[str, int] = {}
        self.steps: List[Tuple[int, int, int]] = []  # start, end, tokens that arrived
        self.reported_ttft: List[float] = []

    def add_step(self, start_ns: int, end_ns: int, outputs: List[Any]) -> None:
        arrived = 0
        for output in outputs:
            count = len(output.outputs[0].token_ids)
            if count == 0:
                continue
            arrived += count
            name = output.request_id
            self.first_ns.setdefault(name, end_ns)
            self.last_ns[name] = end_ns
            self.tokens[name] = self.tokens.get(name, 0) + count
            if output.finished:
                ttft = engine_ttft(getattr(output, "metrics", None))
                if ttft is not None:
                    self.reported_ttft.append(ttft)
        if arrived > 0:
            self.steps.append((start_ns, end_ns, arrived))

    def ttft_ns(self) -> float:
        return sum(self.first_ns[name] - added for name, added in self.added_ns.items()) / len(self.added_ns)

    def tpot_ns(self, output_len: int) -> Optional[float]:
        if output_len < 2:
            return None
        gaps = [(self.last_ns[name] - self.first_ns[name]) / (output_len - 1) for name in self.added_ns]
        return sum(gaps) / len(gaps)

    def stages(self) -> List[Tuple[str, int, int, int]]:
        """(kind, start, end, tokens): one stage until every sequence has its first token, then one per decode step."""
        prefill_end = max(self.first_ns.values())
        prefill_steps = [step for step in self.steps if step[1] <= prefill_end]
        kind = "prefill" if len(prefill_steps) == 1 else "mixed"
        stages = [(kind, self.start_ns, prefill_end, sum(step[2] for step in prefill_steps))]
        return stages + [("decode",) + step for step in self.steps if step[1] > prefill_end]


def step_batch(engine: Any, prompts: List[List[int]], params: Any, prefix: str, sample: Any = None) -> BatchTimes:
    """Adds all prompts and steps the engine until they are done. `sample()` is called after each step."""
    times = BatchTimes()
    times.start_ns = time.monotonic_ns()
    for number, ids in enumerate(prompts):
        name = "%s-%d" % (prefix, number)
        times.added_ns[name] = time.monotonic_ns()
        engine.add_request(name, {"prompt_token_ids": ids}, params)
    while engine.has_unfinished_requests():
        start = time.monotonic_ns()
        outputs = engine.step()
        times.add_step(start, time.monotonic_ns(), outputs)
        if sample is not None:
            sample()
    return times


def check_lengths(times: BatchTimes, point: Dict[str, Any]) -> None:
    short = [name for name in times.added_ns if times.tokens.get(name, 0) != point["output_len"]]
    if short:
        raise ValueError(
            "%d of %d sequences had %d tokens, not the requested %d: the context length of the engine may be too short"
            % (len(short), len(times.added_ns), times.tokens.get(short[0], 0), point["output_len"])
        )


def write_lines(records: Recorder, order: Dict[str, Any], point: Dict[str, Any], iteration: int, warmup: bool, times: BatchTimes) -> int:
    end_ns = max(times.last_ns.values())
    batch, context = point["batch_size"], point["input_len"]
    for step, (kind, start, end, tokens) in enumerate(times.stages()):
        is_prefill = step == 0
        records.stage(
            kind, start, end, iteration, None if is_prefill else step - 1, batch,
            batch * context if is_prefill else tokens, batch * (context + step), warmup,
        )
    records.add_line(
        "request",
        times.start_ns,
        iteration=iteration,
        launch=order["launch"],
        warmup=warmup,
        batch_size=batch,
        input_len=context,
        output_len=point["output_len"],
        first_token_ns=times.start_ns + round(times.ttft_ns()),
        end_ns=end_ns,
        tpot_ns=times.tpot_ns(point["output_len"]),
        point=point["point"],
    )
    return end_ns - times.start_ns
