-- What a worker finds: submitted messages, settled calls, and turns to be cancelled.
ALTER TABLE toolcrib.sessions
    -- The messages that wait, as UTF-8, and the number of those that were taken before them.
    ADD COLUMN submitted bytea[] NOT NULL DEFAULT '{}',
    ADD COLUMN taken bigint NOT NULL DEFAULT 0,
    -- Whether an open turn can go on without a lease that has expired.
    ADD COLUMN is_due boolean NOT NULL DEFAULT false,
    ADD COLUMN cancelled_turn integer NOT NULL DEFAULT 0;
CREATE INDEX sessions_with_work ON toolcrib.sessions (id) WHERE is_running OR submitted <> '{}';

-- Records a decision, and returns whether the call was open. Locks the session before the call, as `park` does.
CREATE FUNCTION toolcrib.settle(
    the_id text, the_settlement text, is_approved boolean, the_end bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    its_session text;
BEGIN
    SELECT session INTO its_session FROM toolcrib.approvals WHERE id = the_id;
    PERFORM FROM toolcrib.sessions WHERE id = its_session FOR UPDATE;
    UPDATE toolcrib.approvals SET settlement = the_settlement, until_ms = the_end,
        arguments = CASE WHEN is_approved THEN arguments END
        WHERE id = the_id AND closed IS NULL AND settlement IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE toolcrib.sessions SET is_due = true WHERE id = its_session;
    RETURN true;
END $$;
