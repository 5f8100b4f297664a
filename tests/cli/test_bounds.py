"""`hubbub bounds`: what limits leave out."""

from __future__ import annotations

import json

from cli.helpers import COUNT


def test_bounds_are_shown_charged_and_stored(cli):
    code, _, err = cli("bounds", COUNT, "--epsilon", "0.5")
    assert code == 2
    assert "add --yes" in err
    code, out, err = cli("bounds", COUNT, "--epsilon", "0.5", "--yes")
    assert code == 0
    assert "max_rows" in out
    assert err.startswith("Charged epsilon 0.5")
    code, out, err = cli("bounds", COUNT, "--epsilon", "0.5", "--format", "json")  # stored: nobody has to agree
    assert json.loads(out)["limits"][0]["what"] == "max_rows"
    assert err.startswith("Stored")
    assert "add --yes" in cli("bounds", COUNT, "--epsilon", "0.5", "--fresh")[2]
    assert cli("bounds", COUNT, "--rho", "0.5", "--yes")[0] == 2


def test_a_limit_is_found_from_the_command_line(cli):
    code, _, err = cli("query", COUNT, "--epsilon", "0.9", "--max-rows", "auto", "--yes")
    assert code in (0, 3, 4)
    assert "found: at most" in err or "too few units" in err
    assert cli("query", COUNT, "--epsilon", "0.5", "--max-rows", "some", "--yes")[0] == 2
