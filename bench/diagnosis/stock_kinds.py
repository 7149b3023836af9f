"""Programs that use Hugging Face transformers as users do: each with one common mistake, and the repaired twin.

Programs with torch.compile are in compiled.py; stock.py chooses the programs from a seed.
"""

import contextlib
import gc
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

import torch
from case import Planted, Sized

FAMILIES = ["llama", "mistral", "qwen3", "phi3", "gpt_neox", "olmo2"]
Work = Callable[[], Any]


@dataclass
class Stock(Sized):
    """One program."""

    family: str
    device: str

    def model(self, dtype: torch.dtype = torch.bfloat16, family: Optional[str] = None, **more: Any) -> Any:
        """A model with random weights, on the device."""
        from transformers import AutoConfig, AutoModelForCausalLM

        heads = max(1, self.hidden // (128 if self.device != "cpu" else 16))
        attention = more.pop("attention", "sdpa")
        sizes = dict(
            vocab_size=self.vocab, hidden_size=self.hidden, intermediate_size=self.hidden * 3, num_hidden_layers=self.layers,
            num_attention_heads=heads, max_position_embeddings=16384, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        )
        if (family or self.family) not in ("gpt_neox", "bert"):
            sizes.update(num_key_value_heads=max(1, heads // 4), head_dim=self.hidden // heads)
        config = AutoConfig.for_model(family or self.family, **sizes, **more)
        with torch.device(self.device):
            if family == "bert":
                from transformers import BertModel

                return BertModel._from_config(config, dtype=dtype, attn_implementation=attention).eval()
            return AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention).eval()

    def ids(self, batch: Optional[int] = None, length: Optional[int] = None) -> torch.Tensor:
        return torch.randint(3, self.vocab, (batch or self.batch, length or self.length), device=self.device)


def generate(model: Any, ids: torch.Tensor, new: int, mask: Optional[torch.Tensor] = None, **more: Any) -> torch.Tensor:
    more.setdefault("do_sample", False)
    mask = torch.ones_like(ids) if mask is None else mask
    return model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=new, min_new_tokens=new, pad_token_id=0, **more)


PREFILLS, DECODES = 4, 32
"""Stages of a run: prompts that generate one token each, or decode steps of one prompt."""


def prefills(make: Callable[[Stock], Any]) -> Callable[[Stock], Work]:
    """Runs prompts of the model that `make` returns."""

    def prepare(stock: Stock) -> Work:
        model, ids = make(stock), stock.ids()

        def work() -> None:
            for _ in range(PREFILLS):
                generate(model, ids, 1)

        return work

    return prepare


def decodes(make: Callable[[Stock], Any], **more: Any) -> Callable[[Stock], Work]:
    """Runs decode steps of the model that `make` returns. `more`: arguments of generate, or functions that return them for a program."""

    def prepare(stock: Stock) -> Work:
        model, ids = make(stock), stock.ids()
        arguments = {name: value(stock) if callable(value) else value for name, value in more.items()}
        return lambda: generate(model, ids, DECODES + 1, **arguments)

    return prepare


def plain(stock: Stock) -> Any:
    return stock.model()


def uncached(stock: Stock) -> Work:
    model, ids = stock.model(), stock.ids()
    return lambda: generate(model, ids, DECODES + 1, use_cache=not stock.faulty)


def half_precision(stock: Stock) -> Any:
    return stock.model(torch.float32 if stock.faulty else torch.bfloat16)


def written_attention(stock: Stock) -> Any:
    return stock.model(attention="eager" if stock.faulty else "sdpa")


def autocast(stock: Stock) -> Work:
    model, ids = stock.model(torch.float32 if stock.faulty else torch.bfloat16), stock.ids()

    def work() -> None:
        with torch.autocast(stock.device, torch.bfloat16, enabled=stock.faulty):
            generate(model, ids, DECODES + 1)

    return work


def processed_by_numpy(stock: Stock) -> List[Any]:
    """A logits processor that penalizes a few tokens."""
    banned = list(range(3, 40))

    def penalize_on_host(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        values = scores.float().cpu().numpy()
        values[:, banned] -= 10.0
        return torch.from_numpy(values).to(scores.device)

    places = torch.tensor(banned, device=stock.device)
    return [penalize_on_host if stock.faulty else lambda ids, scores: scores.index_add(1, places, torch.full_like(scores[:, : len(banned)], -10.0))]


def criteria(every_step: Callable[[Stock], Callable[[torch.Tensor], None]]) -> Callable[[Stock], List[Any]]:
    """A stopping criterion that never stops, but runs host code in every step."""

    def make(stock: Stock) -> List[Any]:
        act = every_step(stock) if stock.faulty else lambda ids: None

        def criterion(ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
            act(ids)
            return torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)

        return [criterion]

    return make


def detokenized(stock: Stock) -> Callable[[torch.Tensor], None]:
    """Decodes the text of all sequences again after every token."""
    words = {token: "token%d " % token for token in range(stock.vocab)}

    def act(ids: torch.Tensor) -> None:
        for sequence in ids.tolist():
            "".join(words[token] for token in sequence).split()

    return act


def collected(stock: Stock) -> Callable[[torch.Tensor], None]:
    """Runs a full garbage collection after every fourth token."""
    return lambda ids: None if ids.shape[1] % 4 else gc.collect() and None


def emptied(stock: Stock) -> Any:
    """Empties the allocator cache before every linear layer, to avoid running out of memory."""
    model = stock.model()
    if stock.faulty:
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.register_forward_pre_hook(lambda *_: torch.cuda.empty_cache())
    return model


def watched(stock: Stock) -> Any:
    """Logs the norm of every activation."""
    model = stock.model()
    norms: List[float] = []
    if stock.faulty:
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.register_forward_hook(lambda _, __, y: norms.append(y.norm().item()))
    return model


def offloaded(stock: Stock) -> Any:
    model = stock.model()
    if stock.faulty:
        from accelerate import cpu_offload

        cpu_offload(model.to("cpu"), execution_device=torch.device(stock.device))
    return model


def scored(stock: Stock, dtype: torch.dtype = torch.bfloat16) -> Work:
    """Scores the next token of each prompt."""
    model, ids = stock.model(dtype), stock.ids()

    def work() -> None:
        with torch.inference_mode():
            for _ in range(PREFILLS):
                logits = model(ids).logits if stock.faulty else model(ids, logits_to_keep=1).logits
                logits[:, -1].float().softmax(-1).topk(5)

    return work


def adapted(stock: Stock, **more: Any) -> Any:
    from peft import LoraConfig, get_peft_model

    names = ["qkv_proj", "gate_up_proj"] if stock.family == "phi3" else ["query_key_value", "dense_h_to_4h"] if stock.family == "gpt_neox" else ["q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"]
    model = get_peft_model(stock.model(**more), LoraConfig(r=32, target_modules=names, init_lora_weights=False)).eval()
    return model if stock.faulty else model.merge_and_unload()


def padded(stock: Stock) -> Work:
    """One long prompt among short ones; the twin sorts them into two batches."""
    model = stock.model()
    short = stock.length // 8
    ids = stock.ids()
    mask = torch.ones_like(ids)
    mask[1:, : stock.length - short] = 0

    def work() -> None:
        for _ in range(PREFILLS):
            if stock.faulty:
                generate(model, ids, 1, mask)
            else:
                generate(model, ids[:1], 1)
                generate(model, ids[1:, -short:], 1)

    return work


def padded_encoder(stock: Stock) -> Work:
    """Pads texts to the maximum length of the model; the twin pads them to the longest text."""
    model, ids = stock.model(family="bert"), stock.ids()
    mask = torch.ones_like(ids)
    mask[:, stock.length // 4 :] = 0
    if not stock.faulty:
        ids, mask = ids[:, : stock.length // 4].contiguous(), mask[:, : stock.length // 4].contiguous()

    def work() -> None:
        with torch.inference_mode():
            for _ in range(PREFILLS):
                model(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0].float().sum()

    return work


def sliced(stock: Stock) -> Any:
    model = stock.model()
    if not stock.faulty:
        model.get_output_embeddings().register_forward_pre_hook(lambda _, args: (args[0].contiguous(),))
    return model


def experts(stock: Stock) -> Any:
    """Experts in a loop; the twin computes them with grouped GEMMs, in decode steps too, for which generate() would copy their weights."""
    model = stock.model(family="mixtral", num_local_experts=8, num_experts_per_tok=2)
    model.set_experts_implementation("eager" if stock.faulty else "grouped_mm")
    model._optimize_model_for_decode = contextlib.nullcontext
    return model


def sampled(stock: Stock) -> Work:
    model, ids = stock.model(), stock.ids()
    more = dict(top_k=0, top_p=0.9) if stock.faulty else dict(top_k=50)
    return lambda: generate(model, ids, DECODES + 1, do_sample=True, **more)


class Int8Linear(torch.nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", weight.abs().amax(1, keepdim=True).float() / 127)
        self.register_buffer("weight", (weight / self.scale).round().to(torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, (self.weight.float() * self.scale).to(x.dtype))


def quantized(stock: Stock) -> Any:
    model = stock.model()
    if stock.faulty:
        for name, module in list(model.named_modules()):
            if isinstance(module, torch.nn.Linear) and "head" not in name and "embed_out" not in name:
                parent = model.get_submodule(name.rpartition(".")[0])
                setattr(parent, name.rpartition(".")[2], Int8Linear(module.weight.detach()))
    return model


def embedded(stock: Stock) -> Work:
    """Copies image features, used as embeddings, from pageable memory."""
    model = stock.model()
    features = torch.randn(stock.batch, stock.length, stock.hidden)
    on_device = features.to(stock.device, torch.bfloat16)

    def work() -> None:
        with torch.inference_mode():
            for _ in range(PREFILLS):
                x = features.to(stock.device).to(torch.bfloat16) if stock.faulty else on_device
                model(inputs_embeds=x, logits_to_keep=1).logits.argmax(-1)

    return work


def looped(stock: Stock) -> Work:
    """A decode loop written by the user over a static cache; the twin replays its step as a CUDA graph."""
    from transformers import StaticCache

    model, ids = stock.model(), stock.ids()
    cache = StaticCache(config=model.config, max_cache_len=stock.length + DECODES + 8)
    token = torch.zeros(stock.batch, 1, dtype=torch.long, device=stock.device)
    position = torch.full((1,), stock.length, dtype=torch.long, device=stock.device)
    graph = None

    def step() -> None:
        logits = model(token, past_key_values=cache, cache_position=position, position_ids=position[None].expand(stock.batch, 1), use_cache=True).logits
        token.copy_(logits[:, -1:].argmax(-1))

    def work() -> None:
        nonlocal graph
        with torch.inference_mode():
            cache.reset()
            logits = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
            token.copy_(logits[:, -1:].argmax(-1))
            position.fill_(stock.length)
            if not stock.faulty and graph is None and stock.device != "cpu":
                step()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    step()
            for _ in range(DECODES):
                step() if graph is None else graph.replay()
                position.add_(1)

    return work


@dataclass
class Kind(Planted):
    prepare: Callable[[Stock], Work]
    sizes: Dict[str, Any]
    host: bool = False
    families: Optional[List[str]] = None
    true_of_twin: Optional[Dict[str, str]] = None
    """Rules that hold in the repaired twin, with the reason why."""
    issue: Optional[str] = None


github = "https://github.com/"
long = {"batch": [4, 8], "length": [2048, 4096], "layers": [4, 6], "hidden": [2048, 4096]}
wide = {"batch": [32, 64], "length": [64], "layers": [2, 3], "hidden": [2048, 4096]}
KINDS = [
    Kind("use_cache", "decode", "use_cache=False; repaired: with a cache", ["no_kv_cache"], uncached, {**long, "length": [1024]}),
    Kind("default_dtype", "prefill", "loaded without a dtype: float32; repaired: bfloat16", ["half_precision"], prefills(half_precision), long),
    Kind("eager", "prefill", "attn_implementation='eager'; repaired: sdpa", ["eager_attention"], prefills(written_attention), {**long, "hidden": [2048]}),
    Kind("autocast", "decode", "float32 weights under torch.autocast; repaired: loaded in bfloat16", ["casts_and_layout_copies"], autocast, {**wide, "hidden": [6144, 8192], "vocab": [32000]}),
    Kind("numpy", "decode", "a logits processor on the host; repaired: on the GPU", ["logits_to_host"], decodes(plain, logits_processor=processed_by_numpy), {**wide, "vocab": [128256]}, host=True),
    Kind("detokenized", "decode", "the text of all sequences is created again after every token; repaired: it is not", ["host_bound"], decodes(plain, stopping_criteria=criteria(detokenized)), {**wide, "length": [512]}, host=True),
    Kind("collected", "decode", "a full garbage collection after every fourth token; repaired: none", ["host_bound"], decodes(plain, stopping_criteria=criteria(collected)), wide, host=True),
    Kind("emptied", "prefill", "torch.cuda.empty_cache() before every GEMM; repaired: without", ["allocator_churn"], prefills(emptied), long, host=True),
    Kind("watched", "decode", "norms of all activations are read by the host; repaired: they are not", ["synchronization_every_step"], decodes(watched), wide, host=True),
    Kind("offloaded", "decode", "weights are copied from the host's memory at every use (accelerate's cpu_offload); repaired: on the GPU", ["host_copies"], decodes(offloaded), {**wide, "hidden": [1024, 1536]}, host=True),
    Kind("scored", "prefill", "logits of every prompt token; repaired: logits_to_keep=1", ["prompt_logits"], scored, {**long, "vocab": [128256], "layers": [2], "length": [2048]}),
    Kind("adapters", "prefill", "LoRA adapters are applied next to every GEMM; repaired: merged", ["unmerged_adapters"], prefills(adapted), {**long, "length": [1024]}, issue=github + "huggingface/peft/issues/217"),
    Kind("padded", "prefill", "one long prompt among short ones in a batch; repaired: two batches", ["padding"], padded, {**long, "batch": [16, 32], "length": [2048]}),
    Kind("padded_encoder", "prefill", "texts padded to 512 tokens; repaired: to their own length", ["padding"], padded_encoder, {**long, "batch": [32, 64], "length": [512], "hidden": [1024, 2048]}, families=["bert"]),
    Kind("experts", "decode", "experts_implementation='eager': a loop that reads which experts get tokens; repaired: grouped_mm", ["synchronization_every_step"], decodes(experts), {**wide, "hidden": [2048]}, host=True, families=["mixtral"]),
    Kind("sampled", "decode", "top-p sampling sorts the whole vocabulary; repaired: top-k of 50", ["vocabulary_sort"], sampled, {**wide, "vocab": [128256], "batch": [128, 192], "layers": [2], "hidden": [2048]}),
    Kind("sliced", "prefill", "stock generate(): logits of the last tokens, a view of the prompt's, are computed sequence by sequence; repaired: made contiguous", ["gemm_per_sequence"], prefills(sliced), {**wide, "batch": [64, 128], "length": [64, 512]}),
    Kind("quantized", "decode", "int8 weights are converted at every use; repaired: bfloat16 weights", ["casts_and_layout_copies"], decodes(quantized), {**wide, "hidden": [4096]}),
    Kind("embedded", "prefill", "embeddings come from pageable memory; repaired: they are on the GPU", ["host_copies"], embedded, {**long, "layers": [2], "length": [2048]}, host=True, families=["llama", "mistral", "qwen3"]),
    Kind("looped", "decode", "a decode loop launches every operation; repaired: a CUDA graph", ["launch_bound"], looped, {**wide, "layers": [8, 12]}, host=True, families=["llama", "mistral", "qwen3"], true_of_twin={"casts_and_layout_copies": "keys and values of a static cache are repeated for every head"}),
]
