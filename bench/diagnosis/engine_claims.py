"""Measures whether the findings of vLLM twins come true, like claims.py: engines with and without what the advice names, in turn, in one process.

    python bench/diagnosis/engine_claims.py --out OUT

launch_bound of prefills: CUDA graphs captured for as many tokens as a prefill has. host_bound of decode steps: twice or four times as many
sequences per step; after: the time of a step per as many sequences as before. Writes OUT/claims.jsonl.
"""

import argparse
import gc
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List

os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_USE_FLASHINFER_SAMPLER="0", VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1")
sys.path[:0] = [str(Path(__file__).resolve().parent)]
from engine import NEW, Engine, entries, sampling_params  # noqa: E402

TOKENS_PER_STEP = 8192
GROUPS = [["ew_00_eager", "ew_02_half_precision", "ew_04_texts"], ["ew_03_prompt_logprobs"], ["ew_01_few_sequences"]]
"""Programs with one model."""


def timed(llm: Any, prompts: List[Any], new: int) -> float:
    """-> ms of one call"""
    params = sampling_params(new)
    start = time.perf_counter()
    llm.generate(prompts, params, use_tqdm=False)
    return (time.perf_counter() - start) * 1e3


def in_turn(pairs: int, before: Callable[[], float], after: Callable[[], float]) -> List[Dict[str, float]]:
    rows = []
    for pair in range(pairs):
        order = [("before", before), ("after", after)]
        rows.append({side: round(run(), 6) for side, run in (order if pair % 2 == 0 else order[::-1])})
    return rows


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--out", type=Path, required=True)
    flags.add_argument("--pairs", type=int, default=10)
    flags.add_argument("--limit-s", type=float, default=420)
    args = flags.parse_args()
    until = time.monotonic() + args.limit_s
    args.out.mkdir(parents=True, exist_ok=True)

    def report(**line: Any) -> None:
        with open(args.out / "claims.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line)[:300], flush=True)

    for group in GROUPS:
        try:
            programs = {name: Engine(variant="fixed", **entries()[name]["chosen"]) for name in group}
            tokens = {name: min(TOKENS_PER_STEP, one.batch * one.length) for name, one in programs.items()}
            first = programs[group[0]]
            started = time.monotonic()
            twin = first.llm()
            print("twin of %s: %.0f s" % (group[0], time.monotonic() - started), flush=True)
            started = time.monotonic()
            sizes = sorted({1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, *tokens.values()})
            advised = first.llm(max_num_seqs=256, compilation_config={"cudagraph_mode": "FULL_AND_PIECEWISE", "cudagraph_capture_sizes": sizes})
            print("advised: %.0f s" % (time.monotonic() - started), flush=True)
        except Exception as error:
            traceback.print_exc()
            report(program=group[0], rule="launch_bound", stage="prefill", variant="graph", failed=str(error)[:500])
            continue
        for name, one in programs.items():
            if time.monotonic() > until:
                report(program=name, rule="launch_bound", stage="prefill", variant="graph", failed="no time was left")
                continue
            try:
                prompts = one.prompts()
                steps = -(-one.batch * one.length // TOKENS_PER_STEP)
                for llm in (twin, advised):
                    for new in (1, 1, NEW + 1):
                        timed(llm, prompts, new)
                rows = in_turn(args.pairs, lambda: timed(twin, prompts, 1) / steps, lambda: timed(advised, prompts, 1) / steps)
                report(program=name, rule="launch_bound", stage="prefill", variant="graph", prefills=steps, tokens=tokens[name], pairs=rows)

                def decode(llm: Any, some: List[Any]) -> float:
                    return (timed(llm, some, NEW + 1) - timed(llm, some, 1)) / NEW

                for times in (2, 4):
                    if one.batch * times > 256:
                        continue
                    more = prompts * times
                    decode(advised, more)
                    rows = in_turn(max(4, args.pairs // 2), lambda: decode(twin, prompts), lambda: decode(advised, more) / times)
                    report(program=name, rule="host_bound", stage="decode", variant="%d times the sequences" % times, sequences=one.batch, pairs=rows)
                rows = in_turn(4, lambda: decode(twin, prompts), lambda: decode(advised, prompts))
                report(program=name, rule="", stage="decode", variant="engines", sequences=one.batch, pairs=rows)
            except Exception as error:
                traceback.print_exc()
                report(program=name, rule="launch_bound", stage="prefill", variant="graph", failed=str(error)[:500])
        del twin, advised
        gc.collect()


if __name__ == "__main__":
    main()
