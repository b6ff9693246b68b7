//! A toolset over folders: a model reads, lists and searches files, and, where a folder is writable,
//! writes, edits and removes them.
//!
//! The folder decides what is reachable, and refuses to write over what the conversation has not
//! seen: see [`Files`]. Results are text for a model: a line about the file, then its content.
//!
//! A result of [`Read`](FilesTool::Read) ends at a whole line within the budget of the call, and says
//! which line comes next.

mod run;
mod table;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcrib_capabilities::files::Files;
use toolcrib_core::{Annotations, Capabilities, Tool};

use self::run::Body;
#[doc(hidden)]
pub use self::table::{DeclaredFiles, KEYS};
use crate::{Declaration, ToolErrors, findings::Findings};

/// The names of parameters.
const FOLDER: &str = "folder";
const PATH: &str = "path";
const PATTERN: &str = "pattern";
const FIRST_LINE: &str = "first_line";
const LINES: &str = "lines";
const NUMBERED: &str = "numbered";
const DEPTH: &str = "depth";
const GLOB: &str = "glob";
const IGNORE_CASE: &str = "ignore_case";
const MAX_MATCHES: &str = "max_matches";
const CONTENT: &str = "content";
const OLD: &str = "old";
const NEW: &str = "new";

/// The most lines that one call reads; the budget of its result ends earlier for usual lines.
const MOST_LINES: usize = 20_000;

/// The default and the most matching lines of a search.
const MATCHES: usize = 50;
const MOST_MATCHES: usize = 500;

/// The most levels of a listing, as in the limits of a folder.
const MOST_LEVELS: usize = 64;

/// A tool of the toolset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesTool {
    /// Reads lines of a file.
    Read,
    /// Lists a folder, or finds files by a pattern.
    List,
    /// Searches the lines of files.
    Search,
    /// Writes a whole file.
    Write,
    /// Replaces one exact text in a file.
    Edit,
    /// Moves a file to the trash.
    Remove,
}

impl FilesTool {
    /// All of them; first those that only read.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::List, Self::Search, Self::Write, Self::Edit, Self::Remove];

    /// Whether it changes files. Such a tool is for writable folders.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Edit | Self::Remove)
    }

    /// Its name: the prefix, and what it does.
    pub fn name(self, prefix: &str) -> String {
        let does = match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Search => "search",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Remove => "remove",
        };
        format!("{prefix}_{does}")
    }

    /// Its declaration: its name, description and parameters, and all else as in `base`. The
    /// description of `base` says what the folders contain; it may be empty. Of several `folders`,
    /// by name, a call names one.
    pub fn declaration(
        self,
        base: &Declaration,
        prefix: &str,
        folders: &[Arc<str>],
    ) -> Declaration {
        let about = &base.description;
        let does = self.does(prefix);
        let description =
            if about.is_empty() { does } else { format!("{does} The files: {about}") };
        let (mut required, mut parameters) = self.parameters();
        if folders.len() > 1 {
            required.insert(0, FOLDER);
            let folder = json!({ "type": "string", "enum": folders });
            parameters.shift_insert(0, FOLDER.to_owned(), folder);
        }
        Declaration {
            name: self.name(prefix),
            description,
            annotations: Annotations {
                read_only: !self.writes(),
                destructive: self.writes(),
                idempotent: !self.writes(),
            },
            input_schema: json!({
                "type": "object",
                "required": required,
                "properties": parameters,
                "additionalProperties": false,
            }),
            ..base.clone()
        }
    }

    fn does(self, prefix: &str) -> String {
        let read = Self::Read.name(prefix);
        match self {
            Self::Read => "Reads a text file, whole or from one line on.".to_owned(),
            Self::List => "Lists a folder, or finds files by a pattern of their paths.".to_owned(),
            Self::Search => {
                "Searches the lines of text files with a regular expression.".to_owned()
            }
            Self::Write => format!(
                "Writes a whole text file: a new one, or over one that {read} has read. For a part \
                 of a file use {}.",
                Self::Edit.name(prefix)
            ),
            Self::Edit => format!(
                "Replaces one text in a file that {read} has read. The text must occur exactly \
                 once, as it is in the file."
            ),
            Self::Remove => "Removes a file. Its user can restore it.".to_owned(),
        }
    }

    /// The required parameters, and all of them.
    fn parameters(self) -> (Vec<&'static str>, Map<String, Value>) {
        let file = || {
            let about = "The path of the file, such as notes/a.md.";
            (PATH, json!({ "type": "string", "description": about }))
        };
        let folder = || {
            let about = "The folder to look in; all of it by default.";
            (PATH, json!({ "type": "string", "description": about }))
        };
        let text = |about: &str| json!({ "type": "string", "description": about });
        let number = |least: usize, most: usize, default: usize, about: &str| {
            json!({
                "type": "integer", "minimum": least, "maximum": most, "default": default,
                "description": about,
            })
        };
        let is = |about: &str| json!({ "type": "boolean", "default": false, "description": about });
        let glob = "A pattern of paths, such as *.md or src/**/*.rs.";
        let (required, all) = match self {
            Self::Read => {
                let lines = json!({
                    "type": "integer", "minimum": 1, "maximum": MOST_LINES,
                    "description": "The number of lines; as many as fit by default.",
                });
                let first = json!({
                    "type": "integer", "minimum": 1, "default": 1,
                    "description": "The first line to read.",
                });
                let numbered = is("Whether each line begins with its number.");
                (
                    vec![PATH],
                    vec![file(), (FIRST_LINE, first), (LINES, lines), (NUMBERED, numbered)],
                )
            }
            Self::List => {
                let depth = number(1, MOST_LEVELS, 1, "The levels of folders to list.");
                (vec![], vec![folder(), (DEPTH, depth), (GLOB, text(glob))])
            }
            Self::Search => {
                let pattern =
                    text("A regular expression, without look-around and back-references.");
                let most = number(1, MOST_MATCHES, MATCHES, "The most matching lines.");
                let ignore = is("Whether case is ignored.");
                let all = [(PATTERN, pattern), folder(), (GLOB, text(glob)), (IGNORE_CASE, ignore)];
                (vec![PATTERN], all.into_iter().chain([(MAX_MATCHES, most)]).collect())
            }
            Self::Write => {
                (vec![PATH, CONTENT], vec![file(), (CONTENT, text("The whole new content."))])
            }
            Self::Edit => {
                let old = text("The text to replace, with its exact spaces and line breaks.");
                (vec![PATH, OLD, NEW], vec![file(), (OLD, old), (NEW, text("The new text."))])
            }
            Self::Remove => (vec![PATH], vec![file()]),
        };
        (required, all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect())
    }

    /// Makes the tool, of its [`declaration`](Self::declaration) for the same folders. A tool that
    /// writes is refused by each folder that is not writable.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn build(self, declaration: Declaration, folders: &[Files]) -> Result<Tool, ToolErrors> {
        let found = Findings::of(&declaration).finish();
        let name = declaration.name.clone();
        let names = folders.iter().map(|files| Arc::clone(files.name()));
        let capabilities = match self.writes() {
            true => Capabilities::none().write_files(names),
            false => Capabilities::none().files(names),
        };
        let handle = |files: &Files| match self.writes() {
            true => files.writable(),
            false => files.read_only(),
        };
        let body = Body { tool: self, folders: folders.iter().map(handle).collect() };
        let builder = declaration.into_builder().capabilities(capabilities).own_handles();
        let made = builder.handler(move |args: Value, cx| body.clone().call(args, cx));
        found.or_tool(name, made)
    }
}
