"""What a connection to Postgres is set to, whatever its address, role, database and environment say.

A setting that changes what a text means, or whether it fails, is set by us for the transaction and read back
(`FIXED`); one that we may not set has to be what it has to be (`REQUIRED`). The rest (`FREE`) decides how a question
is worked out: since nothing that is added up is a float and all ties are broken, no plan, no memory and no number of
workers changes an answer. The tests know every setting of the server that a role can have: it stands in one of these.
"""

from __future__ import annotations

import os
from typing import Any, Final

import psycopg

__all__ = [
    "ENCODINGS",
    "FIXED",
    "FREE",
    "NAME",
    "REQUIRED",
    "SORTED",
    "Kept",
    "begin",
    "connect",
    "limit",
    "settings",
    "statements",
]

ENCODINGS: Final = ("UTF8", "LATIN1")
"""Encodings of a database of which every text can be sent. In others a row may hold what cannot, and is an error."""

FIXED: Final[dict[str, str]] = {
    "quote_all_identifiers": "off",  # first: it decides how the next one reads
    # Which functions, operators and types a text names. Temporary ones come last, where nothing is left to take over.
    "search_path": "pg_catalog, pg_temp",
    # How values are written: units and groups are hashed by their texts.
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "timezone_abbreviations": "Default",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "xmlbinary": "base64",
    "xmloption": "content",
    # How a text is read: its constants, `x = NULL`, arrays of parameters.
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "escape_string_warning": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "default_text_search_config": "pg_catalog.simple",
    # Which rows are read. With a limit, an index of the kind GIN gives some rows at random.
    "row_security": "off",
    "gin_fuzzy_search_limit": "0",
    "constraint_exclusion": "partition",
    # What fails. A limit of time would make one person's many rows an error.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    "exit_on_error": "off",
    "client_min_messages": "error",
    # What holds rows in memory that do not go to disk, whatever work_mem says: one person's many rows, or long texts
    # that are made for one person alone, would be an error. A join by a table of hashes keeps the rows of one unit
    # together; merged, it sorts, on disk. (With it, a nested loop goes: it is chosen where the server thinks that
    # filters leave few rows, and takes hours where they do not.)
    "enable_hashjoin": "off",
    "enable_nestloop": "off",
    "enable_mergejoin": "on",
    "enable_sort": "on",
    # These two stand in shared memory, of which a machine may have little (a container of Docker's 64 MB).
    "enable_parallel_hash": "off",
    "enable_bitmapscan": "off",
    # It compiles a text where the server expects much work, which the number of rows decides: time and memory of its
    # own. Of what is measured here, nothing gains by it.
    "jit": "off",
}
"""Set for the transaction of every question and every look at the catalogue."""

SORTED: Final = b"SET LOCAL enable_hashagg = off"
"""For texts with INTERSECT or EXCEPT, whose table of hashes does not go to disk either; one of GROUP BY does."""

ALONE: Final = b"SET LOCAL max_parallel_workers_per_gather = 0"
"""For texts beyond `LONG`, and public tables beyond `MANY`: a plan goes to parallel workers as a text, with all that is
sent beside it, through memory that machines may have little of; and a table's pages decide whether there are any."""
LONG: Final = 20_000
"""Characters of a text whose plan is at most some forty times as long."""
COLUMNS: Final = 1_500
"""Of a row at most, with what it is sorted by: beyond 1,664 the server fails at the first row, and so tells of one."""
MANY: Final = 1_000_000
"""Bytes of public rows, of which a plan has some seven times as many."""

NAME: Final = "HUBBUB_APPLICATION"
"""The variable that names a process of the service to the server."""

_CHECKS_CLIENTS: Final = 140000
_LENDS: Final = 150000
"""A superuser may lend his right to one setting since that version."""
_SINCE: Final = {"idle_session_timeout": 140000, "transaction_timeout": 170000}
"""Settings that older servers do not know."""

REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "server_encoding": ENCODINGS,
    "client_encoding": ("UTF8",),
    "integer_datetimes": ("on",),
    "transaction_isolation": ("repeatable read",),
    "transaction_read_only": ("on",),
    "zero_damaged_pages": ("off",),
    "ignore_checksum_failure": ("off",),
    # As a limit of time would, it makes one person's many rows an error. It is lifted where this role may.
    "temp_file_limit": ("-1",),
    # Limits of time of the server's owner: a question that runs for longer than that ends in an error.
    "old_snapshot_threshold": ("-1",),
}
"""What the server has to say after that."""

_UNTIL: Final = {"old_snapshot_threshold": 170000}
"""Settings that newer servers do not know."""
_REPLAYED: Final[dict[str, tuple[str, ...]]] = dict.fromkeys(
    ("max_standby_archive_delay", "max_standby_streaming_delay"), ("-1",)
)
"""The same of a replica, which ends what reads rows that its original takes away."""

FREE: Final[dict[str, str]] = {
    **dict.fromkeys(
        "backend_flush_after cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost "
        "cursor_tuple_fraction default_statistics_target effective_cache_size effective_io_concurrency "
        "enable_async_append enable_distinct_reordering enable_eager_aggregate enable_gathermerge "
        "enable_group_by_reordering enable_hashagg enable_incremental_sort enable_indexonlyscan "
        "enable_indexscan enable_material enable_memoize enable_parallel_append "
        "enable_partition_pruning enable_partitionwise_aggregate enable_partitionwise_join "
        "enable_presorted_aggregate enable_self_join_elimination enable_seqscan enable_tidscan "
        "force_parallel_mode debug_parallel_query from_collapse_limit geqo geqo_effort geqo_generations geqo_pool_size "
        "geqo_seed geqo_selection_bias geqo_threshold hash_mem_multiplier io_combine_limit jit_above_cost "
        "jit_expressions jit_inline_above_cost jit_optimize_above_cost jit_tuple_deforming join_collapse_limit "
        "logical_decoding_work_mem maintenance_io_concurrency maintenance_work_mem max_parallel_maintenance_workers "
        "max_parallel_workers max_parallel_workers_per_gather min_parallel_index_scan_size "
        "min_parallel_table_scan_size parallel_leader_participation parallel_setup_cost parallel_tuple_cost "
        "plan_cache_mode random_page_cost recursive_worktable_factor seq_page_cost synchronize_seqscans temp_buffers "
        "work_mem debug_discard_caches jit_debugging_support jit_dump_bitcode jit_profiling_support "
        "ignore_system_indexes vacuum_buffer_usage_limit deadlock_timeout max_stack_depth".split(),
        "how a question is planned and how much memory it has; a limit of depth is met in PREPARE, before the charge: "
        "by a row alone LIKE goes deeper, and its % are few",
    ),
    **dict.fromkeys(
        "application_name client_connection_check_interval compute_query_id debug_pretty_print debug_print_parse "
        "debug_print_plan debug_print_raw_parse debug_print_rewritten log_parameter_max_length_on_error "
        "stats_fetch_consistency trace_notify trace_sort track_activities track_counts track_functions track_io_timing "
        "track_wal_io_timing track_cost_delay_timing update_process_title tcp_keepalives_count tcp_keepalives_idle "
        "tcp_keepalives_interval tcp_user_timeout backtrace_functions lc_messages log_connections log_disconnections "
        "log_duration log_error_verbosity log_executor_stats log_lock_waits log_lock_failures log_min_duration_sample "
        "log_min_duration_statement log_min_error_statement log_min_messages log_parameter_max_length log_parser_stats "
        "log_planner_stats log_replication_commands log_statement log_statement_sample_rate log_statement_stats "
        "log_temp_files log_transaction_sample_rate md5_password_warnings".split(),
        "the server's own log and figures, which its owner reads",
    ),
    **dict.fromkeys(
        "allow_in_place_tablespaces allow_system_table_mods check_function_bodies commit_delay commit_siblings "
        "createrole_self_grant default_table_access_method default_tablespace default_toast_compression "
        "event_triggers file_copy_method gin_pending_list_limit icu_validation_level lo_compat_privileges "
        "password_encryption scram_iterations send_abort_for_crash session_replication_role synchronous_commit "
        "temp_tablespaces transaction_deferrable default_transaction_deferrable default_transaction_isolation "
        "default_transaction_read_only vacuum_cost_delay vacuum_cost_limit vacuum_cost_page_dirty "
        "vacuum_cost_page_hit vacuum_cost_page_miss vacuum_failsafe_age vacuum_freeze_min_age vacuum_freeze_table_age "
        "vacuum_max_eager_freeze_failure_rate vacuum_multixact_failsafe_age vacuum_multixact_freeze_min_age "
        "vacuum_multixact_freeze_table_age vacuum_truncate wal_compression wal_consistency_checking wal_init_zero "
        "wal_recycle wal_sender_timeout wal_skip_threshold".split(),
        "what is written, and how; a question writes nothing, and says itself what its transaction is",
    ),
    **dict.fromkeys(
        "dynamic_library_path extension_control_path extension_destdir local_preload_libraries "
        "session_preload_libraries post_auth_delay restrict_nonsystem_relation_kind".split(),
        "code of the server's owner, whose server it is; no text of ours loads any",
    ),
}
"""Settings that change no answer, each with the reason."""


class Kept(Exception):
    """Settings that the server does not keep as they have to be; `words` says which."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection whose texts are UTF-8 on the way, over what address, environment, role and database say."""
    name = os.environ.get(NAME, "hubbub")
    return psycopg.connect(url, autocommit=True, connect_timeout=10, application_name=name, client_encoding="UTF8")


def limit(con: psycopg.Connection[Any], seconds: float) -> None:
    """Have the server end the next statement of this transaction by itself after so many seconds, and soon after this
    process has gone.
    """
    con.execute(f"SET LOCAL statement_timeout = {max(1, round(seconds * 1000))}".encode())
    if con.info.server_version >= _CHECKS_CLIENTS:
        con.execute(b"SET LOCAL client_connection_check_interval = 200")


def settings(version: int) -> dict[str, str]:
    """`FIXED`, as far as a version of the server knows it."""
    return {name: value for name, value in FIXED.items() if version >= _SINCE.get(name, 0)}


def statements(version: int) -> str:
    """The settings as statements, for the transaction alone."""
    fixed = settings(version)
    return ";\n".join(f"SET LOCAL {n} = {v if n == 'search_path' else repr(v)}" for n, v in fixed.items())


def _lifted(version: int) -> str:
    """Lifts the limit of temporary files where the role may; one value in any case, and an error for no other role."""
    may = "has_parameter_privilege('temp_file_limit', 'SET')"
    if version < _LENDS:
        may = "(SELECT rolsuper FROM pg_roles WHERE rolname = current_user)"
    return f"SELECT CASE WHEN {may} THEN set_config('temp_file_limit', '-1', true) END"


def _replays(con: psycopg.Connection[Any]) -> bool:
    """Whether a server is a replica of another; since version 14 it says so by itself."""
    told = con.info.parameter_status("in_hot_standby")
    if told is None:
        ((replays,),) = con.execute(b"SELECT pg_catalog.pg_is_in_recovery()").fetchall()
        return bool(replays)
    return told == "on"


def _way_out(con: psycopg.Connection[Any], name: str) -> str:
    """What to do about a setting that is not as it has to be, beyond setting it."""
    if name in _REPLAYED:
        return " (in the settings of this replica; or name the server that it follows)"
    if name != "temp_file_limit":
        return ""
    role = con.info.user.replace('"', '""')
    lent = f', or `GRANT SET ON PARAMETER temp_file_limit TO "{role}"`' if con.info.server_version >= _LENDS else ""
    return (
        f' (a superuser lifts it by `ALTER ROLE "{role}" SET temp_file_limit = -1`{lent}; of a server that somebody '
        "manages, its settings)"
    )


def begin(con: psycopg.Connection[Any], *, lock_timeout: str | None = None) -> None:
    """Begin a transaction that reads one state of the database, under our settings.

    Raises Kept where the server keeps others, psycopg.Error where it cannot be asked.
    """
    con.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY NOT DEFERRABLE")
    version = con.info.server_version
    required = {name: values for name, values in REQUIRED.items() if version < _UNTIL.get(name, version + 1)}
    required |= _REPLAYED if _replays(con) else {}
    names = [*settings(version), *required]
    # SHOW, as a worker of a parallel query may see other settings than its leader. A text is read under the settings
    # before it, so what depends on them is sent after them.
    shown = ";\n".join([_lifted(version), *(f'SHOW "{name}"' for name in names)])
    cursor = con.execute(f"{statements(version)};\n{shown}".encode())
    row = []
    while cursor.nextset():
        row += [value for (value,) in cursor.fetchall()] if cursor.description is not None else []
    wanted = {**{n: (v,) for n, v in settings(version).items()}, **required}
    wrong = [
        f"{n} is {v}, not {' or '.join(wanted[n])}{_way_out(con, n)}"
        for n, v in zip(names, row[1:], strict=True)
        if v not in wanted[n]
    ]
    if wrong:
        raise Kept("; ".join(wrong))
    if lock_timeout is not None:
        con.execute(f"SET LOCAL lock_timeout = '{lock_timeout}'".encode())
