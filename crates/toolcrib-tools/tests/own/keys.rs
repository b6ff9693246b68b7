//! Keys and values, and the agent's own files, of tools in Rust.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use toolcrib_capabilities::{
    HostCapabilities,
    files::{Storage, StorageArea},
};
use toolcrib_core::{
    Capabilities, ErrorCode, InvalidToolError, KvScope, Tool, ToolContext, ToolError, static_tools,
};
use toolcrib_engine::{Engine, Personality};
use toolcrib_store::SqliteStore;

use crate::support::{Agent, call, options};

/// Counts its calls in a scope.
fn counter(name: &str, scope: KvScope) -> Result<Tool, InvalidToolError> {
    Tool::builder(name)
        .description("Counts.")
        .capabilities(Capabilities::none().kv([scope]))
        .handler(move |_: Value, cx: ToolContext| async move {
            let kv = cx.kv(scope)?;
            let count = kv.update("count", |old| {
                let count = old.and_then(|old| old.parse().ok()).unwrap_or(0_u32) + 1;
                Ok((Some(count.to_string()), count))
            });
            Ok::<_, ToolError>(count.await?.to_string())
        })
}

#[tokio::test]
async fn each_scope_is_shared_as_it_says_and_outlives_the_engine() {
    let agent = Agent::new();
    let path = agent.dir.path().join("other.db");
    let engine = || {
        let builder = Engine::builder().kv(SqliteStore::open(&path).unwrap());
        let tools = [
            counter("of_tool", KvScope::Tool),
            counter("of_session", KvScope::Session),
            counter("same_session", KvScope::Session),
            counter("of_principal", KvScope::Principal),
        ];
        builder.tools(tools).build().unwrap()
    };
    let with = |tenant: &str, principal: &str, conversation: &str| {
        let options = options(principal).conversation(conversation);
        options.tenant(tenant)
    };
    let first = engine();
    for (options, tool, expected) in [
        (with("t", "ann", "a"), "of_tool", "1"),
        (with("t", "ben", "b"), "of_tool", "2"),
        (with("u", "ben", "b"), "of_tool", "1"),
        (with("t", "ann", "a"), "of_session", "1"),
        (with("t", "ann", "a"), "same_session", "2"),
        (with("t", "ann", "b"), "same_session", "1"),
        (with("t", "ben", "a"), "same_session", "1"),
        (with("t", "ann", "a"), "of_principal", "1"),
        (with("t", "ann", "b"), "of_principal", "2"),
        (with("t", "ben", "b"), "of_principal", "1"),
    ] {
        let mut turn = first.turn(options).unwrap();
        assert_eq!(&*call(&mut turn, tool, json!({})).await.value, expected, "{tool}");
    }
    let mut turn = engine().turn(with("t", "ann", "c")).unwrap();
    assert_eq!(&*call(&mut turn, "of_principal", json!({})).await.value, "3");
}

#[tokio::test]
async fn a_required_store_must_be_there_and_an_optional_one_need_not() {
    let optional = Tool::builder("maybe")
        .description("Remembers if it can.")
        .capabilities(Capabilities::none().optional_kv([KvScope::Tool]).optional_storage())
        .handler(|_: Value, cx: ToolContext| async move {
            let no_kv = cx.kv(KvScope::Tool).unwrap_err().cause_chain().unwrap();
            let no_files = cx.handle::<Storage>().is_err();
            format!("{no_kv}, {no_files}")
        })
        .unwrap();
    let late = static_tools([counter("late", KvScope::Tool).unwrap()]);
    let engine = Engine::builder().tool(optional).provider(late).build().unwrap();
    let mut turn = engine.turn(options("ann")).unwrap();
    let maybe = call(&mut turn, "maybe", json!({})).await;
    assert!(maybe.value.starts_with("the engine has no store of keys"), "{}", maybe.value);
    assert!(maybe.value.ends_with(", true"), "{}", maybe.value);
    let refused = call(&mut turn, "late", json!({})).await;
    assert_eq!(refused.code, Some(ErrorCode::NotAvailable));
    let required = Tool::builder("files")
        .description("Keeps files.")
        .capabilities(Capabilities::none().storage())
        .handler(|_: Value, _: ToolContext| async { "ran" })
        .unwrap();
    let error = Engine::builder().tool(required.clone()).build().unwrap_err();
    assert!(error.to_string().contains("capability `storage`"), "{error}");
    let nothing = HostCapabilities::nothing();
    let engine = Engine::builder().tool(required).capability_granter(nothing).build().unwrap();
    let mut turn = engine.turn(options("ann")).unwrap();
    let refused = call(&mut turn, "files", json!({})).await;
    assert_eq!(refused.code, Some(ErrorCode::NotAvailable));
}

#[tokio::test]
async fn a_value_expires_and_the_limits_are_errors_for_the_author() {
    let tool = Tool::builder("keep")
        .description("Keeps.")
        .capabilities(Capabilities::none().kv([KvScope::Tool]))
        .handler(|_: Value, cx: ToolContext| async move {
            let kv = cx.kv(KvScope::Tool)?;
            kv.set_for("brief", "x", Duration::from_millis(1)).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(kv.get("brief").await?, None);
            kv.set("a/1", "x").await?;
            kv.set("a/2", "y").await?;
            kv.remove("a/1").await?;
            assert_eq!(kv.keys("a/").await?, ["a/2".into()]);
            let large = kv.set("large", "v".repeat(64 * 1024 + 1)).await.unwrap_err();
            let long = kv.set(&"k".repeat(257), "v").await.unwrap_err();
            let none = kv.update("b", |_| Err::<(_, ()), _>(ToolError::failed("not now")));
            let none = none.await.unwrap_err();
            Ok::<_, ToolError>(format!("{}; {}; {}", large.message, long.message, none.message))
        })
        .unwrap();
    let engine =
        Engine::builder().tool(tool).kv(SqliteStore::in_memory().unwrap()).build().unwrap();
    let mut turn = engine.turn(options("ann")).unwrap();
    let kept = call(&mut turn, "keep", json!({})).await;
    let expected = "a value has at most 65536 bytes; a key has 1 to 256 bytes; not now";
    assert_eq!(&*kept.value, expected);
}

#[tokio::test]
async fn each_personality_has_files_of_its_own_in_the_state_folder() {
    let dir = tempfile::tempdir().unwrap();
    let keep = Tool::builder("keep")
        .description("Keeps a file.")
        .capabilities(Capabilities::none().storage())
        .handler(|_: Value, cx: ToolContext| async move {
            let storage = cx.handle::<Storage>()?;
            let (files, own) = (storage.files(), storage.context());
            let was_there = files.read_text(own, "notes/a.txt").await.is_ok();
            files.write(own, "notes/a.txt", format!("for {}", cx.personality())).await?;
            assert!(files.write(own, "../other/a.txt", "x").await.is_err());
            assert!(files.read_text(own, ".ssh/id").await.is_err());
            Ok::<_, ToolError>(was_there.to_string())
        })
        .unwrap();
    let area = StorageArea::new(dir.path().join(".toolcrib/storage"));
    let engine = Engine::builder()
        .tool(keep)
        .capability_granter(HostCapabilities::nothing().storage(area))
        .personality(Personality::new("Other").files(["elsewhere"]))
        .build()
        .unwrap();
    for (personality, expected) in [("default", "false"), ("Other", "false"), ("Other", "true")] {
        let mut turn = engine.turn(options("ann").personality(personality)).unwrap();
        let kept = call(&mut turn, "keep", json!({})).await;
        assert_eq!((&*kept.value, kept.code), (expected, None), "{:?}", kept.cause);
    }
    let file = dir.path().join(".toolcrib/storage/%4fther/notes/a.txt");
    assert_eq!(fs::read_to_string(file).unwrap(), "for Other");
}
