"""Counts parameters and FLOPs of encoder-decoder models with PyTorch and transformers, as an oracle for src/llm.

    python encoder_decoder_oracle.py > encoder-decoders.json

Parameters on the meta device; FLOPs of tiny models on the CPU as in transformers_oracle.py: of the encoder, of the
decoder's first step, which computes keys and values of the source, and of the next step. Bytes of the caches after both.
"""

import json
import sys

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq
from transformers.modeling_outputs import BaseModelOutput

BATCH, SOURCE = 2, 7

T5_SMALL = dict(model_type="t5", vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8)
FLAN_T5_BASE = dict(
    model_type="t5", vocab_size=32128, d_model=768, d_kv=64, d_ff=2048, num_layers=12, num_decoder_layers=12, num_heads=12,
    feed_forward_proj="gated-gelu", tie_word_embeddings=False,
)
MT5_SMALL = dict(
    model_type="mt5", vocab_size=250112, d_model=512, d_kv=64, d_ff=1024, num_layers=8, num_decoder_layers=8, num_heads=6,
    feed_forward_proj="gated-gelu", tie_word_embeddings=False,
)
BART_LARGE = dict(
    model_type="bart", vocab_size=50265, d_model=1024, encoder_layers=12, decoder_layers=12, encoder_attention_heads=16,
    decoder_attention_heads=16, encoder_ffn_dim=4096, decoder_ffn_dim=4096, max_position_embeddings=1024, num_hidden_layers=12,
)
WHISPER_TINY = dict(
    model_type="whisper", vocab_size=51865, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
    decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, num_mel_bins=80, max_source_positions=1500,
    max_target_positions=448, num_hidden_layers=4,
)
WHISPER_LARGE_V3 = dict(
    WHISPER_TINY, vocab_size=51866, d_model=1280, encoder_layers=32, decoder_layers=32, encoder_attention_heads=20,
    decoder_attention_heads=20, encoder_ffn_dim=5120, decoder_ffn_dim=5120, num_mel_bins=128, num_hidden_layers=32,
)
TINY_T5 = dict(model_type="t5", vocab_size=101, d_model=32, d_kv=12, d_ff=48, num_layers=2, num_heads=4)
TINY_BART = dict(
    model_type="bart", vocab_size=101, d_model=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
    decoder_attention_heads=2, encoder_ffn_dim=48, decoder_ffn_dim=40, max_position_embeddings=64,
)
SPECIAL = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3)

MODELS = {
    "t5-small": T5_SMALL,
    "flan-t5-base": FLAN_T5_BASE,
    "mt5-small": MT5_SMALL,
    "umt5-small": dict(MT5_SMALL, model_type="umt5", vocab_size=256384),
    "bart-large": BART_LARGE,
    "mbart-large-50": dict(BART_LARGE, model_type="mbart", vocab_size=250054),
    "whisper-tiny": WHISPER_TINY,
    "whisper-large-v3": WHISPER_LARGE_V3,
    "pegasus-large": dict(
        BART_LARGE, model_type="pegasus", vocab_size=96103, encoder_layers=16, decoder_layers=16, num_hidden_layers=16,
    ),
    "opus-mt-en-de": dict(
        BART_LARGE, model_type="marian", vocab_size=58101, d_model=512, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048,
        max_position_embeddings=512, num_hidden_layers=6, pad_token_id=58100,
    ),
}
TINY = {
    "t5": TINY_T5,
    "t5-gated-untied": dict(TINY_T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "bart": TINY_BART,
    "mbart": dict(TINY_BART, model_type="mbart"),
    "pegasus": dict(TINY_BART, model_type="pegasus"),
    "marian": dict(TINY_BART, model_type="marian", pad_token_id=0),
    "whisper": dict(TINY_BART, model_type="whisper", num_mel_bins=10, max_source_positions=SOURCE, max_target_positions=16, **SPECIAL),
}


def build(config, device):
    config = dict(config)
    settings = AutoConfig.for_model(config.pop("model_type"), **config)
    # transformers 5 ties T5's head even if the config says otherwise; version 4 and the published weights have their own,
    # and one embedding for both stacks.
    settings.tie_word_embeddings = config.get("tie_word_embeddings", True)
    auto = AutoModelForSpeechSeq2Seq if settings.model_type == "whisper" else AutoModelForSeq2SeqLM
    with torch.device(device):
        model = auto.from_config(settings, attn_implementation="eager").eval()
    if not settings.tie_word_embeddings:
        model.set_input_embeddings(model.shared)
    return model


def count(call):
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        out = call()
    return {str(op).split(".")[-1]: n for op, n in counter.get_flop_counts()["Global"].items()}, out


def count_steps(config):
    model = build(config, "cpu")
    if config["model_type"] == "whisper":
        source = torch.randn(BATCH, config["num_mel_bins"], 2 * SOURCE)
    else:
        source = torch.randint(4, 100, (BATCH, SOURCE))
    ids = torch.randint(4, 100, (BATCH, 1))
    encode, hidden = count(lambda: model.get_encoder()(source)[0])
    encoded = BaseModelOutput(last_hidden_state=hidden)
    first, out = count(lambda: model(encoder_outputs=encoded, decoder_input_ids=ids, use_cache=True))
    cache = out.past_key_values
    cached, _ = count(lambda: model(encoder_outputs=encoded, decoder_input_ids=ids, past_key_values=cache, use_cache=True))
    caches = {"self": cache.self_attention_cache, "cross": cache.cross_attention_cache}
    sizes = {name: sum(t.nbytes for layer in one.layers for t in (layer.keys, layer.values)) for name, one in caches.items()}
    return {"encode": encode, "first": first, "cached": cached}, sizes


json.dump(
    {
        "origin": "src/llm/oracle/encoder_decoder_oracle.py",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "batch": BATCH,
        "source": SOURCE,
        "models": {
            name: {"config": config, "parameters": sum(p.numel() for p in build(config, "meta").parameters())}
            for name, config in MODELS.items()
        },
        "tiny": {
            name: {
                "config": config,
                "parameters": sum(p.numel() for p in build(config, "meta").parameters()),
                **dict(zip(("flops", "cache_bytes"), count_steps(config))),
            }
            for name, config in TINY.items()
        },
    },
    sys.stdout,
    indent=1,
)
