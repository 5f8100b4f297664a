"""The ledger: what may be spent on a table's people, what has been, and which answers have left.

For the data steward. Three things live here, each light enough for the command line to load at once:

- `budget`: `Budget`, the ceiling a data set's people are promised, and `parse_epsilon`, the one place where a
  number somebody wrote becomes an exact rational.
- `store`: `Ledger`, the SQLite file that holds one joint budget per unit space, every charge ever made, and
  every release. Any number of processes and threads may share it.
- `policy`: `load_policy`, which reads `hubbub.toml` into plain values.

The rules of the room:

1. **Charge, then look.** A charge is on the disk before `Ledger.charge` returns, so before the engine runs.
2. **Append only.** Charges, steps and releases are inserted, never changed; the file itself refuses
otherwise.
3. **Exact.** Amounts are rationals, written as "numerator/denominator"; a float never decides.
4. **Every failure is a refusal.** A full disk, a locked file or a damaged page raises a `HubbubError` that
   says so. No such failure gives an answer, and none takes a part of a charge.
"""
