//! Whatever a function returns, a model reads a text, and programs read data.

use std::{borrow::Cow, collections::BTreeMap, error::Error, fmt, io};

use serde::Serialize;
use serde_json::{Value, json};
use toolcrib::{prelude::*, tool::IntoToolOutput};

use crate::support::call;

#[derive(Serialize)]
struct Order {
    id: u32,
    open: bool,
}

const ORDER: Order = Order { id: 7, open: true };

/// A text.
#[tool]
fn string() -> String {
    "text".into()
}

/// A text that is there.
#[tool]
async fn borrowed() -> &'static str {
    "text"
}

/// A text of either kind.
#[tool]
fn cow() -> Cow<'static, str> {
    "text".into()
}

/// Nothing.
#[tool]
async fn nothing() {}

/// A number.
#[tool]
fn number() -> f64 {
    1.5
}

/// A struct.
#[tool]
async fn order() -> Order {
    ORDER
}

/// A list of structs.
#[tool]
async fn list() -> Vec<Order> {
    vec![ORDER]
}

/// A map.
#[tool]
async fn map() -> BTreeMap<&'static str, u8> {
    BTreeMap::from([("a", 1)])
}

/// Something, or not.
#[tool]
fn nobody() -> Option<Order> {
    None
}

/// Data by hand.
#[tool]
async fn value() -> Value {
    json!({ "a": [1] })
}

/// Data, wrapped.
#[tool]
async fn wrapped() -> Json<Order> {
    Json(ORDER)
}

/// A whole output.
#[tool]
async fn output() -> ToolOutput {
    ok("refunded").structured(json!({ "charge": 75 })).cost(0.02)
}

/// A picture.
#[tool]
fn picture() -> ContentBlock {
    ContentBlock::image("image/png", *b"png")
}

/// A partial success.
#[tool]
fn partial() -> Result<ToolOutput, ToolError> {
    ToolOutput::partial(["a"], [("b", "is locked")])
}

/// Something that only says what it can do.
#[tool]
fn opaque() -> impl IntoToolOutput {
    "text"
}

/// Data that only says what it can do.
#[tool]
async fn opaque_data() -> impl Serialize {
    ORDER
}

/// Data, or an error.
#[tool]
async fn found(order: u32) -> Result<Order, ToolError> {
    match order {
        7 => Ok(ORDER),
        other => Err(err(format!("there is no order {other}"))),
    }
}

#[tokio::test]
async fn every_kind_of_answer_is_readable_and_data_where_it_is_data() {
    let order = json!({ "id": 7, "open": true });
    let cases: [(Tool, &str, Option<Value>); 15] = [
        (string_tool(), "text", None),
        (borrowed_tool(), "text", None),
        (cow_tool(), "text", Some(json!("text"))),
        (nothing_tool(), "done", None),
        (number_tool(), "1.5", Some(json!(1.5))),
        (order_tool(), r#"{"id":7,"open":true}"#, Some(order.clone())),
        (list_tool(), r#"[{"id":7,"open":true}]"#, Some(json!([order]))),
        (map_tool(), r#"{"a":1}"#, Some(json!({ "a": 1 }))),
        (nobody_tool(), "null", Some(Value::Null)),
        (value_tool(), r#"{"a":[1]}"#, Some(json!({ "a": [1] }))),
        (wrapped_tool(), r#"{"id":7,"open":true}"#, Some(order.clone())),
        (output_tool(), "refunded", Some(json!({ "charge": 75 }))),
        (opaque_tool(), "text", None),
        (opaque_data_tool(), r#"{"id":7,"open":true}"#, Some(order)),
        (
            partial_tool(),
            "1 done: a\n1 failed:\n- b: is locked",
            Some(json!({ "done": ["a"], "failed": [{ "item": "b", "why": "is locked" }] })),
        ),
    ];
    for (tool, value, structured) in cases {
        let name = tool.name().to_string();
        let result = call(tool, json!({})).await;
        assert_eq!((result.code, &*result.value), (None, value), "{name}");
        assert_eq!(result.structured, structured, "{name}");
        assert_eq!(result.cost_usd, (name == "output").then_some(0.02), "{name}");
    }
    let result = call(picture_tool(), json!({})).await;
    assert_eq!(&*result.text, "[image image/png, 3 bytes]");
    assert_eq!(*result.blocks, [ContentBlock::image("image/png", *b"png")]);
}

#[tokio::test]
async fn a_returned_result_is_data_or_an_error() {
    let result = call(found_tool(), json!({ "order": 7 })).await;
    assert_eq!(result.structured, Some(json!({ "id": 7, "open": true })));
    let result = call(found_tool(), json!({ "order": 8 })).await;
    assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
    assert_eq!(&*result.value, "there is no order 8");
    assert_eq!(result.structured, None);
}

#[derive(Debug)]
struct Unreadable(io::Error);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the orders cannot be read")
    }
}

impl Error for Unreadable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn read() -> Result<Vec<Order>, io::Error> {
    Err(io::Error::other("disk on fire"))
}

/// `?` into our error.
#[tool]
async fn into_ours() -> Result<Vec<Order>, ToolError> {
    Ok(read().map_err(Unreadable)?)
}

/// An error of the standard library.
#[tool]
async fn of_std() -> Result<Vec<Order>, io::Error> {
    read()
}

/// An error of one's own, and a text.
#[tool]
fn of_ones_own() -> Result<String, Unreadable> {
    read().map_err(Unreadable)?;
    Ok("read".into())
}

/// A boxed error, and a text.
#[tool]
fn boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
    read().map_err(Unreadable)?;
    Ok("read".into())
}

/// A boxed error, and data.
#[tool]
async fn boxed_data() -> Result<Vec<Order>, Box<dyn Error + Send + Sync>> {
    Ok(read().map_err(Unreadable)?)
}

/// A text as an error; that both are serializable makes no data of it.
#[tool]
fn told() -> Result<Vec<u8>, String> {
    Err("the orders cannot be read".into())
}

/// Another class.
#[tool]
fn refused() -> Result<(), ToolError> {
    Err(ToolError::new(ErrorCode::NotAvailable, "the orders cannot be read").caused_by("no disk"))
}

#[tokio::test]
async fn the_model_reads_the_error_and_the_operator_its_causes() {
    const CHAIN: &str = "the orders cannot be read: disk on fire";
    for (tool, text, cause) in [
        (into_ours_tool(), "the orders cannot be read", Some(CHAIN)),
        (of_std_tool(), "disk on fire", None),
        (of_ones_own_tool(), "the orders cannot be read", Some(CHAIN)),
        (boxed_tool(), "the orders cannot be read", Some(CHAIN)),
        (boxed_data_tool(), "the orders cannot be read", Some(CHAIN)),
        (told_tool(), "the orders cannot be read", None),
    ] {
        let result = call(tool, json!({})).await;
        assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
        assert_eq!(&*result.text, text);
        assert_eq!(result.cause.as_deref(), cause);
        assert_eq!(result.structured, None);
    }
    let result = call(refused_tool(), json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
    assert_eq!(result.cause.as_deref(), Some("no disk"));
}
