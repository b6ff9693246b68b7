//! The declared databases.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_capabilities::database::{
    Claim, Database, DatabaseError, DatabaseSpec, FileSpec, SIDE_FILES, Seed,
    postgres::{PostgresDatabase, PostgresSpec},
};
use toolcrib_config::{Diagnostic, Located, Problems, Spot, suggest};
use toolcrib_core::CancellationToken;
use toolcrib_tools::sql::SqlDatabase;

use super::secrets::report_undeclared;
use crate::{
    bind::{grant::Grant, names::Names},
    file::{DatabaseSection, DatabaseSource},
    read::{
        root::{FoundFile, Root},
        text_file::MAX_SEED,
    },
    user::{
        options::Mode, secrets::ProjectSecrets, state::StateFolder, trust::consent::TrustDecision,
    },
};

/// The declared databases, in the order of the project file.
#[derive(Debug)]
pub(crate) struct Databases {
    declared: Vec<DeclaredDatabase>,
    /// The first database error that is not an error of the project's files.
    failure: Option<DatabaseError>,
}

#[derive(Debug)]
struct DeclaredDatabase {
    name: Arc<str>,
    /// `None` if it cannot be used, which is recorded.
    database: Option<SqlDatabase>,
}

/// The declared databases before they are opened: only their seeds are read.
pub(crate) struct DatabaseSpecs(Vec<Entry>);

/// A declared database before it is opened.
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) at: Spot,
    /// `None` if it cannot be used, which is recorded.
    spec: Option<Spec>,
}

enum Spec {
    Seed(DatabaseSpec),
    File {
        spec: FileSpec,
        written: Arc<str>,
        /// Whether the file is outside the project's folder.
        is_outside: bool,
        /// The nearest existing name, if the file does not exist.
        near: Option<String>,
    },
    Server(ServerSpec),
}

/// A server, and where its URL is.
struct ServerSpec {
    name: Arc<str>,
    secret: Arc<str>,
    writable: bool,
}

impl Entry {
    /// The file outside the project's folder, and whether it is writable.
    pub(crate) fn outside(&self) -> Option<(&Path, bool)> {
        match &self.spec {
            Some(Spec::File { spec, is_outside: true, .. }) => Some((&spec.file, spec.writable)),
            _ => None,
        }
    }

    /// The secret with the URL of its server, and whether it is writable.
    pub(crate) fn server(&self) -> Option<(&str, bool)> {
        match &self.spec {
            Some(Spec::Server(server)) => Some((&server.secret, server.writable)),
            _ => None,
        }
    }

    fn seeded(&self) -> Option<&DatabaseSpec> {
        match &self.spec {
            Some(Spec::Seed(spec)) => Some(spec),
            _ => None,
        }
    }
}

impl DatabaseSpecs {
    pub(crate) fn read(
        sections: &[DatabaseSection],
        root: &Root,
        state: &StateFolder,
        names: &Names,
        problems: &Problems,
    ) -> Self {
        report_shared_files(sections, problems);
        report_side_files(sections, problems);
        let entry = |section: &DatabaseSection| Entry {
            name: Arc::clone(&section.name.value),
            at: match &section.source {
                Some(DatabaseSource::File { file, .. }) => file.at.clone(),
                Some(DatabaseSource::Server { secret, .. }) => secret.at.clone(),
                _ => section.name.at.clone(),
            },
            spec: read_spec(section, root, state, names, problems),
        };
        Self(sections.iter().map(entry).collect())
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// Whether one is created from a seed.
    pub(crate) fn has_seeded(&self) -> bool {
        self.0.iter().any(|entry| entry.seeded().is_some())
    }

    /// The existing files that `fresh` replaces.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let files = self.0.iter().filter_map(|entry| Some(entry.seeded()?.file.clone()));
        files.filter(|file| file.symlink_metadata().is_ok()).collect()
    }

    pub(crate) fn open(
        &self,
        mode: Mode,
        held: &TrustDecision,
        secrets: &ProjectSecrets,
        cancel: &CancellationToken,
        problems: &Problems,
    ) -> Databases {
        // An error in one of them must not cause that others are created or replaced.
        let mode = if problems.has_errors() { Mode::Inspect } else { mode };
        let mut anew = match mode {
            Mode::Run { fresh: true } => self.make_all_anew(cancel),
            _ => HashMap::new(),
        };
        let mut databases = Databases { declared: Vec::with_capacity(self.0.len()), failure: None };
        for entry in &self.0 {
            let opened = match &entry.spec {
                None => None,
                Some(Spec::Seed(spec)) => of_file(match mode {
                    Mode::Inspect => Some(Database::inspect(spec, cancel)),
                    Mode::Preview => Some(Database::preview(spec, cancel)),
                    Mode::Run { fresh: false } => Some(Database::open(spec, cancel)),
                    Mode::Run { fresh: true } => anew.remove(&entry.name),
                }),
                Some(Spec::Server(server)) => {
                    Some(server.open(held, secrets, &entry.at, problems).map(SqlDatabase::Postgres))
                }
                Some(Spec::File { is_outside: true, .. }) if held.untrusted.is_some() => {
                    let reason = held.untrusted.as_deref().unwrap_or_default();
                    let message = format!("database `{}` is not opened: {reason}", entry.name);
                    let help = "its tools are left out";
                    problems.push(Diagnostic::warning(&entry.at, message).help(help));
                    None
                }
                Some(Spec::File { spec, .. }) => of_file(Some(match mode {
                    Mode::Run { .. } => Database::open_file(spec),
                    Mode::Inspect | Mode::Preview => Database::inspect_file(spec),
                })),
            };
            let database = opened
                .and_then(|opened| opened.map_err(|e| databases.record(e, entry, problems)).ok());
            databases.declared.push(DeclaredDatabase { name: Arc::clone(&entry.name), database });
        }
        databases
    }

    /// Either all can be recreated, or all are unchanged.
    fn make_all_anew(
        &self,
        cancel: &CancellationToken,
    ) -> HashMap<Arc<str>, Result<Database, DatabaseError>> {
        let seeded = self.0.iter().filter_map(Entry::seeded);
        let claims: Vec<_> =
            seeded.map(|spec| (Arc::clone(&spec.name), Database::claim(spec))).collect();
        let all_free = claims.iter().all(|(_, claim)| claim.is_ok());
        let open = |claim: Claim<'_>| all_free.then(|| claim.make_anew(cancel));
        let opened = claims.into_iter().filter_map(|(name, claim)| {
            Some((name, claim.map_or_else(|error| Some(Err(error)), open)?))
        });
        opened.collect()
    }
}

impl ServerSpec {
    /// The server, connected to once; if it must not be, its statements are not checked.
    fn open(
        &self,
        held: &TrustDecision,
        secrets: &ProjectSecrets,
        at: &Spot,
        problems: &Problems,
    ) -> Result<PostgresDatabase, DatabaseError> {
        let Self { name, secret, writable } = self;
        if let Some(reason) = &held.reason {
            return Ok(PostgresDatabase::held(name, *writable, reason, true));
        }
        let url = match (secrets.check(secret), secrets.get(secret)) {
            (Ok(()), Ok(url)) => url,
            (Err(reason), _) => {
                let help =
                    format!("until it is, the tools of the database `{name}` cannot be used");
                problems.push(Diagnostic::warning(at, &*reason).help(help));
                return Ok(PostgresDatabase::held(name, *writable, &reason.into(), false));
            }
            (_, Err(error)) => {
                let reason = error.to_string().into();
                return Ok(PostgresDatabase::held(name, *writable, &reason, false));
            }
        };
        let (name, url) = (Arc::clone(name), url.expose().into());
        let database = PostgresDatabase::new(&PostgresSpec { name, url, writable: *writable })?;
        database.check(false).map(|()| database)
    }
}

impl Databases {
    fn record(&mut self, error: DatabaseError, entry: &Entry, problems: &Problems) {
        match error {
            DatabaseError::CannotOpen { file, problem, help, .. } => {
                let (written, near) = match &entry.spec {
                    Some(Spec::File { written, near, .. }) => {
                        (written.to_string(), near.as_deref())
                    }
                    _ => (file.display().to_string(), None),
                };
                let message = format!("{} {problem}", suggest::quoted([&*written]));
                problems.push(Diagnostic::error(&entry.at, message).help(near.unwrap_or(help)));
            }
            DatabaseError::Seed { seed, line, problem, .. } => {
                let at = Spot { line: line.unwrap_or(1), ..Spot::start_of(seed) };
                problems.push(Diagnostic::error(&at, format!("the seed fails: {problem}")));
            }
            DatabaseError::Server { name, problem, help } => {
                let message = format!("database `{name}`: {problem}");
                problems.push(Diagnostic::error(&entry.at, message).help(help));
            }
            error => drop(self.failure.get_or_insert(error)),
        }
    }

    /// The database of a tool: the named one, or the only one. A plugin's tool can use the granted
    /// ones. `None` if it cannot be used or is ambiguous, which is recorded.
    pub(crate) fn of_tool(
        &self,
        named: Option<&Located<Arc<str>>>,
        tool: &Spot,
        grant: Option<&Grant>,
        problems: &Problems,
    ) -> Option<&SqlDatabase> {
        let chosen = match (named, self.declared.as_slice()) {
            (Some(named), declared) => declared.iter().find(|one| one.name == named.value),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        if let Some(grant) = grant
            && let Some(name) = named.map(|named| &named.value).or(chosen.map(|one| &one.name))
            && !grant.has_database(name)
        {
            let at = named.map_or(tool, |named| &named.at);
            let write = format!("databases = [\"{name}\"]");
            grant.refuse(at, &format!("uses the database `{name}`"), &write, problems);
            return None;
        }
        if let Some(chosen) = chosen {
            return chosen.database.as_ref();
        }
        let names = || self.declared.iter().map(|one| &*one.name);
        problems.push(match (named, self.declared.is_empty()) {
            (_, true) => {
                let at = named.map_or(tool, |named| &named.at);
                Diagnostic::error(at, "the tool needs a database, and none is declared").help(
                    "write below a [database.NAME]: file = \"../NAME.db\" for an existing one, or \
                     file = \"NAME.db\" and seed = \"seed.sql\" for a new one",
                )
            }
            (Some(named), false) => {
                let message = format!("unknown database `{}`", named.value);
                let help = suggest::help(&named.value, "databases", names());
                Diagnostic::error(&named.at, message).help(help)
            }
            (None, false) => {
                let message = "`database` is missing: more than one is declared";
                let names = names().map(|name| format!("\"{name}\"")).collect::<Vec<_>>();
                Diagnostic::error(tool, message)
                    .help(format!("write database = {}", names.join(" or ")))
            }
        });
        None
    }

    /// All databases, in files and on servers, if no problem was recorded.
    ///
    /// # Errors
    /// Why one cannot be used, though the project's files are valid.
    pub(crate) fn into_usable(
        self,
    ) -> Result<(Vec<Database>, Vec<PostgresDatabase>), DatabaseError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let (mut files, mut servers) = (Vec::new(), Vec::new());
        for database in self.declared.into_iter().filter_map(|one| one.database) {
            match database {
                SqlDatabase::Sqlite(file) => files.push(file),
                SqlDatabase::Postgres(server) => {
                    server.end_checks();
                    servers.push(server);
                }
            }
        }
        Ok((files, servers))
    }
}

fn of_file(
    opened: Option<Result<Database, DatabaseError>>,
) -> Option<Result<SqlDatabase, DatabaseError>> {
    opened.map(|opened| opened.map(SqlDatabase::Sqlite))
}

fn report_shared_files(sections: &[DatabaseSection], problems: &Problems) {
    let mut owners = HashMap::new();
    for section in sections {
        let Some(file) = section.state_file() else { continue };
        if let Some(owner) = owners.insert(&file.value, &section.name.value) {
            let message = format!("`{}` is the file of database `{owner}` already", file.value);
            problems.push(Diagnostic::error(&file.at, message).help(
                "give each database a \
                separate file",
            ));
        }
    }
}

/// The side files of one database must not be the file of another.
fn report_side_files(sections: &[DatabaseSection], problems: &Problems) {
    for section in sections {
        let Some(file) = section.state_file() else { continue };
        let keeper = sections.iter().find_map(|other| {
            let name = &other.state_file()?.value;
            let suffix = file.value.strip_prefix(&**name)?;
            let is_taken = SIDE_FILES.contains(&suffix) || suffix.starts_with(".old-");
            is_taken.then_some((name, &other.name.value))
        });
        if let Some((beside, keeper)) = keeper {
            let message = format!(
                "`{}` is a side file of database `{keeper}`, next to `{beside}`",
                file.value
            );
            problems.push(
                Diagnostic::error(&file.at, message)
                    .help("choose another file name, such as \"other.db\""),
            );
        }
    }
}

fn read_spec(
    section: &DatabaseSection,
    root: &Root,
    state: &StateFolder,
    names: &Names,
    problems: &Problems,
) -> Option<Spec> {
    let name = Arc::clone(&section.name.value);
    match section.source.as_ref()? {
        DatabaseSource::Seed { file, seed } => {
            let seed = seed.as_ref()?;
            let sql = root.named_text(seed, MAX_SEED, problems)?.into();
            let file = state.path().join(&*file.as_ref()?.value);
            let seed = Seed { name: Arc::clone(&seed.value), sql };
            Some(Spec::Seed(DatabaseSpec { name, file, seed }))
        }
        DatabaseSource::File { file: written, writable } => {
            let FoundFile { file, is_outside, near } = root.any_file(&written.value);
            let spec = FileSpec { name, file, writable: *writable };
            Some(Spec::File { spec, written: Arc::clone(&written.value), is_outside, near })
        }
        DatabaseSource::Server { secret, writable } => {
            report_undeclared(secret, names, problems);
            let (secret, writable) = (Arc::clone(&secret.value), *writable);
            Some(Spec::Server(ServerSpec { name, secret, writable }))
        }
    }
}
