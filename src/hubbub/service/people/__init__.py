"""Who may do what: people and their roles, passphrases, tokens, page sessions, and a hash-chained log of it all.

    person     a person as an act sees him: name, scopes, the limits of his token; why he may not
    keys       tokens, links and passphrases: how they are made, and what is kept of them
    store      service.db, beside the ledger: SQLite, written in whole transactions, each with its line of the log
    log        the log's chain
    roll       people: added, invited, given roles, disabled, gone
    tokens     bearer tokens
    sessions   the sessions of pages
    oidc       a provider of OpenID Connect, and whom its tokens name
    subjects   accounts at the provider, and to whom they are bound
    elsewhere  logging in by it
    people     all of it, as the clerk asks it

Nothing secret is kept: of tokens, links and sessions the SHA-256 (they are random), of passphrases scrypt's.
"""
