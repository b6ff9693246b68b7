//! The project of a conversation that has none.

use std::path::{Path, PathBuf};

use toolcrib_config::suggest::{nearest, quoted};
use toolcrib_core::CancellationToken;
use toolcrib_project::{ScratchTools, find, init_scratch};

use super::{
    document::{fetched, is_url},
    load::{blocking, here},
};
use crate::{args::GlobalArgs, output, problem::Problem};

/// The options of a command with its project: without one, a scratch project of the tools of `--with`.
/// `tells` says whether a person reads standard error.
pub(crate) async fn with_scratch(
    global: &GlobalArgs,
    with: &[String],
    tells: bool,
    cancellation: &CancellationToken,
) -> Result<GlobalArgs, Problem> {
    let of_imports = !global.imports.is_empty();
    let found = match &global.project {
        Some(dir) => Some(dir.clone()),
        None if global.no_project => None,
        None => find(&here()?).ok(),
    };
    if let Some(dir) = found.as_ref().filter(|_| !with.is_empty()) {
        return Err(Problem::usage(format!(
            "`--with` is for a conversation without a project, and this one has the project {}; \
             declare the tools in its toolcrib.toml, or go to another folder",
            dir.display()
        )));
    }
    if found.is_some() || (of_imports && with.is_empty()) {
        return Ok(global.clone());
    }
    let mut tools: Vec<_> = global.imports.iter().cloned().map(ScratchTools::Servers).collect();
    for word in with {
        tools.push(tools_of(word, cancellation).await?);
    }
    let made = blocking(move || init_scratch(&tools)).await??;
    if tells {
        made.notices.iter().for_each(|notice| output::notice(notice));
        if with.is_empty() {
            output::chat_note(
                "there is no project here, and so no tools: --with files|web|FILE.db|URL adds some",
            );
        }
    }
    // Printed commands repeat these options, and `--no-project` would conflict.
    Ok(GlobalArgs { project: Some(made.dir), no_project: false, ..global.clone() })
}

/// The tools that a word of `--with` names.
async fn tools_of(word: &str, cancellation: &CancellationToken) -> Result<ScratchTools, Problem> {
    Ok(match word {
        "files" => ScratchTools::Files,
        "web" => ScratchTools::Web,
        url if is_url(url) => {
            let (url, text) = fetched(url, cancellation).await?;
            ScratchTools::Document { url, text }
        }
        file if Path::new(file).is_file() => ScratchTools::File(PathBuf::from(file)),
        folder if Path::new(folder).is_dir() => {
            return Err(Problem::usage(format!(
                "`--with`: {} is a folder; go there, and write `--with files`",
                quoted([folder])
            )));
        }
        _ => {
            let help = match nearest(word, ["files", "web"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "write files, web, FILE.db, or the file or URL of an OpenAPI document".into()
                }
            };
            let problem = format!("`--with`: there is no file {}; {help}", quoted([word]));
            return Err(Problem::usage(problem));
        }
    })
}
