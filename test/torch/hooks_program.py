"""Programs on transformers that mark nothing, each in a process forked after the imports.

Prints of each its pid, exit code, what it computed (to be the same with and without hooks) and what it wrote to stderr.
"""

import json
import os
import sys
import tempfile

import torch
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    StaticCache,
    T5Config,
    T5ForConditionalGeneration,
)

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


def no_cache():
    show(llama().generate(prompt(1, 4), use_cache=False, **GREEDY))


def compiled():
    model = llama()
    model.forward = torch.compile(model.forward, backend="eager", dynamic=True)
    show(model.generate(prompt(1, 7), **GREEDY))


def compiled_whole():
    model = llama()
    whole = torch.compile(model, backend="eager", fullgraph=True)
    with torch.inference_mode():
        for _ in range(2):
            show(whole(prompt(2, 6)).logits.double())


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


def fault():
    import inferscope_hooks

    inferscope_hooks.place = None
    dense()


def in_child(name):
    """As the program `name` would run alone: it ends by the end of the interpreter, exit handlers included."""
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
print(json.dumps({name: in_child(name) for name in sys.argv[1:]}))
