"""Runs at the start of every Python process that has this folder on PYTHONPATH (`inferscope run`).

Arms the torch probe where INFERSCOPE_TORCH_TRACE asks for it (--evaluator torch), and the stage marks of vLLM's workers
and of programs on transformers where INFERSCOPE_EVALUATOR is set, then hands over to the sitecustomize that would have run without us. Nothing here may
break the program.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _arm() -> None:
    try:
        if os.environ.get("INFERSCOPE_TORCH_TRACE"):
            import inferscope_torch

            inferscope_torch.arm()
        if os.environ.get("INFERSCOPE_EVALUATOR"):
            import inferscope_hooks
            import inferscope_vllm_ranges

            inferscope_vllm_ranges.watch_workers()
            inferscope_hooks.arm()
    except Exception as error:  # the program continues without a trace
        sys.stderr.write("inferscope: the probe could not be set up: %r\n" % (error,))


def _chain() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    others = [path for path in sys.path if os.path.abspath(path or ".") != _FOLDER]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_arm()
_chain()
