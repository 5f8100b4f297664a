"""The draft's test vectors, byte for byte; and that a vector which does not hold is seen."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from collect.helpers import VECTORS, made_vector
from hubbub.cli.main import run
from hubbub.collect import Count, Histogram, MultihotCountVec, Prio3, Sum, SumVec, check_vector, read_vector
from hubbub.errors import PolicyError
from seeded import SeededBits

pytest.importorskip("Crypto.Hash.TurboSHAKE128", reason="pycryptodome (extra collect) is not installed")

OURS = [
    (Prio3(Count(), 3, b"c"), [0, 1]),
    (Prio3(Sum(300)), [300, 17]),
    (Prio3(SumVec(3, 5, 2)), [[1, 2, 5]]),
    (Prio3(Histogram(7, 3), 2, b"context"), [6, 0, 6]),
    (Prio3(MultihotCountVec(5, 2, 3)), [[False, True, False, False, True]]),
]


@pytest.mark.skipif(not VECTORS.is_dir(), reason="the shared data folder is not beside this checkout")
def test_every_vector_of_the_draft_holds(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(VECTORS.glob("*.json"))
    assert len(files) >= 11
    assert run(["collect", "check-vectors", *map(str, files)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{file.name}: holds" for file in files]


@pytest.mark.parametrize(("prio3", "measurements"), OURS, ids=lambda x: x.circuit.name if isinstance(x, Prio3) else "")
def test_a_vector_of_our_own_holds_and_any_changed_value_does_not(prio3: Prio3, measurements: list[Any]) -> None:
    vector = made_vector(prio3, measurements, SeededBits("vector"))
    assert list(check_vector(json.loads(json.dumps(vector)))) == []
    report = vector["reports"][0]
    for name in ("public_share", "input_shares", "verifier_shares", "verifier_messages", "out_shares"):
        if not json.dumps(report[name]).strip('[]"'):
            continue
        changed = copy.deepcopy(vector)
        changed["reports"][0] = {**report, name: json.loads(_another_digit(json.dumps(report[name])))}
        assert list(check_vector(changed)), name
    for name in ("agg_shares", "verify_key", "ctx"):
        changed = {**vector, name: json.loads(_another_digit(json.dumps(vector[name] or "00")))}
        assert list(check_vector(changed)), name


def _another_digit(text: str) -> str:
    place = max(i for i, c in enumerate(text) if c in "0123456789abcdef")
    return text[:place] + ("1" if text[place] == "0" else "0") + text[place + 1 :]


def test_a_failure_that_is_expected_holds_at_its_step_and_at_no_other() -> None:
    prio3 = Prio3(Count())
    vector = made_vector(prio3, [1, 0], SeededBits("bad"))
    share = bytearray.fromhex(vector["reports"][0]["input_shares"][0])
    share[0] ^= 1
    vector["reports"][0]["input_shares"][0] = share.hex()
    del vector["operations"][0]
    assert list(check_vector(vector))
    state, verifier = prio3.verify_init(
        bytes.fromhex(vector["verify_key"]), 0, *_rows(vector["reports"][0], "nonce", "public_share"), _row(share.hex())
    )
    assert state.good.all()
    vector["reports"][0]["verifier_shares"][0][0] = verifier.tobytes().hex()
    combine = next(o for o in vector["operations"] if o["operation"] == "verifier_shares_to_message")
    combine["success"] = False
    vector["operations"] = [
        o for o in vector["operations"] if o["operation"] != "verify_next" or o["report_index"] == 1
    ]
    assert list(check_vector(vector)) == []
    earlier = next(o for o in vector["operations"] if o["operation"] == "verify_init")
    earlier["success"] = False
    assert any("succeeds, and should fail" in line for line in check_vector(vector))


def test_every_operation_is_run_also_after_a_failure() -> None:
    """A changed message: both aggregators have to refuse it, and the vector says so of one only."""
    vector = made_vector(Prio3(Histogram(4, 2)), [3], SeededBits("message"))
    vector["operations"] = [o for o in vector["operations"] if o["operation"] in ("verify_init", "verify_next")]
    message = vector["reports"][0]["verifier_messages"][0]
    vector["reports"][0]["verifier_messages"][0] = _another_digit(message)
    nexts = [o for o in vector["operations"] if o["operation"] == "verify_next"]
    nexts[0]["success"] = False
    assert list(check_vector(vector)) == ["operation 3 (verify_next): it fails, and should succeed"]
    nexts[1]["success"] = False
    assert list(check_vector(vector)) == []
    del vector["operations"][1]  # of which the state is then missing
    nexts[1]["success"] = True
    assert list(check_vector(vector)) == ["operation 2 (verify_next): it fails, and should succeed"]


def _row(text: str) -> Any:
    import numpy as np

    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(1, -1)


def _rows(report: dict[str, Any], *names: str) -> list[Any]:
    return [_row(report[name]) for name in names]


def test_what_is_no_vector_is_said_to_be_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = made_vector(Prio3(Count()), [1], SeededBits("ours"))
    files = {
        "list.json": "[]",
        "deep.json": "[" * 100_000,
        "text.json": "vector",
        "poplar.json": json.dumps({**good, "bits": 4}),
        "proofs.json": json.dumps({**good, "proofs": 3}),
        "empty.json": "{}",
        "operations.json": json.dumps({**good, "operations": [7]}),
        "parameters.json": json.dumps({**good, "length": 3}),
        "hex.json": json.dumps({**good, "ctx": "zz"}),
        "shares.json": json.dumps({**good, "shares": "two"}),
        "xof.json": json.dumps({"dst": 1, "binder": "", "derived_seed": "", "expanded_vec_field128": ""}),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(PolicyError):
            list(check_vector(read_vector(tmp_path / name)))
    (tmp_path / "good.json").write_text(json.dumps(good))
    assert run(["collect", "check-vectors", *(str(tmp_path / name) for name in ("good.json", "text.json"))]) == 3
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "good.json: holds"
    assert out[1].startswith("text.json: it cannot be checked: ")
    with pytest.raises(PolicyError, match="could not be read"):
        read_vector(tmp_path / "none.json")
