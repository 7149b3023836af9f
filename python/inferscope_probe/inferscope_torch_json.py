"""Repairs invalid JSON in torch's own export of a trace. Standard library only."""

import json
import re
from typing import IO, Iterator

#     "ph": "X", "cat": "python_function", "name": "anyio/_lazyimport.py(0):     """", "pid": 4965, "tid": 4965,
# Matches names that hold a quote or a backslash, and nothing of other lines.
_CALL = re.compile(rb'("cat": "python_function", "name": ")([^"\\\n]*["\\][^\n]*?)(", "pid": \d+, "tid": \d+,\r?\n)')
_BLOCK = 4 << 20


def repaired(lines: bytes) -> bytes:
    """Complete lines of a trace; names of Python functions are written without escapes, including those with a quote
    (torch 2.11).
    """
    return _CALL.sub(_escaped, lines)


def repaired_blocks(source: IO[bytes]) -> Iterator[bytes]:
    """A trace in blocks of complete lines: one line at a time takes minutes per GB."""
    while True:
        block = source.read(_BLOCK)
        if not block:
            return
        yield repaired(block + source.readline())


def _escaped(call: "re.Match[bytes]") -> bytes:
    try:
        json.loads(b'"' + call[2] + b'"')
        return call[0]
    except ValueError:
        return call[1] + json.dumps(call[2].decode("utf-8", "replace"))[1:-1].encode() + call[3]
