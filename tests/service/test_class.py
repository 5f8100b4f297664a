"""`hubbub serve --class N`: a link a pupil, each with a limit that the joint budget holds."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import hubbub as hb
from hubbub.cli import serve
from hubbub.ledger.policy import load_policy
from hubbub.service import demo
from hubbub.service.people.at_home import opened_people

URL = "http://127.0.0.1:1"


def test_a_class_is_a_teacher_and_pupils_who_may_spend_one_each(tmp_path):
    pytest.importorskip("statsmodels", reason="the survey ships with statsmodels (extra demo)")
    from hubbub.cli.survey import find_survey

    file = demo.set_up_class(tmp_path, find_survey(), URL, 30)
    said = load_policy(file)
    assert (said.budget.epsilon, said.per_analyst, said.service.lanes) == (30, 1, 2)
    links = demo.class_entrances(file, URL, 30)
    assert list(links) == [demo.TEACHER, *demo.pupils(30)]
    assert len(set(links.values())) == 31
    people = opened_people(said)
    teacher, pupil = (people.enter(links[name].rpartition("/")[2]) for name in (demo.TEACHER, "pupil 30"))
    assert (teacher["roles"], pupil["roles"]) == (["steward", "auditor"], ["analyst"])
    with pytest.raises(hb.errors.HubbubError):
        people.enter(links["pupil 30"].rpartition("/")[2])  # once
    people.close()


@pytest.mark.parametrize(
    "given", [["--class", "3", "--demo"], ["--class", "3", "--policy", "x.toml"], ["--class", "0"], ["--class", "501"]]
)
def test_a_class_has_a_policy_of_its_own(given):
    assert CliRunner().invoke(serve.command, given).exit_code == 2


def test_who_starts_a_service_reads_what_holds_of_its_runners():
    held = {"landlock": 0, "undumpable": True, "no_new_privs": True, "network": True}
    assert serve.shut_in(held) == (
        "runners: files NOT shut in (no Landlock), memory hidden, no new rights, network open"
    )
    assert "by Landlock 7," in serve.shut_in({**held, "landlock": 7})
