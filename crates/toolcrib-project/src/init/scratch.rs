//! A project for a conversation without one, in the state folder of the user.

use std::{
    collections::HashSet,
    env, io,
    path::{Path, PathBuf},
};

use toolcrib_capabilities::http::Url;
use toolcrib_core::Digest;
use toolcrib_tools::openapi::{MAX_DOCUMENT, OpenApi};

use super::{
    InitError,
    from::{agent, comment, database, document_tools, identifier, is_database, quoted},
};
use crate::{
    file::PROJECT_FILE,
    private,
    read::text_file::{FileError, read_text},
    user::state::StateFolder,
};

/// Something that a scratch project gives its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScratchTools {
    /// The files of the folder of this process.
    Files,
    /// Pages of the web.
    Web,
    /// A SQLite database, which is only read, or an OpenAPI document.
    File(PathBuf),
    /// The servers of a file that the caller imports. They are only a part of the project's identity.
    Servers(PathBuf),
    /// An OpenAPI document that was fetched from a URL.
    Document {
        /// The URL at which it was found.
        url: Url,
        /// Its text.
        text: String,
    },
}

/// The folder of a scratch project, and what to tell its user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScratchProject {
    /// Its folder.
    pub dir: PathBuf,
    /// Facts that its user should know.
    pub notices: Vec<String>,
}

/// Writes a project of these tools into `scratch` in the state folder of the user. The same
/// tools from the same places have the same folder, and so the same sessions and grants. A person approves each call that may change
/// something.
///
/// # Errors
/// [`InitError`], such as for a file that is neither a database nor a document.
pub fn init_scratch(tools: &[ScratchTools]) -> Result<ScratchProject, InitError> {
    let mut scratch = Scratch::default();
    // A file may have the name of a keyword.
    scratch.names.extend(["here", "web"].map(str::to_owned));
    let is_new = |at: &usize, one| !tools.iter().take(*at).any(|earlier| earlier == one);
    for (_, one) in tools.iter().enumerate().filter(|(at, one)| is_new(at, *one)) {
        scratch.add(one)?;
    }
    let top = "name = \"scratch\"\n";
    let system = "You answer questions, and do what your user asks with the tools that you have.";
    let text = agent(top, system) + "\n[tool_search]\ndefer_above = 40\n" + &scratch.text;
    let unwritable = |path: PathBuf| move |source| InitError::Unwritable { path, source };
    let none = || io::Error::other("neither XDG_STATE_HOME nor HOME is an absolute path");
    let state = StateFolder::of_user().ok_or_else(none).map_err(unwritable("scratch".into()))?;
    let digest = Digest::of(text.as_bytes()).to_string();
    let dir = state.path().join("scratch").join(digest.get(..16).unwrap_or(&digest));
    private::make(&dir).map_err(unwritable(dir.clone()))?;
    for (name, text) in scratch.documents.into_iter().chain([(PROJECT_FILE.to_owned(), text)]) {
        let path = dir.join(name);
        private::replace(&path, 0o600, text).map_err(unwritable(path))?;
    }
    Ok(ScratchProject { dir, notices: scratch.notices })
}

/// The parts of the project so far.
#[derive(Default)]
struct Scratch {
    text: String,
    /// The documents by the names of their files.
    documents: Vec<(String, String)>,
    names: HashSet<String>,
    notices: Vec<String>,
}

impl Scratch {
    fn add(&mut self, tools: &ScratchTools) -> Result<(), InitError> {
        match tools {
            ScratchTools::Files => self.add_files()?,
            ScratchTools::Web => self.text.push_str("\n[[tool]]\nkind = \"web\"\n"),
            ScratchTools::File(path) => self.add_file(path)?,
            ScratchTools::Servers(path) => self.add_servers(path)?,
            ScratchTools::Document { url, text } => {
                let unusable = unusable(PathBuf::from(url.as_str()));
                let document = OpenApi::parse(text).map_err(|error| {
                    unusable(format!("cannot be used: {error}; to read web pages: `--with web`"))
                })?;
                let shown = url.host_str().unwrap_or_default().to_owned();
                self.add_document((&shown, url.as_str()), text, &document, Some(url));
            }
        }
        Ok(())
    }

    fn add_files(&mut self) -> Result<(), InitError> {
        let cannot = |source| InitError::Unwritable { path: ".".into(), source };
        let here = env::current_dir().map_err(cannot)?;
        let folder = quoted(here.to_str().ok_or_else(not_text(&here))?);
        self.text.push_str(&format!(
            "\n[files.here]\nfolder = {folder}\nwrite = true\n\n[[tool]]\nkind = \"files\"\n"
        ));
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<(), InitError> {
        let unusable = unusable(path.to_owned());
        let cannot = |error: io::Error| unusable(format!("cannot be read: {error}"));
        let real = path.canonicalize().map_err(cannot)?;
        let shown = path.file_name().unwrap_or_default().to_string_lossy();
        if is_database(&real).map_err(cannot)? {
            let file = real.to_str().ok_or_else(not_text(&real))?;
            let name = self.name(&shown);
            self.text.push_str(&database(&name, &shown, file));
            // There may be several.
            self.text.push_str(&format!("database = \"{name}\"\n"));
            return Ok(());
        }
        let neither = |problem: &str| {
            unusable(format!(
                "is neither a SQLite database nor an OpenAPI document ({problem}); an `mcpServers` \
                 file is named by `--import`"
            ))
        };
        let text = read_text(&real, MAX_DOCUMENT).map_err(|error| match error {
            FileError::NotText => neither("it is not UTF-8 text"),
            error => unusable(error.to_string()),
        })?;
        let document = OpenApi::parse(&text).map_err(|error| neither(&error.to_string()))?;
        if document.servers().is_empty() {
            let problem = "has no absolute URL of a server; name the document by its URL";
            return Err(unusable(problem.to_owned()));
        }
        let source = real.to_str().ok_or_else(not_text(&real))?;
        self.add_document((&shown, source), &text, &document, None);
        Ok(())
    }

    /// The comment makes the file, and so the folder of the project, another one for other servers.
    fn add_servers(&mut self, path: &Path) -> Result<(), InitError> {
        let unusable = unusable(path.to_owned());
        let cannot = |error: io::Error| unusable(format!("cannot be read: {error}"));
        let real = path.canonicalize().map_err(cannot)?;
        let here = env::current_dir().map_err(cannot)?;
        for (what, path) in [("Servers of", real), ("Begun in", here)] {
            let path = path.to_str().ok_or_else(not_text(&path))?;
            self.text.push_str(&format!("\n# {what} {}\n", quoted(path)));
        }
        Ok(())
    }

    /// Adds a document with its name for people and the place where it was found.
    fn add_document(
        &mut self,
        (shown, source): (&str, &str),
        text: &str,
        document: &OpenApi,
        url: Option<&Url>,
    ) {
        let name = self.name(shown);
        let is_json = text.trim_start().starts_with('{');
        let digest = Digest::of(text.as_bytes());
        let file = format!("{digest}.{}", if is_json { "json" } else { "yaml" });
        // Another place or text is another project.
        self.text.push_str(&format!("\n# From {}", quoted(source)));
        let (mut tools, notices) = document_tools(&name, &file, document, url);
        // Two documents may have the same names of operations.
        if !self.documents.is_empty() {
            tools = tools.replacen("# name = ", "name = ", 1);
        }
        self.text.push_str(&tools);
        self.notices.extend(notices);
        // No key of the environment: the document says where it would be sent.
        if document.needs_secret() {
            let from = if url.is_some() { "URL" } else { "FILE" };
            self.notices.push(format!(
                "the API of {} needs a key, and a conversation without a project sends none; \
                 `toolcrib init NAME --from {from}` makes a project for it",
                comment(shown)
            ));
        }
        self.documents.push((file, text.to_owned()));
    }

    /// A new name for a file.
    fn name(&mut self, file: &str) -> String {
        let first = identifier(file);
        let others = (2..).map(|number| format!("{first}_{number}"));
        let mut all = [first.clone()].into_iter().chain(others);
        all.find(|name| self.names.insert(name.clone())).unwrap_or(first.clone())
    }
}

fn unusable(path: PathBuf) -> impl Fn(String) -> InitError {
    move |problem| InitError::Unusable { path: path.clone(), problem }
}

fn not_text(path: &Path) -> impl Fn() -> InitError {
    let unusable = unusable(path.to_owned());
    move || unusable("has a path that is not UTF-8".to_owned())
}
