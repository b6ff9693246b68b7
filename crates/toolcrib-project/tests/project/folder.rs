//! Project folders for tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use toolcrib_project::{Diagnostics, LoadError, LoadOptions, Mode, PROJECT_FILE, Project};

use crate::schema::assert_accepted;

/// The seed of [`DATABASE`] is in each folder that is made [`with`](Folder::with) a project file.
pub(crate) const DATABASE: &str = r#"
[database.desk]
file = "desk.db"
seed = "seed.sql"
"#;

/// A sound tool over [`DATABASE`].
pub(crate) const TOOL: &str = r#"
[[tool]]
kind = "sql"
name = "list_charges"
description = "Lists the charges."
toolset = "billing"
read_only = true
statements = ["SELECT id, amount FROM charges"]
"#;

/// A sound skill called `billing`.
pub(crate) const SKILL: &str = "---\nname: billing\ndescription: Charges.\n---\nLook first.\n";

pub(crate) const RUN: Mode = Mode::Run { fresh: false };

/// A project folder that goes away with the value.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::with_prefix("desk").unwrap())
    }

    pub(crate) fn with(project_file: &str) -> Self {
        Self::new()
            .file(PROJECT_FILE, project_file)
            .file("seed.sql", "CREATE TABLE charges (id INTEGER PRIMARY KEY, amount INTEGER);")
    }

    pub(crate) fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn skill(self, name: &str, text: &str) -> Self {
        self.file(&format!("skills/{name}/SKILL.md"), text)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn load_as(&self, mode: Mode) -> Result<Project, LoadError> {
        let loaded = Project::load(self.path(), &LoadOptions { mode, ..LoadOptions::default() });
        if loaded.is_ok() {
            assert_accepted(&fs::read_to_string(self.path().join(PROJECT_FILE)).unwrap());
        }
        loaded
    }

    /// The problems of a file from which the schema is generated.
    pub(crate) fn probed(&self) -> Diagnostics {
        match Project::load(
            self.path(),
            &LoadOptions { mode: Mode::Inspect, ..LoadOptions::default() },
        ) {
            Err(LoadError::Diagnostics(problems)) => problems,
            Ok(_) => Diagnostics::default(),
            other => panic!("{other:?}"),
        }
    }

    /// A project that loads.
    pub(crate) fn load(&self) -> Project {
        self.load_as(Mode::Inspect).unwrap()
    }

    /// The problems of one that does not.
    pub(crate) fn problems(&self) -> Diagnostics {
        match self.load_as(Mode::Inspect) {
            Err(LoadError::Diagnostics(problems)) => problems,
            other => panic!("{other:?}"),
        }
    }

    /// Every file and folder below, with its size.
    pub(crate) fn listing(&self) -> Vec<(PathBuf, u64)> {
        fn walk(dir: &Path, into: &mut Vec<(PathBuf, u64)>) {
            for entry in fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                into.push((entry.path(), entry.metadata().unwrap().len()));
                if entry.path().is_dir() {
                    walk(&entry.path(), into);
                }
            }
        }
        let mut found = Vec::new();
        walk(self.path(), &mut found);
        found.sort();
        found
    }
}

pub(crate) fn block_on<T>(future: impl IntoFuture<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(future.into_future())
}
