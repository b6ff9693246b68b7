-- The first start of the database. `store` exists: sessions, approvals, and what restricts callers.
-- Marks of used approvals: a copy of the store that is restored does not revive them.
CREATE DATABASE marks;
-- The data of the example's tool.
CREATE DATABASE shop;
\connect shop
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text NOT NULL);
INSERT INTO orders (item) VALUES ('cup'), ('plate');
