"""Repairs invalid JSON in torch's own export of a trace. Standard library only."""

import json
import re
from typing import IO, Iterator

# A line of a trace: "ph": "X", "cat": "python_function", "name": "anyio/_lazyimport.py(0):     """", "pid": 4965, "tid": 4965,
# Matches lines with a quote or a backslash in the name, and no others.
_UNESCAPED_NAME = re.compile(rb'("cat": "python_function", "name": ")([^"\\\n]*["\\][^\n]*?)(", "pid": \d+, "tid": \d+,\r?\n)')
_BLOCK = 4 << 20


def repair_lines(lines: bytes) -> bytes:
    """Escapes the names of Python functions in complete lines of a trace: torch 2.11 writes quotes and backslashes as they
    are.
    """
    return _UNESCAPED_NAME.sub(_escape_name, lines)


def repair_blocks(source: IO[bytes]) -> Iterator[bytes]:
    """Repairs a trace in blocks of complete lines: one line at a time takes minutes per GB."""
    while True:
        block = source.read(_BLOCK)
        if not block:
            return
        yield repair_lines(block + source.readline())


def _escape_name(call: "re.Match[bytes]") -> bytes:
    try:
        json.loads(b'"' + call[2] + b'"')
        return call[0]
    except ValueError:
        return call[1] + json.dumps(call[2].decode("utf-8", "replace"))[1:-1].encode() + call[3]
