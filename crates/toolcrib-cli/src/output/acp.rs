//! Updates of a session for an editor: from the events of a turn, and from stored messages.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    ContentChunk, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use serde_json::Value;
use toolcrib_approvals::shown_arguments;
use toolcrib_core::{
    ApprovalRequest, Arguments, Audience, Event, EventKind, Message, StoredArguments, Tool, unfence,
};

use super::{
    print::note,
    retries::retry_wait,
    text::{WARN, arguments, count, one_line, safe},
};

/// The width of arguments that are shown for approval, in characters.
const WIDTH: usize = 100;

/// The length limit of a line of progress.
const PROGRESS_CHARS: usize = 200;

/// Tells on standard error that the editor's servers are not used.
pub(crate) fn servers_ignored(servers: usize) {
    let servers = count(servers, "MCP server");
    note!(
        "{WARN}{servers} of the editor not used{WARN:#}: tools are those of the project; `toolcrib \
         mcp add` adds a server"
    );
}

/// The kind by which an editor chooses an icon, from the tool's hints about its effects.
pub(crate) fn tool_kind(tool: &Tool) -> ToolKind {
    let annotations = tool.annotations();
    match (annotations.read_only, annotations.destructive) {
        (true, _) => ToolKind::Read,
        (false, true) => ToolKind::Delete,
        (false, false) => ToolKind::Other,
    }
}

/// Text of the agent.
pub(crate) fn message_update(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()))
}

/// The update of an event; `None` for one that an editor does not show.
pub(crate) fn update(event: &Event, kind: impl Fn(&str) -> ToolKind) -> Option<SessionUpdate> {
    Some(match &event.kind {
        EventKind::ModelText { text } => message_update(text),
        EventKind::ModelReasoning { text } => {
            SessionUpdate::AgentThoughtChunk(ContentChunk::new(text.as_str().into()))
        }
        // Shown text cannot be taken back.
        EventKind::ModelSuperseded { .. } => {
            message_update("\n\n*The text above is discarded; the model is queried again.*\n\n")
        }
        EventKind::ReliabilityRetried { provider, to: None, wait_ms, error_class, .. } => {
            let text = format!("{}: {}\n\n", safe(provider), retry_wait(*wait_ms, error_class));
            SessionUpdate::AgentThoughtChunk(ContentChunk::new(text.into()))
        }
        EventKind::ToolStart { call_id, tool, args, .. } => {
            let call = ToolCall::new(call_id.clone(), title(tool, args));
            let call = call.kind(kind(tool)).status(ToolCallStatus::InProgress);
            SessionUpdate::ToolCall(call.raw_input(args.clone()))
        }
        EventKind::ToolProgress { call_id, message, .. } if event.is_for(Audience::User) => {
            let message = one_line(message, PROGRESS_CHARS);
            changed(call_id, ToolCallUpdateFields::new().content(vec![message.into()]))
        }
        EventKind::ToolEnd { call_id, ok, value, .. } => ended(call_id, *ok, value),
        _ => return None,
    })
}

/// The updates of a stored conversation, in order.
pub(crate) fn stored_updates<'a>(
    messages: impl Iterator<Item = &'a Message>,
    kind: impl Fn(&str) -> ToolKind,
    mut show: impl FnMut(SessionUpdate),
) {
    for message in messages {
        match message {
            Message::User { .. } if message.as_notice().is_some() => {}
            Message::User { text, .. } => {
                show(SessionUpdate::UserMessageChunk(ContentChunk::new(sent(text).into())));
            }
            Message::Assistant { text, calls, .. } => {
                if !text.is_empty() {
                    show(message_update(text));
                }
                for call in calls {
                    let args = match &call.arguments {
                        Arguments::Json(args) => args.clone(),
                        Arguments::Text(text) => Value::from(text.as_str()),
                    };
                    let shown = ToolCall::new(call.id.clone(), title(&call.name, &args));
                    let shown = shown.kind(kind(&call.name)).status(ToolCallStatus::InProgress);
                    show(SessionUpdate::ToolCall(shown.raw_input(args)));
                }
            }
            Message::Tool { call_id, text, is_error, .. } => {
                show(ended(call_id, !is_error, unfence(text).0));
            }
            _ => {}
        }
    }
}

/// A message as its user sent it: each attached file has its name and size, and not its text, which is
/// in a fence for the model.
fn sent(message: &str) -> String {
    let (mut sent, mut rest) = (String::new(), message);
    while let Some((before, _)) = rest.split_once("<untrusted tool=\"attachment\"")
        && let Some(fenced) = rest.get(before.len()..)
        && let (text, after) = unfence(fenced)
        && text.len() < fenced.len()
    {
        let about = before.rsplit_once(", attachment id ").map_or(before, |(about, _)| about);
        sent.push_str(about);
        sent.push_str("\n\n");
        rest = after;
    }
    sent.push_str(rest);
    sent.trim().to_owned()
}

/// A call that waits for a decision, with all its arguments.
pub(crate) fn permission(
    request: &ApprovalRequest<'_>,
    arguments: &StoredArguments,
) -> ToolCallUpdate {
    let (tool, rule) = (request.tool, request.rule);
    let reason = rule.reason.as_deref().map(|reason| format!(": {reason}"));
    let because = one_line(&format!("{}{}", rule.label, reason.unwrap_or_default()), 400);
    // Each line is indented by four spaces: for editors that render Markdown it is literal text.
    let arguments_text = shown_arguments(arguments, WIDTH);
    let text = format!("{} needs approval: {because}\n\n{arguments_text}", tool.name());
    let fields = ToolCallUpdateFields::new()
        .title(title(tool.name().as_str(), &arguments.shown()))
        .kind(tool_kind(tool))
        .status(ToolCallStatus::Pending)
        .content(vec![text.into()])
        .raw_input(arguments.shown());
    ToolCallUpdate::new(request.call_id.clone(), fields)
}

fn title(tool: &str, args: &Value) -> String {
    format!("{} {}", one_line(tool, 64), arguments(args))
}

fn ended(call_id: &Arc<str>, ok: bool, value: &str) -> SessionUpdate {
    let status = if ok { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let content: Vec<ToolCallContent> = vec![value.into()];
    changed(call_id, ToolCallUpdateFields::new().status(status).content(content))
}

fn changed(call_id: &Arc<str>, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call_id.clone(), fields))
}
