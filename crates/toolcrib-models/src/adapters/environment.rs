//! Models configured by the environment, with the variables of the vendors' SDKs.
#![allow(
    clippy::disallowed_methods,
    reason = "host code: keys and addresses of models are the operator's, never a tool's"
)]

use toolcrib_core::Secret;

use super::{
    model::{InvalidVendorModelError, VendorModel, VendorModelBuilder, is_key},
    vendor::{InvalidModelNameError, ModelName, Vendor},
};

/// A model that the environment does not configure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotConfiguredError {
    /// The model's name is not valid.
    #[error(transparent)]
    Name(#[from] InvalidModelNameError),
    /// The vendor requires a key, and there is none.
    #[error("{reason}")]
    NoKey {
        /// The variable to set.
        reason: String,
    },
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] InvalidVendorModelError),
}

impl VendorModel {
    /// The model with a name, `VENDOR:MODEL`, with key and base URL from the environment; see
    /// [`VendorModelBuilder::from_env`].
    ///
    /// # Errors
    /// [`NotConfiguredError`] with the variable to set.
    pub fn from_env(name: &str) -> Result<Self, NotConfiguredError> {
        let ModelName { vendor, model } = name.parse()?;
        let model = Self::builder(vendor, model).from_env().build()?;
        match model.no_key() {
            Some(reason) => Err(NotConfiguredError::NoKey { reason: reason.to_owned() }),
            None => Ok(model),
        }
    }
}

impl VendorModelBuilder {
    /// Sets missing values from the environment: the base URL from [`Vendor::base_url_variable`]
    /// and the key from [`Vendor::key_variables`].
    ///
    /// The key is used only if the base URL is the vendor's or comes from the environment: another
    /// base URL does not get it. For a vendor's own API without a key, see
    /// [`without_key`](Self::without_key).
    pub fn from_env(mut self) -> Self {
        if self.has_base_url() || self.has_key() {
            return self;
        }
        let vendor = self.vendor();
        let base_url = base_url(vendor);
        let wants_key = base_url.is_none() && vendor.needs_key();
        if let Some(url) = base_url {
            self = self.base_url(url);
        }
        let variables = vendor.key_variables();
        match variables.iter().find_map(|variable| Some((variable, set(variable)?))) {
            Some((_, key)) if is_key(&key) => self.key(Secret::new(key)),
            Some((variable, _)) => self.without_key(format!(
                "{variable} is not a valid key: it contains whitespace or a non-ASCII character"
            )),
            None if wants_key => self.without_key(format!(
                "there is no key for {vendor}: set {}",
                variables.join(" or ")
            )),
            None => self,
        }
    }
}

impl Vendor {
    /// The variable by which the environment configures the vendor, if it does: that of its key,
    /// otherwise that of its base URL.
    pub fn configured_by(self) -> Option<&'static str> {
        let key = self.key_variables().iter().find(|variable| set(variable).is_some()).copied();
        key.or_else(|| Some(self.base_url_variable()).filter(|variable| set(variable).is_some()))
    }

    /// The base URL that the environment sets by [`base_url_variable`](Self::base_url_variable), if it
    /// does: a model without a declared URL and key dials it in place of the vendor's.
    pub fn base_url_from_env(self) -> Option<String> {
        base_url(self)
    }
}

fn base_url(vendor: Vendor) -> Option<String> {
    let url = set(vendor.base_url_variable())?;
    let is_address = vendor.accepts_bare_address() && !url.contains("://");
    Some(if is_address { of_address(&url) } else { url })
}

/// The URL of an address in the form that Ollama's server accepts: host and port, both optional.
fn of_address(address: &str) -> String {
    let (host, path) = address.split_at(address.find('/').unwrap_or(address.len()));
    let bare_v6 = host.matches(':').count() > 1 && !host.starts_with('[');
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !bare_v6 && !port.contains(']') => (host, port),
        _ => (host, "11434"),
    };
    match host {
        "" => format!("http://127.0.0.1:{port}{path}"),
        host if bare_v6 => format!("http://[{host}]:{port}{path}"),
        host => format!("http://{host}:{port}{path}"),
    }
}

fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::of_address;

    #[test]
    fn an_address_may_lack_its_host_and_its_port() {
        for (address, url) in [
            ("127.0.0.1:9", "http://127.0.0.1:9"),
            ("example.org", "http://example.org:11434"),
            (":8080", "http://127.0.0.1:8080"),
            ("::1", "http://[::1]:11434"),
            ("[::1]", "http://[::1]:11434"),
            ("[::1]:9", "http://[::1]:9"),
            ("host/path", "http://host:11434/path"),
            ("host:9/path/", "http://host:9/path/"),
        ] {
            assert_eq!(of_address(address), url, "{address}");
        }
    }
}
