"""A whole face for tests: the HTTP application before the real gate and a desk by the test's clock. No processes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import HubbubError
from hubbub.service.clerk import _refusal
from hubbub.service.gate import Gate
from hubbub.service.http.app import application
from hubbub.service.http.events import stream
from hubbub.service.http.line import ClerkLine
from hubbub.service.http.metrics import Counts
from hubbub.service.people.elsewhere import Elsewhere
from hubbub.service.people.people import People
from hubbub.service.whole_desk import WholeDesk
from service.helpers import SPACE, World, rooms_behind

PageOnly = (
    "logout", "change_passphrase", "devices", "end_device", "end_other_devices", "binding", "begin_binding",
)  # fmt: skip


class Through(ClerkLine):
    """The line to a gate in this process."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def ask(self, act: str, given: Any, proof: Any = None) -> dict[str, Any]:
        given, proof = json.loads(json.dumps([given, proof]))
        try:
            return {"told": json.loads(json.dumps(self._gate.done(act, given, proof)))}
        except HubbubError as error:
            return {"refused": json.loads(json.dumps(_refusal(error)))}


class FaceWorld(World):
    """A world of the whole desk, with its people, behind the gate and the HTTP application."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, desk: type[WholeDesk] = WholeDesk, **more: Any
    ) -> None:
        super().__init__(folder / "ledger.db", monkeypatch, desk=desk, **more)
        self.people = People(folder / "service.db", ledger=self.ledger)
        self._furnish()

    def _furnish(self) -> None:
        """What stands around the desk, up to the application."""
        rooms = rooms_behind(self.desk, self.people, self.ledger, {"v": SPACE})
        self.office = rooms["office"]
        rooms["elsewhere"] = Elsewhere(self.people, None)
        self.gate = Gate(self.people, rooms, checks=(1e6, 10**6))
        self.line, self.counts = Through(self.gate), Counts()
        self.app = application(self.line, self.counts)

    def restart(self) -> None:
        """The clerk dies and comes again, and so does the front."""
        super().restart()
        self._furnish()

    def person(self, name: str, *roles: str) -> None:
        """Somebody, added if he is not there."""
        if not self.people.roll.roles(name):
            self.people.roll.add(name, list(roles or ("analyst",)), by="the test")

    def token(self, name: str, *roles: str, **limits: Any) -> str:
        """A token of somebody."""
        self.person(name, *roles)
        return str(self.people.new_token(name, by="the test", **limits)["token"])

    def close(self) -> None:
        """Close it; its ledger must be sound."""
        self.people.close()
        super().close()


async def one_event(look: Any) -> AsyncIterator[str]:
    """A stream of events of which the first is told; then it ends, where in life the listener hangs up."""
    async for event in stream(look):
        yield event
        return


def analyst(world: FaceWorld, name: str) -> str:
    """A token of an analyst."""
    return world.token(name)


@pytest.fixture
def faced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The application of a world, and the world."""
    world = FaceWorld(tmp_path, monkeypatch)
    yield world.app, world
    world.close()
