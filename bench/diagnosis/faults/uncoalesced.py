"""Neighboring threads read addresses one row apart; repaired: neighboring addresses. Both read and sum 1 GiB."""

import torch
from case import Case
from cuda_source import kernel

SOURCE = r"""
extern "C" __global__ void column_sums(const float* x, float* y, int rows, int columns) {
  // Thread = column: a warp reads 128 consecutive bytes.
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int from = blockIdx.y * (rows / gridDim.y), until = from + rows / gridDim.y;
  float sum = 0;
  for (int row = from; row < until; row++) sum += x[(long long)row * columns + column];
  y[blockIdx.y * columns + column] = sum;
}
extern "C" __global__ void row_sums(const float* x, float* y, int rows, int columns) {
  // Thread = row: the 32 addresses of a warp lie a row apart.
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int from = blockIdx.y * (columns / gridDim.y), until = from + columns / gridDim.y;
  float sum = 0;
  for (int column = from; column < until; column++) sum += x[(long long)row * columns + column];
  y[blockIdx.y * rows + row] = sum;
}
"""


def prepare(variant: str, device: str) -> Case:
    side = 16384 if device != "cpu" else 64
    x = torch.randn(side, side, device=device)
    y = torch.empty(16, side, device=device)
    if device == "cpu":
        return Case("decode", 4, lambda _: x.sum(1 if variant == "fault" else 0))
    sums = kernel(SOURCE, "row_sums" if variant == "fault" else "column_sums")
    return Case("decode", 4, lambda _: sums((side // 256, 16, 1), (256, 1, 1), [x, y, side, side]))
