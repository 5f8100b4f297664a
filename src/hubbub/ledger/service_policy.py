"""The section `[service]` of a policy file: what analysts of the service are told when, and how much each may ask."""

from __future__ import annotations

import ipaddress
import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final
from urllib.parse import urlsplit

from hubbub.addresses import is_address, names_a_table
from hubbub.errors import ParameterError, PolicyError
from hubbub.file_formats import kind_of_file
from hubbub.ledger.budget import parse_epsilon
from hubbub.ledger.policy_values import PolicyValues

__all__ = [
    "OidcPolicy",
    "ServicePolicy",
    "is_found",
    "is_safe_address",
    "limit_or_auto",
    "own_seconds",
    "read_service",
    "rows_kept",
    "seconds",
]

_LEAST: Final = {"answer_time": 0.1, "tick": 0.01, "checks_a_second": 0.01, "logins_a_minute": 1, "longest_waiting": 1}


@dataclass(frozen=True)
class OidcPolicy:
    """A provider of OpenID Connect by which people may log in.

    issuer: its address, as it stands in its tokens. client_id: what the service is called there. secret_in: the
    variable of the environment that holds the client's secret; None for a client that has none. name: what pages call
    it.
    """

    issuer: str
    client_id: str
    secret_in: str | None = None
    name: str = "your organisation"

    def secret(self) -> str | None:
        """The client's secret.

        Raises PolicyError where the variable is not set.
        """
        if self.secret_in is None:
            return None
        if not os.environ.get(self.secret_in):
            raise PolicyError(
                f"[service.oidc] reads the client's secret from the variable {self.secret_in}, which is not set where "
                "the service runs."
            )
        return os.environ[self.secret_in]


@dataclass(frozen=True)
class ServicePolicy:
    """What the service goes by; Python and the command line obey the limits of a question too.

    answer_time: seconds until an answer, for each table that does not say; of a question about several, their sum.
    tick: answers leave at whole multiples of so many seconds. lanes: how many questions run at once. shared_answers:
    whether analysts see and reuse each other's stored answers. max_aggregates: how many aggregates a question may have;
    max_answer_groups: how many groups.
    memory: MiB that a runner's engine may use. checks_a_second, checks_at_once: of one person. logins_a_minute: tries
    for one name. most_waiting, longest_waiting: how many questions of one analyst wait at once, of how many seconds in
    all. ask_steward_above: a question at more than this epsilon waits for a steward's yes. public_url: where the pages
    are, for links. oidc: by whom people may log in, beside their passphrases.
    """

    answer_time: float = 5.0
    tick: float = 0.1
    lanes: int = 1
    shared_answers: bool = True
    max_aggregates: int | None = None
    max_answer_groups: int | None = None
    memory: int = 4096
    checks_a_second: float = 5.0
    checks_at_once: int = 20
    logins_a_minute: float = 5.0
    most_waiting: int = 20
    longest_waiting: float = 600.0
    ask_steward_above: Fraction | None = None
    public_url: str = ""
    oidc: OidcPolicy | None = None


def read_service(reader: PolicyValues, section: dict[str, Any]) -> ServicePolicy:
    """The section; what it does not say is the default."""
    default, above = ServicePolicy(), section.get("ask_steward_above")

    def length(name: str) -> float:
        return seconds(reader, ("service", name), section.get(name, getattr(default, name)))

    def count(name: str) -> int:
        return reader.limit(("service", name), section.get(name)) or int(getattr(default, name))

    reader.known(("service",), section, tuple(ServicePolicy.__dataclass_fields__))
    return ServicePolicy(
        answer_time=length("answer_time"),
        tick=length("tick"),
        lanes=count("lanes"),
        shared_answers=reader.flag(("service", "shared_answers"), section.get("shared_answers", True)),
        max_aggregates=reader.limit(("service", "max_aggregates"), section.get("max_aggregates")),
        max_answer_groups=reader.limit(("service", "max_answer_groups"), section.get("max_answer_groups")),
        memory=count("memory"),
        checks_a_second=length("checks_a_second"),
        checks_at_once=count("checks_at_once"),
        logins_a_minute=length("logins_a_minute"),
        most_waiting=count("most_waiting"),
        longest_waiting=length("longest_waiting"),
        ask_steward_above=None if above is None else _amount(reader, ("service", "ask_steward_above"), above),
        public_url=_url(reader, section.get("public_url")),
        oidc=_oidc(reader, section),
    )


def is_safe_address(url: object) -> bool:
    """Whether an address is read by nobody on the way: of https, or of this machine; with nothing that is sent along.

    >>> is_safe_address("https://login.example.org/clinic"), is_safe_address("http://login.example.org")
    (True, False)
    """
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_here(host))


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _oidc(reader: PolicyValues, section: dict[str, Any]) -> OidcPolicy | None:
    at = ("service", "oidc")
    if "oidc" not in section:
        return None
    said = reader.section(at, section["oidc"])
    reader.known(at, said, ("issuer", "client_id", "client_secret", "name"), required=("issuer", "client_id"))
    issuer, secret = said["issuer"], reader.text((*at, "client_secret"), said.get("client_secret"))
    if not is_safe_address(issuer) or urlsplit(issuer).query:
        wrong = "found another; allowed: the provider's https:// address, as it stands in its tokens"
        raise reader.wrong((*at, "issuer"), wrong)
    if secret is not None:
        if not secret.startswith("env:"):
            raise reader.wrong((*at, "client_secret"), "a secret does not stand in a policy; allowed: env:NAME")
        reader.variable((*at, "client_secret"), secret)
    if not section.get("public_url"):
        raise reader.wrong(at, 'the provider sends people back: say where to, as public_url = "https://..."')
    return OidcPolicy(
        issuer=issuer,
        client_id=reader.text((*at, "client_id"), said["client_id"]) or "",
        secret_in=None if secret is None else secret.removeprefix("env:"),
        name=reader.text((*at, "name"), said.get("name")) or OidcPolicy.name,
    )


def is_found(reader: PolicyValues, at: tuple[str, ...], low: object, high: object) -> bool:
    """Whether a range says that its upper end is found: of values of 0 or more."""
    if low == high == "auto":
        raise reader.wrong(at, 'a search finds one bound, above 0: [0, "auto"], or buy both ends (suggest_bounds)')
    return high == "auto" and isinstance(low, int | float) and not isinstance(low, bool) and 0 <= low < math.inf


def limit_or_auto(reader: PolicyValues, at: tuple[str, ...], value: object) -> Any:
    """A whole number, or "auto": each question finds it in its own charge."""
    return value if isinstance(value, str) and value == "auto" else reader.limit(at, value)


def rows_kept(reader: PolicyValues, at: tuple[str, ...], section: dict[str, Any]) -> int | None:
    """At most so many rows of one unit, in a copy of Parquet files that name their units themselves."""
    kept: int | None = reader.limit(at, section.get("rows_kept"))
    if kept is None:
        return None
    source = str(section["source"])
    elsewhere = "://" in source or is_address(source) or names_a_table(source)
    if elsewhere or "csv" in section or kind_of_file(source) not in ("parquet", None):
        raise reader.wrong(at, "a copy is made of Parquet files; write the table to one, or keep so few rows there")
    if "through" in section or "unit" not in section:
        raise reader.wrong(at, "a copy is made of a table whose own column is the unit; write that column into it")
    return kept


def _amount(reader: PolicyValues, at: tuple[str, ...], value: object) -> Fraction:
    try:
        return parse_epsilon(value)  # type: ignore[arg-type]
    except ParameterError as error:
        raise reader.wrong(at, str(error)) from None


def _url(reader: PolicyValues, value: object) -> str:
    at = ("service", "public_url")
    url = reader.text(at, value) or ""
    if url and not url.startswith(("https://", "http://127.0.0.1", "http://localhost", "http://[::1]")):
        raise reader.wrong(at, 'found another; allowed: an address such as "https://data.example.org"')
    return url


def own_seconds(reader: PolicyValues, at: tuple[str, ...], section: dict[str, Any]) -> float | None:
    """A table's own number of seconds, where it says one."""
    return seconds(reader, at, section[at[-1]]) if at[-1] in section else None


def seconds(reader: PolicyValues, at: tuple[str, ...], value: object) -> float:
    """A number that is at least what its key allows, and at most an hour's seconds."""
    least, unit = _LEAST[at[-1]], "" if "_a_" in at[-1] else " of seconds"
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 3600:
        raise reader.wrong(at, f"found {value!r}; allowed: a number{unit}, from {least:g} to 3600")
    return float(value)
