//! Files of third parties whose definitions become tools.

use std::sync::Arc;

use toolcrib_config::{Located, Problems, Spot};
use toolcrib_tools::{DeclaredKind, DocumentTable, ExpandedTool};

use crate::{bind::part::Part, file::ToolSection, read::root::Root};

/// Replaces each document by its tools, so that rules can name them.
pub(crate) fn read_documents(parts: &mut [Part], problems: &Problems) {
    for part in parts {
        for section in std::mem::take(&mut part.declared.tools) {
            let kind = section.kind.as_deref();
            match kind.and_then(|kind| expand(kind, &section, &part.root, problems)) {
                Some(tools) => part.declared.tools.extend(section.expanded(tools)),
                None => part.declared.tools.push(section),
            }
        }
    }
}

fn expand(
    kind: &dyn DeclaredKind,
    section: &ToolSection,
    root: &Root,
    problems: &Problems,
) -> Option<Vec<ExpandedTool>> {
    let read = |file: &Located<Arc<str>>, most| {
        let text = root.named_text(file, most, problems)?;
        Some((text.into(), Spot::start_of(root.shown(&file.value))))
    };
    kind.expand(&DocumentTable {
        base: &section.declaration,
        prefix: section.name.as_ref().map(|name| name.value.as_str()),
        at: &section.at,
        read: &read,
        problems,
    })
}
