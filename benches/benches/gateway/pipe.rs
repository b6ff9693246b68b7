//! The client over a program's pipes: one session, any number of concurrent calls.

use std::{collections::HashMap, process::Command, time::Instant};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout},
};
use toolcrib_benches::Outcome;

use crate::{
    figures::{Round, Window},
    message::{self, INITIALIZE, INITIALIZED},
    program::Program,
};

/// A session with a program.
pub(crate) struct Pipe {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: String,
    call: (String, String),
    calls: u64,
}

impl Pipe {
    /// Performs the handshake. Takes the program's pipes.
    pub(crate) async fn open(program: &mut Program, tool: &str) -> Outcome<Self> {
        let (to, from) = program.pipes()?;
        let to = ChildStdin::from_std(to)?;
        let from = BufReader::new(ChildStdout::from_std(from)?);
        let mut own =
            Self { to, from, line: String::new(), call: message::call(tool, false), calls: 0 };
        own.write(format!("{INITIALIZE}\n")).await?;
        if !own.read().await?.contains("\"serverInfo\"") {
            return Err(format!("no handshake: {} {}", own.line, program.said()).into());
        }
        own.write(format!("{INITIALIZED}\n")).await?;
        Ok(own)
    }

    /// One call.
    pub(crate) async fn once(&mut self) -> Outcome {
        let mut waiting = HashMap::new();
        self.send(&mut waiting).await?;
        let call = self.calls;
        loop {
            let line = self.read().await?;
            match message::id(line) {
                Some(id) if message::is_answer(line, id) && id == call => return Ok(()),
                Some(_) => return Err(line.to_owned().into()),
                None => {}
            }
        }
    }

    /// Runs concurrent calls, each followed by the next as soon as it is answered.
    pub(crate) async fn round(&mut self, callers: usize) -> Outcome<Round> {
        let window = Window::now();
        let mut times = Vec::new();
        let mut waiting = HashMap::new();
        for _ in 0..callers {
            self.send(&mut waiting).await?;
        }
        while !waiting.is_empty() {
            let line = self.read().await?;
            let Some(id) = message::id(line) else { continue };
            if !message::is_answer(line, id) {
                return Err(line.to_owned().into());
            }
            let sent = waiting.remove(&id).ok_or("an answer to no call")?;
            window.note(sent, &mut times);
            if window.is_open() {
                self.send(&mut waiting).await?;
            }
        }
        Ok(Round::of(&times))
    }

    async fn send(&mut self, waiting: &mut HashMap<u64, Instant>) -> Outcome {
        self.calls += 1;
        let (before, after) = &self.call;
        let line = format!("{before}{}{after}\n", self.calls);
        waiting.insert(self.calls, Instant::now());
        self.write(line).await
    }

    async fn write(&mut self, line: String) -> Outcome {
        self.to.write_all(line.as_bytes()).await?;
        Ok(())
    }

    async fn read(&mut self) -> Outcome<&str> {
        self.line.clear();
        if self.from.read_line(&mut self.line).await? == 0 {
            return Err("the program has ended".into());
        }
        Ok(&self.line)
    }
}

/// A program with pipes for standard input and output.
pub(crate) fn piped(mut command: Command) -> Command {
    command.stdout(std::process::Stdio::piped());
    command
}
