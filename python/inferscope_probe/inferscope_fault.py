"""Why an attempt on PyTorch failed: an allocator error or another one."""

from typing import Optional


def out_of_memory(error: BaseException) -> Optional[BaseException]:
    """The allocator's error behind `error`: a CUDA graph capture that it interrupts raises another error."""
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
    """Why an attempt failed, without the frames of the exception, which would keep device memory allocated."""

    def __init__(self, error: BaseException) -> None:
        allocator = out_of_memory(error)
        self.memory = allocator is not None
        reported = allocator or error
        self.text = ("%s: %s" % (type(reported).__name__, " ".join(str(reported).split())))[:2000]
