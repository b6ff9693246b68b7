//! Tools of the kind `terminal`.

use toolcrib_core::Tool;
use toolcrib_tools::terminal::DeclaredTerminal;

use super::{Source, command};

/// A shell runs what a model writes, so its sandbox is `files` unless a tier is written.
pub(super) fn build(terminal: &DeclaredTerminal, source: &Source<'_>) -> Option<Tool> {
    let mut terminal = terminal.clone();
    let of_project = source.names.sandboxes.tier(terminal.command().sandbox(), false);
    terminal.default_tier(of_project, &source.section.at);
    terminal.default_stray_children(source.names.sandboxes.allows_stray_children());
    command::build(terminal.command(), source, |(base, working_dir), sandbox| {
        terminal.build(source.declaration.clone(), base, working_dir, sandbox)
    })
}
