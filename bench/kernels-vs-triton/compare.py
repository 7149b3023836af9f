"""Times the same GEMMs and copies with inferscope and with triton.testing.do_bench, alternately in one process.

python bench/kernels-vs-triton/compare.py [OUT.json]   (a GPU, torch with triton; under a minute)
"""

import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "inferscope_probe"))

import torch
import triton
from inferscope_kernels import Bench, Case
from inferscope_points import StopFlag

REPEATS = 3
MAX_DIFFERENCE = 0.02


def cases():
    for size, dtype in (
        (2048, "bfloat16"), (4096, "bfloat16"), (8192, "bfloat16"), (8192, "float16"), (4096, "tfloat32"), (4096, "float32"),
    ):  # fmt: skip
        width = 2 if dtype in ("bfloat16", "float16") else 4
        yield {
            "case": "gemm %d %s" % (size, dtype), "kernel": "gemm", "backend": None, "dtype": dtype,
            "params": {"m": size, "n": size, "k": size}, "flops": 2 * size**3, "bytes": 3 * size * size * width,
        }  # fmt: skip
    for bytes_ in (64 << 20, 256 << 20, 1 << 30, 4 << 30):
        yield {
            "case": "copy %d MiB" % (bytes_ >> 20), "kernel": "copy", "backend": None, "dtype": "float32",
            "params": {"bytes": bytes_}, "flops": 0, "bytes": 2 * bytes_,
        }  # fmt: skip


def inferscope_ns(spec):
    order = {
        "cases": [spec], "runs": 100, "max_runs": 400, "max_seconds": 1.0, "target_half_width": 0.005, "graph": "auto",
        "check": True, "seed": 1,
    }  # fmt: skip
    bench, case = Bench(order, "cuda:0", StopFlag()), Case(spec)
    with torch.no_grad():
        bench._attempt(case)
    if case.outcome != "measured":
        sys.exit("%s: %s: %s" % (spec["case"], case.outcome, case.text))
    return statistics.median(case.samples), case.method


def triton_ns(spec):
    from inferscope_kernel_cases import Source
    from inferscope_kernel_probes import OPERATIONS

    operation = OPERATIONS[spec["kernel"]](spec["params"], Source(spec["dtype"], "cuda:0"), spec)
    inputs = operation.make()
    return triton.testing.do_bench(lambda: operation.run(*inputs), warmup=50, rep=200, return_mode="median") * 1e6


def main():
    Bench({"cases": []}, "cuda:0", StopFlag())._raise_clocks()
    rows = []
    print("%s, torch %s, triton %s" % (torch.cuda.get_device_name(0), torch.__version__, triton.__version__))
    print("%-22s %-7s %12s %12s %10s %s" % ("case", "method", "inferscope", "triton", "difference", "rate"))
    for spec in cases():
        inferscope_times, triton_times = [], []
        for _ in range(REPEATS):
            time_ns, method = inferscope_ns(spec)
            inferscope_times.append(time_ns)
            triton_times.append(triton_ns(spec))
        inferscope_median, triton_median = statistics.median(inferscope_times), statistics.median(triton_times)
        difference = inferscope_median / triton_median - 1
        unit, work = ("TFLOP/s", spec["flops"] / 1e3) if spec["flops"] else ("GB/s", spec["bytes"])
        times = {"inferscope_ns": inferscope_median, "triton_ns": triton_median}
        rows.append({"case": spec["case"], "method": method, **times, "difference": difference})
        print(
            "%-22s %-7s %9.1f us %9.1f us %+9.2f%% %.0f and %.0f %s"
            % (
                spec["case"], method, inferscope_median / 1e3, triton_median / 1e3, 100 * difference,
                work / inferscope_median, work / triton_median, unit,
            ),  # fmt: skip
            flush=True,
        )
        torch.cuda.empty_cache()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(rows, indent=1) + "\n")
    # Only the peaks are compared with the goal, because rooflines use them; smaller cases differ by the cost of an event.
    for kind, unit in (("gemm", "flops"), ("copy", "bytes")):
        specs = {spec["case"]: spec for spec in cases() if spec["kernel"] == kind}
        kind_rows = [row for row in rows if row["case"] in specs]
        peaks = [max(specs[row["case"]][unit] / row[column] for row in kind_rows) for column in ("inferscope_ns", "triton_ns")]
        difference = peaks[0] / peaks[1] - 1
        print("%s peak: %+.2f %% difference, goal: at most %g %%" % (kind, 100 * difference, 100 * MAX_DIFFERENCE))
        if abs(difference) > MAX_DIFFERENCE:
            sys.exit(1)


if __name__ == "__main__":
    main()
