"""What the four workloads share: flags, building the model, an explicit greedy decode loop, the summary.

Stages load, warmup, prefill, decode and sampling are marked (inferscope_record.mark); repeats before the measured ones are
numbered -1, -2, …. The loop synchronises at the end of every stage, so that host ranges cover the device's work.
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
from inferscope_record import mark, recorder  # noqa: E402

DEFAULT_MODEL = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"


def _llama(hidden: int, inner: int, layers: int, heads: int, kv_heads: int, vocab: int, **more: Any) -> Dict[str, Any]:
    return dict(
        model_type="llama",
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        vocab_size=vocab,
        max_position_embeddings=4096,
        **more,
    )


# Dimensions of the config.json files on the hub, for --weights random.
CONFIGS: Dict[str, Dict[str, Any]] = {
    "tiny": _llama(64, 128, 2, 4, 2, 512),
    DEFAULT_MODEL: _llama(2048, 5632, 22, 32, 4, 32000),
    "meta-llama/Llama-3.2-1B": _llama(2048, 8192, 16, 32, 8, 128256, head_dim=64, tie_word_embeddings=True),
    "meta-llama/Llama-2-7b-hf": _llama(4096, 11008, 32, 32, 32, 32000),
    "mistralai/Mistral-7B-v0.1": dict(_llama(4096, 14336, 32, 32, 8, 32000), model_type="mistral"),
    "Qwen/Qwen2-1.5B": dict(
        _llama(1536, 8960, 28, 12, 2, 151936, tie_word_embeddings=True), model_type="qwen2"
    ),
}


class WorkloadError(Exception):
    """A failure with an explanation: code of docs/formats.md, and three lines: what, why, what to type."""

    def __init__(self, code: str, what: str, why: str, fix: str) -> None:
        super().__init__("%s\n  %s\n  %s" % (what, why, fix))
        self.code = code


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def lengths(text: str) -> List[int]:
    """1,4,8 -> [1, 4, 8]"""
    values = [int(part) for part in text.split(",") if part.strip()]
    if not values or min(values) < 1:
        raise argparse.ArgumentTypeError("%r is not a list of numbers from 1 up, such as 1,4,8" % text)
    return values


def parser(description: str, max_tokens: int, batch_sizes: str = "1") -> argparse.ArgumentParser:
    """The common flags."""
    flags = argparse.ArgumentParser(description=description)
    flags.add_argument("--model", action="append", help="hub id, folder or config.json (default: DEMO_MODEL, else TinyLlama-1.1B)")
    flags.add_argument("--weights", choices=["trained", "random"], default="trained", help="random: no download; speed and memory are the same")
    flags.add_argument("--max-tokens", type=int, default=max_tokens, help="new tokens a sequence (default %(default)s)")
    flags.add_argument("--input-len", type=int, default=128, help="prompt tokens a sequence (default %(default)s)")
    flags.add_argument("--batch-size", type=lengths, default=lengths(batch_sizes), help="sequences, one number or a list (default %(default)s)")
    flags.add_argument("--dtype", choices=["float16", "bfloat16", "float32"], default="float16")
    flags.add_argument("--device", choices=["cuda", "cpu"], default=None, help="default: cuda if there")
    flags.add_argument("--mode", choices=["eager", "compile", "cudagraph"], default="eager", help="how a decode step is run")
    flags.add_argument("--attn", choices=["sdpa", "eager", "flash_attention_2"], default="sdpa")
    flags.add_argument("--repeats", type=int, default=3)
    flags.add_argument("--warmups", type=int, default=2)
    flags.add_argument("--seed", type=int, default=0)
    return flags


def models(args: argparse.Namespace) -> List[str]:
    return args.model or [os.environ.get("DEMO_MODEL") or DEFAULT_MODEL]


def device_of(args: argparse.Namespace) -> str:
    import torch

    if args.device == "cuda" and not torch.cuda.is_available():
        raise WorkloadError(
            "E_WORKLOAD_FAILED",
            "--device cuda, and torch %s finds no GPU" % torch.__version__,
            "The driver is missing or too old for this torch, CUDA_VISIBLE_DEVICES hides it, or torch is a CPU build.",
            "Type: inferscope doctor – or take --device cpu.",
        )
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu" and args.device is None:
        say("WARNING: no GPU found, this runs on the CPU. Figures say nothing about a GPU. (--device cpu silences this.)")
    if device == "cpu" and args.mode == "cudagraph":
        raise WorkloadError(
            "E_USAGE", "--mode cudagraph needs a GPU", "CUDA graphs do not exist on the CPU.", "Take --mode eager or --mode compile."
        )
    if args.mode != "eager" and args.attn == "flash_attention_2":
        raise WorkloadError(
            "E_USAGE",
            "--mode %s does not go with --attn flash_attention_2" % args.mode,
            "These modes keep the KV cache at its full length with a mask, which flash_attention_2 does not take.",
            "Take --attn sdpa.",
        )
    return device


def _config(name: str) -> Any:
    from transformers import AutoConfig

    path = Path(name)
    if path.suffix == ".json" and path.is_file():
        path = path.parent
    if path.is_dir():
        return AutoConfig.from_pretrained(str(path))
    if name not in CONFIGS:
        raise WorkloadError(
            "E_MODEL_NOT_FOUND",
            "the dimensions of %s are not bundled" % name,
            "--weights random downloads nothing; bundled are %s." % ", ".join(CONFIGS),
            "Give one of these, or a folder with its config.json: --model ./folder",
        )
    dims = dict(CONFIGS[name])
    return AutoConfig.for_model(dims.pop("model_type"), **dims)


def load(args: argparse.Namespace, name: str, device: str) -> Any:
    """Builds the model on its device (stage load) and writes the model line."""
    import torch
    import transformers

    if device == "cuda":
        torch.cuda.init()
        torch.cuda.reset_peak_memory_stats()
    dtype = getattr(torch, args.dtype)
    torch.manual_seed(args.seed)
    with mark("load"):
        try:
            if args.weights == "random":
                config = _config(name)
                torch.set_default_dtype(dtype)
                try:
                    with torch.device(device):
                        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=args.attn, dtype=dtype)
                finally:
                    torch.set_default_dtype(torch.float32)
            else:
                model = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=dtype, attn_implementation=args.attn).to(device)
        except (OSError, ValueError, ImportError) as error:
            raise _load_error(name, error) from error
        model = model.eval()
        synchronize(device)
    recorder().model(
        name=name,
        config=json.loads(model.config.to_json_string(use_diff=False)),
        dtype=args.dtype,
        device=device,
        weights=args.weights,
        weight_bytes=sum(p.numel() * p.element_size() for p in model.parameters()),
        engine_version=transformers.__version__,
        threads=torch.get_num_threads(),
    )
    recorder().cuda_memory("baseline")
    recorder().flush()
    return model


def _load_error(name: str, error: Exception) -> WorkloadError:
    text = str(error)
    chain = text + " " + repr(error.__cause__) + repr(error.__context__)
    if "gated" in chain or "401" in chain or "403" in chain:
        return WorkloadError(
            "E_MODEL_ACCESS",
            "%s is gated, or needs a login" % name,
            "The hub answered: %s" % text.split("\n")[0],
            "Ask for access on its page, then set HF_TOKEN – or take --weights random, which downloads nothing.",
        )
    return WorkloadError(
        "E_MODEL_NOT_FOUND",
        "%s could not be loaded" % name,
        text.split("\n")[0],
        "Check the name and the network – or take --weights random, which downloads nothing.",
    )


def synchronize(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


class Decoder:
    """Prefill and decode steps of one model at one batch size, in one of the three modes."""

    def __init__(self, model: Any, args: argparse.Namespace, device: str, batch_size: int) -> None:
        import torch
        from transformers import StaticCache

        self.model, self.mode, self.device = model, args.mode, device
        self.batch_size = batch_size
        self.cache: Any = None
        self._graph: Any = None
        if self.mode == "eager":
            return
        length = args.input_len + args.max_tokens
        self.cache = StaticCache(config=model.config, max_cache_len=length)
        self._token = torch.zeros(batch_size, 1, dtype=torch.long, device=device)
        self._position = torch.full((1, 1), args.input_len, dtype=torch.long, device=device)
        self._columns = torch.arange(length, device=device)
        self._additive = args.attn == "eager"
        self._step = torch.compile(self._static_step, dynamic=False) if self.mode == "compile" else self._static_step

    def prefill(self, prompt: Any) -> Any:
        """[batch, input_len] token ids -> [batch, vocab] logits of the next token."""
        if self.mode == "eager":
            out = self.model(input_ids=prompt, use_cache=True, logits_to_keep=1)
            self.cache = out.past_key_values
        else:
            self.cache.reset()
            self._position.fill_(prompt.shape[1])
            out = self.model(input_ids=prompt, past_key_values=self.cache, use_cache=True, logits_to_keep=1)
        return out.logits[:, -1]

    def decode(self, token: Any) -> Any:
        """[batch, 1] token ids -> [batch, vocab] logits of the next token."""
        if self.mode == "eager":
            return self.model(input_ids=token, past_key_values=self.cache, use_cache=True).logits[:, -1]
        self._token.copy_(token)
        if self.mode == "compile":
            logits = self._step()
        else:
            if self._graph is None:
                self._capture()
            self._graph.replay()
            logits = self._logits
        self._position.add_(1)
        return logits

    def _static_step(self) -> Any:
        import torch

        mask = (self._columns <= self._position).view(1, 1, 1, -1).expand(self.batch_size, 1, 1, -1)
        if self._additive:
            dtype = self.model.dtype
            mask = torch.where(mask, torch.zeros((), dtype=dtype, device=mask.device), torch.finfo(dtype).min)
        out = self.model(
            input_ids=self._token,
            attention_mask=mask,
            position_ids=self._position.expand(self.batch_size, 1),
            past_key_values=self.cache,
            use_cache=True,
        )
        return out.logits[:, -1]

    def _capture(self) -> None:
        """Captures one decode step. Its warm-up steps move the cache on, which is put back after them."""
        import torch

        lengths = [layer.cumulative_length for layer in self.cache.layers]
        saved = [length.clone() for length in lengths]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._static_step()
                for length, value in zip(lengths, saved):
                    length.copy_(value)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = self._static_step()


def generate(decoder: Decoder, args: argparse.Namespace, iteration: int) -> Tuple[float, List[float], Any]:
    """One greedy generation. -> TTFT in s, seconds of each decode step with its sampling, tokens [batch, max_tokens]."""
    import torch

    warmup, batch, device = iteration < 0, decoder.batch_size, decoder.device
    generator = torch.Generator().manual_seed(args.seed + iteration + 1000)
    prompt = torch.randint(0, decoder.model.config.vocab_size, (batch, args.input_len), generator=generator).to(device)
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
    """Warm-up, then the repeats, numbered from `first`. -> one row of the result on stdout."""
    import torch

    with torch.inference_mode():
        decoder = Decoder(model, args, device, batch_size)
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
    say(
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
    """Every model at every batch size; prints one JSON line on stdout. -> exit code"""
    if args.max_tokens < 1 or args.input_len < 1 or args.repeats < 1 or args.warmups < 0:
        say("error: --max-tokens, --input-len and --repeats begin at 1, --warmups at 0")
        return 2
    recorder()
    try:
        device = device_of(args)
        rows: List[Dict[str, Any]] = []
        for name in models(args):
            model = load(args, name, device)
            for batch_size in args.batch_size:
                rows.append(measure(model, args, name, device, batch_size, len(rows) * args.repeats))
            del model
        print(json.dumps({"workload": workload, "results": rows}))
        return 0
    except WorkloadError as error:
        recorder().error(error.code, str(error))
        say("error: %s" % error)
        return 2 if error.code == "E_USAGE" else 1
    except RuntimeError as error:
        if "out of memory" in str(error):
            recorder().error("E_OUT_OF_MEMORY", str(error).split("\n")[0])
        raise
