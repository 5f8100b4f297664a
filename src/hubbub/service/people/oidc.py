"""A provider of OpenID Connect: where people are sent, and who comes back, as its own signature says.

The code flow (OpenID Connect Core 1.0, 3.1) with PKCE (RFC 7636, S256), state and nonce; the provider's own document
says where its places are (OpenID Connect Discovery 1.0, 4). Authlib writes the requests and reads the claims.

Somebody is who the provider says if all of this holds (Core, 3.1.3.7):

    the token came from the provider's own token endpoint, for a code, with the verifier of this login
    it is signed, by a key that the provider shows, by a method of public keys: never "none", never one by a secret
    its issuer is the one that the policy names, to the letter (and so is that of the document, and of the answer's
    `iss`, RFC 9207)
    its audience is this service, and nobody beside it; it was made for no other party (`azp`)
    it holds now, and was made within ten minutes; its nonce is the one of this login

The client's secret, the code and what the provider sends stand in no error and no log.
"""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from hubbub.errors import HubbubError, PolicyError, how_to_install
from hubbub.ledger.service_policy import is_safe_address
from hubbub.service.people.person import NotKnown

if TYPE_CHECKING:
    from hubbub.ledger.service_policy import OidcPolicy

__all__ = ["ALGORITHMS", "Provider", "ProviderAway"]

ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
"""By which a token may be signed: those whose keys the provider alone has."""
_PATIENCE: Final = 5.0  # seconds without a byte
_WHOLE: Final = 10.0  # seconds of one request
_LONGEST: Final = 1 << 20
_FRESH: Final = 3600.0  # seconds for which the provider's document and keys are kept
_AGAIN: Final = 30.0  # seconds between two looks for a key that is not there, or at a provider that does not answer
_LEEWAY: Final = 60  # seconds that two clocks may differ
_OLDEST: Final = 600
_LONGEST_SUBJECT: Final = 255  # OpenID Connect Core, 2
_AGAIN_TEXT: Final = "Begin the login again; if this stays, tell a steward."


class ProviderAway(HubbubError):
    """The provider does not answer, or not as one."""


class _NoRedirect(HTTPRedirectHandler):
    """A secret is sent to the place that it is meant for, and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Provider:
    """One provider. back: the address to which it sends people. log: where a line goes for the steward.

    Raises PolicyError where Authlib is not there, or the client's secret.
    """

    def __init__(
        self,
        said: OidcPolicy,
        *,
        back: str,
        log: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        try:
            import authlib.oidc.core  # noqa: F401
        except ImportError:
            raise PolicyError(f"[service.oidc] needs Authlib. {how_to_install('oidc')}") from None
        self.name, self.issuer = said.name, said.issuer
        self._client, self._secret, self._back = said.client_id, said.secret(), back
        self._log, self._clock = log, clock
        self._lock, self._open = threading.RLock(), build_opener(_NoRedirect).open
        self._kept: dict[str, tuple[float, Any]] = {}

    def address(self, *, state: str, nonce: str, verifier: str) -> str:
        """Where somebody is sent who wants to log in.

        Raises ProviderAway.
        """
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        return str(
            prepare_grant_uri(
                self._document()["authorization_endpoint"], self._client, "code", redirect_uri=self._back,
                scope="openid", state=state, nonce=nonce, code_challenge=create_s256_code_challenge(verifier),
                code_challenge_method="S256",
            )
        )  # fmt: skip

    def subject(self, *, code: str, nonce: str, verifier: str, issuer: str | None = None) -> str:
        """Who came back with a code. issuer: what the answer says of itself.

        Raises NotKnown where anything is not as it has to be, ProviderAway.
        """
        document = self._document()
        named = document.get("authorization_response_iss_parameter_supported") is True
        if (issuer is not None or named) and issuer != self.issuer:
            raise self._refused("the answer is another provider's")
        told = self._token(document, code, verifier)
        token = told.get("id_token")
        if not isinstance(token, str):
            raise self._refused("it holds no ID token")
        return self._checked(token, nonce, told.get("access_token"))

    def _checked(self, token: str, nonce: str, access: object) -> str:
        from authlib.oidc.core import CodeIDToken
        from joserfc import errors, jwt
        from joserfc.jws import JWSRegistry

        keys = self._keys_for(token)
        # What a header says beside what is known is passed over (RFC 7515, 4), but what it calls critical is not.
        registry = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
        try:
            decoded = jwt.decode(token, keys, registry=registry)
            exact = {"essential": True}
            claims = CodeIDToken(
                decoded.claims, decoded.header,
                options={
                    "iss": {**exact, "value": self.issuer}, "sub": exact, "nonce": {**exact, "value": nonce},
                    "aud": {**exact, "value": self._client},
                },
                params={"nonce": nonce, "client_id": self._client, "access_token": access},
            )  # fmt: skip
            claims.validate(now=int(self._clock()), leeway=_LEEWAY)
        except errors.ExpiredTokenError:
            raise self._refused("its ID token has expired, by this machine's clock") from None
        except errors.ClaimError as error:
            raise self._refused(f"the claim {error.claim!r:.20} of its ID token is not right") from None
        except (errors.JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self._refused("its ID token is not signed as it has to be") from None
        return self._subject(claims)

    def _subject(self, claims: Mapping[str, Any]) -> str:
        """The subject of claims that Authlib found in order; what it lets pass and we do not is looked at here."""
        if claims["aud"] not in (self._client, [self._client]):
            raise self._refused("its ID token is for others, too")
        if claims.get("azp", self._client) != self._client:
            raise self._refused("its ID token was made for another party")
        made, ends = claims["iat"], claims["exp"]
        now = self._clock()
        if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in (made, ends)):
            raise self._refused("its ID token has no time")
        if not now - _OLDEST - _LEEWAY <= made <= now + _LEEWAY or ends <= now - _LEEWAY:
            raise self._refused("its ID token is of another time")
        subject = claims["sub"]
        whole = isinstance(subject, str) and 0 < len(subject) <= _LONGEST_SUBJECT
        if not whole or not subject.isascii() or not subject.isprintable():
            raise self._refused("its ID token names nobody")
        return str(subject)

    # -- what the provider shows -------------------------------------------------------------------------------

    def _document(self) -> dict[str, Any]:
        """Where its places are."""
        document: dict[str, Any] = self._kept_or("document", self._read_document)
        return document

    def _read_document(self) -> dict[str, Any]:
        from authlib.oidc.discovery import get_well_known_url

        document = self._fetched(Request(get_well_known_url(self.issuer, external=True)))
        if document.get("issuer") != self.issuer:
            raise self._away("its document names another issuer than the policy does")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not is_safe_address(document.get(name)):
                raise self._away(f"its document names no https:// address as {name}")
        methods = document.get("code_challenge_methods_supported")
        if methods is not None and (not isinstance(methods, list) or "S256" not in methods):
            raise self._away("it does not take PKCE (S256)")
        return document

    def _keys_for(self, token: str) -> Any:
        """Its keys; looked for anew where the one that a token names is not among them."""
        keys, kid = self._kept_or("keys", self._read_keys), _header(token).get("kid")
        if kid is not None and all(key.kid != kid for key in keys.keys):
            keys = self._kept_or("keys", self._read_keys, older=_AGAIN)
        return keys

    def _read_keys(self) -> Any:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        shown: Any = self._fetched(Request(self._document()["jwks_uri"])).get("keys")
        try:
            public = [key for key in shown if key.get("kty") != "oct" and key.get("use", "sig") == "sig"]
            return KeySet.import_key_set({"keys": public})
        except (JoseError, ValueError, TypeError, KeyError, AttributeError):
            raise self._away("it shows no keys that can be read") from None

    def _kept_or(self, what: str, read: Callable[[], Any], *, older: float = _FRESH) -> Any:
        """What was read before, where it is not older; else it is read. That it could not be read is kept for a while,
        too: nobody makes the service knock without end.
        """
        with self._lock:
            since, known = self._kept.get(what, (-math.inf, None))
            age = time.monotonic() - since
            if isinstance(known, ProviderAway) and age < _AGAIN:
                raise ProviderAway(str(known))
            if known is None or isinstance(known, ProviderAway) or age >= older:
                try:
                    known = read()
                except ProviderAway as error:
                    self._kept[what] = time.monotonic(), error
                    raise
                self._kept[what] = time.monotonic(), known
            return known

    # -- what is sent -------------------------------------------------------------------------------------------

    def _token(self, document: Mapping[str, Any], code: str, verifier: str) -> dict[str, Any]:
        """What the token endpoint gives for a code."""
        from authlib.oauth2.auth import ClientAuth
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        body = prepare_token_request("authorization_code", code=code, redirect_uri=self._back, code_verifier=verifier)
        method = "none"
        if self._secret is not None:
            known = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
            method = "client_secret_basic" if "client_secret_basic" in known else "client_secret_post"
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        auth = ClientAuth(self._client, self._secret, method)
        place, headers, body = auth.prepare("POST", document["token_endpoint"], headers, body)
        return self._fetched(Request(place, body.encode(), headers), asked=True)

    def _fetched(self, request: Request, *, asked: bool = False) -> dict[str, Any]:
        """The JSON object at a place. asked: for a code, which it may refuse.

        Raises ProviderAway, NotKnown.
        """
        until, data = time.monotonic() + _WHOLE, bytearray()
        try:
            with self._open(request, timeout=_PATIENCE) as response:
                while piece := response.read1(1 << 16):
                    data += piece
                    if len(data) > _LONGEST or time.monotonic() > until:
                        raise self._away("it sends without end")
            told = json.loads(bytes(data))
        except HTTPError as error:
            error.close()
            if asked and error.code in (400, 401, 403):
                self._log(f"the provider refused a code, or this client's secret: HTTP {error.code}")
                raise self._refused("it did not take the code: it is used up, or was for another login") from None
            raise self._away(f"HTTP {error.code}") from None
        except (OSError, HTTPException) as error:
            raise self._away(type(error).__name__) from None
        except (ValueError, RecursionError):
            raise self._away("what it says is not JSON") from None
        if not isinstance(told, dict):
            raise self._away("what it says is not a JSON object")
        return told

    def _refused(self, why: str) -> NotKnown:
        return NotKnown(f"what came back from {self.name} does not let anybody in: {why}. {_AGAIN_TEXT}")

    def _away(self, why: str) -> ProviderAway:
        self._log(f"the provider at {self.issuer} does not do: {why}")
        return ProviderAway(
            f"{self.name} does not answer as it has to ({why}). Log in with a passphrase, if you have one, or try "
            "again in a minute; if this stays, tell a steward."
        )


def _header(token: str) -> dict[str, Any]:
    """The header of a token, as far as it can be read."""
    first = token.partition(".")[0]
    try:
        told = json.loads(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
