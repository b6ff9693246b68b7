//! The declared models, each under a name of the project's own.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_models::{InvalidVendorModel, Vendor, VendorModel, VendorModelBuilder};

use super::{names::Names, secrets::report_undeclared};
use crate::{
    config::{KeySource, ModelSection},
    secrets::EnvironmentSecrets,
};

/// A model that a project declares under a name of its own, as `[model.NAME]`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeclaredModel {
    /// Its name in the project.
    pub name: Arc<str>,
    /// Where it is declared: `toolcrib.toml:12`.
    pub origin: Arc<str>,
    /// The model. Without its [key](VendorModel::no_key) it is there, and answers nothing.
    pub model: Arc<VendorModel>,
}

/// Builds the declared models. What is wrong with one is recorded.
pub(crate) fn build_models(
    sections: &[ModelSection],
    secrets: &EnvironmentSecrets,
    names: &Names,
    problems: &Problems,
) -> Vec<DeclaredModel> {
    let build = |section: &ModelSection| {
        let vendor = section.vendor?;
        let key = section.secret();
        if let Some(key) = key.filter(|key| !names.secrets.contains(&key.value)) {
            report_undeclared(key, names, problems);
            return None;
        }
        let model = made(section, vendor, secrets)
            .map_err(|error| report(section, vendor, &error, problems))
            .ok()?;
        if let Some(reason) = model.no_key() {
            report_no_key(&key.unwrap_or(&section.name).at, reason, problems);
        }
        Some(DeclaredModel {
            name: Arc::clone(&section.name.value),
            origin: section.name.at.to_string().into(),
            model: Arc::new(model),
        })
    };
    sections.iter().filter_map(build).collect()
}

/// Builds a model with what the environment says of its vendor, if nothing was said before; see
/// [`VendorModelBuilder::from_env`]. What cannot be used there is no mistake of whoever wrote the
/// project: the model is there without a [key](VendorModel::no_key), and its reason names the
/// variable.
///
/// # Errors
/// [`InvalidVendorModel`] for what the builder was told.
pub fn environment_model(builder: VendorModelBuilder) -> Result<VendorModel, InvalidVendorModel> {
    let variable = builder.vendor().base_url_variable();
    match builder.clone().from_env().build() {
        // A base URL of the builder's own is refused once more.
        Err(error @ InvalidVendorModel::BaseUrl(_)) => {
            builder.without_key(format!("{variable}: {error}")).build()
        }
        made => made,
    }
}

fn made(
    section: &ModelSection,
    vendor: Vendor,
    secrets: &EnvironmentSecrets,
) -> Result<VendorModel, InvalidVendorModel> {
    let builder = builder(section, vendor);
    match &section.key {
        KeySource::Environment => environment_model(builder),
        KeySource::Unusable => builder.build(),
        KeySource::Secret(name) => match secrets.get(&name.value) {
            Ok(secret) => match builder.clone().key(secret).build() {
                // Its value is the environment's.
                Err(error @ InvalidVendorModel::Key) => {
                    builder.without_key(format!("the secret `{}`: {error}", name.value)).build()
                }
                made => made,
            },
            Err(error) => builder.without_key(error.to_string()).build(),
        },
    }
}

fn builder(section: &ModelSection, vendor: Vendor) -> VendorModelBuilder {
    let name = section.model.as_ref().map_or_else(
        || vendor.default_model().unwrap_or_default().to_owned(),
        |model| model.value.to_string(),
    );
    let mut builder = VendorModel::builder(vendor, name);
    if let Some(url) = &section.base_url {
        builder = builder.base_url(&*url.value);
    }
    if let Some(api) = &section.api {
        builder = builder.api(api.value);
    }
    if let Some(tokens) = section.max_output_tokens {
        builder = builder.max_output_tokens(tokens);
    }
    if let Some(temperature) = section.temperature {
        builder = builder.temperature(temperature);
    }
    if let Some(effort) = section.reasoning {
        builder = builder.reasoning(effort);
    }
    if let Some(send) = section.result_blocks {
        builder = builder.result_blocks(send);
    }
    if let Some(timeout) = section.idle_timeout {
        builder = builder.idle_timeout(timeout);
    }
    if let Some(timeout) = section.timeout {
        builder = builder.timeout(timeout);
    }
    builder
}

fn report(section: &ModelSection, vendor: Vendor, error: &InvalidVendorModel, problems: &Problems) {
    let at = match error {
        InvalidVendorModel::BaseUrl(_) => section.base_url.as_ref().map(|url| &url.at),
        InvalidVendorModel::Api { .. } => section.api.as_ref().map(|api| &api.at),
        InvalidVendorModel::ModelName { .. } => section.model.as_ref().map(|model| &model.at),
        _ => None,
    };
    let at = at.unwrap_or(&section.name.at);
    let diagnostic = match error {
        InvalidVendorModel::NoModel { .. } => Diagnostic::error(
            at,
            format!("`[model.{}]` does not say which model of {vendor} it is", section.name.value),
        )
        .help("write model = \"…\", as the vendor calls it"),
        other => Diagnostic::error(at, other.to_string()),
    };
    problems.push(diagnostic);
}

/// A project is checked where there are no keys, too.
pub(super) fn report_no_key(at: &Spot, reason: &str, problems: &Problems) {
    let help = "until that is changed, a run on this model fails";
    problems.push(Diagnostic::warning(at, reason.to_owned()).help(help));
}
