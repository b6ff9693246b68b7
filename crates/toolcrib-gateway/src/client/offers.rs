//! The offers of all servers of a request together.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use rmcp::model::{
    ExtensionCapabilities, Implementation, JsonObject, PromptsCapability, ResourcesCapability,
    SKILLS_EXTENSION_ID, ServerCapabilities, ServerConfig, ToolsCapability,
};
use toolcrib_mcp::__internal::ServerOffers;

use super::{config::SOURCES_WITHIN, servers::Server};

/// The offers of all servers of a request together.
#[derive(Debug, Clone, Default)]
pub(crate) struct CombinedOffers {
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) subscribe: bool,
    pub(crate) completions: bool,
    /// The instructions of each server.
    pub(crate) instructions: Vec<(Arc<str>, Arc<str>)>,
    /// The servers that are not ready, and never were.
    pub(crate) not_ready: HashSet<Arc<str>>,
}

impl CombinedOffers {
    /// Asks each server, for as long as a list waits. One that is not ready offers the same as before;
    /// one that never was may offer everything.
    pub(crate) async fn of(servers: &[Server]) -> Self {
        Self::within(SOURCES_WITHIN, servers).await
    }

    /// The same within a time.
    pub(crate) async fn within(allowed: Duration, servers: &[Server]) -> Self {
        let asked = servers.iter().map(|server| server.client.offers_within(allowed));
        let mut all = Self::default();
        for (server, offers) in servers.iter().zip(join_all(asked).await) {
            match offers {
                Ok(Some(offers)) => all.add(&server.name, &offers),
                Ok(None) => {
                    (all.prompts, all.resources) = (true, true);
                    (all.subscribe, all.completions) = (true, true);
                    all.not_ready.insert(Arc::clone(&server.name));
                }
                // It has no session for this caller.
                Err(_) => {}
            }
        }
        all
    }

    fn add(&mut self, server: &Arc<str>, offers: &ServerOffers) {
        let ServerCapabilities { prompts, resources, completions, .. } = &*offers.capabilities;
        self.prompts |= prompts.is_some();
        self.resources |= resources.is_some();
        self.subscribe |=
            resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true));
        self.completions |= completions.is_some();
        if let Some(text) = &offers.instructions {
            self.instructions.push((Arc::clone(server), Arc::clone(text)));
        }
    }

    /// The declaration to clients of both eras. Skills of the engine are resources too.
    pub(crate) fn config(&self, has_skills: bool) -> ServerConfig {
        let mut capabilities = ServerCapabilities::default();
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
        if self.prompts {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            capabilities.prompts = Some(prompts);
        }
        if self.resources {
            let mut resources = ResourcesCapability::default();
            resources.list_changed = Some(true);
            resources.subscribe = self.subscribe.then_some(true);
            capabilities.resources = Some(resources);
        }
        if has_skills {
            capabilities.resources.get_or_insert_default();
            let settings = JsonObject::from_iter([("directoryRead".to_owned(), true.into())]);
            let skills = (SKILLS_EXTENSION_ID.to_owned(), settings);
            capabilities.extensions = Some(ExtensionCapabilities::from_iter([skills]));
        }
        capabilities.completions = self.completions.then(JsonObject::new);
        // The gateway itself reports what it learns later.
        capabilities.logging = Some(JsonObject::new());
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("toolcrib", env!("CARGO_PKG_VERSION")))
    }
}
