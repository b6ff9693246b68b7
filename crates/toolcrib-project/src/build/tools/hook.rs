//! Hooks: programs of the project that decide on calls.

use std::sync::Arc;

use toolcrib_capabilities::process::SandboxTier;
use toolcrib_config::{Diagnostic, Problems};

use super::unbuilt::{Surroundings, UnbuiltTool};
use crate::{
    bind::{located::values, names::Names, part::Part},
    build::{hook::Hook, policy::check_tools},
    file::HookSection,
};

/// Builds the hooks of the project; every problem is recorded. If it is `held`, no program may be
/// started, and the hooks deny all calls.
pub(crate) fn build_hooks(
    sections: &[HookSection],
    own: &Part,
    names: &Names,
    held: Option<&Arc<str>>,
    problems: &Problems,
) -> Vec<Hook> {
    let names = names.seen_by(own);
    let around = Surroundings { root: &own.root, names: &names, problems };
    let mut hooks: Vec<Hook> = Vec::new();
    for section in sections {
        check_tools(&section.tools, &names, problems);
        let tool = UnbuiltTool::new(&section.tool, around);
        let place = tool.program(&section.command.access(), SandboxTier::None);
        let declaration = tool.declaration.clone();
        let program = section.command.build_hook(declaration, place, section.timeout);
        let program = tool.built(program);
        let (Some(program), Some(name)) = (program, &section.name) else { continue };
        if hooks.iter().any(|hook| *hook.declared_name() == *name.value) {
            let message = format!("two hooks are called `{}`", name.value);
            problems.push(Diagnostic::error(&name.at, message).help("rename one of them"));
        }
        let program = held.map_or_else(|| Ok(program), |reason| Err(Arc::clone(reason)));
        hooks.push(Hook::new(&name.value, section.place, values(&section.tools), program));
    }
    hooks
}
