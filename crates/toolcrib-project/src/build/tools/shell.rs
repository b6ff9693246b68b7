//! Tools of the kinds `code` and `terminal`.

use toolcrib_core::Tool;
use toolcrib_tools::{ToolErrors, command::CommandToolSpec, terminal::DeclaredShell};

use super::{Source, command};

/// A shell, a build and a test run what a model has written, so their sandbox is `files` unless a tier is
/// written.
pub(crate) fn build(
    shell: &DeclaredShell,
    source: &Source<'_>,
    finish: impl FnOnce(CommandToolSpec) -> Result<Tool, ToolErrors>,
) -> Option<Tool> {
    let mut shell = shell.clone();
    let of_project = source.names.sandboxes.tier(shell.command().sandbox(), false);
    shell.default_tier(of_project, &source.section.at);
    shell.default_stray_children(source.names.sandboxes.allows_stray_children());
    command::build(shell.command(), source, |(base, working_dir), sandbox| {
        finish(shell.complete(source.declaration.clone(), base, working_dir, sandbox))
    })
}
