"""FLOPs of inferscope's arithmetic against torch.utils.flop_counter on transformers' own modules.

Tiny models of six architectures are built from their configs and run on the CPU; the command counts the same config. The
counter counts what is executed, so the test accounts for three differences: attention computes whole score matrices, T keys per
query, where causality needs (T + 1) / 2; the matrix multiplication of the rotary table is not in the command's count; and
lm_head is computed for the last token of each sequence only (logits_to_keep=1).
"""

import json
import os
import subprocess
import tempfile
import unittest
from fractions import Fraction
from pathlib import Path

CLI = Path(__file__).resolve().parents[2] / "dist" / "cli.js"
BATCH, PROMPT = 2, 11

GATED = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, vocab_size=211)
CONFIGS = {
    "llama": dict(GATED, model_type="llama", max_position_embeddings=64),
    "qwen2": dict(GATED, model_type="qwen2", max_position_embeddings=64, use_sliding_window=False),
    "qwen3": dict(GATED, model_type="qwen3", max_position_embeddings=64, head_dim=16, use_sliding_window=False),
    "gemma2": dict(GATED, model_type="gemma2", max_position_embeddings=64, head_dim=16, sliding_window=32, query_pre_attn_scalar=16),
    "gpt2": dict(model_type="gpt2", n_embd=48, n_layer=3, n_head=6, n_positions=64, vocab_size=211, bos_token_id=0, eos_token_id=0),
    "mixtral": dict(
        GATED, model_type="mixtral", max_position_embeddings=64, num_local_experts=4, num_experts_per_tok=2, sliding_window=None
    ),
}


def count_executed(config, attention):
    """-> (linear layers, attention over whole matrices), FLOPs by torch's counter"""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import AutoConfig, AutoModelForCausalLM

    fields = {key: value for key, value in config.items() if key != "model_type"}
    settings = AutoConfig.for_model(config["model_type"], **fields)
    # Experts one by one, because batched ones also compute padding.
    options = {"experts_implementation": "eager"} if "num_local_experts" in config else {}
    model = AutoModelForCausalLM.from_config(settings, attn_implementation=attention, **options).eval()
    counter = FlopCounterMode(display=False)
    ids = torch.randint(1, 200, (BATCH, PROMPT))
    # The counter does not know the CPU's fused kernel; the unfused one has the same GEMMs.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        model(input_ids=ids, logits_to_keep=1, use_cache=False)
    counts = counter.get_flop_counts()
    rotary = sum(n for module, ops in counts.items() if module.endswith("rotary_emb") for n in ops.values())
    names = {str(op): n for op, n in counts["Global"].items()}
    scores = sum(n for op, n in names.items() if "bmm" in op or "scaled_dot_product" in op)
    return sum(names.values()) - scores, scores - rotary


def estimate(config):
    """-> (linear layers, causal attention), FLOPs by the command"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps(config))
        sizes = ["--batch-size", str(BATCH), "--input-len", str(PROMPT)]
        command = ["node", str(CLI), "estimate", "--model", str(path), "--layers", "--json"] + sizes
        env = dict(os.environ, INFERSCOPE_HOME=folder)
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    layers = json.loads(run.stdout)["data"]["layers"]
    rows = [row for group in layers["groups"] for row in group["modules"]] + layers["outside"]
    attention = sum(row["flops"] for row in rows if row["class"] == "attention")
    return layers["total"]["flops"] - attention, attention


@unittest.skipUnless(CLI.exists(), "dist/cli.js is not built: npm run build")
class Flops(unittest.TestCase):
    def test_six_architectures(self):
        causal = Fraction(PROMPT + 1, 2 * PROMPT)
        for name, config in CONFIGS.items():
            linear, attention = estimate(config)
            for implementation in ("eager", "sdpa"):
                with self.subTest(name, attention=implementation):
                    executed = count_executed(config, implementation)
                    self.assertEqual(linear, executed[0])
                    self.assertEqual(attention, executed[1] * causal)


if __name__ == "__main__":
    unittest.main()
