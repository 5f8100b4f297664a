"""The command line: the analyst's and the steward's way in, without writing Python.

Its conventions, each held by a test:

- Data goes to stdout; questions, notes and errors go to stderr. On a terminal an answer is a table, in a pipe
  or a file it is CSV, unless `--format` says otherwise. `NO_COLOR` is honoured.
- Nothing is spent by surprise: a question that costs asks first, and away from a terminal needs `--yes`.
- An error is one line with its class, and a caret where a place in the question is meant; never a traceback.
- Exit codes: 0 done, 1 internal, 2 QueryError or usage, 3 PolicyError, 4 BudgetError, 5 EngineError, 130
  interrupted or declined.

`main` is the door; each command is loaded only when it is used, so that `hubbub --help` stays light.
"""
