"""Every route called with what the document says, and with what it forbids: what is told is what the document promises.

schemathesis makes the requests (Hatfield-Dodds and Dygalo 2022) and looks at the answers with all its checks: status,
content type, schema, forbidden data that is taken, methods that there are not, a proof that is not looked at. A refused
question is 422, and a budget that is spent 409: both are declared, and no defect. In CI a few for each route; `make
soak` makes many.
"""

from __future__ import annotations

import pytest

from hubbub.service.http import events
from hubbub.service.http.openapi import document
from service.faces import FaceWorld, one_event
from service.helpers import COUNT

schemathesis = pytest.importorskip("schemathesis", reason="the requests are made by schemathesis")

from hypothesis import HealthCheck, Phase, given, settings, strategies as st  # noqa: E402

MODE = schemathesis.GenerationMode
DECLARED = ["2xx", "400", "401", "403", "404", "409", "422", "423", "429"]
REJECTED = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "423", "429"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "stream", one_event)
        made = FaceWorld(tmp_path_factory.mktemp("calls"), patch, max_failures=10**6, max_failures_all=10**6)
        made.person("ada", "analyst")
        for name, role in (("sue", "steward"), ("aud", "auditor")):
            made.person(name, role)
        made.tokens = {scope: made.token(name) for scope, name in WHO.items()}
        one = made.desk.ask("ada", COUNT, {"epsilon": "0.1"}, "first")
        made.until(5)
        made.first = one["id"]
        yield made
        made.close()


WHO = {"check": "ada", "ask": "ada", "known": "ada", "steward": "sue", "auditor": "aud"}


@pytest.fixture(scope="module")
def api(world):
    schema = schemathesis.openapi.from_asgi("/openapi.json", world.app)
    schema.config.generation.with_security_parameters = False
    schema.config.checks.positive_data_acceptance.expected_statuses = DECLARED
    schema.config.checks.negative_data_rejection.expected_statuses = REJECTED
    schema.config.checks.missing_required_header.expected_statuses = ["400", "401", "406"]
    return schema


OPERATIONS = [(path, method) for path, methods in document()["paths"].items() for method in methods]


def tried(world, api, path, method, count):
    operation = api[path][method.upper()]
    needs = operation.definition.raw.get("x-needs", [])
    headers = {"Authorization": f"Bearer {world.tokens[needs[0]] if needs else 'x'}"}

    made = 0
    modes = [operation.as_strategy(generation_mode=mode) for mode in (MODE.POSITIVE, MODE.NEGATIVE)]

    @settings(
        max_examples=count, database=None, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=st.one_of(modes))
    def calls(case):
        nonlocal made
        made += 1
        world.clock.seconds += 600  # whatever was asked is told: nothing is waited for
        world.desk.tick()
        case.call_and_validate(headers=headers)

    calls()
    assert made, "the document gives nothing to call"
    assert world.ledger.record.verify().problems == ()


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_few_requests_of_each_route(world, api, path, method):
    tried(world, api, path, method, 3)


@pytest.mark.soak
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_many_requests_of_each_route(world, api, path, method):
    tried(world, api, path, method, 100)
