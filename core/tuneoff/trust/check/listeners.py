"""Which processes listen on which TCP addresses: Linux's /proc, read by hand."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LISTEN = "0A"


@dataclass(frozen=True)
class ListeningSocket:
    """A listening socket; `inode` is its identity for as long as it is open."""

    inode: str
    address: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        address = ipaddress.ip_address(self.address)
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def all_listeners() -> set[ListeningSocket]:
    """Return every listening socket of this machine (of this network namespace)."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:] if Path(table).exists() else ():
            fields = line.split()
            if fields[3] == LISTEN:
                address, _, port = fields[1].partition(":")
                found.add(ListeningSocket(inode=fields[9], address=_decoded(address), port=int(port, 16)))
    return found


def listeners_of(pids: Iterable[int]) -> set[ListeningSocket]:
    """Return the listening sockets that these processes hold."""
    held = set()
    for pid in pids:
        try:
            for entry in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(entry.path)
                if target.startswith("socket:["):
                    held.add(target[8:-1])
        except OSError:  # it ended meanwhile
            continue
    return {listener for listener in all_listeners() if listener.inode in held}


def _decoded(address: str) -> str:
    """Return an address of /proc/net: words of four bytes, each in the order of a little-endian machine."""
    words = [bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8)]
    return str(ipaddress.ip_address(b"".join(words)))
