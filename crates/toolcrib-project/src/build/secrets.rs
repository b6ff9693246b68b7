//! Declared secrets, and the tools that refer to them.

use std::{collections::HashSet, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems};
use toolcrib_core::Tool;

use super::{
    names::{Names, is_declared},
    part::Part,
};
use crate::{
    config::{HubSection, Kind, McpSection, ProjectFile, Text, ToolSection, is_secret_name},
    secrets::{self, EnvironmentSecrets},
};

/// How a reference begins.
const SECRET: &str = "secret:";

/// The declared secrets. What a tool refers to must be among them; what is declared should be
/// referred to, and there.
pub(crate) fn build_secrets(
    file: &ProjectFile,
    parts: &[Part],
    names: &Names,
    problems: &Problems,
) -> EnvironmentSecrets {
    let sections = &file.secrets;
    // A model, a server, a hub or a gateway that lacks its own says so itself.
    let of_models = file.models.iter().filter_map(|model| Some(Arc::clone(&model.secret()?.value)));
    let of_tokens = file
        .serve
        .tokens
        .iter()
        .filter_map(|token| Some(Arc::clone(&token.secret.as_ref()?.value)));
    let mut keys: HashSet<_> = of_models.chain(of_tokens).collect();
    let mut used = HashSet::new();
    for part in parts {
        let (declared, names) = (&part.declared, names.seen_by(part));
        let of_servers = declared.mcp.iter().flat_map(McpSection::secret_texts);
        let of_hubs = declared.hubs.iter().flat_map(HubSection::secret_texts);
        let others = of_servers.flat_map(references).chain(of_hubs.flat_map(references));
        keys.extend(others.map(|reference| reference.value));
        for text in declared.tools.iter().flat_map(texts) {
            for reference in references(text) {
                report_undeclared(&reference, &names, problems);
                used.insert(reference.value);
            }
            // A slip that is told where the tool is built.
            let is_named = |name: &&Arc<str>| text.value.contains(&format!("{{{name}}}"));
            used.extend(names.secrets.iter().filter(is_named).cloned());
        }
    }
    for section in sections {
        let Some(env) = &section.env else { continue };
        if !used.contains(&section.name.value) {
            if keys.contains(&section.name.value) {
                continue;
            }
            let message = format!("nothing refers to the secret `{}`", section.name.value);
            problems.push(
                Diagnostic::warning(&section.name.at, message).help("use it, or leave it out"),
            );
        } else if let Err(problem) = secrets::check(&env.value) {
            let message = format!("the environment variable `{}` {problem}", env.value);
            let help = format!(
                "until that is changed, tools that need the secret `{}` are not offered",
                section.name.value
            );
            problems.push(Diagnostic::warning(&env.at, message).help(help));
        }
    }
    EnvironmentSecrets::new(sections.iter().filter_map(|section| {
        Some((Arc::clone(&section.name.value), Arc::clone(&section.env.as_ref()?.value)))
    }))
}

/// The tools, each offered only while the secrets that it needs can be had: one that lacks its key
/// could only fail.
pub(crate) fn offered_with_secrets(tools: Vec<Tool>, secrets: &EnvironmentSecrets) -> Vec<Tool> {
    let with_secrets = |tool: Tool| {
        if tool.capabilities().secrets.is_empty() {
            return tool;
        }
        let (needed, secrets) = (tool.capabilities().secrets.clone(), secrets.clone());
        tool.available_if(move || needed.iter().try_for_each(|name| secrets.check(name)))
    };
    tools.into_iter().map(with_secrets).collect()
}

/// Records a secret that there is not, or that a plugin is not granted.
pub(super) fn report_undeclared(name: &Located<Arc<str>>, names: &Names, problems: &Problems) {
    let declared = &names.secrets;
    if let Some(grant) = &names.grant {
        if !declared.contains(&name.value) {
            let does = format!("needs the secret `{}`", name.value);
            grant.refuse(&name.at, &does, &format!("secrets = [\"{}\"]", name.value), problems);
        }
    } else if declared.is_empty() {
        let message = format!("there is no secret `{}`", name.value);
        let help = format!("write below a [secrets]: {} = {{ env = \"VARIABLE\" }}", name.value);
        problems.push(Diagnostic::error(&name.at, message).help(help));
    } else {
        is_declared(name, "secret", declared, problems);
    }
}

/// The texts of a tool in which secrets may stand.
fn texts(tool: &ToolSection) -> Vec<&Text> {
    match &tool.kind {
        Kind::Command(command) => command.env.iter().map(|variable| &variable.value).collect(),
        Kind::Http(http) => http.headers.iter().map(|header| &header.value).collect(),
        Kind::Sql(_) | Kind::Unknown => Vec::new(),
    }
}

/// The secrets that a text refers to, each where its name stands: `{secret:NAME}`, or `secret:NAME`
/// and nothing else. What comes close to that is refused when the tool is built.
pub(crate) fn references(text: &Text) -> Vec<Located<Arc<str>>> {
    let all = &*text.value;
    all.match_indices(SECRET)
        .filter_map(|(at, _)| {
            let (before, rest) = (all.get(..at)?, all.get(at + SECRET.len()..)?);
            let name = if before.is_empty() {
                rest
            } else if before.ends_with('{') {
                rest.split_once('}')?.0
            } else {
                return None;
            };
            let place = text.place(Some(at + SECRET.len()));
            is_secret_name(name).then(|| Located { value: name.into(), at: place })
        })
        .collect()
}
