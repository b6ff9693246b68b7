//! The trusted certificate authorities of TLS.

use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        RootCertStore,
        pki_types::{CertificateDer, pem::PemObject},
    },
};

use super::error::HttpError;
use crate::certificates::client_config;

/// The system's certificate authorities and added ones. Loaded for the first secure connection: a
/// project with only `http` needs none.
#[derive(Clone, Default)]
pub(crate) struct Tls {
    added: Vec<CertificateDer<'static>>,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    /// Trusts one more authority, or several, in PEM.
    pub(crate) fn trust(&mut self, pem: &[u8]) -> Result<(), HttpError> {
        let before = self.added.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|error| roots(format!("invalid PEM: {error}")))?;
            RootCertStore::empty()
                .add(certificate.clone())
                .map_err(|error| roots(format!("an added one cannot be read: {error}")))?;
            self.added.push(certificate);
        }
        if self.added.len() == before {
            return Err(roots("the added text contains no certificate in PEM".to_owned()));
        }
        self.connector = OnceCell::new();
        Ok(())
    }

    pub(crate) async fn connector(&self) -> Result<&TlsConnector, HttpError> {
        self.connector
            .get_or_try_init(|| async {
                let added = self.added.clone();
                // Some hundred files may have to be read.
                tokio::task::spawn_blocking(|| connector(added))
                    .await
                    .unwrap_or_else(|error| Err(roots(error.to_string())))
            })
            .await
    }
}

toolcrib_core::__internal::debug_fields!(Tls, tls, added = tls.added.len(), ..);

fn connector(added: Vec<CertificateDer<'static>>) -> Result<TlsConnector, HttpError> {
    let mut config = client_config(added).map_err(roots)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots(problem: String) -> HttpError {
    HttpError::Roots { problem }
}
