"""Programs on transformers without marks, each in a process forked after the imports.

Prints the pid, exit code, result (equal with and without hooks) and stderr of each.
"""

import inspect
import json
import os
import sys
import tempfile

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    BertModel,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    StaticCache,
    T5Config,
    T5ForConditionalGeneration,
    T5Model,
    WhisperConfig,
    WhisperForConditionalGeneration,
)
from transformers.generation.configuration_utils import ContinuousBatchingConfig

SIZES = dict(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
GREEDY = dict(max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0)


def llama(**more):
    return LlamaForCausalLM(LlamaConfig(**dict(SIZES, **more))).eval()


def prompt(batch, length):
    return torch.arange(batch * length).reshape(batch, length) % 120 + 1


def show(result):
    print(result.tolist() if hasattr(result, "tolist") else result)


def dense():
    model = llama()
    for _ in range(2):
        show(model.generate(prompt(2, 7), **GREEDY))
    show(model.generate(prompt(1, 3), **GREEDY))
    with torch.no_grad():
        show(model(prompt(1, 4)).logits.double())


def moe():
    model = MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2)).eval()
    show(model.generate(prompt(2, 7), **GREEDY))


def t5():
    config = T5Config(vocab_size=128, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)
    show(T5ForConditionalGeneration(config).eval().generate(prompt(2, 7), **GREEDY))


def encoder_and_decoder():
    config = T5Config(vocab_size=128, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        show(model(input_ids=prompt(2, 7), decoder_input_ids=prompt(2, 3)).logits.double())
        show(model(input_ids=prompt(2, 7), labels=prompt(2, 4)).logits.double())
        # The bare model cannot generate.
        show(T5Model(config).eval()(input_ids=prompt(2, 7), decoder_input_ids=prompt(2, 5)).last_hidden_state.double())


def mamba():
    """Its cache has another name, and no length."""
    config = MambaConfig(vocab_size=128, hidden_size=32, num_hidden_layers=2, state_size=4)
    show(MambaForCausalLM(config).eval().generate(prompt(2, 7), **GREEDY))


def continuous():
    """Three requests in one batch, computed in a thread; their prompts have 4, 7 and 3 tokens."""
    config = GenerationConfig(max_new_tokens=4, do_sample=False, eos_token_id=-1, pad_token_id=0)
    prompts = [prompt(1, length)[0].tolist() for length in (4, 7, 3)]
    # Without a number of blocks its cache takes most of the memory.
    batching = ContinuousBatchingConfig(num_blocks=16, max_batch_tokens=64)
    done = llama().generate_batch(prompts, config, continuous_batching_config=batching, progress_bar=False)
    print(sorted(result.generated_tokens for result in done.values()))


def static():
    show(llama().generate(prompt(2, 7), cache_implementation="static", **GREEDY))


def static_loop():
    model = llama()
    with torch.inference_mode():
        cache = StaticCache(config=model.config, max_cache_len=16)
        for _ in range(2):
            cache.reset()
            token = prompt(1, 6)
            for step in range(3):
                token = model(token, past_key_values=cache, use_cache=True).logits[:, -1:].argmax(-1)
                show(token)


def assisted():
    model = llama()
    torch.manual_seed(1)
    show(model.generate(prompt(1, 7), assistant_model=llama(num_hidden_layers=1), **GREEDY))


def loop():
    model = llama()
    with torch.inference_mode():
        out = model(prompt(2, 6), use_cache=True)
        out = model(prompt(2, 4), past_key_values=out.past_key_values)
        for _ in range(2):
            out = model(out.logits[:, -1:].argmax(-1), past_key_values=out.past_key_values)
        show(out.logits.double())


def cropped():
    """After a crop, the length of the cache is read again; step numbers continue."""
    model = llama()
    with torch.inference_mode():
        out = model(prompt(1, 6), use_cache=True)
        for step in range(9):
            out = model(input_ids=out.logits[:, -1:].argmax(-1), past_key_values=out.past_key_values)
            if step == 6:
                out.past_key_values.crop(-3)
        show(out.logits.double())


def no_cache():
    show(llama().generate(prompt(1, 4), use_cache=False, **GREEDY))


def compiled():
    model = llama()
    model.forward = torch.compile(model.forward, backend="eager", dynamic=True)
    show(model.generate(prompt(1, 7), **GREEDY))


def compiled_whole():
    model = llama()
    compiled_model = torch.compile(model, backend="eager", fullgraph=True)
    with torch.inference_mode():
        for _ in range(2):
            show(compiled_model(prompt(2, 6)).logits.double())


def load():
    with tempfile.TemporaryDirectory() as folder:
        llama().save_pretrained(folder)
        show(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).generate(prompt(1, 3), **GREEDY))


def training():
    model = llama().train()
    model(prompt(1, 4), labels=prompt(1, 4)).loss.backward()
    show(model.lm_head.weight.grad.double().sum())


def raises():
    model = llama()
    try:
        model.generate(torch.full((1, 3), 500), **GREEDY)
    except IndexError as error:
        print("caught", error)
    show(model.generate(prompt(1, 3), **GREEDY))
    model(torch.full((1, 3), 500))


def own_record():
    import inferscope_record

    model = llama()
    with inferscope_record.mark("prefill", 0, 0, 1, 4, 4):
        show(model(prompt(1, 4)).logits.double())


class Block(nn.Module):
    """Attention over a cache that the module stores, and a gated MLP."""

    def __init__(self, width, max_tokens):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.register_buffer("cache", torch.zeros(2, 2, max_tokens, width), persistent=False)

    def forward(self, x, start):
        q, k, v = self.qkv(x).chunk(3, -1)
        length = x.shape[1]
        self.cache[0, : x.shape[0], start : start + length] = k
        self.cache[1, : x.shape[0], start : start + length] = v
        keys, values = self.cache[:, : x.shape[0], : start + length]
        mixed = nn.functional.scaled_dot_product_attention(q, keys, values, is_causal=start == 0)
        x = x + self.out(mixed)
        return x + self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Decoder(nn.Module):
    def __init__(self, vocabulary=128, width=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, 32) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids, start=0):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, start)
        return self.head(x)


@torch.inference_mode()
def own_module():
    model = Decoder()
    for _ in range(2):
        token = model(prompt(2, 6), 0)[:, -1:].argmax(-1)
        for step in range(3):
            token = model(token, 6 + step)[:, -1:].argmax(-1)
        show(token)


@torch.inference_mode()
def frames():
    """Where a step repeats the previous one, hooks take the place of torch's own calls: no frame more."""
    embedding, model, out = nn.functional.embedding, llama(), None

    def counted(*values):
        nonlocal depth
        depth = len(inspect.stack())
        return embedding(*values)

    nn.functional.embedding = counted
    token, depths = prompt(1, 1), []
    out = model(prompt(1, 6), use_cache=True)
    for _ in range(8):
        depth = None
        model(token, past_key_values=out.past_key_values)
        depths.append(depth)
    print(depths[-3:])


@torch.inference_mode()
def inner_model():
    """The model inside another one is called by itself after steps of the other."""
    model, token = llama(), prompt(2, 1)
    out = model(prompt(2, 6), use_cache=True)
    for _ in range(6):
        model(token, past_key_values=out.past_key_values)
    for length in (5, 4):
        out = model.model(prompt(2, length), use_cache=True)
        for _ in range(6):
            out = model.model(token, past_key_values=out.past_key_values)
        show(out.last_hidden_state.double())


@torch.inference_mode()
def compiled_in_place():
    """Module.compile stores what is called instead of the module's own call."""
    model = llama()
    model.compile(backend="eager", dynamic=True)
    out = model(prompt(1, 6), use_cache=True)
    for _ in range(6):
        out = model(out.logits[:, -1:].argmax(-1), past_key_values=out.past_key_values)
    print(model._compiled_call_impl is not None)
    show(out.logits.double())


@torch.inference_mode()
def traced():
    """torch.fx replaces the call of every module while it traces, between steps that repeat each other."""
    model = Decoder()
    ids = prompt(1, 1)
    for step in range(8):
        if step == 6:
            traced = torch.fx.symbolic_trace(nn.Sequential(model.embed, model.head))
            print([node.op for node in traced.graph.nodes])
        show(model(ids).double().sum())


@torch.inference_mode()
def own_module_without_cache():
    model, ids = Decoder(), prompt(1, 4)
    for _ in range(3):
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
    show(ids)


@torch.inference_mode()
def two_modules():
    """The second model is found by its embedding, which is called outside of any step."""
    for width in (32, 64):
        kind = type("Decoder%d" % width, (Decoder,), {})
        model = kind(width=width)
        for _ in range(3):
            show(model(prompt(1, 5)).double().sum())


@torch.no_grad()
def encoder_of_torch():
    """The program calls the embedding itself."""
    embed = nn.Embedding(128, 32)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    encoder, head = nn.TransformerEncoder(layer, 2).eval(), nn.Linear(32, 3)
    for _ in range(3):
        show(head(encoder(embed(prompt(2, 6)))[:, 0]).double())


@torch.no_grad()
def layers_one_by_one():
    embed, layers = nn.Embedding(128, 32), [Block(32, 16) for _ in range(3)]
    for _ in range(3):
        x = embed(prompt(1, 6))
        for layer in layers:
            x = layer(x, 0)
        show(x.double().sum())


def join_group():
    """Joins a process group of two, of which the other is not there."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=1, world_size=2)


@torch.no_grad()
def pipeline_stage():
    join_group()
    stage = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).eval()
    for _ in range(3):
        show(stage(torch.ones(2, 6, 32)).double().sum())


@torch.no_grad()
def pipeline_layers():
    join_group()
    layers = [Block(32, 16) for _ in range(3)]
    x = torch.ones(2, 6, 32)
    for _ in range(3):
        for layer in layers:
            x = layer(x, 0)
        show(x.double().sum())


@torch.inference_mode()
def compiled_function():
    model = Decoder()

    def decode(model, token):
        return model(token, 4)[:, -1:].argmax(-1)

    decode_compiled = torch.compile(decode, backend="eager", fullgraph=True)
    token = model(prompt(1, 4), 0)[:, -1:].argmax(-1)
    for _ in range(4):
        token = decode_compiled(model, token)
        show(token)


@torch.inference_mode()
def compiled_closure():
    model = Decoder()

    @torch.compile(backend="eager")
    def decode(token, start):
        return model(token, start)[:, -1:].argmax(-1)

    token = model(prompt(1, 4), 0)[:, -1:].argmax(-1)
    for step in range(4):
        token = decode(token, 4)
        show(token)


def bert():
    config = BertConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
    model = BertModel(config).eval()
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 4:] = 0
    with torch.no_grad():
        for length in (7, 8):
            show(model(input_ids=prompt(2, length), attention_mask=mask if length == 7 else None).pooler_output.double())


def whisper():
    config = WhisperConfig(
        vocab_size=128, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8, max_source_positions=20, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None,
    )
    model = WhisperForConditionalGeneration(config).eval()
    model.generation_config.suppress_tokens = model.generation_config.begin_suppress_tokens = None
    show(model.generate(torch.arange(2 * 8 * 40).reshape(2, 8, 40) / 640, max_new_tokens=4, min_new_tokens=4, do_sample=False))


def lora():
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(3)
    model = get_peft_model(llama(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)).eval()
    show(model.generate(input_ids=prompt(2, 7), **GREEDY))
    with torch.no_grad():
        show(model(input_ids=prompt(1, 4)).logits.double())


def autocast():
    model = llama()
    with torch.autocast("cpu", torch.bfloat16):
        show(model.generate(prompt(1, 5), **GREEDY))


def dynamic_int8():
    model = torch.ao.quantization.quantize_dynamic(llama(), {nn.Linear}, dtype=torch.qint8)
    show(model.generate(prompt(1, 5), **GREEDY))


def torchao_int8():
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    model = llama().to(torch.bfloat16)
    quantize_(model, Int8WeightOnlyConfig())
    show(model.generate(prompt(1, 5), **GREEDY))


def fault():
    import inferscope_hook_calls

    inferscope_hook_calls.classify_call = None
    dense()


def run_in_child(name):
    """Runs the program `name` in a child process that exits as usual, with exit handlers. -> its pid, code and outputs"""
    out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
    pid = os.fork()
    if pid == 0:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        torch.manual_seed(0)
        globals()[name]()
        sys.stdout.flush()
        sys.exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read())
    return {"pid": pid, "code": code, "stdout": texts[0], "stderr": texts[1]}


torch.set_num_threads(1)
print(json.dumps({name: run_in_child(name) for name in sys.argv[1:]}))
