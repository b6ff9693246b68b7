//! One call, one transaction: all of it or none.

use serde_json::json;
use toolcrib_capabilities::database::Database;
use toolcrib_core::{CancellationToken, ErrorCode};
use toolcrib_tools::sql::SqlToolSpec;

use crate::support::{Desk, any, call, or_else, reads, writes};

/// Refunds one of two equal charges, once, and says why not.
fn refund() -> SqlToolSpec {
    let mut spec = writes(&[], any(&["order_id"]));
    spec.statements = vec![
        or_else("SELECT id FROM orders WHERE id = :order_id", "There is no such order."),
        or_else(
            "SELECT amount FROM charges WHERE order_id = :order_id \
             GROUP BY amount HAVING count(*) >= 2",
            "No amount was charged twice.",
        ),
        "INSERT INTO audit VALUES ('asked to refund')".into(),
        or_else(
            "INSERT INTO refunds SELECT :order_id, min(amount) FROM charges \
             WHERE order_id = :order_id \
             AND NOT EXISTS (SELECT 1 FROM refunds WHERE order_id = :order_id) \
             HAVING count(*) > 0 RETURNING order_id, amount",
            "It is refunded already.",
        ),
    ];
    spec
}

#[tokio::test]
async fn a_refund_is_made_once_and_every_refusal_writes_nothing() {
    let desk = Desk::new();
    let tool = desk.build(refund()).unwrap();
    for (order, note) in [(99, "There is no such order."), (2, "No amount was charged twice.")] {
        assert_eq!(
            call(&tool, json!({ "order_id": order })).await.unwrap(),
            json!({ "rows": [], "changed": 0, "note": note })
        );
    }
    assert_eq!(
        call(&tool, json!({ "order_id": 1 })).await.unwrap().to_string(),
        r#"{"rows":[{"order_id":1,"amount":500}],"changed":2}"#
    );
    // The statement before the empty one is rolled back: the audit contains one line, not two.
    assert_eq!(
        call(&tool, json!({ "order_id": 1 })).await.unwrap().to_string(),
        r#"{"rows":[],"changed":0,"note":"It is refunded already."}"#
    );
    assert_eq!((desk.count("refunds").await, desk.count("audit").await), (json!(1), json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_calls_at_once_exactly_one_refunds() {
    let desk = Desk::new();
    let other = Database::open(&desk.spec, &CancellationToken::new()).unwrap();
    let tools = [desk.build(refund()).unwrap(), refund().build(&other).unwrap()];
    let calls: Vec<_> = (0..16)
        .map(|number| {
            let tool = tools[number % 2].clone();
            tokio::spawn(async move { call(&tool, json!({ "order_id": 1 })).await.unwrap() })
        })
        .collect();
    let (mut refunded, mut refused) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            done if done["changed"] == 2 => refunded += 1,
            empty if empty["note"] == "It is refunded already." => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((refunded, refused), (1, 15));
    assert_eq!(desk.count("refunds").await, 1);
}

#[tokio::test]
async fn a_statement_that_fails_undoes_those_before_it() {
    let desk = Desk::new();
    let spec = writes(
        &[
            "INSERT INTO audit VALUES ('before')",
            "INSERT INTO refunds VALUES (1, 500)",
            "INSERT INTO refunds VALUES (:order_id, 500)",
        ],
        any(&["order_id"]),
    );
    let tool = desk.build(spec).unwrap();
    for (order, message) in [
        (1, "database `desk`: UNIQUE constraint failed: refunds.order_id"),
        (99, "database `desk`: FOREIGN KEY constraint failed"),
    ] {
        let error = call(&tool, json!({ "order_id": order })).await.unwrap_err();
        assert_eq!((error.code, &*error.message), (ErrorCode::ExecutionFailed, message));
    }
    assert_eq!((desk.count("refunds").await, desk.count("audit").await), (json!(0), json!(0)));
    assert_eq!(call(&tool, json!({ "order_id": 2 })).await.unwrap()["changed"], 3);
}

#[tokio::test]
async fn rows_are_those_of_the_last_statement_that_gives_any() {
    let desk = Desk::new();
    let spec = writes(
        &[
            "SELECT id FROM orders",
            "DELETE FROM charges WHERE order_id = 1 RETURNING id",
            "UPDATE orders SET customer = upper(customer)",
        ],
        json!({}),
    );
    assert_eq!(
        desk.call(spec, json!({})).await.unwrap(),
        json!({ "rows": [{ "id": 11 }, { "id": 12 }], "changed": 5 })
    );
    // One that gives columns and no row hides what came before it.
    let spec = reads(&["SELECT id FROM orders", "SELECT id FROM refunds, charges"], json!({}));
    assert_eq!(desk.call(spec, json!({})).await.unwrap()["rows"], json!([]));
}

#[tokio::test]
async fn rows_over_the_limit_are_written_although_not_returned() {
    let desk = Desk::new();
    let spec = SqlToolSpec {
        max_rows: 2,
        ..writes(
            &["WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) \
               INSERT INTO anything SELECT i FROM n RETURNING value"],
            json!({}),
        )
    };
    assert_eq!(
        desk.call(spec, json!({})).await.unwrap().to_string(),
        r#"{"rows":[{"value":1},{"value":2}],"changed":1000,"more":true}"#
    );
    assert_eq!(desk.count("anything").await, 1000);
}

#[tokio::test]
async fn a_statement_that_gives_no_row_but_changes_some_is_not_empty() {
    let desk = Desk::new();
    let mut spec = writes(&[], json!({}));
    spec.statements = vec![or_else("UPDATE orders SET customer = 'x' WHERE id = 1", "never said")];
    assert_eq!(desk.call(spec, json!({})).await.unwrap(), json!({ "rows": [], "changed": 1 }));
    let mut spec = writes(&[], json!({}));
    spec.statements = vec![or_else("DELETE FROM orders WHERE id = 99", "None there.")];
    assert_eq!(
        desk.call(spec, json!({})).await.unwrap(),
        json!({ "rows": [], "changed": 0, "note": "None there." })
    );
}

#[tokio::test]
async fn a_call_that_is_cancelled_has_written_nothing() {
    let desk = Desk::new();
    let spec = writes(
        &[
            "INSERT INTO audit VALUES ('before')",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
             INSERT INTO anything SELECT count(*) FROM n",
        ],
        json!({}),
    );
    let tool = desk.build(spec).unwrap();
    let parts = toolcrib_core::ToolContextParts::detached();
    let cancel = parts.cancellation.clone();
    let running = crate::support::call_in(&tool, json!({}), parts.into());
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(running, stop);
    assert_eq!(outcome.unwrap_err().code, ErrorCode::Cancelled);
    assert_eq!((desk.count("audit").await, desk.count("anything").await), (json!(0), json!(0)));
}
