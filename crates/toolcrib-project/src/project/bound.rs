//! The second phase of loading: the names of a project, resolved.

use std::{path::PathBuf, sync::Arc};

use toolcrib_core::Policy;
use toolcrib_engine::{Deferral, Skill};

use super::{declared::Declared, parts::ProjectServing};
use crate::{
    bind::{
        alternatives::check_alternatives,
        names::Names,
        part_names::{
            check_plugins, report_captured_names, report_false_origins, report_taken_names,
        },
    },
    build::{
        build_policy, build_secrets, build_serving, build_skills, build_tokens,
        report_duplicate_tools, serve::ServeSettings,
    },
    file::{PLUGIN_FILE, PROJECT_FILE},
    read::system::system_text,
    user::secrets::ProjectSecrets,
};

/// A project whose names are resolved: whatever refers to another section was checked.
pub(super) struct Bound {
    pub(super) declared: Declared,
    pub(super) names: Names,
    pub(super) policy: Policy,
    pub(super) deferral: Deferral,
    /// The skills of each part.
    pub(super) skills: Vec<Vec<Arc<Skill>>>,
    pub(super) system: Option<Arc<str>>,
    pub(super) secrets: ProjectSecrets,
    pub(super) serving: ProjectServing,
}

impl Declared {
    /// Resolves the names.
    pub(super) fn bind(self) -> Bound {
        let Self { options, problems, root, state, file, parts, mcp_files, .. } = &self;
        let names = Names::of(file, parts, mcp_files, &options.plugins, state);
        check_plugins(file, &options.plugins, &names, problems);
        let has_skills = !names.skills.is_empty();
        report_duplicate_tools(parts, has_skills, file.artifacts.is_some(), problems);
        report_taken_names(parts, mcp_files, problems);
        report_captured_names(parts, problems);
        report_false_origins(parts, problems);
        let rules = &file.reliability.rules;
        parts.iter().for_each(|part| check_alternatives(part, mcp_files, rules, problems));
        let deferral = file.tool_search.deferral(parts.iter().map(|part| &part.declared));
        let policy = build_policy(&file.policy, &names, problems);
        let of_part =
            |part| build_skills(part, &names, problems).into_iter().map(Arc::new).collect();
        let skills = parts.iter().map(of_part).collect();
        let system = file.agent.system.as_ref();
        let system = system.and_then(|text| system_text(text, root, problems));
        let secrets = build_secrets(file, parts, &names, problems);
        let settings = build_serving(&file.serve, root.path(), &names, problems);
        let tokens = build_tokens(&file.serve, &secrets, &names, problems);
        let watched_files = self.watched_files(&settings);
        let serving = ProjectServing { tokens, settings, watched_files };
        Bound { declared: self, names, policy, deferral, skills, system, secrets, serving }
    }

    /// The files that declare the project.
    fn watched_files(&self, settings: &ServeSettings) -> Vec<PathBuf> {
        let Self { options, root, is_folder, file, parts, .. } = self;
        let own = is_folder.then(|| root.path().join(PROJECT_FILE));
        let of_files = file.mcp_files.iter().map(|name| root.path().join(&*name.value));
        let imports = options.imports.iter().filter_map(|path| std::path::absolute(path).ok());
        let plugins = parts.iter().filter(|part| part.plugin_id().is_some());
        let plugins = plugins.map(|part| part.root.path().join(PLUGIN_FILE));
        let tls = settings.tls.iter();
        let tls = tls.flat_map(|tls| [tls.certificate.clone(), tls.key.clone()]);
        own.into_iter().chain(of_files).chain(imports).chain(plugins).chain(tls).collect()
    }
}
