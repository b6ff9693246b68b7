//! Models as the environment describes them, by the variables of the vendors' own SDKs.
#![allow(
    clippy::disallowed_methods,
    reason = "host code: keys and addresses of models are the operator's, never a tool's"
)]

use toolcrib_core::Secret;

use super::{
    model::{InvalidVendorModel, VendorModel, VendorModelBuilder},
    vendor::{ModelName, UnknownVendor, Vendor},
};

/// A model that the environment does not give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotConfigured {
    /// There is no such vendor.
    #[error(transparent)]
    Vendor(#[from] UnknownVendor),
    /// The vendor wants a key, and there is none.
    #[error("{reason}")]
    NoKey {
        /// What to set.
        reason: String,
    },
    /// The model cannot be made.
    #[error(transparent)]
    Model(#[from] InvalidVendorModel),
}

impl VendorModel {
    /// The model of a name, `VENDOR:MODEL`, with key and base URL from the environment; see
    /// [`VendorModelBuilder::from_env`].
    ///
    /// # Errors
    /// [`NotConfigured`] says what to set.
    pub fn from_env(name: &str) -> Result<Self, NotConfigured> {
        let ModelName { vendor, model } = name.parse()?;
        let model = Self::builder(vendor, model).from_env().build()?;
        match model.no_key() {
            Some(reason) => Err(NotConfigured::NoKey { reason: reason.to_owned() }),
            None => Ok(model),
        }
    }
}

impl VendorModelBuilder {
    /// Takes from the environment what is not set: the base URL of
    /// [`Vendor::base_url_variable`] and the key of [`Vendor::key_variables`].
    ///
    /// A key is only taken where the base URL is the vendor's or the environment's own: one that
    /// was given in another way does not get it. A vendor's own API without a key is
    /// [`without_key`](Self::without_key).
    pub fn from_env(mut self) -> Self {
        if self.has_base_url() || self.has_key() {
            return self;
        }
        let vendor = self.vendor();
        let base_url = base_url(vendor);
        let wants_key = base_url.is_none() && vendor != Vendor::Ollama;
        if let Some(url) = base_url {
            self = self.base_url(url);
        }
        let variables = vendor.key_variables();
        match variables.iter().find_map(|variable| set(variable)) {
            Some(key) => self.key(Secret::new(key)),
            None if wants_key => self.without_key(format!(
                "there is no key for {vendor}: set {}",
                variables.join(" or ")
            )),
            None => self,
        }
    }
}

impl Vendor {
    /// The variable of [`key_variables`](Self::key_variables) that its key is taken from, if the
    /// environment has one.
    pub fn key_variable(self) -> Option<&'static str> {
        self.key_variables().iter().find(|variable| set(variable).is_some()).copied()
    }
}

fn base_url(vendor: Vendor) -> Option<String> {
    let url = set(vendor.base_url_variable())?;
    // Ollama's variable is an address, with or without a scheme and a port.
    let bare = vendor == Vendor::Ollama && !url.contains("://");
    Some(if bare {
        format!("http://{url}{}", if url.contains(':') { "" } else { ":11434" })
    } else {
        url
    })
}

fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.trim().is_empty())
}
