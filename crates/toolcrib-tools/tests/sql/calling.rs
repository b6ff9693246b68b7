//! Bound arguments, returned rows and cut results.

use serde_json::{Value, json};
use toolcrib_capabilities::database::MAX_VALUE_BYTES;
use toolcrib_core::{ErrorCode, ToolContextParts};
use toolcrib_tools::sql::{MAX_ROWS_BYTES, SqlToolSpec};

use crate::support::{Desk, any, call, call_in, or_else, reads, writes};

const BOUND: &str = "SELECT typeof(:value) AS type, :value AS value";
const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
     SELECT count(*) AS n FROM n";

async fn bound(schema: Value, args: Value) -> Value {
    let spec = reads(&[BOUND], json!({ "value": schema }));
    Desk::new().call(spec, args).await.unwrap()["rows"][0].clone()
}

#[tokio::test]
async fn rows_come_as_compact_json_in_the_order_of_their_columns() {
    let desk = Desk::new();
    let spec = reads(
        &["SELECT id, amount, order_id FROM charges WHERE order_id = :order ORDER BY id"],
        any(&["order"]),
    );
    let tool = desk.build(spec).unwrap();
    let output = tool.call(json!({ "order": 1 }), ToolContextParts::detached().into());
    assert_eq!(
        output.await.unwrap().value,
        r#"{"rows":[{"id":11,"amount":500,"order_id":1},{"id":12,"amount":500,"order_id":1}],"changed":0}"#
    );
    let nothing = call(&tool, json!({ "order": 99 })).await.unwrap();
    assert_eq!(nothing.to_string(), r#"{"rows":[],"changed":0}"#);
}

#[tokio::test]
async fn each_kind_of_argument_is_bound_as_what_it_is() {
    for (schema, argument, kind, back) in [
        (json!({ "type": "integer" }), json!(42), "integer", json!(42)),
        (json!({ "type": "integer" }), json!(i64::MIN), "integer", json!(i64::MIN)),
        (json!({ "type": "integer" }), json!(i64::MAX), "integer", json!(i64::MAX)),
        // JSON Schema calls these whole numbers, too.
        (json!({ "type": "integer" }), json!(5.0), "integer", json!(5)),
        (json!({ "type": ["null", "integer"] }), json!(-1e3), "integer", json!(-1000)),
        (json!({ "type": "number" }), json!(5.0), "real", json!(5.0)),
        (json!({ "type": ["integer", "number"] }), json!(5.0), "real", json!(5.0)),
        (json!({ "type": "number" }), json!(0.1), "real", json!(0.1)),
        (json!({ "type": "number" }), json!(7), "integer", json!(7)),
        (json!({ "type": "boolean" }), json!(true), "integer", json!(1)),
        (json!({ "type": "boolean" }), json!(false), "integer", json!(0)),
        (json!({ "type": "string" }), json!("7"), "text", json!("7")),
        (json!({ "type": "string" }), json!("a\u{0}b"), "text", json!("a\u{0}b")),
        (json!({ "type": "array" }), json!([1, "b"]), "text", json!("[1,\"b\"]")),
        (
            json!({ "type": "object" }),
            json!({ "b": 1, "a": null }),
            "text",
            json!("{\"b\":1,\"a\":null}"),
        ),
        (json!({}), json!(null), "null", json!(null)),
    ] {
        let row = bound(schema, json!({ "value": argument })).await;
        assert_eq!(row, json!({ "type": kind, "value": back }), "{argument}");
    }
    assert_eq!(bound(json!({}), json!({})).await, json!({ "type": "null", "value": null }));
}

#[tokio::test]
async fn a_number_that_no_column_holds_is_refused_by_name_and_without_its_value() {
    let desk = Desk::new();
    for (kind, number) in [
        ("integer", json!(u64::MAX)),
        ("number", json!(i64::MAX as u64 + 5)),
        ("integer", json!(1e300)),
        ("integer", json!(9223372036854775808.0)),
    ] {
        let spec = reads(&[BOUND], json!({ "value": { "type": kind } }));
        let error = desk.call(spec, json!({ "value": number })).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InputInvalid);
        assert!(error.message.starts_with("`value` is a whole number"), "{}", error.message);
        assert!(!error.message.contains(&number.to_string()), "{}", error.message);
    }
}

#[tokio::test]
async fn an_argument_with_sql_is_bound_as_text() {
    let desk = Desk::new();
    for hostile in ["x'; DROP TABLE audit; --", "' OR '1'='1", ":order", "\"", "x\u{0}y'"] {
        let spec = writes(&["INSERT INTO audit VALUES (:what)"], any(&["what"]));
        desk.call(spec, json!({ "what": hostile })).await.unwrap();
        let spec = reads(&["SELECT what FROM audit WHERE what = :what"], any(&["what"]));
        let found = desk.call(spec, json!({ "what": hostile })).await.unwrap();
        assert_eq!(found["rows"], json!([{ "what": hostile }]));
    }
    assert_eq!(desk.count("audit").await, 5);
}

#[tokio::test]
async fn cells_without_a_json_type_have_a_readable_form() {
    let spec = reads(
        &["SELECT x'00ff10' AS blob, 9e999 AS infinite, -9e999 AS minus, NULL AS absent, \
           CAST(x'61ff62' AS TEXT) AS broken, 9007199254740993 AS exact"],
        json!({}),
    );
    assert_eq!(
        Desk::new().call(spec, json!({})).await.unwrap()["rows"],
        json!([{
            "blob": { "bytes": 3 }, "infinite": "Infinity", "minus": "-Infinity", "absent": null,
            "broken": { "bytes": 3 }, "exact": 9_007_199_254_740_993_i64,
        }])
    );
}

fn numbers(up_to: usize) -> String {
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {up_to}) \
         SELECT i FROM n"
    )
}

#[tokio::test]
async fn rows_over_the_limit_are_cut_and_that_is_said() {
    let desk = Desk::new();
    let tool =
        |rows: usize, max_rows| SqlToolSpec { max_rows, ..reads(&[&numbers(rows)], json!({})) };
    let whole = desk.call(tool(3, 3), json!({})).await.unwrap();
    assert_eq!(whole.to_string(), r#"{"rows":[{"i":1},{"i":2},{"i":3}],"changed":0}"#);
    let cut = desk.call(tool(4, 3), json!({})).await.unwrap();
    assert_eq!(cut.to_string(), r#"{"rows":[{"i":1},{"i":2},{"i":3}],"changed":0,"more":true}"#);
    let default = desk.call(reads(&[&numbers(201)], json!({})), json!({})).await.unwrap();
    assert_eq!(default["rows"].as_array().unwrap().len(), 200);
    assert_eq!(default["more"], true);
    // Reading stops there: this one never ends by itself.
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let first = SqlToolSpec { max_rows: 1, ..reads(&[endless], json!({})) };
    assert_eq!(desk.call(first, json!({})).await.unwrap()["rows"], json!([{ "i": 1 }]));
}

#[tokio::test]
async fn rows_of_too_many_bytes_are_cut_and_that_is_said() {
    let desk = Desk::new();
    let quarter = MAX_ROWS_BYTES / 4;
    let sql = format!("SELECT hex(zeroblob({} / 2)) AS t FROM charges, orders", quarter - 1);
    let cut = desk.call(reads(&[&sql], json!({})), json!({})).await.unwrap();
    assert_eq!(cut["rows"].as_array().unwrap().len(), 4);
    assert_eq!(cut["more"], true);
    assert!(cut.to_string().len() < MAX_ROWS_BYTES + 200);
    // One row alone may be too large; that is not the same as none.
    let sql = format!("SELECT hex(zeroblob({MAX_ROWS_BYTES})) AS t");
    let mut spec = reads(&[], json!({}));
    spec.statements = vec![or_else(&sql, "never said")];
    let cut = desk.call(spec, json!({})).await.unwrap();
    let note = "A row is larger than 1 MiB; it and those after it were left out.";
    assert_eq!(cut, json!({ "rows": [], "changed": 0, "more": true, "note": note }));
    // Rows before it are kept. A result that is cut for another reason has no note.
    let sql = format!("SELECT 'a' AS t UNION ALL {sql}");
    let tool = |max_rows| SqlToolSpec { max_rows, ..reads(&[&sql], json!({})) };
    let cut = desk.call(tool(2), json!({})).await.unwrap();
    let rows = json!([{ "t": "a" }]);
    assert_eq!(cut, json!({ "rows": rows, "changed": 0, "more": true, "note": note }));
    let cut = desk.call(tool(1), json!({})).await.unwrap();
    assert_eq!(cut, json!({ "rows": rows, "changed": 0, "more": true }));
}

#[tokio::test]
async fn a_value_that_is_too_large_fails_the_call_and_undoes_what_it_did() {
    let desk = Desk::new();
    let half = MAX_VALUE_BYTES / 2;
    let build = format!("SELECT length(hex(zeroblob({half} + :more))) AS n");
    let tool = desk.build(reads(&[&build], any(&["more"]))).unwrap();
    // SQLite counts some bytes of a row beside its texts.
    let largest = call(&tool, json!({ "more": -8 })).await.unwrap();
    assert_eq!(largest["rows"], json!([{ "n": MAX_VALUE_BYTES - 16 }]));
    let pass = "SELECT length(:value) AS n";
    let insert = "INSERT INTO audit VALUES ('before')";
    for (spec, args) in [
        (reads(&[&build], any(&["more"])), json!({ "more": 1 })),
        (reads(&[&build], any(&["more"])), json!({ "more": 200_000_000 })),
        (
            writes(&[insert, pass], any(&["value"])),
            json!({ "value": "x".repeat(MAX_VALUE_BYTES + 1) }),
        ),
    ] {
        let error = desk.call(spec, args).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::ExecutionFailed);
        assert_eq!(
            error.message,
            "database `desk`: a text, a blob or a row has more than 4 MiB, the limit of a \
             statement; ask for less at a time, or pass less"
        );
        assert!(error.cause_chain().unwrap().contains("too big"));
    }
    assert_eq!(desk.count("audit").await, 0);
}

#[tokio::test]
async fn a_failure_is_told_to_the_model_in_short_and_to_the_operator_in_full() {
    let desk = Desk::new();
    let spec = reads(&["SELECT json_extract(:value, '$.a') AS a"], any(&["value"]));
    let error = desk.call(spec, json!({ "value": "hush, not json" })).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
    assert_eq!(error.message, "database `desk`: malformed JSON");
    assert!(error.cause_chain().unwrap().contains("malformed JSON"));
}

#[tokio::test]
async fn an_endless_statement_is_cut_off_and_the_tool_serves_on() {
    let desk = Desk::new();
    for spec in [reads(&[ENDLESS], json!({})), writes(&[ENDLESS], json!({}))] {
        let tool = desk.build(spec).unwrap();
        for _ in 0..5 {
            let parts = ToolContextParts::detached();
            let cancel = parts.cancellation.clone();
            let running = call_in(&tool, json!({}), parts.into());
            let stop = async {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                cancel.cancel();
            };
            let (outcome, ()) = tokio::join!(running, stop);
            assert_eq!(outcome.unwrap_err().code, ErrorCode::Cancelled);
        }
        assert_eq!(desk.count("orders").await, 3);
    }
}
