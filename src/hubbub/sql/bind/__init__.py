"""What a statement means: names, rows and their owners, private aggregates, and the SQL above them (`query` first)."""
