"""Peak bytes alive in a prefill and in the decode step after it, measured with transformers: an oracle for memory-forward*.ts.

    python forward_memory.py ../presets.json > forward-memory.json

A preset of every family, cut to a few layers, runs on torch's meta device: nothing is computed, and every storage that an
operation makes is counted until Python drops it. Three operations that differ on a GPU are
replaced: fused attention, which makes only its output (and a mask of numbers from one of booleans); softmax of float16 in
float32, which makes no copy on a GPU; and reading a mask's values.
"""

import json
import sys
import weakref

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

PROMPT, SEQUENCES = 512, 2
# preset -> layers, and the prompt length if it must exceed a window
PRESETS = {
    "llama-3.1-8b": 3, "mistral-7b": 3, "qwen2.5-7b": 3, "qwen3-8b": 3, "gemma-2b": 3, "gemma-2-9b": 3, "gemma-3-4b": 6,
    "phi-2": 3, "phi-3-mini-4k": 3, "gpt2": 3, "opt-1.3b": 3, "mixtral-8x7b": 3, "qwen1.5-moe-a2.7b": 3, "qwen3-30b-a3b": 3,
    "deepseek-v2-lite": 3, "deepseek-v3": 5,
}
LONG = {"gemma-3-4b": 1536}
RUNS = (("sdpa", "bfloat16"), ("eager", "float16"), ("eager", "bfloat16"), ("sdpa", "float32"))
FLOATS = ("softcap", "dropout", "rms_norm_eps", "routed_scaling_factor", "initializer_range")


class LiveBytes(TorchDispatchMode):
    """Bytes of the storages created under it that are still alive, and their maximum."""

    def __init__(self, model):
        super().__init__()
        self.weights = {t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers()]}
        self.refs, self.bytes, self.peak = {}, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                self.track(tensor.untyped_storage())
        return out

    def track(self, storage):
        key, size = storage._cdata, storage.nbytes()
        if key in self.refs or key in self.weights:
            return
        self.bytes += size
        self.peak = max(self.peak, self.bytes)

        def on_free(_):
            self.bytes -= size
            self.refs.pop(key)

        self.refs[key] = weakref.ref(storage, on_free)


def fused_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.empty(attn_mask.shape, dtype=query.dtype, device=query.device)
    batch, heads, tokens, _ = query.shape
    return query.new_empty(batch, tokens, heads, value.shape[-1]).transpose(1, 2)


def softmax_without_copy(softmax):
    def wrapped(x, dim=None, _stacklevel=3, dtype=None):
        if x.dtype == torch.float16 and dtype == torch.float32:
            return torch.empty(x.shape, dtype=dtype, device=x.device)
        return softmax(x, dim=dim, dtype=dtype)

    return wrapped


def measure_peaks(config, attention, dtype, prompt):
    settings = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    torch.set_default_dtype(getattr(torch, dtype))
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(settings, attn_implementation=attention).eval()
    torch.set_default_dtype(torch.float32)
    ids = torch.zeros(SEQUENCES, prompt, dtype=torch.long, device="meta")
    with torch.no_grad(), LiveBytes(model) as live:
        out = model(input_ids=ids, use_cache=True, logits_to_keep=1)
        prefill, cache, logits = live.peak, out.past_key_values, out.logits[:, -1]
        del out
        # The first decode step cuts windows out of the prompt; the second is like all later ones.
        for _ in range(2):
            token = logits.argmax(-1, keepdim=True)
            live.peak = live.bytes
            logits = model(input_ids=token, past_key_values=cache, use_cache=True).logits[:, -1]
    return prefill, live.peak


def truncate(config, layers):
    config = {k: v for k, v in config.items() if k not in ("quantization_config", "torch_dtype", "dtype", "architectures")}
    config["n_layer" if config["model_type"] == "gpt2" else "num_hidden_layers"] = layers
    if config.get("layer_types"):
        config["layer_types"] = config["layer_types"][:layers]
    for key, value in config.items():
        if isinstance(value, int) and not isinstance(value, bool) and any(word in key for word in FLOATS):
            config[key] = float(value)
    return config


def main():
    torch.Tensor.item = torch.Tensor.__bool__ = lambda self: True
    torch.nn.functional.scaled_dot_product_attention = fused_attention
    torch.nn.functional.softmax = softmax_without_copy(torch.nn.functional.softmax)
    presets = json.load(open(sys.argv[1]))
    rows = []
    for preset, layers in PRESETS.items():
        prompt = LONG.get(preset, PROMPT)
        for attention, dtype in RUNS:
            # The meta device multiplies by expert only in bfloat16.
            if "experts" in json.dumps(presets[preset]["config"]) and dtype != "bfloat16":
                continue
            config = truncate(presets[preset]["config"], layers)
            prefill, decode = measure_peaks(dict(config), attention, dtype, prompt)
            sizes = {"layers": layers, "sequences": SEQUENCES, "prompt": prompt}
            rows.append({"preset": preset, "attention": attention, "dtype": dtype, **sizes, "prefill_bytes": prefill, "decode_bytes": decode})
            print(rows[-1], file=sys.stderr)
    header = {"torch": torch.__version__, "transformers": transformers.__version__}
    print(json.dumps({**header, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
