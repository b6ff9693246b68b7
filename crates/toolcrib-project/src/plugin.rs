//! A plugin that is a folder of a project, as an engine takes it.

use std::{error::Error, sync::Arc};

use toolcrib_core::Tool;
use toolcrib_engine::{Plugin, PluginRegistrar};

use crate::{
    build::{DeclaredHub, WithAlternatives, sources},
    mcp::McpServer,
    skills::WatchedSkills,
};

/// What a plugin's folder adds.
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
            let WithAlternatives { provider, alternatives, on_failure } = source;
            registrar.source_with_alternatives(provider, alternatives, on_failure);
        }
        if let Some(skills) = &self.skills {
            registrar.skill_source(skills.clone());
        }
        Ok(())
    }
}
