//! Tools of the kind `code`.

use toolcrib_core::Tool;
use toolcrib_tools::code::DeclaredCode;

use super::{Source, command};

/// Builds and tests run code that a model has written, so their sandbox is `files` unless a tier is
/// written.
pub(super) fn build(code: &DeclaredCode, source: &Source<'_>) -> Option<Tool> {
    let mut code = code.clone();
    let of_project = source.names.sandboxes.tier(code.command().sandbox(), false);
    code.default_tier(of_project, &source.section.at);
    code.default_stray_children(source.names.sandboxes.allows_stray_children());
    command::build(code.command(), source, |(base, working_dir), sandbox| {
        code.build(source.declaration.clone(), base, working_dir, sandbox)
    })
}
