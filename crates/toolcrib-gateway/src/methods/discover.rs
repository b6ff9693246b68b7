//! `server/discover`: the offers of the gateway to a client.

use rmcp::{
    ErrorData,
    model::{DiscoverResult, ProtocolVersion},
};

use crate::{
    client::{offers::CombinedOffers, request::RequestContext},
    wire::message::Outcome,
};

/// `server/discover`.
pub(crate) async fn discover(context: &RequestContext<'_>) -> Outcome {
    let (gateway, access) = (&context.serving.gateway, &context.caller.access);
    gateway.check(access).map_err(|error| ErrorData::internal_error(error.caller_text(), None))?;
    let offered = match gateway.config.servers.is_empty() {
        true => CombinedOffers::default(),
        false => CombinedOffers::of(&context.servers().await?.all).await,
    };
    let instructions = gateway.instructions(access, false, &offered);
    let config = offered.config(gateway.has_skills(access)).with_instructions(instructions);
    let versions = ProtocolVersion::KNOWN_VERSIONS.to_vec();
    Ok(DiscoverResult::from_server_info(versions, config).into())
}
