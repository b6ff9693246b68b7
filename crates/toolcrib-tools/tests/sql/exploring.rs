//! The toolset `sql_explore` over SQLite; its PostgreSQL half is in `server`.

use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, Tool, ToolError};
use toolcrib_tools::{Declaration, sql_explore::ExploreTool};

use crate::support::{Desk, call};

pub(crate) fn explorer(desk: &Desk, tool: ExploreTool) -> Tool {
    let base = Declaration::new("desk", "Orders and charges.");
    tool.build(tool.declaration(&base, "desk"), &desk.database, 2).unwrap()
}

pub(crate) async fn query(desk: &Desk, sql: &str) -> Result<Value, ToolError> {
    call(&explorer(desk, ExploreTool::Query), json!({ "sql": sql })).await
}

#[test]
fn each_tool_says_what_it_is_for_and_only_reads() {
    let desk = Desk::new();
    for (tool, name) in [
        (ExploreTool::ListTables, "desk_list_tables"),
        (ExploreTool::DescribeTable, "desk_describe_table"),
        (ExploreTool::Query, "desk_query"),
    ] {
        let tool = explorer(&desk, tool);
        assert_eq!(tool.name().as_str(), name);
        assert!(tool.description().ends_with("The database: Orders and charges."));
        assert!(tool.annotations().read_only && !tool.annotations().destructive);
    }
}

#[tokio::test]
async fn a_model_lists_describes_and_queries() {
    let desk = Desk::new();
    let listed = call(&explorer(&desk, ExploreTool::ListTables), json!({})).await.unwrap();
    let names: Vec<_> =
        listed["rows"].as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
    assert_eq!(names, ["anything", "audit", "charges", "orders", "refunds"]);
    let describe = explorer(&desk, ExploreTool::DescribeTable);
    let described = call(&describe, json!({ "table": "Orders" })).await.unwrap();
    let sql = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL)";
    let expected = json!({ "rows": [{ "type": "table", "name": "orders", "sql": sql }] });
    assert_eq!(described, expected);
    let none = call(&describe, json!({ "table": "x' OR 1" })).await.unwrap_err();
    assert!(none.message.contains("no table or view `x' OR 1`"), "{none:?}");
    let near = call(&describe, json!({ "table": "ordres" })).await.unwrap_err();
    assert_eq!(near.message, "there is no table or view `ordres`; did you mean `orders`?");
    let rows = query(&desk, "SELECT customer FROM orders ORDER BY id").await.unwrap();
    assert_eq!(
        rows,
        json!({ "rows": [{ "customer": "Ada" }, { "customer": "Brook" }], "more": true })
    );
}

#[tokio::test]
async fn an_error_of_the_statement_is_one_of_the_arguments_and_says_how_to_go_on() {
    let desk = Desk::new();
    for (sql, expected) in [
        ("SELECT custmer FROM orders", "no such column: custmer; did you mean `customer`?"),
        ("SELECT o.custmer FROM Orders o", "column: o.custmer; did you mean `customer`?"),
        ("SELECT \"custmer\" FROM orders", "column: \"custmer\"; did you mean `customer`?"),
        ("SELECT x FROM ordres", "no such table: ordres; did you mean `orders`?"),
        ("SELECT x FROM main.ordres", "no such table: main.ordres; did you mean `orders`?"),
        ("SELECT zzz FROM orders", "no such column: zzz"),
        ("DELETE FROM orders", "the statement writes, and this tool only reads"),
        ("SELECT 1; SELECT 2", "pass one statement only"),
        ("SELECT id, id FROM orders", "two columns are named `id`; rename one with AS"),
        ("SELECT zeroblob(9)", "the function zeroblob is not available; remove it"),
        ("SELECT printf('%2000000d', 1)", "a value is larger than 1 MiB; select a part of it"),
        ("VACUUM", "the statement returns no rows; write a SELECT"),
        (" -- nothing", "the statement returns no rows; write a SELECT"),
    ] {
        let error = query(&desk, sql).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InputInvalid, "{sql}");
        assert!(error.message.contains(expected), "{sql}: {error:?}");
        assert!(!expected.starts_with("no such") || error.message.ends_with(expected), "{error:?}");
        assert_eq!(error.cause_chain(), None, "{sql}: it was said");
    }
}
