//! `initialize`: begins the session of a connection.

use std::{sync::Arc, time::Instant};

use rmcp::{ErrorData, model::ProtocolVersion};
use toolcrib_core::{__internal::millis, ClientAbilities};
use toolcrib_mcp::__internal as mcp;

use crate::{
    access::{Caller, access_log::AccessEntry},
    client::{
        announcements::{self, SessionServers},
        callers::Restrictions,
        connection::Connection,
        context::ServeContext,
        offers::CombinedOffers,
        sender::{Answer, ClientSender},
        servers::reached,
        session::{Purpose, Session},
        shared_session::{SharedSession, SharedState},
    },
    wire::message::{INITIALIZE, Request, no_method, requested_version},
};

/// Begins a session of a connection. Its notifications go to the client from then on.
pub(crate) async fn initialize(
    serving: &ServeContext,
    caller: &Caller,
    request: Request,
    connection: &Connection,
    client: ClientSender,
) -> Answer {
    let began = Instant::now();
    // Why a session did not begin, which the client does not receive.
    let mut cause = None;
    let outcome = async {
        let protocol = negotiated(&request)?;
        let declared = request.params.get("capabilities");
        let mut can = declared.map(mcp::abilities).unwrap_or_default();
        can.in_session = true;
        let start = SessionStart { connection, client, shared: None };
        let offered = begin(serving, caller, protocol.clone(), can, start, &mut cause).await?;
        let has_skills = serving.gateway.has_skills(&caller.access);
        let mut result = offered.config(has_skills).with_protocol_version(protocol);
        result.instructions = Some(serving.gateway.instructions(&caller.access, true, &offered));
        Ok(result)
    };
    let outcome: Result<_, ErrorData> = outcome.await;
    let mut entry = AccessEntry::new(INITIALIZE, Some(caller));
    entry.session = connection.session().map(|session| Arc::clone(&session.id));
    match &outcome {
        Ok(result) => entry.protocol = Some(result.protocol_version.to_string()),
        Err(error) => entry.error = Some(cause.unwrap_or_else(|| (*error.message).into())),
    }
    entry.duration_ms = millis(began.elapsed());
    serving.gateway.log(entry);
    Answer::new(request.id, outcome.map(Into::into))
}

/// The connection of a session that begins, or that began at another replica.
pub(crate) struct SessionStart<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) client: ClientSender,
    /// The state that another replica has noted.
    pub(crate) shared: Option<(SharedSession, Arc<SharedState>)>,
}

pub(crate) async fn begin(
    serving: &ServeContext,
    caller: &Caller,
    protocol: ProtocolVersion,
    can: ClientAbilities,
    SessionStart { connection, client, shared }: SessionStart<'_>,
    cause: &mut Option<Arc<str>>,
) -> Result<CombinedOffers, ErrorData> {
    let (access, id) = (&caller.access, connection.id());
    // A client over HTTP that lost its session goes on in a new one. A client by stdio has a new
    // program, and so a new conversation.
    let replicas = serving.gateway.config.replicas.as_ref().filter(|_| caller.peer.is_some());
    let restrictions = match (caller.peer, &shared) {
        (_, Some((_, state))) => state.restrictions(),
        (Some(_), None) => serving.gateway.restrictions_of_session(access).await,
        (None, None) => Restrictions::default(),
    };
    let (shared, state) = shared.unzip();
    let shared = shared.or_else(|| replicas.map(|replicas| SharedSession::new(replicas, id)));
    let mut refused = |told: String, error: &dyn std::error::Error| {
        *cause = Some(error.to_string().into());
        ErrorData::internal_error(told, None)
    };
    let begun = Session::begin(serving, access, id, protocol, can, restrictions, shared);
    let (session, ended) = begun.map_err(|error| refused(error.caller_text(), &error))?;
    if let Some(state) = state {
        let taken = session.take_over(&state).await;
        taken.map_err(|error| refused(error.caller_text(), &error))?;
    }
    let told = "the session cannot be stored now; try again later";
    session.share_begun().await.map_err(|error| refused(told.to_owned(), &error))?;
    if !connection.begin(Arc::clone(&session)) {
        session.give_up().await;
        let twice = "this connection has been initialized already";
        return Err(ErrorData::invalid_request(twice, None));
    }
    announcements::end_with(serving, &session, ended.clone());
    let all = &serving.gateway.config.servers;
    // No source is needed; if one fails nevertheless, lists say so.
    let iteration = match all.is_empty() {
        true => None,
        false => session.iteration(Purpose::Call("")).await.ok().map(|(iteration, _)| iteration),
    };
    let servers = iteration.map(|iteration| reached(&iteration, &session.identity, all));
    let servers = servers.unwrap_or_default();
    let outside = Arc::new(session.outside(connection.clone(), client.clone()));
    // Before they start: a server may ask as soon as it is connected.
    let attached = SessionServers::to(&servers, outside);
    let offered = CombinedOffers::of(&servers).await;
    announcements::pass_on(serving, &session, connection, attached, &offered, client.clone());
    announcements::announce_to(serving, &session, ended, connection.changes().clone(), client);
    Ok(offered)
}

/// The version of the session: the client's, or the newest that has sessions.
fn negotiated(request: &Request) -> Result<ProtocolVersion, ErrorData> {
    // A version of the stateless era in the metadata does not have this method.
    if request.declares_stateless() {
        return Err(no_method(INITIALIZE));
    }
    let asked = requested_version(&request.params)?;
    let is_known = asked.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(&asked);
    Ok(if is_known { asked } else { ProtocolVersion::LATEST_WITH_INITIALIZE })
}
