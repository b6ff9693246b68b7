//! `toolcrib trust`: records the user's trust in a project, a file or an owner.

use std::path::{Path, PathBuf};

use toolcrib_core::CancellationToken;
use toolcrib_project::{PROJECT_FILE, TrustError, TrustState, TrustStore, find};

use crate::{
    args::{GlobalArgs, TrustArgs},
    exit::{self, Exit},
    output::{self, TrustJson, shell_word},
    problem::Problem,
    project::{consent::review, load::blocking},
};

pub(super) async fn trust(
    global: &GlobalArgs,
    args: TrustArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let given = args.path.as_ref().or(global.project.as_ref()).cloned();
    if args.list && global.project.is_some() {
        return Err(Problem::usage("`--list` lists all trusted folders; leave out `--project`"));
    }
    if args.path.is_some() && global.project.is_some() {
        return Err(Problem::usage("`trust` takes one folder; leave out `--project`"));
    }
    let (json, quiet) = (global.json, global.quiet);
    let work = move || {
        let store = TrustStore::of_user();
        if args.list {
            output::all_trusted(&store.list(), json);
            return Ok(exit::FINE);
        }
        let path = match given {
            Some(path) => path,
            None => here()?,
        };
        if args.remove {
            let removed = store.remove(&path)?;
            output::trust_removed(&path, removed, json);
            return Ok(exit::FINE);
        }
        let done = add(&store, &path, args.owner, cancellation)?;
        output::trusted(&done, json, quiet);
        Ok(exit::FINE)
    };
    blocking(work).await?
}

fn here() -> Result<PathBuf, Problem> {
    let here = std::env::current_dir()
        .map_err(|error| Problem::usage(format!("the current folder no longer exists: {error}")))?;
    find(&here).map_err(|error| Problem::usage(format!("{error}; name one: `toolcrib trust DIR`")))
}

fn add(
    store: &TrustStore,
    path: &Path,
    owner: bool,
    cancellation: CancellationToken,
) -> Result<TrustJson, Problem> {
    let accepted = if owner { store.accept_owner(path)?.owner } else { None };
    let mut done = TrustJson::new(path, accepted);
    if path.join(PROJECT_FILE).symlink_metadata().is_ok() {
        let review = review(path, cancellation)?;
        done.changes = match store.state(&review, true) {
            TrustState::Foreign(foreign) => {
                return Err(Problem::usage(format!(
                    "{foreign}; to accept that user: toolcrib trust --owner {}",
                    shell_word(foreign.path())
                )));
            }
            TrustState::Changed(changes) => Some(changes),
            _ => None,
        };
        store.trust(&review)?;
        done.powers = Some(review.powers);
    } else if !owner {
        return Err(Problem::usage(format!(
            "there is no {PROJECT_FILE} in {}; an imported file is trusted by naming it with \
             `--import`, and one of another user with `trust --owner`",
            path.display()
        )));
    }
    Ok(done)
}

impl From<TrustError> for Problem {
    fn from(error: TrustError) -> Self {
        Self::failed("trust_unavailable", error.to_string())
    }
}
