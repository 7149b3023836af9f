"""One batch in vLLM's engine, stepped as vllm.LLM.generate does it, and its lines of the record. Needs no vLLM.

Every token is stamped on CLOCK_MONOTONIC in this process: V0 and V1 report different things about a request
(RequestOutput.metrics), and V1 reports nothing by default.
"""

import time
from typing import Any, Dict, List, Optional, Tuple

from inferscope_record import Recorder

_GAUGES = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")  # since 0.9.2, before




def engine_ttft(metrics: Any) -> Optional[float]:
    """TTFT in seconds as the engine itself reports it, from RequestOutput.metrics of either generation; None without.
    V0: RequestMetrics with arrival_time and first_token_time. V1, if available: RequestStateStats with
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
    """Share of the KV blocks in use, from LLM.get_metrics(); the maximum over several engines."""
    for name in _GAUGES:
        values = [float(metric.value) for metric in metrics if metric.name == name]
        if values:
            return max(values)
    return None


def blocks_needed(point: Dict[str, Any], block_size: int, max_num_seqs: Optional[int] = None) -> int:
    """KV blocks that the sequences of a point fill at their ends; the last token is never fed back.

    `max_num_seqs`: more sequences do not run at once; the others wait without blocks.
    """
    length = point["input_len"] + point["output_len"] - 1
    at_once = int(point["batch_size"]) if max_num_seqs is None else min(int(point["batch_size"]), max_num_seqs)
    return at_once * -(-length // block_size)


def config_of(engine: Any, name: str) -> Any:
    """cache_config, scheduler_config, device_config: in vllm_config in V1, also in the engine itself in V0."""
    return getattr(getattr(engine, "vllm_config", None), name, None) or getattr(engine, name, None)


def cache_of(engine: Any) -> Tuple[Optional[int], Optional[int]]:
    """KV blocks and tokens per block."""
    config = config_of(engine, "cache_config")
    blocks, size = getattr(config, "num_gpu_blocks", None), getattr(config, "block_size", None)
    return (int(blocks) if blocks else None, int(size) if size else None)


class Stepped:
    """Time stamps of one batch: monotonic ns."""

    def __init__(self) -> None:
        self.begin_ns = 0
        self.added: Dict[str, int] = {}
        self.first: Dict[str, int] = {}
        self.last: Dict[str, int] = {}
        self.tokens: Dict[str, int] = {}
        self.steps: List[Tuple[int, int, int]] = []  # begin, end, tokens that came
        self.reported_ttft: List[float] = []

    def add_step(self, begin_ns: int, end_ns: int, outputs: List[Any]) -> None:
        arrived = 0
        for output in outputs:
            count = len(output.outputs[0].token_ids)
            if count == 0:
                continue
            arrived += count
            name = output.request_id
            self.first.setdefault(name, end_ns)
            self.last[name] = end_ns
            self.tokens[name] = self.tokens.get(name, 0) + count
            if output.finished:
                ttft = engine_ttft(getattr(output, "metrics", None))
                if ttft is not None:
                    self.reported_ttft.append(ttft)
        if arrived > 0:
            self.steps.append((begin_ns, end_ns, arrived))

    def ttft_ns(self) -> float:
        return sum(self.first[name] - added_ns for name, added_ns in self.added.items()) / len(self.added)

    def tpot_ns(self, output_len: int) -> Optional[float]:
        if output_len < 2:
            return None
        gaps = [(self.last[name] - self.first[name]) / (output_len - 1) for name in self.added]
        return sum(gaps) / len(gaps)

    def stages(self) -> List[Tuple[str, int, int, int]]:
        """kind, begin, end, tokens: one stage until every sequence has its first token, then one per decode step."""
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
