//! `toolcrib man` and `schema`: texts for manuals and editors.

use std::{fs, path::Path};

use clap_mangen::Man;
use toolcrib_project::PROJECT_FILE_SCHEMA;

use crate::{
    args::{Cli, GlobalArgs},
    exit::{self, Exit},
    output,
    problem::Problem,
};

pub(super) fn man(global: &GlobalArgs, dir: Option<&Path>) -> Result<Exit, Problem> {
    refuse_json(global, "man")?;
    let Some(dir) = dir else {
        let mut page = Vec::new();
        Man::new(Cli::line())
            .render(&mut page)
            .map_err(|error| Problem::failed("internal", error.to_string()))?;
        output::raw(&page);
        return Ok(exit::FINE);
    };
    fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::line(), dir)).map_err(
        |error| {
            let message =
                format!("the manual pages cannot be written to {}: {error}", dir.display());
            Problem::failed("unwritable", message)
        },
    )?;
    Ok(exit::FINE)
}

/// The schema is JSON with `--json` and without.
pub(super) fn schema() -> Exit {
    output::raw(PROJECT_FILE_SCHEMA.as_bytes());
    exit::FINE
}

pub(super) fn refuse_json(global: &GlobalArgs, command: &str) -> Result<(), Problem> {
    if global.json {
        return Err(Problem::usage(format!(
            "the output of `{command}` is not JSON; remove `--json`"
        )));
    }
    Ok(())
}
