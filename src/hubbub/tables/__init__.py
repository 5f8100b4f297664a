"""tables: what a private table is, and what one question about it costs.

A table is declared (`declare`): who is protected, how much one unit may contribute, which values a column can
take. Row expressions (`expressions`) are typed and total: they never raise on any row, and an operation without
an answer (division by zero, NaN) gives NULL. A question (`question`) is owned rows below one private aggregate
and a choice of released rows above it. The plan (`plan`) turns a question into *measurements*, vectors of
integers with a known sensitivity, and the price (`price`) turns an epsilon into exact noise scales and expected
errors. Nothing here reads rows, and nothing here speaks SQL.

The one rule is ownership (Definition in `question`): every row belongs to one unit, and adding a unit changes no
other unit's rows. Sensitivity then comes from one place: the bound on a unit's contribution at the aggregate.
"""
