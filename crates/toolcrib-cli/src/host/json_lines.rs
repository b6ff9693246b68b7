//! JSON Lines files of `--events`, of `serve --access-log` and of the audit log.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, Read as _, Seek as _, SeekFrom, Write},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use parking_lot::Mutex;
use rustix::fs::OFlags;
use serde::Serialize;
use serde_json::json;
use toolcrib_capabilities::__internal::no_follow;
use toolcrib_core::Event;
use toolcrib_gateway::{AccessEntry, LogHealth};
use toolcrib_project::Project;
use uuid::Uuid;

use crate::{output, problem::Problem};

/// The extensions that a file needs to be written inside the project's folders.
const OUR_OWN: [&str; 3] = ["jsonl", "ndjson", "log"];

/// The room that a required log must have at the start.
const ROOM: u64 = 64 * 1024;

/// The names of the logs in metrics.
const EVENTS: &str = "events";
const ACCESS: &str = "access";
const AUDIT: &str = "audit";

/// The writer of events, which writes inline and thus loses no event. An existing file is replaced;
/// `-` is standard error.
pub(crate) fn events(
    path: &Path,
    project: &Project,
) -> Result<(impl Fn(&Event) + Send + Sync + use<>, LogHealth), Problem> {
    let to_stderr = path == Path::new("-");
    let lines = if to_stderr {
        Lines::new(EVENTS, "standard error".to_owned(), Box::new(io::stderr()))
    } else {
        let mut replaced = OpenOptions::new();
        replaced.write(true).create(true).truncate(true).mode(0o600);
        of_events(path).opened(project, &replaced)?
    };
    let health = lines.health.clone();
    Ok((move |event: &Event| lines.write(event, to_stderr), health))
}

/// Whether [`events`] can be written there. Replaces nothing yet.
pub(crate) fn check_events(path: &Path, project: &Project) -> Result<(), Problem> {
    if path == Path::new("-") {
        return Ok(());
    }
    let mut added_to = OpenOptions::new();
    added_to.append(true).create(true).mode(0o600);
    of_events(path).opened(project, &added_to).map(drop)
}

fn of_events(path: &Path) -> LogFile<'_> {
    LogFile { name: EVENTS, flag: "--events", what: "the events file", path }
}

/// The writer of the access log, one line for each request; `-` is standard error, as text, which has
/// no health: a closed standard error is not a failure.
pub(crate) fn access_log(
    path: &Path,
    project: &Project,
) -> Result<(impl Fn(&AccessEntry) + Send + Sync + use<>, Option<LogHealth>), Problem> {
    let mut added_to = OpenOptions::new();
    added_to.append(true).create(true).mode(0o600);
    let file = LogFile { name: ACCESS, flag: "--access-log", what: "the access log", path };
    let lines = (path != Path::new("-")).then(|| file.opened(project, &added_to)).transpose()?;
    let health = lines.as_ref().map(|lines| lines.health.clone());
    let write = move |entry: &AccessEntry| match &lines {
        Some(lines) => lines.write(entry, false),
        None => output::request(entry),
    };
    Ok((write, health))
}

/// The audit log of `[serve]`, one line for each call.
#[derive(Clone)]
pub(crate) struct AuditLog(Arc<AuditLines>);

struct AuditLines {
    lines: Lines,
    /// This process, among the replicas of a gateway and its own restarts.
    replica: String,
    /// The number of its last line.
    sequence: AtomicU64,
}

impl AuditLog {
    /// `None` if the project has none.
    ///
    /// # Errors
    /// If the file cannot be used; where calls are refused without it, also if it cannot grow.
    pub(crate) fn open(project: &Project) -> Result<Option<Self>, Problem> {
        let settings = project.serving();
        let Some(path) = &settings.audit else { return Ok(None) };
        // A project must not append to any file of its user.
        if !is_log(path) {
            return Err(Problem::invalid(format!(
                "`[serve] audit`: {} must be named *.jsonl, *.ndjson or *.log",
                path.display()
            )));
        }
        let mut added_to = OpenOptions::new();
        added_to.append(true).create(true).mode(0o600);
        added_to.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = LogFile { name: AUDIT, flag: "[serve] audit", what: "the audit log", path };
        if !settings.audit_is_required {
            return Ok(Some(Self::of(file.opened_later(project, &added_to)?)));
        }
        let lines = file.opened(project, &added_to)?;
        has_room(path).map_err(|error| {
            Problem::usage(format!(
                "`[serve] audit`: {} cannot be written: {error}; without it no call is made, unless \
                 `audit_on_error = \"continue\"`",
                path.display()
            ))
        })?;
        Ok(Some(Self::of(lines)))
    }

    fn of(lines: Lines) -> Self {
        let replica = Uuid::new_v4().simple().to_string().split_off(20);
        Self(Arc::new(AuditLines { lines, replica, sequence: AtomicU64::new(0) }))
    }

    pub(crate) fn health(&self) -> LogHealth {
        self.0.lines.health.clone()
    }

    /// Tries to write it again; returns whether it can be written.
    pub(crate) fn retry(&self) -> bool {
        self.0.lines.retry()
    }

    /// Writes the line of a call.
    pub(crate) fn write(&self, entry: &AccessEntry) {
        let AccessEntry { tenant, principal, session, turn_id, peer, tool, origin, .. } = entry;
        let code = match (entry.code, &entry.error) {
            (Some(code), _) => code.as_str(),
            (None, Some(_)) => "failed",
            (None, None) => "ok",
        };
        let line = json!({
            "time": humantime::format_rfc3339_millis(entry.time).to_string(),
            "tenant": tenant,
            "principal": principal,
            "peer": peer,
            "session": session,
            "turn_id": turn_id,
            "tool": tool,
            "origin": origin,
            "arguments": entry.arguments,
            "code": code,
            "duration_ms": entry.duration_ms,
            "replica": self.0.replica,
            "sequence": self.0.sequence.fetch_add(1, Ordering::Relaxed) + 1,
        });
        self.0.lines.write(&line, false);
    }
}

/// The file of a log.
struct LogFile<'a> {
    /// The name in metrics.
    name: &'static str,
    /// The option or key that names the file.
    flag: &'a str,
    what: &'a str,
    path: &'a Path,
}

impl LogFile<'_> {
    fn opened(&self, project: &Project, options: &OpenOptions) -> Result<Lines, Problem> {
        self.check(project)?;
        let file: File = options.open(self.path).map_err(|error| {
            let (flag, shown) = (self.flag, self.path.display());
            Problem::usage(format!("`{flag}`: {shown} cannot be written: {error}"))
        })?;
        tighten(&file);
        Ok(self.lines(Box::new(file)))
    }

    /// A file that is opened with its first line, and again if that failed.
    fn opened_later(&self, project: &Project, options: &OpenOptions) -> Result<Lines, Problem> {
        self.check(project)?;
        let (path, options) = (self.path.to_owned(), options.clone());
        let mut file = OpenedLater { path, options, file: None };
        let opened = file.open().map(drop);
        let lines = self.lines(Box::new(file));
        if let Err(error) = opened {
            output::log_failed(&lines.place, &error);
        }
        Ok(lines)
    }

    fn check(&self, project: &Project) -> Result<(), Problem> {
        if is_of_the_project(self.path, project) {
            return Err(Problem::usage(format!(
                "`{}`: {} is in a folder of the project's files, and may be one of them; name a file \
                 that does not exist yet, or one named *.jsonl, *.ndjson or *.log",
                self.flag,
                self.path.display()
            )));
        }
        Ok(())
    }

    fn lines(&self, file: Box<dyn Write + Send>) -> Lines {
        let lines = Lines::new(self.name, format!("{} {}", self.what, self.path.display()), file);
        lines.out.lock().is_cut = ends_in_a_cut_line(self.path);
        lines
    }
}

/// A destination for lines.
///
/// A full disk does not end the work. The failure is printed at once, and each further line is tried:
/// when one can be written again, it ends the incomplete line, says how many lines are missing, and
/// goes on.
struct Lines {
    place: String,
    health: LogHealth,
    out: Mutex<Output>,
}

struct Output {
    file: Box<dyn Write + Send>,
    /// Whether the destination ends in an incomplete line.
    is_cut: bool,
    gap: Option<Gap>,
}

/// The lines that could not be written.
struct Gap {
    lines: u64,
    since: SystemTime,
}

impl Lines {
    fn new(name: &'static str, place: String, file: Box<dyn Write + Send>) -> Self {
        let out = Mutex::new(Output { file, is_cut: false, gap: None });
        Self { place, health: LogHealth::new(name), out }
    }

    /// Writes a line, or counts it as lost.
    fn write(&self, line: &impl Serialize, may_be_closed: bool) {
        let line = match serde_json::to_string(line) {
            Ok(line) => output::safe_json(line),
            Err(error) => return self.lost(&mut self.out.lock(), error.into(), may_be_closed),
        };
        let mut out = self.out.lock();
        match out.end_gap().and_then(|had_gap| out.line(&line).map(|()| had_gap)) {
            Ok(None) => {}
            Ok(Some(gap)) => self.recovered(&gap),
            Err(error) => self.lost(&mut out, error, may_be_closed),
        }
    }

    /// Tries to end a gap; returns whether there is none any more.
    fn retry(&self) -> bool {
        let mut out = self.out.lock();
        match out.end_gap() {
            Ok(None) => true,
            Ok(Some(gap)) => {
                self.recovered(&gap);
                true
            }
            Err(_) => false,
        }
    }

    fn lost(&self, out: &mut Output, error: io::Error, may_be_closed: bool) {
        // A closed standard error is not a failure.
        if may_be_closed && error.kind() == io::ErrorKind::BrokenPipe {
            return;
        }
        match &mut out.gap {
            Some(gap) => gap.lines += 1,
            gap => {
                *gap = Some(Gap { lines: 1, since: SystemTime::now() });
                output::log_failed(&self.place, &error);
                output::lost(self.place.clone(), error);
            }
        }
        self.health.lost();
    }

    fn recovered(&self, gap: &Gap) {
        self.health.recovered();
        output::log_recovered(&self.place, gap.lines);
    }
}

impl Output {
    /// Ends an incomplete line, and says how many lines are missing. Returns the gap, if there was one.
    fn end_gap(&mut self) -> io::Result<Option<Gap>> {
        let Some(gap) = &self.gap else { return Ok(None) };
        let time = |time| humantime::format_rfc3339_millis(time).to_string();
        let line = json!({
            "time": time(SystemTime::now()),
            "lost_lines": gap.lines,
            "since": time(gap.since),
        });
        self.line(&line.to_string())?;
        Ok(self.gap.take())
    }

    /// Writes a line, after the end of an incomplete one.
    fn line(&mut self, line: &str) -> io::Result<()> {
        let mut text = String::with_capacity(line.len() + 2);
        if self.is_cut {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    let done = rest.get(..written).unwrap_or_default();
                    self.is_cut = done.last() != Some(&b'\n');
                    rest = rest.get(written..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A file that could not be opened at the start.
struct OpenedLater {
    path: PathBuf,
    options: OpenOptions,
    file: Option<File>,
}

impl OpenedLater {
    fn open(&mut self) -> io::Result<&mut File> {
        Ok(match &mut self.file {
            Some(file) => file,
            none => {
                let file = self.options.open(&self.path)?;
                tighten(&file);
                none.insert(file)
            }
        })
    }
}

impl Write for OpenedLater {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Whether a file ends in a line without an end, as after a full disk or a loss of power.
fn ends_in_a_cut_line(path: &Path) -> bool {
    let last = || -> io::Result<Option<u8>> {
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)?;
        let found = file.metadata()?;
        if !found.is_file() || found.len() == 0 {
            return Ok(None);
        }
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last.first().copied())
    };
    last().is_ok_and(|last| last.is_some_and(|last| last != b'\n'))
}

/// Whether a file can grow: by the limit of this process, and by reserving the room, which writes
/// nothing.
fn has_room(path: &Path) -> io::Result<()> {
    let file = no_follow().append(true).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(());
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if limit.is_some_and(|limit| limit < found.len().saturating_add(ROOM)) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::{fs::FallocateFlags, io::Errno};

        let reserved = rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, found.len(), ROOM);
        // Not every file system can reserve room.
        if let Err(full @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::ROFS | Errno::IO)) =
            reserved
        {
            return Err(full.into());
        }
    }
    Ok(())
}

/// Removes the access rights of other users from an existing file, which will contain arguments and
/// results. Anything but a regular file, such as a terminal, is unchanged.
fn tighten(file: &File) {
    let Ok(found) = file.metadata() else { return };
    let mode = found.permissions().mode();
    if found.is_file() && mode & 0o077 != 0 {
        // A file of another user is unchanged too.
        let _ = file.set_permissions(Permissions::from_mode(mode & 0o700));
    }
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| OUR_OWN.iter().any(|ours| extension == *ours))
}

/// Whether the file exists and may be one that the project reads or keeps. A symlink in its folders
/// counts, whatever its target.
fn is_of_the_project(path: &Path, project: &Project) -> bool {
    let within_project = |path: &Path| {
        let within = |dir: &Path| dir.canonicalize().is_ok_and(|dir| path.starts_with(dir));
        within(project.root()) || within(project.state())
    };
    let folder = std::path::absolute(path).ok();
    let folder = folder.and_then(|path| path.parent()?.canonicalize().ok());
    if path.is_symlink() && folder.is_some_and(|folder| within_project(&folder)) {
        return true;
    }
    // The real path: a symlink may lead into the project.
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    path.is_file() && !is_log(&path) && within_project(&path)
}
