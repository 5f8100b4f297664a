"""Where a database is: a connection string, or the variable of the environment that holds it, and how to show either.

An address may hold a password, so whatever is shown or remembered of one is made here. What does not look like an
address is not shown at all: a password with a slash or a question mark in it must not pass for a host.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from contextlib import suppress
from typing import Any, Final, NoReturn, Self
from urllib.parse import unquote

from hubbub.errors import HubbubError, PolicyError

__all__ = [
    "OBJECTS",
    "SCHEMES",
    "UNREADABLE",
    "Address",
    "ObjectAddress",
    "is_address",
    "kept_address",
    "looks_like_connection",
    "masked",
    "names_a_table",
    "one_host",
    "one_object",
    "raise_alone",
    "read_address",
    "shown_address",
]

ENVIRONMENT: Final = "env:"
UNREADABLE: Final = "postgresql://..."
_SCHEMES: Final = ("postgresql://", "postgres://")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART: Final = r"[^\s/@:?#\"'\\]*"
_ADDRESS: Final = re.compile(
    rf"postgres(?:ql)?://(?:(?P<user>{_PART})(?::{_PART})?@)?"
    rf"(?P<host>(?:\[[0-9A-Fa-f:.]*\]|{_PART})(?::[0-9]*)?(?:,{_PART}(?::[0-9]*)?)*)(?P<base>/{_PART})?"
    r"(?:\?(?P<query>[^@]*))?"
)
# The parameters of libpq that say which database it is, and as whom it is read. A name that is none of them may be a
# password's, mistyped.
_PLACES: Final = ("host", "hostaddr", "port", "dbname", "user", "service", "options", "target_session_attrs")
_VALUE: Final = re.compile(r"[^\s@:?#\"'\\]*")


class Address:
    """A place that is not a file, as a policy names it: `postgresql://...`, `env:NAME` or `spark:NAME`.

    No dataclass: `dataclasses.asdict` and `vars` would open one, and what was written may hold a password. Nothing of
    it changes, so copies are the address itself.

    >>> Address.of("postgresql://ada:secret@db.example/clinic")
    postgresql://ada@db.example/clinic
    """

    __slots__ = ("_written",)

    def __init__(self, written: str) -> None:
        self._written = written

    @classmethod
    def of(cls, written: str) -> Self:
        """The address that was written so."""
        return cls(written)

    @property
    def written(self) -> str:
        """What a connection is made from; shown to nobody."""
        return self._written

    @property
    def shown(self) -> str:
        """What messages call it."""
        return shown_address(self._written)

    @property
    def kept(self) -> str:
        """What a record says of it, and what it is compared by: `kept_address`."""
        return kept_address(self._written)

    @property
    def readable(self) -> bool:
        """Whether what is kept of it tells it from others."""
        return self.kept != UNREADABLE

    def __str__(self) -> str:
        return self.shown

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, Address) or self.kept != other.kept:
            return False
        return self.readable or self._written == other._written

    def __hash__(self) -> int:
        return hash(self.kept)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str:
        raise TypeError("the address of a database may hold a password and cannot be pickled")


def one_host(host: str) -> str:
    """A host in one spelling: this machine by its name, numbers of the net as they are usually written.

    >>> one_host("LOCALHOST."), one_host("127.1"), one_host("[::1]"), one_host("2130706433"), one_host("Db.example")
    ('localhost', 'localhost', 'localhost', 'localhost', 'db.example')
    """
    name = host.lower().removesuffix(".")
    number: ipaddress.IPv4Address | ipaddress.IPv6Address | None = None
    with suppress(ValueError):
        number = ipaddress.IPv6Address(name.removeprefix("[").removesuffix("]").partition("%")[0])
        number = number.ipv4_mapped or number
    if number is None and re.fullmatch(r"[0-9a-fx.]+", name):
        with suppress(OSError):
            number = ipaddress.IPv4Address(socket.inet_aton(name))  # 127.1, 0x7f000001 and 2130706433, too
    if name == "localhost" or name.endswith(".localhost") or (number and (number.is_loopback or not int(number))):
        return "localhost"
    return name if number is None else f"[{number}]" if number.version == 6 else str(number)


_ENDPOINT: Final = "?endpoint_override="
_USUAL: Final = re.compile(r"(?:.*[.])?(?P<of>amazonaws[.]com|googleapis[.]com)")
"""The stores' own servers: buckets have one name on all of them."""


def _server(written: str | None) -> str:
    return f"{_ENDPOINT}{written}" if written else ""


def one_object(place: str) -> str:
    """The text of an object with its server in one spelling, without one that is its store's own, or a usual port.

    >>> one_object("s3://clinic/v.csv?endpoint_override=S3.eu-south-1.amazonaws.com")
    's3://clinic/v.csv'
    >>> one_object("s3://clinic/v.csv?endpoint_override=127.0.0.1:9000")
    's3://clinic/v.csv?endpoint_override=localhost:9000'
    >>> one_object("s3://clinic/v.csv?endpoint_override=storage.googleapis.com:443")
    'gs://clinic/v.csv'
    """
    at, _, rest = place.partition(_ENDPOINT)
    server, inside, inner = rest.partition(", table ")  # no server has a comma
    match = re.fullmatch(r"(\[[^]]*\]|[^:]*|.*:.*:.*?)(?::(\d*))?", server)
    if not server or match is None:
        return place
    host, port = one_host(match[1]), (match[2] or "").lstrip("0")
    usual = _USUAL.fullmatch(host) if port in ("", "80", "443") else None
    if usual is None:
        return at + _server(host if port in ("", "80", "443") else f"{host}:{port}") + inside + inner
    return f"{'s3' if usual['of'].startswith('amazonaws') else 'gs'}://{at.partition('://')[2]}{inside}{inner}"


OBJECTS: Final = ("s3://", "gs://")
_OBJECT: Final = re.compile(
    r"(?P<scheme>s3|gs)://(?:(?P<user>anonymous|env:[A-Za-z_][A-Za-z0-9_]*)@)?"
    r"(?P<bucket>[A-Za-z0-9][A-Za-z0-9._-]{1,221})/(?P<key>[^\x00-\x1f@]+)"
)
_SETTINGS: Final = {
    "s3": {"region": r"[a-z0-9-]{1,40}", "endpoint_override": r"[A-Za-z0-9.:\[\]-]{1,200}", "scheme": r"https?"},
    "gs": {"endpoint_override": r"[A-Za-z0-9.:\[\]-]{1,200}", "scheme": r"https?"},
}


class ObjectAddress(Address):
    """Files in an object store: `s3://bucket/visits.parquet`, or `gs://bucket/visits/`, with a slash, for a folder.

    Keys are found where the store's own tools find them, or stand in a variable: `s3://env:NAME@bucket/...`, which
    holds ACCESS_KEY:SECRET_KEY. Behind a question mark may stand region, endpoint_override and scheme.

    >>> ObjectAddress.of("s3://env:KEYS@clinic/visits.parquet?region=eu-south-1")
    s3://clinic/visits.parquet
    """

    __slots__ = ("bucket", "key", "options", "scheme", "user")

    def __init__(self, written: str) -> None:
        super().__init__(written)
        place, _, settings = written.partition("?") if "=" in written.partition("?")[2] else (written, "", "")
        match = _OBJECT.fullmatch(place)
        if match is None:
            raise PolicyError(
                "the address of an object is written s3://BUCKET/KEY or gs://BUCKET/KEY; keys stand in a variable that "
                "holds ACCESS_KEY:SECRET_KEY, as in s3://env:NAME@BUCKET/KEY. What was found is not shown."
            )
        self.scheme, self.user, self.bucket, self.key = match.groups()
        if self.scheme == "gs" and self.user not in (None, "anonymous"):
            raise PolicyError("gs:// takes its keys from the variable GOOGLE_APPLICATION_CREDENTIALS: leave env: out.")
        if {".", ".."} & set(self.key.split("/")):
            raise PolicyError(f"{self.shown}: a part of its key is . or .., which stores read in more ways than one.")
        self.options = dict(part.partition("=")[::2] for part in settings.split("&") if part)
        for name, value in self.options.items():
            allowed = _SETTINGS[self.scheme]
            if name not in allowed or not re.fullmatch(allowed[name], value):
                raise PolicyError(f"behind the ? of {self.shown} may stand {', '.join(allowed)}, and no more.")

    @property
    def path(self) -> str:
        """The bucket and the key."""
        return f"{self.bucket}/{self.key}"

    @property
    def several(self) -> bool:
        """Whether it names a folder, or a pattern."""
        return self.key.endswith("/") or bool(re.search(r"[*?]", self.key))

    @property
    def shown(self) -> str:
        return f"{self.scheme}://{self.path}"

    @property
    def kept(self) -> str:
        """Where it is: the server too, where another than the usual one is named, in one spelling."""
        return one_object(self.shown + _server(self.options.get("endpoint_override")))

    @property
    def around(self) -> tuple[str, str]:
        """What stands before and behind the bucket and the key in `kept`: which store it is."""
        scheme, _, rest = self.kept.partition("://")
        return f"{scheme}://", rest.removeprefix(self.path)

    def keys(self) -> tuple[str, str] | None:
        """The access key and the secret that a variable holds; None where none is named.

        Raises PolicyError where it is not set, or holds something else.
        """
        if self.user is None or self.user == "anonymous":
            return None
        name = self.user.removeprefix("env:")
        access, colon, secret = os.environ.get(name, "").strip().partition(":")
        if not (access and colon and secret):
            raise PolicyError(
                f"the variable {name} of the environment does not hold ACCESS_KEY:SECRET_KEY for {self.shown}. Nothing "
                "was charged."
            )
        return access, secret

    @property
    def about_keys(self) -> str:
        """Where keys are taken from, for an error."""
        if self.user is not None:
            return ""
        usual = "AWS_ACCESS_KEY_ID" if self.scheme == "s3" else "GOOGLE_APPLICATION_CREDENTIALS"
        return f"Keys are taken from where the store's own tools find them, such as {usual}. "


SCHEMES: Final = ["spark:", "s3://", "gs://"]
"""What a text begins with that names a table of an engine's own, in full: `spark:hospital.visits`."""


def names_a_table(place: object) -> bool:
    """Whether a text names a table that an engine of its own holds.

    >>> names_a_table("spark:hospital.visits"), names_a_table("visits.parquet")
    (True, False)
    """
    return isinstance(place, str) and place.startswith(tuple(SCHEMES))


def is_address(place: object) -> bool:
    """Whether a place is a Postgres address, or the variable that holds one, rather than a file."""
    return isinstance(place, str) and place.startswith((*_SCHEMES, ENVIRONMENT))


def shown_address(address: str) -> str:
    """An address without what may be a password: its user, host and database alone.

    >>> shown_address("postgresql://ada:secret@db.example:5432/budgets?password=x")
    'postgresql://ada@db.example:5432/budgets'
    >>> shown_address("postgresql://ada:se/cret@db.example/budgets")
    'postgresql://...'
    """
    return kept_address(address).partition("?")[0]


def kept_address(address: str) -> str:
    """An address as a record keeps it: as it is shown, with those parameters that say which database it is.

    >>> kept_address("postgresql://ada:secret@/budgets?host=/run/pg&password=x&connect_timeout=3")
    'postgresql://ada@/budgets?host=/run/pg'
    """
    if not address.startswith(_SCHEMES):
        return address
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return UNREADABLE
    user = "" if match["user"] is None else f"{match['user']}@"
    places = [kept for part in (match["query"] or "").split("&") if (kept := _kept_parameter(part))]
    return f"postgresql://{user}{match['host']}{match['base'] or ''}{'?' if places else ''}{'&'.join(places)}"


def _kept_parameter(part: str) -> str | None:
    """A parameter of an address, where its name says that it holds a place; its value only if that is plain."""
    name, _, value = part.partition("=")
    if name not in _PLACES:
        return None
    plain = unquote(value)
    return f"{name}={value if _VALUE.fullmatch(value) and masked(plain) == plain else '...'}"


def read_address(address: str) -> str:
    """The connection string: what was written, or what the variable holds.

    Raises:
        PolicyError: there is no such variable, or it holds no Postgres address.
    """
    if not address.startswith(ENVIRONMENT):
        return _text(address, "the address of the database")
    name = address.removeprefix(ENVIRONMENT)
    if not _NAME.fullmatch(name):
        raise PolicyError(
            f"{masked(address)!r} names no variable of the environment; write env:NAME, with letters, digits and "
            "underscores. Nothing was charged."
        )
    value = os.environ.get(name, "").strip()
    if not value:
        raise PolicyError(
            f"the variable {name} of the environment is not set. Set it to the address of the database, "
            "postgresql://USER@HOST/DATABASE. Nothing was charged."
        )
    if not value.startswith(_SCHEMES):
        raise PolicyError(
            f"the variable {name} of the environment holds no Postgres address: one begins with postgresql://. "
            "Nothing was charged."
        )
    return _text(value, f"the address in the variable {name} of the environment")


def _text(address: str, what: str) -> str:
    """The address, or a PolicyError where it is not a text: the environment may hold any bytes."""
    if any("\ud800" <= character <= "\udfff" for character in address):
        raise PolicyError(
            f"{what} is not valid UTF-8. Write other characters of a password in percent-encoding, such as %C3%A9. "
            "Nothing was charged."
        )
    return address


_OTHER_SCHEME: Final = re.compile(
    r"(?i)\s*(?:[a-z][a-z0-9+.\-]+:/|(?:jdbc|odbc|env|spark|mysql|mariadb|postgres(?:ql)?(?:\+\w+)?):)"
)
_SETTING: Final = re.compile(r"(?i)(?:^|\s)(?:host|hostaddr|port|dbname|user|service|sslmode|options)\s*=")
_SECRET_SETTING: Final = re.compile(r"(?i)(?:^|\s)\w*passw(?:or)?d\s*=")


def looks_like_connection(text: str) -> bool:
    """Whether a text that is not an address we read was meant as one: a URL, or settings such as `host=h password=...`.

    >>> [looks_like_connection(t) for t in ("host=h user=ada", "mysql://ada@db/x", "C:/rows/visits.csv", "a=b.csv")]
    [True, True, False, False]
    """
    if _OTHER_SCHEME.match(text) or _SECRET_SETTING.search(text):
        return True
    return len(_SETTING.findall(text)) > 1


# A login is what stands before an @ and has a colon with something behind it, whatever else is in it.
_LOGIN: Final = re.compile(r"(?<![^\s@:'\"=])[^\s@:'\"=]+:/*(?=\S)")
# A value in quotes is hidden to the end of its line, where quotes and backslashes may stand in it.
_PASSWORD: Final = re.compile(
    r"(?i)(?P<name>passw(?:or)?d|passphrase|\bpwd|\bpw)(?P<end>\\*['\"]?\s*[=:]\s*|\s+(?=\\*['\"]))"
    r"(?:\\*['\"][^\n]*|(?:\\+.|[^\s\\])+)"
)


def masked(text: str) -> str:
    """Any text without what may be a login in an address, or a password beside `password=`.

    >>> masked("found 'postgres:/ada:secret@db/x?password=y'; see the reference")
    "found 'postgres:/...@db/x?password=... see the reference"
    >>> masked("host=db password = 'two words' dbname=x")
    'host=db password = ...'
    """
    logins = "\n".join(_without_login(line) for line in text.split("\n"))
    return _PASSWORD.sub(lambda match: f"{match['name']}{match['end']}...", logins)


def _without_login(line: str) -> str:
    head, at, tail = line.rpartition("@")
    login = _LOGIN.search(head) if at else None
    if login is None:
        return line
    # The last @ may stand in a password beside `password=`, which then goes on behind it.
    ends = [login.end() for login in _PASSWORD.finditer(line) if login.start() < len(head) < login.end()]
    return f"{head[: login.end()]}...@{f'...{line[ends[0] :]}' if ends else tail}"


def raise_alone(failure: HubbubError) -> NoReturn:
    """Raise a refusal with nothing behind it: what it was made from may quote an address, password and all."""
    try:
        raise failure from None
    finally:
        failure.__context__ = None
