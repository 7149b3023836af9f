"""Kernels in CUDA C++, compiled with NVRTC; torch operations replace them without a GPU."""

from typing import Any, Callable

import torch


def kernel(source: str, name: str) -> Callable[..., Any]:
    return torch.cuda._compile_kernel(source, name)
