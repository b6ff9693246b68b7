//! A plugin in a folder of a project, in the form of an engine's plugin.

use std::{error::Error, sync::Arc};

use toolcrib_core::Tool;
use toolcrib_engine::{Plugin, PluginRegistrar};

use crate::{
    bind::alternatives::{EngineSource, sources},
    build::{DeclaredHub, mcp::server::McpServer},
    skills::watched::WatchedSkills,
};

/// The content of a plugin's folder.
#[derive(Clone)]
pub(crate) struct FolderPlugin {
    pub(crate) id: Arc<str>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) mcp: Vec<McpServer>,
    pub(crate) hubs: Vec<DeclaredHub>,
    pub(crate) skills: Option<WatchedSkills>,
}

impl Plugin for FolderPlugin {
    fn id(&self) -> &str {
        &self.id
    }

    fn register(
        &self,
        registrar: &mut PluginRegistrar,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        for tool in &self.tools {
            registrar.tool(tool.clone());
        }
        let (of_servers, of_hubs) = (sources(&self.mcp.iter()), sources(&self.hubs.iter()));
        for source in of_servers.into_iter().chain(of_hubs) {
            let EngineSource { provider, alternatives, on_failure } = source;
            registrar.provider_with_alternatives(provider, alternatives, on_failure);
        }
        if let Some(skills) = &self.skills {
            registrar.skill_source(skills.clone());
        }
        Ok(())
    }
}
