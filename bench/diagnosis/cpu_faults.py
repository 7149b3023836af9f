"""Programs that use no GPU, with one fault each that no rule was tuned on: inferscope run --evaluator torch -- python bench/diagnosis/cpu_faults.py cat

`none` has no fault. A decoder of four layers computes one prefill and 24 decode steps, twice; compile, loader and baddbmm are separate programs.
"""

import argparse
import threading
import time
from typing import Any, Dict, List, Optional

import torch
import torch.nn.functional as F
from torch.profiler import record_function

HIDDEN, INNER, LAYERS, HEADS, VOCAB, CACHE_LENGTH = 256, 704, 4, 8, 4000, 640
SIZE = HIDDEN // HEADS
DECODER = ["none", "cat", "clone", "casts", "einsum", "tokens", "lock", "wait", "item", "mask", "weights", "uncached", "logits"]
OTHERS = ["compile", "loader", "baddbmm"]


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, fault: str) -> torch.Tensor:
    if fault == "mask":
        q_len, k_len = q.shape[2], k.shape[2]
        mask = torch.triu(torch.full((2048, 2048), -1e9), 1)[k_len - q_len : k_len, :k_len]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    if fault != "einsum":
        return F.scaled_dot_product_attention(q, k, v)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * SIZE**-0.5
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return torch.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdim=True), v)


def append(before: Optional[torch.Tensor], new: torch.Tensor, fault: str) -> torch.Tensor:
    """-> [batch, heads, tokens, size], a cache that is allocated again in every step"""
    if before is None:
        return new
    if fault == "cat":
        return torch.cat((before, new), 2)
    tokens = before.shape[2]
    grown = torch.empty(*before.shape[:2], tokens + new.shape[2], SIZE)
    grown[:, :, :tokens] = before
    grown[:, :, tokens:] = new
    return grown


def layer(x: torch.Tensor, weights: Dict[str, torch.Tensor], cache: Dict[str, Any], fault: str) -> torch.Tensor:
    if fault == "casts":
        weights = {name: weight.float() for name, weight in weights.items()}
    batch, tokens, _ = x.shape
    q, k, v = (x @ weights["qkv"].T).view(batch, tokens, 3, HEADS, SIZE).permute(2, 0, 3, 1, 4)
    if fault in ("cat", "clone"):
        k, v = cache["k"], cache["v"] = append(cache.get("k"), k, fault), append(cache.get("v"), v, fault)
    else:
        filled = cache.setdefault("tokens", 0)
        cache["tokens"] = filled + tokens
        for name, new in (("k", k), ("v", v)):
            if name not in cache:
                cache[name] = torch.zeros(batch, HEADS, CACHE_LENGTH, SIZE)
            cache[name][:, :, filled : filled + tokens] = new
        k, v = cache["k"][:, :, : filled + tokens], cache["v"][:, :, : filled + tokens]
    x = x + attention(q, k, v, fault).transpose(1, 2).reshape(batch, tokens, HIDDEN) @ weights["o"].T
    return x + F.silu(x @ weights["up"].T) @ weights["down"].T


def detokenize(token: int) -> int:
    text = ""
    for i in range(3000):
        text += chr(97 + (token * 7 + i) % 26)
    return len(text.split("e"))


def decoder(fault: str) -> None:
    weight_dtype = torch.float16 if fault == "casts" else torch.float32
    shapes = dict(qkv=(3 * HIDDEN, HIDDEN), o=(HIDDEN, HIDDEN), up=(INNER, HIDDEN), down=(HIDDEN, INNER))
    weights = [{name: (torch.randn(shape) * 0.05).to(weight_dtype) for name, shape in shapes.items()} for _ in range(LAYERS)]
    embedding = torch.randn(VOCAB, HIDDEN) * 0.1
    done = threading.Event()

    def hold_the_lock() -> None:
        n = 0
        while not done.is_set():
            n += 1

    if fault == "lock":
        threading.Thread(target=hold_the_lock, daemon=True).start()
    batch, prompt = (8, 512) if fault in ("cat", "clone") else (1, 256)
    for _ in range(2):
        caches: List[Dict[str, Any]] = [{} for _ in range(LAYERS)]

        def logits(tokens: torch.Tensor) -> torch.Tensor:
            x = embedding[tokens]
            for layer_weights, cache in zip(weights, caches):
                x = layer(x, layer_weights, cache, fault)
            return (x @ embedding.T)[:, -1] if fault == "logits" else x[:, -1] @ embedding.T

        ids = torch.randint(0, VOCAB, (batch, prompt))
        with record_function("prefill"):
            token = logits(ids).argmax(-1, keepdim=True)
        for step in range(24):
            with record_function("decode %d" % step):
                if fault == "uncached":
                    ids, caches = torch.cat((ids, token), 1), [{} for _ in range(LAYERS)]
                if fault == "weights":
                    weights = [{name: weight.clone() for name, weight in of_layer.items()} for of_layer in weights]
                out = logits(ids if fault == "uncached" else token)
                token = out.argmax(-1, keepdim=True)
                if fault == "item" and out.amax().item() > 1e9:
                    raise FloatingPointError("overflow")
                if fault == "tokens":
                    detokenize(int(token[0]))
                if fault == "wait":
                    time.sleep(0.004)
    done.set()


class SlowDataset(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((64, HIDDEN), float(sum(i * index for i in range(60_000)) % 7))


def loader() -> None:
    weight = torch.randn(HIDDEN, HIDDEN)
    for step, x in enumerate(torch.utils.data.DataLoader(SlowDataset(), batch_size=4)):
        with record_function("prefill %d" % step):
            torch.relu(x @ weight) @ weight


def recompile() -> None:
    work = torch.compile(lambda x: F.silu(x) * x.sum(-1, keepdim=True), dynamic=False)
    for step in range(6):
        with record_function("decode %d" % step):
            work(torch.randn(4, 100 + step))


def baddbmm() -> None:
    q, k, v = (torch.randn(16, 384, 64) for _ in range(3))
    mask = torch.triu(torch.full((384, 384), -1e9), 1).expand(16, 384, 384)
    for step in range(6):
        with record_function("prefill %d" % step):
            torch.bmm(torch.baddbmm(mask, q, k.transpose(1, 2), alpha=0.125).softmax(-1), v)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("fault", choices=DECODER + OTHERS)
    fault = flags.parse_args().fault
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with torch.inference_mode():
        if fault in DECODER:
            decoder(fault)
        else:
            {"compile": recompile, "loader": loader, "baddbmm": baddbmm}[fault]()


if __name__ == "__main__":
    main()
