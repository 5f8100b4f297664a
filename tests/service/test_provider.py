"""Logging in by a provider, through the pages: who comes in, who is bound, and everything that lets nobody in."""

from __future__ import annotations

import html
import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("authlib", reason="logging in by a provider needs the extra `oidc`")
pytest.importorskip("starlette", reason="the service needs the extra `serve`")

from joserfc.jwk import ECKey, RSAKey

from asgi import Answer, Client
from hubbub.errors import HubbubError, PolicyError
from hubbub.ledger.policy import read_policy
from hubbub.ledger.service_policy import OidcPolicy, is_safe_address
from hubbub.service.gate import Gate
from hubbub.service.http.app import application
from hubbub.service.pages.routes import page_routes
from hubbub.service.people import keys, oidc
from hubbub.service.people.elsewhere import Elsewhere
from hubbub.service.people.oidc import Provider, ProviderAway
from hubbub.service.people.people import People
from hubbub.service.people.person import NotAllowed, NotKnown, TooMany
from hubbub.service.people.restored import let_nobody_in
from service.faces import Through
from service.provider import CLIENT, SECRET, LocalProvider, unsigned

BACK = "http://127.0.0.1:8080/login/provider/back"
PHRASE = "correct horse battery"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of scrypt is a test of its own."""
    monkeypatch.setattr(keys, "_N", 2)
    monkeypatch.setenv("HUBBUB_OIDC", SECRET)


@pytest.fixture
def local() -> Iterator[LocalProvider]:
    made = LocalProvider()
    yield made
    made.close()


class Site:
    """The pages before a real gate, with real people and a provider; no desk."""

    def __init__(self, folder: Path, local: LocalProvider, *, log: list[str] | None = None) -> None:
        self.people = People(folder / "service.db")
        self.people.roll.add("ada", ["analyst"], by="the test")
        self.people.roll.add("bob", ["analyst"], by="the test")
        self.people.roll.add("sue", ["steward"], by="the test")
        self.local, self.log = local, [] if log is None else log
        self.restart()

    def restart(self) -> None:
        """A clerk that was started anew."""
        said = OidcPolicy(self.local.issuer, CLIENT, None if self.local.secret is None else "HUBBUB_OIDC", "Clinic")
        self.provider = Provider(said, back=BACK, log=self.log.append)
        self.elsewhere = Elsewhere(self.people, self.provider)
        line = Through(Gate(self.people, {"elsewhere": self.elsewhere}))
        self.app = application(line, pages=page_routes(line, secure=False))

    def link(self, name: str) -> str:
        return str(self.people.roll.reset(name, by="the test")[0])


class Browser:
    """Somebody's browser: keeps cookies, goes where he is sent, but to the provider only when told."""

    def __init__(self, site: Site) -> None:
        self.site, self.cookies = site, dict[str, str]()

    def get(self, path: str) -> Answer:
        return self._kept(Client(self.site.app, cookies=self.cookies).get(path))

    def post(self, path: str, **data: Any) -> Answer:
        return self._kept(Client(self.site.app, cookies=self.cookies).post(path, data=data))

    def _kept(self, answer: Answer) -> Answer:
        return answer

    def begin(self, path: str = "/login/provider") -> str:
        """Begin; the address at the provider."""
        went = self._with_cookies(path)
        assert went.status_code == 303, went.text
        return went.headers["location"]

    def _with_cookies(self, path: str, data: dict[str, Any] | None = None) -> Answer:
        client = Raw(self.site.app, cookies=self.cookies)
        answer = client.get(path) if data is None else client.post(path, data=data)
        for line in client.set_cookies:
            for name, morsel in SimpleCookie(line).items():
                if morsel["max-age"] == "0" or not morsel.value:
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
        return answer

    def visit(self, path: str, **data: Any) -> Answer:
        return self._with_cookies(path, data or None)

    def come_back(self, address: str) -> Answer:
        return self._with_cookies(self.site.local.back(address))

    def log_in(self, path: str = "/login/provider") -> Answer:
        return self.come_back(self.begin(path))

    @property
    def name(self) -> str | None:
        """Who is logged in."""
        session = self.cookies.get("hubbub")
        return None if session is None else self.site.people.sessions.person(session).name


class Raw(Client):
    """The same client, which keeps every Set-Cookie."""

    set_cookies: list[str]

    def _asked(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        self.set_cookies = []
        app = self._app

        async def listening(scope: Any, receive: Any, send: Any) -> None:
            async def kept(message: Any) -> None:
                if message["type"] == "http.response.start":
                    self.set_cookies += [v.decode() for k, v in message["headers"] if k == b"set-cookie"]
                await send(message)

            await app(scope, receive, kept)

        self._app = listening
        try:
            return super()._asked(method, path, body, headers)
        finally:
            self._app = app


@pytest.fixture
def site(tmp_path: Path, local: LocalProvider) -> Iterator[Site]:
    made = Site(tmp_path, local)
    yield made
    made.people.close()


def said(answer: Answer) -> str:
    """What the page says, without tags."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text)))


def bound(site: Site, name: str = "ada", subject: str = "sub-of-ada") -> Browser:
    """Somebody who bound his account with a link."""
    site.local.who = subject
    browser = Browser(site)
    went = browser.log_in(f"/invitation/{site.link(name)}/provider")
    assert went.status_code == 303, went.text
    return browser


def test_an_invited_person_binds_an_account_and_comes_in_by_it(site: Site) -> None:
    page = Client(site.app).get(f"/invitation/{(key := site.link('ada'))}")
    assert f'href="/invitation/{key}/provider"' in page.text
    assert "Clinic" in page.text
    browser = Browser(site)
    went = browser.log_in(f"/invitation/{key}/provider")
    assert (went.status_code, went.headers["location"]) == (303, "/learn")
    assert browser.name == "ada"
    assert "hubbub-login" not in browser.cookies
    assert Client(site.app).get(f"/invitation/{key}").text.count("not valid any more") == 1  # used up
    again = Browser(site)
    went = again.log_in("/login/provider?next=/library")
    assert (went.headers["location"], again.name) == ("/library", "ada")
    assert site.people.roll.everybody()[0]["provider"]
    lines = [(line["act"], line["about"]) for line in site.people.store.lines()]
    assert ("login", {"by": "provider"}) in lines
    assert [about["subject"] for act, about in lines if act == "provider bound"] == ["sub-of-ada"]


def test_the_page_to_log_in_has_the_button_only_where_there_is_a_provider(site: Site) -> None:
    assert 'href="/login/provider?next=/"' in Client(site.app).get("/login").text
    line = Through(Gate(site.people, {"elsewhere": Elsewhere(site.people, None)}))
    app = application(line, pages=page_routes(line, secure=False))
    assert "/login/provider" not in Client(app).get("/login").text
    refused = Client(app).get("/login/provider")
    assert "use your passphrase" in refused.text


def test_nobody_is_made_because_a_provider_knows_him(site: Site) -> None:
    before = [one["name"] for one in site.people.roll.everybody()]
    site.local.who = "somebody new"
    browser = Browser(site)
    refused = browser.log_in()
    assert "bound to nobody who may come in here" in said(refused)
    assert "invitation" in said(refused)
    assert browser.name is None
    assert [one["name"] for one in site.people.roll.everybody()] == before


@pytest.mark.parametrize(
    "subject",
    ["SUB-OF-ADA", "sub-of-ada ", " sub-of-ada", "sub-of-ada\u200b", "s\u0443b-of-ada", "\uff53ub-of-ada",
     "sub%2Dof%2Dada", "sub-of-ada\n", "", "ada", "x" * 256, 7, None, ["sub-of-ada"], {"sub": "sub-of-ada"}, True],
    ids=str,
)  # fmt: skip
def test_a_name_that_looks_alike_is_another(site: Site, subject: Any) -> None:
    bound(site)
    site.local.alter = lambda claims: {
        **claims, "sub": subject, "preferred_username": "ada", "name": "ada", "email": "sub-of-ada",
        "email_verified": True,
    }  # fmt: skip
    browser = Browser(site)
    assert browser.log_in().status_code != 303
    assert browser.name is None


NOW = time.time


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"iss": "https://login.example.org"}, "'iss'"),
        ({"iss": "+/"}, "'iss'"),
        ({"iss": None}, "'iss'"),
        ({"aud": "another"}, "'aud'"),
        ({"aud": ["another"]}, "'aud'"),
        ({"aud": [CLIENT, "another"]}, "'azp'"),
        ({"aud": [CLIENT, "another"], "azp": CLIENT}, "for others, too"),
        ({"aud": []}, "'aud'"),
        ({"aud": None}, "'aud'"),
        ({"aud": CLIENT.upper()}, "'aud'"),
        ({"azp": "another"}, "'azp'"),
        ({"exp": -120}, "expired"),
        ({"exp": None}, "'exp'"),
        ({"exp": float("nan")}, ""),
        ({"exp": "9999999999"}, "'exp'"),
        ({"exp": True}, "'exp'"),
        ({"iat": -900}, "of another time"),
        ({"iat": 900}, "'iat'"),
        ({"iat": None}, "'iat'"),
        ({"nbf": 900}, "'nbf'"),
        ({"nonce": "of another login"}, "'nonce'"),
        ({"nonce": None}, "'nonce'"),
        ({"nonce": ["x"]}, "'nonce'"),
        ({"at_hash": "x"}, "'at_hash'"),
        ({"sub": None}, "'sub'"),
    ],
    ids=str,
)
def test_a_token_that_does_not_say_what_it_has_to_lets_nobody_in(
    site: Site, changed: dict[str, Any], word: str
) -> None:
    bound(site)

    def altered(claims: dict[str, Any]) -> dict[str, Any]:
        for name, value in changed.items():
            if value is None:
                claims.pop(name)
            elif value == "+/":
                claims[name] += "/"
            elif name in ("exp", "iat", "nbf") and isinstance(value, int) and not isinstance(value, bool):
                claims[name] = int(NOW()) + value
            else:
                claims[name] = value
        return claims

    site.local.alter = altered
    browser = Browser(site)
    refused = browser.log_in()
    assert refused.status_code == 200
    assert word in said(refused)
    assert "Begin the login again" in said(refused)
    assert browser.name is None
    for secret in ("sub-of-ada", SECRET, site.local.issuer, "code-"):
        assert secret not in refused.text


def _other_key(local: LocalProvider, claims: dict[str, Any]) -> str:
    from joserfc import jwt

    return jwt.encode({"alg": "ES256", "kid": "k1"}, claims, ECKey.generate_key("P-256"))


def _embedded_key(local: LocalProvider, claims: dict[str, Any]) -> str:
    from joserfc import jwt

    own = ECKey.generate_key("P-256")
    header = {"alg": "ES256", "kid": "k1", "jwk": own.as_dict(private=False)}
    return jwt.encode(header, claims, own)


def _critical(local: LocalProvider, claims: dict[str, Any]) -> str:
    from joserfc import jwt

    header = {"alg": "ES256", "kid": "k1", "crit": ["exp2"], "exp2": 1}
    try:
        return jwt.encode(header, claims, local.key)
    except Exception:
        return "x.y.z"


@pytest.mark.parametrize(
    "sign",
    [
        lambda local, claims: unsigned(claims),
        lambda local, claims: unsigned(claims, {"alg": "None", "kid": "k1"}),
        lambda local, claims: unsigned(claims, {"alg": "nOnE"}),
        lambda local, claims: unsigned(claims, {"alg": "ES256", "kid": "k1"}),
        lambda local, claims: local.by_secret(claims),
        lambda local, claims: local.signed(claims)[:-6] + "AAAAAA",
        lambda local, claims: local.signed(claims).rpartition(".")[0] + ".",
        _other_key,
        _embedded_key,
        _critical,
        lambda local, claims: "",
        lambda local, claims: "..",
        lambda local, claims: "not a token",
        lambda local, claims: {"not": "a text"},
        lambda local, claims: None,
    ],
    ids=["none", "None", "nOnE", "no-signature", "public-key-as-secret", "changed", "cut", "other-key", "own-key",
         "critical", "empty", "dots", "words", "object", "null"],
)  # fmt: skip
def test_a_token_that_is_not_signed_by_the_provider_lets_nobody_in(site: Site, sign: Any) -> None:
    bound(site)
    site.local.sign = lambda claims: sign(site.local, claims)
    browser = Browser(site)
    refused = browser.log_in()
    assert refused.status_code == 200
    assert "does not let anybody in" in said(refused)
    assert browser.name is None


def test_a_key_that_is_new_is_looked_for_and_no_more_often_than_it_may(site: Site, monkeypatch: Any) -> None:
    bound(site)
    monkeypatch.setattr(oidc, "_AGAIN", 0.0)
    site.local.key = RSAKey.generate_key(2048, {"kid": "k2", "use": "sig"})
    from joserfc import jwt

    site.local.sign = lambda claims: jwt.encode(
        {"alg": "PS256", "kid": "k2", "x": 1}, claims, site.local.key, registry=_lax()
    )
    browser = Browser(site)
    assert browser.log_in().status_code == 303
    monkeypatch.setattr(oidc, "_AGAIN", 1000.0)
    site.local.sign = lambda claims: jwt.encode({"alg": "PS256", "kid": f"new {NOW()}"}, claims, site.local.key)
    asked = site.local.asked.count("/clinic/keys")
    for _ in range(5):
        assert Browser(site).log_in().status_code == 200
    assert site.local.asked.count("/clinic/keys") <= asked + 1


def _lax() -> Any:
    from joserfc.jws import JWSRegistry

    return JWSRegistry(algorithms=["PS256"], strict_check_header=False)


def test_an_answer_is_good_once_and_in_the_browser_that_began(site: Site) -> None:
    bound(site)
    mine, other = Browser(site), Browser(site)
    back = site.local.back(mine.begin())
    refused = other.visit(back)  # login CSRF: somebody else's answer, in a browser that began nothing
    assert "not begun in this browser" in said(refused)
    assert other.name is None
    other.begin()
    assert "not begun in this browser" in said(other.visit(back))  # nor in one that began another
    held = dict(mine.cookies)
    assert mine.visit(back).status_code == 303
    for cookies in (held, mine.cookies):  # replayed, by whoever saw the address, and even with the cookie
        again = Browser(site)
        again.cookies = dict(cookies)
        again.cookies.pop("hubbub", None)
        assert "not begun in this browser" in said(again.visit(back))
        assert again.name is None


def test_a_code_of_another_login_is_of_no_use(site: Site) -> None:
    """Injected: the attacker's code, in the victim's own login. The verifier is another, and the provider says no; one
    that forgets to look is caught by the nonce.
    """
    bound(site)
    bound(site, "bob", "sub-of-bob")
    attacker, victim = Browser(site), Browser(site)
    stolen = site.local.authorize(attacker.begin())
    site.local.who = "sub-of-ada"
    own = site.local.authorize(victim.begin())
    refused = victim.visit(f"/login/provider/back?code={stolen['code']}&state={own['state']}")
    assert "did not take the code" in said(refused)
    assert victim.name is None
    site.local.who = "sub-of-bob"
    stolen = site.local.authorize(attacker.begin())
    own = site.local.authorize(victim.begin())
    challenge = site.local.codes[own["code"]]["code_challenge"]
    site.local.codes[stolen["code"]]["code_challenge"] = challenge
    refused = victim.visit(f"/login/provider/back?code={stolen['code']}&state={own['state']}")
    assert "'nonce'" in said(refused)
    assert victim.name is None


def test_what_is_held_cannot_be_made_changed_or_kept(site: Site, monkeypatch: Any) -> None:
    browser = Browser(site)
    address = browser.begin()
    held = browser.cookies["hubbub-login"]
    text, _, mac = held.partition(".")
    for forged in (
        "",
        ".",
        "x",
        text,
        f"{text}.",
        f"{text}.{mac[:-1]}",
        f"{text}A.{mac}",
        f".{mac}",
        "é.é",
        "x" * 5000,
    ):
        with pytest.raises(NotKnown, match="not begun in this browser"):
            site.elsewhere.finish(held=forged, state="s", code="c")
        with pytest.raises(NotKnown):
            site.elsewhere.onward(held=forged)
    assert "verifier" not in held
    later = time.monotonic() + 601
    monkeypatch.setattr(site.elsewhere, "_clock", lambda: later)
    assert "ten minutes ago" in said(browser.come_back(address))
    monkeypatch.undo()
    monkeypatch.setenv("HUBBUB_OIDC", SECRET)
    address = browser.begin()
    site.restart()
    assert "Begin it again" in said(browser.come_back(address))


def test_an_answer_of_another_provider_is_not_this_ones(site: Site) -> None:
    """RFC 9207: a provider that names itself in its answers is held to it."""
    bound(site)
    site.local.answer = lambda told: {**told, "iss": "https://evil.example"}
    assert "another provider's" in said(Browser(site).log_in())
    site.local.answer = lambda told: {**told, "iss": site.local.issuer}
    assert Browser(site).log_in().status_code == 303
    site.local.document = lambda told: {**told, "authorization_response_iss_parameter_supported": True}
    site.local.answer = lambda told: told
    site.restart()
    assert "another provider's" in said(Browser(site).log_in())


@pytest.mark.parametrize(
    ("answered", "word"),
    [
        ({"error": "access_denied"}, "did not allow it"),
        ({"error": "<script>alert(1)</script>", "error_description": "<b>"}, "it says no more"),
        ({}, "it says no more"),
    ],
)
def test_a_provider_that_says_no(site: Site, answered: dict[str, str], word: str) -> None:
    site.local.answer = lambda told: {**answered, "state": told["state"]}
    refused = Browser(site).log_in()
    assert word in said(refused)
    assert "<script>alert" not in refused.text


def test_where_one_goes_on_is_inside(site: Site) -> None:
    bound(site)
    for wanted in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a%0d%0aX: y"):
        browser = Browser(site)
        went = browser.log_in(f"/login/provider?next={wanted}")
        assert went.headers["location"] == "/", wanted


def test_a_long_way_on_keeps_nobody_out(site: Site) -> None:
    """What is held is a cookie, and a browser keeps none of more than 4,096 bytes."""
    bound(site)
    for wanted in ("/" + "a" * 5000, "/" + "%E2%82%AC" * 99, "/" + "%00" * 200):
        browser = Browser(site)
        address = browser.begin(f"/login/provider?next={wanted}")
        assert len(browser.cookies["hubbub-login"]) < 3000
        assert browser.come_back(address).status_code == 303


def test_an_account_is_bound_to_one_person_and_a_person_to_one(site: Site) -> None:
    bound(site)
    browser = Browser(site)
    refused = browser.log_in(f"/invitation/{(key := site.link('bob'))}/provider")
    assert "bound to somebody else here" in said(refused)
    assert browser.name is None
    site.local.who = "sub-of-bob"
    assert browser.log_in(f"/invitation/{key}/provider").status_code == 303  # the link is as it was
    assert browser.name == "bob"


def test_a_link_binds_once_and_for_whom_it_is(site: Site) -> None:
    key = site.link("ada")
    first, second = Browser(site), Browser(site)
    addresses = first.begin(f"/invitation/{key}/provider"), second.begin(f"/invitation/{key}/provider")
    assert first.come_back(addresses[0]).status_code == 303
    site.local.who = "sub-of-eve"
    refused = second.come_back(addresses[1])
    assert "used, or has ended" in said(refused)
    assert second.name is None
    for wrong in ("inv_x", key):
        assert "used, or has ended" in said(Browser(site).visit(f"/invitation/{wrong}/provider"))
    site.people.sessions.entrance("bob", "inv_enter", minutes=5)
    assert "binds no account" in said(Browser(site).visit("/invitation/inv_enter/provider"))


def _with_passphrase(site: Site, name: str) -> Browser:
    browser = Browser(site)
    told = site.people.accept(site.link(name), PHRASE)
    browser.cookies["hubbub"] = told["session"]
    return browser


def test_whoever_has_a_passphrase_binds_behind_it(site: Site) -> None:
    browser = _with_passphrase(site, "sue")
    csrf = site.people.sessions.person(browser.cookies["hubbub"]).csrf
    refused = browser.visit("/account/provider", passphrase=PHRASE, csrf="x")
    assert refused.status_code == 200
    assert "not one of your session's" in said(refused)
    assert "passphrase is not right" in said(browser.visit("/account/provider", passphrase="wrong", csrf=csrf))
    assert "hubbub-login" not in browser.cookies
    page = browser.visit("/account/provider", passphrase=PHRASE, csrf=csrf)
    assert 'href="/login/provider/on"' in page.text
    site.local.who = "sub-of-sue"
    went = browser.come_back(browser.begin("/login/provider/on"))
    assert went.headers["location"] == "/account"
    assert browser.name == "sue"
    other = Browser(site)
    other.log_in()
    assert other.name == "sue"
    assert "is bound to this one" in said(other.visit("/account"))


def test_a_session_that_ended_meanwhile_binds_nothing(site: Site) -> None:
    browser = _with_passphrase(site, "sue")
    csrf = site.people.sessions.person(browser.cookies["hubbub"]).csrf
    browser.visit("/account/provider", passphrase=PHRASE, csrf=csrf)
    address = browser.begin("/login/provider/on")
    browser.visit("/logout", csrf=csrf)
    assert "has ended" in said(browser.come_back(address))
    assert not any(one["provider"] for one in site.people.roll.everybody())


def test_a_steward_chooses_a_passphrase_first(site: Site) -> None:
    refused = Browser(site).visit(f"/invitation/{(key := site.link('sue'))}/provider")
    assert "a steward chooses a passphrase first" in said(refused)
    site.people.accept(key, PHRASE)
    ada = bound(site)
    site.people.roll.set_roles("ada", ["analyst", "steward"], by="the test")
    person = site.people.sessions.person(Browser(site).log_in() and _session(site))
    with pytest.raises(NotAllowed, match="you have none: ask a steward for a link"):
        site.people.confirm(person, "")
    del ada


def _session(site: Site) -> str:
    browser = Browser(site)
    browser.log_in()
    return browser.cookies["hubbub"]


@pytest.mark.parametrize("how", ["disable", "leave", "reset", "restored"])
def test_who_may_not_come_in_does_not_by_a_provider(site: Site, tmp_path: Path, how: str) -> None:
    browser = bound(site)
    match how:
        case "disable":
            site.people.roll.disable("ada", by="the test")
        case "leave":
            site.people.roll.disable("ada", by="the test", left=True)
            site.people.roll.enable("ada", by="the test")
        case "reset":
            site.link("ada")
        case _:
            site.people.close()
            let_nobody_in(tmp_path / "service.db", None)
            site.people = People(tmp_path / "service.db")
            site.restart()
    with pytest.raises(NotKnown):
        browser.name  # noqa: B018
    again = Browser(site)
    assert "bound to nobody who may come in" in said(again.log_in())
    assert again.name is None
    if how == "disable":
        site.people.roll.enable("ada", by="the test")
        assert again.log_in().status_code == 303


def test_a_binding_counts_as_a_way_in_for_the_last_steward(site: Site) -> None:
    browser = _with_passphrase(site, "sue")
    assert site.people.roll.first_steward() is None
    del browser


# -- the provider itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"issuer": "https://evil.example"}, "another issuer"),
        ({"issuer": None}, "another issuer"),
        ({"token_endpoint": "http://evil.example/token"}, "token_endpoint"),
        ({"jwks_uri": "file:///etc/passwd"}, "jwks_uri"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint"),
        ({"authorization_endpoint": "https://a@b/"}, "authorization_endpoint"),
        ({"jwks_uri": 7}, "jwks_uri"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
    ],
    ids=str,
)
def test_a_document_that_is_not_the_policys_is_not_followed(site: Site, changed: dict[str, Any], word: str) -> None:
    site.local.document = lambda told: {**told, **changed}
    refused = Browser(site).visit("/login/provider")
    assert word in said(refused)
    assert "Log in with a passphrase" in said(refused)
    assert any(word in line for line in site.log)
    asked = len(site.local.asked)
    for _ in range(5):
        Browser(site).visit("/login/provider")
    assert len(site.local.asked) == asked  # a failure is kept for a while


def test_a_provider_that_is_away_keeps_nobody_from_the_passphrase(tmp_path: Path, local: LocalProvider) -> None:
    site = Site(tmp_path, local)
    local.close()
    refused = Browser(site).visit("/login/provider")
    assert "does not answer as it has to" in said(refused)
    assert 'name="passphrase"' in refused.text
    site.people.accept(site.link("ada"), PHRASE)
    assert site.people.login("ada", PHRASE)["name"] == "ada"
    site.people.close()


def test_a_redirect_is_not_followed_and_no_secret_goes_elsewhere(site: Site) -> None:
    bound(site)
    told: list[str] = []
    site.local.token = lambda handler: (  # type: ignore[method-assign]
        told.append(handler.headers.get("Authorization", "")),
        handler.send_response(307),
        handler.send_header("Location", f"{site.local.issuer}/elsewhere"),
        handler.send_header("Content-Length", "0"),
        handler.end_headers(),
    )
    asked = len(site.local.asked)
    assert "HTTP 307" in said(Browser(site).log_in())
    assert len(told) == 1
    assert site.local.asked[asked:] == []
    assert all(SECRET not in line and "Basic" not in line for line in site.log)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"[" * 100_000, b"1", b"\xff"], ids=["", "list", "cut", "deep", "1", "bytes"]
)
def test_what_is_not_json_is_refused(site: Site, body: bytes) -> None:
    bound(site)
    site.local.token = lambda handler: (  # type: ignore[method-assign]
        handler.send_response(200),
        handler.send_header("Content-Length", str(len(body))),
        handler.end_headers(),
        handler.wfile.write(body),
    )
    assert re.search("not (a )?JSON", said(Browser(site).log_in()))


def test_what_has_no_end_is_given_up(site: Site, monkeypatch: Any) -> None:
    monkeypatch.setattr(oidc, "_LONGEST", 1000)
    site.local.document = lambda told: {**told, "more": "x" * 2000}
    assert "without end" in said(Browser(site).visit("/login/provider"))


@pytest.mark.parametrize(("secret", "methods"), [(None, ("none",)), (SECRET, ("client_secret_post",))])
def test_other_ways_to_say_who_the_client_is(tmp_path: Path, secret: str | None, methods: tuple[str, ...]) -> None:
    local = LocalProvider(secret=secret, methods=methods)
    site = Site(tmp_path, local)
    assert bound(site).name == "ada"
    site.people.close()
    local.close()


def test_few_wait_for_the_provider_at_once(site: Site) -> None:
    places = [site.elsewhere._line.acquire(blocking=False) for _ in range(8)]
    assert all(places)
    with pytest.raises(TooMany, match="many log in"):
        site.elsewhere.begin()


def test_beginning_keeps_nothing_in_memory(site: Site) -> None:
    for _ in range(50):
        site.elsewhere.begin()
    assert site.elsewhere._used == {}


def test_planted_a_provider_that_is_not_looked_at_closely_is_found(site: Site, monkeypatch: Any) -> None:
    """What the tests above refuse is let in where a check is gone: they do look."""
    bound(site)
    site.local.alter = lambda claims: {**claims, "aud": [CLIENT, "another"], "azp": CLIENT}
    monkeypatch.setattr(Provider, "_subject", lambda self, claims: claims["sub"])
    assert Browser(site).log_in().status_code == 303
    monkeypatch.undo()
    monkeypatch.setenv("HUBBUB_OIDC", SECRET)
    assert Browser(site).log_in().status_code == 200
    site.local.alter = lambda claims: claims
    mine, other = Browser(site), Browser(site)
    other.begin()
    back = site.local.back(mine.begin())
    monkeypatch.setattr(Elsewhere, "_word", lambda self, what, whose: "same")
    assert other.visit(back).status_code == 200  # what was held before is not of this key


# -- the policy ---------------------------------------------------------------------------------------------------

POLICY = """\
[ledger]
file = "budget.db"
[budget]
epsilon = 3
[tables.t]
source = "t.parquet"
unit = "id"
[service]
{url}
[service.oidc]
{oidc}
"""
URL = 'public_url = "https://data.example.org"'
FINE = 'issuer = "https://login.example.org/clinic"\nclient_id = "hubbub"\n'


def test_the_policy_names_the_provider() -> None:
    text = POLICY.format(url=URL, oidc=FINE + 'client_secret = "env:HUBBUB_OIDC"\nname = "Clinic"')
    said = read_policy(text, Path("/x/hubbub.toml")).service.oidc
    assert said == OidcPolicy("https://login.example.org/clinic", "hubbub", "HUBBUB_OIDC", "Clinic")
    assert said.secret() == SECRET
    assert read_policy(POLICY.format(url=URL, oidc=FINE), Path("/x/hubbub.toml")).service.oidc.secret() is None


@pytest.mark.parametrize(
    ("url", "oidc", "word"),
    [
        ("", FINE, "public_url"),
        (URL, 'client_id = "x"', "issuer is missing"),
        (URL, 'issuer = "https://x.example"', "client_id is missing"),
        (URL, 'issuer = "http://x.example"\nclient_id = "x"', "https://"),
        (URL, 'issuer = "https://u:p@x.example"\nclient_id = "x"', "https://"),
        (URL, 'issuer = "https://x.example?a=b"\nclient_id = "x"', "https://"),
        (URL, "issuer = 7\nclient_id = 'x'", "https://"),
        (URL, FINE + 'client_secret = "pässword!"', "does not stand in a policy"),
        (URL, FINE + 'client_secret = "env:a b"', "env:NAME"),
        (URL, FINE + 'scopes = "email"', "unknown key"),
    ],
)
def test_a_policy_that_is_wrong_says_so(url: str, oidc: str, word: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(word)) as refused:
        read_policy(POLICY.format(url=url, oidc=oidc), Path("/x/hubbub.toml"))
    assert "pässword" not in str(refused.value)
    assert "u:p" not in str(refused.value)


def test_a_secret_that_is_not_set_and_an_authlib_that_is_not_there_are_said_at_the_start(monkeypatch: Any) -> None:
    said = OidcPolicy("https://login.example.org", "hubbub", "HUBBUB_OIDC")
    monkeypatch.delenv("HUBBUB_OIDC")
    with pytest.raises(PolicyError, match="HUBBUB_OIDC, which is not set"):
        Provider(said, back=BACK)
    import sys

    monkeypatch.setitem(sys.modules, "authlib.oidc.core", None)
    with pytest.raises(PolicyError, match=r"needs Authlib.*\.\[oidc\]"):
        Provider(said, back=BACK)


def test_addresses_that_are_safe() -> None:
    for fine in (
        "https://a.example",
        "https://a.example:8443/x?y=z",
        "http://127.0.0.1:1/x",
        "http://[::1]:1",
        "http://localhost",
    ):
        assert is_safe_address(fine), fine
    for bad in ("http://a.example", "ftp://a", "https://", "https://u@a", "https://a#x", "https://a\n", "https://a\\b",
                "//a", "", None, 7, "https://[", "http://127.0.0.1.evil.example", "https://a:x"):  # fmt: skip
        assert not is_safe_address(bad), bad


def test_the_refusals_of_a_provider_are_kinds_that_pages_know() -> None:
    from hubbub.service.clerk import _refusal

    assert _refusal(ProviderAway("x"))["kind"] == "away"
    assert issubclass(ProviderAway, HubbubError)
    assert json.dumps(_refusal(ProviderAway("x")))


def test_a_file_of_before_there_were_providers_is_brought_up_to_date(tmp_path: Path) -> None:
    people = People(tmp_path / "service.db")
    people.roll.add("ada", ["analyst"], by="the test")
    people.close()
    with closing(sqlite3.connect(tmp_path / "service.db")) as file:
        file.execute("DROP TABLE subject")
        file.execute("PRAGMA user_version = 2")
    people = People(tmp_path / "service.db")
    assert [one["provider"] for one in people.roll.everybody()] == [False]
    assert people.store.verify().sound
    people.close()
