"""Programs that use Hugging Face transformers: one of every kind in stock_kinds.py and compiled.py.

The programs mark no stages. inferscope's hooks (python/inferscope_probe) mark them, as under `inferscope run`. Weights are random, and families and
sizes come from a seed. `generated.json` lists the programs of both halves, like those of generated.py.
"""

import importlib
import random
from typing import Any, Dict, List

import combined
import compiled
from case import Case
from stock_kinds import DECODES, FAMILIES, KINDS, PREFILLS, Kind, Stock

SEEDS = {"stock-development": 1, "stock-earlier": 12, "stock-validation": 14, "stock-combined": 15}
"""Seeds 2 to 9, 11 and 12 were used for validation before, until their results were inspected."""
PREFIXES = {"stock-development": "sd", "stock-earlier": "sh", "stock-validation": "sk", "stock-combined": "sl"}
LIMIT_S = 150
ALL_KINDS = KINDS + compiled.KINDS


def programs(half: str) -> List[Dict[str, Any]]:
    """One program of each kind, or of each pair of combined.py. -> entries like those of generated.py"""
    entries_of_half = []
    pairs = half == "stock-combined"
    for index, kinds in enumerate(combined.PAIRS if pairs else [(kind.id,) for kind in ALL_KINDS]):
        dice, first = random.Random(SEEDS[half] * 1000 + index), by_id()[kinds[0]]
        sizes = combined.PAIRS[kinds][1] if pairs else first.sizes
        chosen = {name: dice.choice(values) for name, values in {"vocab": [32000, 50304, 128256], **sizes}.items()}
        chosen["family"] = dice.choice(first.families or FAMILIES)
        name = "%s_%02d_%s" % (PREFIXES[half], index, "_".join(kinds))
        entries_of_half.append({"id": name, "half": half, "kinds": list(kinds), "chosen": chosen})
    return entries_of_half


def by_id() -> Dict[str, Kind]:
    return {kind.id: kind for kind in ALL_KINDS}


def prepare(entry: Dict[str, Any], variant: str, device: str) -> Case:
    kind, chosen = by_id()[entry["kinds"][0]], dict(entry["chosen"])
    if device == "cpu":
        chosen.update(hidden=64, vocab=128, batch=min(chosen["batch"], 4), length=16)
    make = kind.prepare if len(entry["kinds"]) == 1 else combined.PAIRS[entry["kinds"][0], entry["kinds"][1]][0]
    work = make(Stock(variant=variant, device=device, **chosen))
    return Case(kind.stage, DECODES if kind.stage == "decode" else PREFILLS, whole=lambda mark: work(), more={"hooked": True})


def import_libraries() -> None:
    """Called before a child process per program is forked, which then need not import them again."""
    import accelerate  # noqa: F401
    import peft  # noqa: F401
    from transformers import AutoModelForCausalLM, BertModel, StaticCache  # noqa: F401

    for family in (*FAMILIES, "bert", "mixtral"):
        importlib.import_module("transformers.models.%s.modeling_%s" % (family, family))


def entries() -> Dict[str, Dict[str, Any]]:
    return {program["id"]: program for half in SEEDS for program in programs(half)}
