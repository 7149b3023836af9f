"""Programs generated from a seed: kinds of fault over models, sizes and modes, each with its repaired twin.

A half has one seed. Rules may be tuned on `development`. `validation` is captured once, and the docs report its score; afterwards its
programs may be inspected: it becomes `earlier`, and the next score needs a new seed. Running this file writes generated.json, which
lists the programs of all halves. Kinds with a link come from issues of other projects.
"""

import gc
import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from case import Case, Planted
from decoder import Decoder, Shape, gated, graphed, random_tokens, sdpa, sized

SEEDS = {"development": 1, "earlier": 10, "validation": 11, "combined": 12}
PREFIXES = {"development": "d", "earlier": "c", "validation": "e", "combined": "f"}
LIMIT_S = 60


@dataclass
class Program:
    """The choices of the seed."""

    shape: Shape
    batch: int
    context: int
    graph: bool
    dtype: torch.dtype
    causal: bool
    experts: int


@dataclass
class Parts:
    """The parts of a program that a kind of fault may change."""

    program: Program
    model: Decoder
    device: str
    work: Callable[[int], Any]
    """One stage."""
    between: Optional[Callable[[int], Any]] = None


@dataclass
class Kind(Planted):
    plant: Callable[[Parts], None]
    """Called before the work is captured in a graph, if it is."""
    after: bool = False
    """Whether `plant` is called after the capture: its fault is outside the kernels of the model."""
    host: bool = False
    """Whether it costs time of the host, so that no kernel shows the gain."""
    eager: bool = False
    """Whether its step is not a CUDA graph; that of its twin is."""
    twin_eager: bool = False
    """Whether the step of its twin is not a CUDA graph, either: the repair does not change the launches."""
    repair: Callable[[Parts], None] = lambda parts: None
    """Called in the twin, after the work was captured."""
    repair_before: Callable[[Parts], None] = lambda parts: None
    """Called in the twin, before the capture."""
    shape: Dict[str, Any] = None  # type: ignore[assignment]
    true_of_twin: Optional[Dict[str, str]] = None
    issue: Optional[str] = None


class Experts(Decoder):
    """A mixture of experts: each token goes to two fixed experts."""

    loop = False

    def prepare(self, count: int, tokens: int) -> None:
        shape = self.shape

        def weight(rows: int, columns: int) -> torch.Tensor:
            return torch.empty(rows, columns, device=self.device, dtype=self.dtype).normal_(0, columns**-0.5)

        self.routers = [weight(count, shape.hidden) for _ in self.layers]
        self.experts = [[(weight(2 * shape.inner, shape.hidden), weight(shape.hidden, shape.inner)) for _ in range(count)] for _ in self.layers]
        for layer in self.layers:
            layer.gate_up = layer.down = torch.empty(0, device=self.device, dtype=self.dtype)
        token = torch.arange(tokens, device=self.device)
        self.assigned = torch.stack([token % count, (3 * token + 1) % count], 1)
        hits = [(self.assigned == expert).any(-1).nonzero().flatten() for expert in range(count)]
        self.ready = [rows if len(rows) > 0 else None for rows in hits]

    def mlp(self, index: int, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, x.shape[-1])
        weights, _ = torch.topk(F.softmax(F.linear(flat, self.routers[index]), -1), 2)
        out = torch.zeros_like(flat)
        for expert, (gate_up, down) in enumerate(self.experts[index]):
            if self.loop:
                hit = (self.assigned == expert).any(-1)
                if not hit.any():
                    continue
                rows = hit.nonzero().flatten()
            else:
                rows = self.ready[expert]
                if rows is None:
                    continue
            y = F.linear(gated(F.linear(flat[rows], gate_up)), down)
            out.index_add_(0, rows, y * weights[rows, :1])
        return out.view_as(x)


def linear_of(change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[[Parts], None]:
    def plant(parts: Parts) -> None:
        parts.model.linear = change

    return plant


def cat_cache(parts: Parts) -> None:
    parts.model.cache = "cat"
    parts.model.fill_cache()


def cast_weights(parts: Parts) -> None:
    model = parts.model
    for layer in model.layers:
        layer.qkv, layer.out, layer.gate_up, layer.down = (weight.float() for weight in (layer.qkv, layer.out, layer.gate_up, layer.down))
    model.linear = lambda x, weight: F.linear(x, weight.to(x.dtype))


def dequantized_weights(parts: Parts) -> None:
    model = parts.model
    scales: Dict[int, torch.Tensor] = {}
    quantized_weights: List[torch.Tensor] = []

    def quantized(weight: torch.Tensor) -> torch.Tensor:
        scale = weight.abs().amax(1, keepdim=True).float() / 127
        small = (weight / scale).round().to(torch.int8)
        scales[id(small)] = scale
        quantized_weights.append(small)  # scales are found by id
        return small

    for layer in model.layers:
        layer.qkv, layer.out, layer.gate_up, layer.down = (quantized(weight) for weight in (layer.qkv, layer.out, layer.gate_up, layer.down))

    def linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if weight.dtype != torch.int8:
            return F.linear(x, weight)
        return F.linear(x, (weight.float() * scales[id(weight)]).to(x.dtype))

    model.linear = linear


def adapters(parts: Parts) -> None:
    model, rank = parts.model, 16
    made: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}
    for layer in model.layers:
        for weight in (layer.qkv, layer.out, layer.gate_up, layer.down):
            down = torch.randn(rank, weight.shape[1], device=parts.device, dtype=torch.float32)
            made[id(weight)] = down, torch.zeros(weight.shape[0], rank, device=parts.device, dtype=torch.float32)

    def linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = F.linear(x, weight)
        if id(weight) not in made:
            return y
        a, b = made[id(weight)]
        return y + (F.linear(F.linear(x.float(), a), b) * 2.0).to(y.dtype)

    model.linear = linear


def chained(parts: Parts) -> None:
    def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight

    def activation(both: torch.Tensor) -> torch.Tensor:
        gate, up = both.chunk(2, -1)
        gate = gate.float()
        return (gate * torch.sigmoid(gate)).to(both.dtype) * up

    parts.model.norm, parts.model.activation = norm, activation


def written_attention(parts: Parts) -> None:
    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        repeats = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if causal:
            mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(mask, float("-inf"))
        return F.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v

    parts.model.attention = attention


def repeated_heads(parts: Parts) -> None:
    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        batch, heads, tokens, width = k.shape
        repeats = q.shape[1] // heads

        def repeat(x: torch.Tensor) -> torch.Tensor:
            return x[:, :, None].expand(batch, heads, repeats, tokens, width).reshape(batch, heads * repeats, tokens, width)

        return sdpa(q, repeat(k), repeat(v), causal)

    parts.model.attention = attention


def mask_each_step(parts: Parts) -> None:
    """A mask over all positions is created in every layer, and only its last row is used."""
    positions = 16384 if parts.device != "cpu" else 32
    inner = parts.model.attention

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        mask = torch.full((positions, positions), float("-inf"), device=q.device, dtype=torch.float32).triu(1)
        return inner(q + mask[-1, 0].to(q.dtype) * 0, k, v, causal)

    parts.model.attention = attention


def synchronized(parts: Parts) -> None:
    parts.model.after_layer = lambda x: x[0, 0, 0].item()


def emptied(parts: Parts) -> None:
    def linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if parts.device != "cpu":
            torch.cuda.empty_cache()
        return F.linear(x, weight)

    parts.model.linear = linear


def float32_all(parts: Parts) -> None:
    model = parts.model
    for layer in model.layers:
        for name, weight in vars(layer).items():
            setattr(layer, name, weight.float())
    model.embedding, model.head, model.final_norm = model.embedding.float(), model.head.float(), model.final_norm.float()
    model.dtype = torch.float32
    if model.kv:
        model.fill_cache()


def logits_of_all(parts: Parts) -> None:
    model = parts.model

    def logits(x: torch.Tensor) -> torch.Tensor:
        return model.linear(model.norm(x, model.final_norm), model.head).float()[:, -1]

    model.logits = logits  # type: ignore[method-assign]


def uncached(parts: Parts) -> None:
    model, program = parts.model, parts.program
    tokens = random_tokens(program.batch, program.context + 64, program.shape.vocab, parts.device)
    parts.work = lambda index: model.prefill(tokens[:, : program.context + index % 64 + 1])


def host_logits(parts: Parts) -> None:
    step, model = parts.work, parts.model

    def work(index: int) -> None:
        logits = step(index).cpu()
        model.next.copy_(torch.multinomial(F.softmax(logits.float(), -1), 1))

    parts.work = work


def stop_check(parts: Parts) -> None:
    """After every step the program checks whether all sequences have ended, before the host prepares the next step."""
    step, model = parts.work, parts.model
    ended = torch.zeros(parts.program.batch, dtype=torch.bool, device=parts.device)

    def work(index: int) -> None:
        step(index)
        ended.logical_or_(model.next.flatten() == -1)
        if bool(ended.all()):
            raise RuntimeError("a token of -1")

    parts.work = work


def scheduler(parts: Parts) -> None:
    """Block tables of all sequences are built again in Python between two steps."""
    sequences, length = (3000, 16) if parts.device != "cpu" else (10, 4)

    def between(index: int) -> None:
        tables: Dict[int, List[int]] = {}
        for sequence in range(sequences):
            tables[sequence] = [(sequence * 7919 + block * 31 + index) % 65536 for block in range(length)]

    parts.between = between


def collected(parts: Parts) -> None:
    """A full garbage collection between two steps, over a heap of long-lived objects."""
    heap = [[index] for index in range(300_000 if parts.device != "cpu" else 100)]

    def between(index: int) -> None:
        heap[index % len(heap)][0] = index
        gc.collect()

    parts.between = between


def pageable(parts: Parts) -> None:
    model, program = parts.model, parts.program
    source = torch.randn(program.batch, program.context, program.shape.hidden).to(model.dtype)
    parts.work = lambda index: model.prefill_hidden(source.to(parts.device))


def on_device(parts: Parts) -> None:
    model, program = parts.model, parts.program
    source = torch.randn(program.batch, program.context, program.shape.hidden).to(model.dtype).to(parts.device)
    parts.work = lambda index: model.prefill_hidden(source)


def sorted_logits(parts: Parts) -> None:
    """Top-p sampling over the whole vocabulary."""
    step, model = parts.work, parts.model

    def work(index: int) -> None:
        logits = step(index).float()
        ordered, order = logits.sort(-1, descending=True)
        shares = ordered.softmax(-1)
        ordered = ordered.masked_fill(shares.cumsum(-1) - shares > 0.9, float("-inf"))
        model.next.copy_(torch.multinomial(torch.empty_like(logits).scatter_(-1, order, ordered).softmax(-1), 1))

    parts.work = work


def candidates(parts: Parts) -> None:
    """Top-p sampling over the 50 largest logits."""
    step, model = parts.work, parts.model

    def work(index: int) -> None:
        largest, order = step(index).topk(50)
        shares = largest.float().softmax(-1)
        shares = shares.masked_fill(shares.cumsum(-1) - shares > 0.9, 0.0)
        model.next.copy_(order.gather(-1, torch.multinomial(shares, 1)))

    parts.work = work


def asserted(parts: Parts) -> None:
    def finite(x: torch.Tensor) -> None:
        assert torch.isfinite(x).all()

    parts.model.after_layer = finite


def rotary_each_layer(parts: Parts) -> None:
    """Sines and cosines of all positions are computed in every layer, and only those of the last position are used."""
    positions = 131072 if parts.device != "cpu" else 32
    inner = parts.model.attention

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        width = q.shape[-1]
        frequencies = 1.0 / 10000.0 ** (torch.arange(0, width, 2, device=q.device) / width)
        angles = torch.outer(torch.arange(positions, device=q.device), frequencies)
        angles = torch.cat((angles, angles), -1)
        cosine, sine = angles.cos()[-1].to(q.dtype), angles.sin()[-1].to(q.dtype)
        return inner(q * cosine + q.flip(-1) * sine, k, v, causal)

    parts.model.attention = attention


def rotary(parts: Parts) -> None:
    """The repaired twin: sines and cosines of the last position come from a table."""
    inner = parts.model.attention
    width = parts.program.shape.head_dim
    cosine = torch.ones(width, device=parts.device, dtype=parts.model.dtype)
    sine = torch.zeros_like(cosine)
    parts.model.attention = lambda q, k, v, causal: inner(q * cosine + q.flip(-1) * sine, k, v, causal)


def tables_copied(parts: Parts) -> None:
    """The inputs of each sequence are copied in separate tensors from pageable memory."""
    step = parts.work
    count = 48 if parts.device != "cpu" else 2
    tables = [torch.randint(65536, (parts.program.batch, 64)) for _ in range(count)]

    def work(index: int) -> None:
        for table in tables:
            table.to(parts.device)
        step(index)

    parts.work = work


def looped(parts: Parts) -> None:
    parts.model.loop = True  # type: ignore[attr-defined]


github = "https://github.com/"
KINDS = [
    Kind("kv_cat", "decode", "keys and values are concatenated in every step; repaired: written into a preallocated cache", ["kv_cache_concat"], cat_cache),
    Kind("weight_casts", "decode", "weights are stored in float32 and cast at every use; repaired: stored as they are used", ["casts_and_layout_copies"], cast_weights),
    Kind("scheduler", "decode", "block tables are built in Python between two steps; repaired: they are not", ["host_bound"], scheduler, after=True, host=True),
    Kind("host_logits", "decode", "logits are copied to the host, which samples; repaired: the GPU samples", ["logits_to_host"], host_logits, after=True, host=True),
    Kind("launches", "decode", "every operation is launched by itself; repaired: one CUDA graph", ["launch_bound"], lambda parts: None, eager=True, shape={"layers": 12, "hidden": 1024, "inner": 2816}, host=True),
    Kind("sync_layers", "decode", "a value of every layer is read by the host; repaired: none, and a CUDA graph", ["synchronization_every_step", "launch_bound"], synchronized, eager=True, shape={"layers": 8}, host=True),
    Kind("float32", "prefill", "everything is computed in float32; repaired: in bfloat16", ["half_precision"], float32_all),
    Kind("written_attention", "prefill", "attention is written out; repaired: scaled_dot_product_attention", ["eager_attention"], written_attention),
    Kind("chained", "prefill", "norms and activation are chains of elementwise kernels; repaired: one kernel each", ["elementwise_norm_overhead"], chained),
    Kind("emptied", "prefill", "torch.cuda.empty_cache() before every GEMM; repaired: without", ["allocator_churn"], emptied, host=True),
    Kind("pageable", "prefill", "embeddings come from pageable memory; repaired: they are on the GPU", ["host_copies"], pageable, after=True, repair=on_device, shape={"layers": 1}, host=True),
    Kind("misaligned", "prefill", "odd sizes, so that no matrix is aligned; repaired: padded by one", ["gemm_shape"], lambda parts: None),
    Kind("expert_loop", "decode", "the host reads which tokens each expert gets; repaired: they are known before", ["synchronization_every_step"], looped, eager=True, issue=github + "jingyaogong/minimind/issues/835", host=True),
    Kind("adapters", "decode", "LoRA adapters are applied next to every GEMM; repaired: merged", ["unmerged_adapters", "casts_and_layout_copies", "elementwise_norm_overhead"], adapters, issue=github + "huggingface/peft/issues/217"),
    Kind("all_logits", "prefill", "logits of every prompt token in float32; repaired: of the last one", ["prompt_logits"], logits_of_all, shape={"vocab": 128256, "layers": 2}, issue=github + "huggingface/transformers/issues/30860"),
    Kind("repeated_heads", "decode", "keys and values are repeated for every query head; repaired: grouped attention", ["casts_and_layout_copies", "kv_cache_concat"], repeated_heads, shape={"kv_heads": 4}, issue=github + "huggingface/transformers/pull/36218"),
    Kind("collected", "decode", "a full garbage collection between two steps; repaired: none", ["host_bound"], collected, after=True, issue=github + "sgl-project/sglang/pull/28067", host=True),
    Kind("stop_check", "decode", "the host asks after every step whether all sequences ended; repaired: it does not", ["synchronization_every_step"], stop_check, after=True, shape={"layers": 2, "hidden": 1024, "inner": 2816}, issue=github + "huggingface/transformers/issues/43089", host=True),
    Kind("mask", "decode", "a mask over all positions is created in every layer; repaired: none", ["rebuilt_tensors", "elementwise_norm_overhead"], mask_each_step, issue=github + "huggingface/transformers/issues/29206"),
    Kind("dequantized", "decode", "int8 weights are converted at every use; repaired: bfloat16 weights", ["casts_and_layout_copies"], dequantized_weights, issue=github + "lm-sys/FastChat/issues/1698"),
    Kind("sorted_logits", "decode", "the whole vocabulary is sorted for top-p sampling; repaired: the 50 largest logits are", ["vocabulary_sort"], sorted_logits, after=True, repair=candidates, shape={"vocab": 128256, "layers": 3}, issue=github + "vllm-project/vllm/pull/48913"),
    Kind("asserted", "decode", "an assertion over every layer's output is read by the host; repaired: none, and a CUDA graph", ["synchronization_every_step", "launch_bound"], asserted, eager=True, issue=github + "NVIDIA/TensorRT-LLM/pull/12445", host=True),
    Kind("rotary", "decode", "sines and cosines of all positions are computed in every layer; repaired: they come from a table", ["rebuilt_tensors", "elementwise_norm_overhead"], rotary_each_layer, repair_before=rotary, issue=github + "openai/gpt-oss/pull/43"),
    Kind("tables_copied", "decode", "48 small tensors are copied from pageable memory in every step; repaired: they are on the GPU", ["host_copies", "synchronization_every_step", "host_bound"], tables_copied, after=True, shape={"layers": 2, "hidden": 1024, "inner": 2816}, issue=github + "NVIDIA/TensorRT-LLM/pull/16313", host=True),
    Kind("uncached", "decode", "every step computes all tokens again; repaired: with a cache of keys and values", ["no_kv_cache"], uncached, eager=True, twin_eager=True, true_of_twin={"launch_bound": "every operation is launched by itself"}, issue=github + "huggingface/transformers/issues/1390"),
]
BY_ID = {kind.id: kind for kind in KINDS}
# Faults outside the model, which may be added to one inside it.
OUTSIDE = ["scheduler", "collected"]
# Two faults of the same stage that change different parts of a program.
PAIRS = [["chained", "written_attention"], ["repeated_heads", "sorted_logits"], ["adapters", "tables_copied"]]


def programs(half: str) -> List[Dict[str, Any]]:
    """Two programs of each kind in development, else one; every fifth has a second fault. Or one of each of PAIRS. -> entries of generated.json"""
    made = []
    each = [[kind.id] for kind in KINDS for _ in range(2 if half == "development" else 1)]
    for index, kinds in enumerate(PAIRS if half == "combined" else each):
        dice = random.Random(SEEDS[half] * 1000 + index)
        kind, kinds = BY_ID[kinds[0]], list(kinds)
        if half != "combined" and index % 5 == 0 and kind.stage == "decode" and kind.id not in OUTSIDE:
            kinds.append(dice.choice(OUTSIDE))
        decode = kind.stage == "decode"
        chosen = {
            "hidden": dice.choice([2048, 3072, 4096]),
            "ratio": dice.choice([2.75, 3.5]),
            "layers": dice.choice([3, 4, 6]),
            "kv_heads": dice.choice([4, 8, 0]),
            "vocab": dice.choice([32000, 50304, 128256]),
            "batch": dice.choice([32, 64, 128]) if decode else dice.choice([2, 4, 8]),
            "context": dice.choice([512, 1024, 2048]),
            "causal": decode or dice.random() < 0.7,
            "dtype": dice.choice(["bfloat16", "float16"]),
        }
        if kind.id == "uncached":
            chosen.update(batch=4, context=512)
        if kind.id == "launches":
            chosen["batch"] = dice.choice([1, 4, 8])
        made.append({"id": "%s_%02d_%s" % (PREFIXES[half], index, "_".join(kinds)), "half": half, "kinds": kinds, "chosen": chosen})
    return made


def _program(entry: Dict[str, Any], variant: str, device: str) -> Program:
    chosen, kind = entry["chosen"], BY_ID[entry["kinds"][0]]
    hidden = chosen["hidden"]
    heads = hidden // 128
    shape = Shape(
        hidden=hidden,
        inner=int(hidden * chosen["ratio"]) // 256 * 256,
        layers=chosen["layers"],
        heads=heads,
        kv_heads=next(count for count in (chosen["kv_heads"] or heads, 4, 2, 1) if heads % count == 0),
        vocab=chosen["vocab"],
    )
    more: Dict[str, Any] = {}
    for planted in entry["kinds"]:
        more.update(BY_ID[planted].shape or {})
    if "hidden" in more:
        more["heads"] = more["hidden"] // 128
        more["kv_heads"] = min(shape.kv_heads, more["heads"])
    shape = replace(shape, **more)
    if kind.id == "misaligned":
        odd = 1 if variant == "fault" else 0
        shape = replace(shape, hidden=shape.hidden - 8 + 7 * odd, inner=shape.inner - 8 + 7 * odd)
    shape = sized(shape, device)
    if device == "cpu":
        return Program(shape, 2, 8, False, torch.bfloat16, chosen["causal"], 4)
    return Program(
        shape,
        chosen["batch"],
        chosen["context"],
        kind.stage == "decode" and not (kind.eager if variant == "fault" else kind.twin_eager),
        getattr(torch, chosen["dtype"]),
        chosen["causal"],
        8,
    )


def prepare(entry: Dict[str, Any], variant: str, device: str) -> Case:
    """The work of one program, as a Case like those of faults/."""
    kinds = [BY_ID[kind] for kind in entry["kinds"]]
    kind, program = kinds[0], _program(entry, variant, device)
    make = Experts if kind.id == "expert_loop" else Decoder
    model = make(program.shape, program.batch, program.context, device, program.dtype)
    decode = kind.stage == "decode"
    if isinstance(model, Experts):
        model.prepare(program.experts, program.batch)
    if not program.causal:
        model.attention = lambda q, k, v, causal: sdpa(q, k, v, False)
    if decode:
        model.fill_cache()
    tokens = random_tokens(program.batch, program.context, program.shape.vocab, device)
    parts = Parts(program, model, device, (lambda _: model.decode()) if decode else (lambda _: model.prefill(tokens)))
    for fault in kinds:
        if not fault.after and variant == "fault":
            fault.plant(parts)
        if variant == "fixed":
            fault.repair_before(parts)
    if program.graph:
        captured = graphed(lambda: parts.work(0), device)
        parts.work = lambda _: captured()
    for fault in kinds:
        if fault.after and variant == "fault":
            fault.plant(parts)
        if variant == "fixed":
            fault.repair(parts)
    new = program.batch if decode else program.batch * program.context
    config = program.shape.config()
    if isinstance(model, Experts):
        config.update(architectures=["MixtralForCausalLM"], model_type="mixtral", num_local_experts=program.experts, num_experts_per_tok=2)
    return Case(
        kind.stage,
        8 if decode else 4,
        parts.work,
        between=parts.between,
        synchronize=not decode,
        batch=program.batch,
        new_tokens=new,
        context=program.batch * (program.context + 1) if decode else new,
        model=config,
        dtype=str(model.dtype).split(".")[1],
    )


def entries() -> Dict[str, Dict[str, Any]]:
    return {program["id"]: program for half in SEEDS for program in programs(half)}


def main() -> None:
    """Writes generated.json, with the facts that the score reads: id, half, planted faults, the rules that name them, the
    original issues.
    """
    import engine
    import stock

    made = []
    of_all = ((BY_ID, entries()), (stock.by_id(), stock.entries()), (engine.BY_ID, engine.entries()))
    for by_id, program in [(by_id, program) for by_id, some in of_all for program in some.values()]:
        kinds: List[Any] = [by_id[kind] for kind in program["kinds"]]
        line: Dict[str, Any] = {"id": program["id"], "half": program["half"], "stage": kinds[0].stage}
        line.update(planted="; ".join(kind.planted for kind in kinds), causes=[kind.rules for kind in kinds])
        if any(kind.host for kind in kinds):
            line["host"] = True
        if kinds[0].true_of_twin:
            line["true_of_twin"] = kinds[0].true_of_twin
        if getattr(kinds[0], "eager", False) and not kinds[0].twin_eager:
            line["repaired_too"] = ["launch_bound"]  # the twin replays a CUDA graph
        issues = [kind.issue for kind in kinds if kind.issue]
        if issues:
            line["issues"] = issues
        made.append(line)
    # Run `npm run format` afterwards.
    Path(__file__).resolve().with_name("generated.json").write_text(json.dumps({"programs": made}, indent=2) + "\n")


if __name__ == "__main__":
    main()
