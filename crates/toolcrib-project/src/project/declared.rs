//! The first phase of loading: the files of a project, read.

use std::{io, path::Path};

use toolcrib_config::{Diagnostic, Document, Problems, Spot};

use crate::{
    bind::{mcp_files::McpFiles, part::Part},
    build::{keep_usable_tools, read_documents, read_schemas},
    error::LoadError,
    file::{PROJECT_FILE, ProjectFile},
    read::{
        root::Root,
        skills::SkillFolders,
        text_file::{FileError, MAX_TEXT},
    },
    user::{options::LoadOptions, state::StateFolder},
};

/// The files of a project and its parts, with all problems so far. No name is resolved.
pub(super) struct Declared {
    pub(super) options: LoadOptions,
    pub(super) problems: Problems,
    pub(super) root: Root,
    /// Whether the root is the project's folder; else only imported servers are declared.
    pub(super) is_folder: bool,
    pub(super) state: StateFolder,
    pub(super) file: ProjectFile,
    /// The project itself, then its plugins.
    pub(super) parts: Vec<Part>,
    pub(super) mcp_files: McpFiles,
}

impl Declared {
    /// Reads the project in a folder.
    pub(super) fn of_folder(dir: &Path, options: &LoadOptions) -> Result<Self, LoadError> {
        let root = Root::new(dir).map_err(|_| LoadError::NoFolder { dir: dir.to_owned() })?;
        if !root.path().is_dir() {
            return Err(LoadError::NotAFolder { path: dir.to_owned() });
        }
        let problems = Problems::new(PROJECT_FILE);
        let text = match root.by_values().text(PROJECT_FILE, MAX_TEXT) {
            Ok(text) => text,
            Err(FileError::NotFound) => {
                return Err(LoadError::NoProject { dir: dir.to_owned() });
            }
            Err(error) => {
                let at = Spot::start_of(PROJECT_FILE);
                problems.push(Diagnostic::error(&at, format!("this {error}")));
                return Err(LoadError::Diagnostics(problems.into_diagnostics()));
            }
        };
        let Some(file) = ProjectFile::read(&Document::new(PROJECT_FILE, text), &problems) else {
            return Err(LoadError::Diagnostics(problems.into_diagnostics()));
        };
        let chosen = options.state.as_deref();
        let state = StateFolder::new(root.path(), chosen)
            .map_err(cannot_make(chosen.unwrap_or(root.path())))?;
        state.check().map_err(cannot_make(state.path()))?;
        let start = Spot::start_of(PROJECT_FILE);
        let skills = SkillFolders::read(&root, file.skills.folder.as_ref(), &start, &problems);
        Self::of_file(file, skills, (root, true), state, problems, options)
    }

    /// Reads the imported files alone.
    pub(super) fn of_imports(options: &LoadOptions) -> Result<Self, LoadError> {
        let here = Path::new(".");
        let root = Root::new(here).map_err(|_| LoadError::NoFolder { dir: here.to_owned() })?;
        let state = match options.state.as_deref() {
            Some(chosen) => {
                StateFolder::new(root.path(), Some(chosen)).map_err(cannot_make(chosen))?
            }
            None => StateFolder::of_user().ok_or(LoadError::NoState)?,
        };
        let first = options.imports.first().map(|path| path.to_string_lossy());
        let main = first.as_deref().unwrap_or(PROJECT_FILE);
        state.check().map_err(cannot_make(state.path()))?;
        let file = ProjectFile { name: Some(main.into()), ..ProjectFile::default() };
        let (skills, problems) = (SkillFolders::default(), Problems::new(main));
        Self::of_file(file, skills, (root, false), state, problems, options)
    }

    /// Reads all other files that a project file names.
    fn of_file(
        mut file: ProjectFile,
        skills: SkillFolders,
        (root, is_folder): (Root, bool),
        state: StateFolder,
        problems: Problems,
        options: &LoadOptions,
    ) -> Result<Self, LoadError> {
        let mcp_files = McpFiles::read(&file, &root, &options.imports, &problems)?;
        let mut parts = Part::all(&mut file, skills, &root, &problems);
        keep_usable_tools(&mut parts, &file.files);
        read_documents(&mut parts, &problems);
        read_schemas(&parts);
        let options = options.clone();
        Ok(Self { options, problems, root, is_folder, state, file, parts, mcp_files })
    }
}

/// The error of a state folder that cannot be used.
pub(super) fn cannot_make(state: &Path) -> impl Fn(io::Error) -> LoadError {
    move |source| LoadError::State { path: state.to_owned(), source }
}
