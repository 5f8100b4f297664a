"""Tables in files and frames, asked by DuckDB inside this process."""
