"""Which modules are changed, and the tests of each, the quick and telling ones first.

The words of a dialect are held by recordings (`_WRITTEN`); what they mean where an engine runs them is told by
`tests/engines`, some of which need a server and are slow, and so stand in no room.
"""

from __future__ import annotations

from typing import Final

_RECORDED: Final = "tests/golden/test_recorded.py"
_WRITTEN: Final = "tests/golden/test_written.py"
_CHECKED: Final = "tests/golden/test_checks.py"
_PRICED: Final = "tests/golden/test_priced.py"
_ESTIMATED: Final = "tests/golden/test_estimated.py"
_RANGES: Final = "tests/golden/test_ranges.py"
_EXAMPLES: Final = "tests/test_docstrings.py"
_TABLES: Final = (
    _RECORDED,
    _CHECKED,
    _PRICED,
    _ESTIMATED,
    _RANGES,
    _EXAMPLES,
    "tests/tables",
    "tests/test_reviewed.py",
    "tests/test_release.py",
)
_WAY: Final = (
    _RECORDED,
    "tests/sql/test_bounding.py",
    "tests/sql/test_meaning.py",
    "tests/golden",
    "tests/sql",
    "tests/engines/test_duckdb.py",
    "tests/test_reviewed.py",
    "tests/test_hostile.py",
    "tests/test_verbs.py",
    _EXAMPLES,
)
_LEDGER: Final = (
    "tests/golden/test_ledgers.py",
    "tests/ledger/test_store.py",
    "tests/ledger/test_life.py",
    "tests/ledger/test_limits.py",
)
_NEIGHBOURS: Final = ("tests/test_neighbours.py", "tests/test_ownership.py")
_RANKED: Final = (
    "tests/engines/test_ranking_exactly.py",
    "tests/engines/test_ranked_units.py",
    "tests/engines/test_ranking.py",
)
_AUDIT: Final = ("tests/audit/test_grey_box.py",)
_GATE: Final = (
    "tests/golden/test_acts.py",
    "tests/service/test_gate.py",
    "tests/service/test_people.py",
    "tests/service/test_office.py",
    "tests/service/test_matrix.py",
)

_NOISE: Final = (
    "tests/golden/test_mechanisms.py",
    "tests/mechanisms/test_theorems.py",
    "tests/mechanisms/test_privacy.py",
    "tests/mechanisms/test_shape.py",
    "tests/mechanisms/test_hostile.py",
    "tests/mechanisms/test_groups_charged.py",
    "tests/mechanisms/test_sampling.py",
    _EXAMPLES,
    _CHECKED,
)
_QUEUE: Final = (
    "tests/golden/test_timetables.py",
    "tests/service/test_schedule.py",
    "tests/service/test_timetable.py",
    "tests/service/test_desk.py",
    "tests/service/test_whole_desk.py",
    "tests/ledger/test_closing.py",
    "tests/ledger/test_words.py",
)
_SESSION: Final = (
    _CHECKED,
    "tests/test_session.py",
    "tests/test_release.py",
    "tests/test_door.py",
    "tests/test_reviewed.py",
)

ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "hubbub.mechanisms.calibration": ("tests/mechanisms/test_calibrated.py", *_NOISE, *_TABLES),
    "hubbub.mechanisms.groups": (*_NOISE, "tests/mechanisms/test_calibrated.py", "tests/tables/test_price.py"),
    "hubbub.mechanisms.top_k": ("tests/mechanisms/test_top_k.py", "tests/tables/test_top_place.py", *_NOISE),
    "hubbub.mechanisms.place_search": (
        "tests/mechanisms/test_place_search.py",
        "tests/test_found_bounds.py",
        *_NOISE,
    ),
    "hubbub.accounting.filters": (
        "tests/accounting/test_budget.py",
        "tests/golden/test_filters.py",
        "tests/accounting/test_events.py",
        *_LEDGER,
    ),
    "hubbub.tables.relations": (*_WAY, *_TABLES, *_NEIGHBOURS, "tests/engines/test_pinned.py"),
    "hubbub.tables.repeats": ("tests/sql/test_repeats.py", *_WAY, *_NEIGHBOURS),
    "hubbub.tables.groups": ("tests/golden/test_keys.py", *_TABLES, *_NEIGHBOURS, "tests/sql"),
    "hubbub.tables.aggregates.count": (*_TABLES, *_NEIGHBOURS, "tests/sql"),
    "hubbub.tables.aggregates.sum": (*_TABLES, *_NEIGHBOURS, "tests/sql"),
    "hubbub.tables.aggregates.mean": (*_TABLES, *_NEIGHBOURS, "tests/sql"),
    "hubbub.tables.aggregates.weighted": ("tests/tables/test_weighted.py", *_TABLES, *_NEIGHBOURS),
    "hubbub.tables.aggregates.covariance": (*_TABLES, *_NEIGHBOURS, "tests/sql"),
    "hubbub.tables.aggregates.regression": (*_TABLES, *_NEIGHBOURS, "tests/sql"),
    "hubbub.tables.aggregates.geometric": (*_TABLES, *_NEIGHBOURS, "tests/sql"),
    "hubbub.tables.price": (*_TABLES, *_NEIGHBOURS, *_AUDIT),
    "hubbub.tables.measure": (*_TABLES, *_NEIGHBOURS, "tests/test_found_bounds.py"),
    "hubbub.tables.parts": (*_TABLES, *_NEIGHBOURS, "tests/test_found_bounds.py"),
    "hubbub.tables.plan": (*_TABLES, *_NEIGHBOURS, "tests/test_found_bounds.py"),
    "hubbub.tables.aggregates.moments": (*_TABLES, *_NEIGHBOURS),
    "hubbub.tables.aggregates.quantile": (*_TABLES, *_NEIGHBOURS),
    "hubbub.tables.aggregates.mode": ("tests/tables/test_choices.py", "tests/tables/test_top_place.py"),
    "hubbub.tables.aggregates.top_k": ("tests/tables/test_choices.py",),
    "hubbub.tables.aggregates.top_place": ("tests/tables/test_top_place.py",),
    "hubbub.tables.clipping": (*_TABLES, *_NEIGHBOURS),
    "hubbub.tables.split": (*_TABLES, *_NEIGHBOURS),
    "hubbub.tables.growth": ("tests/sql/test_growth.py", _RECORDED, _RANGES, _EXAMPLES),
    "hubbub.sql.emit.plan": (*_WAY, "tests/engines/test_searches.py", "tests/test_found_bounds.py", *_NEIGHBOURS),
    "hubbub.sql.emit.ranked": (*_RANKED, *_WAY),
    "hubbub.sql.emit.lists": ("tests/engines/test_lists.py",),
    "hubbub.engines.duckdb.ranking": _RANKED,
    "hubbub.engines.duckdb.pieces": _RANKED,
    "hubbub.engines.duckdb.room": _RANKED,
    "hubbub.engines.duckdb.known": (
        _PRICED,
        "tests/engines/test_sqlite_and_sheets.py",
        "tests/engines/test_replaced.py",
        "tests/engines/test_units_as_stored.py",
    ),
    "hubbub.sql.emit.relation": (*_WAY, *_NEIGHBOURS),
    "hubbub.sql.emit.expression": (_WRITTEN, *_WAY, "tests/tables"),
    "hubbub.sql.emit.dialect": (_WRITTEN, *_WAY, "tests/tables"),
    "hubbub.sql.emit.net": (_WRITTEN, *_WAY),
    "hubbub.sql.emit.rows": (*_WAY, "tests/learning"),
    "hubbub.sql.emit.clipping": (*_TABLES, *_WAY, *_NEIGHBOURS),
    "hubbub.sql.emit.binding": ("tests/engines/test_plans.py", *_WAY),
    "hubbub.engines.postgres.dialect": (_WRITTEN, *_WAY),
    "hubbub.engines.spark.dialect": (_WRITTEN, *_WAY),
    "hubbub.engines.duckdb.dialect": (_WRITTEN, *_WAY, "tests/tables", "tests/pitfalls", *_NEIGHBOURS),
    "hubbub.ledger.charging": (*_LEDGER, "tests/ledger", "tests/test_session.py"),
    "hubbub.ledger.accounts": ("tests/ledger/test_amounts.py", *_LEDGER, "tests/ledger", "tests/test_session.py"),
    "hubbub.ledger.life": (*_LEDGER, "tests/ledger", "tests/test_session.py"),
    "hubbub.ledger.keys": (
        "tests/ledger/test_epochs.py",
        "tests/ledger/test_keys.py",
        "tests/ledger/test_backup.py",
        "tests/ledger/test_chain.py",
    ),
    "hubbub.ledger.closing": ("tests/ledger/test_closing.py", "tests/ledger/test_backup.py"),
    "hubbub.ledger.removing": ("tests/ledger/test_words.py", "tests/cli/test_keeping.py"),
    "hubbub.ledger.books": (*_LEDGER, "tests/ledger", "tests/test_session.py"),
    "hubbub.ledger.blocks": (*_LEDGER, "tests/ledger", "tests/test_session.py", "tests/test_looks.py"),
    "hubbub.ledger.readings": ("tests/service/test_caps.py", *_LEDGER, "tests/ledger"),
    "hubbub.ledger.schedule": _QUEUE,
    "hubbub.ledger.timetable": (*_QUEUE, "tests/service/test_found_in_service.py", "tests/service/test_refreshed.py"),
    "hubbub.service.acts": _GATE,
    "hubbub.service.gate": _GATE,
    "hubbub.session.run": (
        *_SESSION,
        "tests/test_looks.py",
        "tests/ledger",
        "tests/test_found_bounds.py",
        "tests/service/test_found_in_service.py",
        "tests/service/test_whole_desk.py",
        "tests/service/test_timetable.py",
    ),
    "hubbub.session.looks": ("tests/test_looks.py", *_SESSION),
    "hubbub.session.finding": (_PRICED, "tests/test_found_bounds.py", "tests/service/test_brought.py", *_SESSION),
    "hubbub.session.remembered": (
        "tests/test_remembered.py",
        "tests/test_linear.py",
    ),
    "hubbub.session.prepare": (
        _PRICED,
        "tests/test_session.py",
        "tests/test_release.py",
        "tests/test_reviewed.py",
        "tests/test_looks.py",
        "tests/test_found_bounds.py",
        "tests/test_total_error.py",
        "tests/test_remedies_of_options.py",
        "tests/tables/test_conditions.py",
        "tests/ledger",
        "tests/cli/test_questions.py",
        "tests/test_door.py",
    ),
}
"""Pricing, bounding, the writing of SQL, and charging. `sql.emit.place` has nothing that can be changed."""

TEXTS: Final = ("hubbub.sql.", "hubbub.engines.")
"""Where texts are SQL; elsewhere they are words for people."""
