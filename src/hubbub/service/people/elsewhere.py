"""Logging in by a provider: what is held of a login between sending somebody there and his coming back.

    begin      somebody goes to the provider           held (a cookie of his browser), and the address
    finish     he comes back with a code, and `held`   a session; or an account is bound, and a session

Between the two the service keeps nothing: `held` says what was begun and until when, with a MAC by a key of this
process, and state, nonce and verifier follow from it by that key (HMAC-SHA-256, each under its own word). So nobody
fills a memory by beginning, a browser that did not begin finishes nothing (login CSRF: RFC 6749, 10.12), and the
verifier is known to the clerk alone. Each `held` is finished once; after a restart, it is begun again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from hubbub.errors import PolicyError
from hubbub.noise import system_bits
from hubbub.service.people.keys import digest
from hubbub.service.people.oidc import Provider
from hubbub.service.people.people import People
from hubbub.service.people.person import NotKnown, Person, TooMany
from hubbub.service.people.subjects import Subjects

__all__ = ["Elsewhere"]

_SECONDS: Final = 600
_LINE: Final = 8  # who wait for the provider at once
_LONGEST: Final = 4096  # a browser keeps no longer cookie
_LONGEST_PATH: Final = 300
_NONE: Final = "nobody logs in by a provider here: use your passphrase."
_NOT_BEGUN: Final = (
    "this login was not begun in this browser, was finished before, or was begun more than ten minutes ago. Begin it "
    "again, from the page where you log in."
)
_ERRORS: Final = {
    "access_denied": "you, or it, did not allow it",
    "login_required": "you are not logged in there",
    "temporarily_unavailable": "it is busy",
    "server_error": "it has a defect",
}


class Elsewhere:
    """The room of acts that go by a provider. provider: None where the policy has none."""

    def __init__(
        self, people: People, provider: Provider | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._people, self._provider, self._clock = people, provider, clock
        self._subjects = Subjects(people.store, people.sessions)
        self._key = system_bits().u64(4).tobytes()
        self._used: dict[str, float] = {}
        self._lock, self._line = threading.Lock(), threading.BoundedSemaphore(_LINE)

    def ways(self) -> dict[str, Any]:
        """What the provider is called, where there is one."""
        return {"provider": None if self._provider is None else self._provider.name}

    def binding(self, person: Person) -> dict[str, Any]:
        """The same, and whether one's account there is bound."""
        return {**self.ways(), "bound": self._subjects.bound(person.name)}

    def begin(self, *, then: str = "/", key: str | None = None) -> dict[str, Any]:
        """Begin to log in, or, with the key of a link, to bind. then: where somebody goes on.

        Raises NotKnown, NotAllowed, PolicyError, TooMany, ProviderAway.
        """
        if key is not None:
            self._subjects.check_link(digest(key))
        held = self._held("login" if key is None else "link", "" if key is None else digest(key), then)
        return {"held": held, **self.onward(held=held)}

    def begin_binding(self, person: Person, *, passphrase: str) -> dict[str, Any]:
        """Begin to bind one's account there to one's own here; behind one's passphrase, since it opens all that is.

        Raises NotAllowed, PolicyError, TooMany.
        """
        self._own()
        self._people.confirm(person, passphrase)
        return {"held": self._held("session", str(person.session), "/account")}

    def onward(self, *, held: str) -> dict[str, Any]:
        """Where somebody goes who has begun.

        Raises NotKnown, PolicyError, TooMany, ProviderAway.
        """
        provider, what = self._own(), self._begun(held)
        with self._place():
            address = provider.address(**{name: self._word(name, what["id"]) for name in _WORDS})
        return {"address": address}

    def finish(
        self,
        *,
        held: str,
        state: str,
        code: str | None = None,
        iss: str | None = None,
        error: str | None = None,
        device: str = "",
    ) -> dict[str, Any]:
        """Come back: a session, and where one goes on. error: what the provider says in place of a code. device: what
        the browser says of itself.

        Raises NotKnown, NotAllowed, PolicyError, TooMany, ProviderAway.
        """
        provider, what = self._own(), self._begun(held)
        words = {name: self._word(name, what["id"]) for name in _WORDS}
        if not hmac.compare_digest(state.encode("utf-8", "replace"), words.pop("state").encode()):
            raise NotKnown(_NOT_BEGUN)
        self._use(what)
        if code is None:
            why = _ERRORS.get(error or "", "it says no more")
            raise NotKnown(f"{provider.name} sent you back without letting you in: {why}. Begin the login again.")
        with self._place():
            subject = provider.subject(code=code, issuer=iss, **words)
        cookie, person = self._bound(provider, what, subject, device)
        return {
            "session": cookie, "csrf": person.csrf, "until": person.until, "name": person.name, "then": what["then"],
        }  # fmt: skip

    def _bound(self, provider: Provider, what: dict[str, Any], subject: str, device: str) -> tuple[str, Person]:
        match what["kind"]:
            case "link":
                return self._subjects.bind_by_link(what["of"], provider.issuer, subject, device=device)
            case "session":
                return self._subjects.bind_by_session(what["of"], provider.issuer, subject, device=device)
            case _:
                return self._subjects.login(provider.issuer, subject, called=provider.name, device=device)

    def _own(self) -> Provider:
        if self._provider is None:
            raise PolicyError(_NONE)
        return self._provider

    # -- what is held -------------------------------------------------------------------------------------------

    def _held(self, kind: str, whose: str, then: str) -> str:
        identity = system_bits().u64(4).tobytes().hex()
        what = {
            "kind": kind,
            "of": whose,
            "then": then if len(then.encode("utf-8", "replace")) <= _LONGEST_PATH else "/",
            "id": identity,
            "until": self._clock() + _SECONDS,
        }
        text = base64.urlsafe_b64encode(json.dumps(what).encode()).decode()
        return f"{text}.{self._word('held', text)}"

    def _begun(self, held: str) -> dict[str, Any]:
        """What was begun.

        Raises NotKnown where it was not by this process, or is too old.
        """
        text, _, mac = held.partition(".")
        if len(held) > _LONGEST or not hmac.compare_digest(
            mac.encode("utf-8", "replace"), self._word("held", text).encode()
        ):
            raise NotKnown(_NOT_BEGUN)
        what: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text))
        if what["until"] <= self._clock():
            raise NotKnown(_NOT_BEGUN)
        return what

    def _use(self, what: dict[str, Any]) -> None:
        """Finish it, once."""
        with self._lock:
            now = self._clock()
            self._used = {name: until for name, until in self._used.items() if until > now}
            if what["id"] in self._used:
                raise NotKnown(_NOT_BEGUN)
            self._used[what["id"]] = what["until"]

    def _word(self, what: str, whose: str) -> str:
        made = hmac.new(self._key, f"{what} {whose}".encode("utf-8", "replace"), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(made).decode().rstrip("=")

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._line.acquire(blocking=False):
            raise TooMany("many log in at this moment; try again in a few seconds.", 5)
        try:
            yield
        finally:
            self._line.release()


_WORDS: Final = ("state", "nonce", "verifier")
