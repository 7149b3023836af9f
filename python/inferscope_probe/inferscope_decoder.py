"""A model of transformers and the steps of a greedy decode loop over it, shared by the workloads and the benchmark engine.

Mode eager has transformers' own growing cache; compile and cudagraph run a decode step over a cache of fixed length, through
torch.compile or as a captured CUDA graph. The prefill runs eagerly in all three.
"""

import json
from pathlib import Path
from typing import Any, Dict, Optional

from inferscope_record import mark, recorder

DEFAULT_MODEL = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"
DTYPES = ("float16", "bfloat16", "float32")
MODES = ("eager", "compile", "cudagraph")
ATTENTIONS = ("sdpa", "eager", "flash_attention_2")


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


# Dimensions from the config.json files on the hub, for random weights.
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


class ModelError(Exception):
    """A failure with its error code (docs/reference/errors.md) and three lines: what failed, why, what to type."""

    def __init__(self, code: str, what: str, why: str, fix: str) -> None:
        super().__init__("%s\n  %s\n  %s" % (what, why, fix))
        self.code = code


def choose_device(requested: Optional[str], option: str = "--device") -> str:
    """None selects the GPU if there is one. -> cpu, cuda or cuda:N"""
    import torch

    if requested is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    if requested != "cpu" and not torch.cuda.is_available():
        raise ModelError(
            "E_WORKLOAD_FAILED",
            "%s %s, but torch %s finds no GPU" % (option, requested, torch.__version__),
            "The driver is missing or too old for this torch, CUDA_VISIBLE_DEVICES hides it, or torch is a CPU build.",
            "Type: inferscope doctor – or use %s cpu." % option,
        )
    return requested


def check_mode(mode: str, attn: str, device: str, form: str = "--%s %s") -> None:
    """Rejects combinations that cannot run; `form` is how an option is typed."""
    if device == "cpu" and mode == "cudagraph":
        raise ModelError(
            "E_USAGE",
            form % ("mode", mode) + " needs a GPU",
            "CUDA graphs do not exist on the CPU.",
            "Use %s or %s." % (form % ("mode", "eager"), form % ("mode", "compile")),
        )
    if mode != "eager" and attn == "flash_attention_2":
        raise ModelError(
            "E_USAGE",
            "%s cannot be combined with %s" % (form % ("mode", mode), form % ("attn", attn)),
            "These modes keep the KV cache at its full length with a mask, which flash_attention_2 does not support.",
            "Use %s." % (form % ("attn", "sdpa")),
        )


def _config(source: str, dims: Optional[Dict[str, Any]]) -> Any:
    from transformers import AutoConfig

    path = Path(source)
    if dims is None and (path.is_dir() or (path.suffix == ".json" and path.is_file())):
        return AutoConfig.from_pretrained(str(path))
    if dims is None:
        dims = CONFIGS.get(source)
    if dims is None or "model_type" not in dims:
        raise ModelError(
            "E_MODEL_NOT_FOUND",
            "the dimensions of %s are not bundled" % source,
            "--weights random downloads nothing, and the bundled models are %s." % ", ".join(CONFIGS),
            "Give one of these, or a folder with its config.json: --model ./folder",
        )
    dims = dict(dims)
    return AutoConfig.for_model(dims.pop("model_type"), **dims)


def load_model(
    source: str,
    device: str,
    dtype: str,
    weights: str = "trained",
    attn: str = "sdpa",
    seed: int = 0,
    name: Optional[str] = None,
    dims: Optional[Dict[str, Any]] = None,
    ranks: int = 1,
) -> Any:
    """Builds the model on its device (stage load) and writes the model line.

    `source` is a hub id, a folder or a config.json; `dims`, the object of a config.json, replaces it for random
    weights. `ranks`: processes that share the model by tensor parallelism; this is one of them.
    """
    import torch
    import transformers

    if device != "cpu":
        torch.cuda.init()
        torch.cuda.set_device(torch.device(device).index or 0)
        torch.cuda.reset_peak_memory_stats()
    torch_dtype = getattr(torch, dtype)
    torch.manual_seed(seed)
    with mark("load"):
        try:
            if ranks > 1 and weights == "random":
                from inferscope_tensor_parallel import random_model

                model = random_model(_config(source, dims), dtype, attn, seed)
            elif ranks > 1:
                from inferscope_tensor_parallel import trained_model

                model = trained_model(source, dtype, attn)
            elif weights == "random":
                config = _config(source, dims)
                torch.set_default_dtype(torch_dtype)
                try:
                    with torch.device(device):
                        model = transformers.AutoModelForCausalLM.from_config(
                            config, attn_implementation=attn, dtype=torch_dtype
                        )
                finally:
                    torch.set_default_dtype(torch.float32)
            else:
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    source, dtype=torch_dtype, attn_implementation=attn
                ).to(device)
        except (OSError, ValueError, ImportError) as error:
            raise load_error(name or source, error) from error
        model = model.eval()
        synchronize(device)
    config = json.loads(model.config.to_json_string(use_diff=False))
    recorder().model(
        name=name or source,
        config=config,
        dtype=dtype,
        device=device,
        weights=weights,
        # Counts the whole model, although a rank has only its part.
        weight_bytes=None if ranks > 1 else sum(p.numel() * p.element_size() for p in model.parameters()),
        quantization=(config.get("quantization_config") or {}).get("quant_method"),
        engine_version=transformers.__version__,
        threads=torch.get_num_threads(),
        tensor_parallel_size=ranks,
    )
    recorder().cuda_memory("baseline")
    recorder().flush()
    return model


def load_error(name: str, error: Exception) -> ModelError:
    text = str(error)
    chain = text + " " + repr(error.__cause__) + repr(error.__context__)
    if "gated" in chain or "401" in chain or "403" in chain:
        return ModelError(
            "E_MODEL_ACCESS",
            "%s is gated, or needs a login" % name,
            "The hub answered: %s" % text.split("\n")[0],
            "Ask for access on its page, then set HF_TOKEN – or use --weights random, which downloads nothing.",
        )
    if isinstance(error, ImportError):
        return ModelError(
            "E_ENGINE_MISSING",
            "%s needs a package that is not installed" % name,
            " ".join(text.split()),
            "Install it into this Python, or choose another --engine-arg attn, model or dtype.",
        )
    return ModelError(
        "E_MODEL_NOT_FOUND",
        "%s could not be loaded" % name,
        text.split("\n")[0],
        "Check the name and the network – or use --weights random, which downloads nothing.",
    )


def synchronize(device: str) -> None:
    if device != "cpu":
        import torch

        torch.cuda.synchronize()


def random_prompt(vocab_size: int, batch_size: int, input_len: int, seed: int, iteration: int) -> Any:
    """[batch_size, input_len] token ids on the host, uniform over the vocabulary, different in every iteration."""
    import torch

    generator = torch.Generator().manual_seed(seed + iteration + 1000)
    return torch.randint(0, vocab_size, (batch_size, input_len), generator=generator)


class Decoder:
    """Prefill and decode steps of one model for one shape: a batch of prompts of equal length and their maximum
    output length.
    """

    def __init__(
        self, model: Any, device: str, mode: str, attn: str, batch_size: int, input_len: int, output_len: int
    ) -> None:
        import torch
        from transformers import StaticCache

        self.model, self.mode, self.device = model, mode, device
        self.batch_size = batch_size
        self.cache: Any = None
        self._graph: Any = None
        if self.mode == "eager":
            return
        length = input_len + output_len
        self.cache = StaticCache(config=model.config, max_cache_len=length)
        if not all(hasattr(layer, "cumulative_length") for layer in self.cache.layers):
            import transformers

            raise ModelError(
                "E_ENGINE_MISSING",
                "transformers %s has no cache that mode %s can use" % (transformers.__version__, mode),
                "Its StaticCache does not keep the position on the device.",
                "Update it: python -m pip install -U transformers – or use mode eager.",
            )
        self._replace_windows(length)
        self._token = torch.zeros(batch_size, 1, dtype=torch.long, device=device)
        self._position = torch.full((1, 1), input_len, dtype=torch.long, device=device)
        self._columns = torch.arange(length, device=device)
        self._additive = attn == "eager"
        self._step = torch.compile(self._static_step, dynamic=False) if self.mode == "compile" else self._static_step

    def _replace_windows(self, length: int) -> None:
        """A layer with a window counts its tokens on the host, which a CUDA graph cannot capture. A window at least
        as long as the sequence has no effect, so such a layer is replaced by one without a window.
        """
        from transformers.cache_utils import StaticLayer

        for index, layer in enumerate(self.cache.layers):
            if not getattr(layer, "is_sliding", False):
                continue
            if layer.max_cache_len < length:
                raise ModelError(
                    "E_LENGTHS",
                    "mode %s cannot run %d tokens through a window of %d" % (self.mode, length, layer.max_cache_len),
                    "Its graph is captured once, but a full window needs other operations than one that is not full.",
                    "Use mode eager, or lengths that fit into the window.",
                )
            self.cache.layers[index] = StaticLayer(max_cache_len=length)

    def prefill(self, prompt: Any) -> Any:
        """[batch, input_len] token ids -> [batch, vocab] logits of the next token."""
        if self.mode == "eager":
            outputs = self.model(input_ids=prompt, use_cache=True, logits_to_keep=1)
            self.cache = outputs.past_key_values
        else:
            self.cache.reset()
            self._position.fill_(prompt.shape[1])
            outputs = self.model(input_ids=prompt, past_key_values=self.cache, use_cache=True, logits_to_keep=1)
        return outputs.logits[:, -1]

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

    def free_state(self) -> None:
        """Frees the state that each iteration creates again."""
        if self.mode == "eager":
            self.cache = None

    def _static_step(self) -> Any:
        import torch

        mask = (self._columns <= self._position).view(1, 1, 1, -1).expand(self.batch_size, 1, 1, -1)
        if self._additive:
            dtype = self.model.dtype
            mask = torch.where(mask, torch.zeros((), dtype=dtype, device=mask.device), torch.finfo(dtype).min)
        outputs = self.model(
            input_ids=self._token,
            attention_mask=mask,
            position_ids=self._position.expand(self.batch_size, 1),
            past_key_values=self.cache,
            use_cache=True,
        )
        return outputs.logits[:, -1]

    def _capture(self) -> None:
        """Captures one decode step. Its warm-up steps advance the cache, which is reset afterwards."""
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
