"""Three schemas that people ask everyday questions of: a hospital, a shop, and trips with coordinates.

Every value lies within its declared bounds and on its grid, and nobody exceeds a limit: so at an epsilon without noise
an answer is plain DuckDB's own.
"""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any

import pyarrow as pa

import hubbub as hb

WARDS = ["Cardiology", "Oncology", "Surgery", "Maternity"]
CODES = ["I21.0", "I21.4", "C50.1", "O80.0", "S72.0"]
REGIONS = ["North", "South", "West"]
SKUS = ["BK-001", "BK-002", "TOY-01", "TOY-02", "GAR-07"]
MODES = ["bike", "bus", "train"]
LIMITS: dict[str, Any] = {"max_groups": 24, "max_rows": 24, "max_total": 24}
SINCE, UNTIL = dt.datetime(2022, 1, 1), dt.datetime(2024, 12, 31)


def _moment(chance: Random, before: int = 20) -> dt.datetime:
    """A whole minute between the declared days, `before` days from the end."""
    return SINCE + dt.timedelta(minutes=chance.randrange(((UNTIL - SINCE).days - before) * 1440))


def _rows(names: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table(dict(zip(names.split(), map(list, zip(*rows, strict=True)), strict=True)))


def _hospital() -> dict[str, pa.Table]:
    chance = Random("hospital")
    patients, visits = [], []
    for i in range(60):
        born = dt.date(1930, 1, 1) + dt.timedelta(days=chance.randrange(80 * 365))
        patients.append((i, born, chance.choice("FM"), chance.choice(REGIONS), f"{10000 + chance.randrange(900)}"))
        for _ in range(chance.randrange(1, 7)):
            at = _moment(chance)
            out = at + dt.timedelta(hours=chance.randrange(1, 240))
            cost, severity = chance.randrange(0, 40001) / 4, chance.randrange(1, 6)
            visits.append(
                (
                    i,
                    chance.choice(WARDS),
                    chance.choice(CODES),
                    at,
                    out,
                    at.date(),
                    cost,
                    severity,
                    chance.random() < 0.3,
                )
            )
    return {
        "patients": _rows("patient_id born sex region postcode", patients),
        "visits": _rows("patient_id ward code admitted_at discharged_at day cost severity urgent", visits),
        "wards": pa.table({"ward": WARDS, "floor": [1, 2, 2, 3], "building": ["A", "A", "B", "B"]}),
    }


def _shop() -> dict[str, pa.Table]:
    chance = Random("shop")
    customers, orders, items, number = [], [], [], 0
    for i in range(50):
        since = dt.date(2020, 1, 1) + dt.timedelta(days=chance.randrange(730))
        customers.append((i, chance.choice(["new", "loyal", "trade"]), since, f"user{i}@example.org", 18 + i))
        for _ in range(chance.randrange(1, 6)):
            number += 1
            status = chance.choice(["paid", "paid", "paid", "sent", "sent", "returned"])
            tags = chance.choice(["web", "shop", "phone"])
            orders.append((number, i, _moment(chance), chance.randrange(0, 2001) / 4, status, tags))
            items += [
                (number, chance.choice(SKUS), chance.randrange(1, 10), chance.randrange(4, 400) / 4)
                for _ in range(chance.randrange(1, 4))
            ]
    return {
        "customers": _rows("customer_id segment since email age", customers),
        "orders": _rows("order_id customer_id placed_at total status channel", orders),
        "items": _rows("order_id sku quantity price", items),
        "products": pa.table({"sku": SKUS, "category": ["books", "books", "toys", "toys", "garden"]}),
    }


def _mobility() -> dict[str, pa.Table]:
    chance, trips = Random("mobility"), []
    for rider in range(60):
        for _ in range(chance.randrange(1, 7)):
            at = _moment(chance)
            end = at + dt.timedelta(minutes=chance.randrange(2, 180))
            lat, lon = 48 + chance.randrange(1, 64) / 64, 2 + chance.randrange(1, 64) / 64
            km, stops = chance.randrange(0, 241) / 8, chance.randrange(0, 11)
            trips.append((rider, at, end, lat, lon, km, km / 2 + 2, stops, chance.choice(MODES), chance.choice("ABC")))
    return {
        "trips": _rows("rider_id started_at ended_at lat lon km fare stops mode zone", trips),
        "zones": pa.table({"zone": list("ABC"), "name": ["Centre", "Harbour", "Airport"]}),
    }


FRAMES = {"hospital": _hospital(), "shop": _shop(), "mobility": _mobility()}

_MOMENT = hb.between("2022-01-01", "2024-12-31")


def _private(frame: pa.Table, unit: str | None, columns: dict[str, Any], **more: Any) -> Any:
    return hb.table(frame, unit=unit, columns=columns, **{**LIMITS, **more})


def tables(schema: str) -> dict[str, Any]:
    """The tables of a schema, declared as a steward would: ranges and lists, no more."""
    frames = FRAMES[schema]
    match schema:
        case "hospital":
            return {
                "patients": _private(
                    frames["patients"],
                    "patient_id",
                    {
                        "born": hb.between("1930-01-01", "2010-12-31"),
                        "sex": hb.one_of("F", "M"),
                        "region": hb.one_of(*REGIONS),
                    },
                ),
                "visits": _private(
                    frames["visits"],
                    "patient_id",
                    {
                        "ward": hb.one_of(*WARDS),
                        "code": hb.one_of(*CODES),
                        "admitted_at": _MOMENT,
                        "discharged_at": _MOMENT,
                        "day": _MOMENT,
                        "cost": hb.between(0, 10_000),
                        "severity": hb.between(1, 5),
                    },
                ),
                "wards": hb.public(frames["wards"]),
            }
        case "shop":
            return {
                "customers": _private(
                    frames["customers"],
                    "customer_id",
                    {
                        "segment": hb.one_of("new", "loyal", "trade"),
                        "since": hb.between("2020-01-01", "2021-12-31"),
                        "age": hb.between(18, 100),
                    },
                ),
                "orders": _private(
                    frames["orders"],
                    "customer_id",
                    {
                        "placed_at": _MOMENT,
                        "total": hb.between(0, 500),
                        "status": hb.one_of("paid", "sent", "returned"),
                        "channel": hb.one_of("web", "shop", "phone"),
                    },
                ),
                "items": _private(
                    frames["items"],
                    "orders.customer_id",
                    {"sku": hb.one_of(*SKUS), "quantity": hb.between(1, 10), "price": hb.between(0, 100)},
                    through="order_id",
                ),
                "products": hb.public(frames["products"]),
            }
    return {
        "trips": _private(
            frames["trips"],
            "rider_id",
            {
                "started_at": _MOMENT,
                "ended_at": _MOMENT,
                "lat": hb.between(48, 49),
                "lon": hb.between(2, 3),
                "km": hb.between(0, 30),
                "fare": hb.between(0, 20),
                "stops": hb.between(0, 10),
                "mode": hb.one_of(*MODES),
                "zone": hb.one_of("A", "B", "C"),
            },
        ),
        "zones": hb.public(frames["zones"]),
    }
