"""Programs without marks that test_run.py runs with `inferscope run`."""

import sys

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

torch.set_num_threads(1)
torch.manual_seed(0)
SIZES = dict(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
prompt = torch.arange(14).reshape(2, 7) + 1


def adapters():
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(LlamaForCausalLM(LlamaConfig(**SIZES)), LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights=False)).eval()
    for _ in range(3):
        print(model.generate(input_ids=prompt, max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0).tolist())


def marked():
    """Marks its steps itself, around calls that hooks also see."""
    model = LlamaForCausalLM(LlamaConfig(**SIZES)).eval()
    with torch.inference_mode():
        for _ in range(2):
            cache = DynamicCache(config=model.config)
            with torch.profiler.record_function("prefill"):
                token = model(prompt, past_key_values=cache).logits[:, -1:].argmax(-1)
            for step in range(3):
                with torch.profiler.record_function("decode_step_%d" % step):
                    token = model(token, past_key_values=cache).logits[:, -1:].argmax(-1)
                    token = token + 0
    print(token.tolist())


def fails():
    model = LlamaForCausalLM(LlamaConfig(**SIZES)).eval()
    with torch.no_grad():
        model(prompt)
    model(prompt + 500)


globals()[sys.argv[1]]()
