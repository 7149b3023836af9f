"""Programs that use torch.compile with transformers as users do, like those of stock_kinds.py: each with one common mistake, and its repaired twin.

They compile during warm-up and have few layers, so that compilation takes about 20 s. Prompts of different lengths with dynamic=False are
not included: each length compiles for seconds, so a run of four prompts would take half a minute, and twelve pairs ten minutes.
faults/recompilation.py plants that fault in a function that compiles in half a second.
"""

from typing import Any, Callable

import torch
from stock_kinds import DECODES, PREFILLS, Kind, Stock, Work, generate, github, long, wide


def _compiled(model: Any, stock: Stock, **more: Any) -> Any:
    # Without a reset, programs of one process would share torch's recompilation limit, which counts per function.
    torch._dynamo.reset()
    return torch.compile(model, backend="inductor" if stock.device != "cpu" else "eager", **more)


def _run_outside_inference_mode(work: Work) -> Work:
    """Creates and runs the weights outside of inference mode, as from_pretrained does: compiled code depends on that."""

    def run() -> None:
        with torch.inference_mode(False), torch.no_grad():
            work()

    return run


def _outside_inference_mode(prepare: Callable[[Stock], Work]) -> Callable[[Stock], Work]:
    def prepare_outside(stock: Stock) -> Work:
        with torch.inference_mode(False), torch.no_grad():
            return _run_outside_inference_mode(prepare(stock))

    return prepare_outside


def _decodes_static(stock: Stock, model: Any, compiled: Any) -> Work:
    """A user's own decode loop over a static cache; the prompt is not compiled."""
    from transformers import StaticCache

    ids = stock.ids()
    cache = StaticCache(config=model.config, max_cache_len=stock.length + DECODES + 8)
    position = torch.full((1,), stock.length, dtype=torch.long, device=stock.device)

    def work() -> None:
        cache.reset()
        token = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1:].argmax(-1)
        position.fill_(stock.length)
        for _ in range(DECODES):
            logits = compiled(token, past_key_values=cache, position_ids=position[None].expand(stock.batch, 1), use_cache=True).logits
            token = logits[:, -1:].argmax(-1)
            position.add_(1)

    return work


def checked(stock: Stock) -> Work:
    """A hook checks every layer for values that are not finite."""
    model = stock.model()

    def check(_: Any, __: Any, y: torch.Tensor) -> None:
        if not torch.isfinite(y).all().item():
            raise FloatingPointError("not finite")

    if stock.faulty:
        for layer in model.model.layers:
            layer.mlp.register_forward_hook(check)
    return _decodes_static(stock, model, _compiled(model, stock))


def uncompiled(stock: Stock) -> Work:
    """generate() compiles the step over a static cache, unless this is disabled."""
    torch._dynamo.reset()
    model, ids = stock.model(), stock.ids()
    return lambda: generate(model, ids, DECODES + 1, cache_implementation="static", disable_compile=stock.faulty)


def ungraphed(stock: Stock) -> Work:
    model = stock.model()
    return _decodes_static(stock, model, _compiled(model, stock, mode="default" if stock.faulty else "reduce-overhead"))


def float32(stock: Stock) -> Work:
    model, ids = stock.model(torch.float32 if stock.faulty else torch.bfloat16), stock.ids()
    compiled = _compiled(model, stock)

    def work() -> None:
        for _ in range(PREFILLS):
            compiled(ids, logits_to_keep=1, use_cache=False).logits[:, -1].float().softmax(-1).topk(5)

    return work


few = {**wide, "batch": [1, 4, 8], "hidden": [2048], "vocab": [32000]}
# Families without a sliding window: the static cache of a window counts steps in Python, so every step would be
# compiled or captured again.
dense = ["llama", "qwen3", "olmo2"]
repeated = {"casts_and_layout_copies": "keys and values of a static cache are repeated for every head"}
KINDS = [
    Kind("checked", "decode", "torch.compile: a hook in every layer reads a value on the host and breaks the graph; repaired: no hook", ["synchronization_every_step"], _outside_inference_mode(checked), {**wide, "layers": [4, 6]}, host=True, families=dense, true_of_twin=repeated, issue=github + "pytorch/pytorch/issues/135410"),
    Kind("uncompiled", "decode", "generate(cache_implementation='static', disable_compile=True); repaired: the default, which compiles and replays CUDA graphs", ["launch_bound"], _outside_inference_mode(uncompiled), {**few, "layers": [4, 6]}, host=True, families=dense, true_of_twin=repeated, issue=github + "huggingface/transformers/pull/34923"),
    Kind("ungraphed", "decode", "torch.compile without CUDA graphs at a small batch; repaired: mode='reduce-overhead'", ["launch_bound"], _outside_inference_mode(ungraphed), {**few, "layers": [4, 6]}, host=True, families=dense, true_of_twin=repeated, issue=github + "huggingface/transformers/issues/30055"),
    Kind("compiled_float32", "prefill", "torch.compile of a float32 model; repaired: bfloat16", ["half_precision"], _outside_inference_mode(float32), {**long, "layers": [2, 3], "hidden": [2048]}, families=dense),
]
