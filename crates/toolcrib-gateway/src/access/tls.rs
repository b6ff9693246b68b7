//! TLS of the gateway's own address.

use std::sync::Arc;

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

use crate::error::GatewayError;

/// The certificate of a gateway and its private key.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

impl Tls {
    /// A certificate, followed by those of its issuers, and its key, each as PEM.
    ///
    /// # Errors
    /// [`GatewayError::Tls`] if one of them is invalid, or the key is another certificate's.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, GatewayError> {
        let fail = |problem: String| GatewayError::Tls(problem.into());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|error| fail(format!("the certificate is not PEM: {error}")))?;
        if chain.is_empty() {
            return Err(fail("the certificate's file contains no certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| fail(format!("the key is not PEM: {error}")))?;
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| fail(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

toolcrib_core::__internal::debug_fields!(Tls);
