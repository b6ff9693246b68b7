//! The certificate authorities by which servers are verified.

use std::sync::Arc;

use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto, pki_types::CertificateDer};

/// TLS for clients that trust the system's certificate authorities and added ones. It may read some
/// hundred files. Without any authority, the result is a text that says why.
pub(crate) fn client_config(added: Vec<CertificateDer<'static>>) -> Result<ClientConfig, String> {
    let system = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    // Some of a system's certificates may be too old to be parsed; the others are used.
    store.add_parsable_certificates(system.certs);
    store.add_parsable_certificates(added);
    if store.is_empty() {
        return Err(system.errors.first().map_or_else(
            || "the system has none".to_owned(),
            |error| format!("the system's cannot be read: {error}"),
        ));
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(store).with_no_client_auth())
}
