//! The model that a project names, or whoever loads it.

use std::{path::Path, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems};
use toolcrib_core::Model;
use toolcrib_models::ScriptedModel;

use super::{names::Names, script::warn_of_unknown_tools};
use crate::{
    LoadError,
    root::{FileError, MAX_TEXT, Root, near, read_text},
};

/// How a scripted model's name begins.
const SCRIPT: &str = "script:";

/// A model that is not there.
struct Unusable {
    problem: String,
    help: Option<String>,
}

/// Makes the model that the project names; its script must lie in the project. `None` when it
/// cannot be made, which is recorded.
pub(crate) fn load_model(
    named: &Located<Arc<str>>,
    root: &Root,
    names: &Names,
    problems: &Problems,
) -> Option<Arc<dyn Model>> {
    let read = |file: &str| {
        root.text(file, MAX_TEXT).map_err(|error| unreadable(file, &error, root.near(&error, file)))
    };
    make(&named.value, read, names, problems).unwrap_or_else(|Unusable { problem, help }| {
        problems.push(Diagnostic::error(&named.at, problem).help(help));
        None
    })
}

/// Makes the model that was chosen in place of the project's own; its script may lie anywhere, and a
/// relative path starts at the project's folder. `None` when something is wrong inside the script,
/// which is recorded.
///
/// # Errors
/// [`LoadError::Model`] when there is no such model: that is nothing of the project.
pub(crate) fn load_chosen_model(
    name: &str,
    root: &Root,
    names: &Names,
    problems: &Problems,
) -> Result<Option<Arc<dyn Model>>, LoadError> {
    let read = |file: &str| {
        let path = root.path().join(Path::new(file));
        read_text(&path, MAX_TEXT).map_err(|error| {
            let help = path.parent().and_then(|folder| near(&error, folder, file));
            unreadable(file, &error, help)
        })
    };
    make(name, read, names, problems).map_err(|Unusable { problem, help }| {
        let problem = match help {
            Some(help) => format!("{problem}; {help}"),
            None => problem,
        };
        LoadError::Model { problem }
    })
}

fn make(
    name: &str,
    read: impl FnOnce(&str) -> Result<String, Unusable>,
    names: &Names,
    problems: &Problems,
) -> Result<Option<Arc<dyn Model>>, Unusable> {
    let Some(file) = name.strip_prefix(SCRIPT) else {
        return Err(Unusable {
            problem: format!("`{name}` is not a model that can be used yet"),
            help: Some("write \"script:FILE\", a scripted model".to_owned()),
        });
    };
    let text = read(file)?;
    Ok(match ScriptedModel::from_toml(name, &text) {
        Ok(model) => {
            warn_of_unknown_tools(file, text, names, problems);
            Some(Arc::new(model))
        }
        Err(found) => {
            problems.merge(found.in_file(file));
            None
        }
    })
}

fn unreadable(file: &str, error: &FileError, help: Option<String>) -> Unusable {
    Unusable { problem: format!("script `{file}` {error}"), help }
}
