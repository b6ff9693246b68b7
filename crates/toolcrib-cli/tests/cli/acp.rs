//! The program as an agent in an editor: the client's side of the protocol's crate drives it.

use std::{
    fs, io,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_client_protocol::{
    Agent, Client, Error, Lines,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            CancelNotification, CloseSessionRequest, ContentBlock, EmbeddedResource,
            EmbeddedResourceResource, ImageContent, InitializeRequest, LoadSessionRequest,
            McpServer, McpServerStdio, NewSessionRequest, PromptRequest, RequestPermissionOutcome,
            RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
            SessionId, SessionNotification, StopReason, TextResourceContents,
        },
    },
};
use futures_util::{sink, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::{
    approvals::{paid, project},
    support::{Project, config_home, toolcrib},
};

/// The editor's memory: the updates and the questions that it has received, as JSON.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Value>>>);

impl Seen {
    fn note(&self, value: Value) {
        self.0.lock().unwrap().push(value);
    }

    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The text of the updates of a kind.
    fn text(updates: &[Value], kind: &str) -> String {
        let of_kind = updates.iter().filter(|update| update["sessionUpdate"] == kind);
        of_kind.map(|update| update["content"]["text"].as_str().unwrap()).collect()
    }
}

/// The answer of a person who does not answer.
const SILENT: &str = "silent";

/// Starts the agent, and runs the editor's side until it closes the connection. `answer` is the
/// option that the person chooses, or cancels without.
fn edit(
    command: std::process::Command,
    answer: Option<&'static str>,
    work: impl AsyncFnOnce(ConnectionTo<Agent>, Seen) -> Result<(), Error>,
) -> (ExitStatus, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let incoming = stream::try_unfold(lines, |mut lines| async {
            Ok(lines.next_line().await?.map(|line| (line, lines)))
        });
        let stdin = child.stdin.take().unwrap();
        let outgoing = sink::unfold(stdin, |mut stdin, line: String| async move {
            stdin.write_all(format!("{line}\n").as_bytes()).await?;
            Ok::<_, io::Error>(stdin)
        });
        let seen = Seen::default();
        let (updates, questions) = (seen.clone(), seen.clone());
        let connection = Client
            .v1()
            .on_receive_notification(
                async |notification: SessionNotification, _| {
                    updates.note(serde_json::to_value(notification.update).unwrap());
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .on_receive_request(
                async |request: RequestPermissionRequest, responder, _| {
                    questions.note(json!({ "asked": serde_json::to_value(&request).unwrap() }));
                    let outcome = match answer {
                        Some(SILENT) => {
                            // Dropped, it would be an error.
                            std::mem::forget(responder);
                            return Ok(());
                        }
                        Some(option) => {
                            let chosen = SelectedPermissionOutcome::new(option);
                            RequestPermissionOutcome::Selected(chosen)
                        }
                        None => RequestPermissionOutcome::Cancelled,
                    };
                    responder.respond(RequestPermissionResponse::new(outcome))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(Lines::new(outgoing, incoming), async |agent| {
                let start = InitializeRequest::new(ProtocolVersion::V1);
                let start = agent.send_request(start).block_task().await?;
                assert_eq!(start.agent_info.unwrap().name, "toolcrib");
                assert!(start.agent_capabilities.load_session);
                assert!(start.agent_capabilities.prompt_capabilities.embedded_context);
                work(agent, seen).await
            });
        let within = Duration::from_secs(300);
        tokio::time::timeout(within, connection).await.expect("the agent answers").unwrap();
        let output = tokio::time::timeout(within, child.wait_with_output()).await;
        let output = output.expect("the agent ends with its input").unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    })
}

async fn begin(agent: &ConnectionTo<Agent>, project: &Project) -> Result<SessionId, Error> {
    let new = agent.send_request(NewSessionRequest::new(project.path())).block_task().await?;
    Ok(new.session_id)
}

async fn say(
    agent: &ConnectionTo<Agent>,
    session: &SessionId,
    prompt: impl Into<ContentBlock>,
) -> Result<StopReason, Error> {
    let prompt = PromptRequest::new(session.clone(), vec![prompt.into()]);
    Ok(agent.send_request(prompt).block_task().await?.stop_reason)
}

#[test]
fn a_turn_streams_its_text_and_shows_its_calls_and_the_person_decides() {
    for (answer, is_paid) in [(Some("allow"), true), (Some("reject"), false), (None, false)] {
        let project = project();
        let run = async |agent: ConnectionTo<Agent>, seen: Seen| {
            let session = begin(&agent, &project).await?;
            assert_eq!(say(&agent, &session, "Hi").await?, StopReason::EndTurn);
            let updates = seen.take();
            assert_eq!(Seen::text(&updates, "agent_message_chunk"), "Hello.");

            assert_eq!(say(&agent, &session, "Pay").await?, StopReason::EndTurn);
            let updates = seen.take();
            let asked: Vec<_> = updates.iter().filter_map(|update| update.get("asked")).collect();
            let [asked] = *asked else { panic!("{updates:?}") };
            let shown = asked["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
            for line in [
                "pay needs approval: policy rule 1 (toolcrib.toml:20): money leaves the account",
                "\n    amount  5\n    to      \"ann\"\n    note    \"to \\u{202e}ben\\u{200b}\"",
            ] {
                assert!(shown.contains(line), "{line} is not in {shown}");
            }
            assert_eq!(asked["options"][0]["kind"], "allow_once");
            let id = &asked["toolCall"]["toolCallId"];
            let calls: Vec<_> =
                updates.iter().filter(|update| update["sessionUpdate"] == "tool_call").collect();
            assert_eq!(calls.len(), 2, "{updates:?}");
            assert_eq!(
                (&calls[0]["kind"], &calls[0]["status"]),
                (&json!("read"), &json!("in_progress"))
            );
            assert!(calls[1]["title"].as_str().unwrap().starts_with("pay {"), "{}", calls[1]);
            let is_end = |update: &&Value| {
                update["sessionUpdate"] == "tool_call_update" && update["toolCallId"] == *id
            };
            let end = updates.iter().rfind(is_end).unwrap();
            let status = if is_paid { "completed" } else { "failed" };
            assert_eq!(end["status"], status, "{end}");
            let told = end["content"][0]["content"]["text"].as_str().unwrap();
            assert_eq!(told.contains("the user refused this call of `pay`"), !is_paid, "{told}");
            Ok(())
        };
        let (status, stderr) = edit(project.command(&["acp", "--as", "ann"]), answer, run);
        assert!(status.success(), "{stderr}");
        assert_eq!(paid(&project), if is_paid { "5 to ann\n" } else { "" });
    }
}

#[test]
fn a_cancelled_turn_ends_as_cancelled_and_the_session_goes_on() {
    let script = "[[rule]]\nuser = \"slow\"\ndelay_ms = 600000\ntext = \"late\"\n\
                  [[rule]]\ntext = \"Hello.\"\n";
    let project = project();
    project.write("script.toml", script);
    let (status, stderr) = edit(project.command(&["acp"]), None, async |agent, _| {
        let session = begin(&agent, &project).await?;
        let prompt = PromptRequest::new(session.clone(), vec!["slow".into()]);
        let slow = agent.send_request(prompt);
        let busy = say(&agent, &session, "Hi").await.unwrap_err();
        assert!(busy.message.contains("a turn of this session is running"), "{busy:?}");
        agent.send_notification(CancelNotification::new(session.clone()))?;
        assert_eq!(slow.block_task().await?.stop_reason, StopReason::Cancelled);
        assert_eq!(say(&agent, &session, "Hi").await?, StopReason::EndTurn);

        // The end of the input ends a turn too.
        let prompt = PromptRequest::new(session.clone(), vec!["slow".into()]);
        agent.send_request(prompt).detach();
        Ok(())
    });
    assert!(status.success(), "{stderr}");
}

#[test]
fn a_turn_that_waits_for_a_person_can_be_cancelled() {
    let project = project();
    let (status, stderr) = edit(project.command(&["acp"]), Some(SILENT), async |agent, seen| {
        let session = begin(&agent, &project).await?;
        let prompt = PromptRequest::new(session.clone(), vec!["Pay".into()]);
        let turn = agent.send_request(prompt);
        while !seen.0.lock().unwrap().iter().any(|seen| seen.get("asked").is_some()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        agent.send_notification(CancelNotification::new(session))?;
        assert_eq!(turn.block_task().await?.stop_reason, StopReason::Cancelled);
        Ok(())
    });
    assert!(status.success(), "{stderr}");
    assert_eq!(paid(&project), "");
}

#[test]
fn a_session_is_stored_and_can_be_loaded_and_an_unused_one_leaves_nothing() {
    let project = project();
    let stored = std::cell::OnceCell::new();
    let (status, stderr) = edit(project.command(&["acp"]), Some("allow"), async |agent, _| {
        let unused = begin(&agent, &project).await?;
        let session = begin(&agent, &project).await?;
        say(&agent, &session, "Pay").await?;
        let close = CloseSessionRequest::new(session.clone());
        agent.send_request(close).block_task().await?;
        let closed = say(&agent, &session, "Pay").await.unwrap_err();
        assert!(closed.message.contains("is not open"), "{closed:?}");
        stored.set((unused, session)).unwrap();
        Ok(())
    });
    assert!(status.success(), "{stderr}");
    let (unused, session) = stored.into_inner().unwrap();
    let (_, listed) = project.json(&["sessions"]);
    let listed = listed["sessions"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{unused} {listed:?}");
    assert_eq!(listed[0]["id"], session.to_string());

    let (status, stderr) = edit(project.command(&["acp"]), None, async |agent, seen| {
        let load = |session: SessionId| LoadSessionRequest::new(session, project.path());
        let unknown = agent.send_request(load(unused)).block_task().await.unwrap_err();
        assert!(unknown.message.contains("session"), "{unknown:?}");
        agent.send_request(load(session.clone())).block_task().await?;
        let updates = seen.take();
        assert_eq!(Seen::text(&updates, "user_message_chunk"), "Pay");
        assert!(Seen::text(&updates, "agent_message_chunk").starts_with("Done: "), "{updates:?}");
        let kinds: Vec<_> = updates.iter().map(|update| &update["sessionUpdate"]).collect();
        assert_eq!(
            kinds[1..],
            [
                "tool_call",
                "tool_call",
                "tool_call_update",
                "tool_call_update",
                "agent_message_chunk"
            ]
        );
        assert_eq!(say(&agent, &session, "Hi").await?, StopReason::EndTurn);
        Ok(())
    });
    assert!(status.success(), "{stderr}");
    let (_, shown) = project.json(&["show", &session.to_string()]);
    assert_eq!(shown["turns"].as_array().unwrap().len(), 2, "{shown}");
}

#[test]
fn an_attached_file_is_fenced_and_other_content_is_refused() {
    let script = "[[rule]]\nnot_offered = \"pay\"\nuser = \"launch code (?P<code>[0-9]+)\"\n\
                  text = \"{{ code }}\"\n[[rule]]\ntext = \"Hello.\"\n";
    let project = project();
    project.write("script.toml", script);
    let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    let rule = "[[policy]]\neffect = \"deny\"\ntool = \"pay\"\ntainted = true\n[[policy]]";
    project.write("toolcrib.toml", &file.replacen("[[policy]]", rule, 1));
    let (status, stderr) = edit(project.command(&["acp"]), None, async |agent, seen| {
        let session = begin(&agent, &project).await?;
        let attached = |text: String| {
            let file = TextResourceContents::new(text, "file:///notes.md");
            let file = EmbeddedResourceResource::TextResourceContents(file);
            ContentBlock::Resource(EmbeddedResource::new(file))
        };
        say(&agent, &session, attached("the launch code 1234".to_owned())).await?;
        assert_eq!(Seen::text(&seen.take(), "agent_message_chunk"), "1234");
        for (block, problem) in [
            (ContentBlock::Image(ImageContent::new("AA==", "image/png")), "a prompt is text"),
            ("x".repeat(1024 * 1024 + 1).into(), "limited to 1048576 bytes"),
            ("  ".into(), "the prompt is empty"),
        ] {
            let refused = say(&agent, &session, block).await.unwrap_err();
            assert!(refused.message.contains(problem), "{refused:?}");
        }
        agent.send_request(CloseSessionRequest::new(session.clone())).block_task().await?;
        seen.take();
        let load = LoadSessionRequest::new(session, project.path());
        agent.send_request(load).block_task().await?;
        let sent = Seen::text(&seen.take(), "user_message_chunk");
        assert_eq!(sent, "Attached file `notes.md`, 20 bytes");
        Ok(())
    });
    assert!(status.success(), "{stderr}");
    let (_, sessions) = project.json(&["sessions"]);
    let id = sessions["sessions"][0]["id"].as_str().unwrap();
    let shown = project.json(&["show", id]).1.to_string();
    assert!(shown.contains("Attached file `notes.md`, 20 bytes"), "{shown}");
    assert!(shown.contains("<untrusted tool=\\\"attachment\\\""), "{shown}");
}

#[test]
fn a_found_project_needs_trust_and_servers_of_the_editor_are_not_used() {
    let project = project();
    let command = || {
        let mut command = toolcrib();
        command.args(["acp"]).current_dir(config_home().parent().unwrap());
        command
    };
    let (status, stderr) = edit(command(), None, async |agent, _| {
        let refused = begin(&agent, &project).await.unwrap_err();
        let path = project.path().display();
        assert!(refused.message.contains(&format!("toolcrib trust {path}")), "{refused:?}");
        let relative = agent.send_request(NewSessionRequest::new("src")).block_task().await;
        assert!(relative.unwrap_err().message.contains("absolute"));
        Ok(())
    });
    assert!(status.success(), "{stderr}");

    let trusted = toolcrib().arg("trust").arg(project.path()).status().unwrap();
    assert!(trusted.success());
    let (status, stderr) = edit(command(), None, async |agent, _| {
        let server = McpServer::Stdio(McpServerStdio::new("evil", "/bin/false"));
        let new = NewSessionRequest::new(project.path()).mcp_servers(vec![server]);
        agent.send_request(new).block_task().await?;
        Ok(())
    });
    assert!(status.success(), "{stderr}");
    assert!(stderr.contains("1 MCP server of the editor not used"), "{stderr}");
}

#[test]
fn a_message_that_is_too_long_and_options_that_do_not_fit_are_refused() {
    let project = project();
    let mut long = project.command(&["acp"]);
    let mut child =
        long.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        // The reader may be gone before all is written.
        let _ = io::Write::write_all(&mut stdin, &vec![b'x'; 5 * 1024 * 1024]);
    });
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("a message is limited to 4194304 bytes"), "{stderr}");
    for (args, problem) in [
        (["acp", "--json"].as_slice(), "its standard output is the protocol"),
        (&["acp", "--session", "a"], "does not accept `--session`"),
    ] {
        let refused = project.toolcrib(args);
        assert_eq!(refused.code, Some(2));
        assert!((refused.stdout + &refused.stderr).contains(problem));
    }
}
