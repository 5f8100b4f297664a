"""Evidence for an auditor: a zip of what a ledger promised and what it spent, which he can check without hubbub.

    README.txt        what is in it, and how to check it
    totals.txt        of each unit space, in words: what all that left together cost, and what that means for one person
    totals.json       the same as numbers
    chain.jsonl       every row with its link; questions with their words, answers as commitments
    receipts/ID.json  of each charge, what was asked, run and paid
    policies/HASH.toml   the texts of the policies that charges name, without passwords
    versions.json     whose ledger, its head, what our own walk found, the version of hubbub
    verify.py         a program of its own that checks all this

The answers themselves are left out, unless they are asked for: a line of a release holds a commitment, so that the
chain can be computed without them. Lines of older schemas hold their answers themselves; those are withheld, and said
to be. The same state of a ledger gives the same bytes: entries in one order, without times of their own, and not
compressed.
"""

from __future__ import annotations

import json
import os
import uuid
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hubbub.errors import PolicyError
from hubbub.ledger import evidence_check
from hubbub.ledger.accounts import EVERYONE, TRAINING, Total
from hubbub.ledger.books import NOTHING
from hubbub.ledger.budget import decimal_text
from hubbub.ledger.files import flush_folder
from hubbub.ledger.records import Entry
from hubbub.ledger.schema import VERSION
from hubbub.ledger.wording import is_commitment

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger
    from hubbub.ledger.verify import Verification

__all__ = ["evidence_files", "write_evidence"]

_BEGAN: Final = (1980, 1, 1, 0, 0, 0)


def write_evidence(ledger: Ledger, target: Path, *, with_answers: bool = False) -> Verification:
    """Write the zip to a new file; what our own walk over the ledger found.

    Raises:
        PolicyError: the file exists or cannot be written, or the ledger cannot be read.
    """
    if target.exists():
        raise PolicyError(f"{target} exists and is left as it is. Name another file.")
    verified = ledger.record.verify()
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.new")
    try:
        with (
            open(draft, "xb", opener=lambda name, how: os.open(name, how, 0o600)) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as folder,
        ):
            for name, text in evidence_files(ledger, verified, with_answers=with_answers):
                entry = zipfile.ZipInfo(name, _BEGAN)
                entry.create_system, entry.external_attr = 3, 0o600 << 16
                folder.writestr(entry, text)
        os.link(draft, target)
        flush_folder(target.parent)
    except FileExistsError:
        raise PolicyError(f"{target} exists and is left as it is. Name another file.") from None
    except OSError as error:
        raise PolicyError(f"cannot write the evidence {target}: {error.strerror}.") from None
    finally:
        draft.unlink(missing_ok=True)
    return verified


def evidence_files(ledger: Ledger, verified: Verification, *, with_answers: bool = False) -> Iterator[tuple[str, str]]:
    """The names and texts of the zip's entries, in their order."""
    from hubbub import __version__

    # Others may charge meanwhile: all is as it was at the line where the walk ended.
    lines = list(_chain(ledger, with_answers, verified.serial))
    paid = _paid(lines)
    totals = [_total(ledger, space, paid, verified.serial) for space in ledger.balance.spaces()]
    yield "README.txt", _README.format(answers=_WITH if with_answers else _WITHOUT, check=evidence_check.__doc__)
    yield "totals.txt", "\n\n".join(_in_words(total) for total in totals) + "\n"
    yield "totals.json", _json(totals)
    versions = {"hubbub": __version__, "schema": VERSION, "ledger": ledger.id, "answers": with_answers}
    versions |= {"head": {"line": verified.serial, "hash": verified.head}, "lines": verified.rows}
    yield "versions.json", _json({**versions, "problems": list(verified.problems)})
    yield "chain.jsonl", "".join(f"{line}\n" for line in lines)
    for entry in _entries(ledger, None, verified.serial):
        yield f"receipts/{entry.id}.json", _json(ledger.record.receipt(entry.id))
    for digest, text in ledger.record.policies():
        yield f"policies/{digest}.toml", text
    yield "verify.py", Path(evidence_check.__file__).read_text("utf-8")


def _chain(ledger: Ledger, with_answers: bool, last: int) -> Iterator[str]:
    """The lines of the chain up to one, without what is not for an auditor."""
    for text in ledger.record.export():
        line = json.loads(text)
        if line["serial"] > last:
            return
        if line["kind"] == "ledger":
            line["withheld"] = ["secret"]
        elif line["kind"] == "release" and not with_answers:
            line.pop("words", None)
            if not is_commitment(line["row"]["payload"]):  # of an older schema
                line["row"], line["withheld"] = None, ["payload"]
        yield json.dumps(line)


def _entries(ledger: Ledger, space: str | None, last: int) -> list[Entry]:
    return [entry for entry in ledger.record.history(space) if entry.serial <= last]


def _paid(lines: Sequence[str]) -> dict[tuple[str, str], Total]:
    """What every account had paid at the end of a chain."""
    paid: dict[tuple[str, str], Total] = {}
    for text in lines:
        line = json.loads(text)
        for space, account, *total in json.loads(line["row"]["sums"]) if line["kind"] == "charge" else ():
            paid[space, account] = Total.read(*total)
    return paid


def _total(ledger: Ledger, space: str, paid: Mapping[tuple[str, str], Total], last: int) -> dict[str, Any]:
    """What one unit space was promised, and what was charged to it."""
    from hubbub.accounting import epsilon_of_rho
    from hubbub.accounting.meaning import posterior

    budget, total = ledger.balance.budget(space), paid.get((space, EVERYONE), NOTHING)
    epsilon, delta = total.epsilon, total.delta
    if total.impure:
        epsilon, delta = epsilon_of_rho(total.rho, budget.delta_conversion), delta + budget.delta_conversion
    trained = paid.get((space, TRAINING), NOTHING)
    epsilon, delta = epsilon + trained.epsilon, delta + trained.delta
    entries = _entries(ledger, space, last)
    asked = [entry for entry in entries if entry.kind == "question"]
    return {
        "unit_space": space,
        "neighbours": ledger.balance.relation(space),
        "ceiling": {
            "epsilon": decimal_text(budget.epsilon),
            "delta": None if budget.delta is None else decimal_text(budget.delta),
        },
        "training": None
        if budget.training is None
        else {
            "set_aside": list(map(decimal_text, budget.training)),
            "left": list(map(decimal_text, ledger.balance.training(space))),
        },
        "charged": {"epsilon": decimal_text(epsilon), "delta": decimal_text(delta), "rho": decimal_text(total.rho)},
        "questions": len(asked),
        "answered": sum(entry.state in ("stored", "shown") for entry in asked),
        "analysts": sorted({entry.analyst for entry in asked}),
        "who_believed_one_in_ten": f"{posterior(0.1, float(epsilon))[1]:.4f}",
    }


def _in_words(total: dict[str, Any]) -> str:
    charged, ceiling = total["charged"], total["ceiling"]
    beside = "" if charged["delta"] == "0" else f" and delta {charged['delta']}"
    promised = "" if ceiling["delta"] is None else f" and delta {ceiling['delta']}"
    share = float(total["who_believed_one_in_ten"])
    but = "" if charged["delta"] == "0" else f", but for a chance of {float(charged['delta']):.2g} that it is more"
    return (
        f"Unit space {total['unit_space']}. {total['questions']} questions were charged, {total['answered']} of them "
        f"were answered, for {len(total['analysts'])} analysts. Everything that left together cost epsilon "
        f"{charged['epsilon']}{beside}, of a ceiling of epsilon {ceiling['epsilon']}{promised}. For one "
        f"{total['unit_space']}: someone who held one chance in ten that it is in the data may, after all these "
        f"answers together, hold at most {share:.0%}{but}, whatever else they know. It is counted per unit, not per "
        "table or per question, and what failed is counted too."
    )


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


_WITH: Final = "The answers are in chain.jsonl, as the words of its lines of kind 'release'."
_WITHOUT: Final = (
    "The answers are not in here. A line of kind 'release' commits to its answer by a salted hash: where you are\n"
    "given an answer and its salt, you can check that it is the one that left."
)
_README: Final = """\
Evidence of a ledger of hubbub
==============================

This is what was promised to the people in a set of data, and what was spent of it. hubbub answers questions about
private data with noise, and writes the cost of each into a ledger before it looks at the data. The ledger is a hash
chain: no line can be changed, added or removed in the middle without every later hash changing.

totals.txt, totals.json   what everything together cost, for each kind of unit, beside its ceiling (in words, and as
                          numbers, which verify.py compares with the chain)
chain.jsonl               the ledger, one line a row
receipts/                 what each charge asked, ran and paid: noise, scale, sensitivity, policy, version of the rows
policies/                 what was declared when it was asked
versions.json             whose ledger, where it ended, and what hubbub's own check found
verify.py                 a check that needs no hubbub

{answers}

How to check it without us
--------------------------
{check}
A line is hashed as the JSON text ["hash before","time","kind",[its columns, in order]], a charge with the sums that it
left behind; with HMAC-SHA-256 where the chain has a key. A secret of the ledger in its first line is withheld: that
line is taken as it is, and the ones after it are linked to its hash.

What this shows, and what it does not
-------------------------------------
It shows that the lines fit together, that each charge was paid, that the sums are those of the charges, and that no
ceiling was exceeded, nor what a block holds or is set aside for training (a ceiling with a delta hubbub's own check
compares, in versions.json; verify.py says so). Limits of tables and analysts it does not look at. That the end was not
cut off, and that no older copy was put back, only a head shows that was kept elsewhere: ask for what the witness holds,
or for a receipt that an analyst kept, and give it as --head. That noise of the stated scale was drawn, and that
declarations fit the data, no ledger can show: `hubbub audit` tries to refute it.
"""
