"""Another program runs on the core of the thread that launches; repaired: it runs on another core. The Python of each step is the same in both."""

import os
import subprocess
import sys

from case import Case
from decoder import Decoder, Shape, graphed, sized

_PROGRAM = "import os\nwhile os.getppid() == %d: sum(range(10**6))"
_busy = subprocess.Popen([sys.executable, "-c", _PROGRAM % os.getpid()])
CORES = sorted(os.sched_getaffinity(0))


def schedule(tokens: int) -> int:
    block = 0
    for token in range(tokens):
        block = (block * 31 + token) % 65536
    return block


def prepare(variant: str, device: str) -> Case:
    own_core, other_core = CORES[:2]
    shape = sized(Shape(layers=2), device)
    model = Decoder(shape, 1, 128, device)
    model.fill_cache()
    replay = graphed(model.decode, device)

    def step(index: int) -> None:
        if index == 0:
            # Moves this thread only, not the threads of the driver and the profiler.
            os.sched_setaffinity(0, {own_core})
            os.sched_setaffinity(_busy.pid, {own_core if variant == "fault" else other_core})
        schedule(20000)
        replay()

    return Case("decode", 100, step, synchronize=True, batch=1, new_tokens=1, context=129, model=shape.config(), more={"delay": True})
