"""What the hooks of `inferscope run` cost per decode step: on and off on alternate steps of one process.

Run below the probe: PYTHONPATH=python/inferscope_probe INFERSCOPE_EVALUATOR=none INFERSCOPE_RECORD=/dev/null python bench/hooks/overhead.py
Prints median step times and the 95 % interval of the difference of neighbours (bootstrap of the median), in us.
"""

import random
import statistics
import time

import inferscope_hooks
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

STEPS = 600
torch.set_num_threads(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = LlamaConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
model = LlamaForCausalLM(config).eval().to(device)
token = torch.ones(1, 1, dtype=torch.long, device=device)
times = {True: [], False: []}
differences = []
with torch.inference_mode():
    cache = DynamicCache(config=config)
    model(token.repeat(1, 8), past_key_values=cache)
    for step in range(STEPS):
        order = (True, False) if step % 2 else (False, True)
        pair = {}
        for on in order:
            inferscope_hooks._broken = not on
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter_ns()
            model(token, past_key_values=cache)
            pair[on] = time.perf_counter_ns() - start
            cache.crop(8)
        if step >= 20:
            differences.append((pair[True] - pair[False]) / 1e3)
            for on in pair:
                times[on].append(pair[on] / 1e3)
inferscope_hooks._broken = False
resampled = sorted(statistics.median(random.choices(differences, k=len(differences))) for _ in range(1000))
print(
    "%s: %.1f us with hooks, %.1f us without (medians of %d steps); difference %.1f us, 95 %% interval %.1f to %.1f us"
    % (device, statistics.median(times[True]), statistics.median(times[False]), len(differences),
       statistics.median(differences), resampled[25], resampled[974])
)
