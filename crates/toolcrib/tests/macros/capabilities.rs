//! `#[tool(capabilities(…))]`: for each word, a call receives the handle.

#![allow(clippy::disallowed_methods, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs, io,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use serde_json::{Value, json};
use toolcrib::{
    BoxFuture,
    capabilities::{
        HostCapabilities,
        files::{FileFolders, Files, FilesSpec, Storage, StorageArea},
        http::{HttpClient, HttpRequest, Method, Resolve},
        process::{ProcessSpec, Processes},
    },
    engine::Personality,
    policy::{Approval, ApprovalRequest, Approver, Clarification, ClarificationOutcome},
    prelude::*,
    secrets::{Secret, secrets_fn},
    sessions::SqliteStore,
    tool::{AgentTask, Capabilities, DelegateHandle, IntoTool, KvScope},
    turn::{Attachment, ChildAgents, ParentTurn},
};

/// Fetches.
#[tool(capabilities(network = ["api.example.com"]))]
async fn fetch(url: String, cx: ToolContext) -> Result<String, ToolError> {
    let request = HttpRequest::new(Method::GET, url);
    match cx.handle::<HttpClient>()?.send(request, cx.cancellation()).await {
        Ok(response) => Ok(response.status.to_string()),
        Err(error) => Ok(error.to_string()),
    }
}

#[tokio::test]
async fn network_is_a_client_for_the_declared_hosts() {
    let other = text(fetch_tool(), json!({ "url": "https://other.example.com/" })).await;
    assert!(other.contains("`other.example.com` is not among the permitted hosts"), "{other}");
    let declared = text(fetch_tool(), json!({ "url": "https://api.example.com/" })).await;
    assert!(declared.contains("127.0.0.1"), "{declared}");
}

/// Resolves each host to this machine, which clients refuse.
struct ThisMachine;

impl Resolve for ThisMachine {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
    }
}

/// Runs a program.
#[tool(capabilities(process = ["true"]))]
async fn run(program: String, cx: ToolContext) -> Result<String, ToolError> {
    let processes = cx.handle::<Processes>()?;
    match processes.run(ProcessSpec::new(&program, "/"), cx.cancellation(), |_, _| {}).await {
        Ok(_) => Ok("ran".to_owned()),
        Err(error) => Ok(error.to_string()),
    }
}

#[tokio::test]
async fn process_is_the_right_to_run_the_declared_programs() {
    let refused = text(run_tool(), json!({ "program": "/bin/sh" })).await;
    assert!(refused.contains("/bin/sh"), "{refused}");
    let paths = ["/usr/bin/true", "/bin/true"];
    let program = paths.into_iter().find(|path| fs::exists(path).unwrap()).unwrap();
    assert_eq!(text(run_tool(), json!({ "program": program })).await, "ran");
}

/// Reads a secret.
#[tool(capabilities(secrets = ["BANK_KEY"]))]
async fn sign(cx: ToolContext) -> Result<String, ToolError> {
    Ok(cx.secret("BANK_KEY").await?.expose().len().to_string())
}

#[tokio::test]
async fn secrets_are_resolved_by_name() {
    assert_eq!(text(sign_tool(), json!({})).await, "10");
}

/// Reads a note.
#[tool(capabilities(files = ["notes"]))]
async fn read_note(cx: ToolContext) -> Result<String, ToolError> {
    let notes = cx.handle::<FileFolders>()?.get("notes")?;
    let is_refused = notes.write(&cx, "a.txt", "changed").await.is_err();
    let content = notes.read_text(&cx, "a.txt").await?;
    Ok(format!("{is_refused} {content}"))
}

#[tokio::test]
async fn files_are_folders_to_read() {
    assert_eq!(text(read_note_tool(), json!({})).await, "true a note");
}

/// Writes a note.
#[tool(capabilities(write_files = ["notes"]))]
async fn write_note(cx: ToolContext) -> Result<String, ToolError> {
    let notes = cx.handle::<FileFolders>()?.get("notes")?;
    notes.write(&cx, "b.txt", "another").await?;
    notes.read_text(&cx, "b.txt").await
}

#[tokio::test]
async fn write_files_are_folders_to_write() {
    assert_eq!(text(write_note_tool(), json!({})).await, "another");
}

/// Counts calls.
#[tool(capabilities(kv = ["tool", "session", "principal"]))]
async fn count(cx: ToolContext) -> Result<String, ToolError> {
    let mut known = Vec::new();
    for scope in [KvScope::Tool, KvScope::Session, KvScope::Principal] {
        let kv = cx.kv(scope)?;
        kv.set("key", scope.as_str()).await?;
        known.push(kv.get("key").await?.unwrap_or_default().to_string());
    }
    Ok(known.join(" "))
}

#[tokio::test]
async fn kv_is_a_store_for_each_scope() {
    assert_eq!(text(count_tool(), json!({})).await, "tool session principal");
}

/// Counts calls, if it can.
#[tool(capabilities(optional_kv = ["principal"]))]
async fn count_if_kept(cx: ToolContext) -> Result<String, ToolError> {
    let Ok(kv) = cx.kv(KvScope::Principal) else { return Ok("no store".to_owned()) };
    kv.set("key", "kept").await?;
    Ok(kv.get("key").await?.unwrap_or_default().to_string())
}

#[tokio::test]
async fn optional_kv_is_a_store_if_there_is_one() {
    assert_eq!(text(count_if_kept_tool(), json!({})).await, "kept");
    assert_eq!(crate::support::text(count_if_kept_tool(), json!({})).await, "no store");
}

/// Keeps a file.
#[tool(capabilities(storage))]
async fn keep(cx: ToolContext) -> Result<String, ToolError> {
    let storage = cx.handle::<Storage>()?;
    storage.files().write(storage.context(), "a.txt", "own").await?;
    storage.files().read_text(storage.context(), "a.txt").await
}

#[tokio::test]
async fn storage_is_the_own_area() {
    assert_eq!(text(keep_tool(), json!({})).await, "own");
}

/// Keeps a file, if it can.
#[tool(capabilities(optional_storage))]
async fn keep_if_there(cx: ToolContext) -> Result<String, ToolError> {
    let Ok(storage) = cx.handle::<Storage>() else { return Ok("no area".to_owned()) };
    storage.files().write(storage.context(), "b.txt", "own").await?;
    storage.files().read_text(storage.context(), "b.txt").await
}

#[tokio::test]
async fn optional_storage_is_the_own_area_if_there_is_one() {
    assert_eq!(text(keep_if_there_tool(), json!({})).await, "own");
    assert_eq!(crate::support::text(keep_if_there_tool(), json!({})).await, "no area");
}

/// Asks.
#[tool(capabilities(person))]
async fn ask(cx: ToolContext) -> Result<String, ToolError> {
    let question = Clarification::new("Which color?").options(["red", "blue"]);
    match cx.clarifier()?.clarify(question).await {
        ClarificationOutcome::Answered(answer) => Ok(answer.to_string()),
        other => Err(err(format!("{other:?}"))),
    }
}

/// Answers questions with their last option.
struct Person;

impl Approver for Person {
    fn approve<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async { Approval::Refused("no".to_owned()) })
    }

    fn clarify<'a>(&'a self, question: &'a Clarification) -> BoxFuture<'a, ClarificationOutcome> {
        let last = question.options.last().cloned().unwrap();
        Box::pin(async { ClarificationOutcome::Answered(last) })
    }
}

#[tokio::test]
async fn person_is_a_question_to_the_person_of_the_turn() {
    assert_eq!(text(ask_tool(), json!({})).await, "blue");
}

/// Gives a task.
#[tool(capabilities(agents))]
async fn delegate(cx: ToolContext) -> Result<ToolOutput, ToolError> {
    let DelegateHandle(agents) = cx.handle::<DelegateHandle>()?;
    agents.delegate(AgentTask::new("Look it up."), &cx).await
}

/// Answers tasks with their text.
struct Children;

impl ChildAgents for Children {
    fn run(
        &self,
        task: AgentTask,
        parent: ParentTurn,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ok(format!("{}: {}", parent.personality().id, task.prompt))) })
    }
}

#[tokio::test]
async fn agents_run_tasks() {
    assert_eq!(text(delegate_tool(), json!({})).await, "support: Look it up.");
}

/// Opens an attachment.
#[tool(capabilities(attachments))]
async fn open(id: String, cx: ToolContext) -> Result<String, ToolError> {
    Ok(cx.attachments()?.open(&id)?.text().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn attachments_are_the_files_of_the_message() {
    let id = attachment().id().to_owned();
    assert_eq!(text(open_tool(), json!({ "id": id })).await, "12,99");
}

/// Names the team.
#[tool(capabilities(team))]
async fn team(cx: ToolContext) -> String {
    cx.team().unwrap_or("none").to_owned()
}

#[tokio::test]
async fn team_is_the_one_of_the_personality() {
    assert_eq!(text(team_tool(), json!({})).await, "red");
}

/// Needs everything.
#[tool(capabilities(
    network = ["api.example.com"], process = ["git"], secrets = ["KEY"], files = ["a"], write_files = ["b"],
    kv = ["tool"], optional_kv = ["session"], storage, optional_storage, person, agents, attachments, team,
))]
fn everything() {}

/// `Capabilities` rejects unknown fields with the list of all of them.
#[test]
fn each_capability_has_a_word() {
    let declared = serde_json::to_value(everything_tool().capabilities()).unwrap();
    let words: BTreeSet<_> = declared.as_object().unwrap().keys().cloned().collect();
    let unknown = serde_json::from_value::<Capabilities>(json!({ "": true })).unwrap_err();
    let fields = unknown.to_string();
    let fields: BTreeSet<_> = fields.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    assert_eq!(words, fields);
    let off = [json!([]), json!(false)];
    assert!(declared.as_object().unwrap().values().all(|value| !off.contains(value)), "{declared}");
}

fn attachment() -> Attachment {
    Attachment::new("bill.csv", "12,99".as_bytes().to_vec()).unwrap()
}

/// The text of a call in an engine that grants everything.
async fn text(tool: impl IntoTool, args: Value) -> String {
    let tool = crate::support::made(tool);
    let name = tool.name().to_string();
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("a.txt"), "a note").unwrap();
    let host = HostCapabilities::nothing()
        .http(HttpClient::builder().resolver(ThisMachine).build())
        .processes(Processes::any())
        .files(Files::open(FilesSpec::new("notes", &notes).writable()).unwrap())
        .storage(StorageArea::new(folder.path().join("storage")));
    let engine = Engine::builder()
        .tool(tool)
        .capability_granter(host)
        .secrets(secrets_fn(|_| Ok(Secret::new("0123456789"))))
        .kv(SqliteStore::in_memory().unwrap())
        .approver(Person)
        .personality(Personality::new("support").team("red"))
        .build()
        .unwrap();
    let mut options =
        TurnOptions::default().principal("ann").conversation("c1").personality("support");
    options.child_agents = Some(Arc::new(Children));
    options.attachments.add(attachment()).unwrap();
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let call = ToolCall::new("call_1", name.as_str(), args);
    let result = iteration.execute(vec![call]).await.remove(0);
    assert_eq!(result.code, None, "{}: {:?}", result.text, result.cause);
    result.value.to_string()
}
