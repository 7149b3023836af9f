"""What broke off an attempt on PyTorch: the allocator, or something else."""

from typing import Optional


def out_of_memory(error: BaseException) -> Optional[BaseException]:
    """The error of the allocator behind `error`: a capture that it broke off ends with an error of its own."""
    import torch

    seen: Optional[BaseException] = error
    while seen is not None:
        text = str(seen).lower()
        words = ("out of memory", "cublas_status_alloc_failed", "can't allocate memory")
        if isinstance(seen, (torch.cuda.OutOfMemoryError, MemoryError)) or any(word in text for word in words):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


class Fault:
    """Why an attempt broke off, without the frames of the exception, which would hold on to device memory."""

    def __init__(self, error: BaseException) -> None:
        allocator = out_of_memory(error)
        self.memory = allocator is not None
        reported = allocator or error
        self.text = ("%s: %s" % (type(reported).__name__, " ".join(str(reported).split())))[:2000]
