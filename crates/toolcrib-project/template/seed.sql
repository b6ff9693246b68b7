CREATE TABLE notes (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    written_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);

INSERT INTO notes (text, written_at) VALUES
    ('The printer eats paper on Mondays.', '2026-01-05 09:12:00'),
    ('Coffee beans are in the left cupboard.', '2026-01-07 08:30:00');
