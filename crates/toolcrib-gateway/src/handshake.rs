//! `initialize`: begins the session of a connection.

use std::{sync::Arc, time::Instant};

use rmcp::{
    ErrorData,
    model::{
        Implementation, InitializeRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
        ToolsCapability,
    },
};
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use toolcrib_core::__internal::millis;

use super::{
    Serving,
    access::Caller,
    access_log::AccessEntry,
    changes,
    connection::Connection,
    exchange::{Answer, Outgoing},
    message::{INITIALIZE, Request, no_method},
    session::Session,
};

/// The declaration of the server to clients of both eras.
pub(super) fn server_config() -> ServerConfig {
    let mut tools = ToolsCapability::default();
    tools.list_changed = Some(true);
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(tools);
    ServerConfig::new(capabilities)
        .with_server_info(Implementation::new("toolcrib", env!("CARGO_PKG_VERSION")))
}

/// Begins a session of a connection, with a permit if sessions are limited. Its notifications go to
/// the client from then on.
pub(super) fn initialize(
    serving: &Serving,
    caller: &Caller,
    request: Request,
    connection: &Connection,
    client: Outgoing,
    place: Option<OwnedSemaphorePermit>,
) -> Answer {
    let began = Instant::now();
    // Why a session did not begin, which the client does not receive.
    let mut cause = None;
    let outcome = negotiated(&request).and_then(|protocol| {
        let mut result = server_config().with_protocol_version(protocol.clone());
        begin(serving, caller, protocol, connection, client, place, &mut cause)?;
        result.instructions = Some(serving.gateway.instructions(&caller.access, true));
        Ok(result)
    });
    serving.gateway.log(|| {
        let mut entry = AccessEntry::new(INITIALIZE, Some(caller));
        entry.session = connection.session().map(|session| Arc::clone(&session.id));
        match &outcome {
            Ok(result) => entry.protocol = Some(result.protocol_version.to_string()),
            Err(error) => entry.error = Some(cause.unwrap_or_else(|| (*error.message).into())),
        }
        entry.duration_ms = millis(began.elapsed());
        entry
    });
    Answer::new(request.id, outcome.map(Into::into))
}

fn begin(
    serving: &Serving,
    caller: &Caller,
    protocol: ProtocolVersion,
    connection: &Connection,
    client: Outgoing,
    place: Option<OwnedSemaphorePermit>,
    cause: &mut Option<Arc<str>>,
) -> Result<(), ErrorData> {
    let (session, ended) =
        Session::begin(serving, &caller.access, connection.id(), protocol, place).map_err(
            |error| {
                *cause = Some(error.to_string().into());
                ErrorData::internal_error(error.caller_text(), None)
            },
        )?;
    if !connection.begin(Arc::clone(&session)) {
        let twice = "this connection has been initialized already";
        return Err(ErrorData::invalid_request(twice, None));
    }
    changes::announce_to(serving, &session, ended, connection.changes().clone(), client);
    Ok(())
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

/// The version that the parameters of `initialize` request.
pub(super) fn requested_version(params: &Map<String, Value>) -> Result<ProtocolVersion, ErrorData> {
    let params = serde_json::from_value::<InitializeRequestParams>(params.clone().into());
    params.map(|params| params.protocol_version).map_err(|missing| {
        let message = format!("these are not the parameters of `{INITIALIZE}`: {missing}");
        ErrorData::invalid_params(message, None)
    })
}
