"""Why an attempt on PyTorch failed: an allocator error or another one."""

from typing import Optional


def find_allocator_error(error: BaseException) -> Optional[BaseException]:
    """The allocator's error, which may be a cause of `error`: a CUDA graph capture that it interrupts raises another error."""
    import torch

    cause: Optional[BaseException] = error
    while cause is not None:
        text = str(cause).lower()
        words = ("out of memory", "cublas_status_alloc_failed", "can't allocate memory")
        if isinstance(cause, (torch.cuda.OutOfMemoryError, MemoryError)) or any(word in text for word in words):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


class Fault:
    """Why an attempt failed, without the frames of the exception, which would keep device memory allocated."""

    def __init__(self, error: BaseException) -> None:
        allocator_error = find_allocator_error(error)
        self.is_out_of_memory = allocator_error is not None
        reported = allocator_error or error
        self.text = ("%s: %s" % (type(reported).__name__, " ".join(str(reported).split())))[:2000]
