"""Calls back after modules were executed, in programs without changes. Standard library only."""

import importlib.abc
import importlib.util
import os
import sys
from typing import Any, Callable, Dict, List


def warn(text: str) -> None:
    sys.stderr.write("inferscope: %s\n" % text)


def report_lost(text: str) -> None:
    """Reports what a trace lacks on stderr and in the execution's notes, which `inferscope run` reads, because nobody
    may see the stderr of child processes.
    """
    warn(text)
    folder = os.environ.get("INFERSCOPE_TORCH_TRACE")
    if not folder:
        return
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "notes.txt"), "a", encoding="utf-8") as notes:
            notes.write(text.replace("\n", " ") + "\n")
    except OSError:
        pass


def guarded(action: Callable[..., Any], what: str) -> None:
    """Runs `action`; an error becomes one line on stderr and never stops the program."""
    try:
        action()
    except Exception as error:
        warn("probe: %s failed, the program goes on: %s" % (what, str(error).split("\n")[0] or repr(error)))


class AfterImport(importlib.abc.MetaPathFinder):
    """The module's own loader stays in place. One finder for all callers: two would call each other endlessly."""

    def __init__(self) -> None:
        self._callbacks: Dict[str, List[Callable[[Any], None]]] = {}

    def add(self, name: str, callback: Callable[[Any], None]) -> None:
        self._callbacks.setdefault(name, []).append(callback)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self._callbacks:
            return None
        spec = None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec = find(fullname, path, target)
                if spec is not None:
                    break
        loader: Any = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module: Any) -> None:
            del loader.exec_module
            execute(module)
            # Not earlier: importlib.util.find_spec only checks whether a module exists and does not execute it.
            for callback in self._callbacks.pop(fullname, []):
                guarded(lambda run=callback: run(module), "watching %s" % fullname)

        loader.exec_module = exec_module
        return spec


_finder = AfterImport()


def after_import(callbacks: Dict[str, Callable[[Any], None]]) -> None:
    """Calls each callback with its module: at once if it is already imported, else after its import."""
    for name, callback in callbacks.items():
        if name in sys.modules:
            guarded(lambda run=callback, name=name: run(sys.modules[name]), "watching %s" % name)
        else:
            _finder.add(name, callback)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
