"""Kernels of CUDA C++, compiled by NVRTC; torch operations stand for them where there is no GPU."""

from typing import Any, Callable

import torch


def kernel(source: str, name: str) -> Callable[..., Any]:
    return torch.cuda._compile_kernel(source, name)
