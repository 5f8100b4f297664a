"""HTTP: what an analyst, a steward and an auditor say to the service, and how they are answered.

    line      the socket to the clerk: acts, and what is told
    problem   refusals as RFC 9457 problem+json; bodies that are not what was expected
    api       the analyst's routes
    app       all of it as one ASGI application

Nothing here decides who may what, and nothing is told that the clerk did not tell.
"""
