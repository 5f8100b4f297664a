"""Pages of every state on loopback, for a browser: the views with what a clerk could have told them.

    with Site() as site:
        site.url + "/state/learn-1"

What a state shows is fixed: its picture is compared with the golden one.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import canned
import canned_office as told
from hubbub.service.pages import Page, Viewer, office, page_headers, static_file
from hubbub.service.pages.learn import told as learned
from hubbub.service.pages.learn.view import view as learn

__all__ = ["ANALYST", "AUDITOR", "STATES", "STEWARD", "Site"]

ANALYST = Viewer("ada", frozenset({"analyst"}), "c5r7", "3/2", "2")
STEWARD = Viewer("stella", frozenset({"steward"}), "c5r7")
AUDITOR = Viewer("audrey", frozenset({"auditor"}), "c5r7")

_HEARD = "19.15.17.18.16.20.17.14.18.17"
_TWENTY = "17.18.16.17.21.17.15.17.18.17.16.17.19.17.14.17.17.18.16.17"
_TODAY = {"requests": told.REQUESTS, "incidents": told.INCIDENTS, "people": told.PEOPLE, "spaces": told.SPACES} | {
    "sound": True, "links": 1579, "verified": "2026-11-22T09:30:00.000000Z",
}  # fmt: skip
_LINK = {"name": "new one", "link": "http://127.0.0.1:8080/invitation/inv_4J7Q2M", "until": "2026-11-29T09:00:00Z"}
_TOKENS = [
    {"id": "1f0c5a7e", "label": "notebook", "scopes": ["check", "ask"], "until": "2027-01-01T00:00:00Z", "ended": None},
    {
        "id": "77aa0b1c",
        "label": "",
        "scopes": ["check"],
        "until": "2027-01-01T00:00:00Z",
        "ended": "2026-11-20T08:00:00Z",
    },
]
_SPENT = {"a": "0.6", "b": "0.3", "c": "0.1", "heard": "314.637.1470"}


def _learn(step: int, given: Mapping[str, str]) -> Callable[[], Page]:
    return lambda: learn(learned(step, given), ANALYST)


STATES: dict[str, Callable[[], Page]] = {
    **canned.STATES,
    "learn-1": _learn(1, {}),
    "learn-1-found": _learn(1, {"who": "Zoe"}),
    "learn-2": _learn(2, {}),
    "learn-2-ten": _learn(2, {"heard": _HEARD}),
    "learn-2-program": _learn(2, {"heard": _HEARD, "many": "101"}),
    "learn-3": _learn(3, {"epsilon": "1", "prior": "10", "heard": _TWENTY}),
    "learn-4": _learn(4, {}),
    "learn-4-spent": _learn(4, {**_SPENT, "again": "1", "another": "1"}),
    "learn-4-refused": _learn(4, {"a": "1", "b": "1", "refused": "1"}),
    "today": lambda: office.today(_TODAY, STEWARD),
    "today-quiet": lambda: office.today(
        {**_TODAY, "requests": [], "incidents": [], "people": told.PEOPLE[:2]}, STEWARD
    ),
    "today-broken": lambda: office.today({**_TODAY, "sound": False}, STEWARD),
    "people": lambda: office.people({"people": told.PEOPLE}, STEWARD),
    "people-link": lambda: office.people({"people": told.PEOPLE, "link": _LINK}, STEWARD),
    "people-refused": lambda: office.people({"people": told.PEOPLE, "refused": "the name 'ada' is taken."}, STEWARD),
    "person": lambda: office.person(
        {"person": told.PEOPLE[0], "tokens": _TOKENS, "opened": "grant", "charges": told.CHARGES[1::2]}, STEWARD
    ),
    "person-locked": lambda: office.person({"person": told.PEOPLE[2], "tokens": []}, STEWARD),
    "person-hostile": lambda: office.person({"person": told.PEOPLE[3], "tokens": []}, STEWARD),
    "requests": lambda: office.requests({"requests": told.REQUESTS}, STEWARD),
    "requests-none": lambda: office.requests({"requests": []}, STEWARD),
    "tables": lambda: office.tables({"tables": told.TABLES}, STEWARD),
    "tables-changed": lambda: office.tables({"tables": told.TABLES, "changes": told.CHANGES}, STEWARD),
    "tables-unread": lambda: office.tables(
        {"tables": told.TABLES[1:], "problem": "cannot read the policy file hubbub.toml: it is not there."}, STEWARD
    ),
    "incidents": lambda: office.incidents({"incidents": told.INCIDENTS}, STEWARD),
    "incidents-words": lambda: office.incidents(
        {"incidents": told.INCIDENTS, "shown": "5ad37e753933", "words": "Out of Memory Error: <script>"}, STEWARD
    ),
    "incidents-none": lambda: office.incidents({"incidents": []}, STEWARD),
    "chain": lambda: office.chain({"chains": told.CHAINS}, STEWARD),
    "chain-walking": lambda: office.chain(
        {"chains": [], "walk": {"state": "walking", "done": 34_000, "lines": 148_211}}, STEWARD
    ),
    "chain-broken": lambda: office.chain({"chains": told.BROKEN, "head": "ab12"}, AUDITOR),
    "charges": lambda: office.charges(
        {"charges": told.CHARGES, "spaces": told.SPACES, "limits": told.LIMITS, "more": "7"}, AUDITOR
    ),
    "charges-none": lambda: office.charges({"charges": [], "spaces": told.SPACES}, AUDITOR),
    "log": lambda: office.log({"lines": told.LINES, "more": 2}, AUDITOR),
    "attacks": lambda: office.attacks("1", STEWARD),
}
"""Each state of each page, by name."""


def _application() -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import RedirectResponse, Response
    from starlette.routing import Route

    from hubbub.service.pages.learn import address_of

    def shown(page: Page) -> Response:
        return Response(page.text, headers=page_headers(page.nonce), media_type="text/html")

    async def state(request: Request) -> Response:
        return shown(STATES[request.path_params["name"]]())

    async def step(request: Request) -> Response:
        number, given = int(request.path_params["step"]), dict(request.query_params)
        to = address_of(number, given)
        return RedirectResponse(to, 303) if to else shown(learn(learned(number, given), ANALYST))

    async def static(request: Request) -> Response:
        file = static_file(request.path_params["name"])
        return Response(status_code=404) if file is None else Response(file.content, media_type=file.kind)

    return Starlette(
        routes=[
            Route("/state/{name}", state),
            Route("/learn/{step:int}", step),
            Route("/static/{name}", static),
        ]
    )


class Site:
    """The pages, served by a thread of this process."""

    def __enter__(self) -> Site:
        import uvicorn

        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(_application(), log_level="warning", access_log=False))
        self._thread = threading.Thread(target=self._server.run, args=([listening],), daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(5)
