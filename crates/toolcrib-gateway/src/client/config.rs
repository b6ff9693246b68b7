//! The configuration of a gateway.

use std::{collections::HashSet, path::PathBuf, sync::Arc, time::Duration};

use toolcrib_core::{Digest, KvStore};
use toolcrib_engine::Engine;
use toolcrib_mcp::McpClient;

use super::{changes::Changes, names::ShownNames};
use crate::access::{
    access_log::AccessLog,
    log_health::{LogHealth, RequiredLog},
    readiness::Readiness,
    replicas::Replicas,
};

/// Everything that a [`GatewayBuilder`](crate::gateway::GatewayBuilder) sets; each field is named
/// like its method.
pub(crate) struct GatewayConfig {
    pub(crate) engine: Engine,
    pub(crate) changes: Changes,
    pub(crate) servers: Vec<McpClient>,
    /// The servers whose texts are not fenced.
    pub(crate) unfenced: HashSet<Arc<str>>,
    pub(crate) names: ShownNames,
    pub(crate) instructions: Option<String>,
    pub(crate) working_dir: Option<PathBuf>,
    pub(crate) log: Option<AccessLog>,
    pub(crate) audit: Option<AccessLog>,
    pub(crate) readiness: Readiness,
    pub(crate) drain: Duration,
    pub(crate) caller_store: Option<Arc<dyn KvStore>>,
    pub(crate) logs: Vec<LogHealth>,
    pub(crate) required: Option<RequiredLog>,
    pub(crate) replicas: Option<Replicas>,
    pub(crate) digest: Option<Digest>,
}

/// How long a list waits for a source: the tools of a slower server follow once it is connected,
/// with a notification that the list has changed.
pub(crate) const SOURCES_WITHIN: Duration = Duration::from_secs(5);
