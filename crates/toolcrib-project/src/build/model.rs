//! The model that a project names.

use std::{path::Path, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::Model;
use toolcrib_models::ScriptedModel;

use crate::root::{MAX_TEXT, Root, read_text};

/// How a scripted model's name begins.
const SCRIPT: &str = "script:";

/// Who names the model.
#[derive(Debug)]
pub(crate) enum ModelSource<'a> {
    /// The project file: the script must lie in the project.
    Project(&'a Located<Arc<str>>),
    /// Whoever loads the project: the script may lie anywhere, a relative path starts at the
    /// project's folder.
    Option(&'a str),
}

/// Makes the model; `None` when it cannot be made, which is recorded.
pub(crate) fn load_model(
    source: &ModelSource<'_>,
    root: &Root,
    problems: &Problems,
) -> Option<Arc<dyn Model>> {
    let (name, at) = match source {
        ModelSource::Project(name) => (&*name.value, name.at.clone()),
        ModelSource::Option(name) => (*name, Spot::start_of("--model")),
    };
    let Some(file) = name.strip_prefix(SCRIPT) else {
        problems.push(
            Diagnostic::error(&at, format!("`{name}` is not a model that can be used yet"))
                .help("write \"script:FILE\", a scripted model"),
        );
        return None;
    };
    let text = match source {
        ModelSource::Project(_) => root.text(file, MAX_TEXT),
        ModelSource::Option(_) => read_text(&root.path().join(Path::new(file)), MAX_TEXT),
    };
    let text = text
        .map_err(|error| problems.push(Diagnostic::error(&at, format!("script `{file}` {error}"))))
        .ok()?;
    match ScriptedModel::from_toml(name, &text) {
        Ok(model) => Some(Arc::new(model)),
        Err(found) => {
            problems.merge(found.in_file(file));
            None
        }
    }
}
