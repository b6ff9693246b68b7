//! Tools of the kind `openapi`.

use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_tools::openapi::{DeclaredOpenApi, MAX_DOCUMENT, OpenApi};

use crate::{
    bind::part::Part,
    file::{Kind, ToolSection},
    read::root::Root,
};

/// Replaces each document by the tools of its operations, so that rules can name them.
pub(crate) fn read_documents(parts: &mut [Part], problems: &Problems) {
    for part in parts {
        let sections = std::mem::take(&mut part.declared.tools);
        for section in sections {
            match &section.kind {
                Kind::OpenApi(document) => {
                    let tools = operations(document, &section, &part.root, problems);
                    part.declared.tools.extend(tools);
                }
                _ => part.declared.tools.push(section),
            }
        }
    }
}

/// The tools of a document; none if it cannot be read, which is recorded.
fn operations(
    document: &DeclaredOpenApi,
    section: &ToolSection,
    root: &Root,
    problems: &Problems,
) -> Vec<ToolSection> {
    let Some(file) = &document.file else { return Vec::new() };
    let Some(text) = root.named_text(file, MAX_DOCUMENT, problems) else { return Vec::new() };
    let parsed = match OpenApi::parse(&text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let at = Spot::start_of(root.shown(&file.value));
            problems.push(Diagnostic::error(&at, error.to_string()));
            return Vec::new();
        }
    };
    let prefix = section.name.as_ref().map(|name| name.value.as_str());
    let base = &section.declaration;
    let tools = document.tools(&parsed, base, prefix, (&section.at, problems));
    section.operations(tools).collect()
}
