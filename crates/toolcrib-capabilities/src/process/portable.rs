//! The part of a build without Unix system calls: no program is started, since nothing would end its
//! child processes with it, nor limit them.

use std::process::ExitStatus;

use super::{ExceededLimit, ProcessError, ProcessSpec, UnsupportedError, life::StartedProcess};

fn unsupported() -> UnsupportedError {
    UnsupportedError::new(
        "this build is portable and starts no programs; build without `--cfg portable`",
    )
}

pub(super) async fn start(spec: ProcessSpec, _: bool) -> Result<StartedProcess, ProcessError> {
    Err(ProcessError::Unsupported { program: spec.program, source: unsupported() })
}

pub(super) fn namespaces() -> Result<(), UnsupportedError> {
    Err(unsupported())
}

pub(super) fn process_limit() -> Result<(), UnsupportedError> {
    Err(unsupported())
}

/// The processes of a program, of which there are none.
#[derive(Debug)]
pub(super) enum Tree {}

impl Tree {
    pub(super) fn terminate(&self) {
        match *self {}
    }

    pub(super) fn kill(&mut self) {
        match *self {}
    }

    pub(super) fn ended(&mut self) -> Option<ExceededLimit> {
        match *self {}
    }
}

pub(super) fn number(_: ExitStatus) -> i32 {
    0
}

pub(super) fn limit(_: i32) -> Option<ExceededLimit> {
    None
}

pub(super) fn may_lack_memory(_: i32) -> bool {
    false
}

pub(super) fn name(_: i32) -> Option<&'static str> {
    None
}
