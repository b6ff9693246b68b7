CREATE TABLE duty (project TEXT PRIMARY KEY, person TEXT NOT NULL, channel_id TEXT NOT NULL);
INSERT INTO duty VALUES
    ('shop/checkout', 'Noor', 'C024BE91L'),
    ('shop/search', 'Emil', 'C0311KTRQ');

CREATE TABLE incidents (id INTEGER PRIMARY KEY, project TEXT NOT NULL, summary TEXT NOT NULL);
