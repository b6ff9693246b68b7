//! Artifacts in an engine: truncated results are stored, and readable by the engine's tools.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_artifacts::{Artifacts, CallArtifacts, MemoryStore};
use toolcrib_core::{
    ArtifactEntry, ArtifactPolicy, ArtifactStore, ArtifactStoreError, CancellationToken,
    ContentBlock, ErrorCode, Events, Identity, Policy, PolicyDefault, Reducer, ReducerContext,
    ReliabilityAction, ReliabilityRule, Retry, Rule, Stage, StoreWriter, StoredBytes, Tool,
    ToolBuilder, ToolCall, ToolContext, ToolError, ToolName, ToolOutput, ToolResult, unfence,
};
use toolcrib_engine::{Engine, EngineBuilder, Limits, Redactor, Turn, TurnOptions};

use crate::keeping::disk_of;

const SECRET: &str = "hunter2hunter2";

fn builder(name: &str) -> ToolBuilder {
    Tool::builder(name).description("A tool of the tests.")
}

fn says(builder: ToolBuilder, output: impl Into<ToolOutput>) -> Tool {
    let output = output.into();
    builder
        .handler(move |_: Value, _: ToolContext| {
            let output = output.clone();
            async move { output }
        })
        .unwrap()
}

/// An engine whose batches have this budget in characters.
fn engine(chars: usize) -> EngineBuilder {
    let limits = Limits { batch_result_chars: chars, ..Limits::default() };
    Engine::builder().redactor(Redactor::new([SECRET.to_owned()])).limits(limits)
}

fn turn(engine: &Engine) -> Turn {
    turn_of(engine, "anna")
}

fn turn_of(engine: &Engine, principal: &str) -> Turn {
    engine.turn(TurnOptions::default().principal(principal).conversation("c1")).unwrap()
}

async fn call(turn: &mut Turn, id: &str, name: &str, args: Value) -> ToolResult {
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new(id, name, args)]).await.remove(0)
}

/// The events with this name, in order.
fn told(events: &Events, pattern: &str) -> Arc<Mutex<Vec<Value>>> {
    let told = Arc::<Mutex<Vec<Value>>>::default();
    let writer = Arc::clone(&told);
    events
        .on(pattern, move |event| {
            writer.lock().unwrap().push(serde_json::to_value(event).unwrap());
        })
        .unwrap();
    told
}

/// The model's text without its fence.
fn inside(result: &ToolResult) -> &str {
    unfence(&result.text).0
}

#[tokio::test]
async fn what_is_cut_is_kept_and_the_marker_says_how_to_read_on() {
    let log: String = (1..=2_000).map(|n| format!("line {n}\n")).collect();
    let engine = engine(2_000)
        .tool(says(builder("read_log"), ToolOutput::text(log.clone())))
        .artifacts(Artifacts::new(MemoryStore::new()))
        .build()
        .unwrap();
    let mut turn = turn(&engine);
    let cut = call(&mut turn, "call_1", "read_log", json!({})).await;
    assert_eq!(cut.text.chars().count(), 2_000);
    let (head, marker) = cut.text.rsplit_once('\n').unwrap();
    assert_eq!(marker, "[truncated — 18893 chars total; the rest: artifact_read call_1]");
    assert!(log.starts_with(head));

    let args = json!({ "id": "call_1", "bytes": { "from": head.len() } });
    let read = call(&mut turn, "call_2", "artifact_read", args).await;
    let rest = inside(&read).rsplit_once('\n').unwrap().0;
    assert!(log[head.len()..].starts_with(rest) && rest.len() > 1_000, "{rest}");
    assert!(read.untrusted && read.text.starts_with("<untrusted tool=\"artifact_read\""));
    assert!(!read.text.contains("[truncated"), "it fits, and is not cut again");

    let args = json!({ "id": "call_1", "pattern": "^line 1999$" });
    let found = call(&mut turn, "call_3", "artifact_search", args).await;
    assert_eq!(inside(&found), "1999:line 1999");
    let args = json!({ "id": "call_1", "query": "tail", "args": { "n": 2 } });
    let asked = call(&mut turn, "call_4", "artifact_query", args).await;
    assert_eq!(inside(&asked), "line 2000\n");
}

/// Removes some lines, and leaves the rest of an output unchanged.
struct Without(&'static str);

impl Reducer for Without {
    fn tool_name(&self) -> &str {
        "read_log"
    }

    fn reduce(&self, output: ToolOutput, _: ReducerContext<'_>) -> ToolOutput {
        let lines: Vec<_> = output.value.lines().filter(|line| !line.contains(self.0)).collect();
        ToolOutput { value: lines.join("\n"), ..output }
    }
}

#[tokio::test]
async fn what_a_reducer_took_out_is_not_kept() {
    for (unwanted, expected) in [("DEBUG", "warn\nwarn"), ("TRACE", "warn\nDEBUG\nwarn\n\n")] {
        let output = ToolOutput::text("warn\nDEBUG\nwarn").original(&b"warn\nDEBUG\nwarn\n\n"[..]);
        let store = MemoryStore::new();
        let engine = engine(2_000)
            .tool(says(builder("read_log").artifact_policy(ArtifactPolicy::Always), output))
            .reducer(Without(unwanted))
            .artifacts(Artifacts::new(store.clone()))
            .build()
            .unwrap();
        let mut turn = turn(&engine);
        call(&mut turn, "call_1", "read_log", json!({})).await;
        let read = call(&mut turn, "call_2", "artifact_read", json!({ "id": "call_1" })).await;
        assert_eq!(inside(&read), expected);
    }
}

#[tokio::test]
async fn an_answer_about_an_artifact_is_never_one_again() {
    let store = MemoryStore::new();
    let engine = engine(600)
        .tool(says(builder("t"), ToolOutput::text("x y ".repeat(5_000))))
        .artifacts(Artifacts::new(store.clone()))
        .build()
        .unwrap();
    let mut turn = turn(&engine);
    call(&mut turn, "call_1", "t", json!({})).await;
    for (name, args) in [
        ("artifact_read", json!({ "id": "call_1" })),
        ("artifact_search", json!({ "id": "call_1", "pattern": "x" })),
        ("artifact_query", json!({ "id": "call_1" })),
    ] {
        let result = call(&mut turn, "call_2", name, args).await;
        assert!(result.is_ok() && result.text.chars().count() <= 600, "{name}");
    }
    // Not even if their minimal texts do not fit.
    let mut iteration = turn.iteration().await.unwrap();
    let args = json!({ "id": "call_1" });
    let calls = (0..8).map(|n| ToolCall::new(format!("c{n}"), "artifact_read", args.clone()));
    let results = iteration.execute(calls.collect()).await;
    assert!(results.iter().any(|result| result.text.contains("the rest was not kept")));
    let owner = Identity { principal: Some("anna".into()), ..Identity::conversation("c1") };
    assert_eq!(store.entries(&owner).unwrap().len(), 1);
}

#[tokio::test]
async fn data_over_its_cap_names_the_artifact_that_has_it() {
    let rows: Vec<_> = (0..200).map(|n| json!({ "id": n, "key": SECRET })).collect();
    let data = json!({ "rows": rows });
    let engine = engine(1_000)
        .tool(says(builder("both"), ToolOutput::json(data.clone())))
        .tool(says(builder("data_alone"), ToolOutput::text("200 rows").structured(data)))
        .artifacts(Artifacts::new(MemoryStore::new()))
        .build()
        .unwrap();
    let mut turn = turn(&engine);
    for (id, name) in [("call_1", "both"), ("call_2", "data_alone")] {
        let result = call(&mut turn, id, name, json!({})).await;
        let data = result.structured.clone().unwrap();
        let chars = data["chars"].as_u64().unwrap();
        assert_eq!(data, json!({ "truncated": true, "chars": chars, "artifact": id }), "{name}");
        let args = json!({
            "id": id, "query": "slice", "args": { "at": "/rows", "start": 199 },
        });
        let row = call(&mut turn, "later", "artifact_query", args).await;
        assert_eq!(inside(&row), "{\"id\":199,\"key\":\"[redacted]\"}");
        if name == "data_alone" {
            assert_eq!(&*result.text, "200 rows", "what fits is as it was");
        }
    }
}

#[tokio::test]
async fn a_result_within_its_cap_is_not_kept() {
    let store = MemoryStore::new();
    let data = json!({ "rows": "é".repeat(985) });
    assert_eq!(data.to_string().chars().count(), 996);
    let engine = engine(1_000)
        .tool(says(builder("text"), ToolOutput::text("é".repeat(1_000))))
        .tool(says(builder("data"), ToolOutput::text("rows").structured(data.clone())))
        .tool(says(builder("cut"), ToolOutput::text("é".repeat(1_001)).structured(json!([1]))))
        .artifacts(Artifacts::new(store.clone()))
        .build()
        .unwrap();
    let mut turn = turn(&engine);
    assert_eq!(&*call(&mut turn, "1", "text", json!({})).await.text, "é".repeat(1_000));
    assert_eq!(call(&mut turn, "2", "data", json!({})).await.structured, Some(data));
    assert_eq!(store.entries(turn.identity()).unwrap(), []);
    let cut = call(&mut turn, "3", "cut", json!({})).await;
    assert_eq!(cut.structured, Some(json!([1])));
    let kept = store.entries(turn.identity()).unwrap();
    assert_eq!(kept.iter().map(|entry| entry.note.chars).collect::<Vec<_>>(), [1_001]);
}

#[tokio::test]
async fn a_tool_that_asks_for_it_gives_a_handle_whatever_its_size() {
    let output = ToolOutput::text(format!("id,key\n1,{SECRET}\n"))
        .block(ContentBlock::text("note:1", "a note"))
        .block(ContentBlock::image("image/png", vec![1, 2, 3]));
    let tool =
        builder("export").artifact_policy(ArtifactPolicy::Always).artifact_kind("csv").untrusted();
    let engine = engine(80_000)
        .tool(says(tool, output))
        .artifacts(Artifacts::new(MemoryStore::new()))
        .build()
        .unwrap();
    let mut turn = turn(&engine);
    let result = call(&mut turn, "call_1", "export", json!({})).await;
    insta::assert_snapshot!(inside(&result), @r"
    [artifact call_1: csv, 68 bytes, 6 lines; read on with artifact_read, artifact_search or artifact_query]
    id,key
    1,[redacted]

    [text note:1]
    a note
    [image image/png, 3 bytes]
    ");
    assert_eq!(result.blocks.len(), 1, "the image comes along");
    let args = json!({ "id": "call_1", "query": "columns" });
    let asked = call(&mut turn, "call_2", "artifact_query", args).await;
    assert_eq!(inside(&asked), "0: id\n1: key");
}

#[tokio::test]
async fn a_long_error_is_kept_too() {
    let fails = builder("fails")
        .handler(|_: Value, _: ToolContext| async {
            Err::<String, _>(ToolError::failed(format!("{}the end", "why ".repeat(1_000))))
        })
        .unwrap();
    let engine =
        engine(800).tool(fails).artifacts(Artifacts::new(MemoryStore::new())).build().unwrap();
    let mut turn = turn(&engine);
    let result = call(&mut turn, "call_1", "fails", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
    assert!(result.text.ends_with("the rest: artifact_read call_1]"), "{}", result.text);
    let args = json!({ "id": "call_1", "pattern": "the end$" });
    let found = call(&mut turn, "call_2", "artifact_search", args).await;
    assert!(inside(&found).ends_with("the end"));
}

#[tokio::test]
async fn a_body_makes_artifacts_of_what_it_does_not_hold() {
    let export = builder("export")
        .untrusted()
        .blocking(|_: Value, cx: ToolContext| {
            let mut writer = cx.handle::<CallArtifacts>()?.writer()?;
            for n in 0..5_000 {
                writer.write(format!("{n} hunter2").as_bytes());
                writer.write(b"hunter2\n");
            }
            Ok::<_, ToolError>(writer.finish()?.handle())
        })
        .unwrap();
    let with = engine(5_000).tool(export.clone());
    let engine = with.artifacts(Artifacts::new(MemoryStore::new())).build().unwrap();
    let mut turn = turn(&engine);
    let result = call(&mut turn, "call_1", "export", json!({})).await;
    assert!(inside(&result).starts_with("[artifact call_1: text, 78890 bytes, 5001 lines"));
    let args = json!({ "id": "call_1", "tail": 1 });
    let read = call(&mut turn, "call_2", "artifact_read", args).await;
    assert_eq!(inside(&read), "4999 [redacted]");
    // Without an artifact port there is only the text.
    let without = self::engine(5_000).tool(export).build().unwrap();
    let result = call(&mut self::turn(&without), "c", "export", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
}

#[tokio::test]
async fn when_the_disk_is_full_beginning_and_end_are_left_and_the_marker_says_so() {
    let text: String = (100..1_100).map(|n| format!("{n}é\n")).collect();
    let total = text.chars().count();
    let engine = engine(1_000)
        .tool(says(builder("t"), ToolOutput::text(text.clone()).cost(0.5)))
        .artifacts(Artifacts::new(disk_of(0)))
        .build()
        .unwrap();
    let events = Events::new();
    let told = told(&events, "artifact.*");
    let options = TurnOptions::default().events(events);
    let result = call(&mut engine.turn(options).unwrap(), "call_1", "t", json!({})).await;
    assert!(result.is_ok() && result.cost_usd == Some(0.5));
    let marker =
        format!("\n[truncated — {total} chars total; the rest was not kept: the disk is full]");
    let (head, tail) = result.text.strip_suffix(&marker).unwrap().split_once("\n[…]\n").unwrap();
    assert!(text.starts_with(head) && head.len() > 600, "{}", result.text);
    assert!(text.ends_with(tail) && tail.len() > 300, "{}", result.text);
    assert_eq!(result.text.chars().count(), 1_000);
    assert_eq!((result.produced_chars, result.artifacts.len()), (total as u64, 0));
    let told = told.lock().unwrap();
    let [not_kept] = &told[..] else { panic!("{told:?}") };
    assert_eq!(not_kept["type"], "artifact.not_kept");
    assert_eq!((&not_kept["tool"], &not_kept["call_id"]), (&json!("t"), &json!("call_1")));
    let cause = result.cause.unwrap();
    assert!(cause.starts_with("the result was not kept: the disk is full: "), "{cause}");
}

#[tokio::test]
async fn kept_artifacts_are_reported_and_counted() {
    let large = says(builder("large"), ToolOutput::text("é\n".repeat(2_000)));
    let asks = builder("asks").artifact_policy(ArtifactPolicy::Always);
    let asks = says(asks, ToolOutput::text("small"));
    let export = builder("export")
        .blocking(|_: Value, cx: ToolContext| {
            let artifacts = cx.handle::<CallArtifacts>()?;
            let mut handles = String::new();
            for part in ["[1]", "{}"] {
                let mut writer = artifacts.writer()?;
                writer.write(part.as_bytes());
                handles += &writer.finish()?.handle();
            }
            // An unfinished artifact is discarded.
            artifacts.writer()?.write(b"never");
            Ok::<_, ToolError>(handles)
        })
        .unwrap();
    let engine = engine(2_000)
        .tools([large, asks, export])
        .artifacts(Artifacts::new(MemoryStore::new()))
        .build()
        .unwrap();
    let events = Events::new();
    let told = told(&events, "*");
    let mut turn = engine.turn(TurnOptions::default().events(events)).unwrap();
    let mut counted = Vec::new();
    for (id, name) in [("1", "large"), ("2", "asks"), ("3", "export"), ("4", "artifact_read")] {
        let args = if id == "4" { json!({ "id": "1" }) } else { json!({}) };
        let result = call(&mut turn, id, name, args).await;
        let ids: Vec<_> = result.artifacts.iter().map(ToString::to_string).collect();
        counted.push((result.produced_chars, ids.join(" ")));
    }
    let counted: Vec<_> = counted.iter().map(|(chars, ids)| (*chars, ids.as_str())).collect();
    assert_eq!(counted, [(4_000, "1"), (5, "2"), (5, "3 3.2"), (0, "")]);
    let told = told.lock().unwrap();
    let lines: Vec<_> = told
        .iter()
        .filter_map(|event| match event["type"].as_str().unwrap() {
            "artifact.kept" => Some(format!(
                "{} of {} {}: {}, {} bytes, {} lines, {} chars",
                event["id"],
                event["tool"],
                event["call_id"],
                event["kind"],
                event["bytes"],
                event["lines"],
                event["chars"],
            )),
            "tool.end" => Some(format!("end of {}", event["tool"])),
            _ => None,
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    "1" of "large" "1": "text", 6000 bytes, 2001 lines, 4000 chars
    end of "large"
    "2" of "asks" "2": "text", 5 bytes, 1 lines, 5 chars
    end of "asks"
    "3" of "export" "3": "json", 3 bytes, 1 lines, 3 chars
    "3.2" of "export" "3": "json", 2 bytes, 1 lines, 2 chars
    end of "export"
    end of "artifact_read"
    "#);
}

#[tokio::test]
async fn only_the_artifacts_of_the_last_attempt_count() {
    let attempts = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&attempts);
    let export = builder("export")
        .read_only()
        .idempotent()
        .artifact_policy(ArtifactPolicy::Always)
        .blocking(move |_: Value, cx: ToolContext| {
            let mut attempts = counted.lock().unwrap();
            *attempts += 1;
            if *attempts > 1 {
                return Ok("all of it".to_owned());
            }
            let mut writer = cx.handle::<CallArtifacts>()?.writer()?;
            writer.write(b"half of it, of an attempt that failed");
            writer.finish()?;
            Err(ToolError::new(ErrorCode::NotAvailable, "not yet"))
        })
        .unwrap();
    let rule =
        ReliabilityRule::new(ReliabilityAction::Retry(Retry::attempts(3))).stage(Stage::Tool);
    let engine = engine(2_000)
        .tool(export)
        .reliability([rule])
        .artifacts(Artifacts::new(MemoryStore::new()))
        .build()
        .unwrap();
    let events = Events::new();
    let told = told(&events, "artifact.*");
    let mut turn = engine.turn(TurnOptions::default().events(events)).unwrap();
    let result = call(&mut turn, "c", "export", json!({})).await;
    assert_eq!(*attempts.lock().unwrap(), 2, "{result:?}");
    assert!(inside(&result).starts_with("[artifact c.2: text, 9 bytes"), "{}", result.text);
    assert_eq!((result.produced_chars, &*result.artifacts), (9, &["c.2".into()][..]));
    let told: Vec<_> = told.lock().unwrap().iter().map(|event| event["id"].clone()).collect();
    assert_eq!(told, ["c", "c.2"], "the first was kept as well");
}

#[tokio::test]
async fn an_artifact_that_a_body_cannot_keep_is_reported() {
    let export = builder("export")
        .blocking(|_: Value, cx: ToolContext| {
            let mut writer = cx.handle::<CallArtifacts>()?.writer()?;
            writer.write(&[b'x'; 100]);
            Ok::<_, ToolError>(writer.finish().unwrap_err().text())
        })
        .unwrap();
    let engine = engine(2_000).tool(export).artifacts(Artifacts::new(disk_of(10))).build().unwrap();
    let events = Events::new();
    let told = told(&events, "artifact.*");
    let mut turn = engine.turn(TurnOptions::default().events(events)).unwrap();
    assert!(call(&mut turn, "c", "export", json!({})).await.is_ok());
    let told = told.lock().unwrap();
    let [not_kept] = &told[..] else { panic!("{told:?}") };
    let error = not_kept["error"].as_str().unwrap();
    assert!(error.starts_with("the result was not kept: the disk is full: "), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_holds_up_no_call_that_is_cancelled() {
    let (release, hangs) = std::sync::mpsc::channel();
    let (asks, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let store = Hanging(Mutex::new(hangs), asks);
    let engine = engine(1_000)
        .tool(says(builder("t"), ToolOutput::text("x".repeat(5_000))))
        .artifacts(Artifacts::new(store))
        .build()
        .unwrap();
    let cancellation = CancellationToken::new();
    let options = TurnOptions::default().conversation("c").cancellation(cancellation.clone());
    let mut turn = engine.turn(options).unwrap();
    let ending = tokio::spawn(async move {
        asked.recv().await.unwrap();
        cancellation.cancel();
    });
    let result = call(&mut turn, "c", "t", json!({})).await;
    let marker = "the rest was not kept: the call was cancelled]";
    assert!(result.text.ends_with(marker), "{}", result.text);
    ending.await.unwrap();
    drop(release);
}

/// A disk that does not respond until it is released.
struct Hanging(Mutex<std::sync::mpsc::Receiver<()>>, tokio::sync::mpsc::UnboundedSender<()>);

impl ArtifactStore for Hanging {
    fn create(&self, _: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        self.1.send(()).unwrap();
        let _ = self.0.lock().unwrap().recv();
        Err(ArtifactStoreError::Over)
    }

    fn open(&self, _: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        Err(ArtifactStoreError::Unknown { id: id.into() })
    }

    fn entries(&self, _: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        Ok(Vec::new())
    }

    fn remove(&self, _: &Identity, _: &str) -> Result<(), ArtifactStoreError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_conversation_without_a_name_ends_with_its_turn_and_so_does_what_it_kept() {
    let store = MemoryStore::new();
    let engine = engine(1_000)
        .tool(says(builder("t"), ToolOutput::text("x".repeat(5_000))))
        .artifacts(Artifacts::new(store.clone()))
        .build()
        .unwrap();
    let named = || TurnOptions::default().conversation("c");
    for (options, left) in [
        (TurnOptions::default(), 0),
        (named(), 1),
        (TurnOptions::default(), 0),
        (named(), 2),
        (named().ends_conversation(), 0),
    ] {
        let mut turn = engine.turn(options).unwrap();
        let owner = turn.identity().as_ref().clone();
        let result = call(&mut turn, "call_1", "t", json!({})).await;
        assert_eq!(result.artifacts.len(), 1);
        assert!(!store.entries(&owner).unwrap().is_empty());
        drop(turn);
        assert_eq!(store.entries(&owner).unwrap().len(), left, "{owner:?}");
    }
}

#[tokio::test]
async fn the_tools_are_offered_last_and_the_menu_does_not_change_with_what_is_kept() {
    let large = says(builder("t"), ToolOutput::text("x".repeat(5_000)));
    let provided = toolcrib_core::static_tools([says(builder("provided"), ToolOutput::text("y"))]);
    let engine = engine(1_000)
        .artifacts(Artifacts::new(MemoryStore::new()))
        .tool(large)
        .provider(provided)
        .build()
        .unwrap();
    let mut turn = turn(&engine);
    let iteration = turn.iteration().await.unwrap();
    let names: Vec<_> = iteration.menu().names().map(ToString::to_string).collect();
    assert_eq!(names, ["t", "provided", "artifact_read", "artifact_search", "artifact_query"]);
    let before = iteration.menu().fingerprint();
    drop(iteration);
    call(&mut turn, "call_1", "t", json!({})).await;
    assert_eq!(turn.iteration().await.unwrap().menu().fingerprint(), before);
}

#[tokio::test]
async fn only_rules_that_name_them_judge_the_tools() {
    let policy =
        |rules: Vec<Rule>| Policy { rules, default: PolicyDefault::Deny, ..Policy::default() };
    let offered = async |policy: Policy| {
        let artifacts = Artifacts::new(MemoryStore::new());
        let engine = engine(1_000).artifacts(artifacts).policy(policy).build().unwrap();
        let mut turn = turn(&engine);
        let iteration = turn.iteration().await.unwrap();
        iteration.menu().names().map(ToString::to_string).collect::<Vec<_>>()
    };
    let all = ["artifact_read", "artifact_search", "artifact_query"];
    assert_eq!(offered(policy(vec![])).await, all);
    assert_eq!(offered(policy(vec![Rule::deny("all").tools(["artifact_*"])])).await, all);
    assert_eq!(
        offered(policy(vec![Rule::deny("one").tools(["artifact_search"])])).await,
        ["artifact_read", "artifact_query"]
    );
}

#[tokio::test]
async fn what_is_kept_for_one_principal_does_not_exist_for_another() {
    let engine = engine(1_000)
        .tool(says(builder("t"), ToolOutput::text("x".repeat(5_000))))
        .artifacts(Artifacts::new(MemoryStore::new()))
        .build()
        .unwrap();
    call(&mut turn_of(&engine, "anna"), "hers", "t", json!({})).await;
    let mut ben = turn_of(&engine, "ben");
    let mut said = Vec::new();
    for id in ["hers", "nobodys"] {
        let result = call(&mut ben, "c", "artifact_read", json!({ "id": id })).await;
        assert_eq!(result.code, Some(ErrorCode::InputInvalid));
        said.push(inside(&result).replace(id, "ID"));
    }
    assert_eq!(said[0], said[1]);
    // A later turn of the same identity still reads it.
    let mut later = turn_of(&engine, "anna");
    assert!(call(&mut later, "c", "artifact_read", json!({ "id": "hers" })).await.is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Head and artifact are the redacted text, for any text and any room.
    #[test]
    fn what_is_read_and_what_is_kept_are_the_redacted_text(
        parts in prop::collection::vec(
            prop::sample::select(vec!["word ", "é", "\n", "{\"a\": [1,", SECRET, "\u{1b}[31m", "🙂"]),
            0..400,
        ),
        chars in 100_usize..1_500,
        untrusted: bool,
    ) {
        let text = parts.concat();
        let redacted = Redactor::new([SECRET.to_owned()]).text(&text).into_owned();
        let store = MemoryStore::new();
        let tool = if untrusted { builder("t").untrusted() } else { builder("t") };
        let engine = engine(chars)
            .tool(says(tool, ToolOutput::text(text)))
            .artifacts(Artifacts::new(store.clone()))
            .build()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let result = runtime.block_on(call(&mut turn(&engine), "call_1", "t", json!({})));
        prop_assert!(result.text.chars().count() <= chars);
        let owner =
            Identity { principal: Some("anna".into()), ..Identity::conversation("c1") };
        match store.open(&owner, "call_1") {
            Ok(kept) => {
                let mut bytes = vec![0; usize::try_from(kept.entry.bytes).unwrap()];
                kept.reader.read_at(0, &mut bytes).unwrap();
                prop_assert_eq!(String::from_utf8(bytes).unwrap(), redacted.clone());
                prop_assert!(result.value.contains("[truncated — "));
                if !untrusted {
                    let head = result.value.rsplit_once("[truncated — ").unwrap().0;
                    prop_assert!(redacted.starts_with(head.strip_suffix('\n').unwrap_or(head)));
                }
            }
            Err(_) => {
                if !untrusted {
                    prop_assert_eq!(&*result.value, &redacted);
                }
            }
        }
    }
}

#[test]
fn a_marker_with_an_id_fits_where_the_shortest_cap_is() {
    let id = format!("{}.10000", "x".repeat(32));
    let marker = format!("[truncated — 1000000000 chars total; the rest: artifact_read {id}]");
    assert!(marker.chars().count() <= ToolBuilder::MIN_RESULT_CHARS);
    assert!(ToolName::new("artifact_read").is_ok());
}
