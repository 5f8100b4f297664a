"""The service: analysts who are not trusted ask people's tables through a wall, and by a clock that tells nothing.

    front     HTTP; no rows, no ledger, no key                                 `front.py`, around `http/`
    clerk     who may what (`acts.py`, `people/`); plans, prices, charges; the
              schedule; ledger and key, no rows                                `clerk.py`, around `desk.py`
    runners   rows and noise; no ledger, no key; one question each             `runner.py`, kept by `lanes.py`

`serve.py` starts front and clerk and starts them again; the clerk does so with its runners. When an answer leaves is
stated and proved in `hubbub.ledger.schedule`, and written by `hubbub.ledger.timetable`. Who can do what, and what is
open, stands in the docs (`concepts/service.md`).
"""
