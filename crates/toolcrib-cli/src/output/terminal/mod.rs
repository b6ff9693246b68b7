//! The terminal: its width, the lines on it, text that is streamed to it, and the spinner.
//!
//! Standard output and standard error may be the same terminal. Everything that is written to it
//! goes through one lock here, which knows whether the cursor is within a line of streamed text,
//! and what of the line is the spinner. So a line of narration begins on its own line.

mod markdown;
mod spinner;
mod text;
mod wrap;

use std::{
    fmt,
    io::{self, BufRead as _, IsTerminal as _, Write},
    mem,
};

use parking_lot::Mutex;
use unicode_width::UnicodeWidthStr as _;

use self::{markdown::Markdown, wrap::wrapped};
pub(super) use self::{
    spinner::{Call, Spinner},
    text::LiveText,
    wrap::fitted,
};
use super::{streams::delivered, text::DIM};

/// The width of a terminal that does not tell it, in columns.
const USUAL_WIDTH: usize = 80;

/// Narrower terminals get lines of this width, in columns.
const NARROWEST: usize = 20;

/// The widest line of help, in columns.
const WIDEST_HELP: usize = 100;

static SCREEN: Mutex<Screen> =
    Mutex::new(Screen { column: None, drawn: 0, asks: false, pending: None });

/// The last line of the terminal.
struct Screen {
    /// The filled columns, if the cursor is within a line of streamed text.
    column: Option<usize>,
    /// The columns of the spinner before the cursor.
    drawn: usize,
    /// Whether the line ends with a question that has no answer yet.
    asks: bool,
    /// The lines since a question was asked; `None` unless one is open.
    pending: Option<Vec<(Stream, String)>>,
}

/// Keeps the terminal for a question: lines are written when this is dropped.
pub(crate) struct Pause(());

/// Stops the spinner, and delays lines while a question is open.
pub(crate) fn pause() -> Pause {
    let mut screen = SCREEN.lock();
    screen.end_line();
    screen.pending.get_or_insert_default();
    Pause(())
}

impl Drop for Pause {
    fn drop(&mut self) {
        let mut screen = SCREEN.lock();
        for (stream, text) in screen.pending.take().unwrap_or_default() {
            write_line(stream, &text);
        }
    }
}

/// Asks on standard error, and reads the answer from standard input, with its line end. If the command ends before,
/// its next line does not continue the question.
pub(crate) fn ask_line(question: &str) -> io::Result<String> {
    let mut screen = SCREEN.lock();
    screen.end_line();
    let mut err = io::stderr();
    write!(err, "{question}").and_then(|()| err.flush())?;
    screen.asks = true;
    drop(screen);
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    // After the end of the input, the cursor is still behind the question.
    SCREEN.lock().asks = !answer.ends_with('\n');
    read.map(|_| answer)
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

impl Stream {
    /// The columns of the terminal now; `None` if it is not a terminal.
    pub(super) fn columns(self) -> Option<usize> {
        let (is_terminal, size) = match self {
            Self::Out => {
                (io::stdout().is_terminal(), terminal_size::terminal_size_of(io::stdout()))
            }
            Self::Err => {
                (io::stderr().is_terminal(), terminal_size::terminal_size_of(io::stderr()))
            }
        };
        let width = size.map_or(USUAL_WIDTH, |(width, _)| width.0.into());
        is_terminal.then_some(width.max(NARROWEST))
    }
}

/// Whether the model's text is shown while it is written: both streams are terminals.
pub(super) fn is_live() -> bool {
    Stream::Out.columns().is_some() && Stream::Err.columns().is_some()
}

/// Prints lines: as they are, or wrapped if the stream is a terminal.
pub(super) fn line(stream: Stream, line: fmt::Arguments<'_>) {
    let mut screen = SCREEN.lock();
    screen.end_line();
    let text = line.to_string();
    let text = match stream.columns() {
        Some(columns) => wrapped(&text, columns, |_| 2),
        None => text,
    };
    match &mut screen.pending {
        Some(pending) => pending.push((stream, text)),
        None => write_line(stream, &text),
    }
}

fn write_line(stream: Stream, text: &str) {
    match stream {
        Stream::Out => delivered(writeln!(anstream::stdout(), "{text}")),
        // A failure there cannot be reported.
        Stream::Err => drop(writeln!(anstream::stderr(), "{text}")),
    }
}

/// Prints a line of a command to standard error. It is not wrapped: from a terminal that breaks it
/// by itself it is copied as one line.
pub(super) fn verbatim(text: &str) {
    SCREEN.lock().end_line();
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints the help of a command.
pub(super) fn help(text: &str) {
    let columns = Stream::Out.columns().map_or(WIDEST_HELP, |columns| columns.min(WIDEST_HELP));
    // A paragraph continues below its beginning, an entry of a list after it.
    let text = wrapped(text, columns, |line| if line.starts_with(' ') { 2 } else { 0 });
    delivered(write!(anstream::stdout(), "{text}"));
}

/// Prints Markdown: as it is, or rendered if standard output is a terminal.
pub(super) fn markdown(text: &str) {
    let Some(columns) = Stream::Out.columns() else {
        return line(Stream::Out, format_args!("{text}"));
    };
    let mut markdown = Markdown::default();
    let mut rendered = markdown.push(text, columns);
    rendered.push_str(&markdown.finish(columns));
    let mut screen = SCREEN.lock();
    screen.end_line();
    delivered(write!(anstream::stdout(), "{rendered}"));
}

/// Writes rendered text, after which `column` columns of the last line are filled.
fn stream(text: &str, column: usize) {
    if text.is_empty() {
        return;
    }
    let mut screen = SCREEN.lock();
    screen.clear();
    let mut out = anstream::stdout();
    delivered(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    screen.column = (!text.ends_with('\n')).then_some(column);
}

/// Draws the spinner after the text, where it is replaced or removed by the next output.
fn draw(text: &str) {
    let mut screen = SCREEN.lock();
    screen.clear();
    let Some(columns) = Stream::Err.columns().filter(|_| screen.pending.is_none()) else { return };
    // A terminal wraps in the last column, and echoes Ctrl-C before it as `^C`.
    let free = columns.saturating_sub(screen.column.map_or(0, |column| column + 1) + 3);
    if free < 8 {
        return;
    }
    let space = if screen.column.is_some() { " " } else { "" };
    let text = format!("{space}{}", fitted(text, free));
    let mut err = anstream::stderr();
    let _ = write!(err, "{DIM}{text}{DIM:#}").and_then(|()| err.flush());
    screen.drawn = text.width();
}

/// Removes the spinner.
fn clear() {
    SCREEN.lock().clear();
}

impl Screen {
    /// Ends a line of streamed text, or of a question.
    fn end_line(&mut self) {
        self.clear();
        if mem::take(&mut self.asks) {
            // A failure there cannot be reported.
            let _ = writeln!(io::stderr());
        }
        if self.column.take().is_some() {
            delivered(writeln!(io::stdout()));
        }
    }

    fn clear(&mut self) {
        if self.drawn > 0 {
            // To a column, not back by the spinner's width: the terminal echoes Ctrl-C after it as `^C`.
            // Not through anstream, which would remove the sequences without colors.
            let column = self.column.unwrap_or_default() + 1;
            let mut err = io::stderr();
            let _ = write!(err, "\u{1b}[{column}G\u{1b}[K").and_then(|()| err.flush());
            self.drawn = 0;
        }
    }
}
