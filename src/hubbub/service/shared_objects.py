"""The objects that the runners of a service read: copied from their store once, at the start and at each refresh.

A process of its own copies them into the clerk's folder, which is this user's alone, and which whoever starts next
removes where the clerk could not. So all runners read the same edition until a steward says that there is another one,
and have neither the store's keys nor, for its sake, a network.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from hubbub.addresses import ObjectAddress
from hubbub.ledger.policy import Policy
from hubbub.session.copies import copied_objects

__all__ = ["SharedObjects"]


class SharedObjects:
    """Copies of the tables of a policy that are in an object store. folder: where they lie. paths: of each table its
    file, or the folder of its files.

    Raises PolicyError where a store does not give them.
    """

    def __init__(self, policy: Policy, folder: Path) -> None:
        self._policy, self._folder, self._made = policy, folder, 0
        self._places: list[Path] = []
        self.paths: dict[str, str] = {}
        for table in policy.remote():
            self.copy(table.name)

    def copy(self, name: str) -> None:
        """Copy a table's objects anew, if that is what it is made of. What runners read stays where it is.

        Raises PolicyError where the store does not give them; then the older copy is the one that is read.
        """
        table = self._policy.tables.get(name)
        if table is None or not isinstance(table.source, ObjectAddress):
            return
        self._made += 1
        place = self._folder / f"objects-{self._made}"
        try:
            self.paths[name] = copied_objects(self._policy, name, place)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        self._places.append(place)  # not before: `keep` may be called meanwhile

    def keep(self, paths: Collection[str]) -> None:
        """Remove the copies that are neither the newest nor read by anybody. paths: those that are read."""
        kept = {Path(path) for path in (*paths, *self.paths.values())}
        for place in [each for each in self._places if not any(each in (path, path.parent) for path in kept)]:
            shutil.rmtree(place, ignore_errors=True)
            self._places.remove(place)
