//! A toolset over folders: a model reads, lists and searches files, and, where a folder is writable,
//! writes, patches, moves and deletes them.
//!
//! The folder decides what is reachable, and refuses to write over what the conversation has not
//! seen: see [`Files`]. Results are text for a model: a line about the file, then its content.
//!
//! A result of [`Read`](FilesTool::Read) ends at a whole line within the budget of the call, and says
//! which line comes next.

mod result;
mod run;
mod table;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_capabilities::files::Files;
use toolcrib_core::{Annotations, Capabilities, TextOrigin, Tool};

use self::run::Body;
pub(crate) use self::table::KIND;
use crate::{
    Declaration, ToolErrors,
    declaration::{Parameters, closed, prefixed},
    findings::Findings,
};

/// The names of parameters.
const FOLDER: &str = "folder";
const PATH: &str = "path";
const PATTERN: &str = "pattern";
const FIRST_LINE: &str = "first_line";
const FIRST_COLUMN: &str = "first_column";
const LINES: &str = "lines";
const NUMBERED: &str = "numbered";
const DEPTH: &str = "depth";
const GLOB: &str = "glob";
const IGNORE_CASE: &str = "ignore_case";
const IGNORED: &str = "ignored";
const CONTEXT: &str = "context";
const MODE: &str = "mode";
const MAX_MATCHES: &str = "max_matches";
const ENCODING: &str = "encoding";
const CONTENT: &str = "content";
const EDITS: &str = "edits";
const OLD: &str = "old";
const NEW: &str = "new";
const ALL: &str = "all";
const FROM: &str = "from";
const TO: &str = "to";

/// The label of the toolset, unless a project gives it another one.
pub const TOOLSET: &str = "file";

/// The most lines that one call reads; the budget of its result ends earlier for usual lines.
const MOST_LINES: usize = 20_000;

/// The default and the most matching lines of a search.
const MATCHES: usize = 50;
const MOST_MATCHES: usize = 500;

/// The results of a search.
const MODES: [&str; 3] = ["lines", "files", "count"];

/// The most lines around a match.
const MOST_CONTEXT: usize = 20;

/// The most replacements of one call.
const MOST_EDITS: usize = 100;

/// The most levels of a listing, as in the limits of a folder.
const MOST_LEVELS: usize = 64;

/// A tool of the toolset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesTool {
    /// Reads lines of a text file, or an image.
    Read,
    /// Lists a folder, or finds files by a pattern.
    List,
    /// Searches the lines of files.
    Search,
    /// Writes a whole file.
    Write,
    /// Replaces exact texts in a file, all or none.
    Patch,
    /// Gives a file another path.
    Move,
    /// Moves a file to the trash.
    Delete,
    /// Reverts the last change of a path by these tools.
    Undo,
}

impl FilesTool {
    /// All of them; first those that only read.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::List,
        Self::Search,
        Self::Write,
        Self::Patch,
        Self::Move,
        Self::Delete,
        Self::Undo,
    ];

    /// Whether it changes files. Such a tool is for writable folders.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::List | Self::Search)
    }

    /// Its name, after the prefix of the toolset, if it has one: `read_file`, `notes_read_file`.
    pub fn name(self, prefix: Option<&str>) -> String {
        let name = match self {
            Self::Read => "read_file",
            Self::List => "list_files",
            Self::Search => "search_files",
            Self::Write => "write_file",
            Self::Patch => "patch_file",
            Self::Move => "move_file",
            Self::Delete => "delete_file",
            Self::Undo => "undo_edit",
        };
        prefixed(prefix, name)
    }

    /// Its declaration: its name, description and parameters, and all else as in `base`. The
    /// description of `base` says what the folders contain; it may be empty. Of several `folders`,
    /// by name, a call names one.
    pub fn declaration(
        self,
        base: &Declaration,
        prefix: Option<&str>,
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
            parameters.insert(0, (FOLDER, folder));
        }
        Declaration {
            name: self.name(prefix),
            description,
            annotations: Annotations {
                read_only: !self.writes(),
                // A move replaces nothing, and a patch can be reversed by its difference.
                destructive: matches!(self, Self::Write | Self::Delete | Self::Undo),
                idempotent: !self.writes() || self == Self::Write,
            },
            input_schema: closed((required, parameters)),
            ..base.in_toolset(TOOLSET)
        }
    }

    fn does(self, prefix: Option<&str>) -> String {
        let read = Self::Read.name(prefix);
        match self {
            Self::Read => {
                "Reads a text file, whole or from one line on, or shows an image. A long file is read in \
                 parts, and a long line from one character on. Use it before you change a file."
                    .to_owned()
            }
            Self::List => format!(
                "Lists a folder, or finds files by a pattern of their paths. Use it when you know a part \
                 of a path; {} finds files by their content.",
                Self::Search.name(prefix)
            ),
            Self::Search => {
                "Searches the lines of a text file, or of all below a folder, with a regular expression. \
                 Use it when you know what a file contains, and not where."
                    .to_owned()
            }
            Self::Write => format!(
                "Writes a whole text file: a new one, or over one that {read} has read. For a part \
                 of a file use {}.",
                Self::Patch.name(prefix)
            ),
            Self::Patch => format!(
                "Replaces texts in a file that {read} has read: all of them, or none. Each must occur \
                 exactly once, as it is in the file or as it was shown. Returns the difference."
            ),
            Self::Move => "Moves or renames a file. It cannot replace another file.".to_owned(),
            Self::Delete => format!(
                "Deletes a file that is no longer needed. Its user can restore it, and so can {}.",
                Self::Undo.name(prefix)
            ),
            Self::Undo => format!(
                "Reverts the last change of a file by {}, {}, {} or {}: its content before, or its \
                 path. Use it when that change was wrong. Again, it reverts the change before that one.",
                Self::Write.name(prefix),
                Self::Patch.name(prefix),
                Self::Move.name(prefix),
                Self::Delete.name(prefix),
            ),
        }
    }

    /// The required parameters, and all of them.
    fn parameters(self) -> Parameters {
        let file = (PATH, text("The path of the file, such as notes/a.md."));
        match self {
            Self::Read => (vec![PATH], read_parameters(file)),
            Self::List => (vec![], list_parameters()),
            Self::Search => (vec![PATTERN], search_parameters()),
            Self::Write => {
                (vec![PATH, CONTENT], vec![file, (CONTENT, text("The whole new content."))])
            }
            Self::Patch => (vec![PATH, EDITS], vec![file, (EDITS, edits())]),
            Self::Move => {
                let from = text("The path of the file.");
                let to = text("Its new path, with the file name. Missing folders are created.");
                (vec![FROM, TO], vec![(FROM, from), (TO, to)])
            }
            Self::Delete | Self::Undo => (vec![PATH], vec![file]),
        }
    }

    /// Makes the tool, of its [`declaration`](Self::declaration) for the same folders. A tool that
    /// writes is refused by each folder that is not writable.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn build(self, declaration: Declaration, folders: &[Files]) -> Result<Tool, ToolErrors> {
        let found = Findings::of(&declaration).finish();
        let name = declaration.name.clone();
        let shown = declaration.untrusted.then_some(TextOrigin::Project);
        let names = folders.iter().map(|files| Arc::clone(files.name()));
        let capabilities = match self.writes() {
            true => Capabilities::none().write_files(names),
            false => Capabilities::none().files(names),
        };
        let handle = |files: &Files| match self.writes() {
            true => files.writable(),
            false => files.read_only(),
        };
        let body = Body { tool: self, folders: folders.iter().map(handle).collect(), shown };
        let builder = declaration.into_builder().project_text();
        let mut builder = builder.capabilities(capabilities).own_handles();
        if self.writes() {
            let body = body.clone();
            builder = builder.preview(move |args, cx| body.clone().preview(args, cx));
        } else {
            builder = builder.dry_run();
        }
        let made = builder.handler(move |args: Value, cx| body.clone().call(args, cx));
        found.or_tool(name, made)
    }
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn flag(about: &str) -> Value {
    json!({ "type": "boolean", "default": false, "description": about })
}

fn number(least: usize, most: usize, default: usize, about: &str) -> Value {
    json!({
        "type": "integer", "minimum": least, "maximum": most, "default": default,
        "description": about,
    })
}

/// The number of the first line or character, without an upper limit.
fn first(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "default": 1, "description": about })
}

fn glob() -> (&'static str, Value) {
    (GLOB, text("A pattern of paths, such as *.md or src/**/*.rs; all files by default."))
}

fn ignored() -> (&'static str, Value) {
    (IGNORED, flag("Whether files that .gitignore names are included."))
}

fn read_parameters(file: (&'static str, Value)) -> Vec<(&'static str, Value)> {
    let lines = json!({
        "type": "integer", "minimum": 1, "maximum": MOST_LINES,
        "description": "The number of lines; as many as fit by default.",
    });
    let column = "The first character to read of the first line, if that line is long.";
    let encoding = "The encoding, such as windows-1252; UTF-8 or UTF-16 by default.";
    vec![
        file,
        (FIRST_LINE, first("The first line to read.")),
        (LINES, lines),
        (FIRST_COLUMN, first(column)),
        (NUMBERED, flag("Whether each line begins with its number.")),
        (ENCODING, text(encoding)),
    ]
}

fn list_parameters() -> Vec<(&'static str, Value)> {
    vec![
        (PATH, text("The folder to look in; all of it by default.")),
        (DEPTH, number(1, MOST_LEVELS, 1, "The levels of folders to list.")),
        glob(),
        ignored(),
    ]
}

fn search_parameters() -> Vec<(&'static str, Value)> {
    let pattern = "A regular expression, without look-around and back-references.";
    let context = "The lines to show before and after each match.";
    let mode = json!({
        "type": "string", "enum": MODES, "default": MODES[0],
        "description": "The matching lines, the files with a match, or the number of matching \
                        lines of each file.",
    });
    vec![
        (PATTERN, text(pattern)),
        (PATH, text("The file or the folder to search; all of it by default.")),
        glob(),
        (IGNORE_CASE, flag("Whether case is ignored.")),
        (CONTEXT, number(0, MOST_CONTEXT, 0, context)),
        (MODE, mode),
        ignored(),
        (MAX_MATCHES, number(1, MOST_MATCHES, MATCHES, "The most matching lines, or files.")),
    ]
}

/// The schema of the replacements of a patch.
fn edits() -> Value {
    let all = "Whether every occurrence is replaced; else there must be only one.";
    json!({
        "type": "array", "minItems": 1, "maxItems": MOST_EDITS,
        "description": "The replacements, each in the result of those before it.",
        "items": {
            "type": "object",
            "required": [OLD, NEW],
            "properties": {
                OLD: text("The text to replace, with its exact spaces."),
                NEW: text("The new text."),
                ALL: flag(all),
            },
            "additionalProperties": false,
        },
    })
}
