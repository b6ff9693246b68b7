//! Statements whose parameters have no values, and cells that lose a part of their values.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolcrib_core::{ErrorCode, ToolError};
use toolcrib_tools::sql_explore::ExploreTool;

use crate::{
    exploring::{explorer, query},
    server::{Shop, errors},
    support::{Desk, any, call, reads},
};

/// What is no parameter in any database.
const NO_PARAMETER: &str = "SELECT '? :a $1' AS \"?1 @a\" -- $b ?\n/* ?, :c */";

fn refused(error: &ToolError, names: &str) {
    assert_eq!(error.code, ErrorCode::InputInvalid, "{error:?}");
    assert_eq!(
        error.message,
        format!("the statement has a parameter without a value: {names}; write the value itself")
    );
}

#[tokio::test]
async fn sqlite_refuses_a_parameter_without_a_value() {
    let desk = Desk::new();
    for (condition, names) in [
        ("id = ?", "`?`"),
        ("id IN (?, ?)", "`?`"),
        ("id = ?7", "`?7`"),
        ("id = :id", "`:id`"),
        ("id = @id", "`@id`"),
        ("id = $id", "`$id`"),
        ("id = $id::x(1)", "`$id::x(1)`"),
        ("id = :a OR id = @b OR customer = :a", "`:a`, `@b`"),
    ] {
        for explain in ["", "EXPLAIN ", "EXPLAIN QUERY PLAN "] {
            let sql = format!("{explain}SELECT id FROM orders WHERE {condition} LIMIT 1");
            refused(&query(&desk, &sql).await.unwrap_err(), names);
        }
    }
    let rows = query(&desk, NO_PARAMETER).await.unwrap();
    assert_eq!(rows, json!({ "rows": [{ "?1 @a": "? :a $1" }] }));
}

#[tokio::test]
async fn postgres_refuses_a_parameter_without_a_value() {
    let Some(shop) = Shop::new() else { return };
    for (condition, names) in [
        ("id = $1", "`$1`"),
        ("id = $1 OR customer = $2", "`$1`, `$2`"),
        // These are no syntax of PostgreSQL.
        ("id = ?", "`?`"),
        ("id IN (?, ?)", "`?`"),
        ("id = ?7 AND true", "`?7`"),
        ("id = :id", "`:id`"),
        ("id = $id", "`$id`"),
    ] {
        for explain in ["", "EXPLAIN ANALYZE "] {
            let sql = format!("{explain}SELECT id FROM orders WHERE {condition} LIMIT 1");
            refused(&shop.query(&sql).await.unwrap_err(), names);
        }
    }
    let rows = shop.query(NO_PARAMETER).await.unwrap();
    assert_eq!(rows["rows"], json!([{ "?1 @a": "? :a $1" }]));
    let sql = "SELECT '{\"a\":1}'::jsonb ? 'a' AS has, '{\"a\":1}'::jsonb ?| ARRAY['b'] AS any, \
        $$ $1 ? :a $$ AS quoted, $x$ $$ :b $x$ AS tagged, (ARRAY[1, 2])[1:2] AS slice";
    let expected = json!({
        "has": true, "any": false, "quoted": " $1 ? :a ", "tagged": " $$ :b ", "slice": [1, 2],
    });
    assert_eq!(shop.query(sql).await.unwrap()["rows"], json!([expected]));
    // A statement that is wrong elsewhere keeps the message of the server.
    let error = shop.query("SELECT '{}'::jsonb ? 'a' FORM orders").await.unwrap_err();
    assert_eq!(error.message, "syntax error at or near \"orders\"");
}

#[test]
fn a_declared_statement_cannot_mix_names_and_numbers() {
    let Some(shop) = Shop::new() else { return };
    let spec = reads(&["SELECT id FROM orders WHERE id = :a AND customer = $1"], any(&["a"]));
    let found = errors(spec, &shop.owner()).join("\n");
    assert!(found.contains("write parameters as `:name`, not by number: `$1`"), "{found}");
    reads(&["SELECT '$1' AS a, $$ $2 $$ AS b, :a::int AS a$1"], any(&["a"]))
        .build(&shop.owner())
        .unwrap();
}

#[tokio::test]
async fn numbers_that_are_not_finite_are_not_null() {
    let desk = Desk::new();
    let rows = query(&desk, "SELECT 9e999 AS up, -9e999 AS down, NULL AS none").await.unwrap();
    let expected = json!({ "up": "Infinity", "down": "-Infinity", "none": null });
    assert_eq!(rows["rows"], json!([expected]));
    let Some(shop) = Shop::new() else { return };
    for kind in ["float4", "float8", "numeric"] {
        let sql = format!(
            "SELECT 'NaN'::{kind} AS nan, 'Infinity'::{kind} AS up, '-Infinity'::{kind} AS down, \
             NULL::{kind} AS nothing, ARRAY['NaN'::{kind}, NULL] AS list"
        );
        let rows = shop.query(&sql).await.unwrap();
        let expected = json!({
            "nan": "NaN", "up": "Infinity", "down": "-Infinity", "nothing": null,
            "list": ["NaN", null],
        });
        assert_eq!(rows["rows"], json!([expected]), "{kind}");
    }
}

#[tokio::test]
async fn documents_of_json_keep_all_digits_and_members() {
    let Some(shop) = Shop::new() else { return };
    for (document, expected) in [
        (r#"{"id": 123456789012345678901}"#, r#"{"id":"123456789012345678901"}"#),
        ("[-123456789012345678901]", r#"["-123456789012345678901"]"#),
        ("[0.1000000000000000055511151231257827]", r#"["0.1000000000000000055511151231257827"]"#),
        ("[100000000000000000000]", r#"["100000000000000000000"]"#),
        (r#"{"a": {"b": [9007199254740993.5]}}"#, r#"{"a":{"b":["9007199254740993.5"]}}"#),
        ("[1.7976931348623157e400]", r#"["1.7976931348623157e400"]"#),
    ] {
        let read = async |kind: &str| {
            let sql = format!("SELECT '{document}'::{kind} AS j, ARRAY['{document}'::{kind}] AS l");
            shop.query(&sql).await.unwrap()
        };
        let json = read("json").await;
        assert_eq!(json["rows"][0]["j"].to_string(), expected);
        assert_eq!(json["rows"][0]["l"].to_string(), format!("[{expected}]"));
        assert!(json["note"].as_str().unwrap().contains("given as text, exactly"), "{json}");
        let jsonb = read("jsonb").await;
        if !document.contains('e') {
            assert_eq!(jsonb["rows"], json["rows"]);
        }
        assert!(jsonb["note"].is_string(), "{jsonb}");
    }
    // Numbers that are the same here are numbers, and digits within strings are not touched.
    let document = r#"{"n": [0, -1, 18446744073709551615, 0.1, 1.10, 1e2, 5e-324, -2.5E+3, 0.0],
        "s": "\"12345678901234567890123\\", "k:\"": {"": null}}"#;
    let sql = format!("SELECT '{document}'::json AS j");
    let kept = shop.query(&sql).await.unwrap();
    let value: Value = serde_json::from_str(document).unwrap();
    assert_eq!(kept, json!({ "rows": [{ "j": value }] }));
    // What is no JSON value here is text as a whole.
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    for document in [r#"{"a":1,"a":2}"#, r#"[{"b":{"c":1,"c":1}}]"#, r#"["\ud800"]"#, &deep] {
        let kept = shop.query(&format!("SELECT '{document}'::json AS j")).await.unwrap();
        assert_eq!(kept["rows"][0]["j"], document);
        assert!(kept["note"].is_string(), "{kept}");
    }
}

/// Texts of which each type that can be written takes one.
const SAMPLES: &str = "'1', 't', '{}', '[1,5)', '{[1,5)}', '(1,2)', '(0,1)', '((1,2),(3,4))', \
    '{1,2,3}', '<(1,2),3>', '[(1,2),(3,4)]', '10.0.0.1', '08:00:2b:01:02:03', '2026-01-02', \
    '2026-01-02 03:04:05.25', '12:30:00', '12:30:00+02', '1 day', 'a', '16/B374D848', \
    '10:20:10,14,15', '$.a', 'english', 'pg_class', '+(integer,integer)', 'abs(integer)', 'now', \
    '\"C\"', 'owner=r/owner', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '<a/>', 'simple', 'YES', \
    '[2026-01-01,2026-02-01)', '{[2026-01-01,2026-02-01)}'";

const OWN_TYPES: &str = "
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE TYPE part AS (name text, parts int[], at timestamptz);
CREATE TYPE whole AS (part part, extra jsonb);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN more AS positive CHECK (VALUE < 100);
CREATE DOMAIN moods AS mood[];
CREATE TYPE prices AS RANGE (subtype = numeric);
CREATE TABLE related (a int, b int); INSERT INTO related SELECT i, i FROM generate_series(1, 99) i;
CREATE STATISTICS related_all ON a, b FROM related; ANALYZE related;
CREATE TABLE samples (type text, sample text, is_plain bool);
DO $$ DECLARE t record; s text; BEGIN
  FOR t IN SELECT format_type(oid, NULL) AS name, typname FROM pg_type
    WHERE typtype IN ('b', 'd', 'e', 'm', 'r') AND typcategory <> 'A'
  LOOP
    FOREACH s IN ARRAY ARRAY[@, 'ok', '\"a\"=>\"1\"'] LOOP
      BEGIN
        EXECUTE format('SELECT %L::%s::text', s, t.name);
        INSERT INTO samples VALUES (t.name, s, t.typname NOT IN ('bool', 'bytea', 'int2', 'int4',
          'int8', 'oid', 'float4', 'float8', 'json', 'jsonb', 'timestamp', 'timestamptz', 'positive',
          'more', 'int2vector', 'oidvector', 'cardinal_number', 'time_stamp'));
        EXIT;
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
  END LOOP;
END $$;";

#[tokio::test]
async fn every_type_of_postgres_can_be_read() {
    let Some(shop) = Shop::new() else { return };
    let without_hstore = OWN_TYPES.replace("CREATE EXTENSION IF NOT EXISTS hstore;", "");
    let script = OWN_TYPES.replace('@', SAMPLES);
    if shop.server.psql(&shop.name, &script).is_err() {
        shop.psql(&without_hstore.replace('@', SAMPLES));
    }
    let samples = shop.psql("SELECT format('%s|%s', type, is_plain) FROM samples");
    let samples: Vec<_> = samples.lines().map(|line| line.split_once('|').unwrap()).collect();
    assert!(samples.len() > 80, "{samples:?}");
    // No text can be written of these. The last ones occur within indexes only.
    let unwritten = shop.psql(
        "SELECT typname FROM pg_type WHERE typtype IN ('b', 'd', 'e', 'm', 'r') AND \
         typcategory <> 'A' AND format_type(oid, NULL) NOT IN (SELECT type FROM samples)",
    );
    let expected = "pg_node_tree pg_ndistinct pg_dependencies pg_mcv_list gtsvector ghstore \
        pg_brin_bloom_summary pg_brin_minmax_multi_summary";
    let expected: BTreeSet<_> = expected.split(' ').collect();
    assert!(unwritten.lines().all(|one| expected.contains(one)), "{unwritten}");

    // One statement with the text of each sample, the value, and a list with it.
    let columns = shop.psql(
        "SELECT string_agg(format('format(''%%s'', %1$L::%2$s) AS \"text %2$s\", %1$L::%2$s AS \"%2$s\", \
         ARRAY[%1$L::%2$s, NULL] AS \"list %2$s\"', sample, replace(type, '\"', '')), ', ') \
         FROM samples WHERE type <> '\"char\"'",
    );
    let row = read_row(&shop, &format!("SELECT {columns}")).await;
    for (kind, is_plain) in samples {
        if kind == "\"char\"" {
            continue;
        }
        let kind = kind.replace('"', "");
        let cell = &row[&kind];
        assert!(!cell.is_null(), "{kind}");
        if is_plain == "t" {
            assert_eq!(*cell, row[&format!("text {kind}")], "{kind}");
        }
        let list = &row[&format!("list {kind}")];
        // The separator of a type of an extension is unknown, and of a multirange for the driver.
        if kind != "hstore" && kind != "prices_multirange" {
            assert_eq!(*list, json!([cell, null]), "{kind}");
        }
    }
}

async fn read_row(shop: &Shop, sql: &str) -> Map<String, Value> {
    let tool = reads(&[sql], json!({})).build(&shop.owner()).unwrap();
    let mut read = call(&tool, json!({})).await.unwrap();
    serde_json::from_value(read["rows"][0].take()).unwrap()
}

#[tokio::test]
async fn rows_of_every_catalog_and_own_types_can_be_read_in_one_statement() {
    let Some(shop) = Shop::new() else { return };
    shop.server.psql(&shop.name, "CREATE EXTENSION hstore").ok();
    shop.psql(&OWN_TYPES.replace("CREATE EXTENSION IF NOT EXISTS hstore;", "").replace('@', "'1'"));
    let columns = shop.psql(
        "SELECT string_agg(format('(SELECT r FROM pg_catalog.%1$I r LIMIT 1) AS %1$I', relname), \
         ', ') FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')",
    );
    let row = read_row(&shop, &format!("SELECT {columns}")).await;
    assert!(row.len() > 100 && row["pg_class"].is_string(), "{row:?}");
    let sql = "SELECT (('a \"b\"', '{1,2}', '2026-01-01 00:00:00+00')::part, '{\"c\":1}')::whole \
          AS whole, \
        '{ok,bad}'::moods AS moods, 7::more AS more, ARRAY[7]::more[] AS list, \
        '[1,2.50)'::prices AS prices, '{[1,2),[5,)}'::int4multirange AS several, ROW(1, 'x') AS row, \
        '{{{1,2},{3,NULL}},{{5,6},{7,8}}}'::int[] AS cube, '{}'::text[] AS empty, \
        '[0:1]={1,2}'::int[] AS bounds, ARRAY['NULL', 'a,b', 'c\"\\d', '{', '', NULL] AS texts, \
        ARRAY['(1,1),(0,0)'::box, '(3,3),(2,2)'] AS boxes, \
        ARRAY['{\"a\":1}'::jsonb] AS documents, 'infinity'::timestamptz AS never, \
        ARRAY['2026-01-01 00:00:00+02'::timestamptz] AS times, \
        '0044-03-15 12:00:00+00 BC'::timestamptz AS ides, '12:00+02'::timetz AS zoned, \
        (SELECT stxdndistinct FROM pg_statistic_ext_data LIMIT 1) AS statistics, \
        (SELECT most_common_vals FROM pg_stats WHERE most_common_vals IS NOT NULL LIMIT 1) AS common";
    let mut row = read_row(&shop, &format!("{sql}, 12.5::money AS money, B'101' AS bits")).await;
    assert!(row.remove("common").unwrap().is_string());
    assert_eq!(row.remove("statistics").unwrap(), "{\"1, 2\": 99}");
    let expected = json!({
        "whole": "(\"(\"\"a \"\"\"\"b\"\"\"\"\"\",\"\"{1,2}\"\",\"\"2026-01-01 00:00:00+00\"\")\",\"{\"\"c\"\": 1}\")",
        "moods": ["ok", "bad"], "more": 7, "list": [7], "prices": "[1,2.50)",
        "several": "{[1,2),[5,)}", "row": "(1,x)", "cube": [[[1, 2], [3, null]], [[5, 6], [7, 8]]],
        "empty": [], "bounds": "[0:1]={1,2}",
        "texts": ["NULL", "a,b", "c\"\\d", "{", "", null],
        "boxes": ["(1,1),(0,0)", "(3,3),(2,2)"], "documents": [{ "a": 1 }], "never": "infinity",
        "times": ["2025-12-31T22:00:00Z"], "ides": "0044-03-15T12:00:00Z BC",
        "zoned": "12:00:00+02", "money": "$12.50", "bits": "101",
    });
    let whole = row["whole"].as_str().unwrap().to_owned();
    let mut expected: Map<_, _> = serde_json::from_value(expected).unwrap();
    // The zone within a composite is that of the session.
    assert!(whole.starts_with("(\"(\"\"a \"\"\"\"b\"\"\"\"\"\",\"\"{1,2}\"\",\"\"2"), "{whole}");
    expected["whole"] = whole.into();
    assert_eq!(row, expected);
}

#[tokio::test]
async fn the_settings_of_a_role_do_not_change_cells() {
    let Some(shop) = Shop::new() else { return };
    let reader = shop.reader();
    shop.psql(&format!(
        "ALTER ROLE {reader} SET datestyle = 'SQL, DMY'; ALTER ROLE {reader} SET bytea_output = \
         'escape'; ALTER ROLE {reader} SET extra_float_digits = -5; ALTER ROLE {reader} SET timezone \
         = 'Asia/Kathmandu'"
    ));
    let sql = "SELECT '02/01/2026'::date AS day, '\\x0102'::bytea AS blob, 0.1::float8 + 0.2 AS sum, \
        '1900-01-01 00:00:00+00'::timestamptz AS old, '2026-01-01 00:00:00.5'::timestamp AS at";
    let rows = shop.query(sql).await.unwrap();
    let expected = json!({
        "day": "2026-01-02", "blob": { "bytes": 2 }, "sum": 0.300_000_000_000_000_04,
        "old": "1900-01-01T00:00:00Z", "at": "2026-01-01T00:00:00.5",
    });
    assert_eq!(rows["rows"], json!([expected]));
}

#[tokio::test]
async fn generated_and_identity_columns_are_described_as_such() {
    let Some(shop) = Shop::new() else { return };
    shop.psql(
        "CREATE TABLE made (a int GENERATED ALWAYS AS IDENTITY, b int GENERATED BY DEFAULT AS \
         IDENTITY, c bigint, d bigint GENERATED ALWAYS AS (c * 2) STORED, e int DEFAULT 5); \
         GRANT SELECT ON made TO PUBLIC",
    );
    let table = json!({ "table": "made" });
    let described = call(&shop.explore(ExploreTool::DescribeTable), table).await.unwrap();
    let columns: Vec<_> = described["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["sql"].as_str().unwrap())
        .collect();
    assert_eq!(
        columns,
        [
            "integer NOT NULL GENERATED ALWAYS AS IDENTITY",
            "integer NOT NULL GENERATED BY DEFAULT AS IDENTITY",
            "bigint",
            "bigint GENERATED ALWAYS AS ((c * 2)) STORED",
            "integer DEFAULT 5",
        ]
    );
}

#[tokio::test]
async fn sqlite_has_the_mathematical_functions_of_its_shell() {
    let desk = Desk::with(
        "CREATE TABLE roots (x REAL, root REAL GENERATED ALWAYS AS (sqrt(x)) VIRTUAL); \
         CREATE INDEX by_floor ON roots (floor(x)); INSERT INTO roots (x) VALUES (9), (16.5); \
         CREATE VIEW powers AS SELECT pow(x, 2) AS p FROM roots;",
    );
    // As `sqlite3` 3.40 shows them.
    for (expression, expected) in [
        ("ceil(1.2)", json!(2.0)),
        ("ceiling(-1.2)", json!(-1.0)),
        ("floor(7)", json!(7)),
        ("floor('-7.5')", json!(-8.0)),
        ("trunc(-1.9)", json!(-1.0)),
        ("sqrt(' 4 ')", json!(2.0)),
        ("pow(2, 10)", json!(1024.0)),
        ("power(2, 0.5)", json!(2_f64.sqrt())),
        ("mod(7.5, 2)", json!(1.5)),
        ("mod(-7, 3)", json!(-1.0)),
        ("exp(0)", json!(1.0)),
        ("ln(1)", json!(0.0)),
        ("log(1000)", json!(3.0)),
        ("log10(0.01)", json!(-2.0)),
        ("log2(8)", json!(3.0)),
        ("log(2, 8)", json!(3.0)),
        ("degrees(pi())", json!(180.0)),
        ("radians(180) = pi()", json!(1)),
        ("sin(0) + cos(0) + tan(0)", json!(1.0)),
        ("asin(0) + acos(1) + atan(0)", json!(0.0)),
        ("sinh(0) + cosh(0) + tanh(0)", json!(1.0)),
        ("asinh(0) + acosh(1) + atanh(0)", json!(0.0)),
        ("atan2(1, 1) * 4 = pi()", json!(1)),
        ("exp(1000)", json!("Infinity")),
        ("sqrt(-1)", json!(null)),
        ("ln(0)", json!(null)),
        ("log(1, 8)", json!(null)),
        ("log(-2, 8)", json!(null)),
        ("acos(2)", json!(null)),
        ("mod(1, 0)", json!(null)),
        ("sqrt(NULL)", json!(null)),
        ("sqrt('4 apples')", json!(null)),
        ("sqrt('inf')", json!(null)),
        ("ceil('0x10')", json!(null)),
        ("ceil('')", json!(null)),
        ("pow(2, x'31')", json!(null)),
    ] {
        let sql = format!("SELECT {expression} AS x");
        assert_eq!(query(&desk, &sql).await.unwrap()["rows"][0]["x"], expected, "{expression}");
    }
    let sql = "SELECT root, p FROM roots, powers WHERE floor(x) = 9 AND p = 81";
    assert_eq!(query(&desk, sql).await.unwrap()["rows"], json!([{ "root": 3.0, "p": 81.0 }]));
    let plan = query(&desk, "EXPLAIN QUERY PLAN SELECT x FROM roots WHERE floor(x) = 9").await;
    assert!(plan.unwrap().to_string().contains("USING INDEX by_floor"));
}

#[tokio::test]
async fn tables_that_belong_to_an_index_are_marked() {
    let desk = Desk::with(
        "CREATE VIRTUAL TABLE docs USING fts5(body); CREATE TABLE docs_own (x); \
         CREATE VIRTUAL TABLE places USING rtree(id, a, b); CREATE VIEW all_docs AS SELECT 1 AS x; \
         CREATE TABLE old_data (x);",
    );
    let list = call(&explorer(&desk, ExploreTool::ListTables), json!({})).await.unwrap();
    let kind = |name: &str| {
        let rows = list["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["type"].clone()
    };
    assert_eq!((kind("docs"), kind("places")), ("virtual table".into(), "virtual table".into()));
    for name in ["docs_data", "docs_idx", "docs_content", "docs_config", "places_node"] {
        assert_eq!(kind(name), "shadow table", "{name}");
        let describe = explorer(&desk, ExploreTool::DescribeTable);
        let described = call(&describe, json!({ "table": name })).await.unwrap();
        assert_eq!(described["rows"][0]["type"], "shadow table", "{described}");
    }
    for (name, expected) in [("docs_own", "table"), ("old_data", "table"), ("all_docs", "view")] {
        assert_eq!(kind(name), expected, "{name}");
    }
}

#[tokio::test]
async fn virtual_tables_can_be_read() {
    let desk = Desk::with(
        "CREATE VIRTUAL TABLE \"a \"\"place\" USING rtree_i32(id, low, high, +name); \
         INSERT INTO \"a \"\"place\" VALUES (1, 0, 4, 'harbor'), (2, 5, 6, 'mill'); \
         CREATE VIEW near AS SELECT name FROM \"a \"\"place\" WHERE low < 5; \
         CREATE VIRTUAL TABLE docs USING fts5(body); INSERT INTO docs VALUES ('red lamp');",
    );
    for (sql, expected) in [
        ("SELECT * FROM near", json!({ "name": "harbor" })),
        ("SELECT high FROM \"a \"\"place\" WHERE low > 1", json!({ "high": 6 })),
        ("SELECT body FROM docs WHERE docs MATCH 'lamp'", json!({ "body": "red lamp" })),
    ] {
        assert_eq!(query(&desk, sql).await.unwrap(), json!({ "rows": [expected] }), "{sql}");
        let declared = reads(&[sql], json!({}));
        let rows = desk.call(declared, json!({})).await.unwrap();
        assert_eq!(rows["rows"], json!([expected]), "{sql}");
    }
    for (sql, reason) in [
        ("DELETE FROM \"a \"\"place_node\"", "table a \"place_node may not be modified"),
        ("DELETE FROM near", "cannot modify near because it is a view"),
        ("DELETE FROM \"a \"\"place\"", "the statement writes, and this tool only reads"),
    ] {
        let error = query(&desk, sql).await.unwrap_err();
        assert!(error.message.ends_with(reason), "{sql}: {error:?}");
    }
}

#[tokio::test]
async fn a_text_that_is_not_utf_8_is_not_another_text() {
    let desk = Desk::with(
        "CREATE TABLE names (name TEXT); INSERT INTO names VALUES (CAST(x'fe41' AS TEXT)), ('\u{fffd}A');",
    );
    let expected = json!([{ "name": { "bytes": 2 } }, { "name": "\u{fffd}A" }]);
    let sql = "SELECT name FROM names";
    assert_eq!(query(&desk, sql).await.unwrap()["rows"], expected);
    let declared = desk.call(reads(&[sql], json!({})), json!({})).await.unwrap();
    assert_eq!(declared["rows"], expected);
}

#[tokio::test]
async fn explain_shows_plans_of_queries() {
    let desk = Desk::new();
    let plan = query(&desk, "EXPLAIN QUERY PLAN SELECT * FROM orders WHERE id = 1").await.unwrap();
    assert!(plan["rows"][0]["detail"].as_str().unwrap().contains("PRIMARY KEY"), "{plan}");
    let code = query(&desk, "explain SELECT id FROM orders").await.unwrap();
    assert_eq!(code["rows"][0]["opcode"], "Init");
    let error = query(&desk, "EXPLAIN QUERY PLAN DELETE FROM orders").await.unwrap_err();
    assert!(error.message.contains("the statement writes"), "{error:?}");
    let Some(shop) = Shop::new() else { return };
    for sql in [
        "EXPLAIN SELECT * FROM orders",
        "explain verbose WITH x AS (SELECT * FROM orders) SELECT * FROM x",
        "EXPLAIN ANALYZE VERBOSE SELECT * FROM orders",
        "-- why\nEXPLAIN /* ( */ (ANALYZE, COSTS off, TIMING FALSE) SELECT * FROM orders",
        "EXPLAIN (SELECT * FROM orders)",
        "EXPLAIN (FORMAT yaml) TABLE orders",
    ] {
        let plan = shop.query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert!(plan["rows"].to_string().contains("Seq Scan"), "{sql}: {plan}");
    }
    let plan = shop.query("EXPLAIN (FORMAT JSON) SELECT 1 AS one").await.unwrap();
    assert_eq!(plan["rows"][0]["QUERY PLAN"][0]["Plan"]["Node Type"], "Result");
    let error = shop.query("EXPLAIN (ANALYZE, SHINY) SELECT 1").await.unwrap_err();
    assert!(error.message.contains("unrecognized EXPLAIN option \"shiny\""), "{error:?}");
}
