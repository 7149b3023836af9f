"""A tile in shared memory is read down its columns, 32 floats apart, so that a warp's reads fall on one bank; repaired: rows of 33 floats."""

import torch
from case import Case
from cuda_source import kernel

SOURCE = r"""
extern "C" __global__ void column_dots(const float* x, float* y, int repeats) {
  __shared__ float tile[32 * PITCH];
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) tile[i / 32 * PITCH + i % 32] = x[blockIdx.x * 1024 + i];
  __syncthreads();
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = 0;
  for (int r = 0; r < repeats; r++)
    #pragma unroll
    for (int k = 0; k < 32; k++) sum += tile[lane * PITCH + ((k + warp + r) & 31)];
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def prepare(variant: str, device: str) -> Case:
    blocks = 8192 if device != "cpu" else 8
    x = torch.randn(blocks, 1024, device=device)
    y = torch.empty(blocks, 256, device=device)
    if device == "cpu":
        return Case("decode", 4, lambda _: x.sum(1))
    pitch = "32" if variant == "fault" else "33"
    dots = kernel(SOURCE.replace("PITCH", pitch), "column_dots")
    return Case("decode", 4, lambda _: dots((blocks, 1, 1), (256, 1, 1), [x, y, 16]))
