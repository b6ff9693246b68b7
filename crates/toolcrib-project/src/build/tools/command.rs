//! Checks of the programs that tools run.

use std::path::{Path, PathBuf};

use toolcrib_capabilities::process::{self, Sandbox, SandboxTier};
use toolcrib_tools::{DeclaredKind, ExternalAccess, ToolErrors, command::DeclaredCommand};

use super::Source;
use crate::{bind::sandbox::SandboxedProgram, build::process_limit::report_unlimited_processes};

/// Checks a program, and makes a tool or a hook of it: `finish` receives the folder of relative paths, the working
/// folder and the sandbox.
pub(crate) fn build<T>(
    command: &DeclaredCommand,
    source: &Source<'_>,
    finish: impl FnOnce((&Path, PathBuf), Sandbox) -> Result<T, ToolErrors>,
) -> Option<T> {
    let accesses = command.external_access();
    let [ExternalAccess::Program { command: words, working_dir, inherit_env, .. }] =
        accesses.as_slice()
    else {
        return None;
    };
    let declared = &source.declaration.source;
    let at = declared.value("/program").unwrap_or(&source.section.at);
    if let Some(grant) = &source.names.grant {
        grant.check_program(at, source.problems);
        for position in 0..inherit_env.len() {
            let at = declared.value(&format!("/inherit_env/{position}")).unwrap_or(at);
            grant.refuse_variable(at, source.problems);
        }
    }
    let has_program = !command.program().is_empty();
    let stays_inside = !has_program
        || words.first().is_none_or(|one| source.root.check_program(one, at, source.problems));
    let tier = source.names.sandboxes.tier(command.sandbox(), false);
    if !command.allows_stray_children()
        && tier > SandboxTier::None
        && let Err(missing) = process::support()
    {
        let name = source.declaration.name.as_str();
        source.names.sandboxes.refuse_uncontained(name, at, missing, false);
    }
    report_unlimited_processes(&source.section.at.file, source.problems);
    let working_dir = resolved(*working_dir, source);
    let sandboxed = SandboxedProgram {
        section: command.sandbox(),
        base: source.root.path(),
        grant: source.names.grant.as_deref(),
        is_imported: false,
        at,
    };
    let sandbox = source.names.sandboxes.resolve(&sandboxed, source.problems);
    let built = finish((source.root.path(), working_dir), sandbox).map_err(|mut found| {
        found.errors.retain(|error| stays_inside || error.field != "/program");
        found
    });
    source.built(built).filter(|_| stays_inside)
}

/// The folder that the program runs in; the project's own where the named one cannot be used, which
/// is recorded.
fn resolved(named: Option<&str>, source: &Source<'_>) -> PathBuf {
    let folder = named.and_then(|named| {
        let record = |error| {
            let declared = &source.declaration.source;
            let at = declared.value("/working_dir").unwrap_or(&source.section.at);
            let help = source.root.near(&error, named);
            source.refuse(at, format!("`{named}` {error}"), help);
        };
        source.root.folder(named).map_err(record).ok()
    });
    folder.unwrap_or_else(|| source.root.path().to_owned())
}
