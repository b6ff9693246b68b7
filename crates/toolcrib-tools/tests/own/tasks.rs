use serde_json::json;
use toolcrib_core::{ErrorCode, NewSession, SessionOwner, SessionStore as _};
use toolcrib_engine::Engine;
use toolcrib_store::SqliteStore;
use toolcrib_tools::{Declaration, memory::MemoryScope::Principal, todo::TodoTool};

use crate::support::{Agent, call, calls, turn};

#[tokio::test]
async fn a_list_is_planned_worked_on_and_found_again_by_another_process() {
    let agent = Agent::new();
    let owner = SessionOwner { tenant: None, principal: Some("ann".into()) };
    let name = Some("work".into());
    let session = NewSession { owner: owner.clone(), name, personality: "default".into() };
    let info = agent.store.create(&session).unwrap();
    let mut first = turn(&agent.engine(Principal), "ann");
    let tasks = json!([{ "content": "Read" }, { "content": "Fix\nit", "notes": "in a.rs" }]);
    let set = call(&mut first, "todo_set", json!({ "tasks": tasks })).await;
    assert_eq!(&*set.value, "2 tasks, 0 done\n[ ] t1: Read\n[ ] t2: Fix it\n    in a.rs\n");
    let added = call(&mut first, "todo_add", json!({ "content": "Plan", "first": true })).await;
    assert_eq!(added.value.lines().nth(2).unwrap(), "[ ] t3: Plan");
    call(&mut first, "todo_update", json!({ "id": "t3", "status": "done" })).await;
    let begun = json!({ "id": "t1", "status": "in_progress", "notes": "half" });
    call(&mut first, "todo_update", begun).await;
    let second = json!({ "id": "t2", "status": "in_progress" });
    let refused = call(&mut first, "todo_update", second).await;
    assert_eq!(refused.code, Some(ErrorCode::ExecutionFailed));
    assert!(refused.value.contains("such as t1"), "{}", refused.value);
    let unknown = call(&mut first, "todo_update", json!({ "id": "t9" })).await;
    assert_eq!(unknown.code, Some(ErrorCode::InputInvalid));
    assert!(unknown.value.contains("none of the tasks t3, t1, t2"), "{}", unknown.value);

    // Another process, with its own connection.
    let path = agent.dir.path().join(".toolcrib/sessions.db");
    let agent = Agent { store: SqliteStore::open(path).unwrap(), ..agent };
    let mut later = turn(&agent.engine(Principal), "ann");
    let open = call(&mut later, "todo_list", json!({ "done": false })).await;
    let expected = "3 tasks, 1 done\n[>] t1: Read\n    half\n[ ] t2: Fix it\n    in a.rs\n";
    assert_eq!(&*open.value, expected);
    let other = call(&mut turn(&agent.engine(Principal), "ben"), "todo_list", json!({})).await;
    assert_eq!(&*other.value, "no tasks");
    let cleared = call(&mut later, "todo_clear", json!({})).await;
    assert_eq!(&*cleared.value, "no tasks");
    agent.store.remove(&owner, &info.id).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_one_message_have_different_ids_and_a_list_has_limits() {
    let agent = Agent::new();
    let mut turn = turn(&agent.engine(Principal), "ann");
    let adds: Vec<_> =
        (0..20).map(|at| ("todo_add", json!({ "content": format!("Task {at}") }))).collect();
    let results = calls(&mut turn, &adds).await;
    assert!(results.iter().all(|result| result.code.is_none()), "{results:?}");
    let list = call(&mut turn, "todo_list", json!({})).await;
    let mut ids: Vec<_> =
        list.value.lines().skip(1).map(|line| &line[4..line.find(':').unwrap()]).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20);
    let many: Vec<_> = (0..100).map(|at| json!({ "content": format!("t{at}") })).collect();
    call(&mut turn, "todo_set", json!({ "tasks": many })).await;
    let full = call(&mut turn, "todo_add", json!({ "content": "one more" })).await;
    assert_eq!(full.code, Some(ErrorCode::ExecutionFailed));
    assert!(full.value.contains("has 100 tasks"), "{}", full.value);
    let long = call(&mut turn, "todo_add", json!({ "content": "x".repeat(301) })).await;
    assert_eq!(long.code, Some(ErrorCode::InputInvalid));
    let secret = json!({ "content": "use sesame-street-42" });
    let refused = call(&mut turn, "todo_add", secret).await;
    assert_eq!(refused.code, Some(ErrorCode::ExecutionFailed));
    assert!(!refused.value.contains("sesame"), "{}", refused.value);
}

#[test]
fn an_engine_without_a_store_does_not_build_with_the_tools() {
    let tool = TodoTool::List;
    let tool = tool.build(tool.declaration(&Declaration::new("", ""), Some("my")), Some("my"));
    let error = Engine::builder().tool(tool.unwrap()).build().unwrap_err();
    assert!(
        error.to_string().contains("`my_todo_list`") && error.to_string().contains("kv"),
        "{error}"
    );
}
