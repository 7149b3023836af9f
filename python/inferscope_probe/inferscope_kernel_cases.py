"""The operations of `inferscope kernels` (src/model/kernels.ts) in PyTorch: inputs, the call, and a float64 reference.

Conventions: gemm is a row-major (m,k) times a row-major (k,n); for float8 and int8 the second matrix is column-major, as their
instructions require; linear has weights (out,in); conv2d is NCHW, stride 1, padding kernel // 2; lstm is batch-first, one
direction, with biases; attention is scaled_dot_product_attention over (batch, heads, tokens, head_dim), grouped through
enable_gqa, causal with the last query at the last key; rmsnorm with residual adds first and returns the sum, too; swiglu is
silu(gate) * up; rope rotates halves of q and k, as transformers does; sampling is argmax. All run as in eager PyTorch: rope and
swiglu are several device kernels.
"""

import contextlib
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F

Params = Dict[str, int]
Pairs = List[Tuple[Any, Any]]

# Maximum of |x - reference|, relative to the largest |reference|, that rounding explains: two roundings of intermediate results,
# and sums of tens of thousands of products. The references of float8 and int8 have the rounded inputs; int8 sums are exact.
BOUNDS = {
    "float32": 1e-4, "tfloat32": 4e-3, "float16": 5e-3, "bfloat16": 3e-2, "float8": 3e-2, "int8": 0.0,
}  # fmt: skip
# Factors on these bounds: recurrences round at every step; some convolutions transform their inputs first (Winograd).
BOUND_FACTORS = {"lstm": 5.0, "conv2d": 5.0}
TORCH_DTYPES = {"float32": "float32", "tfloat32": "float32", "float16": "float16", "bfloat16": "bfloat16", "int8": "int8"}
# Types that are measured in GEMMs and copies only.
GEMM_DTYPES = ("float8", "int8")
SDPA = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "cudnn": "CUDNN_ATTENTION", "math": "MATH"}


class Unsupported(Exception):
    """The operation does not exist in this PyTorch or on this device."""


class Operation:
    """One case, ready to be called.

    `make()` returns a new set of random inputs, `run(*set)` computes, `check(outputs, set)` returns (got, expected) pairs.
    `shared`: tensors of all sets. `passes`: operations in one call. `rotate`: whether calls take several sets in turn.
    `clock`: host (waits for each call), enqueue (time of the host alone), events (of the device), graph (events; the call
    replays a CUDA graph itself), or None to let the timing choose.
    """

    def __init__(
        self,
        make: Callable[[], Tuple[Any, ...]],
        run: Callable[..., Any],
        check: Optional[Callable[[Any, Tuple[Any, ...]], Pairs]] = None,
        shared: Tuple[Any, ...] = (),
        scope: Callable[[], Any] = contextlib.nullcontext,
        passes: int = 1,
        rotate: bool = True,
        clock: Optional[str] = None,
        backend: Optional[str] = None,
        max_sets: int = 4096,
    ) -> None:
        self.make, self.run, self.check, self.shared, self.scope = make, run, check, shared, scope
        self.passes, self.rotate, self.clock, self.backend, self.max_sets = passes, rotate, clock, backend, max_sets


class Source:
    """Random tensors of one case's dtype on its device."""

    def __init__(self, dtype: str, device: str) -> None:
        self.name, self.device = dtype, device
        self.dtype = _float8(device) if dtype == "float8" else getattr(torch, TORCH_DTYPES[dtype])

    def __call__(self, *shape: int) -> Any:
        if self.name == "int8":
            return torch.randint(-128, 128, shape, dtype=torch.int8, device=self.device)
        if self.name == "float8":
            return torch.randn(shape, dtype=torch.bfloat16, device=self.device).to(self.dtype)
        return torch.randn(shape, dtype=self.dtype, device=self.device)

    def ids(self, vocabulary: int, count: int) -> Any:
        return torch.randint(0, vocabulary, (count,), device=self.device)


def _float8(device: str) -> Any:
    """MI300 has a float8 format with another exponent bias."""
    if getattr(torch.version, "hip", None) and device != "cpu":
        if "gfx94" in torch.cuda.get_device_properties(torch.device(device)).gcnArchName:
            return torch.float8_e4m3fnuz
    return torch.float8_e4m3fn


def spread(size: int, count: int, device: Any) -> Any:
    """At most `count` indices from the first to the last of `size`."""
    return torch.linspace(0, size - 1, min(size, count), dtype=torch.float64, device=device).round().long()


def _matmul_of(source: Source) -> Callable[..., Any]:
    """-> the function that computes a @ b in this dtype"""
    if source.name == "int8":
        return torch._int_mm
    if source.name != "float8":
        return torch.mm
    scale = torch.ones((), dtype=torch.float32, device=source.device)

    def scaled(a: Any, b: Any) -> Any:
        return torch._scaled_mm(a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)

    return scaled


def _check_matmul(out: Any, a: Any, b: Any, bias: Any = None) -> Pairs:
    out = out[0] if isinstance(out, tuple) else out
    rows, columns = spread(a.shape[0], 64, a.device), spread(b.shape[1], 256, a.device)
    # Row by row, because not every device has index_select for float8.
    expected = torch.stack([a[i].double() for i in rows.tolist()]) @ torch.stack([b[:, j].double() for j in columns.tolist()], 1)
    if bias is not None:
        expected = expected + bias.double()[columns]
    return [(out[rows][:, columns], expected)]


def gemm(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    matmul, by_column = _matmul_of(source), source.name in GEMM_DTYPES

    def make() -> Tuple[Any, ...]:
        return source(p["m"], p["k"]), source(p["n"], p["k"]).t() if by_column else source(p["k"], p["n"])

    return Operation(make, matmul, lambda out, x: _check_matmul(out, *x))


def linear(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    tokens, inner, outer, bias = p["tokens"], p["in_features"], p["out_features"], bool(p.get("bias", 0))
    if source.name in GEMM_DTYPES:
        if bias:
            raise Unsupported("linear in %s is measured without a bias" % source.name)
        matmul = _matmul_of(source)
        return Operation(
            lambda: (source(tokens, inner), source(outer, inner)),
            lambda x, w: matmul(x, w.t()),
            lambda out, x: _check_matmul(out, x[0], x[1].t()),
        )

    def make() -> Tuple[Any, ...]:
        return (source(tokens, inner), source(outer, inner)) + ((source(outer),) if bias else ())

    return Operation(make, F.linear, lambda out, x: _check_matmul(out, x[0], x[1].t(), *x[2:]))


def conv2d(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    k = p["kernel"]

    def make() -> Tuple[Any, ...]:
        return source(p["batch"], p["channels"], p["height"], p["width"]), source(p["out_channels"], p["channels"], k, k)

    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        filters = spread(p["out_channels"], 8, "cpu")
        expected = F.conv2d(x[0][:1].double().cpu(), x[1].cpu()[filters].double(), padding=k // 2)
        return [(out[:1].cpu()[:, filters], expected)]

    return Operation(make, lambda x, w: F.conv2d(x, w, padding=k // 2), check)


def lstm(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    def make() -> Tuple[Any, ...]:
        sizes = (p["input"], p["hidden"], p["layers"])
        module = torch.nn.LSTM(*sizes, batch_first=True, device=source.device, dtype=source.dtype)
        return module.eval(), source(p["batch"], p["seq"], p["input"])

    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        # A state depends only on earlier steps, so the first steps must be equal.
        steps = min(p["seq"], 16)
        double = torch.nn.LSTM(p["input"], p["hidden"], p["layers"], batch_first=True, dtype=torch.float64)
        double.load_state_dict({name: value.double().cpu() for name, value in x[0].state_dict().items()})
        return [(out[0][:2, :steps].cpu(), double(x[1][:2, :steps].double().cpu())[0])]

    return Operation(make, lambda module, x: module(x), check, max_sets=64)


def layernorm_gelu(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    shape = (p["hidden"],)

    def run(x: Any, weight: Any, bias: Any) -> Any:
        return F.gelu(F.layer_norm(x, shape, weight, bias))

    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        rows = spread(p["tokens"], 64, out.device)
        y = x[0][rows].double()
        y = (y - y.mean(-1, keepdim=True)) / torch.sqrt(y.var(-1, unbiased=False, keepdim=True) + 1e-5)
        y = y * x[1].double() + x[2].double()
        return [(out[rows], 0.5 * y * (1 + torch.erf(y / 2**0.5)))]

    return Operation(lambda: (source(p["tokens"], p["hidden"]), source(*shape), source(*shape)), run, check)


def attention(p: Params, source: Source, case: Dict[str, Any]) -> Operation:
    batch, heads, kv_heads, dim, new, context = (
        p[key] for key in ("batch", "heads", "kv_heads", "head_dim", "new_tokens", "context")
    )
    if new > context or heads % kv_heads != 0:
        raise Unsupported("%d new tokens of a context of %d, %d heads over %d" % (new, context, heads, kv_heads))
    more: Dict[str, Any] = {"enable_gqa": True} if kv_heads != heads else {}
    if new == context:
        more["is_causal"] = new > 1
    elif new > 1:
        from torch.nn.attention.bias import causal_lower_right

        more["attn_mask"] = causal_lower_right(new, context)

    def scope() -> Any:
        if case.get("backend") is None:
            return contextlib.nullcontext()
        from torch.nn.attention import SDPBackend, sdpa_kernel

        name = SDPA.get(case["backend"])
        if name is None or not hasattr(SDPBackend, name):
            raise Unsupported("torch %s has no attention backend %s" % (torch.__version__, case["backend"]))
        return sdpa_kernel([getattr(SDPBackend, name)])

    def make() -> Tuple[Any, ...]:
        return source(batch, heads, new, dim), source(batch, kv_heads, context, dim), source(batch, kv_heads, context, dim)

    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        q, k, v = x
        queries, pairs = spread(new, 64, q.device), []
        for b, head in ((0, 0), (batch - 1, heads - 1)):
            kv = head // (heads // kv_heads)
            scores = q[b, head, queries].double() @ k[b, kv].double().t() / dim**0.5
            visible = torch.arange(context, device=q.device)[None] <= queries[:, None] + (context - new)
            weights = torch.softmax(scores.masked_fill(~visible, float("-inf")), -1)
            pairs.append((out[b, head, queries], weights @ v[b, kv].double()))
        return pairs

    return Operation(make, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **more), check, scope=scope)


def softmax(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        rows = spread(p["rows"], 64, out.device)
        y = torch.exp(x[0][rows].double() - x[0][rows].double().amax(-1, keepdim=True))
        return [(out[rows], y / y.sum(-1, keepdim=True))]

    return Operation(lambda: (source(p["rows"], p["columns"]),), lambda x: torch.softmax(x, -1), check)


def rmsnorm(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    tokens, hidden, residual = p["tokens"], p["hidden"], bool(p.get("residual", 0))
    if not hasattr(F, "rms_norm"):
        raise Unsupported("torch %s has no rms_norm; 2.4 has" % torch.__version__)
    eps = 1e-5

    def make() -> Tuple[Any, ...]:
        return (source(hidden), source(tokens, hidden)) + ((source(tokens, hidden),) if residual else ())

    def run(weight: Any, x: Any, added: Any = None) -> Any:
        if added is None:
            return F.rms_norm(x, (hidden,), weight, eps)
        x = x + added
        return F.rms_norm(x, (hidden,), weight, eps), x

    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        rows = spread(tokens, 64, x[1].device)
        y = x[1][rows].double() + (x[2][rows].double() if residual else 0)
        expected = y / torch.sqrt((y * y).mean(-1, keepdim=True) + eps) * x[0].double()
        return [(out[0][rows], expected), (out[1][rows], y)] if residual else [(out[rows], expected)]

    return Operation(make, run, check)


def swiglu(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        rows = spread(p["tokens"], 64, out.device)
        gate, up = x[0][rows].double(), x[1][rows].double()
        return [(out[rows], gate / (1 + torch.exp(-gate)) * up)]

    shape = (p["tokens"], p["intermediate"])
    return Operation(lambda: (source(*shape), source(*shape)), lambda gate, up: F.silu(gate) * up, check)


def rope(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    tokens, half = p["tokens"], p["head_dim"] // 2

    def make() -> Tuple[Any, ...]:
        angle = torch.arange(tokens, device=source.device)[:, None] * (
            10000.0 ** (-torch.arange(half, device=source.device) / half)
        )
        angle = torch.cat((angle, angle), -1)
        q, k = source(p["heads"], tokens, 2 * half), source(p["kv_heads"], tokens, 2 * half)
        return q, k, angle.cos().to(source.dtype), angle.sin().to(source.dtype)

    def turn(x: Any, cos: Any, sin: Any) -> Any:
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        rows = spread(tokens, 64, out[0].device)
        pairs: Pairs = []
        for rotated, original in ((out[0], x[0]), (out[1], x[1])):
            first, second = original[:, rows, :half].double(), original[:, rows, half:].double()
            cos, sin = x[2][rows, :half].double(), x[3][rows, :half].double()
            pairs.append((rotated[:, rows], torch.cat((first * cos - second * sin, second * cos + first * sin), -1)))
        return pairs

    return Operation(make, lambda q, k, cos, sin: (turn(q, cos, sin), turn(k, cos, sin)), check)


def embedding(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    table = source(p["vocab"], p["hidden"])

    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        tokens = spread(p["tokens"], 8, out.device)
        return [(out[tokens], torch.stack([table[i].double() for i in x[0][tokens].tolist()]))]

    return Operation(lambda: (source.ids(p["vocab"], p["tokens"]),), lambda ids: F.embedding(ids, table), check, shared=(table,))


def sampling(p: Params, source: Source, _case: Dict[str, Any]) -> Operation:
    def check(out: Any, x: Tuple[Any, ...]) -> Pairs:
        logits = x[0].double().cpu()
        return [(logits.gather(1, out.cpu()[:, None])[:, 0], logits.amax(-1))]

    return Operation(lambda: (source(p["batch"], p["vocab"]),), lambda logits: torch.argmax(logits, -1), check)


KERNELS: Dict[str, Callable[[Params, Source, Dict[str, Any]], Operation]] = {
    "gemm": gemm,
    "linear": linear,
    "conv2d": conv2d,
    "lstm": lstm,
    "layernorm-gelu": layernorm_gelu,
    "attention": attention,
    "softmax": softmax,
    "rmsnorm": rmsnorm,
    "swiglu": swiglu,
    "rope": rope,
    "embedding": embedding,
    "sampling": sampling,
}
