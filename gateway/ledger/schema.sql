-- All times are ms UTC, all charges micro-bits. Arrays are little-endian int64 unless said otherwise.

-- One policy after another; a change starts an epoch and forgets no spend.
CREATE TABLE epoch (
    id          INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    document    BLOB NOT NULL          -- the public policy, JSON, zlib
) STRICT;

-- Every household, group and meter ever seen keeps its place in the packed rows, whoever is on today's roll.
CREATE TABLE place (
    kind     TEXT NOT NULL CHECK (kind IN ('household', 'group', 'meter')),
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    PRIMARY KEY (kind, position),
    UNIQUE (kind, name)
) STRICT, WITHOUT ROWID;

-- Secret keys of pseudonyms: of the policy in force, and of releases that still wait.
CREATE TABLE pseudonym_key (
    fingerprint TEXT PRIMARY KEY,
    secret      BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Every filter that our session at the broker may hold: what left the configuration is unsubscribed.
CREATE TABLE subscription (
    filter TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Readings of open slots: one packed row per commit, gone when its last slot has closed.
CREATE TABLE journal (
    id       INTEGER PRIMARY KEY,
    last_ms  INTEGER NOT NULL,         -- the latest time in it
    readings BLOB NOT NULL             -- (5, m): place, time, mW or mWh, serial, 2 * quantity + retained
) STRICT;

-- Where the registers stood after the latest slot; one row, none on a roll without registers.
CREATE TABLE register (
    id      INTEGER PRIMARY KEY CHECK (id = 0),
    columns BLOB NOT NULL              -- (columns, places) of the slots' register state
) STRICT;

-- One row per slot that was closed: the key that makes a second charge for it impossible.
CREATE TABLE slot (
    start_ms           INTEGER PRIMARY KEY,
    epoch              INTEGER NOT NULL REFERENCES epoch (id),
    households         INTEGER NOT NULL,
    groups             INTEGER NOT NULL,
    held               INTEGER NOT NULL, -- households whose budget was spent
    charged_microbits  INTEGER NOT NULL
) STRICT;

-- Releases that are decided but not yet acknowledged by the broker.
CREATE TABLE outbox (
    start_ms INTEGER PRIMARY KEY REFERENCES slot (start_ms),
    symbols  BLOB NOT NULL,            -- in the order of release, unsigned 32 bit
    spent    BLOB NOT NULL,            -- one bit per household
    coarse   BLOB NOT NULL,            -- merged cells per household, unsigned 32 bit; empty where none are merged
    sent     INTEGER NOT NULL          -- how many of them the broker has
) STRICT;

-- Where every account stands after the latest slot; a row for households and one for groups.
CREATE TABLE balance (
    kind    TEXT PRIMARY KEY CHECK (kind IN ('household', 'group')),
    next_ms INTEGER NOT NULL,          -- start of the next slot
    columns BLOB NOT NULL              -- household (5, n): window start, spent, total, held, residual; group (4, n)
) STRICT, WITHOUT ROWID;
