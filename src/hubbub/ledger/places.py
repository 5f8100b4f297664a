"""Where sources are, in one spelling each: two that lead to the same rows must not be two budgets.

A place is a text: the path of a file, the address of a database, a table of Spark's catalogue, what a server says of
itself; behind ", table " the table inside it. Ledgers keep places as they were written, older ones in other spellings,
so places are compared by their one form, and files by what the file system says of them now. A copy, and a file that
was moved away, cannot be known again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from hubbub.addresses import OBJECTS, one_host, one_object
from hubbub.file_formats import files_of, several_files

__all__ = ["INSIDE", "files_at", "named_at", "one_address", "one_form", "without_login"]

INSIDE: Final = ", table "
"""Between a place and the table inside it."""
_SCHEME: Final = "postgresql://"


def without_login(address: str) -> str:
    """An address without the name of who reads it.

    >>> without_login("postgresql://ada@db.example/clinic")
    'postgresql://db.example/clinic'
    """
    return re.sub(r"//[^/@]*@", "//", address)


def one_address(address: str) -> str:
    """An address without its login, in one spelling: hosts, port and database each in their one place.

    >>> one_address("postgresql://ada@127.0.0.1:5432/clinic") == one_address("postgresql://bob@LOCALHOST/clinic")
    True
    >>> one_address("postgresql:///%63linic?port=5432&host=h&user=bob")
    'postgresql://h/clinic'
    """
    match = re.fullmatch(r"postgresql://([^/?]*)(?:/([^?]*))?(?:\?(.*))?", without_login(address), re.DOTALL)
    if match is None:
        return without_login(address)
    said: dict[str, str] = {}
    for part in (match[3] or "").split("&"):
        name, _, value = part.partition("=")
        said[name] = unquote(value)
    written = [re.fullmatch(r"(\[[^]]*\]|[^:]*)(?::(.*))?", host) for host in match[1].split(",")]
    pairs = [(unquote(host[1]), host[2] or "") for host in written if host is not None]
    hosts, ports = [host for host, _ in pairs], [port for _, port in pairs]
    if said.get("host"):
        hosts = said["host"].split(",")
    if said.get("port"):
        ports = said["port"].split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    shown = [_one_host(host, port) for host, port in zip(hosts, ports, strict=False)]
    base = said.get("dbname") or unquote(match[2] or "")
    rest = "&".join(f"{name}={said[name]}" for name in ("hostaddr", "service") if said.get(name))
    return f"{_SCHEME}{','.join(dict.fromkeys(shown))}/{base}{'?' if rest else ''}{rest}"


def _one_host(host: str, port: str) -> str:
    """A host with its port, if that is not the usual one; a socket's folder as it is."""
    if not host.startswith("/"):
        host = one_host(host)
    return f"{host}:{port}" if port not in ("", "5432") else host


def one_form(place: str) -> str:
    """The form under which places are compared.

    >>> one_form("postgresql://h/%63linic, table visits") == one_form("postgresql://h:5432/clinic, table visits")
    True
    >>> one_form("/rows/clinic.duckdb, table VISITS")
    '/rows/clinic.duckdb, table visits'
    """
    main, inside, inner = _parts(place)
    if main.startswith(_SCHEME):
        main = one_address(main)
    elif main.startswith(OBJECTS):
        main, inside, inner = _parts(one_object(place))
    if main.startswith(("/", *OBJECTS)):
        inner = inner.lower()  # names in DuckDB have no case
    return f"{main}{inside}{inner}"


def named_at(place: str) -> set[Hashable]:
    """What a place names now, by its device, its number and the table inside: two paths to one file have it in common.

    Empty for a place that is not a file or folder, or is gone.
    """
    return {number for main, inner in _readings(place) for number in _number(main, inner)}


def files_at(place: str) -> set[Hashable]:
    """Each file that a place names now, by its device, its number and the table inside: of a folder and a pattern all.

    Empty for a place that is not a file, or is gone.
    """
    numbers: set[Hashable] = set()
    for main, inner in _readings(place):
        with suppress(OSError, ValueError):
            files = [(str(one), "") for one in files_of(main)] if several_files(main) else [(main, inner)]
            numbers.update(number for one in files for number in _number(*one))
    return numbers


def _number(file: str, inner: str) -> list[Hashable]:
    with suppress(OSError, ValueError):
        at = os.stat(file)
        return [(at.st_dev, at.st_ino, inner)]
    return []


def _readings(place: str) -> list[tuple[str, str]]:
    """The file of a place and the table inside it; the whole place may be the file's name, too."""
    main, _, inner = _parts(place)
    return [(main, inner.lower()), *([(place, "")] if main != place else [])] if place.startswith("/") else []


def _parts(place: str) -> tuple[str, str, str]:
    main, inside, inner = place.rpartition(INSIDE)
    return (main, inside, inner) if inside else (place, "", "")
