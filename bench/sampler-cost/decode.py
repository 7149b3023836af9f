"""A decode loop in a CUDA graph that runs until stdin is closed: the program that the sampler slows down.

The shape of TinyLlama 1.1B with random weights in float16, batch 1, 512 tokens of context, in plain torch. Every token is
copied to the host, as in a sampling loop. Prints a JSON line per report: {"t_ns": CLOCK_MONOTONIC, "tokens": total}.
"""

import json
import select
import sys
import time

import torch
import torch.nn.functional as F

LAYERS, HIDDEN, INNER, HEADS, KV_HEADS, VOCAB, CONTEXT = 22, 2048, 5632, 32, 4, 32000, 512
HEAD = HIDDEN // HEADS
REPORT_NS = 50_000_000


def weight(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, device="cuda", dtype=torch.float16) * columns**-0.5


def norm(x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (HIDDEN,))


class Layer:
    def __init__(self) -> None:
        self.qkv = weight(HIDDEN + 2 * KV_HEADS * HEAD, HIDDEN)
        self.out = weight(HIDDEN, HIDDEN)
        self.gate_up = weight(2 * INNER, HIDDEN)
        self.down = weight(HIDDEN, INNER)
        self.keys = torch.zeros(1, KV_HEADS, CONTEXT, HEAD, device="cuda", dtype=torch.float16)
        self.values = torch.zeros_like(self.keys)

    def step(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = F.linear(norm(x), self.qkv).split([HIDDEN, KV_HEADS * HEAD, KV_HEADS * HEAD], dim=-1)
        self.keys[:, :, -1] = k.view(1, KV_HEADS, HEAD)
        self.values[:, :, -1] = v.view(1, KV_HEADS, HEAD)
        q = q.view(1, HEADS, 1, HEAD)
        attended = F.scaled_dot_product_attention(q, self.keys, self.values, enable_gqa=True)
        x = x + F.linear(attended.reshape(1, HIDDEN), self.out)
        gate, up = F.linear(norm(x), self.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)


def main() -> None:
    if not torch.cuda.is_available():
        print("torch finds no GPU", file=sys.stderr)
        sys.exit(3)
    torch.manual_seed(0)
    embedding = weight(VOCAB, HIDDEN)
    layers = [Layer() for _ in range(LAYERS)]
    token = torch.zeros(1, device="cuda", dtype=torch.int64)

    def step() -> None:
        x = embedding[token]
        for layer in layers:
            x = layer.step(x)
        token.copy_(F.linear(norm(x), embedding).argmax(-1))

    with torch.inference_mode():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        tokens = 0
        next_report_ns = time.monotonic_ns()
        while True:
            graph.replay()
            token.item()
            tokens += 1
            now = time.monotonic_ns()
            if now < next_report_ns:
                continue
            print(json.dumps({"t_ns": now, "tokens": tokens}), flush=True)
            next_report_ns = now + REPORT_NS
            # The reader closes stdin to stop the loop.
            if select.select([sys.stdin], [], [], 0)[0] and not sys.stdin.read(1):
                return


main()
