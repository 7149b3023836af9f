"""Counts parameters of vision-language models on PyTorch's meta device: python vision_oracle.py > vision.json"""

import json

import torch
import transformers
from transformers import AutoConfig, AutoModelForImageTextToText

CLIP = {
    "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096, "model_type": "clip_vision_model",
    "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768, "vocab_size": 32000,
}
SIGLIP = {
    "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model",
    "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": False,
}
VICUNA = {
    "model_type": "llama", "vocab_size": 32064, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05,
}
QWEN = {
    "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
    "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": False,
    "rms_norm_eps": 1e-06, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
}
GEMMA = {
    "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
    "sliding_window": 1024, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
}
MODELS = {
    "llava-1.5-7b": {"model_type": "llava", "text_config": VICUNA, "vision_config": CLIP, "vision_feature_layer": -2,
                     "vision_feature_select_strategy": "default", "projector_hidden_act": "gelu", "tie_word_embeddings": False},
    "gemma-3-4b": {"model_type": "gemma3", "text_config": GEMMA, "vision_config": SIGLIP, "mm_tokens_per_image": 256},
    "qwen2-vl-7b": {"model_type": "qwen2_vl", **QWEN, "vision_config": {
        "depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "hidden_size": 3584,
        "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2}},
    "qwen2.5-vl-7b": {"model_type": "qwen2_5_vl", **QWEN, "vision_config": {
        "depth": 32, "hidden_act": "silu", "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3,
        "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": 112,
        "fullatt_block_indexes": [7, 15, 23, 31], "tokens_per_second": 2, "temporal_patch_size": 2}},
}

counts = {}
for name, config in MODELS.items():
    values = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(AutoConfig.for_model(config["model_type"], **values))
    vision = sum(p.numel() for n, p in model.named_parameters() if "language_model" not in n and "lm_head" not in n)
    counts[name] = {"config": config, "parameters": sum(p.numel() for p in model.parameters()), "vision": vision}
print(json.dumps({"versions": {"torch": torch.__version__, "transformers": transformers.__version__}, "models": counts}, indent=2))
