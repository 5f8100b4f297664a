"""A small provider of OpenID Connect on this machine: discovery, keys, authorize, token.

It logs in whoever it is told to.
It does what a provider should, and checks what a client should send; a test may have it do otherwise.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

__all__ = ["CLIENT", "SECRET", "LocalProvider", "unsigned"]

CLIENT, SECRET = "hubbub", "s3cret of the client"


def unsigned(claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
    """A token by the method "none"."""
    parts = [json.dumps(one).encode() for one in (header or {"alg": "none", "typ": "JWT"}, claims)]
    return ".".join([base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts] + [""])


class LocalProvider:
    """who: the subject that is logged in there. alter: changes the claims; sign: makes the token of them; answer:
    changes what comes back with the browser; document: changes what is said in discovery.
    """

    def __init__(self, *, secret: str | None = SECRET, methods: tuple[str, ...] = ("client_secret_basic",)) -> None:
        self.who, self.secret, self.methods = "sub-of-ada", secret, methods
        self.key = ECKey.generate_key("P-256", {"kid": "k1", "use": "sig", "alg": "ES256"})
        self.alter: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.answer: Callable[[dict[str, str]], dict[str, str]] = lambda told: told
        self.document: Callable[[dict[str, Any]], dict[str, Any]] = lambda told: told
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None: ...

            def do_GET(self) -> None:
                provider.get(self)

            def do_POST(self) -> None:
                provider.token(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}/clinic"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "ES256", "kid": "k1"}, claims, self.key)

    def by_secret(self, claims: dict[str, Any]) -> str:
        """Signed by HS256, with the public key as the secret: whoever takes the header's word lets it pass."""
        public = json.dumps(self.key.as_dict(private=False)).encode()
        header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"k1"}').rstrip(b"=")
        body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
        mac = base64.urlsafe_b64encode(hmac.new(public, header + b"." + body, "sha256").digest()).rstrip(b"=")
        return b".".join([header, body, mac]).decode()

    # -- what it answers ----------------------------------------------------------------------------------------

    def get(self, handler: BaseHTTPRequestHandler) -> None:
        place = urlsplit(handler.path).path
        self.asked.append(place)
        if place == "/clinic/.well-known/openid-configuration":
            self._send(handler, 200, self.document(self._document()))
        elif place == "/clinic/keys":
            shown = KeySet([self.key]).as_dict(private=False)
            self._send(handler, 200, shown)
        else:
            self._send(handler, 404, {})

    def _document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": list(self.methods),
        }

    def authorize(self, address: str) -> dict[str, str]:
        """What a browser brings back that went to this address, and is logged in there."""
        parts = urlsplit(address)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.issuer}/authorize"
        asked = {name: values[0] for name, values in parse_qs(parts.query, strict_parsing=True).items()}
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["scope"] == "openid"
        assert asked["code_challenge_method"] == "S256"
        assert min(len(asked[name]) for name in ("state", "nonce", "code_challenge")) >= 43
        code = f"code-{len(self.codes)}-{hashlib.sha256(address.encode()).hexdigest()[:12]}"
        self.codes[code] = {**asked, "sub": self.who}
        return self.answer({"code": code, "state": asked["state"]})

    def back(self, address: str) -> str:
        """The same, as the path with which the browser comes back."""
        told = self.authorize(address)
        return f"/login/provider/back?{urlencode(told)}"

    def token(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(urlsplit(handler.path).path)
        sent = parse_qs(handler.rfile.read(int(handler.headers["Content-Length"])).decode())
        given = {name: values[0] for name, values in sent.items()}
        known = self.codes.pop(given.get("code", ""), None)
        challenge = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        right = (
            known is not None
            and given["grant_type"] == "authorization_code"
            and given["redirect_uri"] == known["redirect_uri"]
            and base64.urlsafe_b64encode(challenge).decode().rstrip("=") == known["code_challenge"]
        )
        if not self._is_client(handler, given):
            self._send(handler, 401, {"error": "invalid_client"})
        elif not right:
            self._send(handler, 400, {"error": "invalid_grant"})
        else:
            assert known is not None
            now = int(time.time())
            claims = {
                "iss": self.issuer, "sub": known["sub"], "aud": CLIENT, "exp": now + 300, "iat": now,
                "nonce": known["nonce"],
            }  # fmt: skip
            told = {"access_token": "a", "token_type": "Bearer", "id_token": self.sign(self.alter(claims))}
            self._send(handler, 200, told)

    def _is_client(self, handler: BaseHTTPRequestHandler, given: dict[str, str]) -> bool:
        if self.secret is None:
            return given.get("client_id") == CLIENT and "client_secret" not in given
        if "client_secret_basic" in self.methods:
            basic = base64.b64encode(f"{CLIENT}:{self.secret}".encode()).decode()
            return handler.headers.get("Authorization") == f"Basic {basic}"
        return (given.get("client_id"), given.get("client_secret")) == (CLIENT, self.secret)

    def _send(self, handler: BaseHTTPRequestHandler, status: int, told: Any) -> None:
        data = json.dumps(told).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
