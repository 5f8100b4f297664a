"""sql: text to questions, and plans to text in an engine's dialect.

Only this room knows sqlglot. `parse` reads one statement through an allow-list: a form that is not on it is
refused, with a caret at its place. `compile` writes SQL from our own nodes only; no text of a user ever reaches an
engine that holds private rows, every name is quoted and every constant printed from its value (pitfall P27).
"""
