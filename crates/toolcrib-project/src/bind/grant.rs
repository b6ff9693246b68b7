//! The access that a project grants its plugins.

use std::{net::SocketAddr, sync::Arc};

use toolcrib_capabilities::http::AllowedAddress;
use toolcrib_config::{Diagnostic, Located, Problems, Spot};

use super::{addresses::parse_address, located::values};
use crate::file::PluginSection;

/// The access outside its folder that the project grants a plugin.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) plugin: Arc<str>,
    programs: bool,
    secrets: Vec<Arc<str>>,
    databases: Vec<Arc<str>>,
    files: Vec<Arc<str>>,
    addresses: Vec<AllowedAddress>,
}

impl Grant {
    pub(crate) fn of(section: &PluginSection, problems: &Problems) -> Self {
        Self {
            plugin: Arc::clone(&section.name.value),
            programs: section.programs,
            secrets: values(&section.secrets),
            databases: values(&section.databases),
            files: values(&section.files),
            addresses: section
                .allow_addresses
                .iter()
                .filter_map(|address| parse_address(address, problems))
                .collect(),
        }
    }

    pub(crate) fn secrets(&self) -> &[Arc<str>] {
        &self.secrets
    }

    pub(crate) fn has_database(&self, name: &str) -> bool {
        self.databases.iter().any(|granted| **granted == *name)
    }

    pub(crate) fn has_files(&self, name: &str) -> bool {
        self.files.iter().any(|granted| **granted == *name)
    }

    /// Whether the exact address is granted. A network does not cover its addresses here, since
    /// some addresses must be named explicitly.
    pub(crate) fn may_allow(&self, address: &AllowedAddress) -> bool {
        self.addresses.contains(address)
    }

    /// Whether a granted address or network covers this address.
    pub(crate) fn has_address(&self, address: SocketAddr) -> bool {
        self.addresses.iter().any(|granted| granted.allows(address))
    }

    /// Records a program that is not granted.
    pub(crate) fn check_program(&self, at: &Spot, problems: &Problems) {
        if !self.programs {
            self.refuse(at, "runs programs", "programs = true", problems);
        }
    }

    /// Records environment variables in a plugin's declaration.
    pub(crate) fn refuse_variable(&self, at: &Spot, problems: &Problems) {
        let message = format!(
            "the plugin `{}` may not read environment variables: they can contain secrets",
            self.plugin
        );
        let help = "write \"secret:NAME\" in `env` or `headers`, and let the project grant the \
            secret";
        problems.push(Diagnostic::error(at, message).help(help));
    }

    /// Records missing access: the plugin's action, and the grant that the project would have to
    /// write.
    pub(crate) fn refuse(&self, at: &Spot, does: &str, write: &str, problems: &Problems) {
        let plugin = &self.plugin;
        let message = format!("the plugin `{plugin}` {does}, which the project does not grant");
        let help = format!("to permit it, write below [plugin.{plugin}]: {write}");
        problems.push(Diagnostic::error(at, message).help(help));
    }
}

/// The addresses that may be dialed though they are not public; what is none is recorded.
pub(crate) fn allowed_addresses(
    addresses: &[Located<Arc<str>>],
    grant: Option<&Grant>,
    problems: &Problems,
) -> Vec<AllowedAddress> {
    let allowed = |text: &Located<Arc<str>>| {
        let address = parse_address(text, problems)?;
        if let Some(grant) = grant.filter(|grant| !grant.may_allow(&address)) {
            let does = format!("dials `{}`", text.value);
            let write = format!("allow_addresses = [\"{}\"]", text.value);
            grant.refuse(&text.at, &does, &write, problems);
        }
        Some(address)
    };
    addresses.iter().filter_map(allowed).collect()
}
