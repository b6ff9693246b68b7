//! One call of a remote tool.

use std::sync::{Arc, Weak, atomic::Ordering};

use serde_json::{Map, Value, json};
use toolcrib_core::{
    Audience, BoxFuture, CancellationToken, ClientAbilities, ClientHandle, ContentBlock, ErrorCode,
    Progress, ProgressCount, ToolBody, ToolContext, ToolError, ToolOutput,
};

use super::{
    McpError,
    sessions::{SessionLease, Sessions},
    supervisor::Supervisor,
};
use crate::{
    connection::{
        Caller, MarkedArguments,
        types::{CallAnswer, CallRequest, RequestError},
    },
    wire::PROTOCOL_ERROR,
};

/// The JSON-RPC error codes of refused calls.
pub(super) const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;
/// A user must visit a URL before the call.
const URL_REQUIRED: i32 = -32_042;

/// The body of a remote tool. It has no reference to the client: a client has the tools of its
/// list.
pub(super) struct RemoteCall {
    pub(super) sessions: Weak<Sessions>,
    /// The server's name, for calls after the client is gone.
    pub(super) server: Arc<str>,
    /// The server's name of the tool.
    pub(super) tool: Arc<str>,
    /// Its arguments that are copied to headers.
    pub(super) marked: MarkedArguments,
    /// Whether it is trusted to be read-only.
    pub(super) read_only: bool,
    /// Whether it is trusted to be read-only or idempotent: a repetition does no harm.
    pub(super) repeatable: bool,
    /// The audience of its progress.
    pub(super) audience: Audience,
}

impl ToolBody for RemoteCall {
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let (_sessions, session) = session_of(&self.sessions, &self.server, &cx)?;
            self.run(&session, args, &cx, cx.handle::<ClientHandle>().ok()).await
        })
    }

    fn runs_inline(&self) -> bool {
        true
    }
}

impl RemoteCall {
    async fn run(
        &self,
        supervisor: &Arc<Supervisor>,
        args: Value,
        cx: &ToolContext,
        client: Option<&ClientHandle>,
    ) -> Result<ToolOutput, ToolError> {
        let over = CancellationToken::new();
        let _over = over.clone().drop_guard();
        let request = self.request(args, cx, client, over)?;
        let can = client.map(|client| client.0.abilities(&self.server)).unwrap_or_default();
        let mut tried_before = false;
        loop {
            let live = tokio::select! {
                biased;
                () = cx.cancellation().cancelled() => return Err(self.never_sent()),
                live = supervisor.connection() => live.map_err(not_available)?,
            };
            if !live.connection().is_legacy() && supervisor.replaces_by_session(&live) {
                live.settled().await;
                continue;
            }
            let outcome = live.call(request.clone()).await;
            let mut repeats = self.repeats(&outcome);
            if !live.connection().is_legacy() && asked_without_session(&outcome, can) {
                supervisor.shared().connect.needs_session();
                repeats |=
                    self.repeatable && !tried_before && supervisor.replaces_by_session(&live);
            }
            match outcome {
                Err(RequestError::NotSent(_)) if cx.cancellation().is_cancelled() => {
                    return Err(self.never_sent());
                }
                _ if repeats && !tried_before => {
                    tried_before = true;
                    live.settled().await;
                }
                Ok(answer) => return self.answered(answer),
                Err(mut error) => {
                    if let Some(caller) = &request.caller {
                        visit(caller, &mut error).await;
                    }
                    return Err(self.failed(supervisor, error));
                }
            }
        }
    }

    fn request(
        &self,
        args: Value,
        cx: &ToolContext,
        client: Option<&ClientHandle>,
        over: CancellationToken,
    ) -> Result<CallRequest, ToolError> {
        let Value::Object(arguments) = args else {
            return Err(ToolError::input_invalid("the arguments must be a JSON object"));
        };
        let (progress, audience) = (cx.clone(), self.audience);
        Ok(CallRequest {
            tool: Arc::clone(&self.tool),
            arguments: Arc::new(arguments),
            marked: self.marked.clone(),
            idempotency_key: cx.idempotency_key().into(),
            traceparent: cx.traceparent().map(Arc::from),
            on_progress: Arc::new(move |said: Progress| {
                let percent = said.count.and_then(percent_of);
                progress.progress(Progress { percent, audience, ..said });
            }),
            caller: client.map(|ClientHandle(client)| {
                let caller = Caller::new(Arc::clone(client), Arc::clone(&self.server), over);
                caller.within(cx.traceparent())
            }),
            cancellation: cx.cancellation().clone(),
        })
    }

    /// Whether a call can be repeated after such a failure: the server did not receive it, or a
    /// repetition does no harm.
    fn repeats(&self, outcome: &Result<CallAnswer, RequestError>) -> bool {
        match outcome {
            Err(RequestError::NotSent(_)) => true,
            Err(RequestError::SessionLost(_)) => self.repeatable,
            _ => false,
        }
    }

    fn answered(&self, answer: CallAnswer) -> Result<ToolOutput, ToolError> {
        let CallAnswer { output, is_error } = answer;
        if !is_error {
            return Ok(output);
        }
        let ToolOutput { value, blocks, .. } = &output;
        let said = (!value.trim().is_empty()).then(|| value.clone());
        let texts: Vec<_> =
            said.into_iter().chain(blocks.iter().map(ContentBlock::as_read)).collect();
        let error = ToolError::failed(match texts.is_empty() {
            true => format!("`{}` failed and did not say why", self.tool),
            false => texts.join("\n"),
        });
        let has_details =
            !blocks.is_empty() || output.structured.is_some() || output.meta.is_some();
        Err(if has_details { error.details(output) } else { error })
    }

    fn failed(&self, supervisor: &Arc<Supervisor>, error: RequestError) -> ToolError {
        if let RequestError::Refused { code, message, .. } = &error
            && is_unknown(*code, message)
        {
            supervisor.tools_changed();
        }
        failure(supervisor.server(), self.read_only, error)
    }

    fn never_sent(&self) -> ToolError {
        never_sent(&self.server)
    }
}

/// Shows the person the page that the server requires before the call.
async fn visit(caller: &Caller, error: &mut RequestError) {
    if let RequestError::Refused { code: URL_REQUIRED, message, data } = error
        && caller.visits(data.as_ref().unwrap_or(&Value::Null)).await
    {
        message.push_str(" (the page was opened; call again once that is done)");
    }
}

/// Whether a call failed because its server asks inside of calls, which a connection without a session
/// does not permit, for something that the client can do. Only the texts of the SDKs tell it.
fn asked_without_session(outcome: &Result<CallAnswer, RequestError>, can: ClientAbilities) -> bool {
    let methods = [
        ("elicitation/create", can.elicitation_form || can.elicitation_url),
        ("sampling/createmessage", can.sampling),
        ("roots/list", can.roots),
    ];
    let says_so = |text: &str| {
        let text = text.chars().take(2_000).collect::<String>().to_lowercase();
        let contains = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let names = |method: &str| {
            let feature = method.split('/').next().unwrap_or(method);
            text.contains(method) || (text.contains("server-initiated") && text.contains(feature))
        };
        methods.iter().any(|(method, is_able)| *is_able && names(method))
            && contains(&[
                "cannot",
                "can't",
                "no back-channel",
                "not support",
                "not available",
                "unavailable",
            ])
    };
    match outcome {
        Ok(CallAnswer { output, is_error: true }) => says_so(&output.value),
        Err(RequestError::Refused { message, .. }) => says_so(message),
        _ => false,
    }
}

/// The percentage of a count.
pub(super) fn percent_of(count: ProgressCount) -> Option<u8> {
    let total = count.total.filter(|total| *total > 0.0)?;
    let percent = (count.done / total * 100.0).clamp(0.0, 100.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it lies between 0 and 100"
    )]
    let percent = percent as u8;
    Some(percent)
}

/// The error of a call that the server did not take, by its status. Some servers give such a status to
/// a call that they began, so that only a call without effects counts as one that can be repeated.
fn not_taken(read_only: bool, text: String, error: RequestError) -> ToolError {
    match read_only {
        true => ToolError::new(ErrorCode::NotAvailable, text),
        false => ToolError::failed(text),
    }
    .caused_by(error)
}

const AGAIN: &str = "; it changes nothing, so it can be called again";

/// The error of a call that may have been executed and has no result, with what a model reads further:
/// of a call without effects, and of any other.
fn without_result(
    read_only: bool,
    what: String,
    [if_read_only, otherwise]: [&str; 2],
    error: RequestError,
) -> ToolError {
    match read_only {
        true => ToolError::failed(what + if_read_only),
        false => {
            let text = "; the call may have had its effect, so check before trying again";
            ToolError::new(ErrorCode::OutcomeUnknown, what + text + otherwise)
        }
    }
    .caused_by(error)
}

/// The failure of a call or another request of a server.
pub(super) fn failure(server: &str, read_only: bool, error: RequestError) -> ToolError {
    let server = format!("MCP server `{server}`");
    match error {
        RequestError::Refused { code, message, data } => {
            let is_unknown = is_unknown(code, &message);
            // Never `not_available`, which says that nothing was done: a server that responds
            // was reached, and may refuse after it has done its work.
            let error = match code {
                INVALID_PARAMS if !is_unknown => ToolError::input_invalid(message),
                _ => ToolError::failed(message),
            };
            error.details(protocol_error(code, data.as_ref()))
        }
        RequestError::NotAnswered(_) => {
            let text = format!("{server} required input that its client did not give");
            ToolError::failed(text).caused_by(error)
        }
        RequestError::NotSent(_) => {
            let text = format!("{server} cannot be used at the moment; it did not take the call");
            ToolError::new(ErrorCode::NotAvailable, text).caused_by(error)
        }
        RequestError::Denied(_) => {
            not_taken(read_only, format!("{server} denied access to this call"), error)
        }
        RequestError::Limited { wait, .. } => {
            let later = wait.map_or_else(
                || "try again later".to_owned(),
                |wait| format!("try again in {} seconds", wait.as_secs().max(1)),
            );
            let text = format!("{server} limits the rate of requests; {later}");
            not_taken(read_only, text, error)
        }
        RequestError::Failed { status, .. } => {
            let what = format!("{server} failed (HTTP {status})");
            without_result(read_only, what, [AGAIN, ""], error)
        }
        RequestError::TooLarge(_) => {
            let what = format!("{server} sent an answer that is too large");
            let less = ["; request less at a time", ", and request less at a time"];
            without_result(read_only, what, less, error)
        }
        RequestError::Malformed(_) => {
            let what = format!("{server} gave an answer that cannot be used");
            without_result(read_only, what, ["", ""], error)
        }
        RequestError::Lost(_) | RequestError::SessionLost(_) => {
            let what = format!("the connection to {server} ended before an answer came");
            without_result(read_only, what, [AGAIN, ""], error)
        }
        RequestError::Cancelled(_) if read_only => {
            ToolError::new(ErrorCode::Cancelled, "the call was cancelled").caused_by(error)
        }
        RequestError::Cancelled(_) => {
            let what = format!("{server} received a cancellation of the call");
            let text = "; it may have had its effect, so check before trying again";
            ToolError::new(ErrorCode::OutcomeUnknown, what + text).caused_by(error)
        }
    }
}

pub(super) fn never_sent(server: &str) -> ToolError {
    let text = format!("MCP server `{server}` was not connected in time; the call was not sent");
    ToolError::new(ErrorCode::Cancelled, text)
}

/// A server's protocol error, for clients of a gateway: its code and data.
fn protocol_error(code: i32, data: Option<&Value>) -> ToolOutput {
    let error = json!({ "code": code, "data": data });
    let meta = Map::from_iter([(PROTOCOL_ERROR.to_owned(), error)]);
    ToolOutput { meta: Some(meta.into()), ..ToolOutput::default() }
}

/// Whether a server reports an unknown method or tool.
fn is_unknown(code: i32, message: &str) -> bool {
    code == METHOD_NOT_FOUND || code == INVALID_PARAMS && names_no_tool(message)
}

/// The caller's session: a cached list may come from another's.
pub(super) fn session_of(
    sessions: &Weak<Sessions>,
    server: &str,
    cx: &ToolContext,
) -> Result<(Arc<Sessions>, SessionLease), ToolError> {
    let Some(sessions) = sessions.upgrade() else {
        let gone = format!("the client of MCP server `{server}` is closed");
        return Err(ToolError::new(ErrorCode::NotAvailable, gone));
    };
    let client = cx.handle::<ClientHandle>().ok();
    let can = client.map(|client| client.0.abilities(server)).unwrap_or_default();
    let session = sessions.of(&sessions.whose(cx.identity(), can)).map_err(not_available)?;
    session.had_call.store(true, Ordering::Release);
    Ok((sessions, session))
}

/// An error before anything was sent.
pub(super) fn not_available(error: McpError) -> ToolError {
    // A caller without access says nothing about the server.
    let code = match &error {
        McpError::NoAccess { .. } => ErrorCode::Denied,
        _ => ErrorCode::NotAvailable,
    };
    ToolError::new(code, error.for_model()).caused_by(error)
}

/// Whether a server reports an unknown tool. Most report it as invalid parameters, like the
/// protocol's examples, so only the text tells it.
fn names_no_tool(message: &str) -> bool {
    let message = message.chars().take(2_000).collect::<String>().to_lowercase();
    message.contains("unknown tool") || (message.contains("tool") && message.contains("not found"))
}
