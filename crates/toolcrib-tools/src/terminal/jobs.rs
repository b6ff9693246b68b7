//! Programs in the background, each of one conversation.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{io::AsyncReadExt as _, sync::watch, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolcrib_capabilities::process::{Process, ProcessEnd, ProcessLimits};
use toolcrib_core::{Identity, ToolContext, ToolError};

use super::{
    JOB,
    scan::{FailureLine, OutputScan},
    shown::{failed, numbered},
    table::shown_time,
};
use crate::{arguments::refused, command::limits::ended_by};

/// The bytes of a job's output that are kept: the last ones.
const LOG_BYTES: usize = 1 << 20;

/// The bytes before a requested part that are read with it, for the redaction of secrets.
const BEFORE_BYTES: usize = 4096;

/// The ended jobs of a conversation that are remembered.
const MOST_ENDED: usize = 16;

/// The most running jobs of all conversations.
const MOST_OF_ALL: usize = 256;

/// The characters of a command line in a list.
const SHOWN_CHARS: usize = 200;

/// The size of one read of an output.
const PIECE: usize = 16 * 1024;

/// The time that a job has to end by itself once its input is closed.
const GRACE: Duration = Duration::from_secs(1);

/// The jobs of a toolset. Cheap to clone; clones share them. The jobs end when the last clone is dropped.
#[derive(Clone)]
pub struct Jobs(Arc<Shared>);

struct Shared {
    most: usize,
    time: Duration,
    owners: Mutex<HashMap<Arc<Identity>, Owner>>,
    /// Fires when the toolset is dropped.
    end: CancellationToken,
    _end_with_this: DropGuard,
}

#[derive(Default)]
struct Owner {
    jobs: Vec<Arc<Job>>,
    begun: usize,
    /// Fires when the conversation has ended.
    session: CancellationToken,
}

/// One job.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) command: String,
    began: Instant,
    stop: CancellationToken,
    log: Mutex<Log>,
    state: watch::Sender<State>,
}

/// The state of a job; `version` counts changes of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) ended: Option<String>,
    version: u64,
}

/// The end of an output.
struct Log {
    bytes: VecDeque<u8>,
    /// The bytes before them.
    gone: u64,
    scan: OutputScan,
}

impl Default for Log {
    fn default() -> Self {
        Self { bytes: VecDeque::new(), gone: 0, scan: OutputScan::new(0) }
    }
}

/// A part of an output.
pub(super) struct Output {
    pub(super) text: String,
    /// Text before it, by which a secret at its beginning is recognized. Not for a model.
    pub(super) before: String,
    /// The bytes before it that were requested and are gone.
    pub(super) gone: u64,
    /// The lines of these that report failures, by number, and how many more do.
    pub(super) failures: Vec<(usize, String)>,
    pub(super) more_failures: usize,
    /// The position after it.
    pub(super) end: u64,
}

impl Jobs {
    /// The default of the most running jobs of a conversation.
    pub const DEFAULT_MOST: usize = 8;

    /// The default of the longest time of a job.
    pub const DEFAULT_TIME: Duration = Duration::from_secs(60 * 60);

    /// No jobs yet; at most this number run at a time in a conversation, each for at most this time.
    pub fn new(most: usize, time: Duration) -> Self {
        let end = CancellationToken::new();
        let _end_with_this = end.clone().drop_guard();
        Self(Arc::new(Shared { most, time, owners: Mutex::default(), end, _end_with_this }))
    }

    /// A place for a job of the call's conversation, before its program is started.
    pub(super) fn reserve(&self, command: &str, cx: &ToolContext) -> Result<Arc<Job>, ToolError> {
        let Shared { most, owners, end, .. } = &*self.0;
        let mut owners = owners.lock();
        owners.retain(|_, owner| !owner.session.is_cancelled());
        let running = |owner: &Owner| owner.jobs.iter().filter(|job| job.is_running()).count();
        let of_all: usize = owners.values().map(running).sum();
        let owner = owners.entry(Arc::new(cx.identity().clone())).or_default();
        if running(owner) >= *most {
            return Err(ToolError::failed(format!(
                "{most} jobs run already, the limit of a conversation; stop one, or wait for one"
            )));
        }
        if of_all >= MOST_OF_ALL {
            return Err(ToolError::failed("too many jobs run on this machine; try again later"));
        }
        if let Some(session) = cx.session_end() {
            owner.session = session.clone();
        }
        owner.begun += 1;
        let job = Arc::new(Job {
            name: format!("job-{}", owner.begun),
            command: command.chars().take(SHOWN_CHARS).collect(),
            began: Instant::now(),
            stop: end.child_token(),
            log: Mutex::default(),
            state: watch::Sender::new(State { ended: None, version: 0 }),
        });
        owner.jobs.push(Arc::clone(&job));
        let ended = owner.jobs.iter().filter(|job| !job.is_running()).count();
        let mut surplus = ended.saturating_sub(MOST_ENDED);
        owner.jobs.retain(|job| {
            let is_surplus = surplus > 0 && !job.is_running();
            surplus -= usize::from(is_surplus);
            !is_surplus
        });
        Ok(job)
    }

    /// Attends a started job until its end.
    pub(super) fn attend(
        &self,
        job: Arc<Job>,
        process: Process,
        limits: ProcessLimits,
        cx: &ToolContext,
    ) {
        let time = self.0.time;
        let session = cx.session_end().cloned().unwrap_or_default();
        let running = cx.running_work().clone();
        tokio::spawn(async move {
            let ended = job.run(process, limits, time, &session).await;
            drop(running);
            job.end(ended);
        });
    }

    /// The jobs of the call's conversation, in the order of their starts.
    pub(super) fn of(&self, cx: &ToolContext) -> Vec<Arc<Job>> {
        let owners = self.0.owners.lock();
        owners.get(cx.identity()).map(|owner| owner.jobs.clone()).unwrap_or_default()
    }

    /// A job of the call's conversation. Jobs of others do not exist for it.
    pub(super) fn get(&self, name: &str, cx: &ToolContext) -> Result<Arc<Job>, ToolError> {
        let jobs = self.of(cx);
        let found = jobs.iter().find(|job| job.name == name).cloned();
        found.ok_or_else(|| {
            let names: Vec<_> = jobs.iter().map(|job| &*job.name).collect();
            refused(
                JOB,
                &match names.as_slice() {
                    [] => "is not a job: none was started in this conversation".to_owned(),
                    names => format!("is not a job; the jobs are {}", names.join(", ")),
                },
            )
        })
    }
}

impl Output {
    /// Leaves an end that may be the beginning of a secret to the next part: its rest may follow.
    pub(super) fn without_begun_secret(mut self, cx: &ToolContext) -> Self {
        let known = [&*self.before, &*self.text].concat();
        let (whole, start) = (cx.redacted(&known), cx.redacted_start(&known));
        // Lossy characters differ in length from the bytes.
        let is_as_written = |held: &&str| known.ends_with(held) && !held.contains('\u{fffd}');
        if let Some(held) = whole.strip_prefix(&*start).filter(is_as_written) {
            let shown = self.text.len().saturating_sub(held.len());
            self.end -= (self.text.len() - shown) as u64;
            self.text.truncate(shown);
        }
        self
    }
}

/// Whether a byte continues a character of UTF-8.
fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The number of bytes at the end that are the beginning of a character.
fn begun_character<'a>(
    bytes: impl IntoIterator<IntoIter: DoubleEndedIterator<Item = &'a u8>>,
) -> usize {
    let mut last = bytes.into_iter().rev().take(3).zip(1..);
    let (begins, length) = last.find(|(byte, _)| !continues(**byte)).unwrap_or((&0, 0));
    let whole = match begins {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0.. => 4,
        _ => 0,
    };
    if length < whole { length } else { 0 }
}

toolcrib_core::__internal::debug_fields!(Jobs, jobs, most = jobs.0.most, ..);

impl Job {
    async fn run(
        &self,
        mut process: Process,
        limits: ProcessLimits,
        time: Duration,
        session: &CancellationToken,
    ) -> String {
        drop(process.take_stdin());
        let mut stdout = process.take_stdout();
        let mut piece = vec![0; PIECE];
        let mut over = std::pin::pin!(sleep(time));
        let why = loop {
            let Some(pipe) = &mut stdout else { break None };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break Some("stopped".to_owned()),
                () = session.cancelled() => break Some("stopped with its session".to_owned()),
                () = &mut over => {
                    break Some(format!("stopped after {}, the limit of a job", shown_time(time)));
                }
                read = pipe.read(&mut piece) => match read {
                    Ok(count) if count > 0 => self.push(piece.get(..count).unwrap_or_default()),
                    // The program and all that it started have ended, or closed their output.
                    _ => stdout = None,
                }
            }
        };
        if let Some(why) = why {
            let _ = process.close(Duration::ZERO).await;
            self.push_moved(&process);
            if let Some(mut pipe) = stdout {
                self.drain(&mut pipe, &mut piece).await;
            }
            return why;
        }
        let ended = tokio::select! {
            biased;
            () = self.stop.cancelled() => return self.close(process, "stopped").await,
            () = session.cancelled() => return self.close(process, "stopped with its session").await,
            () = &mut over => return self.close(process, "stopped at the limit of a job").await,
            ended = process.wait() => ended,
        };
        self.push_moved(&process);
        match ended {
            Ok(ProcessEnd::Code(code)) => format!("ended with exit code {code}"),
            Ok(end) => format!("was ended by {}", ended_by(end, limits)),
            Err(_) => "was lost".to_owned(),
        }
    }

    async fn close(&self, mut process: Process, why: &str) -> String {
        let _ = process.close(GRACE).await;
        self.push_moved(&process);
        why.to_owned()
    }

    /// Adds the report about moved files to the output.
    fn push_moved(&self, process: &Process) {
        for moved in process.moved() {
            self.push(format!("\n{moved}\n").as_bytes());
        }
    }

    /// The output that is in the pipe after the end.
    async fn drain(&self, pipe: &mut (impl tokio::io::AsyncRead + Unpin), piece: &mut [u8]) {
        let reads = async {
            while let Ok(count @ 1..) = pipe.read(piece).await {
                self.push(piece.get(..count).unwrap_or_default());
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(100), reads).await;
    }

    fn push(&self, bytes: &[u8]) {
        {
            let mut log = self.log.lock();
            log.scan.push(bytes);
            log.bytes.extend(bytes);
            let surplus = log.bytes.len().saturating_sub(LOG_BYTES);
            log.bytes.drain(..surplus);
            log.gone += surplus as u64;
        }
        self.state.send_modify(|state| state.version += 1);
    }

    /// Records the end.
    pub(super) fn end(&self, ended: String) {
        self.state.send_modify(|state| state.ended = Some(ended));
    }

    pub(super) fn is_running(&self) -> bool {
        self.state.borrow().ended.is_none()
    }

    /// Requests its end.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Follows its state.
    pub(super) fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Whether its output, as far as it is kept, contains a text, without secrets: the time of a wait
    /// would reveal how one begins.
    pub(super) fn has_written(&self, text: &str, cx: &ToolContext) -> bool {
        let written = {
            let mut log = self.log.lock();
            let written = String::from_utf8_lossy(log.bytes.make_contiguous());
            written.contains(text).then(|| written.into_owned())
        };
        written.is_some_and(|written| cx.redacted(&written).contains(text))
    }

    /// Its output from a position on, as far as it is kept. It begins at a whole character; while the
    /// job runs, it also ends at one.
    pub(super) fn output(&self, after: u64) -> Output {
        let is_running = self.is_running();
        let log = self.log.lock();
        let to = match is_running {
            true => log.bytes.len() - begun_character(&log.bytes),
            false => log.bytes.len(),
        };
        let end = log.gone + to as u64;
        // The rest of a line whose beginning is gone may be the end of a secret.
        let cut = match log.gone {
            0 => 0,
            _ => log
                .bytes
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(log.bytes.len(), |at| at + 1),
        };
        let kept = log.gone + cut as u64;
        let skipped = usize::try_from(after.max(kept) - log.gone).unwrap_or(usize::MAX);
        let skipped = match log.bytes.get(skipped).is_some_and(|byte| continues(*byte)) {
            true => skipped - begun_character(log.bytes.range(cut..skipped)),
            false => skipped,
        };
        let text = |from: usize, to: usize| {
            let bytes = log.bytes.iter().skip(from).take(to.saturating_sub(from));
            String::from_utf8_lossy(&bytes.copied().collect::<Vec<u8>>()).into_owned()
        };
        let before = text(skipped.saturating_sub(BEFORE_BYTES).max(cut), skipped);
        let text = text(skipped, to);
        let gone = kept.saturating_sub(after);
        let mut output = Output { text, before, gone, failures: Vec::new(), more_failures: 0, end };
        if gone > 0 {
            let known = log.scan.failures().iter().filter(|line| line.end as u64 <= kept);
            let (earlier, missed): (Vec<_>, Vec<_>) =
                known.partition(|line| line.end as u64 <= after);
            let shown = earlier.len() + missed.len() + failed(&numbered(1, &output.text));
            output.more_failures = log.scan.failed().saturating_sub(shown);
            let missed = missed.into_iter();
            let text =
                |line: &FailureLine| (line.number, String::from_utf8_lossy(&line.bytes).into());
            output.failures = missed.map(text).collect();
        }
        output
    }

    /// One line about it.
    pub(super) fn about(&self) -> String {
        match &self.state.borrow().ended {
            Some(ended) => format!("{} {ended}", self.name),
            None => format!("{} runs for {}", self.name, shown_time(self.began.elapsed())),
        }
    }
}
