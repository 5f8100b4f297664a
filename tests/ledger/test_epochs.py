"""The keys of a chain, without a ledger: what is kept of them, and which key a line bears."""

from __future__ import annotations

import re
import sqlite3
from itertools import pairwise

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.keys import check_of, current_check, epochs_of, key_at, read_key, unwrapped, wrapped

KEYS = [b"a first key of twenty", b"k" * 16, b"a key that is longer than one block of thirty-two", b"x" * 33, b"y" * 32]


@pytest.mark.parametrize("before", KEYS)
@pytest.mark.parametrize("new", KEYS)
def test_a_key_is_read_with_the_one_that_followed_and_with_no_other(before: bytes, new: bytes) -> None:
    text = wrapped(before, new, "ab")
    assert unwrapped(text, new, "ab") == before
    assert re.fullmatch(r"[0-9a-f]{32}:[0-9a-f]+:[0-9a-f]{64}", text)
    assert before.hex() not in text
    for other, above in [*((key, "ab") for key in KEYS if key != new), (new, "abc"), (new, "a"), (new, "")]:
        with pytest.raises(ValueError, match="another line stands before it"):
            unwrapped(text, other, above)
    assert wrapped(before, new, "ab") != text, "a pad is used once"


def test_where_there_was_no_key_the_new_one_says_so() -> None:
    assert unwrapped(wrapped(None, KEYS[0], "ab"), KEYS[0], "ab") is None


def test_no_two_blocks_of_a_pad_are_the_same() -> None:
    hidden = bytes.fromhex(wrapped(bytes(128), b"k" * 16, "ab").split(":")[1])
    assert len({hidden[i : i + 32] for i in range(0, 128, 32)}) == 4


def test_a_key_file_is_read_without_its_white_space_and_must_be_long_enough(tmp_path) -> None:
    file = tmp_path / "key"
    for held, fits in ((b" " + b"k" * 16 + b"\n", True), (b"k" * 15 + b"\n\n", False), (b"", False)):
        file.write_bytes(held)
        if fits:
            assert read_key(file) == b"k" * 16
        else:
            with pytest.raises(PolicyError, match="allowed are 16 or more"):
                read_key(file)
    with pytest.raises(PolicyError, match="cannot read the key file"):
        read_key(tmp_path / "none")


def test_a_check_is_of_the_key_and_of_the_ledger() -> None:
    checks = {check_of(key, ledger) for key in KEYS for ledger in ("1", "2")}
    assert len(checks) == 2 * len(KEYS)


def chain(*keys: bytes | None, tampered: int | None = None) -> sqlite3.Connection:
    """A ledger that had these keys one after the other, a new one every ten lines."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE ledger (id TEXT, key_check TEXT)")
    connection.execute("CREATE TABLE rekeying (serial INTEGER, key_check TEXT, wrapped TEXT)")
    connection.execute("CREATE TABLE journal (serial INTEGER, hash TEXT)")
    connection.executemany("INSERT INTO journal VALUES (?, ?)", [(i, f"{i:02x}") for i in range(10 * len(keys))])
    first = keys[0]
    connection.execute("INSERT INTO ledger VALUES ('one', ?)", (None if first is None else check_of(first, "one"),))
    for number, (before, new) in enumerate(pairwise(keys), 1):
        assert new is not None
        hidden = wrapped(before, new, f"{10 * number - 1:02x}")
        if tampered == number:
            nonce, key, seal = hidden.split(":")
            hidden = f"{nonce}:{key[:-1]}{'0' if key[-1] != '0' else '1'}:{seal}"
        connection.execute("INSERT INTO rekeying VALUES (?, ?, ?)", (10 * number, check_of(new, "one"), hidden))
    return connection


@pytest.mark.parametrize("keys", [(None,), (KEYS[0],), (None, KEYS[0]), (None, *KEYS), tuple(KEYS)])
def test_the_present_key_gives_all_keys_before_it(keys: tuple[bytes | None, ...]) -> None:
    connection = chain(*keys)
    epochs = epochs_of(connection, keys[-1])
    assert epochs == tuple((10 * i, key) for i, key in enumerate(keys))
    last = keys[-1]
    assert current_check(connection) == (None if last is None else check_of(last, "one"))
    for line in range(1, 10 * len(keys)):
        assert key_at(epochs, line) == keys[(line - 1) // 10]


@pytest.mark.parametrize("number", range(1, len(KEYS)))
def test_a_line_that_was_changed_gives_no_keys(number: int) -> None:
    with pytest.raises(PolicyError, match=f"line {10 * number}: the key that the chain had before it cannot be read"):
        epochs_of(chain(*KEYS, tampered=number), KEYS[-1])
    for missing in ("not hex", "nonce:not hex", "nonce:00:00", b"\xff:00", None):
        connection = chain(*KEYS)
        connection.execute("UPDATE rekeying SET wrapped = ? WHERE serial = ?", (missing, 10 * number))
        with pytest.raises(PolicyError, match=f"line {10 * number}:"):
            epochs_of(connection, KEYS[-1])


@pytest.mark.parametrize("number", range(1, len(KEYS)))
def test_other_lines_before_a_new_key_are_told(number: int) -> None:
    connection = chain(*KEYS)
    connection.execute("UPDATE journal SET hash = 'other' WHERE serial = ?", (10 * number - 1,))
    with pytest.raises(PolicyError, match=f"line {10 * number}: .*others than when it got this one"):
        epochs_of(connection, KEYS[-1])


def test_a_first_key_whose_check_was_removed_is_refused() -> None:
    connection = chain(*KEYS[:2])
    connection.execute("UPDATE ledger SET key_check = NULL")
    with pytest.raises(PolicyError, match="line 10:"):
        epochs_of(connection, KEYS[1])
    connection.execute("UPDATE rekeying SET wrapped = 'nonce:not hex'")
    with pytest.raises(PolicyError, match="line 10:"):
        epochs_of(connection, KEYS[1])


def test_without_the_present_key_there_are_none_before_it() -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        epochs_of(chain(*KEYS), None)
    assert epochs_of(chain(None, KEYS[0]), None) == ((0, None), (10, None))


def test_a_ledger_without_a_line_has_no_check() -> None:
    connection = chain(None)
    connection.execute("DELETE FROM ledger")
    assert current_check(connection) is None
    assert epochs_of(connection, None) == ((0, None),)
