//! The declared databases.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems, Spot, suggest};
use toolcrib_core::CancellationToken;
use toolcrib_scope::database::{Claim, Database, DatabaseError, DatabaseSpec, SIDE_FILES, Seed};

use super::part::Grant;
use crate::{
    config::DatabaseSection,
    project::Mode,
    root::{MAX_SEED, Root},
    state::StateFolder,
};

/// The declared databases, in the order of the project file.
#[derive(Debug)]
pub(crate) struct Databases {
    declared: Vec<Declared>,
    /// The first that could not be used though nothing is wrong with the project's files.
    failure: Option<DatabaseError>,
}

#[derive(Debug)]
struct Declared {
    name: Arc<str>,
    /// `None` when it cannot be used, which is recorded.
    database: Option<Database>,
}

/// The declared databases before they are opened: their seeds are read, and nothing else.
pub(crate) struct DatabaseSpecs(Vec<(Arc<str>, Option<DatabaseSpec>)>);

impl DatabaseSpecs {
    pub(crate) fn read(
        sections: &[DatabaseSection],
        root: &Root,
        state: &StateFolder,
        problems: &Problems,
    ) -> Self {
        report_shared_files(sections, problems);
        report_side_files(sections, problems);
        let specs = sections.iter().map(|section| {
            let spec = read_spec(section, root, state, problems);
            (Arc::clone(&section.name.value), spec)
        });
        Self(specs.collect())
    }

    /// The files that are there.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let files = self.0.iter().filter_map(|(_, spec)| Some(spec.as_ref()?.file.clone()));
        files.filter(|file| file.symlink_metadata().is_ok()).collect()
    }

    /// What they would be if they were all made anew, in memory.
    pub(crate) fn preview(&self, cancel: &CancellationToken, problems: &Problems) -> Databases {
        self.opened(each(&self.0, |spec| Database::preview(spec, cancel)), problems)
    }

    pub(crate) fn open(
        &self,
        mode: Mode,
        cancel: &CancellationToken,
        problems: &Problems,
    ) -> Databases {
        // What is wrong with one of them is no reason to make the others, least of all anew.
        let mode = if problems.has_errors() { Mode::Inspect } else { mode };
        let opened = match mode {
            Mode::Inspect => each(&self.0, |spec| Database::inspect(spec, cancel)),
            Mode::Run { fresh: false } => each(&self.0, |spec| Database::open(spec, cancel)),
            Mode::Run { fresh: true } => make_all_anew(&self.0, cancel),
        };
        self.opened(opened, problems)
    }

    fn opened(&self, opened: Vec<Opened>, problems: &Problems) -> Databases {
        let mut databases = Databases { declared: Vec::with_capacity(self.0.len()), failure: None };
        for ((name, _), opened) in self.0.iter().zip(opened) {
            let database =
                opened.and_then(|opened| opened.map_err(|e| databases.record(e, problems)).ok());
            databases.declared.push(Declared { name: Arc::clone(name), database });
        }
        databases
    }
}

impl Databases {
    fn record(&mut self, error: DatabaseError, problems: &Problems) {
        match error {
            DatabaseError::Seed { seed, line, problem, .. } => {
                let at = Spot { line: line.unwrap_or(1), ..Spot::start_of(seed) };
                problems.push(Diagnostic::error(&at, format!("the seed fails: {problem}")));
            }
            error => drop(self.failure.get_or_insert(error)),
        }
    }

    /// The database of a tool that names one, or none; one of a plugin has those that are granted.
    /// `None` when it cannot be used or told, which is recorded.
    pub(crate) fn of_tool(
        &self,
        named: Option<&Located<Arc<str>>>,
        tool: &Spot,
        grant: Option<&Grant>,
        problems: &Problems,
    ) -> Option<&Database> {
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
                    "write below a [database.NAME]: file = \"NAME.db\" and seed = \"seed.sql\"",
                )
            }
            (Some(named), false) => {
                let message = format!("there is no database `{}`", named.value);
                let help = suggest::help(&named.value, "databases", names());
                Diagnostic::error(&named.at, message).help(help)
            }
            (None, false) => {
                let message = "`database` is missing: there is more than one";
                let names = names().map(|name| format!("\"{name}\"")).collect::<Vec<_>>();
                Diagnostic::error(tool, message)
                    .help(format!("write database = {}", names.join(" or ")))
            }
        });
        None
    }

    /// All of them, when nothing was recorded.
    ///
    /// # Errors
    /// Why one cannot be used though nothing is wrong with the project's files.
    pub(crate) fn into_usable(self) -> Result<Vec<Database>, DatabaseError> {
        match self.failure {
            None => Ok(self.declared.into_iter().filter_map(|one| one.database).collect()),
            Some(failure) => Err(failure),
        }
    }
}

/// `None` for a database that was not tried.
type Opened = Option<Result<Database, DatabaseError>>;

fn each(
    specs: &[(Arc<str>, Option<DatabaseSpec>)],
    open: impl Fn(&DatabaseSpec) -> Result<Database, DatabaseError>,
) -> Vec<Opened> {
    specs.iter().map(|(_, spec)| spec.as_ref().map(&open)).collect()
}

/// Either all are free to be made anew, or all stay as they are.
fn make_all_anew(
    specs: &[(Arc<str>, Option<DatabaseSpec>)],
    cancel: &CancellationToken,
) -> Vec<Opened> {
    let claims: Vec<_> = specs.iter().map(|(_, spec)| spec.as_ref().map(Database::claim)).collect();
    let all_free = claims.iter().flatten().all(Result::is_ok);
    let open = |claim: Claim<'_>| all_free.then(|| claim.make_anew(cancel));
    claims.into_iter().map(|claim| claim?.map_or_else(|error| Some(Err(error)), open)).collect()
}

fn report_shared_files(sections: &[DatabaseSection], problems: &Problems) {
    let mut owners = HashMap::new();
    for section in sections {
        let Some(file) = &section.file else { continue };
        if let Some(owner) = owners.insert(&file.value, &section.name.value) {
            let message = format!("`{}` is the file of database `{owner}` already", file.value);
            problems.push(Diagnostic::error(&file.at, message).help("give each its own file"));
        }
    }
}

/// What one database keeps beside its file must not be the file of another.
fn report_side_files(sections: &[DatabaseSection], problems: &Problems) {
    for section in sections {
        let Some(file) = &section.file else { continue };
        let keeper = sections.iter().find_map(|other| {
            let name = &other.file.as_ref()?.value;
            let suffix = file.value.strip_prefix(&**name)?;
            let is_taken = SIDE_FILES.contains(&suffix) || suffix.starts_with(".old-");
            is_taken.then_some((name, &other.name.value))
        });
        if let Some((beside, keeper)) = keeper {
            let message = format!(
                "`{}` is a name that database `{keeper}` needs for itself, beside `{beside}`",
                file.value
            );
            problems.push(
                Diagnostic::error(&file.at, message)
                    .help("give it a name of its own, such as \"other.db\""),
            );
        }
    }
}

fn read_spec(
    section: &DatabaseSection,
    root: &Root,
    state: &StateFolder,
    problems: &Problems,
) -> Option<DatabaseSpec> {
    let (file, seed) = (section.file.as_ref(), section.seed.as_ref());
    let sql = seed.and_then(|seed| root.named_text(seed, MAX_SEED, problems));
    Some(DatabaseSpec {
        name: Arc::clone(&section.name.value),
        file: state.path().join(&*file?.value),
        seed: Seed { name: Arc::clone(&seed?.value), sql: sql?.into() },
    })
}
