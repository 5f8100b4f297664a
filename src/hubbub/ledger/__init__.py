"""The ledger: what may be spent on a table's people, what has been, and which answers have left.

For the data steward. Each part is light enough for the command line to load at once:

- `budget`: `Budget`, the ceiling a data set's people are promised, and `parse_epsilon`, the one place where a
  number somebody wrote becomes an exact rational. `accounts`: who pays for a charge, and the filters that decide.
- `store`: `Ledger`, one joint budget per unit space, limits below it, every charge ever made, and every release. It
  holds five parts, over one open ledger (`handle`): `life`, how charges are made and what becomes of them; `standing`,
  what is left; `record`, what stands there; `steward`, grants and limits; `versions`, which rows and which policy. An
  analyst sees `standing` and `record` alone (`LedgerView`). `charge`: what is asked for, every column once. `charging`
  and `books`: how one charge is checked and recorded; `blocks`: what comes back. `remainder`: what is left in the terms
  of the next question. `incidents`: the engine's own words, outside the ledger.
- It lives in a SQLite file (`database`, `files`) or in Postgres (`postgres`); any number of processes and threads may
  share it. `fair_queue`: whoever came first writes first. `hash_chain` and `verify`: the chain under every row, and
  whether it still holds. `schema` and `migrate`: its tables, and how older ones become them. `process`: whether one is
  still there. `history`: the budget over time.
- `policy`: `load_policy`, which reads `hubbub.toml` into plain values; `difference` tells two of them apart in words,
  and `policy_schema` is for editors.

The rules of the room:

1. **Charge, then look.** A charge is durable before `ChargeLifecycle.charge` returns, so before the engine runs.
2. **Append only.** Rows are inserted, never changed; the store itself refuses otherwise, and the chain shows it. Only
   the table of places, where each account's last sum is found, moves, and forward only.
3. **Exact.** Amounts are rationals, written as "numerator/denominator"; a float never decides.
4. **Every failure is a refusal.** A full disk, a locked file or a damaged page raises a `HubbubError` that says so. No
   such failure gives an answer, and none takes a part of a charge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.late import late_names

if TYPE_CHECKING:
    from hubbub.ledger.budget import Budget as Budget
    from hubbub.ledger.charge import Charge as Charge
    from hubbub.ledger.records import Entry as Entry
    from hubbub.ledger.store import Ledger as Ledger

# Where each name that other rooms may take lives.
_LATER = {"Budget": "budget", "Charge": "charge", "Entry": "records", "Ledger": "store"}

__all__ = ["Budget", "Charge", "Entry", "Ledger"]


__getattr__ = late_names(__name__, _LATER, globals())
