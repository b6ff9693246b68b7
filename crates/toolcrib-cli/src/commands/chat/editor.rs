//! The input line of a chat: editing, several lines, and a history that outlives the chat.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::{
    Cmd, Config, Context, EventHandler, Helper, KeyCode, KeyEvent, Modifiers,
    completion::Completer,
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};
use tokio::sync::oneshot;

use super::slash;
use crate::problem::Problem;

/// The file of the history, in the state folder.
pub(super) const HISTORY: &str = "chat_history";

/// Older lines are removed.
const MOST_LINES: usize = 1_000;

const PROMPT: &str = "> ";

/// A line of input.
pub(super) enum Line {
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D on an empty line.
    End,
    Failed(String),
}

/// Reads lines on its own thread: the runtime goes on, and a signal does not wait for a key.
pub(super) struct Editor {
    requests: mpsc::Sender<Request>,
    /// The mode of the terminal before it was changed.
    mode: Option<Termios>,
}

enum Request {
    Read(oneshot::Sender<Line>),
    Keep(String),
}

impl Editor {
    /// Starts an editor with the history of a file, if there is one.
    pub(super) fn start(history: Option<PathBuf>) -> Result<Self, Problem> {
        let failed = |error: &dyn ToString| {
            Problem::failed("terminal_failed", format!("the terminal: {}", error.to_string()))
        };
        let config = Config::builder()
            .auto_add_history(false)
            .max_history_size(MOST_LINES)
            .map_err(|error| failed(&error))?
            .build();
        let mode = tcgetattr(io::stdin()).ok();
        let (requests, received) = mpsc::channel();
        let work = move || {
            let opened = rustyline::Editor::<ChatHelper, FileHistory>::with_config(config);
            edit(opened, history.as_deref(), &received);
        };
        thread::Builder::new().name("editor".into()).spawn(work).map_err(|error| failed(&error))?;
        Ok(Self { requests, mode })
    }

    /// Reads the next line.
    pub(super) async fn read(&mut self) -> Line {
        let (reply, line) = oneshot::channel();
        let asked = self.requests.send(Request::Read(reply));
        let ended = || Line::Failed("the editor ended".to_owned());
        if asked.is_err() { ended() } else { line.await.unwrap_or_else(|_| ended()) }
    }

    /// Adds a line to the history.
    pub(super) fn keep(&self, line: &str) {
        // Without the editor, the next read fails.
        let _ = self.requests.send(Request::Keep(line.to_owned()));
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // A signal ends the chat while the thread still reads, in raw mode.
        if let Some(mode) = &self.mode {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, mode);
        }
    }
}

/// Serves the requests until the chat ends.
fn edit(
    opened: rustyline::Result<rustyline::Editor<ChatHelper, FileHistory>>,
    history: Option<&Path>,
    requests: &mpsc::Receiver<Request>,
) {
    let mut editor = match opened {
        Ok(editor) => editor,
        Err(error) => {
            if let Ok(Request::Read(reply)) = requests.recv() {
                let _ = reply.send(Line::Failed(error.to_string()));
            }
            return;
        }
    };
    editor.set_helper(Some(ChatHelper));
    let newline = KeyEvent(KeyCode::Enter, Modifiers::ALT);
    editor.bind_sequence(newline, EventHandler::Simple(Cmd::Newline));
    let history = history.filter(|path| is_own(path));
    if let Some(path) = history {
        let _ = editor.load_history(path);
    }
    while let Ok(request) = requests.recv() {
        match request {
            Request::Read(reply) => {
                let line = match editor.readline(PROMPT) {
                    // A backslash continues the line.
                    Ok(line) => Line::Text(line.replace("\\\n", "\n")),
                    Err(ReadlineError::Interrupted) => Line::Interrupted,
                    Err(ReadlineError::Eof) => Line::End,
                    Err(error) => Line::Failed(error.to_string()),
                };
                let _ = reply.send(line);
            }
            Request::Keep(line) => {
                let is_new = editor.add_history_entry(line).unwrap_or(false);
                // The chat works without its history.
                if let Some(path) = history.filter(|_| is_new) {
                    let _ = editor.append_history(path);
                }
            }
        }
    }
}

/// Whether the history is a file that only its owner can read; creates it if it is missing. A
/// symlink could lead the user's lines into another file.
fn is_own(path: &Path) -> bool {
    let mut created = OpenOptions::new();
    let _ = created.write(true).create_new(true).mode(0o600).open(path);
    fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// Completes commands, and reads further lines after a backslash.
struct ChatHelper;

impl Helper for ChatHelper {}
impl Highlighter for ChatHelper {}
impl Hinter for ChatHelper {
    type Hint = String;
}

impl Validator for ChatHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match context.input().ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for ChatHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let begun = line.get(..position).unwrap_or_default();
        let mut names: Vec<_> =
            slash::names().filter(|name| !begun.is_empty() && name.starts_with(begun)).collect();
        names.dedup();
        Ok((0, names.into_iter().map(|name| format!("{name} ")).collect()))
    }
}
