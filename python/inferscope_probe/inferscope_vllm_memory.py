"""The memory of vLLM's processes for `inferscope memory`: the workers' reports, and the memory of other processes."""

import os
import sys
from typing import Any, Dict, List

from inferscope_container import process_tree
from inferscope_record import Recorder
from inferscope_resident import read_memory_field

EXTENSION = "inferscope_vllm_worker.MemoryExtension"


class WorkerMemory:
    """Asks the workers of an LLM and writes their answers as `memory` lines, each with the worker's rank and process.
    """

    def __init__(self, records: Recorder) -> None:
        self.records = records

    def options(self, options: Dict[str, Any], fields: Dict[str, Any]) -> Dict[str, Any]:
        """Engine arguments that load the extension into the workers; none if this vLLM, its executor or the user's own
        extension does not allow it.
        """
        accepts_extension = str(options.get("distributed_executor_backend") or "mp") in ("mp", "uni")
        if "worker_extension_cls" not in fields or options.get("worker_extension_cls") or not accepts_extension:
            return {}
        folder = os.path.dirname(os.path.abspath(__file__))
        paths = [folder] + [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        return {"worker_extension_cls": EXTENSION}

    def record(self, llm: Any, stage: str) -> None:
        """If vLLM does not answer, its log is the only source; the run does not fail."""
        try:
            workers_memory: List[Dict[str, Any]] = llm.collective_rpc("inferscope_memory", timeout=60)
        except Exception as error:
            sys.stderr.write("inferscope: the workers do not report their memory: %s\n" % error)
            return
        for worker in workers_memory:
            for kind, count, device, source in worker["lines"]:
                what, _, detail = kind.partition(":")
                name = "%s:%s" % (what, stage) + (":" + detail if detail else "")
                self.records.add_line(
                    "memory", None, rank=worker["rank"], pid=worker["pid"], device=device, kind=name, bytes=count,
                    point=None, source=source,
                )
        workers = {worker["pid"] for worker in workers_memory}
        for pid in sorted(process_tree(os.getpid()) - workers):
            resident_bytes = read_memory_field("VmRSS", pid)
            if resident_bytes is not None:
                name = "rss_other:%s:%s" % (stage, process_name(pid))
                self.records.add_line(
                    "memory", None, pid=pid, device=None, kind=name, bytes=resident_bytes, point=None,
                    source="/proc/<pid>/status VmRSS",
                )
        self.records.flush()


def process_name(pid: int) -> str:
    """The name that vLLM gives its processes (VLLM::EngineCore), else the program's name."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            words = [word for word in file.read().decode("utf-8", "replace").split("\0") if word]
    except OSError:
        words = []
    if words and words[0].startswith("VLLM::"):
        return words[0].replace("VLLM::", "").strip()
    return "front end" if pid == os.getpid() else "helper"
