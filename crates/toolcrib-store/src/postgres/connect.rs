//! The way to the server: its URL, TLS, and the pool of connections.

use std::{error::Error, sync::Arc, time::Duration};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts,
};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

type AnyError = Box<dyn Error + Send + Sync>;

/// The most connections; further callers wait.
const MOST: usize = 16;

/// The time limit of a connection, and of the wait for a free one.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server that acknowledges nothing for this time is gone.
const SILENCE: Duration = Duration::from_secs(15);

/// The settings of a connection. A server that acknowledges writes before they are on its disk would lose
/// the intent of a call that may not be repeated.
const SETTINGS: &str = "
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') = 'off';
    SET statement_timeout = '60s'";

/// Reads a URL or key-value string.
pub(super) fn config(url: &str) -> Result<Config, AnyError> {
    // The driver does not know these modes, which are what it always does here.
    let url = url.replace("sslmode=verify-full", "sslmode=require");
    let parsed = url.replace("sslmode=verify-ca", "sslmode=require").parse::<Config>();
    let mut config = parsed.map_err(
        |_| "the URL is invalid; write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE",
    )?;
    if config.get_hosts().is_empty() {
        return Err("the URL names no host".into());
    }
    let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
    if is_local {
        config.ssl_mode(SslMode::Disable);
    } else if config.get_ssl_mode() == SslMode::Prefer {
        config.ssl_mode(SslMode::Require);
    }
    config.application_name(concat!("toolcrib/", env!("CARGO_PKG_VERSION")));
    config.connect_timeout(PATIENCE).keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
    Ok(config)
}

/// The servers and the database, without user and password.
pub(super) fn shown(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    });
    let hosts: Vec<_> = hosts.collect();
    format!("{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

/// A pool, which connects on demand and replaces connections that are closed.
pub(super) fn pool(config: Config) -> Result<Pool, AnyError> {
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match config.get_ssl_mode() {
        SslMode::Disable => Manager::from_config(config, tokio_postgres::NoTls, manager),
        _ => Manager::from_config(config, MakeRustlsConnect::new(tls()?), manager),
    };
    let timeouts = Timeouts { wait: Some(PATIENCE), create: Some(PATIENCE), recycle: None };
    let set = Hook::async_fn(|client, _| {
        Box::pin(async move { client.batch_execute(SETTINGS).await.map_err(HookError::Backend) })
    });
    let pool = Pool::builder(manager).max_size(MOST).timeouts(timeouts).post_create(set);
    Ok(pool.runtime(Runtime::Tokio1).build()?)
}

fn tls() -> Result<ClientConfig, AnyError> {
    let system = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    // Some of a system's certificates may be too old to be parsed; the others are used.
    store.add_parsable_certificates(system.certs);
    if store.is_empty() {
        return Err("the system has no certificate authorities to verify the server by".into());
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(store);
    Ok(config.with_no_client_auth())
}
