//! A terminal with the program at it: a pseudo-terminal, and a screen that shows what a user sees.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    num::NonZero,
    os::fd::{AsFd as _, OwnedFd},
    process::{Child, Command},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// So many that nothing leaves the screen.
const ROWS: u16 = 400;

/// How long nothing here takes, on the slowest machine.
const HANGS: Duration = Duration::from_secs(300);

pub(crate) struct Terminal {
    child: Child,
    terminal: File,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    raw: String,
}

impl Terminal {
    /// Starts a command at a terminal with this number of columns.
    pub(crate) fn start(command: &Command, columns: u16) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        tcsetwinsize(&terminal, size(columns)).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let program = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let copy = |of: &OwnedFd| of.try_clone().unwrap();

        // It makes the terminal the one that Ctrl-C signals.
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        if let Some(dir) = command.get_current_dir() {
            session.current_dir(dir);
        }
        session.env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        session.stdin(copy(&program)).stdout(copy(&program)).stderr(program);
        let child = session.spawn().unwrap();
        // Holds the other ends of the terminal.
        drop(session);

        let mut reader = File::from(copy(&terminal));
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // Without a program at it, a terminal ends with an error.
            while let Ok(read @ 1..) = reader.read(&mut piece) {
                let _ = sender.send(piece[..read].to_vec());
            }
        });
        let screen = vt100::Parser::new(cells(ROWS), cells(columns), 0);
        Self { child, terminal: terminal.into(), output, screen, raw: String::new() }
    }

    /// The lines of the screen.
    pub(crate) fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits for the end; returns the lines with their colors.
    pub(crate) fn colored(mut self) -> String {
        self.wait_until(|_| false);
        let text = self.screen.screen().contents_formatted_basic();
        // Bold and dim are one attribute of the screen, where each replaces the other.
        text.trim_end().replace("\u{1b}[1m", "\u{1b}[22;1m").replace("\u{1b}[2m", "\u{1b}[22;2m")
    }

    /// The words that the terminal has split, because their line was too long for it.
    pub(crate) fn split_words(&self) -> Vec<String> {
        let screen = self.screen.screen();
        let (rows, columns) = screen.size();
        let lines: Vec<_> = screen.rows(0, columns.get()).collect();
        let is_split = |row: &u16| screen.row_wrapped(*row);
        let word = |row: u16| {
            let begin = lines[usize::from(row)].rsplit(' ').next().unwrap_or_default();
            let end = lines[usize::from(row) + 1].split(' ').next().unwrap_or_default();
            format!("{begin}{end}")
        };
        (0..rows.get()).filter(is_split).map(word).collect()
    }

    /// Waits until the screen shows a text.
    pub(crate) fn wait_for(&mut self, text: &str) {
        assert!(self.wait_or_end(text), "it ended without {text:?}:\n{}", self.shown());
    }

    /// Waits until the screen shows a text, or the program ends. Returns whether it shows it.
    pub(crate) fn wait_or_end(&mut self, text: &str) -> bool {
        self.wait_until(|screen| screen.contains(text))
    }

    /// Waits until the screen fulfills a condition, or the program ends. Returns whether it does.
    pub(crate) fn wait_until(&mut self, is_fulfilled: impl Fn(&str) -> bool) -> bool {
        while !is_fulfilled(&self.shown()) {
            match self.output.recv_timeout(HANGS) {
                Ok(piece) => self.take(&piece),
                Err(mpsc::RecvTimeoutError::Disconnected) => return false,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs:\n{}", self.shown()),
            }
        }
        true
    }

    fn take(&mut self, piece: &[u8]) {
        self.screen.process(piece);
        self.raw.push_str(&String::from_utf8_lossy(piece));
    }

    pub(crate) fn send(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the number of columns.
    pub(crate) fn resize(&mut self, columns: u16) {
        self.screen.screen_mut().set_size(cells(ROWS), cells(columns));
        tcsetwinsize(self.terminal.as_fd(), size(columns)).unwrap();
    }

    /// Waits for the end; returns the exit code, the screen, and all that was written to it.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        while let Ok(piece) = self.output.recv_timeout(HANGS) {
            self.take(&piece);
        }
        (self.child.wait().unwrap().code(), self.shown(), std::mem::take(&mut self.raw))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A failed test leaves no process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cells(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

fn size(columns: u16) -> Winsize {
    Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
