//! The file of `run --events`.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use toolcrib_core::Event;
use toolcrib_project::Project;

use super::Problem;
use crate::output;

/// What a file must be called to be replaced where the project keeps files of its own.
const REPLACEABLE: [&str; 3] = ["jsonl", "ndjson", "log"];

/// Writes each event as one line, inline, so that none is lost, whatever happens next.
///
/// A full disk does not end the run: nothing more is written behind a line that may be half
/// there, and the program's end tells.
pub(super) fn writer(
    path: &Path,
    project: &Project,
) -> Result<impl Fn(&Event) + Send + Sync + 'static, Problem> {
    let to_stderr = path == Path::new("-");
    let out: Box<dyn Write + Send> =
        if to_stderr { Box::new(io::stderr()) } else { Box::new(create(path, project)?) };
    let place = if to_stderr {
        "standard error".to_owned()
    } else {
        format!("the events file {}", path.display())
    };
    let out = Mutex::new(Some(out));
    Ok(move |event: &Event| {
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = out.as_mut() else {
            return;
        };
        if let Err(error) = write_line(file, event) {
            *out = None;
            // Whoever closed standard error wants no more.
            if !(to_stderr && error.kind() == io::ErrorKind::BrokenPipe) {
                output::lost(place.clone(), error);
            }
        }
    })
}

fn write_line(file: &mut impl Write, event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    file.write_all(&line)
}

fn create(path: &Path, project: &Project) -> Result<File, Problem> {
    if is_of_the_project(path, project) {
        return Err(Problem::usage(format!(
            "`--events`: {} lies where the project keeps its files and would be replaced; name a \
             file that is not there yet, or one called *.jsonl, *.ndjson or *.log",
            path.display()
        )));
    }
    File::create(path).map_err(|error| {
        Problem::usage(format!("`--events`: {} cannot be written: {error}", path.display()))
    })
}

/// Whether the file is there and may be one that the project reads or keeps.
fn is_of_the_project(path: &Path, project: &Project) -> bool {
    // As it really lies: a link may lead into the project.
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    let replaceable =
        path.extension().is_some_and(|extension| REPLACEABLE.iter().any(|r| extension == *r));
    let within = |dir: &Path| dir.canonicalize().is_ok_and(|dir| path.starts_with(dir));
    path.is_file() && !replaceable && (within(project.root()) || within(project.state()))
}
