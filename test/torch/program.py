"""A program without marks around a small transformer. Its argument says how it exits, or what it does before."""

import importlib.util
import os
import signal
import sys
import time

if importlib.util.find_spec("torch") is None:  # as many libraries check first
    raise SystemExit("no torch")
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
)
model = LlamaForCausalLM(config).eval()
with torch.inference_mode():
    with torch.profiler.record_function("inferscope:prefill:0:0"):
        out = model(torch.zeros(1, 8, dtype=torch.long), use_cache=True)
    for step in range(2):
        with torch.profiler.record_function("inferscope:decode:0:%d" % step):
            out = model(torch.zeros(1, 1, dtype=torch.long), past_key_values=out.past_key_values, use_cache=True)
print("computed", flush=True)
how = sys.argv[1]
if how == "exit":
    sys.exit(3)
if how == "exception":
    raise ValueError("the program's own")
if how in ("SIGTERM", "SIGINT"):
    os.kill(os.getpid(), getattr(signal, how))
    time.sleep(5)
if how == "_exit":
    os._exit(5)
if how == "fork":
    child = os.fork()
    if child == 0:
        os._exit(7)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
if how == "spawn":
    import subprocess

    sys.exit(subprocess.call([sys.executable, "-c", "import torch; torch.ones(4, 4) @ torch.ones(4, 4)"]))
if how == "own profiler":
    with torch.profiler.profile() as profile:
        model(torch.zeros(1, 4, dtype=torch.long))
    print("own", any(event.name == "aten::linear" for event in profile.events()))
if how == "long":
    end = time.time() + 3
    with torch.profiler.record_function("long"):
        while time.time() < end:
            torch.ones(3)
