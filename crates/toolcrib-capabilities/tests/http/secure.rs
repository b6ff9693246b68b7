//! TLS: whom it trusts.

use std::{sync::Arc, time::Duration};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto, pki_types::PrivateKeyDer},
};
use toolcrib_capabilities::http::{HttpError, HttpErrorKind};

use crate::support::{Names, Server, get, local, ok, redirect, text};

/// An authority of the test's own.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A server that can prove to be one of these.
    fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer);
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.unwrap().der().clone()], private)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

fn names() -> Names {
    Names::default().with("a.example", &[&["127.0.0.1"]]).with("b.example", &[&["127.0.0.1"]])
}

#[tokio::test]
async fn a_server_that_proves_to_be_the_host_is_asked() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["a.example", "127.0.0.1"]);
    let server = Server::secure(acceptor, |asked| ok(asked.line())).await;
    let client = local().resolver(names()).trust(authority.pem.as_bytes()).unwrap().build();
    for host in ["a.example", "A.example.", "127.0.0.1"] {
        for path in ["/one", "/two"] {
            let answer = get(&client, &server.secure_url_of(host, path)).await.unwrap();
            assert_eq!(text(&answer), format!("GET {path} HTTP/1.1"));
        }
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_server_with_an_untrusted_certificate_receives_no_request() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = Server::secure(authority.acceptor(&["a.example"]), |_| ok("")).await;
    let stranger = local().resolver(names()).trust(other.pem.as_bytes()).unwrap().build();
    let client = local().resolver(names()).trust(authority.pem.as_bytes()).unwrap().build();
    for (client, host) in [(&stranger, "a.example"), (&client, "b.example"), (&client, "127.0.0.1")]
    {
        let error = get(client, &server.secure_url_of(host, "/")).await.unwrap_err();
        assert!(matches!(error, HttpError::Tls { .. }), "{error}");
        assert!(error.to_string().contains(host), "{error}");
        assert_eq!(error.kind(), HttpErrorKind::Unreachable);
        assert!(!error.may_have_reached_server());
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_server_without_tls_receives_no_request() {
    let authority = Authority::new();
    let server = Server::start(|_| ok("")).await;
    let client = local()
        .connect_timeout(Duration::from_millis(200))
        .trust(authority.pem.as_bytes())
        .unwrap()
        .build();
    let error = get(&client, &server.secure_url_of("127.0.0.1", "/")).await.unwrap_err();
    assert!(matches!(error, HttpError::Tls { .. }), "{error}");
    assert_eq!(error.kind(), HttpErrorKind::TimedOut);
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn nothing_goes_from_https_to_http() {
    let authority = Authority::new();
    let plain = Server::start(|_| ok("in the open")).await;
    let open = plain.url("/");
    let server =
        Server::secure(authority.acceptor(&["a.example"]), move |_| redirect(302, &open)).await;
    let client = local().resolver(names()).trust(authority.pem.as_bytes()).unwrap().build();
    let error = get(&client, &server.secure_url_of("a.example", "/")).await.unwrap_err();
    assert!(matches!(error, HttpError::RedirectDowngrade { .. }), "{error}");
    assert_eq!(plain.connections(), 0);

    // The other way round it goes.
    let secure = Server::secure(authority.acceptor(&["a.example"]), |_| ok("closed")).await;
    let up = secure.secure_url_of("a.example", "/");
    let server = Server::start(move |_| redirect(301, &up)).await;
    let both = [server.address.into(), secure.address.into()];
    let client = local().allow_addresses(both).resolver(names());
    let client = client.trust(authority.pem.as_bytes()).unwrap().build();
    assert_eq!(text(&get(&client, &server.url_of("a.example", "/")).await.unwrap()), "closed");
}

#[tokio::test]
async fn what_is_no_certificate_is_not_trusted() {
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for pem in ["", "no certificate", broken, "-----BEGIN CERTIFICATE-----\n"] {
        let error = local().trust(pem.as_bytes()).unwrap_err();
        assert!(matches!(error, HttpError::Roots { .. }), "{pem}: {error}");
    }
}
