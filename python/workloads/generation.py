"""What the four workloads share: flags, the measured loop over inferscope_decoder.py, the summary.

Stages load, warmup, prefill, decode and sampling are marked (inferscope_record.mark); warm-up repeats are numbered -1, -2, ….
The loop synchronizes at the end of every stage, so that its range covers the work of the device.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent / "inferscope_probe"))
from inferscope_decoder import (  # noqa: E402
    ATTENTIONS,
    DEFAULT_MODEL,
    DTYPES,
    MODES,
    Decoder,
    ModelError,
    check_mode,
    choose_device,
    load_model,
    random_prompt,
    synchronize,
)
from inferscope_record import mark, recorder  # noqa: E402


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse_counts(text: str) -> List[int]:
    """1,4,8 -> [1, 4, 8]"""
    values = [int(part) for part in text.split(",") if part.strip()]
    if not values or min(values) < 1:
        raise argparse.ArgumentTypeError("%r is not a list of positive numbers, such as 1,4,8" % text)
    return values


def make_parser(description: str, max_tokens: int, batch_sizes: str = "1") -> argparse.ArgumentParser:
    """The flags that all workloads share."""
    flags = argparse.ArgumentParser(description=description)
    flags.add_argument("--model", action="append", help="hub id, folder or config.json (default: DEMO_MODEL, else TinyLlama-1.1B)")
    flags.add_argument("--weights", choices=["trained", "random"], default="trained", help="random: no download, with the same speed and memory")
    flags.add_argument("--max-tokens", type=int, default=max_tokens, help="new tokens per sequence (default %(default)s)")
    flags.add_argument("--input-len", type=int, default=128, help="prompt tokens per sequence (default %(default)s)")
    flags.add_argument("--batch-size", type=parse_counts, default=parse_counts(batch_sizes), help="sequences, one number or a list (default %(default)s)")
    flags.add_argument("--dtype", choices=DTYPES, default="float16")
    flags.add_argument("--device", choices=["cuda", "cpu"], default=None, help="default: cuda if there is a GPU")
    flags.add_argument("--mode", choices=MODES, default="eager", help="how a decode step is run")
    flags.add_argument("--attn", choices=ATTENTIONS, default="sdpa")
    flags.add_argument("--repeats", type=int, default=3)
    flags.add_argument("--warmups", type=int, default=2)
    flags.add_argument("--seed", type=int, default=0)
    return flags


def model_names(args: argparse.Namespace) -> List[str]:
    return args.model or [os.environ.get("DEMO_MODEL") or DEFAULT_MODEL]


def select_device(args: argparse.Namespace) -> str:
    device = choose_device(args.device)
    if device == "cpu" and args.device is None:
        log("WARNING: no GPU found, this runs on the CPU. Its results are not those of a GPU. (--device cpu silences this.)")
    check_mode(args.mode, args.attn, device)
    return device


def load(args: argparse.Namespace, name: str, device: str) -> Any:
    return load_model(name, device, args.dtype, args.weights, args.attn, args.seed)


def generate(decoder: Decoder, args: argparse.Namespace, iteration: int) -> Tuple[float, List[float], Any]:
    """One greedy generation. -> TTFT in s, seconds of each decode step with its sampling, tokens [batch, max_tokens]."""
    import torch

    warmup, batch, device = iteration < 0, decoder.batch_size, decoder.device
    prompt = random_prompt(decoder.model.config.vocab_size, batch, args.input_len, args.seed, iteration).to(device)
    synchronize(device)

    def sample(logits: Any, step: int) -> Any:
        with mark("sampling", iteration, step, batch, warmup=warmup):
            token = logits.argmax(-1, keepdim=True)
            synchronize(device)
        return token

    start_ns = time.monotonic_ns()
    with mark("prefill", iteration, 0, batch, batch * args.input_len, batch * args.input_len, warmup):
        logits = decoder.prefill(prompt)
        synchronize(device)
    tokens = [sample(logits, 0)]
    times = [time.monotonic_ns()]
    for step in range(args.max_tokens - 1):
        with mark("decode", iteration, step, batch, batch, batch * (args.input_len + step + 1), warmup):
            logits = decoder.decode(tokens[-1])
            synchronize(device)
        tokens.append(sample(logits, step + 1))
        times.append(time.monotonic_ns())
    recorder().request(start_ns, times[0], times[-1], iteration, batch, args.input_len, args.max_tokens, warmup)
    recorder().flush()
    steps = [(after - before) / 1e9 for before, after in zip(times, times[1:])]
    return (times[0] - start_ns) / 1e9, steps, torch.cat(tokens, 1)


def measure(model: Any, args: argparse.Namespace, name: str, device: str, batch_size: int, first: int = 0) -> Dict[str, Any]:
    """Warms up and measures the repeats, numbered from `first`. -> a row of the result"""
    import torch

    with torch.inference_mode():
        decoder = Decoder(model, device, args.mode, args.attn, batch_size, args.input_len, args.max_tokens)
        with mark("warmup", -1, warmup=True):
            for number in range(args.warmups):
                generate(decoder, args, -1 - number)
        recorder().cuda_memory("post_warmup")
        if device == "cuda":
            torch.cuda.profiler.start()
        runs = [generate(decoder, args, first + number) for number in range(args.repeats)]
        if device == "cuda":
            torch.cuda.profiler.stop()
    recorder().cuda_memory("peak")
    recorder().flush()
    ttft = sum(run[0] for run in runs) / len(runs)
    steps = [step for run in runs for step in run[1]]
    tpot: Optional[float] = sum(steps) / len(steps) if steps else None
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else None
    row = {
        "model": name,
        "batch_size": batch_size,
        "input_len": args.input_len,
        "output_len": args.max_tokens,
        "dtype": args.dtype,
        "device": device,
        "mode": args.mode,
        "ttft_ms": ttft * 1e3,
        "tpot_ms": None if tpot is None else tpot * 1e3,
        "decode_tokens_per_s": None if not tpot else batch_size / tpot,
        "peak_memory_bytes": peak,
        "tokens": runs[-1][2][0].tolist(),
    }
    rate = row["decode_tokens_per_s"]
    log(
        "%s · batch %d · %s · TTFT %.2f ms · TPOT %s · %s · peak memory %s"
        % (
            name,
            batch_size,
            args.mode,
            ttft * 1e3,
            "–" if tpot is None else "%.2f ms" % (tpot * 1e3),
            "–" if rate is None else "%.0f tokens/s" % rate,
            "not measured on the CPU" if peak is None else "%.2f GiB" % (peak / 2**30),
        )
    )
    return row


def main(args: argparse.Namespace, workload: str) -> int:
    """Measures every model at every batch size, and prints one JSON line on stdout. -> exit code"""
    if args.max_tokens < 1 or args.input_len < 1 or args.repeats < 1 or args.warmups < 0:
        log("error: the minimum of --max-tokens, --input-len and --repeats is 1, of --warmups 0")
        return 2
    recorder()
    try:
        device = select_device(args)
        rows: List[Dict[str, Any]] = []
        for name in model_names(args):
            model = load(args, name, device)
            for batch_size in args.batch_size:
                rows.append(measure(model, args, name, device, batch_size, len(rows) * args.repeats))
            del model
        print(json.dumps({"workload": workload, "results": rows}))
        return 0
    except ModelError as error:
        recorder().error(error.code, str(error))
        log("error: %s" % error)
        return 2 if error.code == "E_USAGE" else 1
    except RuntimeError as error:
        if "out of memory" in str(error):
            recorder().error("E_OUT_OF_MEMORY", str(error).split("\n")[0])
        raise
