"""A Llama-like decoder in plain PyTorch; a planted fault can replace its parts.

It encodes no positions, so a layer has no rotary kernels. Decode steps attend to a fixed context: all steps of a run do
the same work, and one captured graph serves them all. Without a GPU it runs tiny, to debug the programs.
"""

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional

import torch
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl

    @triton.jit
    def _gated_kernel(gate_up, out, inner, block: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        column = tl.program_id(1) * block + tl.arange(0, block)
        inside = column < inner
        gate = tl.load(gate_up + row * 2 * inner + column, mask=inside).to(tl.float32)
        up = tl.load(gate_up + row * 2 * inner + inner + column, mask=inside).to(tl.float32)
        tl.store(out + row * inner + column, (gate / (1 + tl.exp(-gate)) * up).to(out.dtype.element_ty), mask=inside)

except ImportError:  # a CPU build of torch
    triton = None


@dataclass(frozen=True)
class Shape:
    hidden: int = 4096
    inner: int = 14336
    layers: int = 4
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    vocab: int = 32000

    def config(self) -> Dict[str, Any]:
        """As a config.json of Hugging Face transformers."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": self.hidden,
            "intermediate_size": self.inner,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "vocab_size": self.vocab,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False,
            "max_position_embeddings": 16384,
        }


def sized(shape: Shape, device: str) -> Shape:
    """The given shape on a GPU; on a CPU a small one that takes milliseconds."""
    if device != "cpu":
        return shape
    odd = shape.hidden % 8  # kept for the planted fault of sizes that are not multiples of 8
    return replace(shape, hidden=64 - odd, inner=96, layers=2, heads=4, kv_heads=2, head_dim=16, vocab=128)


def sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """q and the result are [batch, heads, queries, head_dim], keys and values [batch, kv_heads, keys, head_dim]."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, 1e-5)


def gated(gate_up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up: [..., 2 * inner] -> [..., inner], in one kernel"""
    inner = gate_up.shape[-1] // 2
    if triton is None or gate_up.device.type == "cpu":
        gate, up = gate_up.chunk(2, -1)
        return F.silu(gate) * up
    out = torch.empty(*gate_up.shape[:-1], inner, dtype=gate_up.dtype, device=gate_up.device)
    rows = gate_up.numel() // gate_up.shape[-1]
    _gated_kernel[(rows, triton.cdiv(inner, 1024))](gate_up, out, inner, block=1024)
    return out


@dataclass
class Layer:
    qkv: torch.Tensor
    out: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor
    norm1: torch.Tensor
    norm2: torch.Tensor


class Decoder:
    """`linear`, `attention`, `norm` and `activation` may be replaced. `cache` is "static" (written in place) or "cat" (copied
    together with the new token by torch.cat).
    """

    def __init__(
        self, shape: Shape, batch: int, context: int, device: str, dtype: torch.dtype = torch.bfloat16, weights: Optional[torch.dtype] = None
    ) -> None:
        self.shape, self.batch, self.context, self.device, self.dtype = shape, batch, context, device, dtype
        self.linear: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = F.linear
        self.attention, self.norm, self.activation = sdpa, rms_norm, gated
        self.cache = "static"
        self.after_layer: Callable[[torch.Tensor], None] = lambda x: None
        weight_dtype = weights or dtype
        kv = shape.kv_heads * shape.head_dim
        q = shape.heads * shape.head_dim

        def weight(rows: int, columns: int) -> torch.Tensor:
            return torch.empty(rows, columns, device=device, dtype=weight_dtype).normal_(0, columns**-0.5)

        def ones() -> torch.Tensor:
            return torch.ones(shape.hidden, device=device, dtype=dtype)

        self.layers = [
            Layer(
                weight(q + 2 * kv, shape.hidden),
                weight(shape.hidden, q),
                weight(2 * shape.inner, shape.hidden),
                weight(shape.hidden, shape.inner),
                ones(),
                ones(),
            )
            for _ in range(shape.layers)
        ]
        self.final_norm = ones()
        self.embedding = torch.empty(shape.vocab, shape.hidden, device=device, dtype=dtype).normal_()
        self.head = weight(shape.vocab, shape.hidden)
        self.kv: List[torch.Tensor] = []
        """Keys and values of a layer, [batch, 2 * kv_heads, tokens, head_dim]: one kernel writes both."""
        # Not fed back, so that every step does the same work with random weights.
        self.token = torch.zeros(batch, 1, dtype=torch.long, device=device)
        self.next = torch.zeros_like(self.token)

    def fill_cache(self, room: int = 1) -> None:
        """A cache of `context` tokens for decode steps, as after a prefill; `room` more slots if it is static."""
        shape = self.shape
        extra = 0 if self.cache == "cat" else room

        def filled() -> torch.Tensor:
            return torch.empty(
                self.batch, 2 * shape.kv_heads, self.context + extra, shape.head_dim, device=self.device, dtype=self.dtype
            ).normal_()

        self.kv = [filled() for _ in range(shape.layers)]

    def layer(self, index: int, x: torch.Tensor, decode: bool) -> torch.Tensor:
        """Applies a layer to [batch, tokens, hidden]."""
        shape, weights = self.shape, self.layers[index]
        batch, tokens, _ = x.shape
        y = self.linear(self.norm(x, weights.norm1), weights.qkv).view(batch, tokens, -1, shape.head_dim).transpose(1, 2)
        q, kv = y.split([shape.heads, 2 * shape.kv_heads], 1)
        k, v = (self.with_cache(index, kv) if decode else kv).chunk(2, 1)
        a = self.attention(q, k, v, not decode).transpose(1, 2).reshape(batch, tokens, -1)
        x = x + self.linear(a, weights.out)
        x = x + self.mlp(index, self.norm(x, weights.norm2))
        self.after_layer(x)
        return x

    def mlp(self, index: int, x: torch.Tensor) -> torch.Tensor:
        weights = self.layers[index]
        return self.linear(self.activation(self.linear(x, weights.gate_up)), weights.down)

    def with_cache(self, index: int, kv: torch.Tensor) -> torch.Tensor:
        """Keys and values of the context and of the new token."""
        before = self.kv[index]
        if self.cache == "cat":
            return torch.cat([before, kv], 2)
        before[:, :, self.context : self.context + 1] = kv
        return before[:, :, : self.context + 1]

    def hidden(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.embedding(tokens, self.embedding)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, vocab] of the last position."""
        return self.linear(self.norm(x[:, -1], self.final_norm), self.head)

    def prefill(self, tokens: torch.Tensor) -> torch.Tensor:
        """[batch, tokens] -> logits [batch, vocab]"""
        return self.prefill_hidden(self.hidden(tokens))

    def prefill_hidden(self, x: torch.Tensor) -> torch.Tensor:
        for index in range(self.shape.layers):
            x = self.layer(index, x, False)
        return self.logits(x)

    def decode(self) -> torch.Tensor:
        """One step from self.token, which writes the next token into self.next. -> logits [batch, vocab]"""
        x = self.hidden(self.token)
        for index in range(self.shape.layers):
            x = self.layer(index, x, True)
        logits = self.logits(x)
        self.next.copy_(logits.argmax(-1, keepdim=True))
        return logits


def graphed(work: Callable[[], Any], device: str) -> Callable[[], Any]:
    """Captures `work` in a CUDA graph; on a CPU returns it unchanged. The replay returns the result of the captured call."""
    if device == "cpu":
        return work
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()

    class Replay:
        # Keeps the memory that the graph reads alive.
        captured_work = work

        def __call__(self) -> Any:
            graph.replay()
            return result

    return Replay()


def random_tokens(batch: int, length: int, vocab: int, device: str) -> torch.Tensor:
    return torch.randint(0, vocab, (batch, length), device=device)
