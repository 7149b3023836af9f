"""The interface of the programs in faults/: the work of one stage, and how often a run does it."""

import contextlib
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional

import torch

Marker = Callable[[str, int], ContextManager[None]]


@dataclass
class Case:
    """A run is `stages` times `step` inside a marked stage of `kind`, each followed by `between`; or `whole`, which
    marks its own stages.
    """

    kind: str
    stages: int
    step: Optional[Callable[[int], Any]] = None
    between: Optional[Callable[[int], Any]] = None
    whole: Optional[Callable[[Marker], Any]] = None
    synchronize: bool = False
    """Whether a stage ends with a synchronization, as in a program that measures or streams."""
    batch: Optional[int] = None
    new_tokens: Optional[int] = None
    context: Optional[int] = None
    """Tokens attended to, summed over the batch."""
    model: Optional[Dict[str, Any]] = None
    """config.json of the model; None if the work is not that of a model."""
    dtype: str = "bfloat16"
    more: Dict[str, Any] = field(default_factory=dict)


@dataclass
class Sized:
    """A program around a model: the choices of the seed, and whether it is the fault or its twin."""

    hidden: int
    layers: int
    vocab: int
    batch: int
    length: int
    variant: str

    @property
    def faulty(self) -> bool:
        return self.variant == "fault"


@dataclass
class Planted:
    """A kind of fault: its stage, its description in generated.json, and the rules that name it."""

    id: str
    stage: str
    planted: str
    rules: List[str]


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def run(case: Case, mark: Marker, device: str) -> None:
    """One run, synchronized at its end."""
    if case.whole is not None:
        case.whole(mark)
    else:
        assert case.step is not None
        for index in range(case.stages):
            with mark(case.kind, index):
                case.step(index)
                if case.synchronize:
                    wait(device)
            if case.between is not None:
                case.between(index)
    wait(device)


@contextlib.contextmanager
def unmarked(kind: str, index: int) -> Iterator[None]:
    yield


def sized_marker(case: Case, annotate: bool) -> Marker:
    """Ranges with the stage's sizes in their names (stages.yaml reads them): NVTX, and record_function if a profiler
    runs.
    """
    sizes = "" if case.batch is None else " batch=%d new=%d context=%d" % (case.batch, case.new_tokens or 0, case.context or 0)

    @contextlib.contextmanager
    def mark(kind: str, index: int) -> Iterator[None]:
        name = "%s %d%s" % (kind, index, sizes if kind == case.kind else "")
        range_ = torch.profiler.record_function(name) if annotate else torch.cuda.nvtx.range(name)
        with range_:
            yield

    return mark
