//! The declared folders.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_capabilities::files::{Files, FilesSpec, OpenFilesError};
use toolcrib_config::{Diagnostic, Located, Problems, Spot, suggest};
use toolcrib_tools::ExternalAccess;

use crate::{
    bind::{grant::Grant, part::Part},
    file::FilesSection,
    private::config_of_user,
    read::root::{FoundFile, Root},
    user::{options::Mode, state::StateFolder, trust::consent::TrustDecision},
};

/// The folder in the state folder that receives removed files, one subfolder for each declared
/// folder.
const TRASH: &str = "trash";

/// The declared folders before they are opened.
pub(crate) struct FolderSpecs(Vec<Entry>);

/// A declared folder before it is opened.
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) at: Spot,
    /// `None` if its path is missing, which is recorded.
    spec: Option<FilesSpec>,
    /// As written in the file.
    written: Arc<str>,
    is_outside: bool,
    /// The nearest existing name, if the folder does not exist.
    near: Option<String>,
}

/// The declared folders, in the order of the project file.
#[derive(Debug)]
pub(crate) struct Folders(Vec<DeclaredFolder>);

#[derive(Debug)]
struct DeclaredFolder {
    name: Arc<str>,
    /// `None` if it cannot be used, which is recorded.
    files: Option<Files>,
}

impl Entry {
    /// The folder outside the project's folder, and whether it is writable.
    pub(crate) fn outside(&self) -> Option<(&Path, bool)> {
        let spec = self.spec.as_ref().filter(|_| self.is_outside)?;
        Some((&spec.folder, spec.write))
    }
}

impl FolderSpecs {
    pub(crate) fn read(
        sections: &[FilesSection],
        root: &Root,
        state: &StateFolder,
        problems: &Problems,
    ) -> Self {
        let entry = |section: &FilesSection| {
            let name = Arc::clone(&section.name.value);
            let Some(written) = &section.folder else {
                let (at, written) = (section.name.at.clone(), Arc::default());
                return Entry { name, at, spec: None, written, is_outside: false, near: None };
            };
            let FoundFile { file, is_outside, near } = root.any_file(&written.value);
            let mut spec = FilesSpec::new(Arc::clone(&name), file).limits(section.limits);
            spec.write = section.write;
            match state.folder(TRASH) {
                Ok(trash) => spec.trash = Some(trash.join(folder_name(&name))),
                Err(_) if !section.write => {}
                Err(error) => {
                    let message = format!("the folder for removed files cannot be used: {error}");
                    problems.push(Diagnostic::error(&section.name.at, message));
                }
            }
            let (at, written) = (written.at.clone(), Arc::clone(&written.value));
            Entry { name, at, spec: Some(spec), written, is_outside, near }
        };
        Self(sections.iter().map(entry).collect())
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.0
    }

    pub(crate) fn has_writable(&self) -> bool {
        self.0.iter().filter_map(|entry| entry.spec.as_ref()).any(|spec| spec.write)
    }

    /// Opens the folders. Only to run calls, writable ones can be written. The floor protects the
    /// files that declare the project: those that were read, its skills and its plugins.
    pub(crate) fn open(
        &self,
        mode: Mode,
        held: &TrustDecision,
        (root, parts, state): (&Root, &[Part], &StateFolder),
        problems: &Problems,
    ) -> Folders {
        let fixed = fixed(root, parts);
        let open = |entry: &Entry| {
            let mut spec = entry.spec.clone()?;
            if entry.is_outside
                && let Some(reason) = held.untrusted.as_deref()
            {
                let message = format!("folder `{}` is not opened: {reason}", entry.name);
                let help = "its tools are left out";
                problems.push(Diagnostic::warning(&entry.at, message).help(help));
                return None;
            }
            spec.write &= matches!(mode, Mode::Run { .. });
            spec.fixed.clone_from(&fixed);
            // The vault and the tokens are there too, also below a folder such as the home.
            let of_user = StateFolder::of_user().map(|state| state.path().to_owned());
            let own = [Some(state.path().to_owned()), of_user, config_of_user()];
            let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
            spec.closed = own.into_iter().flatten().map(real).collect();
            Files::open(spec).map_err(|error| entry.record(error, problems)).ok()
        };
        let declared =
            |entry: &Entry| DeclaredFolder { name: Arc::clone(&entry.name), files: open(entry) };
        Folders(self.0.iter().map(declared).collect())
    }
}

impl Entry {
    fn record(&self, error: OpenFilesError, problems: &Problems) {
        let written = suggest::quoted([&*self.written]);
        let (problem, help) = match error {
            OpenFilesError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                let create = "create the folder, or write the path of an existing one".to_owned();
                ("does not exist".to_owned(), self.near.clone().unwrap_or(create))
            }
            OpenFilesError::Io { source, .. } => (
                format!("cannot be opened: {source}"),
                "permit this user to read the folder".to_owned(),
            ),
            OpenFilesError::NotAFolder { .. } => {
                ("is not a folder".to_owned(), "write the path of its folder".to_owned())
            }
            OpenFilesError::Protected { reason, .. } => (
                format!("is protected: {reason}"),
                "no declaration permits it; choose another folder".to_owned(),
            ),
            error => (error.to_string(), "choose another folder".to_owned()),
        };
        problems.push(Diagnostic::error(&self.at, format!("{written} {problem}")).help(help));
    }
}

/// The files and folders that decide what the project may do.
fn fixed(root: &Root, parts: &[Part]) -> Vec<PathBuf> {
    let mut fixed = root.reads().paths();
    for part in parts {
        let skills = part.skills.folder.as_deref();
        fixed.extend(skills.map(|folder| part.root.path().join(folder)));
        fixed.extend(part.plugin_id().map(|_| part.root.path().to_owned()));
    }
    fixed
}

/// A name as a plain file name.
fn folder_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// Removes the tools that write from toolsets over folders that are all read-only.
pub(crate) fn keep_usable_tools(parts: &mut [Part], sections: &[FilesSection]) {
    let is_usable = |access: ExternalAccess<'_>| match access {
        ExternalAccess::Files { folders, writes: true } => sections.iter().any(|section| {
            let is_named = |name: &Located<Arc<str>>| name.value == section.name.value;
            section.write && (folders.is_empty() || folders.iter().any(is_named))
        }),
        _ => true,
    };
    for part in parts {
        part.declared
            .tools
            .retain(|tool| tool.kind.iter().flat_map(|kind| kind.external_access()).all(is_usable));
    }
}

impl Folders {
    /// The folders of a tool: the named ones, or the only one. A plugin's tool can use the granted
    /// ones. `None` if one cannot be used or is ambiguous, which is recorded.
    pub(crate) fn of_tool(
        &self,
        named: &[Located<Arc<str>>],
        tool: &Spot,
        grant: Option<&Grant>,
        problems: &Problems,
    ) -> Option<Vec<Files>> {
        let Self(all) = self;
        if all.is_empty() {
            let at = named.first().map_or(tool, |named| &named.at);
            let message = "the tool needs a folder, and none is declared";
            let help = "write below a [files.NAME]: folder = \"notes\"";
            problems.push(Diagnostic::error(at, message).help(help));
            return None;
        }
        let chosen: Vec<_> = match (named, all.as_slice()) {
            ([], [only]) => vec![(only, tool)],
            ([], _) => {
                let names: Vec<_> = all.iter().map(|one| format!("\"{}\"", one.name)).collect();
                let message = "`files` is missing: more than one folder is declared";
                let help = format!("write files = [{}]", names.join(", "));
                problems.push(Diagnostic::error(tool, message).help(help));
                return None;
            }
            (named, all) => {
                let find = |name| Self::find(all, name, problems).map(|one| (one, &name.at));
                named.iter().map(find).collect::<Option<_>>()?
            }
        };
        if let Some(grant) = grant {
            let lacking = chosen.iter().find(|(one, _)| !grant.has_files(&one.name));
            if let Some((one, at)) = lacking {
                let write = format!("files = [\"{}\"]", one.name);
                grant.refuse(at, &format!("uses the folder `{}`", one.name), &write, problems);
                return None;
            }
        }
        chosen.into_iter().map(|(one, _)| one.files.clone()).collect()
    }

    fn find<'a>(
        all: &'a [DeclaredFolder],
        name: &Located<Arc<str>>,
        problems: &Problems,
    ) -> Option<&'a DeclaredFolder> {
        let found = all.iter().find(|one| one.name == name.value);
        if found.is_none() {
            let message = format!("unknown folder `{}`", name.value.escape_debug());
            let help = suggest::help(&name.value, "folders", all.iter().map(|one| &*one.name));
            problems.push(Diagnostic::error(&name.at, message).help(help));
        }
        found
    }

    /// The folders that could be opened.
    pub(crate) fn into_usable(self) -> Vec<Files> {
        self.0.into_iter().filter_map(|one| one.files).collect()
    }
}
