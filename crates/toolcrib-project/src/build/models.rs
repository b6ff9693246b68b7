//! The declared models, each under a project name.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_models::{InvalidVendorModelError, Vendor, VendorModel, VendorModelBuilder};

use super::secrets::report_undeclared;
use crate::{
    bind::names::Names,
    file::{KeySource, ModelSection},
    user::{models::configured, secrets::ProjectSecrets},
};

/// A model that a project declares as `[model.NAME]`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeclaredModel {
    /// Its name in the project.
    pub name: Arc<str>,
    /// Where it is declared: `toolcrib.toml:12`.
    pub origin: Arc<str>,
    /// The model. Without its [key](VendorModel::no_key) it exists, but every request fails.
    pub model: Arc<VendorModel>,
}

/// Builds the declared models. Problems are recorded.
pub(crate) fn build_models(
    sections: &[ModelSection],
    secrets: &ProjectSecrets,
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

/// Builds a model with the key and the base URL of the vendor's environment variables, or else of
/// [`UserModels`](crate::UserModels), for settings that the builder does not have; see
/// [`VendorModelBuilder::from_env`]. An unusable variable is not an error of the project: the model
/// exists without a [key](VendorModel::no_key), and its reason names the variable.
///
/// # Errors
/// [`InvalidVendorModelError`] for invalid settings of the builder.
pub fn configured_model(
    builder: VendorModelBuilder,
) -> Result<VendorModel, InvalidVendorModelError> {
    let vendor = builder.vendor();
    match configured(builder.clone()).build() {
        // A base URL of the builder is validated again.
        Err(error @ (InvalidVendorModelError::BaseUrl(_) | InvalidVendorModelError::Key)) => {
            let from = match vendor.configured_by() {
                Some(_) => vendor.base_url_variable(),
                None => "your models (`toolcrib models add`)",
            };
            builder.without_key(format!("{from}: {error}")).build()
        }
        made => made,
    }
}

fn made(
    section: &ModelSection,
    vendor: Vendor,
    secrets: &ProjectSecrets,
) -> Result<VendorModel, InvalidVendorModelError> {
    let builder = builder(section, vendor);
    match &section.key {
        KeySource::Environment => configured_model(builder),
        KeySource::Unusable => builder.build(),
        KeySource::Secret(name) => match secrets.get(&name.value) {
            Ok(secret) => match builder.clone().key(secret).build() {
                // The invalid value comes from the environment.
                Err(error @ InvalidVendorModelError::Key) => {
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
    if let Some(sees) = section.images {
        builder = builder.images(sees);
    }
    if let Some(send) = section.result_blocks {
        builder = builder.result_blocks(send);
    }
    if let Some(use_it) = section.tool_search {
        builder = builder.tool_search(use_it);
    }
    if let Some(are_reasoning) = section.think_tags {
        builder = builder.think_tags(are_reasoning);
    }
    if let Some(tokens) = section.clear_above {
        builder = builder.clear_above(tokens);
    }
    if let Some(timeout) = section.idle_timeout {
        builder = builder.idle_timeout(timeout);
    }
    if let Some(timeout) = section.timeout {
        builder = builder.timeout(timeout);
    }
    builder
}

fn report(
    section: &ModelSection,
    vendor: Vendor,
    error: &InvalidVendorModelError,
    problems: &Problems,
) {
    let at = match error {
        InvalidVendorModelError::BaseUrl(_) => section.base_url.as_ref().map(|url| &url.at),
        InvalidVendorModelError::Api { .. } => section.api.as_ref().map(|api| &api.at),
        InvalidVendorModelError::ModelName { .. } => section.model.as_ref().map(|model| &model.at),
        _ => None,
    };
    let at = at.unwrap_or(&section.name.at);
    let diagnostic = match error {
        InvalidVendorModelError::NoModel { .. } => Diagnostic::error(
            at,
            format!("`[model.{}]` does not name a model of {vendor}", section.name.value),
        )
        .help("write model = \"…\", with the vendor's name of the model"),
        other => Diagnostic::error(at, other.to_string()),
    };
    problems.push(diagnostic);
}

/// A project must also be valid on machines without keys.
pub(crate) fn report_no_key(at: &Spot, reason: &str, problems: &Problems) {
    let help = "until this is changed, a run on this model fails";
    problems.push(Diagnostic::warning(at, reason.to_owned()).help(help));
}
