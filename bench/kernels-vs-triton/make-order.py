"""Prints a KernelOrder for a trial of the probe on a large GPU: python make-order.py [--ranks N] > ORDER.json"""

import json
import sys

WIDTH = {"float32": 4, "tfloat32": 4, "float16": 2, "bfloat16": 2, "float8": 1, "int8": 1}
cases = []


def add(kernel, dtype, params, flops, bytes_, backend=None):
    name = "-".join([kernel, dtype] + ([backend] if backend else []) + ["%s%s" % param for param in params.items()])
    cases.append(
        dict(case=name, kernel=kernel, backend=backend, dtype=dtype, params=params, flops=flops, bytes=bytes_)
    )


def gemm(dtype, m, n, k):
    output_width = {"float8": 2, "int8": 4}.get(dtype, WIDTH[dtype])
    add("gemm", dtype, dict(m=m, n=n, k=k), 2 * m * n * k, (m * k + k * n) * WIDTH[dtype] + m * n * output_width)


def attention(batch, heads, kv_heads, dim, new, context, backend):
    scores = new * context - new * (new - 1) // 2
    params = dict(batch=batch, heads=heads, kv_heads=kv_heads, head_dim=dim, new_tokens=new, context=context)
    bytes_ = 2 * batch * dim * (2 * heads * new + 2 * kv_heads * context)
    add("attention", "bfloat16", params, 4 * batch * heads * dim * scores, bytes_, backend)


def one_gpu():
    for dtype in ("bfloat16", "float16", "float8", "int8", "tfloat32", "float32"):
        for size in (2048, 4096, 8192, 16384)[: 2 if dtype == "float32" else 4]:
            gemm(dtype, size, size, size)
    gemm("bfloat16", 1, 4096, 4096)
    gemm("bfloat16", 32, 14336, 4096)
    for kernel, arrays in (("copy", 2), ("read", 1), ("write", 1), ("triad", 3)):
        for size in (256 << 20, 1 << 30, 4 << 30):
            add(kernel, "float32", dict(bytes=size), 0, arrays * size)
    for mib in (4, 16, 32):
        add("l2-read", "float32", dict(bytes=mib << 20), 0, mib << 20)
    for backend in (None, "flash", "efficient", "cudnn", "math"):
        attention(1, 32, 8, 128, 2048, 2048, backend)
        attention(8, 32, 8, 128, 1, 2048, backend)
    attention(1, 32, 8, 128, 512, 2048, None)
    hidden = 4096
    for tokens in (1, 2048):
        add("rmsnorm", "bfloat16", dict(tokens=tokens, hidden=hidden, residual=1), 0, 8 * tokens * hidden)
        add("swiglu", "bfloat16", dict(tokens=tokens, intermediate=14336), 0, 6 * tokens * 14336)
        add("rope", "bfloat16", dict(tokens=tokens, heads=32, kv_heads=8, head_dim=128), 0, 4 * tokens * 40 * 128)
        add("embedding", "bfloat16", dict(tokens=tokens, vocab=128256, hidden=hidden), 0, 4 * tokens * hidden)
        add("layernorm-gelu", "bfloat16", dict(tokens=tokens, hidden=hidden), 0, 4 * tokens * hidden)
        linear = dict(tokens=tokens, in_features=hidden, out_features=hidden, bias=0)
        add("linear", "bfloat16", linear, 2 * tokens * hidden**2, 2 * (2 * tokens * hidden + hidden**2))
    add("softmax", "bfloat16", dict(rows=4096, columns=4096), 0, 4 * 4096**2)
    add("sampling", "bfloat16", dict(batch=8, vocab=128256), 0, 16 * 128256)
    conv = dict(batch=16, channels=256, out_channels=256, height=56, width=56, kernel=3)
    add("conv2d", "bfloat16", conv, 2 * 16 * 256 * 256 * 56 * 56 * 9, 4 * 16 * 256 * 56 * 56)
    add("lstm", "bfloat16", dict(batch=16, seq=64, input=1024, hidden=1024, layers=2), 2 * 64 * 16 * 4 * 1024 * 2048 * 2, 1)
    for backend in ("host", "device", "round-trip"):
        add("launch", "float32", {}, 0, 0, backend)
    add("graph-node", "float32", {}, 0, 0)
    for pinned in (0, 1):
        for size in (4096, 1 << 20, 256 << 20):
            for direction in ("host-to-device", "device-to-host"):
                add(direction, "float32", dict(bytes=size, pinned=pinned), 0, size)


if "--ranks" in sys.argv:
    ranks = int(sys.argv[sys.argv.index("--ranks") + 1])
    for size in (8, 1024, 32768, 1 << 20, 16 << 20, 256 << 20, 1 << 30):
        add("all-reduce", "bfloat16", dict(bytes=size, ranks=ranks), 0, size)
else:
    one_gpu()
order = dict(v=1, execution_id="trial", device=None, cases=cases, runs=100, max_runs=400, max_seconds=1.0)
json.dump(dict(order, target_half_width=0.01, graph="auto", check=True, seed=1), sys.stdout, indent=1)
