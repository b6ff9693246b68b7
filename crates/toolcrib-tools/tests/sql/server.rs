//! SQL tools over a real PostgreSQL server.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_capabilities::database::postgres::{PostgresDatabase, PostgresSpec};
use toolcrib_core::{CancellationToken, ErrorCode, Tool, ToolContext, ToolContextParts, ToolError};
use toolcrib_skip::skip;
use toolcrib_testbed::PostgresServer;
use toolcrib_tools::{
    Declaration,
    sql::{SqlStatement, SqlToolSpec},
    sql_explore::ExploreTool,
};

use crate::support::{any, call, call_in, or_else, reads, writes};

const SCRIPT: &str = "
CREATE TYPE mood AS ENUM ('ok', 'bad');
CREATE DOMAIN price AS numeric(10, 2) CHECK (VALUE > -1000000);
CREATE TABLE orders (id serial PRIMARY KEY, customer text NOT NULL, total price);
COMMENT ON TABLE orders IS 'What was ordered.';
INSERT INTO orders (customer, total) VALUES ('Ada', 9.50), ('Brook', 0.05), ('Cleo', -3);
CREATE TABLE refunds (order_id int UNIQUE REFERENCES orders, amount numeric);
CREATE VIEW locked AS SELECT pg_advisory_lock(7)::text AS x;
CREATE FUNCTION mail() RETURNS text LANGUAGE sql VOLATILE AS 'SELECT ''sent''';
CREATE FUNCTION doubled(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT x * 2';
";

/// A database of the server, and the role that only reads it.
pub(crate) struct Shop {
    pub(crate) server: &'static PostgresServer,
    pub(crate) name: String,
}

impl Shop {
    pub(crate) fn new() -> Option<Self> {
        let server = PostgresServer::shared()?;
        let name = server.database(SCRIPT).unwrap();
        let shop = Self { server, name };
        shop.psql(&format!(
            "CREATE ROLE {0} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {0}",
            shop.reader()
        ));
        Some(shop)
    }

    pub(crate) fn reader(&self) -> String {
        format!("reader_{}", self.name)
    }

    pub(crate) fn psql(&self, script: &str) -> String {
        self.server.psql(&self.name, script).unwrap()
    }

    pub(crate) fn open(&self, user: &str, writable: bool) -> PostgresDatabase {
        at(&self.server.url(user, &self.name), writable)
    }

    pub(crate) fn owner(&self) -> PostgresDatabase {
        self.open("owner", true)
    }

    pub(crate) fn explore(&self, tool: ExploreTool) -> Tool {
        let database = self.open(&self.reader(), false);
        explorer(tool, &database, Some(Duration::from_secs(5))).unwrap()
    }

    pub(crate) async fn query(&self, sql: &str) -> Result<Value, ToolError> {
        call(&self.explore(ExploreTool::Query), json!({ "sql": sql })).await
    }
}

fn at(url: &str, writable: bool) -> PostgresDatabase {
    let spec = PostgresSpec { name: "shop".into(), url: url.into(), writable };
    PostgresDatabase::new(&spec).unwrap()
}

pub(crate) fn explorer(
    tool: ExploreTool,
    database: &PostgresDatabase,
    timeout: Option<Duration>,
) -> Result<Tool, toolcrib_tools::ToolErrors> {
    let base = Declaration { timeout, ..Declaration::new("shop", "") };
    let tool = tool.build(tool.declaration(&base, "shop"), database, 200);
    database.end_checks();
    tool
}

pub(crate) fn errors(spec: SqlToolSpec, database: &PostgresDatabase) -> Vec<String> {
    let errors = spec.build(database).unwrap_err().errors;
    errors.into_iter().map(|error| error.message).collect()
}

#[tokio::test]
async fn a_declared_statement_reads_rows_of_all_usual_types() {
    let Some(shop) = Shop::new() else { return };
    let sql = "SELECT id, customer, total, true AS b, 1.5::float8 AS f, 'NaN'::float8 AS nan, \
        'ok'::mood AS mood, '{\"a\":[1]}'::jsonb AS json, ARRAY[1, NULL] AS list, \
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS uuid, '\\x0102'::bytea AS blob, \
        '1969-07-20'::date AS day, '0044-03-15 BC'::date AS ides, 'infinity'::date AS never, \
        '23:59:59.5'::time AS time, '1969-07-20 20:17:40.25'::timestamp AS at, \
        '2026-01-01 00:00:00+02'::timestamptz AS zoned, NULL AS nothing, -12345678.0009 AS exact, \
        10000::numeric AS round, 0.0001 AS small, 'x'::\"char\" AS letter \
        FROM orders WHERE customer = :customer";
    let tool = reads(&[sql], any(&["customer"])).build(&shop.owner()).unwrap();
    let result = call(&tool, json!({ "customer": "Ada" })).await.unwrap();
    let expected = json!({
        "id": 1, "customer": "Ada", "total": "9.50", "b": true, "f": 1.5, "nan": "NaN",
        "mood": "ok", "json": { "a": [1] }, "list": [1, null],
        "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "blob": { "bytes": 2 },
        "day": "1969-07-20", "ides": "0044-03-15 BC", "never": "infinity", "time": "23:59:59.5",
        "at": "1969-07-20T20:17:40.25", "zoned": "2025-12-31T22:00:00Z", "nothing": null,
        "exact": "-12345678.0009", "round": "10000", "small": "0.0001", "letter": "x",
    });
    assert_eq!(result, json!({ "rows": [expected], "changed": 0 }));
}

#[tokio::test]
async fn arguments_have_the_types_of_their_parameters_and_are_never_text_of_the_statement() {
    let Some(shop) = Shop::new() else { return };
    let sql = "SELECT :whole::int AS whole, :text::text AS text, :list::text[] AS list, \
        :json::jsonb AS json, :yes::bool AS yes, :mood::mood AS mood, :none::int AS nothing, \
        ':text' AS quoted, :total::price AS total";
    let names = ["whole", "text", "list", "json", "yes", "mood", "none", "total"];
    let mut spec = reads(&[sql], any(&names));
    spec.declaration.input_schema["required"] = json!([]);
    let tool = spec.build(&shop.owner()).unwrap();
    let hostile = "'; DROP TABLE orders; -- \\";
    let args = json!({
        "whole": 5.0, "text": hostile, "list": [hostile, "a\"b", null], "json": { "a": hostile },
        "yes": true, "mood": "bad", "total": 1.25,
    });
    let result = call(&tool, args).await.unwrap();
    let expected = json!({
        "whole": 5, "text": hostile, "list": [hostile, "a\"b", null], "json": { "a": hostile },
        "yes": true, "mood": "bad", "nothing": null, "quoted": ":text", "total": "1.25",
    });
    assert_eq!(result["rows"][0], expected);
    let error = call(&tool, json!({ "whole": "five" })).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InputInvalid);
    assert!(error.message.contains("invalid input syntax for type integer"), "{error:?}");
}

#[tokio::test]
async fn statements_are_checked_in_the_server_when_the_tool_is_made() {
    let Some(shop) = Shop::new() else { return };
    let owner = shop.owner();
    for (sql, expected) in [
        ("SELECT :a::int, totl FROM orders", "statement 1: column \"totl\" does not exist"),
        ("SELECT 1 AS a, 2 AS a, :a::int AS b", "two columns named `a`"),
        ("SELECT $1::int AS a", "write parameters as `:name`, not by number: `$1`"),
        ("SELECT :a::int AS a, $1::int AS b", "not by number: `$1`"),
        ("SELECT 1; SELECT :a::int", "cannot insert multiple commands"),
        ("UPDATE orders SET total = :a", "declared `read_only`"),
    ] {
        let found = errors(reads(&[sql], any(&["a"])), &owner).join("\n");
        assert!(found.contains(expected), "{sql}: {found}");
    }
    let broken = reads(&["SELECT :a::int,\n  totl FROM orders"], any(&["a"])).build(&owner);
    assert_eq!(broken.unwrap_err().errors[0].offset, Some(18));
    let reader = shop.open("owner", false);
    let found = errors(writes(&["DELETE FROM orders"], json!({})), &reader).join("\n");
    assert!(found.contains("write `writable = true` below [database.shop]"), "{found}");
}

#[tokio::test]
async fn a_call_is_one_transaction_that_is_kept_whole_or_not_at_all() {
    let Some(shop) = Shop::new() else { return };
    let owner = shop.owner();
    let refund = [
        or_else("SELECT id FROM orders WHERE id = :id", "there is no such order"),
        "INSERT INTO refunds VALUES (:id, :amount)".into(),
        "UPDATE orders SET total = total - :amount WHERE id = :id RETURNING id, total".into(),
    ];
    let mut spec = writes(&[], any(&["id", "amount"]));
    spec.statements = refund.into_iter().collect::<Vec<SqlStatement>>();
    let tool = spec.build(&owner).unwrap();
    let done = call(&tool, json!({ "id": 1, "amount": 0.5 })).await.unwrap();
    assert_eq!(done, json!({ "rows": [{ "id": 1, "total": "9.00" }], "changed": 2 }));
    // It fails at the second statement, and nothing remains of the third or the first.
    let again = call(&tool, json!({ "id": 1, "amount": 0.5 })).await.unwrap_err();
    assert!(again.message.contains("duplicate key value"), "{again:?}");
    let empty = call(&tool, json!({ "id": 99, "amount": 1 })).await.unwrap();
    assert_eq!(empty, json!({ "rows": [], "changed": 0, "note": "there is no such order" }));
    assert_eq!(
        shop.psql("SELECT sum(total), (SELECT count(*) FROM refunds) FROM orders"),
        "6.05|1"
    );
}

#[tokio::test]
async fn rows_and_bytes_have_limits_and_a_large_value_does_not_fill_the_memory() {
    let Some(shop) = Shop::new() else { return };
    let owner = shop.owner();
    let read = async |sql: &str| {
        let tool = reads(&[sql], json!({})).build(&owner).unwrap();
        call(&tool, json!({})).await
    };
    let many = read("SELECT generate_series(1, 100000000) AS i").await.unwrap();
    assert_eq!(many["rows"].as_array().unwrap().len(), 200);
    assert_eq!(many["more"], true);
    let wide = read("SELECT repeat('x', 700000) AS x FROM orders").await.unwrap();
    assert_eq!((wide["rows"].as_array().unwrap().len(), &wide["more"]), (1, &json!(true)));
    let large = read("SELECT repeat('x', 2000000) AS x").await.unwrap();
    assert!(large["note"].as_str().unwrap().contains("larger than 1 MiB"));
    let huge = read("SELECT repeat('x', 500000000) AS x").await.unwrap_err();
    assert!(huge.message.contains("more than 16 MiB, the limit of a call"), "{huge:?}");
    // The pool has another connection.
    read("SELECT 1 AS one").await.unwrap();
}

#[tokio::test]
async fn a_cancelled_statement_ends_in_the_server() {
    let Some(shop) = Shop::new() else { return };
    let tool = reads(&["SELECT pg_sleep(6000)::text AS slept"], json!({}));
    let tool = tool.build(&shop.owner()).unwrap();
    let running = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND state = 'active' AND wait_event = 'PgSleep'";
    let wait_for = async |count: &str| {
        for _ in 0..12_000 {
            if shop.psql(running) == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("never {count} running");
    };
    let cancel = CancellationToken::new();
    let parts = ToolContextParts { cancellation: cancel.clone(), ..ToolContextParts::detached() };
    let context: ToolContext = parts.into();
    let calling = tokio::spawn({
        let tool = tool.clone();
        async move { call_in(&tool, json!({}), context).await }
    });
    wait_for("1").await;
    cancel.cancel();
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    wait_for("0").await;
    // The same for a call that is dropped.
    let dropped = tokio::spawn(async move { call(&tool, json!({})).await });
    wait_for("1").await;
    dropped.abort();
    wait_for("0").await;
}

#[tokio::test]
async fn a_statement_ends_at_the_timeout_of_its_tool() {
    let Some(shop) = Shop::new() else { return };
    let mut spec = reads(&["SELECT pg_sleep(60)::text AS slept"], json!({}));
    spec.declaration.timeout = Some(Duration::from_millis(100));
    let error = call(&spec.build(&shop.owner()).unwrap(), json!({})).await.unwrap_err();
    assert!(error.message.contains("took longer than 100 ms"), "{error:?}");
}

#[tokio::test]
async fn calls_share_a_limited_number_of_connections() {
    let Some(shop) = Shop::new() else { return };
    let sql = "SELECT pg_backend_pid() AS pid, pg_sleep(0.05)::text AS slept";
    let tool = Arc::new(reads(&[sql], json!({})).build(&shop.owner()).unwrap());
    let calls = (0..40).map(|_| {
        let tool = Arc::clone(&tool);
        tokio::spawn(async move { call(&tool, json!({})).await.unwrap() })
    });
    let mut pids = std::collections::HashSet::new();
    for call in calls.collect::<Vec<_>>() {
        pids.insert(call.await.unwrap()["rows"][0]["pid"].to_string());
    }
    assert!((1..=8).contains(&pids.len()), "{pids:?}");
}

#[tokio::test]
async fn a_model_lists_describes_and_queries() {
    let Some(shop) = Shop::new() else { return };
    let listed = call(&shop.explore(ExploreTool::ListTables), json!({})).await.unwrap();
    assert_eq!(
        listed["rows"],
        json!([
            { "schema": "public", "name": "locked", "type": "view", "comment": null },
            { "schema": "public", "name": "orders", "type": "table", "comment": "What was ordered." },
            { "schema": "public", "name": "refunds", "type": "table", "comment": null },
        ])
    );
    let describe = shop.explore(ExploreTool::DescribeTable);
    for name in ["refunds", "public.refunds"] {
        let described = call(&describe, json!({ "table": name })).await.unwrap();
        let rows: Vec<_> = described["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| format!("{} {}: {}", row["type"], row["name"], row["sql"]).replace('"', ""))
            .collect();
        assert_eq!(
            rows,
            [
                "column order_id: integer",
                "column amount: numeric",
                "constraint refunds_order_id_key: UNIQUE (order_id)",
                "constraint refunds_order_id_fkey: FOREIGN KEY (order_id) REFERENCES orders(id)",
                "index refunds_order_id_key: CREATE UNIQUE INDEX refunds_order_id_key ON \
                 public.refunds USING btree (order_id)",
            ]
        );
    }
    let none = call(&describe, json!({ "table": "nothing" })).await.unwrap_err();
    assert!(none.message.contains("no table or view `nothing`"), "{none:?}");
    let rows = shop.query("SELECT customer, doubled(id) AS d FROM orders ORDER BY random()").await;
    assert_eq!(rows.unwrap()["rows"].as_array().unwrap().len(), 3);
    let many = shop.query("SELECT generate_series(1, 100000000) AS i").await.unwrap();
    assert_eq!((many["rows"].as_array().unwrap().len(), &many["more"]), (200, &json!(true)));
}

#[tokio::test]
async fn an_unknown_table_or_column_comes_with_the_nearest_and_is_said_once() {
    let Some(shop) = Shop::new() else { return };
    shop.psql(&format!(
        "CREATE SCHEMA sales; CREATE TABLE sales.invoices (id int, \"Paid at\" date); \
         GRANT USAGE ON SCHEMA sales TO {0}; GRANT SELECT ON sales.invoices TO {0}",
        shop.reader()
    ));
    for (sql, expected) in [
        (
            "SELECT custmer FROM orders",
            "column \"custmer\" does not exist; did you mean `customer`?",
        ),
        ("SELECT o.custmer FROM orders o", "o.custmer does not exist; did you mean `customer`?"),
        ("SELECT * FROM ordres", "relation \"ordres\" does not exist; did you mean `orders`?"),
        ("SELECT * FROM public.ordres", "does not exist; did you mean `orders`?"),
        ("SELECT * FROM invoice", "does not exist; did you mean `sales.invoices`?"),
        ("SELECT * FROM \"Invoices\"", "does not exist; did you mean `sales.invoices`?"),
        ("SELECT paidat FROM sales.invoices", "not exist; did you mean `\"Paid at\"`?"),
        ("EXPLAIN SELECT custmer FROM orders", "not exist; did you mean `customer`?"),
        ("SELECT zzz FROM orders", "column \"zzz\" does not exist"),
        ("SELECT orders.id FROM orders o", "Perhaps you meant to reference the table alias \"o\"."),
    ] {
        let error = shop.query(sql).await.unwrap_err();
        assert!(error.message.ends_with(expected), "{sql}: {error:?}");
        assert_eq!(error.cause_chain(), None, "{sql}");
    }
    let found = errors(reads(&["SELECT id FROM ordres"], json!({})), &shop.owner());
    assert_eq!(found, ["statement 1: relation \"ordres\" does not exist; did you mean `orders`?"]);
    // The table is renamed after the tool was made.
    let tool = reads(&["SELECT id FROM orders"], json!({})).build(&shop.owner()).unwrap();
    shop.psql("ALTER TABLE orders RENAME TO orders2");
    let error = call(&tool, json!({})).await.unwrap_err();
    let message = "database `shop`: relation \"orders\" does not exist; did you mean `orders2`?";
    assert_eq!(error.message, message);
    assert_eq!(error.cause_chain().as_deref(), Some(message));
}

mod attacks {
    use super::*;

    /// An attack, and a part of the reason for its refusal.
    const ATTACKS: [(&str, &str); 34] = [
        ("DROP TABLE orders", "this tool only reads; write SELECT"),
        ("DROP TABL orders", "syntax error at or near \"TABL\""),
        ("WITH x AS (SELECT 1) DELETE FROM orders", "this tool only reads; write SELECT"),
        ("SELECT 1; DROP TABLE orders", "multiple commands"),
        (
            "INSERT INTO refunds VALUES (1, 1) RETURNING amount",
            "this tool only reads; write SELECT",
        ),
        ("WITH x AS (DELETE FROM orders RETURNING 1) SELECT * FROM x", "data-modifying"),
        ("SELECT * INTO stolen FROM orders", "INTO is not allowed here"),
        ("SELECT * FROM orders FOR UPDATE", "in a read-only transaction"),
        ("COPY orders TO PROGRAM 'id'", "this tool only reads; write SELECT"),
        ("COPY orders TO STDOUT", "this tool only reads; write SELECT"),
        ("SET statement_timeout = 0", "this tool only reads; write SELECT"),
        ("COMMIT", "this tool only reads; write SELECT"),
        ("DO $$ BEGIN PERFORM 1; END $$", "this tool only reads; write SELECT"),
        ("LISTEN x", "this tool only reads; write SELECT"),
        ("PREPARE x AS SELECT 1", "this tool only reads; write SELECT"),
        ("EXPLAIN ANALYZE DELETE FROM orders", "this tool only reads; write SELECT"),
        (
            "EXPLAIN (ANALYZE, VERBOSE) CREATE TABLE stolen AS SELECT 1",
            "this tool only reads; write SELECT",
        ),
        ("EXPLAIN ANALYZE SELECT * FROM locked", "pg_advisory_lock(bigint) may have side effects"),
        ("/* */ explain -- (\n(analyze) SELECT mail()", "mail() may have side effects"),
        ("EXPLAIN (ANALYZE) SELECT 1; DROP TABLE orders", "multiple commands"),
        ("EXPLAIN (ANALYZE) COMMIT", "this tool only reads; write SELECT"),
        ("SELECT pg_read_file('/etc/passwd')", "pg_read_file"),
        ("SELECT pg_ls_dir('/')", "pg_ls_dir"),
        ("SELECT lo_create(0)", "lo_create(oid) may have side effects"),
        ("SELECT nextval('orders_id_seq')", "nextval(regclass) may have side effects"),
        ("SELECT set_config('transaction_read_only', 'off', false)", "may have side effects"),
        ("SELECT pg_advisory_lock(1)::text", "may have side effects"),
        ("SELECT pg_notify('a', 'b')::text", "may have side effects"),
        ("SELECT pg_terminate_backend(pid) FROM pg_stat_activity", "may have side effects"),
        ("SELECT pg_sleep(60)::text", "may have side effects"),
        ("SELECT mail()", "mail() may have side effects"),
        ("SELECT id FROM orders ORDER BY mail()", "mail() may have side effects"),
        ("SELECT * FROM locked", "pg_advisory_lock(bigint) may have side effects"),
        ("SELECT query_to_xml('SELECT mail()', true, true, '')::text", "may have side effects"),
    ];

    #[tokio::test]
    async fn a_statement_of_a_model_can_only_read() {
        let Some(shop) = Shop::new() else { return };
        // An extension that reaches other servers, if this machine has it.
        let has_dblink = shop.server.psql(&shop.name, "CREATE EXTENSION dblink").is_ok();
        let dblink = "SELECT dblink_exec('dbname=postgres', 'DROP TABLE orders')";
        let mut wrong = Vec::new();
        let attacks = ATTACKS.into_iter().chain(has_dblink.then_some((dblink, "side effects")));
        for (sql, reason) in attacks {
            let error = shop.query(sql).await.expect_err(sql);
            assert_eq!(error.code, ErrorCode::InputInvalid, "{sql}: {error:?}");
            if !error.message.contains(reason) {
                wrong.push(format!("{sql}: {}", error.message));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(shop.psql("SELECT count(*) FROM orders"), "3");
        assert_eq!(shop.psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
    }

    #[tokio::test]
    async fn a_role_that_may_more_than_read_may_not_explore() {
        let Some(shop) = Shop::new() else { return };
        let name = &shop.name;
        for (role, grant, expected) in [
            ("super", "ALTER ROLE $ SUPERUSER", "is a superuser"),
            ("copier", "ALTER ROLE $ REPLICATION", "may replicate the server"),
            ("writer", "GRANT UPDATE ON orders TO $", "may write the table public.orders"),
            ("cell", "GRANT INSERT (total) ON orders TO $", "may write the table public.orders"),
            ("files", "GRANT pg_read_server_files TO $", "is a member of pg_read_server_files"),
            ("killer", "GRANT pg_signal_backend TO $", "is a member of pg_signal_backend"),
            ("heir", "ALTER ROLE $ NOINHERIT; GRANT writer_$DB TO $", "may write the table"),
            ("owner_of", "ALTER TABLE refunds OWNER TO $", "owns the table public.refunds"),
        ] {
            let role = format!("{role}_{name}");
            let grant = grant.replace("$DB", name).replace('$', &role);
            shop.psql(&format!("CREATE ROLE {role} LOGIN"));
            shop.psql(&grant);
            let database = shop.open(&role, false);
            let error = explorer(ExploreTool::Query, &database, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{role}: {error}");
            assert!(error.contains("CREATE ROLE toolcrib_explore LOGIN"), "{error}");
            assert!(error.contains("to permit it, run:"), "{error}");
            assert!(error.contains(&format!("GRANT CONNECT ON DATABASE \"{name}\"")), "{error}");
        }
        // A role that is changed later is refused with its next connection.
        let tool = shop.explore(ExploreTool::Query);
        shop.psql(&format!("GRANT DELETE ON orders TO {}", shop.reader()));
        let error = call(&tool, json!({ "sql": "SELECT 1 AS one" })).await.unwrap_err();
        let cause = error.source.unwrap().to_string();
        assert!(cause.contains("may write the table public.orders"), "{cause}");
    }
}

#[tokio::test]
async fn over_tcp_the_certificate_of_the_server_is_verified() {
    let Some(shop) = Shop::new() else { return };
    if shop.server.certificate().is_none() {
        return skip("openssl is not installed, so the server has no certificate");
    }
    let connect = |parameters: &str| {
        let url = shop.server.tcp_url("owner", &shop.name, parameters);
        at(&url, false).check(false)
    };
    connect("sslmode=disable").unwrap();
    for parameters in ["", "sslmode=prefer", "sslmode=require", "sslmode=verify-full"] {
        let error = connect(parameters).unwrap_err().to_string();
        assert!(
            error.contains("certificate") && error.contains("sslmode=disable"),
            "{parameters}: {error}"
        );
    }
}

#[test]
fn an_error_of_a_connection_names_the_server_and_not_the_password() {
    let url = "postgres://ada:hunter2-secret@127.0.0.1:1/shop?sslmode=disable";
    let database = at(url, false);
    assert_eq!(database.shown(), "127.0.0.1:1/shop");
    let error = database.check(false).unwrap_err().to_string();
    assert!(error.contains("cannot connect to 127.0.0.1:1/shop"), "{error}");
    assert!(error.contains("check the URL"), "{error}");
    assert!(!error.contains("hunter2") && !format!("{database:?}").contains("hunter2"));
    let spec = PostgresSpec { name: "shop".into(), url: "hunter2://x".into(), writable: false };
    let error = PostgresDatabase::new(&spec).unwrap_err().to_string();
    assert!(error.contains("the URL is invalid") && !error.contains("hunter2"), "{error}");
    assert!(!format!("{spec:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_database_that_is_held_is_not_connected_to() {
    let reason = "--offline".into();
    let name = "shop".into();
    let missing = PostgresDatabase::held(&name, false, &reason, false);
    let tool = reads(&["SELECT nonsense"], json!({})).build(&missing).unwrap();
    assert!(tool.has_availability_check());
    let held = PostgresDatabase::held(&name, false, &reason, true);
    let tool = reads(&["SELECT nonsense"], json!({})).build(&held).unwrap();
    assert!(!tool.has_availability_check());
    explorer(ExploreTool::Query, &held, None).unwrap();
    let error = call(&tool, json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
}
