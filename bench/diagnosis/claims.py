"""Measures whether the findings of stock twins come true: each twin and the same program with the advice of one finding applied, in turn, in one process.

    python bench/diagnosis/claims.py --claims claims.json --out OUT   (claims.json from score.mjs --claims)

Writes OUT/claims.jsonl: a line per claim, with pairs of times in ms per stage: before and after. A decode step is timed from the first decode call of the
model to the end, a prefill from its call to its result. Advice that needs torch.compile is compiled first, by all programs at once, into a cache.
"""

import argparse
import contextlib
import functools
import gc
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

HERE = Path(__file__).resolve().parent
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
sys.path[:0] = [str(HERE)]
import stock  # noqa: E402
import torch  # noqa: E402
from case import wait  # noqa: E402
from decoder import graphed  # noqa: E402
from stock_kinds import DECODES, PREFILLS, Stock, generate  # noqa: E402

LOOPS = ("looped", "checked", "ungraphed")
"""Kinds with a decode loop of their own over a static cache."""
QUEUES = ("scored", "embedded", "padded_encoder")
"""Kinds that read no result before the next prompt."""
Run = Callable[[], Dict[str, float]]
"""-> ms per stage, for each kind of stage."""


class Remembered(Stock):
    """A program that keeps its model."""

    made: Any = None

    def model(self, *args: Any, **more: Any) -> Any:
        self.made = super().model(*args, **more)
        return self.made


class Clock:
    """Replaces a model's forward by one that times prefills, and notes the start of the first decode step.

    If the program queues its prompts, reading no result before the next one, the whole run is timed instead.
    """

    def __init__(self, model: Any, device: str, queues: bool) -> None:
        self.inner = self.original = model.forward
        self.device, self.queues = device, queues
        self.restart()

        @functools.wraps(model.forward)
        def forward(*args: Any, **more: Any) -> Any:
            if torch.compiler.is_compiling():
                return self.inner(*args, **more)
            ids = more.get("input_ids", args[0] if args else more.get("inputs_embeds"))
            if ids.shape[1] == 1:
                if self.first_decode is None:
                    wait(device)
                    self.first_decode = time.perf_counter()
                return self.inner(*args, **more)
            if queues:
                self.prefills += 1
                return self.inner(*args, **more)
            wait(device)
            start = time.perf_counter()
            result = self.inner(*args, **more)
            wait(device)
            self.end_of_prefill = time.perf_counter()
            self.prefill_s += self.end_of_prefill - start
            self.prefills += 1
            return result

        model.forward = forward

    def restart(self) -> None:
        self.prefill_s, self.prefills = 0.0, 0
        self.first_decode: Optional[float] = None
        self.end_of_prefill = 0.0

    def run(self, work: Callable[[], Any]) -> Dict[str, float]:
        self.restart()
        wait(self.device)
        start = time.perf_counter()
        work()
        wait(self.device)
        end = time.perf_counter()
        times = {"run": (end - start) * 1e3}
        if self.queues:
            times["prefill"] = times["run"] / self.prefills
        elif self.prefills:
            times["prefill"] = self.prefill_s * 1e3 / self.prefills
        # Steps that are compiled or replayed do not show where the first one starts.
        times["decode"] = (end - (self.first_decode or self.end_of_prefill)) * 1e3 / DECODES
        return times


class Program:
    """A repaired twin, and its advised variants."""

    def __init__(self, entry: Dict[str, Any], device: str) -> None:
        chosen = dict(entry["chosen"])
        if device == "cpu":
            chosen.update(hidden=64, vocab=128, batch=min(chosen["batch"], 4), length=16, layers=2)
        self.device, self.kind = device, stock.by_id()[entry["kinds"][0]]
        self.stock = Remembered(variant="fixed", device=device, **chosen)
        self.work = self.kind.prepare(self.stock)
        self.made = self.stock.made
        self.clock = Clock(self.made, device, self.kind.id in QUEUES)

    def twin(self) -> Dict[str, float]:
        return self.clock.run(self.work)

    def prompts(self) -> Callable[[], Any]:
        """The prompts of the twin, without its decode steps."""
        if self.kind.stage == "prefill":
            return self.work
        ids, model = self.stock.ids(), self.made
        if self.kind.id in LOOPS:
            from transformers import StaticCache

            cache = StaticCache(config=model.config, max_cache_len=self.stock.length + DECODES + 8)

            def work() -> None:
                for _ in range(PREFILLS):
                    cache.reset()
                    model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)

            return work
        more = dict(cache_implementation="static") if self.kind.id == "uncompiled" else {}
        return lambda: [generate(model, ids, 1, **more) for _ in range(PREFILLS)]

    # Advice, by rule and kind of stage.

    def with_forward(self, inner: Callable[..., Any], work: Callable[[], Any]) -> Run:
        """`work` with another forward."""

        def run() -> Dict[str, float]:
            self.clock.inner = inner
            try:
                return self.clock.run(work)
            finally:
                self.clock.inner = self.clock.original

        return run

    def compiled(self, work: Callable[[], Any]) -> Run:
        """model.forward = torch.compile(model.forward)"""
        return self.with_forward(torch.compile(self.clock.original, backend="inductor" if self.device != "cpu" else "eager"), work)

    def contiguous(self, work: Callable[[], Any]) -> Run:
        """Hidden states are made contiguous before the LM head."""

        def run() -> Dict[str, float]:
            handle = self.made.get_output_embeddings().register_forward_pre_hook(lambda _, args: (args[0].contiguous(),))
            try:
                return self.clock.run(work)
            finally:
                handle.remove()

        return run

    def graphed_prefill(self, work: Callable[[], Any]) -> Run:
        """A prefill is replayed from a CUDA graph, one per shape of the prompt."""
        graphs: Dict[Any, Any] = {}
        original = self.clock.original

        def forward(*args: Any, **more: Any) -> Any:
            ids = more.get("input_ids", args[0] if args else more.get("inputs_embeds"))
            if ids.shape[1] == 1:
                return original(*args, **more)
            if tuple(ids.shape) not in graphs:
                # With the mask that the program gives: without it, attention would compute something else.
                inputs = {name: value.clone() for name, value in more.items() if isinstance(value, torch.Tensor)}
                if args:
                    inputs["input_ids"] = ids.clone()
                kept = {name: value for name, value in more.items() if name in ("use_cache", "logits_to_keep", "return_dict", "past_key_values") and type(value).__name__ != "DynamicCache"}

                def prompt() -> Any:
                    for layer in getattr(kept.get("past_key_values"), "layers", []):
                        layer.cumulative_length.zero_()
                        layer.cumulative_length_int = 0
                    return original(**{**kept, **inputs})

                graphs[tuple(ids.shape)] = inputs, graphed(prompt, self.device)
            inputs, replay = graphs[tuple(ids.shape)]
            for name, value in inputs.items():
                value.copy_(more.get(name, ids))
            return replay()

        return self.with_forward(forward, work)

    def graphed_decode(self, compile_first: bool = False, change: Callable[[], Any] = contextlib.nullcontext, graph: bool = True) -> Run:
        """A loop over a static cache that replays each step, with its sampling, from a CUDA graph."""
        from transformers import StaticCache

        size, model = self.stock, self.made
        forward = self.clock.original
        if compile_first:
            forward = torch.compile(forward, backend="inductor" if self.device != "cpu" else "eager")
        samples = self.kind.id == "sampled"
        # Compiled programs have their models outside of inference mode, the others inside.
        outside = not model.get_output_embeddings().weight.is_inference()

        @contextlib.contextmanager
        def mode() -> Iterator[None]:
            with torch.inference_mode(not outside), torch.no_grad():
                yield

        with mode():
            cache = StaticCache(config=model.config, max_cache_len=size.length + DECODES + 8)
            token = torch.zeros(size.batch, 1, dtype=torch.long, device=self.device)
            position = torch.full((1,), size.length, dtype=torch.long, device=self.device)
            ids = size.ids()

        def step() -> None:
            logits = forward(input_ids=token, past_key_values=cache, position_ids=position[None].expand(size.batch, 1), use_cache=True).logits[:, -1].float()
            if samples:
                largest, order = logits.topk(50)
                token.copy_(order.gather(-1, torch.multinomial(largest.softmax(-1), 1)))
            else:
                token.copy_(logits.argmax(-1, keepdim=True))

        def start() -> None:
            cache.reset()
            token.copy_(self.clock.original(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1:].argmax(-1))
            position.fill_(size.length)

        with mode(), change():
            start()
            step()
            replay = graphed(step, self.device) if graph else step

        def run() -> Dict[str, float]:
            with mode():
                start()
                wait(self.device)
                begin = time.perf_counter()
                for _ in range(DECODES):
                    replay()
                    position.add_(1)
                wait(self.device)
                return {"decode": (time.perf_counter() - begin) * 1e3 / DECODES}

        return run

    def generate_over_graph(self) -> Run:
        """generate() over a static cache, its decode steps replayed from a CUDA graph, as mode="reduce-overhead" does."""
        from transformers import StaticCache

        size, model, original = self.stock, self.made, self.clock.original
        cache = StaticCache(config=model.config, max_cache_len=size.length + DECODES + 8)
        ids = size.ids()
        state: Dict[str, Any] = {}

        def forward(*args: Any, **more: Any) -> Any:
            if more["input_ids"].shape[1] != 1:
                return original(*args, **more)
            tensors = {name: value for name, value in more.items() if isinstance(value, torch.Tensor)}
            if not state:
                state["inputs"] = {name: value.clone() for name, value in tensors.items()}
                held = {**more, **state["inputs"]}
                state["replay"] = graphed(lambda: original(*args, **held), self.device)
            for name, value in tensors.items():
                state["inputs"][name].copy_(value)
            return state["replay"]()

        def work() -> None:
            cache.reset()
            generate(model, ids, DECODES + 1, past_key_values=cache, disable_compile=True)

        return self.with_forward(forward, work)

    def static_cache(self) -> Run:
        """generate() over a static cache, which it compiles."""
        ids = self.stock.ids()
        return self.with_forward(self.clock.original, lambda: generate(self.made, ids, DECODES + 1, cache_implementation="static"))

    def queued(self) -> Run:
        """The host prepares prompts while the device computes the ones before: no result is read between them."""
        ids, length = self.stock.ids(), self.stock.length
        batches = [ids[:1], ids[1:, -(length // 8) :]] if self.kind.id == "padded" else [ids]

        def run() -> Dict[str, float]:
            forward = self.clock.original
            wait(self.device)
            start = time.perf_counter()
            with torch.no_grad():
                for _ in range(PREFILLS):
                    for batch in batches:
                        forward(input_ids=batch.contiguous(), use_cache=True, logits_to_keep=1).logits[:, -1].float().argmax(-1)
            wait(self.device)
            return {"run": (time.perf_counter() - start) * 1e3}

        return run

    def unread(self) -> Run:
        """The host reads nothing within a step: an encoder without a mask, or generate() without asking whether all sequences ended or all tokens count."""
        if self.kind.stage == "prefill":
            original = self.clock.original
            return self.with_forward(lambda *args, **more: original(*args, **{**more, "attention_mask": None}), self.work)
        from transformers import masking_utils
        from transformers.generation import utils

        end, asks, reads = self.stock.length + DECODES + 1, utils.StopCheck.__call__, masking_utils.fast_all

        def run() -> Dict[str, float]:
            utils.StopCheck.__call__ = lambda check, unfinished, tokens, length: length >= end  # type: ignore[method-assign]
            masking_utils.fast_all = lambda mask: True
            try:
                return self.twin()
            finally:
                utils.StopCheck.__call__ = asks  # type: ignore[method-assign]
                masking_utils.fast_all = reads

        return run

    def copied_before(self) -> Run:
        """The window of a dynamic cache is on the device before the prompt."""
        from transformers.cache_utils import DynamicSlidingWindowLayer

        makes = DynamicSlidingWindowLayer.__init__
        window = torch.tensor(self.made.config.sliding_window, device=self.device)

        def make(layer: Any, *args: Any, **more: Any) -> None:
            makes(layer, *args, **more)
            layer._sliding_window_tensor = window

        def run() -> Dict[str, float]:
            DynamicSlidingWindowLayer.__init__ = make  # type: ignore[method-assign]
            try:
                return self.twin()
            finally:
                DynamicSlidingWindowLayer.__init__ = makes  # type: ignore[method-assign]

        return run

    def grouped_experts(self) -> Run:
        """generate() keeps grouped GEMMs in its decode steps."""

        def run() -> Dict[str, float]:
            self.made._optimize_model_for_decode = contextlib.nullcontext
            try:
                return self.twin()
            finally:
                del self.made._optimize_model_for_decode

        return run

    def grouped_heads(self) -> Run:
        """Attention of a static cache with enable_gqa=True, in a CUDA graph as the twin."""

        @contextlib.contextmanager
        def change() -> Iterator[None]:
            from transformers.integrations import sdpa_attention

            before = sdpa_attention.use_gqa_in_sdpa
            sdpa_attention.use_gqa_in_sdpa = lambda *_: True
            try:
                yield
            finally:
                sdpa_attention.use_gqa_in_sdpa = before

        return self.graphed_decode(change=change)

    def variants(self, rule: str, stage: Optional[str]) -> Dict[str, Tuple[Run, Callable[[], Run]]]:
        """The program before, and what the advice of a finding may be carried out as."""
        work = self.prompts() if stage == "prefill" else self.work
        before = functools.partial(self.clock.run, work)
        ways: Dict[str, Callable[[], Run]] = {
            "gemm_per_sequence": lambda: self.contiguous(work),
            "kv_cache_concat": self.static_cache,
            "gpu_idle_between_requests": self.queued,
            "synchronization_every_step": self.unread,
            "casts_and_layout_copies": self.grouped_heads,
            "host_copies": self.copied_before,
            "copied_expert_weights": self.grouped_experts,
            "elementwise_norm_overhead": lambda: self.compiled(work),
            "prompt_logits": lambda: self.with_forward(functools.partial(self.clock.original, logits_to_keep=1), work),
        }
        if self.kind.id == "looped" and stage == "decode" and rule == "elementwise_norm_overhead":
            return {"graph": (before, lambda: self.graphed_decode(compile_first=True))}
        # A graph also takes the work of the host out of the path, which is the advice of host_bound.
        if rule in ("launch_bound", "host_bound") and stage == "prefill":
            return {"graph": (before, lambda: self.graphed_prefill(work))}
        if rule == "launch_bound":
            graph = {"graph": (before, lambda: self.graphed_decode(compile_first=self.kind.id in ("checked", "uncompiled", "ungraphed")))}
            return graph if self.kind.id in (*LOOPS, "uncompiled") else {**graph, "generate": (before, self.generate_over_graph)}
        return {"advice": (before, ways[rule])} if rule in ways else {}


def needs_compilation(program: str, rule: str, stage: str) -> bool:
    return rule in ("elementwise_norm_overhead", "kv_cache_concat") or (rule == "launch_bound" and stage == "decode" and program.endswith(("checked", "uncompiled")))


def median(values: List[float]) -> float:
    return sorted(values)[len(values) // 2]


def measure(claims: List[Dict[str, Any]], device: str, pairs: int, report: Callable[..., None]) -> None:
    """Measures all claims of one program."""
    name = claims[0]["program"]
    torch.manual_seed(0)
    # As capture.py: a model that is created in inference mode has no gradients, which PyTorch's linear depends on.
    with torch.inference_mode():
        program = Program(stock.entries()[name], device)
        for _ in range(2):
            program.twin()
        for claim in claims:
            rule, stage = claim["rule"], claim["stage"] or "run"
            for variant, (twin, make) in program.variants(rule, claim["stage"]).items():
                started = time.perf_counter()
                try:
                    torch._dynamo.reset()
                    advised = make()
                    for _ in range(3):
                        advised()
                    twin()
                    rows: List[Dict[str, float]] = []
                    for pair in range(pairs):
                        row = {}
                        order = [("before", twin), ("after", advised)]
                        for side, run in order if pair % 2 == 0 else order[::-1]:
                            row[side] = round(run()[stage], 6)
                        rows.append(row)
                    before, after = (median([row[side] for row in rows]) for side in ("before", "after"))
                    report(program=name, rule=rule, stage=claim["stage"], variant=variant, pairs=rows, prefills=program.clock.prefills)
                    print("%s %s %s %s: %.3f -> %.3f ms (%.1f s)" % (name, rule, stage, variant, before, after, time.perf_counter() - started), flush=True)
                except Exception as error:
                    traceback.print_exc()
                    report(program=name, rule=rule, stage=claim["stage"], variant=variant, failed=str(error)[:500])
                    print("%s %s %s %s failed: %s" % (name, rule, stage, variant, str(error)[:200]), flush=True)
                gc.collect()


def compile_only(claims: List[Dict[str, Any]], device: str) -> None:
    """Fills inductor's cache."""
    torch.manual_seed(0)
    with torch.inference_mode():
        program = Program(stock.entries()[claims[0]["program"]], device)
        program.twin()
        for claim in claims:
            for _, make in program.variants(claim["rule"], claim["stage"]).values():
                torch._dynamo.reset()
                advised = make()
                for _ in range(3):
                    advised()


def in_children(work: List[Callable[[], None]], limit_s: float, at_once: int, report: Callable[..., None]) -> None:
    """Runs each in a child process that has imported torch already; its device errors affect nothing else."""
    waiting, running = list(work), {}  # type: Any
    while waiting or running:
        while waiting and len(running) < at_once:
            task = waiting.pop(0)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    task()
                    code = 0
                except Exception:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)
            running[child] = time.monotonic() + limit_s
        for child, until in list(running.items()):
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                del running[child]
            elif time.monotonic() > until:
                os.kill(child, 9)
                os.waitpid(child, 0)
                del running[child]
                print("a child took longer than %d s" % limit_s, flush=True)
        time.sleep(0.02)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--claims", type=Path, required=True)
    flags.add_argument("--out", type=Path, required=True)
    flags.add_argument("--only", default="", help="programs, with commas between")
    flags.add_argument("--pairs", type=int, default=10)
    flags.add_argument("--limit-s", type=float, default=400)
    flags.add_argument("--device", default="cuda")
    args = flags.parse_args()
    until = time.monotonic() + args.limit_s
    args.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(args.out.resolve() / "inductor"))

    def report(**line: Any) -> None:
        with open(args.out / "claims.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")

    chosen = [claim for claim in json.loads(args.claims.read_text())["claims"] if not args.only or claim["program"] in args.only.split(",")]
    programs: Dict[str, List[Dict[str, Any]]] = {}
    for claim in chosen:
        programs.setdefault(claim["program"], []).append(claim)
    stock.import_libraries()
    started = time.monotonic()
    compiling = [[claim for claim in claims if needs_compilation(claim["program"], claim["rule"], claim["stage"])] for claims in programs.values()]
    # Programs with most layers first: they compile longest.
    compiling = sorted((claims for claims in compiling if claims), key=lambda claims: -stock.entries()[claims[0]["program"]]["chosen"]["layers"])
    if args.device != "cpu":
        in_children([functools.partial(compile_only, claims, args.device) for claims in compiling], 150, 10, report)
    print("compiled in %.0f s" % (time.monotonic() - started), flush=True)

    def guarded(claims: List[Dict[str, Any]]) -> None:
        if time.monotonic() > until:
            for claim in claims:
                report(**{name: claim[name] for name in ("program", "rule", "stage")}, failed="no time was left")
            return
        measure(claims, args.device, args.pairs, report)

    in_children([functools.partial(guarded, claims) for claims in programs.values()], 90 if args.device != "cpu" else 400, 1, report)


if __name__ == "__main__":
    main()
