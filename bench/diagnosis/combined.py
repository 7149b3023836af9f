"""Stock programs with two of the mistakes of stock_kinds.py at once; the repaired twin has neither."""

from typing import Any, Callable, Dict, Tuple

import torch
from stock_kinds import DECODES, Stock, Work, adapted, collected, criteria, decodes, detokenized, generate, offloaded, prefills, processed_by_numpy, quantized, scored, watched


def adapted_eager(stock: Stock) -> Any:
    return adapted(stock, attention="eager" if stock.faulty else "sdpa")


def scored_float32(stock: Stock) -> Work:
    return scored(stock, torch.float32 if stock.faulty else torch.bfloat16)


def autocast_sampled(stock: Stock) -> Work:
    model, ids = stock.model(torch.float32 if stock.faulty else torch.bfloat16), stock.ids()
    more = dict(top_k=0, top_p=0.9) if stock.faulty else dict(top_k=50)

    def work() -> None:
        with torch.autocast(stock.device, torch.bfloat16, enabled=stock.faulty):
            generate(model, ids, DECODES + 1, do_sample=True, **more)

    return work


wide = {"batch": [32, 64], "length": [64], "layers": [2, 3]}
long = {"batch": [4, 8], "length": [2048], "layers": [2, 4], "hidden": [2048]}
PAIRS: Dict[Tuple[str, str], Tuple[Callable[[Stock], Work], Dict[str, Any]]] = {
    ("quantized", "numpy"): (decodes(quantized, logits_processor=processed_by_numpy), {**wide, "hidden": [4096], "vocab": [50304]}),
    ("watched", "detokenized"): (decodes(watched, stopping_criteria=criteria(detokenized)), {**wide, "length": [512], "hidden": [2048]}),
    ("adapters", "eager"): (prefills(adapted_eager), long),
    ("scored", "default_dtype"): (scored_float32, {**long, "vocab": [128256]}),
    ("offloaded", "collected"): (decodes(offloaded, stopping_criteria=criteria(collected)), {**wide, "hidden": [1024, 1536]}),
    ("autocast", "sampled"): (autocast_sampled, {**wide, "batch": [128], "hidden": [4096, 6144], "vocab": [128256]}),
}
"""The programs and sizes of two kinds; the smaller fault costs at least a twentieth of a stage."""
