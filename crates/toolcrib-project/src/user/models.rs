//! The models of this user: the default, and the keys and base URLs of vendors.

use std::{collections::BTreeMap, io, path::PathBuf};

use serde::{Deserialize, Serialize};
use toolcrib_config::suggest;
use toolcrib_core::Secret;
use toolcrib_models::{
    InvalidVendorModelError, ModelName, Vendor, VendorModel, VendorModelBuilder,
};

use crate::private::{
    self, config_of_user,
    vault::{Vault, VaultError},
};

/// A larger file is not valid.
const MOST_BYTES: u64 = 64 * 1024;

/// The models of this user: `models.json` in the user's configuration folder, and for each key a file of
/// `model_keys` there with the name of the vendor's variable, such as `OPENAI_API_KEY`.
///
/// They apply to a vendor that the environment does not configure, neither by a key nor by a base URL. Key
/// and base URL are always those of one place: a key is never sent to a server of another place. The
/// default model with a base URL of this user is [only there](Self::at_base_url).
#[derive(Debug, Clone)]
pub struct UserModels {
    file: PathBuf,
    /// The keys. They are not entries of the user's vault, so no project can read them.
    vault: Vault,
    stored: StoredModels,
}

/// The file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredModels {
    /// The model of a run if neither its command nor its project names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    /// The base URLs in place of the vendors', by vendor.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    base_urls: BTreeMap<String, String>,
}

impl StoredModels {
    fn read(text: &str) -> Result<Self, String> {
        if !text.trim_start().starts_with('{') {
            return Err("it is not a JSON object".to_owned());
        }
        let stored: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let is_unknown = |name: &&String| name.parse::<Vendor>().is_err();
        match stored.base_urls.keys().find(is_unknown) {
            Some(name) => {
                let known = suggest::quoted(Vendor::ALL.map(Vendor::as_str));
                let name = suggest::quoted([name.as_str()]);
                Err(format!("{name} of `base_urls` is not a vendor; the vendors are {known}"))
            }
            None => Ok(stored),
        }
    }
}

/// The models of the user cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserModelsError {
    /// The keys cannot be used.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The model, its base URL or its key is not valid.
    #[error(transparent)]
    Invalid(#[from] InvalidVendorModelError),
}

impl UserModels {
    /// The models of this user. Without a file there are none.
    ///
    /// # Errors
    /// [`UserModelsError`], also for a file that others can read, and for a user without a home.
    pub fn of_user() -> Result<Self, UserModelsError> {
        let vault = Vault::of_model_keys()?;
        let file = config_of_user().ok_or(VaultError::NoHome)?.join("models.json");
        let read = || -> io::Result<StoredModels> {
            let text = private::secret(&file, MOST_BYTES, "run `toolcrib models add`")?;
            let Some(text) = text else { return Ok(StoredModels::default()) };
            StoredModels::read(&text).map_err(|problem| {
                let help = "correct the file, or remove it and run `toolcrib models add`";
                io::Error::new(io::ErrorKind::InvalidData, format!("{problem}; {help}"))
            })
        };
        let stored =
            read().map_err(|source| UserModelsError::File { path: file.clone(), source })?;
        Ok(Self { file, vault, stored })
    }

    /// The default model, as `VENDOR:MODEL`.
    pub fn default_model(&self) -> Option<&str> {
        self.stored.default.as_deref()
    }

    /// The base URL in place of a vendor's.
    pub fn base_url(&self, vendor: Vendor) -> Option<&str> {
        self.stored.base_urls.get(vendor.as_str()).map(String::as_str)
    }

    /// The key of a vendor.
    ///
    /// # Errors
    /// [`VaultError`] if its entry cannot be read, or others can read it.
    pub fn key(&self, vendor: Vendor) -> Result<Option<Secret>, VaultError> {
        Ok(self.vault.get(entry(vendor))?.map(Secret::new))
    }

    /// The readable keys of all vendors, each with the name of its entry.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'static str, Secret)> {
        Vendor::ALL.into_iter().filter_map(|vendor| Some((entry(vendor), self.key(vendor).ok()??)))
    }

    /// Whether the user has configured a vendor: by a key, a base URL or the default model.
    pub fn configure(&self, vendor: Vendor) -> bool {
        let is_default = |name: &str| name.parse::<ModelName>().is_ok_and(|of| of.vendor == vendor);
        self.default_model().is_some_and(is_default)
            || self.base_url(vendor).is_some()
            || !matches!(self.key(vendor), Ok(None))
    }

    /// Makes a model the default, at a base URL in place of the vendor's. Without a key, the stored one
    /// remains if it was stored for the same base URL, and is removed otherwise.
    ///
    /// # Errors
    /// [`UserModelsError`]; for an invalid model, base URL or key nothing has changed.
    pub fn add(
        &mut self,
        name: &ModelName,
        base_url: Option<&str>,
        key: Option<Secret>,
    ) -> Result<(), UserModelsError> {
        let ModelName { vendor, model } = name;
        let mut builder = VendorModel::builder(*vendor, model);
        if let Some(url) = base_url {
            builder = builder.base_url(url);
        }
        if let Some(key) = key.clone() {
            builder = builder.key(key);
        }
        builder.build()?;
        key.as_ref().map_or(Ok(()), |key| Vault::check(key.expose()))?;
        // Before the base URL is stored: a key is never sent to a server for which it was not added.
        if key.is_some() || self.base_url(*vendor) != base_url {
            self.vault.remove(entry(*vendor))?;
        }
        self.stored.default = Some(name.to_string());
        let urls = &mut self.stored.base_urls;
        match base_url {
            Some(url) => urls.insert(vendor.to_string(), url.to_owned()),
            None => urls.remove(vendor.as_str()),
        };
        self.write()?;
        match key {
            Some(key) => Ok(self.vault.set(entry(*vendor), key.expose())?),
            None => Ok(()),
        }
    }

    /// Removes the key and the base URL of a vendor, and the default model if it is one of this vendor.
    /// Returns whether the user had configured it.
    ///
    /// # Errors
    /// [`UserModelsError`].
    pub fn remove(&mut self, vendor: Vendor) -> Result<bool, UserModelsError> {
        let was = self.configure(vendor);
        self.vault.remove(entry(vendor))?;
        let is_other =
            |name: &String| name.parse::<ModelName>().is_ok_and(|of| of.vendor != vendor);
        self.stored.default = self.stored.default.take().filter(is_other);
        self.stored.base_urls.remove(vendor.as_str());
        self.write()?;
        Ok(was)
    }

    fn write(&self) -> Result<(), UserModelsError> {
        let write = || {
            let text = serde_json::to_string_pretty(&self.stored)?;
            private::make(self.file.parent().unwrap_or(&self.file))?;
            private::replace(&self.file, 0o600, text + "\n")
        };
        write().map_err(|source| UserModelsError::File { path: self.file.clone(), source })
    }

    /// A model at the base URL that this user has stored for its vendor, also if the environment
    /// configures the vendor; `None` without a stored one.
    pub fn at_base_url(
        &self,
        builder: VendorModelBuilder,
    ) -> Option<Result<VendorModel, InvalidVendorModelError>> {
        self.base_url(builder.vendor())?;
        Some(self.fill(builder).build())
    }

    /// A model with the base URL and key of this user.
    fn fill(&self, mut builder: VendorModelBuilder) -> VendorModelBuilder {
        let vendor = builder.vendor();
        let url = self.base_url(vendor);
        if let Some(url) = url {
            builder = builder.base_url(url);
        }
        match self.key(vendor) {
            Ok(Some(key)) => builder.key(key),
            Ok(None) if url.is_none() && vendor.needs_key() => builder.without_key(format!(
                "there is no key for {vendor}: set {}, or run `toolcrib models add {vendor}`",
                vendor.key_variables().join(" or ")
            )),
            Ok(None) => builder,
            Err(error) => builder.without_key(error.to_string()),
        }
    }
}

/// The file with the key of a vendor. Of several variables it is the last one, which is
/// named after the model.
fn entry(vendor: Vendor) -> &'static str {
    vendor.key_variables().last().copied().unwrap_or(vendor.as_str())
}

/// A model with the base URL and the key of the environment; if the environment configures neither for
/// its vendor, with those of the user. A builder with a base URL gets no key.
pub(crate) fn configured(builder: VendorModelBuilder) -> VendorModelBuilder {
    if builder.has_base_url() || builder.vendor().configured_by().is_some() {
        return builder.from_env();
    }
    match UserModels::of_user() {
        Ok(models) => models.fill(builder),
        Err(UserModelsError::Vault(VaultError::NoHome)) => builder.from_env(),
        Err(error) => builder.without_key(error.to_string()),
    }
}

/// The base URL at which a model is [`configured`], if it is not the vendor's.
pub(crate) fn configured_base_url(vendor: Vendor) -> Option<String> {
    match vendor.configured_by() {
        Some(_) => vendor.base_url_from_env(),
        None => UserModels::of_user().ok()?.base_url(vendor).map(str::to_owned),
    }
}
