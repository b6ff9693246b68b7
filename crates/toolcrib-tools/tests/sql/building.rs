//! Errors before a call, and the definition of the built tool.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolcrib_capabilities::database::Database;
use toolcrib_core::{CancellationToken, ErrorCode};
use toolcrib_tools::sql::{DEFAULT_MAX_ROWS, SqlToolSpec};

use crate::support::{Desk, any, call, reads, writes};

fn errors(spec: SqlToolSpec) -> Vec<String> {
    let found = Desk::new().build(spec).unwrap_err();
    found.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_built_tool_has_its_declaration() {
    let desk = Desk::new();
    let mut spec = reads(
        &["SELECT amount FROM charges WHERE order_id = :order_id"],
        json!({
            "order_id": { "type": "integer", "description": "The order's number." }
        }),
    );
    spec.declaration.name = "list_charges".into();
    spec.declaration.description = "All charges of an order.".into();
    assert_eq!(spec.max_rows, DEFAULT_MAX_ROWS);
    let plain = desk.build(spec.clone()).unwrap();
    assert!(plain.untrusted(), "tables hold what others wrote");
    assert!(!plain.always_include());
    assert_eq!((plain.toolset(), plain.timeout(), plain.max_result_chars()), (None, None, None));

    spec.declaration.toolset = Some(Arc::from("billing"));
    spec.declaration.timeout = Some(Duration::from_secs(3));
    spec.declaration.max_result_chars = Some(8000);
    spec.declaration.always_include = true;
    spec.declaration.untrusted = false;
    spec.declaration.origin = Some(Arc::from("toolcrib.toml:12"));
    let tool = desk.build(spec).unwrap();
    assert_eq!(tool.name(), "list_charges");
    assert_eq!(tool.description(), "All charges of an order.");
    assert_eq!(tool.toolset(), Some("billing"));
    assert_eq!(tool.timeout(), Some(Duration::from_secs(3)));
    assert_eq!(tool.max_result_chars(), Some(8000));
    assert_eq!(tool.origin(), "toolcrib.toml:12");
    assert!(tool.annotations().read_only && tool.always_include() && !tool.untrusted());
    assert_eq!(
        tool.input_schema(),
        &json!({
            "additionalProperties": false,
            "properties": {
                "order_id": { "type": "integer", "description": "The order's number." }
            },
            "required": ["order_id"],
            "type": "object",
        })
    );
}

#[test]
fn a_schema_is_closed_whatever_it_says() {
    let desk = Desk::new();
    let mut spec = reads(&["SELECT 1 AS one"], json!({}));
    for open in [json!(true), json!({ "type": "string" })] {
        spec.declaration.input_schema["additionalProperties"] = open;
        let tool = desk.build(spec.clone()).unwrap();
        assert_eq!(tool.input_schema()["additionalProperties"], false);
    }
    spec.declaration.input_schema = json!({});
    let tool = desk.build(spec.clone()).unwrap();
    assert_eq!(tool.input_schema(), &json!({ "additionalProperties": false, "type": "object" }));
    spec.declaration.input_schema = json!({ "type": "array" });
    let wrong = desk.build(spec).unwrap_err();
    assert_eq!((wrong.errors.len(), &*wrong.errors[0].field), (1, ""), "{wrong}");
}

#[test]
fn all_errors_of_a_declaration_are_reported_together() {
    let desk = Desk::new();
    let mut spec = reads(
        &[
            "SELECT amuont FROM charges",
            "SELECT id, amount AS id FROM charges WHERE order_id = ?",
            "-- nothing",
            "SELECT 1; SELECT 2",
            "DELETE FROM refunds",
            "SELECT :order FROM orders",
            "COMMIT",
        ],
        any(&["order_id"]),
    );
    spec.declaration.name = "no name".into();
    spec.max_rows = 0;
    let found = desk.build(spec).unwrap_err();
    assert_eq!(found.tool, "no name");
    let fields: Vec<_> = found.errors.iter().map(|error| &*error.field).collect();
    let of_statements = [0, 1, 1, 2, 3, 4, 5, 6].map(|n| format!("/statements/{n}/sql"));
    assert_eq!(fields[..2], ["", "/max_rows"]);
    assert_eq!(fields[2..], of_statements);
    assert!(found.errors.iter().all(|error| error.at.is_none()));
    let texts: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
    for (text, part) in texts.iter().zip([
        "`no name` is not a tool name",
        "`max_rows` is 0; it must be at least 1",
        "statement 1: no such column: amuont",
        "statement 2 gives two columns named `id`; rename one with `AS`",
        "statement 2 has the parameter `?`; write it as `:name`",
        "statement 3: the statement is empty",
        "statement 4: the text contains more than one statement",
        "statement 5 writes, and the tool is declared `read_only`; drop one or the other",
        "statement 6 uses `:order`, and there is no parameter of that name; \
         declare it, or use one of `order_id`",
        "statement 7: the statements already run in one transaction; remove BEGIN, COMMIT",
    ]) {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(found.errors[2].offset, Some(7));
    assert!(found.to_string().starts_with("tool `no name`: `no name` is not"), "{found}");
}

#[test]
fn names_and_parameters_must_be_the_same_set() {
    assert_eq!(
        errors(reads(&["SELECT :a AS a"], any(&["a", "b", "c"]))),
        [
            "no statement uses the parameter `b`; use it as `:b` or drop it",
            "no statement uses the parameter `c`; use it as `:c` or drop it",
        ]
    );
    assert_eq!(
        errors(reads(&["SELECT :a AS a, :A AS b"], any(&["a"]))),
        ["statement 1 uses `:A`, and there is no parameter of that name; \
          declare it, or use one of `a`"]
    );
    assert_eq!(
        errors(reads(&["SELECT :a AS a"], json!({}))),
        ["statement 1 uses `:a`, and there is no parameter of that name; declare it"]
    );
    for written in ["?1", "@a", "$a"] {
        let said = errors(reads(&[&format!("SELECT {written} AS a")], json!({})));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(&format!("has the parameter `{written}`")), "{said:?}");
    }
    // Separate statements may use them, and more than once.
    let both = reads(&["SELECT :a AS a", "SELECT :b AS a, :b AS b"], any(&["a", "b"]));
    Desk::new().build(both).unwrap();
    assert_eq!(errors(writes(&[], any(&["a"]))), ["it has no statement; write at least one"]);
}

#[test]
fn only_a_tool_that_is_not_read_only_writes() {
    let desk = Desk::new();
    let insert = "INSERT INTO audit VALUES ('x')";
    desk.build(writes(&[insert], json!({}))).unwrap();
    let refused = desk.build(reads(&[insert], json!({}))).unwrap_err();
    let said = refused.errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        said,
        ["statement 1 writes, and the tool is declared `read_only`; drop one or the other"]
    );
}

#[tokio::test]
async fn over_an_inspected_database_a_tool_is_checked_and_listed_and_does_not_run() {
    let desk = Desk::new();
    let inspected = Database::inspect(&desk.spec, &CancellationToken::new()).unwrap();
    let good = writes(&["DELETE FROM audit"], json!({}));
    let tool = good.clone().build(&inspected).unwrap();
    assert_eq!(tool.digest(), desk.build(good).unwrap().digest());
    let error = call(&tool, json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotAvailable);
    let typo = reads(&["SELECT amuont FROM charges"], json!({})).build(&inspected).unwrap_err();
    assert_eq!(
        typo.to_string(),
        "tool `tool`: statement 1: no such column: amuont; did you mean `amount`?"
    );
}
