"""The routes of the API: which act each one is, and where its fields stand. One table, with `hubbub.service.acts`.

The application and the OpenAPI document are both made from it. Fields that stand in neither path nor query are those of
the body, a JSON object; the name of a request stands in the header Idempotency-Key. What each act needs, and of what
kind its fields are, the acts say. A route whose act there is not is no route.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from hubbub.service.acts import ACTS, Act

__all__ = ["API", "ROUTES", "RouteTo"]

API: Final = "/api/v1"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True)
class RouteTo:
    """A route. told: the schema of what is told. places, query: the field of each parameter of the path, of the query.
    status: of what is told. shape: how it is told, where that is not as it is.
    """

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    act: str
    summary: str
    told: str = "Told"
    places: Mapping[str, str] = field(default_factory=lambda: _NONE)
    query: Mapping[str, str] = field(default_factory=lambda: _NONE)
    status: int = 200
    shape: Literal["plain", "check", "ask", "answer", "plan", "events"] = "plain"

    @property
    def does(self) -> Act:
        """What it does."""
        return ACTS[self.act]

    @property
    def keyed(self) -> bool:
        """Whether a request of it has a name, so that it may be sent again."""
        return "request" in self.does.required and "request" not in self.places.values()

    @property
    def required(self) -> dict[str, Any]:
        """The fields of its body that it needs."""
        secret = {"passphrase": str, "reason": str} if self.does.confirmed else {}
        return self._of_body({**self.does.required, **secret})

    @property
    def optional(self) -> dict[str, Any]:
        """The fields of its body that may be left out."""
        return self._of_body(self.does.optional)

    def _of_body(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        elsewhere = {*self.places.values(), *self.query.values(), *(("request",) if self.keyed else ())}
        return {name: kind for name, kind in fields.items() if name not in elsewhere}


_ID: Final = {"id": "charge"}
_NAME: Final = {"name": "name"}
_FORMS: Final = {"level": "level", "format": "form"}
_OTHER: Final = {name: name for name in ("sql", "having", "order", "limit")}
_PAGE: Final = {"after": "after", "most": "most"}

_ALL: Final = (
    RouteTo("POST", "/check", "check", "What a question would cost; charges nothing", "Check", shape="check"),
    RouteTo("POST", "/ask", "ask", "Ask a question", "Asked", status=202, shape="ask"),
    RouteTo("POST", "/bounds", "check_bounds", "Buy how much the limits of a question leave out", "Asked", status=202,
            shape="ask"),
    RouteTo("GET", "/answers", "answers", "The answers that one may read", "Answers", query={"most": "most"}),
    RouteTo("GET", "/answers/{id}", "answer", "An answer, or its draw as another question's", "Answer", _ID,
            {**_FORMS, **_OTHER}, shape="answer"),
    RouteTo("POST", "/answers/{id}/read", "read", "Read another's answer: counts against one's own limit", "Answer",
            _ID, _FORMS, shape="answer"),
    RouteTo("POST", "/answers/{id}/refine", "refine", "Make an answer better by a second draw", "Asked", _ID,
            status=202, shape="ask"),
    RouteTo("POST", "/answers/{id}/refine/check", "check_refine", "What refining would cost and help",
            "Refinement", _ID, shape="check"),
    RouteTo("POST", "/answers/{id}/cancel", "cancel", "Stop waiting: the run goes on, the charge stays", places=_ID),
    RouteTo("GET", "/answers/{id}/receipt", "receipt", "What a question asked and cost", places=_ID),
    RouteTo("POST", "/plan", "plan", "Ask several questions, charged as one", "Plan", status=202, shape="plan"),
    RouteTo("GET", "/tables", "tables", "The declared tables"),
    RouteTo("GET", "/tables/{name}", "table", "One declared table", places=_NAME),
    RouteTo("GET", "/bound-costs", "bound_costs", "What the declared bounds of each table cost"),
    RouteTo("GET", "/policy-changes", "policy_changes", "What the policy file says otherwise than what holds"),
    RouteTo("GET", "/budget", "budget", "What is left", "Budget"),
    RouteTo("GET", "/history", "history", "What one asked and read", "History"),
    RouteTo("GET", "/events", "events", "Releases as they come", shape="events"),
    RouteTo("GET", "/me", "whoami", "Who one is, and what this token may do"),
    RouteTo("GET", "/tokens", "tokens", "One's own tokens", "List"),
    RouteTo("POST", "/tokens", "create_token", "Make a token, which is shown once", status=201),
    RouteTo("DELETE", "/tokens/{token}", "end_token", "End a token of one's own", places={"token": "token"}),
    RouteTo("GET", "/requests", "my_requests", "One's own requests for more budget", "List"),
    RouteTo("POST", "/requests", "request_budget", "Ask a steward for more budget", status=201),
    RouteTo("DELETE", "/requests/{request}", "withdraw_request", "Withdraw a request", places={"request": "request"}),
    RouteTo("GET", "/people", "people", "The people of the service", "List"),
    RouteTo("POST", "/people", "invite", "Invite somebody", status=201),
    RouteTo("PUT", "/people/{name}/roles", "set_roles", "Give somebody other roles", places=_NAME),
    RouteTo("POST", "/people/{name}/disable", "disable", "Let somebody in no more", places=_NAME),
    RouteTo("POST", "/people/{name}/enable", "enable", "Let somebody in again", places=_NAME),
    RouteTo("POST", "/people/{name}/leave", "leave", "Somebody leaves", places=_NAME),
    RouteTo("POST", "/people/{name}/reset", "reset", "A link for a new passphrase", places=_NAME),
    RouteTo("GET", "/people/{name}/tokens", "tokens_of", "Somebody's tokens", "List", _NAME),
    RouteTo("DELETE", "/people/tokens/{token}", "end_token_of", "End anybody's token", places={"token": "token"}),
    RouteTo("POST", "/grants", "grant", "Let an account spend so much"),
    RouteTo("POST", "/grants/revoke", "revoke_grant", "Take back what an account was granted"),
    RouteTo("POST", "/unlock", "unlock", "Clear failures, after a look at the incidents"),
    RouteTo("POST", "/raise", "raise_ceiling", "Raise a budget"),
    RouteTo("POST", "/refresh", "refresh", "A table has new rows"),
    RouteTo("GET", "/requests/all", "requests", "Everybody's requests", "List", query={"state": "state"}),
    RouteTo("POST", "/requests/{request}/decide", "decide", "Decide a request", places={"request": "request"}),
    RouteTo("GET", "/incidents", "incidents", "What went wrong", "List"),
    RouteTo("POST", "/incidents/{incident}/read", "incident", "The words of an incident; that they were read is logged",
            places={"incident": "incident"}),
    RouteTo("GET", "/spaces", "spaces", "The joint budget of each unit space", "List"),
    RouteTo("GET", "/spending", "spending", "What was charged and may be, in all and by analyst", "List"),
    RouteTo("GET", "/limits", "limits", "What was last said of each account", "List"),
    RouteTo("GET", "/charges", "charges", "Everybody's charges", "List", query={**_PAGE, "analyst": "analyst"}),
    RouteTo("GET", "/chain/verify", "chain", "Whether the ledger still says what it said"),
    RouteTo("POST", "/chain/walk", "begin_chain", "Begin to look through the ledger"),
    RouteTo("GET", "/chain/walk", "chain_walk", "How far that is, and what it found"),
    RouteTo("GET", "/audit", "audit", "The service's own log", "List", query=_PAGE),
    RouteTo("GET", "/audit/verify", "verify_audit", "Whether that log still says what it said", query={"head": "head"}),
)  # fmt: skip

ROUTES: Final = tuple(route for route in _ALL if route.act in ACTS)
"""Every route of an act that there is; a path with fixed words stands before the same with a parameter."""
