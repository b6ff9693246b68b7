//! Resolves the model that a project or its caller names.

use std::{path::Path, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems, suggest};
use toolcrib_core::Model;
use toolcrib_models::{
    InvalidModelNameError, InvalidVendorModelError, ModelName, ScriptedModel, Vendor, VendorModel,
};

use super::{
    models::{DeclaredModel, configured_model, report_no_key},
    prices::Prices,
    script::warn_of_unknown_tools,
};
use crate::{
    bind::names::Names,
    error::LoadError,
    read::{
        root::{Root, near},
        text_file::{FileError, MAX_TEXT, read_text},
    },
};

/// The prefix of a scripted model's name.
const SCRIPT: &str = "script:";

/// A model that is not available.
struct ModelLoadError {
    problem: String,
    help: Option<String>,
}

/// The sources of models.
pub(crate) struct ModelSources<'a> {
    pub(crate) root: &'a Root,
    pub(crate) names: &'a Names,
    pub(crate) declared: &'a [DeclaredModel],
    pub(crate) prices: &'a Prices,
    pub(crate) problems: &'a Problems,
}

/// A name and its meaning.
enum Meaning<'a> {
    Script(&'a str),
    Declared(&'a DeclaredModel),
    /// Declared, but invalid, which is recorded.
    Broken,
    Vendor(ModelName),
}

impl ModelSources<'_> {
    /// Creates the model that the project names; its script must be in the project. `None` if it
    /// fails, which is recorded.
    pub(crate) fn load(&self, named: &Located<Arc<str>>) -> Option<Arc<dyn Model>> {
        let read = |file: &str| {
            let text = self.root.text(file, MAX_TEXT);
            text.map_err(|error| unreadable(file, &error, self.root.near(&error, file)))
        };
        let no_key = |reason: &str| {
            report_no_key(&named.at, reason, self.problems);
            Ok(())
        };
        let made = self.make(&named.value, None, read, no_key).map(|made| self.priced(made));
        made.unwrap_or_else(|ModelLoadError { problem, help }| {
            self.problems.push(Diagnostic::error(&named.at, problem).help(help));
            None
        })
    }

    /// Creates the model that replaces the project's own, optionally at another base URL; a script
    /// may be anywhere, and a relative path starts at the project's folder. `None` if the script
    /// has errors, which are recorded.
    ///
    /// # Errors
    /// [`LoadError::Model`] for an unknown model: that is not an error of the project.
    pub(crate) fn load_chosen(
        &self,
        name: &str,
        base_url: Option<&str>,
    ) -> Result<Option<Arc<dyn Model>>, LoadError> {
        let read = |file: &str| {
            let path = self.root.path().join(Path::new(file));
            read_text(&path, MAX_TEXT).map_err(|error| {
                let help = path.parent().and_then(|folder| near(&error, folder, file));
                unreadable(file, &error, help)
            })
        };
        let no_key = |reason: &str| Err(ModelLoadError { problem: reason.to_owned(), help: None });
        let made = self.make(name, base_url, read, no_key).map(|made| self.priced(made));
        made.map_err(|ModelLoadError { problem, help }| {
            let problem = match help {
                Some(help) => format!("{problem}; {help}"),
                None => problem,
            };
            LoadError::Model { problem }
        })
    }

    /// The vendor, if the name is a vendor without a model.
    pub(crate) fn vendor_alone(&self, name: &str) -> Option<Vendor> {
        matches!(self.meaning(name), Ok(Meaning::Vendor(_))).then(|| name.parse().ok())?
    }

    fn priced(&self, model: Option<Arc<dyn Model>>) -> Option<Arc<dyn Model>> {
        model.map(|model| self.prices.of(model))
    }

    fn make(
        &self,
        name: &str,
        base_url: Option<&str>,
        read: impl FnOnce(&str) -> Result<String, ModelLoadError>,
        no_key: impl FnOnce(&str) -> Result<(), ModelLoadError>,
    ) -> Result<Option<Arc<dyn Model>>, ModelLoadError> {
        match (self.meaning(name)?, base_url) {
            (Meaning::Vendor(ModelName { vendor, model }), base_url) => {
                let mut builder = VendorModel::builder(vendor, model);
                if let Some(url) = base_url {
                    builder = builder.base_url(url);
                }
                let model = configured_model(builder)?;
                model.no_key().map_or(Ok(()), no_key)?;
                Ok(Some(Arc::new(model)))
            }
            (_, Some(_)) => Err(ModelLoadError {
                problem: format!("a base URL requires a vendor's model, and `{name}` is not one"),
                help: Some("write for example openai:MODEL".to_owned()),
            }),
            (Meaning::Declared(declared), None) => Ok(Some(Arc::clone(&declared.model) as _)),
            (Meaning::Broken, None) => Ok(None),
            (Meaning::Script(file), None) => {
                let text = read(file)?;
                Ok(match ScriptedModel::from_toml(name, &text) {
                    Ok(model) => {
                        warn_of_unknown_tools(file, text, self.names, self.problems);
                        Some(Arc::new(model))
                    }
                    Err(found) => {
                        self.problems.merge(found.in_file(file));
                        None
                    }
                })
            }
        }
    }

    fn meaning<'a>(&'a self, name: &'a str) -> Result<Meaning<'a>, ModelLoadError> {
        if let Some(file) = name.strip_prefix(SCRIPT) {
            return Ok(Meaning::Script(file));
        }
        if let Some(declared) = self.declared.iter().find(|declared| *declared.name == *name) {
            return Ok(Meaning::Declared(declared));
        }
        if self.names.models.iter().any(|declared| **declared == *name) {
            return Ok(Meaning::Broken);
        }
        name.parse().map(Meaning::Vendor).map_err(|error| {
            if let InvalidModelNameError::NoModel { .. } = error {
                return ModelLoadError { problem: error.to_string(), help: None };
            }
            let vendors = Vendor::ALL.map(|vendor| format!("{vendor}:MODEL")).join(", ");
            let declared = self.names.models.iter().map(|name| &**name);
            ModelLoadError {
                problem: format!("unknown model {}", suggest::quoted([name])),
                help: Some(match near_model(name, declared) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "write {vendors}, \"script:FILE\" for a scripted model, or the name of a \
                         [model.NAME] of the project"
                    ),
                }),
            }
        })
    }
}

/// Parses the name of a vendor's model, as `--model` accepts it.
///
/// # Errors
/// The problem, with the likely intended name.
pub fn vendor_model(name: &str) -> Result<ModelName, String> {
    name.parse().map_err(|error: InvalidModelNameError| match error {
        InvalidModelNameError::Vendor { .. } => match near_model(name, []) {
            Some(near) => {
                format!("unknown model {}; did you mean `{near}`?", suggest::quoted([name]))
            }
            None => error.to_string(),
        },
        error => error.to_string(),
    })
}

/// The likely intended name for an unknown model: a declared one, a vendor, or a model with its vendor.
fn near_model<'a>(name: &str, declared: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let (word, model) = name.split_once(':').unwrap_or((name, ""));
    let vendors = Vendor::ALL.map(Vendor::as_str);
    let near = suggest::nearest(word, declared.into_iter().chain(vendors));
    let near = near.map(|near| match model {
        "" => near.to_owned(),
        model if vendors.contains(&near) => format!("{near}:{model}"),
        _ => near.to_owned(),
    });
    near.or_else(|| Some(format!("{}:{name}", Vendor::of_model(name)?)))
}

impl From<InvalidVendorModelError> for ModelLoadError {
    fn from(error: InvalidVendorModelError) -> Self {
        Self { problem: error.to_string(), help: None }
    }
}

fn unreadable(file: &str, error: &FileError, help: Option<String>) -> ModelLoadError {
    ModelLoadError { problem: format!("script `{file}` {error}"), help }
}
