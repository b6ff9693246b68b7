//! `logging/setLevel`: the level of the servers' log messages in a session. Each server receives it,
//! unless another client of its session requires more; the session filters what its client receives.

use std::sync::Arc;

use futures_util::future::join_all;
use rmcp::{ErrorData, model::ServerResult};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::{
    client::{
        config::SOURCES_WITHIN,
        log_messages::is_level,
        request::{Era, RequestContext},
    },
    wire::message::{Outcome, no_method},
};

pub(crate) async fn set_level(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    let _place = context.place()?;
    let Era::Session(session) = &context.era else { return Err(no_method("logging/setLevel")) };
    let level = params.get("level").and_then(Value::as_str).filter(|level| is_level(level));
    let Some(level) = level else {
        let message = "`logging/setLevel` takes `level`: debug, info, notice, warning, error, \
            critical, alert or emergency";
        return Err(ErrorData::invalid_params(message, None));
    };
    let servers = context.servers().await?;
    session.client.log.set(level);
    let level: Arc<str> = level.into();
    if let Some(shared) = &session.shared {
        let log = Some(Arc::clone(&level));
        // Without the store, the session goes on here with it; other replicas send all messages.
        let _ = shared.change(move |state| state.log.clone_from(&log)).await;
    }
    let sent = servers.all.iter().map(|server| {
        let sent = server.client.set_log_level(Arc::clone(&level), SOURCES_WITHIN);
        timeout(SOURCES_WITHIN, sent)
    });
    // A server that does not take the level sends what it wants: the session filters it.
    join_all(sent).await;
    Ok(ServerResult::empty(()))
}
