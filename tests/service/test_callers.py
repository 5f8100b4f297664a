"""Connections that say nothing keep nobody out."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from contextlib import suppress

import pytest

pytest.importorskip("uvicorn", reason="the service needs the extra `serve`")

import uvicorn

from hubbub.service import front
from hubbub.service.http import callers
from hubbub.service.http.app import application, counting_application
from hubbub.service.http.callers import PatientLoop, patient_protocol
from hubbub.service.http.metrics import Counts

WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BEGUN = {
    "nothing": b"",
    "half a head": WHOLE[:-2],
    "half a body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
    "half of a second": WHOLE + WHOLE[:-2],
}


async def app(scope, receive, send):
    """Answers once the whole body is there; /slow a second later."""
    if scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        await asyncio.sleep(1.0 if scope["path"] == "/slow" else 0)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


def served(visit, *, application=app, **patience):
    """What a visit finds at the server of an application, with a protocol of so much patience."""

    async def run():
        config = uvicorn.Config(
            application, port=0, log_level="critical", lifespan="off", http=patient_protocol(**patience)
        )
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        place = server.servers[0].sockets[0].getsockname()[:2]
        try:
            return await visit(lambda: asyncio.open_connection(*place))
        finally:
            server.force_exit = server.should_exit = True
            await running

    return asyncio.run(asyncio.wait_for(run(), 20))


async def end_of(reader):
    """Everything that is said until the line is closed."""
    said = b""
    with suppress(ConnectionError):
        while piece := await reader.read(1000):
            said += piece
    return said


def test_a_request_that_does_not_come_whole_is_given_up_and_an_answer_is_awaited():
    async def visit(call):
        lines = {name: await call() for name in (*BEGUN, "slow")}
        for name, (_, writer) in lines.items():
            writer.write(BEGUN.get(name, WHOLE.replace(b"/ ", b"/slow ")))
        ends = {name: asyncio.create_task(end_of(reader)) for name, (reader, _) in lines.items()}
        return {name: await asyncio.wait_for(end, 5) for name, end in ends.items()}

    said = served(visit, look=0.05, patience=0.3)
    assert said["slow"].endswith(b"ok")
    assert (said["nothing"], said["half a head"], said["half a body"]) == (b"", b"", b"")
    assert said["half of a second"].count(b"200 OK") == 1


def test_many_that_say_nothing_make_room_the_oldest_first():
    async def visit(call):
        idle = await asyncio.gather(*(call() for _ in range(30)))
        ends = [asyncio.create_task(end_of(reader)) for reader, _ in idle]
        reader, writer = await call()
        writer.write(WHOLE)
        told = await asyncio.wait_for(reader.readuntil(b"ok"), 3)
        await asyncio.wait(ends, timeout=0.2)
        return told, sum(end.done() for end in ends)

    told, ended = served(visit, most=10)
    assert told.startswith(b"HTTP/1.1 200")
    assert ended == 21  # nine of them are there, and the one that asked


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of this machine, by itself."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    kinds = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *kinds))
    return folder


def safely(visit, certificate, **patience):
    """The same with TLS, by the event loop that the front has. visit: given a plain call, and one by TLS."""

    async def run():
        config = uvicorn.Config(
            app, port=0, log_level="critical", lifespan="off", http=patient_protocol(**patience),
            ssl_certfile=certificate / "cert", ssl_keyfile=certificate / "key",
        )  # fmt: skip
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        place = server.servers[0].sockets[0].getsockname()[:2]
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            return await visit(
                lambda: asyncio.open_connection(*place), lambda: asyncio.open_connection(*place, ssl=context)
            )
        finally:
            server.force_exit = server.should_exit = True
            await running

    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        return runner.run(asyncio.wait_for(run(), 30))


def test_handshakes_that_are_not_done_make_room_and_have_an_end(certificate, monkeypatch):
    monkeypatch.setattr(callers, "_SHAKING", 1.0)

    async def visit(plain, by_tls):
        idle = await asyncio.gather(*(plain() for _ in range(30)))
        for _, writer in idle[:15]:
            writer.write(b"\x16\x03\x01\x02\x00")  # the beginning of one
        ends = [asyncio.create_task(end_of(reader)) for reader, _ in idle]
        reader, writer = await by_tls()
        writer.write(WHOLE)
        told = await asyncio.wait_for(reader.readuntil(b"ok"), 5)
        await asyncio.wait(ends, timeout=0.2)
        early = sum(end.done() for end in ends)
        await asyncio.wait(ends, timeout=8)
        again, writer = await by_tls()
        writer.write(WHOLE)
        await asyncio.wait_for(again.readuntil(b"ok"), 5)
        return told, early, sum(end.done() for end in ends)

    told, early, ended = safely(visit, certificate, most=10)
    assert told.startswith(b"HTTP/1.1 200")
    assert early >= 20
    assert ended == 30


def test_a_handshake_in_good_time_is_served_as_before(certificate):
    async def visit(plain, by_tls):
        said = []
        for _ in range(3):
            reader, writer = await by_tls()
            writer.write(WHOLE)
            said.append(await asyncio.wait_for(reader.readuntil(b"ok"), 5))
            writer.close()
        failed, other = await plain()
        other.write(b"no handshake at all")
        await asyncio.wait_for(end_of(failed), 5)
        return said

    assert all(one.startswith(b"HTTP/1.1 200") for one in safely(visit, certificate))


@pytest.mark.parametrize(
    ("caller", "seen"),
    [("127.0.0.1", "203.0.113.7"), ("::1", "203.0.113.7"), ("10.0.0.1", "10.0.0.1"), ("192.0.2.1", "192.0.2.1")],
)
def test_who_asks_for_another_is_believed_on_this_machine_alone(caller, seen, monkeypatch):
    """Whatever the environment says: uvicorn believes whom FORWARDED_ALLOW_IPS names."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    heard, made = [], []

    async def application(scope, receive, send):
        heard.append(scope["client"][0])

    class Server:
        def __init__(self, config):
            config.load()
            made.append(config.loaded_app)

        async def serve(self): ...

    monkeypatch.setattr(uvicorn, "Server", Server)

    async def run():
        await front._serve([(application, {"host": "127.0.0.1", "port": 0})])
        headers = [(b"x-forwarded-for", b"198.51.100.1, 203.0.113.7")]  # the last is the one that the server saw
        scope = {"type": "http", "client": (caller, 1), "headers": headers, "scheme": "http", "asgi": {}}
        await made[0](scope, None, None)

    asyncio.run(run())
    assert heard == [seen]


TWO_LENGTHS = {
    "chunked": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "the other first": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "in capitals": b"CONTENT-LENGTH: 0\r\nTRANSFER-ENCODING: CHUNKED\r\n\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("how", TWO_LENGTHS)
@pytest.mark.parametrize("counts", [False, True])
def test_nothing_is_read_behind_a_request_of_two_lengths(how, counts):
    """Its line is closed (RFC 9112, 6.1): what follows may be another's request to a server before this one."""
    asked = []

    class Line:
        def ask(self, act, given, proof=None):
            asked.append(act)
            return {"told": {}}

    made = counting_application(Line(), Counts()) if counts else application(Line())

    async def visit(opened):
        reader, writer = await opened()
        head = b"POST /api/v1/check HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hub_x\r\n"
        writer.write(head + TWO_LENGTHS[how] + b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        return await asyncio.wait_for(end_of(reader), 5)

    said = served(visit, application=made)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1") == 1
    assert asked == []
