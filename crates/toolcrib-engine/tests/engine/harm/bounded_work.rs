//! Schemas and arguments that try to make validation do unlimited work.

mod measured;
mod menus;
mod texts;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use toolcrib_core::{
    __internal::check_schema, CancellationToken, ErrorCode, Tool, ToolContext, ToolOutput,
    static_tools,
};
use toolcrib_engine::{Engine, TurnOptions};

use self::measured::measured;
use crate::support::{builder, call, engine, menu, once, says, tool, why};

/// The most memory of a call.
const MOST_MIB: u64 = 200;

fn tool_of(origin: &str, name: &str, schema: Value) -> Tool {
    says(builder(name).origin(origin).input_schema(schema), "ran")
}

fn offering<const N: usize>(tools: [Tool; N]) -> Engine {
    engine().provider(static_tools(tools)).build().unwrap()
}

/// Definitions, each of which applies a keyword to the next one twice.
fn doubling(keyword: &str, depth: usize, last: &Value) -> Value {
    let next = |at: usize| json!({"$ref": format!("#/$defs/d{at}")});
    let mut defs: Map<_, _> = (0..depth)
        .map(|at| (format!("d{at}"), json!({keyword: [next(at + 1), next(at + 1)]})))
        .collect();
    defs.insert(format!("d{depth}"), last.clone());
    json!({"type": "object", "properties": {"a": next(0)}, "$defs": defs})
}

/// Definitions, each of which applies the next one twice to a member.
fn doubling_inside(keyword: &str, depth: usize) -> Value {
    let next = |at: usize| json!({"$ref": format!("#/$defs/d{at}")});
    let both = |at: usize| json!({"properties": {"c": {keyword: [next(at), next(at)]}}});
    let mut defs: Map<_, _> = (0..depth).map(|at| (format!("d{at}"), both(at + 1))).collect();
    defs.insert(format!("d{depth}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"c": next(0)}, "$defs": defs})
}

fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let next = |at: usize| json!({"$ref": format!("#/$defs/d{at}")});
    let mut defs: Map<_, _> =
        (0..length).map(|at| (format!("d{at}"), link(next(at + 1)))).collect();
    defs.insert(format!("d{length}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"a": next(0)}, "$defs": defs})
}

/// `{"c": {"c": … 1}}`
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "c": inner }))
}

fn explosive() -> Vec<(&'static str, Value)> {
    let leaf = json!({"type": "integer"});
    let unevaluated = |one: Value| json!({"allOf": [one], "unevaluatedProperties": false});
    let doubling_unevaluated =
        chain(12, |one| json!({"anyOf": [one.clone(), one], "unevaluatedProperties": false}));
    let mut by_id = doubling("anyOf", 30, &leaf);
    by_id["$id"] = json!("https://example.com/schema");
    let by_id: Value = serde_json::from_str(
        &by_id.to_string().replace("\"#/$defs", "\"https://example.com/schema#/%24defs"),
    )
    .unwrap();
    let by_anchor: Map<_, _> = (0..30)
        .map(|at| {
            let next = json!({"$ref": format!("#n{}", at + 1)});
            let one = json!({"$anchor": format!("n{at}"), "if": next, "else": next});
            (format!("d{at}"), one)
        })
        .chain([("last".to_owned(), json!({"$anchor": "n30"}))])
        .collect();
    let dynamic: Map<_, _> = (0..30)
        .map(|at| {
            let next = json!({"$dynamicRef": format!("#n{}", at + 1)});
            let one = json!({"$dynamicAnchor": format!("n{at}"), "not": next, "allOf": [next]});
            (format!("d{at}"), one)
        })
        .chain([("last".to_owned(), json!({"$dynamicAnchor": "n30"}))])
        .collect();
    // The same pointer means little in the outer resource, and much in the inner one.
    let mut inner = doubling("anyOf", 30, &leaf);
    inner["$id"] = json!("https://example.com/inner");
    inner["$defs"]["d0"]["$anchor"] = json!("start");
    let little: Map<_, _> = (0..=30).map(|at| (format!("d{at}"), json!({}))).collect();
    let mut hidden = json!({"type": "object", "properties": {"a": {"$ref": "inner#start"}}});
    hidden["$id"] = json!("https://example.com/outer");
    hidden["$defs"] = little.into();
    hidden["$defs"]["inner"] = inner;
    vec![
        ("in a resource within", hidden),
        ("anyOf 20", doubling("anyOf", 20, &leaf)),
        ("oneOf 30", doubling("oneOf", 30, &leaf)),
        ("allOf 64", doubling("allOf", 64, &leaf)),
        ("by $id", by_id),
        (
            "by $anchor",
            json!({"type": "object", "properties": {"a": {"$ref": "#n0"}}, "$defs": by_anchor}),
        ),
        (
            "by $dynamicAnchor",
            json!({"type": "object", "properties": {"a": {"$dynamicRef": "#n0"}}, "$defs": dynamic}),
        ),
        ("unevaluated, doubling", doubling_unevaluated),
        ("unevaluated, nested", chain(400, unevaluated)),
        ("references in place", chain(2_000, |one| one)),
        ("itself", json!({"type": "object", "anyOf": [{"$ref": "#"}, {"type": "object"}]})),
        ("pattern", json!({"type": "object", "properties": {"a": {"pattern": "(a{1000}){1000}"}}})),
        ("names", json!({"type": "object", "patternProperties": {"(([^a]{40}){40}){40}": {}}})),
    ]
}

#[test]
fn a_small_schema_that_multiplies_is_withheld_with_the_reason() {
    for (what, schema) in explosive() {
        let engine = offering([tool_of("hub:evil", "evil", schema.clone()), tool("good")]);
        let ((), cost) = measured(async {
            let mut turn = engine.turn(TurnOptions::default()).unwrap();
            let mut iteration = turn.iteration().await.unwrap();
            assert_eq!(menu(&iteration), ["good"], "{what}");
            let reason = why(iteration.withheld(), "evil");
            assert!(reason.starts_with("its schema cannot be enforced: "), "{what}: {reason}");
            let result = iteration.execute(vec![call("evil", json!({"a": "x"}))]).await.remove(0);
            assert_eq!(result.code, Some(ErrorCode::NotAvailable));
            assert!(check_schema(&schema).is_err(), "{what}");
        });
        cost.is_bounded(what, MOST_MIB);
    }
}

fn rows(row: &Value, count: usize) -> Value {
    json!({ "a": vec![row.clone(); count] })
}

fn items(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"a": {"type": "array", "items": schema}}})
}

/// Calls that are expensive for a cheap schema: with the expected error, if any.
fn laborious() -> Vec<(&'static str, Value, Value, Option<ErrorCode>)> {
    let invalid = Some(ErrorCode::InputInvalid);
    let tree = json!({
        "type": "object",
        "properties": {"c": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "string"}]}},
    });
    let inner = (0..40).fold(json!({"$ref": "#"}), |inner, _| json!({"anyOf": [inner]}));
    let deep = json!({"properties": {"c": inner}, "type": "object"});
    let names: Vec<_> = (0..500).map(|at| format!("n{at}")).collect();
    let union: Vec<_> = (0..500).map(|at| json!({"type": "object", "minProperties": at})).collect();
    let unevaluated: Vec<_> =
        (0..500).map(|at| json!({"patternProperties": {format!("^a{at}"): {}}})).collect();
    let members: Map<_, _> = (0..1_500).map(|at| (format!("q{at}"), json!(at))).collect();
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let many: Map<_, _> = (0..200_000).map(|at| (format!("q{at}"), json!(at))).collect();
    let pattern = |pattern: &str| json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
    let text = |length: usize| json!({ "a": "a".repeat(length) });
    let enumeration: Vec<_> =
        (0..2_000).map(|at| json!(format!("{}{at}", "e".repeat(20)))).collect();
    let unique = json!({"properties": {"a": {"uniqueItems": true}}, "type": "object"});
    let different: Vec<_> = (0..20_000).map(|at| json!({ "k": at })).collect();
    let fractions: Vec<_> =
        (0..30).map(|at| json!({"multipleOf": 0.37 + f64::from(at) * 1e-15})).collect();
    vec![
        ("members of both", doubling_inside("allOf", 40), nested(42), invalid),
        ("members of either", doubling_inside("anyOf", 40), nested(30), invalid),
        (
            "fractions of 300 digits",
            items(&json!({"anyOf": fractions})),
            rows(&json!(1.234_567_8e300), 3_000),
            invalid,
        ),
        ("recursive union", tree, nested(100), invalid),
        ("deep recursion", deep, nested(100), invalid),
        (
            "400 wrong items of 500 alternatives",
            items(&json!({"anyOf": union})),
            rows(&json!(1), 400),
            invalid,
        ),
        (
            "10,000 wrong items of 500 alternatives",
            items(&json!({"anyOf": union})),
            rows(&json!(1), 10_000),
            invalid,
        ),
        (
            "a million wrong items",
            items(&json!({"type": "string"})),
            rows(&json!(1), 1_000_000),
            invalid,
        ),
        ("90,000 wrong items", items(&json!({"type": "string"})), rows(&json!(1), 90_000), invalid),
        ("90,000 right items", items(&json!({"type": "integer"})), rows(&json!(1), 90_000), None),
        (
            "rows without 500 names",
            items(&json!({"required": names})),
            rows(&json!({}), 5_000),
            invalid,
        ),
        (
            "unevaluated members",
            json!({"type": "object", "anyOf": unevaluated, "unevaluatedProperties": false}),
            members.into(),
            invalid,
        ),
        ("200,000 unknown members", closed, many.into(), invalid),
        ("a slow pattern", pattern("((a|b|c|[^d]){40}){40}z"), text(100_000), invalid),
        (
            "the slowest pattern for its text",
            pattern("((a|b|c|[^d]){25}){25}z"),
            text(300),
            invalid,
        ),
        (
            "a large enumeration",
            items(&json!({"enum": enumeration})),
            rows(&json!(format!("{}x", "e".repeat(20))), 1_500),
            invalid,
        ),
        ("different items", unique.clone(), json!({ "a": different }), None),
        ("a long text", pattern("^[A-Za-z0-9+/=]+$"), text(500_000), None),
    ]
}

/// Counts while it can: nothing is counted while a call keeps the only thread.
struct Heartbeat {
    beats: Arc<AtomicUsize>,
    end: CancellationToken,
}

impl Heartbeat {
    fn begin() -> Self {
        let (beats, end) = (Arc::<AtomicUsize>::default(), CancellationToken::new());
        let (counted, ended) = (Arc::clone(&beats), end.clone());
        tokio::spawn(async move {
            while !ended.is_cancelled() {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Self { beats, end }
    }

    fn count(&self) -> usize {
        self.beats.load(Ordering::Relaxed)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

#[test]
fn no_arguments_take_long_for_a_schema_that_is_offered() {
    for (what, schema, args, code) in laborious() {
        let engine = offering([tool_of("hub:evil", "t", schema)]);
        let (result, cost) = measured(once(&engine, "t", args));
        assert_eq!(result.code, code, "{what}: {}", result.value);
        assert!(result.value.chars().count() < 12_000, "{what}: {}", result.value);
        cost.is_bounded(what, MOST_MIB);
    }
}

#[tokio::test]
async fn other_tasks_run_on_the_same_thread_while_arguments_are_validated() {
    let schema = items(&json!({"anyOf": vec![json!({"type": "string"}); 200]}));
    let engine = offering([tool_of("hub:evil", "t", schema)]);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let heart = Heartbeat::begin();
    let calls = vec![call("t", rows(&json!(1), 4_000)), call("t", rows(&json!(1), 4_000))];
    let executing = iteration.execute(calls);
    tokio::task::yield_now().await;
    let before = heart.count();
    let results = executing.await;
    assert!(results.iter().all(|result| result.code == Some(ErrorCode::InputInvalid)));
    assert!(heart.count() > before, "nothing ran while the calls were validated");
}

#[tokio::test]
async fn other_tasks_run_on_the_same_thread_while_a_large_catalog_is_checked() {
    let properties = |tool: usize| -> Map<_, _> {
        let pattern =
            |at| json!({"type": "string", "pattern": format!("^[a-z]{{1,20}}{tool}x{at}$")});
        (0..40).map(|at| (format!("p{at}"), pattern(at))).collect()
    };
    let tools = (0..50).map(|at| {
        let schema = json!({"type": "object", "properties": properties(at)});
        tool_of("hub:evil", &format!("t{at}"), schema)
    });
    let engine = engine().provider(static_tools(tools)).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let heart = Heartbeat::begin();
    tokio::task::yield_now().await;
    let before = heart.count();
    assert_eq!(menu(&turn.iteration().await.unwrap()).len(), 50);
    assert!(heart.count() > before, "nothing ran while the schemas were checked");
}

/// Few arguments that take a while to validate, and fit.
fn slow() -> (Value, Value) {
    let mut union = vec![json!({"type": "string", "minLength": 1}); 200];
    union.push(json!({"type": "integer"}));
    (items(&json!({ "anyOf": union })), rows(&json!(1), 2_000))
}

#[tokio::test]
async fn one_source_does_not_keep_the_calls_of_another_waiting() {
    let (schema, args) = slow();
    let engine = offering([
        tool_of("hub:evil", "evil", schema.clone()),
        tool_of("hub:good", "good", schema),
    ]);
    let done = Arc::<AtomicUsize>::default();
    let mut evil = JoinSet::new();
    for _ in 0..30 {
        let (engine, args, done) = (engine.clone(), args.clone(), Arc::clone(&done));
        evil.spawn(async move {
            assert!(once(&engine, "evil", args).await.is_ok());
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    // All of them are on their way before the other begins.
    tokio::task::yield_now().await;
    assert!(once(&engine, "good", args).await.is_ok());
    let before = done.load(Ordering::Relaxed);
    assert!(before < 25, "{before} calls of the other source went first");
    while evil.join_next().await.transpose().unwrap().is_some() {}
}

#[tokio::test]
async fn a_call_that_waits_for_validation_ends_when_it_is_cancelled() {
    let (schema, args) = slow();
    let engine = offering([tool_of("hub:evil", "t", schema)]);
    let cancellation = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancellation.clone());
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let calls = vec![call("t", args); 64];
    let cancelling = async {
        tokio::task::yield_now().await;
        cancellation.cancel();
    };
    let (results, ()) = tokio::join!(iteration.execute(calls), cancelling);
    let cancelled = |result: &&toolcrib_core::ToolResult| result.code == Some(ErrorCode::Cancelled);
    assert!(results.iter().filter(cancelled).count() > 32);
}

#[tokio::test]
async fn a_call_that_waits_for_validation_ends_at_its_deadline() {
    let (schema, args) = slow();
    let late = builder("t").origin("hub:evil").timeout(Duration::from_millis(1));
    let engine = offering([says(late.input_schema(schema), "ran")]);
    let results = crate::support::batch(&engine, vec![call("t", args); 64]).await;
    let late = results.iter().filter(|result| result.code == Some(ErrorCode::Timeout));
    assert!(late.count() > 32);
    assert!(results[63].value.contains("was not called"), "{}", results[63].value);
}

/// Large schemas as they are in use.
fn honest() -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    let lists = [
        include_str!("../../../../toolcrib-lint/tests/lint/real/fetch.json"),
        include_str!("../../../../toolcrib-lint/tests/lint/real/filesystem.json"),
        include_str!("../../../../toolcrib-lint/tests/lint/real/git.json"),
    ];
    for text in lists {
        let list: Value = serde_json::from_str(text).unwrap();
        let tools = list.get("tools").or_else(|| list.pointer("/result/tools")).unwrap_or(&list);
        for tool in tools.as_array().unwrap() {
            let schema = tool.get("inputSchema").or_else(|| tool.get("input_schema")).unwrap();
            all.push((tool["name"].to_string(), schema.clone()));
        }
    }
    assert!(all.len() > 20, "{}", all.len());
    let blocks: Vec<_> = (0..60).map(|at| json!({"$ref": format!("#/$defs/block{at}")})).collect();
    let mut defs: Map<_, _> = (0..60)
        .map(|at| {
            let children = json!({"type": "array", "items": {"anyOf": blocks}});
            let text = json!({"allOf": [{"$ref": "#/$defs/text"}, {"maxLength": 2000}]});
            let block = json!({
                "type": "object",
                "properties": {"type": {"const": format!("b{at}")}, "text": text, "children": children},
                "required": ["type"],
                "unevaluatedProperties": false,
            });
            (format!("block{at}"), block)
        })
        .collect();
    let text = json!({"type": "string", "pattern": "^[^<>]{0,900}$", "format": "uri"});
    defs.insert("text".into(), text);
    let page = json!({
        "$id": "https://example.com/page.json",
        "type": "object",
        "properties": {
            "page": {"type": "array", "items": {"oneOf": blocks}},
            "schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            "country": {"enum": (0..250).map(|at| format!("c{at}")).collect::<Vec<_>>()},
            "id": {"pattern": "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$"},
            "slug": {"pattern": r"^[\w-]{1,100}$", "type": "string"},
        },
        "$defs": defs,
    });
    all.push(("a page of 60 kinds of blocks".to_owned(), page));
    let expression = json!({
        "type": "object",
        "properties": {"filter": {"$dynamicRef": "#filter"}},
        "$defs": {"filter": {
            "$dynamicAnchor": "filter",
            "oneOf": [
                {"type": "object", "properties": {
                    "and": {"type": "array", "items": {"$dynamicRef": "#filter"}},
                    "or": {"type": "array", "items": {"$dynamicRef": "#filter"}},
                    "not": {"$dynamicRef": "#filter"},
                }},
                {"type": "string"},
            ],
        }},
    });
    all.push(("a filter".to_owned(), expression));
    all
}

#[test]
fn schemas_that_are_in_use_are_not_taken_for_too_much_work() {
    for (name, schema) in honest() {
        check_schema(&schema).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    }
}

#[tokio::test]
async fn arguments_of_an_ordinary_size_are_validated_in_full() {
    let schema = honest().into_iter().rev().nth(1).unwrap().1;
    let engine = offering([tool_of("hub:notes", "t", schema)]);
    let block = |text: &str| json!({"type": "b7", "text": text, "children": [{"type": "b8"}]});
    let page: Vec<_> = (0..100).map(|at| block(&format!("https://example.com/{at}"))).collect();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let fits = json!({"page": page, "country": "c7", "slug": "a-b", "schema": schema});
    let result = once(&engine, "t", fits).await;
    assert!(result.is_ok(), "{}", result.value);
    let misfit = json!({"page": [{"type": "b8"}, {"type": "b61"}], "slug": "a b"});
    let text = once(&engine, "t", misfit).await.value;
    assert!(text.contains("`slug`: ") && text.contains("`page.1.type`: "), "{text}");
}

#[tokio::test]
async fn a_problem_with_many_names_is_told_in_few_words() {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let engine = offering([tool_of("hub:evil", "t", schema)]);
    let args: Map<_, _> = (0..5_000).map(|at| (format!("n{at}"), json!(at))).collect();
    let text = once(&engine, "t", args.into()).await.value;
    assert!(text.contains("and 4990 more: there is no such argument"), "{text}");
}

#[test]
fn a_result_took_the_only_thread_while_it_was_held_against_its_schema() {
    let result = json!({ "c": nested(24), "text": "<|im_start|>" });
    let tool = builder("t")
        .origin("hub:evil")
        .untrusted()
        .output_schema(doubling_inside("anyOf", 24))
        .handler(move |_: Value, _: ToolContext| {
            let output = ToolOutput::text("done").structured(result.clone());
            async move { output }
        })
        .unwrap();
    let engine = offering([tool]);
    let (result, cost) = measured(once(&engine, "t", json!({})));
    assert_eq!(result.code, Some(ErrorCode::OutcomeUnknown), "{}", result.value);
    cost.is_bounded("a result", MOST_MIB);
}

#[test]
fn a_reference_to_another_document_was_withheld_in_words_of_a_library() {
    for (reference, reason) in [
        ("http://json-schema.org/draft-07/schema", "refers to another document"),
        ("http://json-schema.org/nothing", "refers to another document"),
        ("https://example.com/other.json#/$defs/a", "are not fetched"),
        ("other.json", "are not fetched"),
    ] {
        let schema = json!({ "type": "object", "properties": { "a": { "$ref": reference } } });
        let problem = check_schema(&schema).unwrap_err();
        assert!(problem.contains(reason), "{reference}: {problem}");
        assert!(!problem.contains("registry"), "{reference}: {problem}");
    }
}
