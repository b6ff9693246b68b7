//! `toolcrib init`: a small project that runs at once.

use toolcrib_core::CancellationToken;
use toolcrib_project::{InitError, TrustStore};

use super::{Problem, trust::review};
use crate::{
    args::{Global, InitArgs},
    exit::{self, Exit},
    output::{self, InitJson},
};

pub(super) fn init(
    global: &Global,
    args: &InitArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = global.project.as_ref().or(args.project.as_ref());
    let state = global.state.as_ref().or(args.state.as_ref());
    let import = global.imports.first().or(args.imports.first());
    for (given, flag) in [(project, "--project"), (state, "--state"), (import, "--import")] {
        if given.is_some() {
            return Err(Problem::usage(format!(
                "`init` does not accept `{flag}`; name the folder to create: `toolcrib init DIR`"
            )));
        }
    }
    let written = toolcrib_project::init(&args.dir).map_err(|error| match error {
        InitError::AlreadyThere { .. }
        | InitError::NotAFolder { .. }
        | InitError::Foreign { .. } => Problem::usage(error.to_string()),
        error => Problem::failed("unwritable", error.to_string()),
    })?;
    // The new project runs without trust; this is for later additions of the user.
    if let Ok(review) = review(&args.dir, cancellation) {
        let _ = TrustStore::of_user().trust(&review);
    }
    if global.json {
        output::json(&InitJson::new(&args.dir, &written));
    } else {
        output::begun(&args.dir, &written, global.quiet);
    }
    Ok(exit::FINE)
}
