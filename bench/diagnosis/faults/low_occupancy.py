"""Each block of two warps allocates 100 KiB of shared memory that it hardly uses, so that only two blocks fit on a
multiprocessor; repaired: it allocates what it uses.
"""

import torch
from case import Case
from cuda_source import kernel

SOURCE = r"""
extern "C" __global__ void gather_sum(const float* x, float* y, int size, int steps) {
  extern __shared__ float scratch[];
  // A warp reads 128 consecutive bytes, somewhere.
  unsigned lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, at = warp * 2654435761u;
  float sum = 0;
  for (int i = 0; i < steps; i++) {
    unsigned from = at % (unsigned)size & ~31u | lane;
    // The next address needs this value: only other warps can hide the latency.
    sum += x[from];
    at = at * 1664525u + 1013904223u + (unsigned)(sum != sum);
  }
  scratch[threadIdx.x] = sum;
  y[blockIdx.x * blockDim.x + threadIdx.x] = scratch[threadIdx.x];
}
"""


def prepare(variant: str, device: str) -> Case:
    size, blocks = (1 << 28, 132 * 128) if device != "cpu" else (1 << 10, 4)
    x = torch.randn(size, device=device)
    y = torch.empty(blocks * 64, device=device)
    if device == "cpu":
        return Case("decode", 4, lambda _: x.sum())
    gather = kernel(SOURCE, "gather_sum")
    shared = 100 * 1024 if variant == "fault" else 256
    gather.set_shared_memory_config(100 * 1024)
    return Case("decode", 4, lambda _: gather((blocks, 1, 1), (64, 1, 1), [x, y, size, 32], shared_mem=shared))
