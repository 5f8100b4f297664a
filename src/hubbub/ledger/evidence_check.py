"""Check the evidence of a ledger of hubbub without hubbub: Python 3.11 or newer, and nothing else.

    python verify.py [--key KEYFILE] [--head N:HASH] ...      in the folder where the zip was unpacked

It reads chain.jsonl, computes every link anew, compares the words that are there with what their lines commit to, adds
up what every account paid, and compares it with the ceilings, with totals.json and with the receipts. A chain that has
a key needs it; without it, only the order of the lines, the words and the sums are checked. --head: a line and its hash
that you, or a witness, kept.
"""

import argparse
import hashlib
import hmac
import json
import os
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

COLUMNS = {
    "ledger": "id,secret,key_check",
    "unit_space": "name,epsilon,delta,delta_threshold",
    "training": "unit_space,epsilon,delta",
    "relation": "unit_space,neighbours",
    "allowance": "unit_space,account,epsilon,expires,author,reason",
    "policy": "hash,content",
    "data_version": "unit_space,dataset,id,reason,fingerprint",
    "charge": "id,kind,unit_space,dataset,analyst,question_key,sql,epsilon,pure,rho,delta,impure,event,details,policy,"
    "data_version,request,block,owner,purpose,sums",
    "step": "charge,state,incident,owner",
    "release": "charge,payload",
    "refusal": "unit_space,dataset,analyst,sql,account,asked,remaining",
    "clearance": "unit_space,analyst,author",
    "joint_clearance": "unit_space,author",
    "source": "place,unit,unit_space",
    "anchoring": "kept,author",
    "schedule": "charge,shares,lane,made,starts,ends,due,running,boot,incident,ask",
    "silence": "charge,incident",
    "rekeying": "key_check,wrapped,author",
    "redaction": "line,author",
    "restoring": "line,hash,author,reason",
}
"""What each kind of line says, in order: a hash is of values, and names no column."""
WITHHELD = {"ledger": "secret", "release": "payload"}


def shapes(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Lines that are of no kind, or say other things than their kind does, or hold back what is theirs to say."""
    whole, commits = 0, False
    for number, line in enumerate(lines, 1):
        kind, row, withheld = line["kind"], line["row"], line.get("withheld", [])
        if kind not in COLUMNS or withheld not in ([], [WITHHELD.get(kind)]) or (kind == "ledger") != (number == 1):
            yield f"line {number}: it is of no kind that a ledger has, or holds back what it may not"
        elif row is None and kind == "release" and withheld and not commits:
            whole += 1
        elif row is None or list(row) != [name for name in COLUMNS[kind].split(",") if name not in withheld]:
            yield f"line {number}: it does not say what a line of the kind {kind} says"
        # Lines of an older schema stand before all others.
        committed = (row or {}).get({"charge": "sql", "release": "payload"}.get(kind, ""))
        commits = commits or (isinstance(committed, str) and len(committed) == 65 and committed[:1] == "#")
    if whole:
        print(f"{whole} answers of an older schema are withheld. Nothing is looked at in these lines, nor their kind.")


def link(before: str, line: dict[str, Any], key: bytes | None) -> str:
    """The hash of a line: of the one before, its time, its kind and its row."""
    row = list(line["row"].values())
    if line["kind"] == "charge":
        *row, sums = row
        row = (row[:-1] if row[-1] is None else row) + json.loads(sums)
    written = json.dumps(row, separators=(",", ":"))
    text = f'["{before}","{line["time"]}","{line["kind"]}",{written}]'.encode()
    return (hashlib.sha256(text) if key is None else hmac.new(key, text, "sha256")).hexdigest()


def unwrapped(text: str, new: bytes, after: str) -> bytes | None:
    """The key before another one, as the line that changed it holds it; None where there was none, b"" where that line
    was written for a chain with other lines before it. after: the hash of the line before."""
    nonce, written, seal = text.split(":")
    if hmac.new(new, f"hubbub rekeyed {nonce} {after}".encode(), "sha256").hexdigest() != seal:
        return b""
    hidden = bytes.fromhex(written)
    pads = (hmac.digest(new, f"hubbub rekey {nonce} {n}".encode(), "sha256") for n in range(1, len(hidden) // 32 + 2))
    return bytes(a ^ b for a, b in zip(hidden, b"".join(pads), strict=False)) or None


def epochs(lines: list[dict[str, Any]], key: bytes | None) -> Iterator[tuple[int, bytes | None]]:
    """From which line on which key holds, the last one first; None where there was none."""
    changes = [(line["serial"], line["row"]["wrapped"]) for line in lines if line["kind"] == "rekeying"]
    for serial, hidden in reversed(changes):
        yield serial, key
        key = None if key is None else unwrapped(hidden, key, lines[serial - 2]["hash"])
    yield 0, key


def links(lines: list[dict[str, Any]], key: bytes | None) -> Iterator[str]:
    """What is wrong with the chain itself."""
    keyed = lines[0]["row"].get("key_check") or any(line["kind"] == "rekeying" for line in lines)
    keys = [] if keyed and key is None else list(epochs(lines, key))
    if keyed and key is None:
        print("The chain has a key, and none was given: links are not computed anew.")
    before, time = hashlib.sha256(b"hubbub ledger").hexdigest(), ""
    for number, line in enumerate(lines, 1):
        if line["serial"] != number:
            yield f"line {number} is missing"
            return
        if line["time"] < time:
            yield f"line {number}: its time lies before that of the line above"
        if keys and not line.get("withheld"):
            own = next(key for after, key in keys if number > after)
            if own == b"":
                yield f"line {number}: it is not one of those that stood before the chain got another key"
                return
            if link(before, line, own) != line["hash"]:
                yield f"line {number}: this {line['kind']} or its link was changed"
        before, time = line["hash"], line["time"]


def words(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Words that are not those that their line commits to."""
    removed = {line["row"]["line"] for line in lines if line["kind"] == "redaction"}
    for line in lines:
        kept = line.get("words")
        committed = [value for value in (line["row"] or {}).values() if isinstance(value, str) and value[:1] == "#"]
        if kept is not None:
            digest = "#" + hashlib.sha256(f"{kept['salt']} {kept['text']}".encode()).hexdigest()
            if digest not in committed:
                yield f"line {line['serial']}: its words are not those that it commits to"
            continue
        of_questions = line["kind"] in ("charge", "schedule", "refusal") and line["serial"] not in removed
        if of_questions and any(len(value) == 65 for value in committed):  # not those of an older schema
            yield f"line {line['serial']}: its words are gone, and nobody removed them"


def is_sum(kept: Fraction, exact: Fraction) -> bool:
    """Whether a sum is kept as it is: a multiple of 10^-60 beside it, where its denominator has over 2,048 bits."""
    return kept == exact or (exact.denominator.bit_length() > 2048 and abs(kept - exact) <= Fraction(3, 10**60))


def payer(row: dict[str, Any]) -> str | None:
    """The account that has to pay for a charge, whatever others do; None where only its reader pays."""
    details = json.loads(row["details"])
    if row["kind"] == "question" and details.get("paid_from") == "training":
        return "training"
    if row["kind"] == "question" and row["block"] is not None:
        return f"block:{row['block']}"
    return None if row["kind"] == "reading" else "everyone"


class Books:
    """What every account paid, and what it may."""

    def __init__(self) -> None:
        self.paid: dict[tuple[str, str], list[Fraction]] = {}
        self.may: dict[tuple[str, str], list[Fraction]] = {}  # of blocks, and of training
        self.ceilings: dict[str, tuple[Fraction, str | None]] = {}
        self.charged: dict[str, tuple[int, list[Fraction], str | None, bool]] = {}
        self.states: dict[int, str] = {}

    def read(self, line: dict[str, Any]) -> Iterator[str]:
        """What is wrong with the amounts of a line."""
        row = line["row"] or {}
        if line["kind"] == "unit_space":
            self.ceilings[row["name"]] = Fraction(row["epsilon"]), row["delta"]
        if line["kind"] == "training":
            self.may[row["unit_space"], "training"] = [Fraction(row["epsilon"]), Fraction(0), Fraction(row["delta"])]
        if line["kind"] == "allowance" and row["account"] == "ceiling" and row["epsilon"] is not None:
            self.ceilings[row["unit_space"]] = Fraction(row["epsilon"]), self.ceilings[row["unit_space"]][1]
        if line["kind"] == "step":
            self.states[row["charge"]] = row["state"]
        if line["kind"] == "charge":
            yield from (f"line {line['serial']}: {problem}" for problem in self.charge(line["serial"], row))

    def charge(self, serial: int, row: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a charge, and with the sums that it left behind."""
        space, account = row["unit_space"], payer(row)
        cost, back = [Fraction(row[name]) for name in ("pure", "rho", "delta")], [Fraction(0)] * 3
        if min(cost) < 0:
            yield "an amount is below 0"
        if row["impure"] and self.ceilings[space][1] is None:
            yield "its cost is not pure, and its budget is"
        if row["kind"] == "return":  # of a charge, or of a block that is closed; each once
            drawn, back, account, impure = self.charged.pop(row["block"], (0, back, account, False))
            if drawn and self.states.get(drawn) != "drawing":
                yield "a charge gave back what it did not use, and was not being drawn"
            if any(used > of_it for used, of_it in [*zip(cost, back, strict=True)][impure:]):  # which counts by rho
                yield "what a charge used is more than was charged, or nothing was"
        else:
            self.charged[row["id"]] = serial if row["kind"] == "question" else 0, cost, account, bool(row["impure"])
            if row["kind"] in ("block", "plan"):
                parts = json.loads(row["details"]).get("parts")
                self.may[space, f"block:{row['id']}"] = cost if parts is None else [Fraction(one) for one in parts[:3]]
        sums = json.loads(row["sums"])
        if account is not None and [space, account] not in [one[:2] for one in sums]:
            yield f"{account} did not pay for it"
        for where, name, *amounts, _ in sums:
            after = [Fraction(amount) for amount in amounts]
            before = self.paid.get((where, name), [Fraction(0)] * 3)
            exact = (a + b - c for a, b, c in zip(before, cost, back, strict=True))
            if not all(map(is_sum, after, exact)):
                yield f"the sum of {name} is not that of its charges"
            self.paid[where, name] = after
            most = self.may.get((where, name), [Fraction(0)] * 3)
            if (name == "training" or name.startswith("block:")) and not self.within(where, name, after, most):
                yield f"{name} paid more than it holds"

    def within(self, space: str, name: str, paid: list[Fraction], most: list[Fraction]) -> bool:
        """Whether what an account paid is at most what it may: in epsilon or in rho, as its budget counts."""
        counts = [0, 2] if name == "training" else [0] if self.ceilings[space][1] is None else [1, 2]
        return all(paid[i] <= most[i] for i in counts)


def beside(lines: list[dict[str, Any]], books: Books) -> Iterator[str]:
    """Files beside the chain that say something else than it does; totals.txt is totals.json in words."""
    charges = {line["row"]["id"]: line for line in lines if line["kind"] == "charge"}
    folders = {name: os.listdir(name) if os.path.isdir(name) else [] for name in ("receipts", "policies")}
    if {name.removesuffix(".json") for name in folders["receipts"]} != set(charges):
        yield "receipts: they are not those of the charges"
        return
    for name, line in charges.items():
        with open(os.path.join("receipts", f"{name}.json"), encoding="utf-8") as file:
            if json.load(file)["chain"]["charge"] != {"serial": line["serial"], "hash": line["hash"]}:
                yield f"receipts: that of {name} is not of its line"
    for name in folders["policies"]:
        with open(os.path.join("policies", name), "rb") as content:
            if hashlib.sha256(content.read()).hexdigest() != name.removesuffix(".toml"):
                yield f"policies: {name} is not what was declared"
    with open("totals.json", encoding="utf-8") as file:
        told = {total["unit_space"]: total for total in json.load(file)}
    if set(told) != set(books.ceilings):
        yield "totals.json: its unit spaces are not those of the chain"
    for space, total in told.items():
        asked = [line for line in charges.values() if line["row"]["unit_space"] == space]
        paid = books.paid.get((space, "everyone"), [Fraction(0)] * 3)
        trained = books.paid.get((space, "training"), [Fraction(0)] * 3)
        pure = not any(line["row"]["impure"] for line in asked)
        charged = {name: Fraction(amount) for name, amount in total["charged"].items()}
        if charged["rho"] != paid[1] or (pure and charged["epsilon"] != paid[0] + trained[0]):
            yield f"totals.json: what was charged to {space} is not what the chain says"
        if total["questions"] != sum(line["row"]["kind"] == "question" for line in asked):
            yield f"totals.json: the questions about {space} are not those of the chain"


def sums(lines: list[dict[str, Any]], books: Books) -> Iterator[str]:
    """Sums that are not those of their charges, what gives back more than was charged, ceilings that are exceeded."""
    for line in lines:
        yield from books.read(line)
    for (space, account), (epsilon, rho, delta) in sorted(books.paid.items()):
        if account == "everyone":
            ceiling, of_delta = books.ceilings[space]
            print(f"{space}: epsilon {epsilon}, rho {rho}, delta {delta} charged, of a ceiling of epsilon {ceiling}.")
            if of_delta is None and epsilon > ceiling:
                yield f"the unit space {space} is overspent"
            if of_delta is not None:
                print(f"Not compared here: whether {space} is within it at delta {of_delta}; hubbub's check does that.")


def main() -> int:
    """Say what was found; 1 where something is wrong."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--key")
    options.add_argument("--head", action="append", default=[])
    given = options.parse_args()
    with open("chain.jsonl", encoding="utf-8") as file:
        lines = [json.loads(text) for text in file]
    if not lines:
        print("chain.jsonl holds no line: what stood there is gone.")
        return 1
    key = None
    if given.key:
        with open(given.key, "rb") as file:
            key = file.read().strip()
    books = Books()
    problems = [*shapes(lines)] or [*links(lines, key), *words(lines), *sums(lines, books), *beside(lines, books)]
    for serial, _, digest in (head.partition(":") for head in given.head):
        if not (0 < int(serial) <= len(lines) and digest and lines[int(serial) - 1]["hash"].startswith(digest)):
            problems.append(f"line {serial} is not the one that was kept: the ledger was put back or rewritten")
    for problem in problems:
        print(problem)
    print(f"{len(lines)} lines, head {len(lines)}:{lines[-1]['hash']}: {'WRONG' if problems else 'nothing is wrong'}.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
