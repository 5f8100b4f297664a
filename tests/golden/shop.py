"""A small shop in the manner of TPC-H: 21 customers, 63 orders, 126 line items, 6 nations. For the golden list.

Every value lies within its declared bounds and on its grid, no customer exceeds a limit, no key is missing: so at an
epsilon without noise an answer is the plain engine's own.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

import hubbub as hb

SEGMENTS = ["AUTO", "HOME", "TOYS"]
STATUSES = ["F", "O", "P"]
PARTS = ["bolt", "gear", "nut", "Pipe", "rod"]

CUSTOMER = pa.table(
    {
        "c_id": list(range(1, 22)),
        "name": [f"Customer#{i:03d}" for i in range(1, 22)],
        "nation": [i % 6 for i in range(1, 22)],
        "segment": [SEGMENTS[i % 3] for i in range(1, 22)],
        "balance": [float((i * 37) % 101 - 20) / 2 for i in range(1, 22)],
        "phone": [f"{10 + i % 6}-555-{i:04d}" if i % 7 else None for i in range(1, 22)],
    }
)
ORDERS = pa.table(
    {
        "o_id": list(range(100, 163)),
        "c_id": [1 + i // 3 for i in range(63)],
        "status": [STATUSES[(i * 5 + i // 9) % 3] for i in range(63)],
        "day": [dt.date(1995, 1, 15) + dt.timedelta(days=(i * 29) % 700) for i in range(63)],
        "moment": [dt.datetime(1995, 1, 15, i % 24, 20) + dt.timedelta(days=(i * 29) % 700) for i in range(63)],
        "priority": [["1-URGENT", "2-HIGH", "3-LOW"][(i * 7) % 3 if i % 4 else 0] for i in range(63)],
        "total": [float((i * 53) % 400) / 4 for i in range(63)],
        "clerk": [(i * 3) % 8 for i in range(63)],
    }
)
LINEITEM = pa.table(
    {
        "o_id": [100 + i // 2 for i in range(126)],
        "line": [1 + i % 2 for i in range(126)],
        "part": [PARTS[(i * 3) % 5] for i in range(126)],
        "qty": [1 + (i * 7) % 50 for i in range(126)],
        "price": [float(8 + (i * 13) % 120) / 8 for i in range(126)],
        "discount": [(i % 4) / 32 for i in range(126)],
        "returned": [i % 5 == 0 for i in range(126)],
        "ship": [dt.date(1995, 2, 1) + dt.timedelta(days=(i * 11) % 700) if i % 9 else None for i in range(126)],
    }
)
NATION = pa.table(
    {
        "n_id": [0, 1, 2, 3, 4, 5],
        "nname": ["ALGERIA", "BRAZIL", "CANADA", "EGYPT", "FRANCE", "INDIA"],
        "region": ["AFRICA", "AMERICA", "AMERICA", "AFRICA", "EUROPE", "ASIA"],
    }
)
FRAMES = {"customer": CUSTOMER, "orders": ORDERS, "lineitem": LINEITEM, "nation": NATION}


def tables() -> dict[str, Any]:
    """The shop as it is declared: the unit is the customer, whom a line item's order leads to."""
    limits: dict[str, Any] = {"max_groups": 40, "max_rows": 40, "max_total": 40}
    return {
        "customer": hb.table(
            CUSTOMER,
            unit="c_id",
            columns={
                "nation": hb.between(0, 5),
                "segment": hb.one_of(*SEGMENTS),
                "balance": hb.between(-16, 48),
            },
            **limits,
        ),
        "orders": hb.table(
            ORDERS,
            unit="c_id",
            columns={
                "status": hb.one_of(*STATUSES),
                "priority": hb.one_of("1-URGENT", "2-HIGH", "3-LOW"),
                "total": hb.between(0, 128),
                "clerk": hb.between(0, 7),
                "day": hb.between("1995-01-01", "1996-12-31"),
                "moment": hb.between("1995-01-01", "1996-12-31"),
            },
            **limits,
        ),
        "lineitem": hb.table(
            LINEITEM,
            unit="orders.c_id",
            through="o_id",
            columns={
                "part": hb.one_of(*PARTS),
                "line": hb.between(1, 2),
                "qty": hb.between(0, 64),
                "price": hb.between(0, 16),
                "discount": hb.between(0, 0.25),
                "ship": hb.between("1995-01-01", "1997-12-31"),
            },
            **limits,
        ),
        "nation": hb.public(NATION),
    }
