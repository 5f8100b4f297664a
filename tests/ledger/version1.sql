-- A ledger as hubbub 0.1.0 made it (schema version 1), with a charge in every state.
PRAGMA application_id = 1752523362;
PRAGMA user_version = 1;
CREATE TABLE unit_space (
    name    TEXT PRIMARY KEY NOT NULL,
    ceiling TEXT NOT NULL,
    created TEXT NOT NULL
);
CREATE TABLE data_version (
    serial     INTEGER PRIMARY KEY AUTOINCREMENT,
    unit_space TEXT NOT NULL REFERENCES unit_space (name),
    dataset    TEXT NOT NULL,
    id         TEXT NOT NULL UNIQUE,
    issued     TEXT NOT NULL
);
CREATE TABLE charge (
    serial       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    time         TEXT NOT NULL,
    unit_space   TEXT NOT NULL REFERENCES unit_space (name),
    dataset      TEXT NOT NULL,
    analyst      TEXT NOT NULL,
    question_key TEXT NOT NULL,
    sql          TEXT NOT NULL,
    epsilon      TEXT NOT NULL,
    spent        TEXT NOT NULL,
    event        TEXT NOT NULL,
    details      TEXT NOT NULL
);
CREATE TABLE step (
    charge   INTEGER NOT NULL REFERENCES charge (serial),
    number   INTEGER NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('drawing', 'stored', 'shown', 'failed')),
    time     TEXT NOT NULL,
    incident TEXT,
    PRIMARY KEY (charge, number)
) WITHOUT ROWID;
CREATE TABLE release (
    charge  INTEGER PRIMARY KEY REFERENCES charge (serial),
    time    TEXT NOT NULL,
    payload TEXT NOT NULL
);
CREATE INDEX data_version_of ON data_version (unit_space, dataset, serial);
CREATE INDEX charge_of_space ON charge (unit_space, serial);
CREATE INDEX charge_of_question ON charge (unit_space, question_key);
CREATE TRIGGER data_version_no_update BEFORE UPDATE ON data_version BEGIN SELECT RAISE(ABORT, 'data_version is append-only'); END;
CREATE TRIGGER data_version_no_delete BEFORE DELETE ON data_version BEGIN SELECT RAISE(ABORT, 'data_version is append-only'); END;
CREATE TRIGGER charge_no_update BEFORE UPDATE ON charge BEGIN SELECT RAISE(ABORT, 'charge is append-only'); END;
CREATE TRIGGER charge_no_delete BEFORE DELETE ON charge BEGIN SELECT RAISE(ABORT, 'charge is append-only'); END;
CREATE TRIGGER step_no_update BEFORE UPDATE ON step BEGIN SELECT RAISE(ABORT, 'step is append-only'); END;
CREATE TRIGGER step_no_delete BEFORE DELETE ON step BEGIN SELECT RAISE(ABORT, 'step is append-only'); END;
CREATE TRIGGER release_no_update BEFORE UPDATE ON release BEGIN SELECT RAISE(ABORT, 'release is append-only'); END;
CREATE TRIGGER release_no_delete BEFORE DELETE ON release BEGIN SELECT RAISE(ABORT, 'release is append-only'); END;
INSERT INTO unit_space VALUES ('household', '2/1', '2026-03-01T08:00:00.000000Z');
INSERT INTO unit_space VALUES ('patient_id', '1/1', '2026-01-01T08:00:00.000000Z');
INSERT INTO data_version VALUES (1, 'patient_id', 'visits', '0123456789abcdef0123456789abcdef', '2026-01-01T08:00:01.000000Z');
INSERT INTO charge VALUES (1, 'c1', '2026-01-01T09:00:00.000000Z', 'patient_id', 'visits', 'ada', 'k1', 'SELECT 1', '1/10', '1/10', '{}', '{}');
INSERT INTO charge VALUES (2, 'c2', '2026-01-02T09:00:00.000000Z', 'patient_id', 'visits', 'bob', 'k2', 'SELECT 2', '1/3', '13/30', '{}', '{}');
INSERT INTO charge VALUES (3, 'c3', '2026-01-03T09:00:00.000000Z', 'patient_id', 'visits', 'ada', 'k3', 'SELECT 3', '1/10', '8/15', '{}', '{}');
INSERT INTO charge VALUES (4, 'c4', '2026-01-03T09:00:00.000000Z', 'patient_id', 'visits', 'ada', 'k4', 'SELECT 4', '1/10', '19/30', '{}', '{}');
INSERT INTO step VALUES (1, 1, 'drawing', '2026-01-01T09:00:01.000000Z', NULL);
INSERT INTO step VALUES (1, 2, 'stored', '2026-01-01T09:00:01.000000Z', NULL);
INSERT INTO step VALUES (1, 3, 'shown', '2026-01-05T09:00:01.000000Z', NULL);
INSERT INTO step VALUES (2, 1, 'drawing', '2026-01-02T08:00:00.000000Z', NULL);
INSERT INTO step VALUES (2, 2, 'stored', '2026-01-02T09:00:01.000000Z', NULL);
INSERT INTO step VALUES (3, 1, 'failed', '2026-01-03T09:00:02.000000Z', 'i17');
INSERT INTO release VALUES (1, '2026-01-01T09:00:01.000000Z', 'answer 1');
INSERT INTO release VALUES (2, '2026-01-02T09:00:01.000000Z', 'answer 2');
