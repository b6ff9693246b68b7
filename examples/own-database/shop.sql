-- The contents of shop.db, which a shop's own program would have made:
-- python3 -c 'import sqlite3; sqlite3.connect("shop.db").executescript(open("shop.sql").read())'

PRAGMA page_size = 1024;

CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    price_cents INTEGER NOT NULL,
    stock INTEGER NOT NULL CHECK (stock >= 0)
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products (id),
    city TEXT NOT NULL,
    pieces INTEGER NOT NULL,
    ordered_on TEXT NOT NULL
);

INSERT INTO products VALUES
    (1, 'Claw hammer', 2450, 40),
    (2, 'Spirit level', 1890, 0),
    (3, 'Cordless drill', 12900, 7),
    (4, 'Socket set', 6400, 12);
INSERT INTO orders VALUES
    (101, 1, 'Porto', 2, '2026-10-03'),
    (102, 3, 'Gdansk', 1, '2026-10-04'),
    (103, 2, 'Porto', 5, '2026-10-04'),
    (104, 4, 'Turku', 1, '2026-10-09'),
    (105, 3, 'Porto', 2, '2026-10-11'),
    (106, 1, 'Gdansk', 10, '2026-10-12'),
    (107, 2, 'Turku', 3, '2026-10-20');
