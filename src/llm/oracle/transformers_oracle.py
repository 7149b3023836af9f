"""Counts parameters and matrix-multiplication FLOPs with PyTorch and transformers, as an oracle for src/llm.

    python transformers_oracle.py ../presets.json tiny-configs.json > transformers.json

Parameters: every preset is built on the meta device (no memory, no download) and its parameters summed.
FLOPs: every tiny config runs on the CPU with random weights under torch.utils.flop_counter.FlopCounterMode,
which counts mm, addmm and bmm as executed; eager attention is one unmasked bmm pair, the rest are linear layers.
"""

import json
import sys

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

BATCH, PROMPT = 2, 7


def build(config, device, **options):
    config = {k: v for k, v in config.items() if k not in ("quantization_config", "torch_dtype")}
    model_type = config.pop("model_type")
    # Kimi K2 is published with its own code, which is DeepSeek V3's.
    settings = AutoConfig.for_model({"kimi_k2": "deepseek_v3"}.get(model_type, model_type), **config)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(settings, attn_implementation="eager", **options).eval()


def count_parameters(model):
    buffers = sum(b.numel() for n, b in model.named_buffers() if n.endswith("e_score_correction_bias"))
    trained = {n: p.numel() for n, p in model.named_parameters() if not n.endswith("e_score_correction_bias")}
    bias_parameters = sum(p.numel() for n, p in model.named_parameters() if n.endswith("e_score_correction_bias"))
    return sum(trained.values()), buffers + bias_parameters


def count_flops(model, **inputs):
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        out = model(**inputs, logits_to_keep=1, use_cache=True)
    by_op, rotary = {}, 0
    for module, counts in counter.get_flop_counts().items():
        for op, n in counts.items():
            if module == "Global":
                by_op[str(op).split(".")[-1]] = n
            elif module.endswith("rotary_emb"):
                rotary += n
    attention = by_op.pop("bmm", 0) - rotary
    return {"linear": sum(by_op.values()), "attention": attention, "rotary_table": rotary, "ops": by_op}, out


def main():
    presets, tiny = (json.load(open(path)) for path in sys.argv[1:3])
    result = {
        "origin": "src/llm/oracle/transformers_oracle.py",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "batch": BATCH,
        "prompt": PROMPT,
        "presets": {},
        "tiny": {},
    }
    for name, preset in presets.items():
        try:
            trained, router_bias = count_parameters(build(preset["config"], "meta"))
            result["presets"][name] = {"parameters": trained, "router_bias": router_bias}
        except Exception as error:  # kept in the result, so that a missing case is noticed
            result["presets"][name] = {"error": repr(error)[:300]}
    for name, config in tiny.items():
        try:
            try:
                model = build(config, "cpu", experts_implementation="eager")
            except (TypeError, ValueError):
                model = build(config, "cpu")
            trained, router_bias = count_parameters(model)
            ids = torch.randint(1, 100, (BATCH, PROMPT))
            prefill, out = count_flops(model, input_ids=ids)
            # Mamba returns its states under another name.
            past = getattr(out, "past_key_values", None)
            decode = past and count_flops(model, input_ids=ids[:, :1], past_key_values=past)[0]
            result["tiny"][name] = {
                "parameters": trained,
                "router_bias": router_bias,
                "prefill": prefill,
                "decode": decode,
            }
        except Exception as error:
            result["tiny"][name] = {"error": repr(error)[:300]}
    json.dump(result, sys.stdout, indent=1)


main()
