"""`hubbub serve --demo` leads a newcomer to an own first answer in three clicks: real processes, real rows."""

from __future__ import annotations

import json
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("demo")  # one service for all


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    pytest.importorskip("statsmodels", reason="the survey ships with statsmodels (extra demo)")
    log = (tmp_path_factory.mktemp("demo") / "log").open("w")
    command = [sys.executable, "-m", "hubbub", "serve", "--demo", "--json", "--listen", "127.0.0.1:0"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert started.stdout is not None
        assert select.select([started.stdout], [], [], 90)[0]
        yield json.loads(started.stdout.readline())
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(60)
        log.close()


def test_three_clicks_lead_to_an_own_answer(opened: Any, demo: dict[str, Any]) -> None:
    from playwright.sync_api import expect

    page = opened(home=demo["url"])
    page.goto(demo["analyst"]["link"])  # the first click
    page.get_by_role("button", name="Come in").click()  # the second; the question stands there, with its price
    for _ in range(3):  # on a machine that does much else a run may not end within its second
        page.get_by_role("button", name=re.compile("^Ask: spend")).click()
        done = page.get_by_role("heading", name=re.compile("The numbers|There is no answer"))
        expect(done).to_be_visible(timeout=30_000)
        if page.get_by_role("heading", name="The numbers").is_visible():
            break
        page.goto("/ask?q=SELECT rate_marriage, COUNT(*) AS n FROM survey GROUP BY rate_marriage")
    expect(page.get_by_role("heading", name="The numbers")).to_be_visible()
    expect(page.locator("td.number", has_text="±").first).to_be_visible()


def test_the_steward_and_the_auditor_come_in(opened: Any, demo: dict[str, Any]) -> None:
    from playwright.sync_api import expect

    for role, heading in (("steward", "Today"), ("auditor", "Charges")):
        page = opened(home=demo["url"])
        page.goto(demo[role]["link"])
        page.get_by_role("button", name="Come in").click()
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
