"""Main memory of a process, as Linux reports it. Standard library only."""

from typing import Optional, Union


def read_memory_field(field: str, pid: Union[int, str] = "self") -> Optional[int]:
    """VmRSS, VmHWM or another field of /proc/<pid>/status, in bytes. None without the process or without /proc."""
    try:
        with open("/proc/%s/status" % pid, encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
