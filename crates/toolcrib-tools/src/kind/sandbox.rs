//! The sandbox of a program of a tool or an MCP server, as written.

use std::sync::Arc;

use toolcrib_capabilities::process::SandboxTier;
use toolcrib_config::{Located, Spot, Table, Value};

/// The keys of a sandbox in a section.
#[derive(Debug, Clone, Default)]
pub struct SandboxSection {
    /// The tier; that of the project unless set.
    pub tier: Option<Located<SandboxTier>>,
    /// Folders and files to read.
    pub read: Vec<Located<Arc<str>>>,
    /// Folders and files to change.
    pub write: Vec<Located<Arc<str>>>,
    /// Hosts to reach.
    pub hosts: Vec<Located<Arc<str>>>,
    /// Addresses outside the public internet that they may lead to.
    pub addresses: Vec<Located<Arc<str>>>,
}

impl SandboxSection {
    /// The keys that configure a sandbox.
    pub const KEYS: [&str; 5] =
        ["sandbox", "sandbox_read", "sandbox_write", "sandbox_hosts", "sandbox_addresses"];

    /// Reads the keys; problems are recorded.
    pub fn read(table: &Table<'_>) -> Self {
        Self {
            tier: table.value("sandbox").and_then(|value| tier(&value)),
            read: table.texts("sandbox_read"),
            write: table.texts("sandbox_write"),
            hosts: table.texts("sandbox_hosts"),
            addresses: table.texts("sandbox_addresses"),
        }
    }

    /// The keys that are set, with their positions.
    pub fn keys(&self) -> impl Iterator<Item = (&'static str, &Spot)> {
        let places = [
            self.tier.as_ref().map(|tier| &tier.at),
            self.read.first().map(|path| &path.at),
            self.write.first().map(|path| &path.at),
            self.hosts.first().map(|host| &host.at),
            self.addresses.first().map(|address| &address.at),
        ];
        Self::KEYS.into_iter().zip(places).filter_map(|(key, at)| Some((key, at?)))
    }
}

/// The name of a tier; others are recorded.
pub fn tier(value: &Value<'_>) -> Option<Located<SandboxTier>> {
    value.word(&SandboxTier::ALL.map(|tier| (tier.as_str(), tier)))
}
