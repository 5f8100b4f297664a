"""`hubbub publish`: a folder to hand out, from the command line."""

from __future__ import annotations

import json

from cli.helpers import COUNT


def test_an_answer_is_published_once_and_paid_once(cli, people):
    code, out, err = cli("publish", COUNT, "--epsilon", "0.1", "-o", "out", "--title", "People", "--yes")
    assert (code, out) == (0, "")
    assert "Charged epsilon 0.1. Wrote out" in err
    about = json.loads((people / "out/metadata.json").read_text("utf-8"))
    assert (about["title"], about["epsilon"], about["delta"], about["files"]) == ("People", "0.1", 0.0, ["answer.csv"])
    assert cli("publish", COUNT, "--epsilon", "0.1", "-o", "out", "--yes")[0] == 2
    code, _, err = cli("publish", COUNT, "--epsilon", "0.1", "-o", "out", "--force")
    assert code == 0, "a stored answer needs no consent"
    assert "A stored release: nothing charged." in err


def test_what_to_publish_is_said_once(cli):
    for words in (
        ["-o", "out"],
        [COUNT, "--synthetic", "people", "-o", "out"],
        ["--marginals", "people", "-o", "out"],
        ["--of", "sex", COUNT, "-o", "out"],
        ["--synthetic", "people", "--noise", "laplace", "-o", "out"],
    ):
        code, out, err = cli("publish", *words, "--epsilon", "0.1", "--yes")
        assert (code, out) == (2, ""), (words, err)


def test_stored_marginals_need_no_consent(cli, people):
    text = (people / "hubbub.toml").read_text("utf-8").replace("[budget]", "[budget]\ndelta = 1e-6")
    (people / "hubbub.toml").write_text(text.replace("budget.db", "other.db"))
    assert cli("ledger", "create")[0] == 0
    words = ["publish", "--marginals", "people", "--of", "ward", "--epsilon", "0.5"]
    code, _, err = cli(*words, "-o", "one")
    assert (code, "add --yes" in err) == (2, True)
    assert cli(*words, "-o", "one", "--yes")[0] == 0
    code, _, err = cli(*words, "-o", "two")
    assert code == 0, err
    assert "A stored release: nothing charged." in err
