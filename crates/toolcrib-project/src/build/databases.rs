//! The declared databases.

use std::{collections::HashMap, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems, Spot, suggest};
use toolcrib_core::CancellationToken;
use toolcrib_scope::database::{Database, DatabaseError, DatabaseSpec, Seed};

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

impl Databases {
    pub(crate) fn open(
        sections: &[DatabaseSection],
        root: &Root,
        state: &StateFolder,
        mode: Mode,
        cancel: &CancellationToken,
        problems: &Problems,
    ) -> Self {
        report_shared_files(sections, problems);
        let mut this = Self { declared: Vec::with_capacity(sections.len()), failure: None };
        for section in sections {
            let database = read_spec(section, root, state, problems).and_then(|spec| {
                let opened = match mode {
                    Mode::Inspect => Database::inspect(&spec, cancel),
                    Mode::Run { fresh } => Database::open(&spec, fresh, cancel),
                };
                opened.map_err(|error| this.record(error, problems)).ok()
            });
            this.declared.push(Declared { name: Arc::clone(&section.name.value), database });
        }
        this
    }

    fn record(&mut self, error: DatabaseError, problems: &Problems) {
        match error {
            DatabaseError::Seed { seed, line, problem, .. } => {
                let at = Spot { line: line.unwrap_or(1), ..Spot::start_of(seed) };
                problems.push(Diagnostic::error(&at, format!("the seed fails: {problem}")));
            }
            error => drop(self.failure.get_or_insert(error)),
        }
    }

    /// The database of a tool that names one, or none. `None` when it cannot be used or told,
    /// which is recorded.
    pub(crate) fn of_tool(
        &self,
        named: Option<&Located<Arc<str>>>,
        tool: &Spot,
        problems: &Problems,
    ) -> Option<&Database> {
        let chosen = match (named, self.declared.as_slice()) {
            (Some(named), declared) => declared.iter().find(|one| one.name == named.value),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
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
