"""Measures what the hooks of `inferscope run` cost per decode step: on and off on alternate steps of one process.

Run with the probe: PYTHONPATH=python/inferscope_probe INFERSCOPE_EVALUATOR=none INFERSCOPE_RECORD=/dev/null python bench/hooks/overhead.py [PAIRS]
`--layers N` sets the length of a step; `--graph` replays a CUDA graph of it.
Prints, in us of CPU time of the thread that runs the model (preemption by other processes does not count), the medians, the
difference of neighboring steps with its 95 % interval, and whether the upper end is at most 1 % of a step or 10 us. Differences
are averaged over GROUP neighbors, because short steps share an event of the device; the result is the median of these averages
(order statistics, no assumption on the distribution).
"""

import argparse
import gc
import math
import statistics
import time

import torch
from inferscope_hook_calls import local
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache

parser = argparse.ArgumentParser()
parser.add_argument("pairs", type=int, nargs="?", default=15_000)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--graph", action="store_true")
arguments = parser.parse_args()
PAIRS = arguments.pairs
WARMUP = 30
PAIRS_PER_PROMPT = 100
GROUP = 12  # pairs: at most as many steps share an event
torch.set_num_threads(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = LlamaConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=arguments.layers, num_attention_heads=4)
model = LlamaForCausalLM(config).eval().to(device)
token = torch.ones(1, 1, dtype=torch.long, device=device)
plain_call = torch.nn.Module.__call__
plain_replay = torch.cuda.CUDAGraph.replay.__wrapped__
thread = local.thread


def step(on, cache):
    """-> ns of one decode step; without hooks it calls the model directly; the check of the inner model is in both"""
    if device == "cuda":
        torch.cuda.synchronize()
    thread.busy = not on
    start = time.thread_time_ns()
    if graph is not None:
        (torch.cuda.CUDAGraph.replay if on else plain_replay)(graph)
    elif on:
        model(token, past_key_values=cache)
    else:
        plain_call(model, token, past_key_values=cache)
    end = time.thread_time_ns()
    thread.busy = False
    return end - start


def record_graph():
    """The graph of a decode step with a static cache; its first replays, which count as warm-up, are over."""
    cache = StaticCache(config=config, max_cache_len=64)
    model(token.repeat(1, 8), past_key_values=cache)
    stream, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(token, past_key_values=cache)
        with torch.cuda.graph(recorded, stream=stream):
            model(token, past_key_values=cache)
    torch.cuda.synchronize()
    for _ in range(8):
        recorded.replay()
    return recorded


graph = cache = None
times = {True: [], False: []}
differences = []
with torch.inference_mode():
    graph = record_graph() if arguments.graph else None
    gc.disable()
    for pair in range(PAIRS + WARMUP):
        if graph is None and pair % PAIRS_PER_PROMPT == 0:
            cache = DynamicCache(config=config)
            model(token.repeat(1, 8), past_key_values=cache)
            for _ in range(8):
                model(token, past_key_values=cache)
        order = (True, False) if pair % 2 else (False, True)
        took = {on: step(on, cache) / 1e3 for on in order}
        if pair >= WARMUP:
            differences.append(took[True] - took[False])
            for on in took:
                times[on].append(took[on])
differences = sorted(statistics.mean(differences[i : i + GROUP]) for i in range(0, len(differences) - GROUP + 1, GROUP))
count = len(differences)
spread = 0.98 * math.sqrt(count)  # 1.96 standard deviations of a binomial distribution with p = 0.5
low, high = differences[max(0, math.floor(count / 2 - spread))], differences[min(count - 1, math.ceil(count / 2 + spread))]
without = statistics.median(times[False])
limit = max(10, without / 100)
print(
    "%s: %.1f us without hooks, %.1f us with (medians of %d steps); difference %.1f us, 95 %% interval %.1f to %.1f us; limit %.1f us: %s"
    % (
        torch.cuda.get_device_name() if device == "cuda" else "cpu", without, statistics.median(times[True]), len(times[True]),
        statistics.median(differences), low, high, limit, "kept" if high <= limit else "exceeded",
    )
)
