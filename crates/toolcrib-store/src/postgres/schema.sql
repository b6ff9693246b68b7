-- Times are in milliseconds since 1970, by the server's clock. Texts that may have NUL are bytes or in JSON.

DO $$ BEGIN
    -- A role that may not create schemas uses one that its administrator has created.
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'toolcrib') THEN
        CREATE SCHEMA toolcrib;
    END IF;
END $$;

CREATE TABLE toolcrib.format (version bigint NOT NULL);
INSERT INTO toolcrib.format VALUES (0);

CREATE TABLE toolcrib.sessions (
    id text PRIMARY KEY,
    owner text NOT NULL,
    name text,
    personality bytea NOT NULL,
    title bytea NOT NULL DEFAULT '',
    created_ms bigint NOT NULL,
    used_ms bigint NOT NULL,
    turns integer NOT NULL DEFAULT 0,
    is_running boolean NOT NULL DEFAULT false,
    -- How the last turn ended, as JSON.
    ended text,
    bytes bigint NOT NULL DEFAULT 0,
    -- The number of records, of which each has its position.
    records bigint NOT NULL DEFAULT 0,
    -- The number of writes, which a writer compares with those that it has seen.
    writes bigint NOT NULL DEFAULT 0,
    lease text,
    lease_until_ms bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sessions_by_name ON toolcrib.sessions (owner, name);

-- What was written, in order, as JSON. No foreign key: a write locks its session's row anyway.
CREATE TABLE toolcrib.records (
    session text NOT NULL,
    position bigint NOT NULL,
    turn integer NOT NULL,
    at_ms bigint NOT NULL,
    kind smallint NOT NULL,
    body text NOT NULL,
    words text[]
);
CREATE UNIQUE INDEX records_of_history ON toolcrib.records (session, position) WHERE kind <> 0;
CREATE UNIQUE INDEX records_of_events ON toolcrib.records (session, turn, position) WHERE kind = 0;
CREATE INDEX records_of_turns ON toolcrib.records (session, turn) WHERE kind = 1;
CREATE INDEX records_by_words ON toolcrib.records USING gin (words) WHERE words IS NOT NULL;

-- Texts that sessions with the same tools share, by their digests.
CREATE TABLE toolcrib.parts (
    digest text PRIMARY KEY,
    body bytea NOT NULL,
    used_ms bigint NOT NULL
);
CREATE TABLE toolcrib.sent (
    session text NOT NULL,
    key text NOT NULL,
    part text NOT NULL,
    PRIMARY KEY (session, key)
);
CREATE INDEX sent_by_part ON toolcrib.sent (part);

CREATE TABLE toolcrib.usage (
    day bigint NOT NULL,
    owner text NOT NULL,
    session text NOT NULL,
    kind text NOT NULL,
    name bytea NOT NULL,
    counts bigint[] NOT NULL,
    costs double precision[] NOT NULL,
    PRIMARY KEY (day, owner, session, kind, name)
);

CREATE TABLE toolcrib.approvals (
    id text PRIMARY KEY,
    owner text NOT NULL,
    session text,
    binding text NOT NULL,
    call text NOT NULL,
    arguments text,
    created_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    settlement text,
    until_ms bigint,
    closed text,
    closed_ms bigint
);
CREATE INDEX approvals_by_session ON toolcrib.approvals (session);
CREATE INDEX approvals_that_wait ON toolcrib.approvals (created_ms) WHERE closed IS NULL;
CREATE TABLE toolcrib.grants (
    id text PRIMARY KEY,
    granted text NOT NULL,
    created_ms bigint NOT NULL,
    until_ms bigint NOT NULL
);

CREATE TABLE toolcrib.kv (
    area text NOT NULL,
    key bytea NOT NULL,
    session text,
    value bytea NOT NULL,
    expires_ms bigint NOT NULL,
    PRIMARY KEY (area, key)
);
CREATE INDEX kv_by_session ON toolcrib.kv (session);
CREATE INDEX kv_by_end ON toolcrib.kv (expires_ms);

CREATE TABLE toolcrib.limits (
    name bytea PRIMARY KEY,
    full_at_us bigint NOT NULL
);

CREATE TABLE toolcrib.artifacts (
    owner text NOT NULL,
    id bytea NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    content text NOT NULL,
    entry text NOT NULL,
    made_ms bigint NOT NULL,
    PRIMARY KEY (owner, id)
);
-- A content that no artifact has any more stays for a while, for readers that have opened it.
CREATE TABLE toolcrib.contents (
    id text PRIMARY KEY,
    line_index bytea,
    unused_ms bigint
);
CREATE INDEX contents_without_use ON toolcrib.contents (unused_ms) WHERE unused_ms IS NOT NULL;
CREATE TABLE toolcrib.chunks (
    content text NOT NULL,
    number bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (content, number)
);
-- Parts of a chunk are read without the rest of it.
ALTER TABLE toolcrib.chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE FUNCTION toolcrib.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';

-- Parks a call unless the same one waits, and returns the id of its row; or a word of why not.
CREATE FUNCTION toolcrib.park(
    the_id text, the_owner text, the_session text, the_binding text, the_call text, the_arguments text,
    the_end bigint, most bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    waiting text;
BEGIN
    IF the_session IS NOT NULL THEN
        PERFORM FROM toolcrib.sessions WHERE id = the_session AND owner = the_owner FOR SHARE;
        IF NOT FOUND THEN
            RETURN 'unknown';
        END IF;
    END IF;
    LOCK TABLE toolcrib.approvals IN SHARE ROW EXCLUSIVE MODE;
    SELECT id INTO waiting FROM toolcrib.approvals
        WHERE closed IS NULL AND settlement IS NULL AND expires_ms > toolcrib.now_ms()
            AND binding = the_binding ORDER BY created_ms LIMIT 1;
    IF FOUND THEN
        RETURN waiting;
    END IF;
    IF (SELECT count(*) FROM toolcrib.approvals WHERE closed IS NULL AND settlement IS NULL
            AND expires_ms > toolcrib.now_ms()) >= most THEN
        RETURN 'full';
    END IF;
    INSERT INTO toolcrib.approvals (id, owner, session, binding, call, arguments, created_ms, expires_ms)
        VALUES (the_id, the_owner, the_session, the_binding, the_call, the_arguments,
            toolcrib.now_ms(), the_end)
        ON CONFLICT DO NOTHING;
    RETURN CASE WHEN FOUND THEN the_id ELSE 'taken' END;
END $$;

-- Writes or removes a key, and returns NULL; or a word of why not.
CREATE FUNCTION toolcrib.put(
    the_area text, the_session text, the_key bytea, the_value bytea, is_bound boolean, expected bytea,
    lives_ms bigint, most_keys bigint, most_bytes bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    present bytea;
    keys bigint;
    size bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(the_area, 70));
    IF is_bound THEN
        SELECT value INTO present FROM toolcrib.kv
            WHERE area = the_area AND key = the_key AND expires_ms > toolcrib.now_ms();
        IF present IS DISTINCT FROM expected THEN
            RETURN 'changed';
        END IF;
    END IF;
    IF the_value IS NOT NULL THEN
        SELECT count(*), coalesce(sum(length(key) + length(value)), 0) INTO keys, size
            FROM toolcrib.kv
            WHERE area = the_area AND key <> the_key AND expires_ms > toolcrib.now_ms();
        IF keys >= most_keys OR size + length(the_key) + length(the_value) > most_bytes THEN
            RETURN 'full';
        END IF;
    END IF;
    DELETE FROM toolcrib.kv
        WHERE area = the_area AND (key = the_key OR expires_ms <= toolcrib.now_ms());
    IF the_value IS NOT NULL THEN
        INSERT INTO toolcrib.kv (area, key, session, value, expires_ms)
            VALUES (the_area, the_key, the_session, the_value, toolcrib.now_ms() + lives_ms);
    END IF;
    RETURN NULL;
END $$;
