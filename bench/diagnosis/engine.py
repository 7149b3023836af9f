"""Programs on vLLM 0.26 with one mistake each, and their repaired twins: a Llama of about 1.5 B parameters with random weights.

Fault and twin are two engines in one process, which run alternately, because eager steps differ by 40 % between processes. Each engine
takes 0.3 of the GPU's memory and a minute to start, so each program is captured separately (`capture.sh OUT ID`). The programs mark no
stages; inferscope marks those of vLLM's workers, as under `inferscope run`.
"""

import json
import os
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from case import Case, Planted, Sized, run, unmarked

SEEDS = {"engine-validation": 3, "engine-combined": 4}
"""Seeds 1 and 2 were used for validation before, until their results were inspected."""
PREFIXES = {"engine-validation": "ew", "engine-combined": "ef"}
LIMIT_S = 240
NEW = 32
"""Decode steps of a request; programs about the prefill have none."""
Work = Callable[[], Any]


@dataclass
class Engine(Sized):
    """One program."""

    def llm(self, **more: Any) -> Any:
        from vllm import LLM

        folder = tempfile.mkdtemp(prefix="diagnosis-llama-")
        config = dict(
            architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=self.vocab, hidden_size=self.hidden,
            intermediate_size=self.hidden * 11 // 4, num_hidden_layers=self.layers, num_attention_heads=self.hidden // 128,
            num_key_value_heads=8, head_dim=128, max_position_embeddings=4096, rms_norm_eps=1e-5, hidden_act="silu", rope_theta=500000.0,
            bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, torch_dtype="bfloat16",
        )
        Path(folder, "config.json").write_text(json.dumps(config))
        options = dict(
            dtype="bfloat16", load_format="dummy", skip_tokenizer_init=True, max_model_len=2048, max_num_seqs=64, max_num_batched_tokens=8192,
            # Prompts are the same in every run.
            enable_prefix_caching=False,
            # With a given size of the KV cache, vLLM needs no profiling run to find it.
            gpu_memory_utilization=0.3, kv_cache_memory_bytes=6 << 30,
        )
        return LLM(model=folder, **{**options, **more})

    def prompts(self) -> List[Dict[str, List[int]]]:
        dice = random.Random(self.length)
        return [{"prompt_token_ids": [dice.randrange(3, self.vocab) for _ in range(self.length)]} for _ in range(self.batch)]


def sampling_params(new: int, **more: Any) -> Any:
    from vllm import SamplingParams

    return SamplingParams(temperature=0.0, ignore_eos=True, max_tokens=new, detokenize=False, **more)


@dataclass
class EngineProgram:
    llm: Any
    work: Work
    stages: int
    per: int = 1


def make_program(engine: Engine, new: int, llm: Any, **more: Any) -> EngineProgram:
    """A program that calls generate. `new`: tokens of a request after its first one."""
    prompts, params = engine.prompts(), sampling_params(new + 1, **more)
    return EngineProgram(llm, lambda: llm.generate(prompts, params, use_tqdm=False), max(1, new))


def eager(engine: Engine) -> EngineProgram:
    return make_program(engine, NEW, engine.llm(enforce_eager=engine.faulty))


def half_precision(engine: Engine) -> EngineProgram:
    return make_program(engine, 0, engine.llm(dtype="float32" if engine.faulty else "bfloat16"))


def few_sequences(engine: Engine) -> EngineProgram:
    """Requests run one after another; a step of the twin decodes all of them."""
    running = 4 if engine.faulty else engine.batch
    made = make_program(engine, NEW, engine.llm(max_num_seqs=running))
    made.stages, made.per = NEW * engine.batch // running, running
    return made


def prompt_logprobs(engine: Engine) -> EngineProgram:
    """The probabilities of all prompt tokens are requested but not used."""
    return make_program(engine, 0, engine.llm(), **(dict(prompt_logprobs=1) if engine.faulty else {}))


def float32_logprobs(engine: Engine) -> EngineProgram:
    return make_program(engine, 0, engine.llm(dtype="float32" if engine.faulty else "bfloat16"), **(dict(prompt_logprobs=1) if engine.faulty else {}))


def eager_texts(engine: Engine) -> EngineProgram:
    return texts(engine, enforce_eager=engine.faulty)


def texts(engine: Engine, **more: Any) -> EngineProgram:
    """A loop over the engine's steps detokenizes all sequences after every step; the twin once at their end."""
    llm, prompts, params = engine.llm(**more), engine.prompts(), sampling_params(NEW + 1)
    words = ["token%d " % token for token in range(engine.vocab)]
    requests = 0

    def work() -> None:
        nonlocal requests
        for prompt in prompts:
            llm.llm_engine.add_request("%d" % requests, dict(prompt), params)
            requests += 1
        while llm.llm_engine.has_unfinished_requests():
            for output in llm.llm_engine.step():
                if engine.faulty or output.finished:
                    ids = [*(output.prompt_token_ids or ()), *output.outputs[0].token_ids]
                    "".join(words[token] for token in ids).split()

    return EngineProgram(llm, work, NEW)


@dataclass
class Kind(Planted):
    prepare: Callable[[Engine], EngineProgram]
    sizes: Dict[str, Any]
    host: bool = False
    true_of_twin: Optional[Dict[str, str]] = None
    issue: Optional[str] = None


github = "https://github.com/"
small = {"hidden": [2048], "layers": [8], "vocab": [32000], "length": [128, 256]}
large = {"hidden": [4096], "layers": [8], "vocab": [32000], "length": [128, 256]}
KINDS = [
    Kind("eager", "decode", "enforce_eager=True; repaired: the default, CUDA graphs", ["launch_bound"], eager, {**small, "batch": [4, 8, 16]}, host=True, issue=github + "scaleapi/llm-engine/pull/851"),
    Kind("few_sequences", "decode", "max_num_seqs=4, 64 requests; repaired: max_num_seqs=64", ["small_batch_memory_bound"], few_sequences, {**large, "batch": [64]}, issue=github + "vllm-project/vllm/issues/6801"),
    Kind("half_precision", "prefill", "dtype='float32'; repaired: bfloat16", ["half_precision"], half_precision, {**small, "batch": [8], "length": [512, 1024]}),
    Kind("prompt_logprobs", "prefill", "prompt_logprobs=1, which are not used; repaired: without", ["prompt_logits"], prompt_logprobs, {**small, "layers": [4], "vocab": [128256], "batch": [8], "length": [512, 1024]}, issue=github + "vllm-project/vllm/issues/5907"),
    Kind("texts", "decode", "a loop over LLMEngine.step() creates the text of all sequences again after every token; repaired: once at their end", ["host_bound"], texts, {**small, "batch": [32, 64], "length": [512]}, host=True, issue=github + "vllm-project/vllm/pull/24174"),
]
BY_ID = {kind.id: kind for kind in KINDS}


# The programs and sizes of two kinds.
PAIRS: Dict[Tuple[str, str], Tuple[Callable[[Engine], EngineProgram], Dict[str, Any]]] = {
    ("eager", "texts"): (eager_texts, {**small, "batch": [32, 64], "length": [512]}),
    ("half_precision", "prompt_logprobs"): (float32_logprobs, {**small, "layers": [4], "vocab": [128256], "batch": [8], "length": [512]}),
}


def programs(half: str) -> List[Dict[str, Any]]:
    """One program of each kind or pair. -> entries like those of generated.py"""
    made = []
    pairs = half == "engine-combined"
    for index, kinds in enumerate(PAIRS if pairs else [(kind.id,) for kind in KINDS]):
        dice = random.Random(SEEDS[half] * 1000 + index)
        chosen = {name: dice.choice(values) for name, values in (PAIRS[kinds][1] if pairs else BY_ID[kinds[0]].sizes).items()}
        made.append({"id": "%s_%02d_%s" % (PREFIXES[half], index, "_".join(kinds)), "half": half, "kinds": list(kinds), "chosen": chosen})
    return made


def prepare(entry: Dict[str, Any], variant: str, device: str) -> Case:
    kind = BY_ID[entry["kinds"][0]]
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    with torch.inference_mode(False):
        make = kind.prepare if len(entry["kinds"]) == 1 else PAIRS[entry["kinds"][0], entry["kinds"][1]][0]
        made = make(Engine(variant=variant, **entry["chosen"]))

    def work() -> None:
        with torch.inference_mode(False):
            made.work()

    return Case(kind.stage, made.stages, whole=lambda mark: work(), more={"engine": made.llm, "hooked": True, "per": made.per})


def record(path: Path, case: Case, device: str) -> None:
    """Lines that inferscope's marks of vLLM's workers record: the program's model and its batches, as if it were the
    only one of this process.
    """
    import inferscope_queue as queue
    import inferscope_vllm_ranges as ranges
    from inferscope_record import Recorder
    from inferscope_vllm_model import record_vllm_model

    os.environ.update(INFERSCOPE_EXECUTION_ID="clean", INFERSCOPE_RECORD=str(path))
    lines = Recorder()
    lines.clock()
    llm_engine = case.more["engine"].llm_engine
    record_vllm_model(
        lines, llm_engine.model_config, name="decoder", device=device, weights="random", version=_version(), tensor_parallel_size=1,
        scheduler=llm_engine.vllm_config.scheduler_config,
    )
    lines.flush()
    ranges._batches, ranges.records_batches = ranges.VllmBatches(), lambda: True
    queue._queue = queue.RecordedQueue()
    try:
        for _ in range(4):
            run(case, unmarked, device)
        ranges._batches.end()
    finally:
        queue._queue.end()
        queue._queue, ranges._batches, ranges.records_batches = None, None, lambda: False


def _version() -> str:
    import vllm

    return str(vllm.__version__)


def entries() -> Dict[str, Dict[str, Any]]:
    return {program["id"]: program for half in SEEDS for program in programs(half)}
