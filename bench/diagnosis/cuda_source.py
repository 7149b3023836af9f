"""Compiles kernels in CUDA C++ with NVRTC. Without a GPU, their programs use torch operations instead."""

from typing import Any, Callable

import torch


def kernel(source: str, name: str) -> Callable[..., Any]:
    return torch.cuda._compile_kernel(source, name)
