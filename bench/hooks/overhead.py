"""Measures what the hooks of `inferscope run` cost per decode step: with and without them on alternate steps of one process.

Without hooks steps a twin of the model, with the same weights: its classes, of the model, of the model inside it and of its
embedding, have torch's own calls. There are several models and twins, because how Python caches the attributes of a class
differs by some us from class to class.

Run with the probe: PYTHONPATH=python/inferscope_probe INFERSCOPE_EVALUATOR=none INFERSCOPE_RECORD=/dev/null python bench/hooks/overhead.py [PAIRS]
`--layers N` sets the length of a step; `--graph` replays a CUDA graph of it.
Prints, in us of CPU time of the thread that runs the model (preemption by other processes does not count), the medians, the
difference of neighboring steps with its 95 % interval, and whether the upper end is at most 1 % of a step or 10 us. Differences
are averaged over GROUP neighbors, because short steps share an event of the device; the result is the median of these averages
(order statistics, no assumption on the distribution).
"""

import argparse
import copy
import gc
import math
import statistics
import time

import torch
from inferscope_hook_times import SHARED_STEPS
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache

parser = argparse.ArgumentParser()
parser.add_argument("pairs", type=int, nargs="?", default=15_000)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--graph", action="store_true")
arguments = parser.parse_args()
PAIRS = arguments.pairs
WARMUP = 30
PAIRS_PER_PROMPT = 100
PAIRS_PER_RESET = 25  # both replays of a pair add a position to the cache of 64
GROUP = SHARED_STEPS  # pairs: at most as many steps share an event
MODELS = 8
torch.set_num_threads(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = LlamaConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=arguments.layers, num_attention_heads=4)
token = torch.ones(1, 1, dtype=torch.long, device=device)
plain_replay = torch.cuda.CUDAGraph.replay.__wrapped__


def embed(self, ids):
    """The forward of torch.nn.Embedding."""
    return torch.nn.functional.embedding(ids, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)


def copied(module, attributes):
    """-> a copy with a class of its own, which has these attributes, and with the same parameters and parts"""
    copy_of_it = copy.copy(module)
    copy_of_it._modules = dict(module._modules)
    copy_of_it.__class__ = type(type(module).__name__, (type(module),), attributes)
    return copy_of_it


def with_classes(model, call, forward):
    """-> a copy of the model; `call` and `forward`: attributes of the classes of the models and of the embedding"""
    outer, inner = copied(model, call), copied(model.model, call)
    inner.embed_tokens = copied(inner.embed_tokens, forward)
    outer.model = inner
    return outer


def step(on, model, twin, cache):
    """-> ns of one decode step"""
    if device == "cuda":
        torch.cuda.synchronize()
    called = model if on else twin
    start = time.thread_time_ns()
    if graph is None:
        called(token, past_key_values=cache)
    elif on:
        graph.replay()
    else:
        plain_replay(graph)
    return time.thread_time_ns() - start


def record_graph(model):
    """-> the graph of a decode step, and its static cache; the first replays, which count as warm-up, are over"""
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
    return recorded, cache


graph = cache = model = twin = None
times = {True: [], False: []}
differences = []
with torch.inference_mode():
    original = LlamaForCausalLM(config).eval().to(device)
    original(token)  # hooks look for a model until the first one is called
    models = [with_classes(original, {}, {}) for _ in range(MODELS)]
    twins = [with_classes(original, {"__call__": torch.nn.Module._wrapped_call_impl}, {"forward": embed}) for _ in range(MODELS)]
    graph, cache = record_graph(original) if arguments.graph else (None, None)
    gc.disable()
    for pair in range(PAIRS + WARMUP):
        if graph is None and pair % PAIRS_PER_PROMPT == 0:
            cache = DynamicCache(config=config)
            number = pair // PAIRS_PER_PROMPT
            model, twin = models[number % MODELS], twins[number // 2 % MODELS]
            twin(token.repeat(1, 8), past_key_values=DynamicCache(config=config))
            model(token.repeat(1, 8), past_key_values=cache)
            for _ in range(8):
                model(token, past_key_values=cache)
        if graph is not None and pair % PAIRS_PER_RESET == 0:
            cache.reset()
        order = (True, False) if pair % 2 else (False, True)
        took = {on: step(on, model, twin, cache) / 1e3 for on in order}
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
