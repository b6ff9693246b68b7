//! A PostgreSQL database that a project declares by its URL.
//!
//! - [`PostgresDatabase::new`] reads the URL. Connections are opened when they are needed, kept for
//!   reuse, and limited in number. [`PostgresDatabase::held`] never opens any.
//! - [`PostgresDatabase::handle`] returns the [`PostgresHandle`]s for bodies, which run statements in
//!   one transaction; [`PostgresDatabase::exploring`] is for statements that a model writes.
//!
//! Over TCP there is always TLS with a verified certificate, unless the URL says `sslmode=disable`.
//! Arguments are passed by number in the extended protocol, which takes one statement at a time.
//! Each transaction has a `statement_timeout`, and cancellation ends the statement in the server.

mod connect;
mod describe;
mod explain;
mod explore;
mod functions;
mod placeholders;
mod role;
mod run;
mod unknown;
mod value;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

pub use self::run::{Limits, StatementResult};
use self::{
    connect::{Connection, Server},
    describe::BlockingConnection,
};
use super::{DatabaseError, guard::Access};

/// The maximum of connections of a database that are used at a time; further calls wait.
const MAX_CONNECTIONS: usize = 8;

/// The time limit of a statement in the server unless a tool has another.
pub const DEFAULT_STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The description of a PostgreSQL database.
#[derive(Clone)]
pub struct PostgresSpec {
    /// The declared name, for messages.
    pub name: Arc<str>,
    /// Its URL or key-value string, with the password.
    pub url: Arc<str>,
    /// Whether handles may write.
    pub writable: bool,
}

toolcrib_core::__internal::debug_fields!(PostgresSpec { name, .. });

/// A PostgreSQL database, owned by the host. Cheap to clone; clones share its connections.
#[derive(Clone)]
pub struct PostgresDatabase(Arc<Shared>);

/// Why a database is never connected to.
struct OfflineReason {
    reason: Arc<str>,
    is_offered: bool,
}

struct Shared {
    name: Arc<str>,
    /// The reason, if no connection may be opened.
    server: Result<Server, OfflineReason>,
    writable: bool,
    /// For statements of declarations, and for those of models.
    idle: [Mutex<Vec<Connection>>; 2],
    connections: Semaphore,
    /// The connection that statements are checked with while a project is loaded.
    checking: Mutex<Option<BlockingConnection>>,
}

impl PostgresDatabase {
    /// Reads the URL of a server, without connecting.
    ///
    /// # Errors
    /// [`DatabaseError::Server`] for an invalid URL; its text does not contain the URL.
    pub fn new(spec: &PostgresSpec) -> Result<Self, DatabaseError> {
        let server = Server::new(&spec.url).map_err(|error| DatabaseError::Server {
            name: Arc::clone(&spec.name),
            problem: format!("the URL is invalid: {error}"),
            help: "write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned(),
        })?;
        Ok(Self::shared(&spec.name, Ok(server), spec.writable))
    }

    /// A database that is never connected to; `reason` ends a sentence. Its statements are not
    /// checked, and calls fail. `is_offered` is whether its tools are offered all the same: to look
    /// at a menu, and not where a model would call them.
    pub fn held(name: &Arc<str>, writable: bool, reason: &Arc<str>, is_offered: bool) -> Self {
        Self::shared(name, Err(OfflineReason { reason: Arc::clone(reason), is_offered }), writable)
    }

    fn shared(name: &Arc<str>, server: Result<Server, OfflineReason>, writable: bool) -> Self {
        Self(Arc::new(Shared {
            name: Arc::clone(name),
            server,
            writable,
            idle: Default::default(),
            connections: Semaphore::new(MAX_CONNECTIONS),
            checking: Mutex::default(),
        }))
    }

    /// Whether it is never connected to.
    pub fn is_held(&self) -> bool {
        self.0.server.is_err()
    }

    /// The reason, if its tools are not offered.
    pub fn withheld_reason(&self) -> Option<&Arc<str>> {
        let held = self.0.server.as_ref().err().filter(|held| !held.is_offered);
        held.map(|held| &held.reason)
    }

    /// The name by which it is declared.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its server and database, without user and password.
    pub fn shown(&self) -> String {
        match &self.0.server {
            Ok(server) => server.shown(),
            Err(held) => held.reason.to_string(),
        }
    }

    /// Whether its handles may write at all.
    pub fn is_writable(&self) -> bool {
        self.0.writable
    }

    /// A handle for statements of a declaration; it writes only if the database may be written.
    pub fn handle(&self, read_only: bool) -> PostgresHandle {
        let access = if read_only || !self.0.writable { Access::Read } else { Access::Write };
        PostgresHandle { shared: Arc::clone(&self.0), access }
    }

    /// A handle for statements that a model writes: it takes only queries without functions that
    /// may have side effects, each in a new read-only transaction, and only with a role that may
    /// write nothing.
    pub fn exploring(&self) -> PostgresHandle {
        PostgresHandle { shared: Arc::clone(&self.0), access: Access::Explore }
    }
}

toolcrib_core::__internal::debug_fields!(PostgresDatabase, database, name = database.0.name, ..);

/// The handle of a tool's body. Cheap to clone.
#[derive(Clone)]
pub struct PostgresHandle {
    shared: Arc<Shared>,
    access: Access,
}

impl PostgresHandle {
    /// Whether it is read-only.
    pub fn is_read_only(&self) -> bool {
        self.access != Access::Write
    }
}

toolcrib_core::__internal::debug_fields!(
    PostgresHandle,
    handle,
    name = handle.shared.name,
    access = handle.access
);

impl Shared {
    fn pool(&self, access: Access) -> &Mutex<Vec<Connection>> {
        let [declared, exploring] = &self.idle;
        if access == Access::Explore { exploring } else { declared }
    }

    /// An idle connection, or a new one. One for exploring has a role that may.
    async fn connection(&self, access: Access) -> Result<Connection, DatabaseError> {
        loop {
            let idle = self.pool(access).lock().pop();
            match idle {
                Some(connection) if connection.client.is_closed() => {}
                Some(connection) => {
                    connection.permit_call();
                    return Ok(connection);
                }
                None => break,
            }
        }
        let server = self.server.as_ref().map_err(|held| self.not_connected(&held.reason))?;
        let connected = server.connect().await;
        let connection = connected.map_err(|error| self.unreachable(server, &error))?;
        if access == Access::Explore {
            let problems = role::problems(&connection.client).await;
            let problems = problems.map_err(|error| self.failed(&error))?;
            if !problems.is_empty() {
                return Err(self.refused_role(server, &problems));
            }
        }
        connection.permit_call();
        Ok(connection)
    }

    fn not_connected(&self, reason: &str) -> DatabaseError {
        DatabaseError::Server {
            name: Arc::clone(&self.name),
            problem: format!("no connection may be opened: {reason}"),
            help: "permit it".to_owned(),
        }
    }

    fn unreachable(&self, server: &Server, error: &connect::AnyError) -> DatabaseError {
        let problem = full_text(error.as_ref());
        let help = if problem.contains("does not support TLS") {
            "configure TLS in the server, or permit a connection without it by sslmode=disable in \
             the URL"
        } else if problem.contains("certificate") {
            "name the certificate authority in the variable SSL_CERT_FILE, or permit a connection \
             without TLS by sslmode=disable in the URL"
        } else {
            "check the URL, and that the server runs and admits this user"
        };
        DatabaseError::Server {
            name: Arc::clone(&self.name),
            problem: format!("cannot connect to {}: {problem}", server.shown()),
            help: help.to_owned(),
        }
    }

    fn failed(&self, error: &tokio_postgres::Error) -> DatabaseError {
        DatabaseError::Server {
            name: Arc::clone(&self.name),
            problem: full_text(error),
            help: "check the server".to_owned(),
        }
    }

    fn refused_role(&self, server: &Server, problems: &[(String, String)]) -> DatabaseError {
        let create = role::create_role(server.database());
        let (mut problems, statements): (Vec<_>, Vec<_>) =
            problems.iter().map(|(problem, statement)| (&**problem, &**statement)).unzip();
        // Several roles that it can become may have the same right.
        problems.dedup();
        DatabaseError::Server {
            name: Arc::clone(&self.name),
            problem: format!("its role may not explore: it {}", problems.join(", and ")),
            help: format!(
                "to permit it, run:\n{}\nor use a role that can only read, such as:\n{create}",
                statements.join("\n")
            ),
        }
    }
}

/// An error with its causes, which drivers leave out.
fn full_text(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
