//! `toolcrib acp`: the project as an agent in an editor that speaks the Agent Client Protocol.

mod editor;
mod pipes;
mod prompt;
mod session;
mod sessions;

use agent_client_protocol::{
    Agent, Error,
    schema::ProtocolVersion,
    v1::{
        Responder,
        schema::{
            AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse,
            Implementation, InitializeRequest, InitializeResponse, LoadSessionRequest,
            LoadSessionResponse, NewSessionRequest, NewSessionResponse, PromptCapabilities,
            PromptRequest, PromptResponse, SessionCapabilities, SessionCloseCapabilities,
        },
    },
};
use tokio::sync::mpsc;
use toolcrib_core::CancellationToken;

use self::sessions::Sessions;
use crate::{
    args::{AcpArgs, GlobalArgs},
    exit::{self, Exit},
    problem::Problem,
};

/// The limit of requests that wait to be dispatched. An editor that sends more waits.
const MAX_WAITING: usize = 64;

/// A message of the editor about sessions.
enum Request {
    New(NewSessionRequest, Responder<NewSessionResponse>),
    Load(LoadSessionRequest, Responder<LoadSessionResponse>),
    Prompt(PromptRequest, Responder<PromptResponse>),
    Cancel(CancelNotification),
    Close(CloseSessionRequest, Responder<CloseSessionResponse>),
}

pub(super) async fn acp(
    global: &GlobalArgs,
    args: AcpArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    if global.json {
        return Err(Problem::usage("`acp` prints no JSON: its standard output is the protocol"));
    }
    if args.situation.session.is_some() {
        return Err(Problem::usage(
            "`acp` does not accept `--session`: the editor begins and loads the sessions",
        ));
    }
    let (sender, requests) = mpsc::channel(MAX_WAITING);
    let pass = |request: Request| {
        let sender = sender.clone();
        // It fails at the end alone, when nothing is answered any more.
        async move { sender.send(request).await.map_err(|_| Error::internal_error()) }
    };
    let served = Agent
        .v1()
        .name("toolcrib")
        .on_receive_request(
            async |_: InitializeRequest, responder, _| responder.respond(initialized()),
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async |new: NewSessionRequest, responder, _| pass(Request::New(new, responder)).await,
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async |load: LoadSessionRequest, responder, _| {
                pass(Request::Load(load, responder)).await
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async |prompt: PromptRequest, responder, _| {
                pass(Request::Prompt(prompt, responder)).await
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async |cancel: CancelNotification, _| pass(Request::Cancel(cancel)).await,
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async |close: CloseSessionRequest, responder, _| {
                pass(Request::Close(close, responder)).await
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(pipes::stdio(), async |editor| {
            Sessions::new(global, &args, cancellation, editor).serve(requests).await;
            Ok(())
        });
    served.await.map_err(|error| Problem::failed("acp_failed", failure(&error)))?;
    Ok(exit::FINE)
}

/// The protocol's errors have their cause in the data.
fn failure(error: &Error) -> String {
    let cause = error.data.as_ref().map(|data| match data.as_str() {
        Some(text) => format!(": {text}"),
        None => format!(": {data}"),
    });
    format!("the connection with the editor failed: {}{}", error.message, cause.unwrap_or_default())
}

fn initialized() -> InitializeResponse {
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
        .session_capabilities(SessionCapabilities::new().close(SessionCloseCapabilities::new()));
    InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities).agent_info(
        Implementation::new("toolcrib", env!("CARGO_PKG_VERSION")).title("Toolcrib".to_owned()),
    )
}
