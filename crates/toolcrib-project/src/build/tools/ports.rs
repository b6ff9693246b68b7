//! The parts of the project that its tools are built with.

use std::{cell::RefCell, sync::Arc};

use toolcrib_capabilities::{
    files::Files,
    http::{AllowedAddress, HttpClient},
    process::SandboxTier,
};
use toolcrib_config::Located;
use toolcrib_tools::{KindPorts, MemoryParts, ProgramAccess, ProgramPlace, sql::SqlDatabase};

use super::unbuilt::{Surroundings, UnbuiltTool};
use crate::{
    bind::{grant::allowed_addresses, located::is_declared},
    build::{databases::Databases, files::Folders, own::ProjectStorage},
    user::secrets::ProjectSecrets,
};

/// The parts of a project that its tools use.
pub(crate) struct ProjectParts<'a> {
    pub(crate) databases: &'a Databases,
    pub(crate) folders: &'a Folders,
    pub(crate) storage: &'a ProjectStorage,
    pub(crate) secrets: &'a ProjectSecrets,
    clients: RefCell<Vec<(Vec<AllowedAddress>, HttpClient)>>,
}

/// The parts of the project as one tool may use them.
pub(super) struct ToolPorts<'a> {
    pub(super) tool: &'a UnbuiltTool<'a>,
    pub(super) parts: &'a ProjectParts<'a>,
}

impl<'a> ProjectParts<'a> {
    pub(crate) fn new(
        databases: &'a Databases,
        folders: &'a Folders,
        storage: &'a ProjectStorage,
        secrets: &'a ProjectSecrets,
    ) -> Self {
        Self { databases, folders, storage, secrets, clients: RefCell::default() }
    }

    /// One client for all tools that may dial the same addresses, so that they share connections.
    fn client(&self, allowed: Vec<AllowedAddress>) -> HttpClient {
        let mut clients = self.clients.borrow_mut();
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == allowed) {
            return client.clone();
        }
        let client = HttpClient::builder().allow_addresses(allowed.iter().copied()).build();
        clients.push((allowed, client.clone()));
        client
    }
}

impl ToolPorts<'_> {
    /// Whether the tool is the project's own; of a plugin's it is recorded that it is not.
    fn is_own(&self, message: &str) -> bool {
        let is_own = self.tool.around.names.grant.is_none();
        if !is_own {
            let help = "declare the tool in the project's own file";
            self.tool.refuse(&self.tool.section.at, message, help);
        }
        is_own
    }
}

impl KindPorts for ToolPorts<'_> {
    fn database(&self, named: Option<&Located<Arc<str>>>) -> Option<SqlDatabase> {
        let Surroundings { names, problems, .. } = self.tool.around;
        let databases = self.parts.databases;
        databases.of_tool(named, &self.tool.section.at, names.grant.as_deref(), problems).cloned()
    }

    fn folders(&self, named: &[Located<Arc<str>>]) -> Option<Vec<Files>> {
        let Surroundings { names, problems, .. } = self.tool.around;
        let folders = self.parts.folders;
        folders.of_tool(named, &self.tool.section.at, names.grant.as_deref(), problems)
    }

    fn http_client(&self, allow_addresses: &[Located<Arc<str>>]) -> HttpClient {
        let Surroundings { names, problems, .. } = self.tool.around;
        let allowed = allowed_addresses(allow_addresses, names.grant.as_deref(), problems);
        self.parts.client(allowed)
    }

    fn program(&self, program: &ProgramAccess<'_>, least: SandboxTier) -> ProgramPlace {
        self.tool.program(program, least)
    }

    fn memory(&self) -> Option<MemoryParts> {
        let is_own = self.is_own("a plugin cannot reach the memory of the agent and its sessions");
        is_own.then(|| self.parts.storage.memory())
    }

    fn may_delegate(&self, personalities: &[Located<Arc<str>>]) -> bool {
        let is_own = self.is_own("a plugin cannot give tasks to agents of the project");
        if is_own {
            let Surroundings { names, problems, .. } = self.tool.around;
            for personality in personalities {
                is_declared(personality, "personality", &names.personalities, problems);
            }
        }
        is_own
    }

    fn has_secret(&self, name: &str) -> bool {
        self.parts.secrets.check(name).is_ok()
    }
}
