"""Copies of objects in a folder of this process's own, and what tells whether an object was replaced.

An object is copied whole, byte by byte, and read as a local file is: so what is true of files is true of objects, and
one person's bytes never change another's row. A copy is taken of one edition: its size, time and entity tag are looked
at before and after, and a copy that is not as long as it was said to be is not a copy. A new edition takes the place of
the old one once it is here in whole: each file in one step, several one after another.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hubbub.addresses import ObjectAddress
from hubbub.errors import PolicyError
from hubbub.file_formats import COMPRESSED, FILES, kind_of_file

__all__ = ["Copy", "copied", "inner_of", "kind_of", "store_of"]

_READINGS: Final = 3
_PIECE: Final = 1 << 23
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
Edition = tuple[tuple[str, int, int, str], ...]
"""Of each object its key, size, time of writing in nanoseconds, and entity tag, where the store gives one."""


def store_of(address: ObjectAddress) -> Any:
    """The file system of pyarrow that holds an object.

    Raises PolicyError where the address or its keys are not what the store takes.
    """
    from pyarrow import fs

    options, keys = dict(address.options), address.keys()
    try:
        if address.scheme == "s3":
            if keys is not None:
                options |= {"access_key": keys[0], "secret_key": keys[1]}
            return fs.S3FileSystem(**options, request_timeout=60.0, connect_timeout=10.0)
        return fs.GcsFileSystem(**options, anonymous=address.user == "anonymous")
    except Exception:  # its words may hold the keys
        raise PolicyError(f"{address} cannot be opened: its store refuses the settings or the keys.") from None


@dataclass
class Copy:
    """The objects of one address as files. path: the file, or the folder of several. edition: what was copied. taken:
    how often something was.
    """

    address: ObjectAddress
    store: Any
    folder: Path
    edition: Edition = ()
    taken: int = 0

    @property
    def path(self) -> str:
        return str(self.folder if self.address.several else self.folder / _name_of(self.address.key, "rows"))

    def renew(self) -> None:
        """Copy the objects, where they are not the edition that is here.

        Raises PolicyError where they are gone, cannot be read, or are written anew at each reading.
        """
        for _ in range(_READINGS):
            now = self._said(self._edition)
            if now == self.edition:
                return
            self._said(lambda edition=now: self._copy(edition))
            if self._said(self._edition) == now:
                self.edition = now
                return
        raise PolicyError(f"{self.address} is written anew each time it is read; try again. Nothing was charged.")

    def _said(self, work: Any) -> Any:
        """What a step gives; in our own words where the store fails."""
        try:
            return work()
        except PolicyError:
            raise
        except Exception:  # a store's words may hold a key or a row
            raise PolicyError(
                f"{self.address} cannot be read: it is not there, the keys do not allow it, or the store does not "
                f"answer. {self.address.about_keys}Nothing was charged."
            ) from None

    def _edition(self) -> Edition:
        from pyarrow import fs

        address = self.address
        if not address.several:
            infos = [self.store.get_file_info(address.path)]
        else:
            base = address.path.partition("*")[0].partition("?")[0].rpartition("/")[0]
            infos = self.store.get_file_info(fs.FileSelector(base, recursive=True))
            infos = [info for info in infos if info.type == fs.FileType.File and _wanted(info, address.path)]
        if not infos or any(info.type != fs.FileType.File for info in infos):
            what = "holds no file that ends in .parquet" if address.several else "is not there"
            raise PolicyError(f"{address} {what}. Nothing was charged.")
        edition = []
        for info in sorted(infos, key=lambda one: one.path):
            with self.store.open_input_file(info.path) as file:
                tag = _tag(file.metadata() or {})
            edition.append((info.path, int(info.size), int(info.mtime_ns or 0), tag))
        return tuple(edition)

    def _copy(self, edition: Edition) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        early = {}
        try:
            for i, (key, size, _, _) in enumerate(edition):
                name = f"{i:06d}.parquet" if self.address.several else _name_of(key, "rows")
                descriptor, early[name] = tempfile.mkstemp(prefix=".", dir=self.folder)  # mode 0600
                with os.fdopen(descriptor, "wb") as to, self.store.open_input_stream(key, compression=None) as source:
                    shutil.copyfileobj(source, to, _PIECE)
                if os.path.getsize(early[name]) != size:
                    raise OSError("shorter or longer than it was said to be")
            self.taken += 1
            self.edition = ()  # until all are in their places, and the store was asked again
            for name, file in early.items():
                os.replace(file, self.folder / name)
        finally:
            for there in self.folder.iterdir():
                if there.name.startswith(".") or (not self.edition and there.name not in early):
                    there.unlink()


def _tag(facts: Mapping[Any, Any]) -> str:
    """What a store says that tells one edition of an object from the next: S3 an ETag, GCS its etag and generation.

    >>> _tag({b"ETag": b"x", b"Content-Length": b"1"}), _tag({b"etag": b"y", b"generation": b"7"}), _tag({})
    ("b'x'", "b'y' b'7'", "b''")
    """
    said = {(name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)).lower(): value
            for name, value in facts.items()}  # fmt: skip
    return " ".join(str(said[name]) for name in ("etag", "generation") if name in said) or "b''"


def _wanted(info: Any, path: str) -> bool:
    """Whether an object is one of several: a Parquet file below a folder, or one that fits a pattern."""
    name = info.base_name
    if kind_of_file(name) != "parquet" or name[0] in "_.":
        return False
    if not re.search(r"[*?]", path):
        return True
    parts, wanted = info.path.split("/"), path.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def _name_of(key: str, otherwise: str) -> str:
    """The last part of a key where it is a plain name for a file; else another with the same end."""
    name = key.rpartition("/")[2]
    if _PLAIN.fullmatch(name):
        return name
    suffixes = Path(name).suffixes[-2:]
    end = "".join(suffixes if suffixes and suffixes[-1].lower() in COMPRESSED else suffixes[-1:])
    return f"{otherwise}{end}" if _PLAIN.fullmatch(f"{otherwise}{end}") else otherwise


def inner_of(address: ObjectAddress, table: str | None) -> str | None:
    """Which table of an object is meant: none of a CSV or Parquet file, whatever is said."""
    return table if not address.several and kind_of(address) in ("duckdb", "sqlite", "sheet") else None


def kind_of(address: ObjectAddress) -> str | None:
    """What an object is by the end of its name; one `.db` is a database of either kind."""
    return "duckdb" if address.key.lower().endswith(".db") else kind_of_file(Path(address.key).name)


def _check_kind(address: ObjectAddress, *, csv: bool) -> None:
    if not address.several and not csv and kind_of_file(Path(address.key).name) is None:
        raise PolicyError(
            f"{address} is not a known file type; expected {FILES}, or a folder of Parquet files with a slash at its "
            "end."
        )


def copy_of(address: ObjectAddress, folder: Path, *, csv: bool = False) -> Copy:
    """A copy of what an address names, in a folder that is made. csv: whether it is said how a CSV is written.

    Raises PolicyError as `Copy.renew` does, and for what is not a file of rows.
    """
    _check_kind(address, csv=csv)
    copy = Copy(address, store_of(address), folder)
    copy.renew()
    return copy


@contextlib.contextmanager
def copied(address: ObjectAddress, *, csv: bool = False) -> Iterator[Path]:
    """A copy for as long as something is looked up in it. csv: whether it is said how a CSV is written."""
    with tempfile.TemporaryDirectory(prefix="hubbub-objects-") as folder:
        yield Path(copy_of(address, Path(folder) / "objects", csv=csv).path)
