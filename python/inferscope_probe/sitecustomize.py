"""Runs at the start of every Python process that has this folder on PYTHONPATH (`inferscope run`).

Arms the torch probe where INFERSCOPE_TORCH_TRACE is set (--evaluator torch), and the stage marks of vLLM, SGLang and PyTorch
programs, and the samples of the engines' queues, where INFERSCOPE_EVALUATOR is set, then runs the sitecustomize that would have
run without this one. Nothing here may break the program.
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
            import inferscope_queue
            import inferscope_sglang
            import inferscope_vllm_ranges

            inferscope_vllm_ranges.watch_workers()
            inferscope_sglang.watch_runners()
            inferscope_queue.watch_queues()
            inferscope_hooks.arm()
    except Exception as error:  # the program continues without a trace
        sys.stderr.write("inferscope: the probe could not be set up: %r\n" % (error,))


def _run_other_sitecustomize() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    other_folders = [path for path in sys.path if os.path.abspath(path or ".") != _FOLDER]
    spec = PathFinder.find_spec("sitecustomize", other_folders)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_arm()
_run_other_sitecustomize()
