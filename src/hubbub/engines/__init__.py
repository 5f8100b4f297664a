"""engines: where rows are.

An engine knows declared sources, tells their columns (names and types, never values), and runs compiled SQL that
returns one row per group of exact integers. Rows about people never leave it. `contract` says what an engine is;
`duckdb` is the embedded default.
"""
