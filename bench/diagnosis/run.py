"""Runs one planted fault, or its repaired twin: inferscope run -- python bench/diagnosis/run.py --fault kv_cache_cat"""

import argparse
import contextlib
import sys
import time
from pathlib import Path
from typing import Iterator

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python" / "inferscope_probe")]
import torch  # noqa: E402
from capture import FAULTS, VARIANTS, prepare, warm  # noqa: E402
from case import run  # noqa: E402
from inferscope_record import mark, recorder  # noqa: E402


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--fault", choices=FAULTS, required=True)
    flags.add_argument("--variant", choices=VARIANTS, default="fault")
    flags.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    flags.add_argument("--runs", type=int, default=2)
    args = flags.parse_args()
    with torch.inference_mode():
        case = prepare(args.fault, args.variant, args.device)
        if case.model is not None:
            recorder().model(
                "decoder", case.model, case.dtype, args.device, weights="random", engine="torch", engine_version=torch.__version__
            )
        with mark("warmup", -1, warmup=True):
            warm(case, args.device)

        if args.device == "cuda":
            torch.cuda.profiler.start()
        for iteration in range(args.runs):

            @contextlib.contextmanager
            def marked(kind: str, index: int, iteration: int = iteration) -> Iterator[None]:
                with mark(kind, iteration, index, case.batch, case.new_tokens, case.context):
                    yield

            start = time.perf_counter()
            run(case, marked, args.device)
            print("%s %s: %.3f ms per stage" % (args.fault, args.variant, (time.perf_counter() - start) * 1e3 / case.stages))
        if args.device == "cuda":
            torch.cuda.profiler.stop()
        recorder().flush()


if __name__ == "__main__":
    main()
