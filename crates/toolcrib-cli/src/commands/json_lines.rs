//! JSON Lines files of `--events` and of `serve --access-log`.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use parking_lot::Mutex;

use rustix::fs::OFlags;
use serde::Serialize;
use serde_json::json;
use toolcrib_core::Event;
use toolcrib_gateway::AccessEntry;
use toolcrib_project::Project;

use super::Problem;
use crate::output;

/// The extensions that a file needs to be written inside the project's folders.
const OUR_OWN: [&str; 3] = ["jsonl", "ndjson", "log"];

/// The writer of events, which writes inline and thus loses no event. An existing file is replaced;
/// `-` is standard error.
pub(super) fn events(
    path: &Path,
    project: &Project,
) -> Result<impl Fn(&Event) + Send + Sync + use<>, Problem> {
    let to_stderr = path == Path::new("-");
    let lines = if to_stderr {
        Lines::new("standard error".to_owned(), Box::new(io::stderr()))
    } else {
        let mut replaced = OpenOptions::new();
        replaced.write(true).create(true).truncate(true).mode(0o600);
        Lines::file("--events", "the events file", path, project, &replaced)?
    };
    Ok(move |event: &Event| lines.write(event, to_stderr))
}

/// Whether [`events`] can be written there. Replaces nothing yet.
pub(super) fn check_events(path: &Path, project: &Project) -> Result<(), Problem> {
    if path == Path::new("-") {
        return Ok(());
    }
    let mut added_to = OpenOptions::new();
    added_to.append(true).create(true).mode(0o600);
    Lines::file("--events", "the events file", path, project, &added_to).map(drop)
}

/// The writer of the access log, one line for each request; `-` is standard error, as text.
pub(super) fn access_log(
    path: &Path,
    project: &Project,
) -> Result<impl Fn(&AccessEntry) + Send + Sync + use<>, Problem> {
    let mut added_to = OpenOptions::new();
    added_to.append(true).create(true).mode(0o600);
    let lines = (path != Path::new("-"))
        .then(|| Lines::file("--access-log", "the access log", path, project, &added_to))
        .transpose()?;
    Ok(move |entry: &AccessEntry| match &lines {
        Some(lines) => lines.write(entry, false),
        None => output::request(entry),
    })
}

/// The writer of the audit log of `[serve]`, one line for each call; `None` without one. Each line is
/// on the disk before the next call is answered.
pub(super) fn audit_log(
    project: &Project,
) -> Result<Option<impl Fn(&AccessEntry) + Send + Sync + use<>>, Problem> {
    let Some(path) = &project.serving().audit else { return Ok(None) };
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
    let lines = Lines::file("[serve] audit", "the audit log", path, project, &added_to)?;
    Ok(Some(move |entry: &AccessEntry| {
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
        });
        lines.write(&line, false);
    }))
}

/// A destination for lines.
///
/// A full disk does not end the work: nothing is written after a possibly incomplete line, and the
/// error is reported at the end of the program.
struct Lines {
    place: String,
    out: Mutex<Option<Box<dyn Write + Send>>>,
}

impl Lines {
    fn new(place: String, out: Box<dyn Write + Send>) -> Self {
        Self { place, out: Mutex::new(Some(out)) }
    }

    fn file(
        flag: &str,
        what: &str,
        path: &Path,
        project: &Project,
        options: &OpenOptions,
    ) -> Result<Self, Problem> {
        let shown = path.display();
        if is_of_the_project(path, project) {
            return Err(Problem::usage(format!(
                "`{flag}`: {shown} is in a folder of the project's files, and may be one of them; \
                 name a file that does not exist yet, or one named *.jsonl, *.ndjson or *.log"
            )));
        }
        let file: File = options.open(path).map_err(|error| {
            Problem::usage(format!("`{flag}`: {shown} cannot be written: {error}"))
        })?;
        tighten(&file);
        Ok(Self::new(format!("{what} {shown}"), Box::new(file)))
    }

    fn write(&self, line: &impl Serialize, may_be_closed: bool) {
        let mut out = self.out.lock();
        let Some(file) = out.as_mut() else {
            return;
        };
        if let Err(error) = write_line(file, line) {
            *out = None;
            // A closed standard error is not a failure.
            if !(may_be_closed && error.kind() == io::ErrorKind::BrokenPipe) {
                output::lost(self.place.clone(), error);
            }
        }
    }
}

fn write_line(file: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    let mut line = output::safe_json(serde_json::to_string(line)?);
    line.push('\n');
    file.write_all(line.as_bytes())
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
