//! What a parameter's type is, its property is.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib::{
    policy::RuleConditions,
    prelude::*,
    provider::{Catalog, discovery_fn, skill_scoped_tools},
    schemars::JsonSchema,
    skills::InvalidSkillError,
    tool::{IntoTool, ToolContextParts},
};

use crate::support::{call, made, text};

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(crate = "toolcrib::schemars")]
enum Status {
    Open,
    InTransit,
}

/// A span of days.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "toolcrib::schemars")]
struct Days {
    /// The first day, such as 2026-11-22.
    from: String,
    to: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "toolcrib::schemars")]
struct Folder {
    name: String,
    #[serde(default)]
    folders: Vec<Folder>,
}

fn ten() -> u32 {
    10
}

/// Finds orders.
#[tool(read_only)]
#[expect(clippy::too_many_arguments, reason = "one of each")]
async fn find_orders(
    /// The customer's number.
    customer: u64,
    /// Only those in this state.
    status: Option<Status>,
    days: Days,
    tags: Vec<String>,
    labels: HashMap<String, String>,
    #[serde(default = "ten")]
    #[schemars(range(max = 100))]
    limit: u32,
    #[serde(rename = "orderBy")] order_by: Option<String>,
    /// Not used.
    #[schemars(description = "Used, whatever the doc comment says.")]
    ratio: f64,
    /// # A heading is no title
    deep: Option<Folder>,
    anything: Value,
) -> Value {
    let labels: BTreeMap<_, _> = labels.into_iter().collect();
    json!([customer, status, days, tags, labels, limit, order_by, ratio, deep, anything])
}

#[test]
fn the_schema_of_a_rich_function() {
    let tool = made(find_orders_tool());
    insta::assert_snapshot!(format!("{:#}", tool.input_schema()));
}

#[tokio::test]
async fn arguments_arrive_as_they_are_typed() {
    let args = json!({
        "customer": 7,
        "status": "in_transit",
        "days": { "from": "2026-11-22" },
        "tags": ["a", "b"],
        "labels": { "x": "1" },
        "orderBy": "date",
        "ratio": 0.5,
        "deep": { "name": "top", "folders": [{ "name": "below" }] },
        "anything": [null],
    });
    let result = call(find_orders_tool(), args).await;
    assert_eq!(
        result.structured.unwrap(),
        json!([
            7, "in_transit", { "from": "2026-11-22", "to": null }, ["a", "b"], { "x": "1" }, 10,
            "date", 0.5,
            { "name": "top", "folders": [{ "name": "below", "folders": [] }] },
            [null],
        ])
    );
}

/// Numbers of each size.
#[tool]
fn numbers(small: i8, middle: u16, signed: i32, large: u32, huge: u64, real: f32) -> String {
    format!("{small} {middle} {signed} {large} {huge} {real}")
}

#[tokio::test]
async fn what_is_not_a_value_of_the_type_is_refused_by_the_schema_and_says_where() {
    let fitting = json!({
        "small": -128, "middle": 65535, "signed": i32::MIN, "large": u32::MAX, "huge": u64::MAX,
        "real": 1.5,
    });
    let said = text(numbers_tool(), fitting.clone()).await;
    assert_eq!(said, "-128 65535 -2147483648 4294967295 18446744073709551615 1.5");
    for (name, value) in [
        ("small", json!(128)),
        ("middle", json!(-1)),
        ("signed", json!(2_147_483_648_u32)),
        ("large", json!(4_294_967_296_u64)),
        ("huge", json!(-1)),
        ("real", json!("one")),
        ("unheard_of", json!(1)),
    ] {
        let mut args = fitting.clone();
        args[name] = value;
        let result = call(numbers_tool(), args).await;
        assert_eq!(result.code, Some(ErrorCode::InputInvalid), "{name}");
        assert!(result.text.contains(name), "{name}: {}", result.text);
    }
    let schema = made(numbers_tool()).input_schema().to_string();
    assert!(!schema.contains("format") && !schema.contains("title"), "{schema}");
}

/// A query.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "toolcrib::schemars")]
struct Query {
    /// What to look for.
    words: String,
    #[serde(default)]
    page: u32,
}

/// Searches.
#[tool]
async fn search(Args(query): Args<Query>, cx: ToolContext) -> String {
    format!("{} {} {}", query.words, query.page, cx.call_id())
}

#[tokio::test]
async fn all_arguments_may_be_one_type() {
    assert_eq!(text(search_tool(), json!({ "words": "rust" })).await, "rust 0 call_1");
    let tool = made(search_tool());
    let words = &tool.input_schema()["properties"]["words"];
    assert_eq!(*words, json!({ "type": "string", "description": "What to look for." }));
    let query = Query { words: "direct".into(), page: 1 };
    let context = ToolContextParts::detached().into();
    assert_eq!(search(Args(query), context).await, "direct 1 call");
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "toolcrib::schemars")]
#[serde(tag = "by", rename_all = "snake_case")]
enum Lookup {
    Number { number: u32 },
    Name { name: String },
}

/// Looks up.
#[tool]
fn look_up(args: Args<Lookup>) -> Lookup {
    args.0
}

#[tokio::test]
async fn all_arguments_may_be_one_of_several_shapes() {
    let said = text(look_up_tool(), json!({ "by": "name", "name": "Ada" })).await;
    assert_eq!(said, r#"{"by":"name","name":"Ada"}"#);
    let result = call(look_up_tool(), json!({ "by": "name", "number": 1 })).await;
    assert_eq!(result.code, Some(ErrorCode::InputInvalid));
}

/// Takes a list, which no model can pass.
#[tool]
fn no_object(Args(list): Args<Vec<u8>>) -> usize {
    list.len()
}

#[tokio::test]
async fn arguments_that_are_not_an_object_fail_the_build_and_are_withheld_from_a_provider() {
    const PROBLEM: &str = "`no_object` must be of `type: \"object\"`";
    let error = no_object_tool().into_tool().unwrap_err();
    assert!(error.to_string().contains(PROBLEM), "{error}");
    let error = Engine::builder().tool(no_object_tool()).build().unwrap_err();
    assert!(error.to_string().contains("no_object"), "{error}");

    let provider = static_tools([no_object_tool(), search_tool()]);
    let engine = Engine::builder().provider(provider).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    assert_eq!(iteration.menu().len(), 1);
    let why = iteration.why("no_object").unwrap();
    assert!(!why.offered && why.chain.last().unwrap().text.contains(PROBLEM), "{why:?}");
    let call = ToolCall::new("call_1", "no_object", json!({}));
    assert_eq!(iteration.execute(vec![call]).await[0].code, Some(ErrorCode::NotAvailable));
}

#[test]
fn constructors_and_registries_take_what_the_attribute_makes() {
    let registry = ToolRegistry::try_from(vec![search_tool()]).unwrap();
    registry.register(look_up_tool()).unwrap();
    registry.overwrite(search_tool());
    let mut catalog = Catalog::from_iter([search_tool()]);
    catalog.offer(look_up_tool());
    let scoped = skill_scoped_tools("search", [search_tool(), look_up_tool()]).unwrap();
    let gated = gated_tools("open", scoped, |tool, cx| cx.iteration() < 3 || tool.sequential());
    assert_eq!(gated.path(), "gated(open) > skill-scoped:search");
    let hub = discovery_fn(async |request| match request.active_skill() {
        Some(_) => vec![search_tool()],
        None => vec![],
    });
    assert_eq!(hub.build().id(), "discovery");
    let skill = Skill::new("search", "Searches.", "Search.").tools(["search", "look_up"]);
    assert!(Skills::new(vec![skill]).is_ok());
    let blank = Skill::new(" ", "Blank.", "");
    assert!(matches!(Skills::new(vec![blank]), Err(InvalidSkillError::BlankId(_))));
    let wrong = Skill::new("x", "Wrong.", "").tools(["look up"]);
    assert!(matches!(Skills::new(vec![wrong]), Err(InvalidSkillError::ToolName { .. })));
    let _ = TurnOptions::default().skill("search");
    let _ = RuleConditions::default().skills(["search"]);
}

/// A type of one's own that is called like one of ours.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "toolcrib::schemars")]
enum State {
    On,
    Off,
}

/// Switches.
#[tool]
fn switch(state: State, mut times: u8, _quietly: bool) -> String {
    times += 1;
    format!("{state:?} {times}")
}

#[tokio::test]
async fn an_own_type_named_state_is_an_argument() {
    let args = json!({ "state": "Off", "times": 1, "_quietly": true });
    assert_eq!(text(switch_tool(), args).await, "Off 2");
    assert_eq!(format!("{:?}", State::On), "On");
}
