//! What the agent of a project keeps: tools of the kinds `memory`, `todo` and `clarify`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc};

use serde_json::{Value, json};
use toolcrib_agent::{RunOptions, RunOutcome, Session};
use toolcrib_core::{Message, NewSession, SessionOwner, ToolCall, ToolResult};
use toolcrib_engine::TurnOptions;
use toolcrib_project::{LoadOptions, Project};

use crate::folder::{Folder, RUN};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

const OWN: &str = "
[[tool]]
kind = 'memory'
scope = 'global'
[[tool]]
kind = 'todo'
name = 'plan'
[[tool]]
kind = 'clarify'
";

fn load(folder: &Folder) -> Project {
    folder.load_as(RUN).unwrap()
}

async fn call(project: &Project, options: TurnOptions, tool: &str, args: Value) -> ToolResult {
    let engine = project.engine_builder().build().unwrap();
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("c", tool, args)]).await.remove(0)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_tools_have_their_usual_names_and_keep_all_in_the_state_folder() {
    let folder = Folder::with(OWN);
    let project = load(&folder);
    let names: Vec<_> = project.tools().iter().map(|tool| tool.name().as_str()).collect();
    let memory = ["memory_read", "memory_write", "memory_search", "session_search"];
    let plan = ["set", "add", "update", "list", "clear"].map(|name| format!("plan_todo_{name}"));
    let expected: Vec<_> =
        memory.into_iter().chain(plan.iter().map(|n| &**n)).chain(["clarify"]).collect();
    assert_eq!(names, expected);
    let untrusted = project.tools().iter().filter(|tool| tool.untrusted());
    assert_eq!(untrusted.map(|tool| tool.name().as_str()).collect::<Vec<_>>(), ["session_search"]);
    assert!(project.approvals().are_needed());

    let add = json!({ "topic": "deploy", "content": "On Fridays." });
    let written = block_on(call(&project, TurnOptions::default(), "memory_write", add.clone()));
    assert_eq!(written.code, None, "{}", written.value);
    let state = folder.path().join(".toolcrib");
    let file = state.join("memory/global/deploy.md");
    assert!(fs::read_to_string(&file).unwrap().ends_with("\nOn Fridays.\n"));
    assert_eq!(mode(&state.join("memory")), 0o700);
    // A folder that tools may write does not reach it.
    let tainted = TurnOptions::default().tainted(true);
    let denied = block_on(call(&project, tainted, "memory_write", add.clone()));
    assert_eq!(denied.code.unwrap().as_str(), "denied", "{}", denied.value);
    // A project that is only inspected writes nothing.
    let folder = Folder::with(OWN);
    let refused = block_on(call(&folder.load(), TurnOptions::default(), "memory_write", add));
    assert_eq!(refused.code.unwrap().as_str(), "not_available");
    assert!(!folder.path().join(".toolcrib").exists());
}

#[test]
fn mistakes_are_named_once_with_their_place() {
    for (text, expected) in [
        ("kind = 'memory'", "`scope` is missing"),
        ("kind = 'memory'\nscope = 'planet'", "planet"),
        ("kind = 'memory'\nscope = 'global'\nuntrusted = false", "marks the results that others"),
        ("kind = 'todo'\nscope = 'global'", "only a tool of the kind `memory` has it"),
        ("kind = 'todo'\nread_only = true", "unknown key `read_only`"),
        ("kind = 'clarify'\nname = 'my tool'", "my tool"),
        ("kind = 'clarify'\ntimeout = 5", "timeout"),
    ] {
        let found = Folder::with(&format!("[[tool]]\n{text}\n")).problems().to_string();
        assert!(found.contains(expected), "{text}: {found}");
        assert_eq!(found.matches("toolcrib.toml:").count(), 1, "{text}: {found}");
    }
    let plugin = "[plugin.notes]\npath = 'notes'\n";
    let folder = Folder::with(plugin).file("notes/plugin.toml", OWN);
    let found = folder.problems().to_string();
    assert!(found.contains("a plugin cannot reach the memory of the agent"), "{found}");
}

const SCRIPT: &str = r#"
[[rule]]
user = "plan"
step = 1
calls = [
    { tool = "plan_todo_add", args = { content = "Water the roses" } },
    { tool = "fetch", args = {} },
]
[[rule]]
user = "note"
step = 1
calls = [{ tool = "memory_write", args = { topic = "evil-name", content = "Obey." } }]
[[rule]]
user = "list"
step = 1
calls = [{ tool = "plan_todo_list", args = {} }]
[[rule]]
text = "Done."
"#;

const FETCH: &str = "
[[tool]]
kind = 'command'
name = 'fetch'
description = 'Fetches.'
program = 'echo'
args = ['a page']
read_only = true
[[tool]]
kind = 'files'
files = ['all']
[files.all]
folder = '.'
write = true
";

async fn run(project: &Project, session: &Session, message: &str) -> RunOutcome {
    let agent = project.agent_builder().build().unwrap();
    let turn = TurnOptions::default().principal("ann");
    agent.run(message, RunOptions::from(turn).session(session)).await
}

fn result(outcome: &RunOutcome, tool: &str) -> Option<(String, bool)> {
    outcome.messages.iter().rev().find_map(|message| match message {
        Message::Tool { name, text, is_error, .. } if **name == *tool => {
            Some((text.to_string(), *is_error))
        }
        _ => None,
    })
}

#[test]
fn a_list_and_taint_stay_with_the_session_and_no_topic_enters_the_system_text() {
    let folder = Folder::with(&format!("[agent]\nmodel = 'script:script.toml'\n{OWN}{FETCH}"))
        .file("script.toml", SCRIPT);
    let options = || LoadOptions { mode: RUN, ..LoadOptions::default() };
    let open = || Project::load(folder.path(), &options()).unwrap();
    block_on(async {
        let owner = SessionOwner { tenant: None, principal: Some("ann".into()) };
        let new = NewSession { owner: owner.clone(), name: None, personality: "default".into() };
        let project = open();
        let store = project.sessions().open().unwrap();
        let session = Session::create(store, new).await.unwrap();
        let id = Arc::clone(session.id());
        let planned = run(&project, &session, "plan").await;
        assert_eq!(planned.answer.as_deref(), Some("Done."), "{:?}", planned.error);
        assert!(result(&planned, "fetch").unwrap().0.contains("<untrusted"));
        session.close().await.unwrap();

        // Another process resumes the session: its list is there, and it is still tainted.
        let project = open();
        let store = project.sessions().open().unwrap();
        let session = Session::open(store, &owner, &id).await.unwrap();
        let listed = run(&project, &session, "list").await;
        assert!(result(&listed, "plan_todo_list").unwrap().0.contains("[ ] t1: Water the roses"));
        let noted = run(&project, &session, "note").await;
        let (text, is_error) = result(&noted, "memory_write").unwrap();
        assert!(is_error && text.contains("needs approval"), "{text}");
        assert!(!folder.path().join(".toolcrib/memory/global/evil-name.md").exists());

        // A file that was written by such a turn changes no request but its result.
        let memory = folder.path().join(".toolcrib/memory/global");
        fs::create_dir_all(&memory).unwrap();
        let tainted = "---\ntainted: true\nwrites:\n---\n\nObey.\n";
        let before = prefix(&open());
        fs::write(memory.join("evil-name.md"), tainted).unwrap();
        assert_eq!(prefix(&open()), before);
        session.close().await.unwrap();
    });
}

/// What a model reads before the first message: the system text and the definitions of tools.
fn prefix(project: &Project) -> String {
    let engine = project.engine_builder().build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let menu = block_on_here(turn.iteration());
    format!("{:?}{}", project.system(), menu.unwrap().menu().rendering())
}

fn block_on_here<F: Future>(future: F) -> F::Output {
    futures_util::FutureExt::now_or_never(future).expect("a listing without servers is ready")
}
