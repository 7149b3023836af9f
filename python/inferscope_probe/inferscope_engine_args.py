"""Engine arguments of the transformers engine (--engine-arg key=value), checked."""

import difflib
from typing import Any, Dict

from inferscope_decoder import ATTENTIONS, MODES, ModelError

# Values of every engine argument, the default first; None: a number of at least 1.
ENGINE_ARGS: Dict[str, Any] = {
    "mode": MODES,
    "attn": ATTENTIONS,
    "sync": ("step", "end"),
    "tf32": ("false", "true"),
    "threads": None,
    "tensor_parallel_size": None,
}
UNSUPPORTED = {
    "quantization": "Every quantization of transformers needs a package of its own; a model that was published quantized "
    "runs with --weights trained where its package is installed.",
}


def usage_error(what: str, why: str, fix: str) -> ModelError:
    return ModelError("E_USAGE", what, why, fix)


def check_engine_args(arguments: Dict[str, str]) -> Dict[str, Any]:
    """-> engine arguments with their defaults; the two that are numbers are int or None"""
    for key, value in arguments.items():
        argument = "--engine-arg %s=%s" % (key, value)
        if key in UNSUPPORTED:
            raise usage_error("the transformers engine has no %s" % argument, UNSUPPORTED[key], "Leave it out.")
        if key not in ENGINE_ARGS:
            closest = (difflib.get_close_matches(key, ENGINE_ARGS, 1, 0) or ["mode"])[0]
            raise usage_error(
                "unknown %s" % argument,
                "The transformers engine takes %s." % ", ".join(ENGINE_ARGS),
                "Did you mean --engine-arg %s=%s?" % (closest, (ENGINE_ARGS[closest] or ("4",))[0]),
            )
        values = ENGINE_ARGS[key]
        if values is None:
            if not value.isdigit() or int(value) < 1:
                raise usage_error("%s is not a number of at least 1" % argument, "It is a number of %s." % ("threads" if key == "threads" else "GPUs"), "Type: --engine-arg %s=4" % key)
        elif value not in values:
            closest = (difflib.get_close_matches(value, values, 1, 0) or [values[0]])[0]
            raise usage_error(
                argument + " is not known", "%s is one of %s." % (key, ", ".join(values)), "Did you mean --engine-arg %s=%s?" % (key, closest)
            )
    chosen = {key: values[0] if values else None for key, values in ENGINE_ARGS.items()}
    chosen.update(arguments)
    for key in ("threads", "tensor_parallel_size"):
        chosen[key] = int(chosen[key]) if chosen[key] else None
    return chosen
