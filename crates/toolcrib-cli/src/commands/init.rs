//! `toolcrib init`: a small project that runs at once.

use serde_json::json;
use toolcrib_core::CancellationToken;
use toolcrib_project::InitReport;

use crate::{
    args::{GlobalArgs, InitArgs, InitKind},
    exit::{self, Exit},
    output,
    problem::Problem,
    project::{
        document::{fetched, is_url},
        own_edit::OwnEdit,
    },
};

pub(super) async fn init(
    global: &GlobalArgs,
    args: &InitArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let url = args.from.as_ref().and_then(|from| from.to_str()).filter(|from| is_url(from));
    let edit = OwnEdit::of_new(&args.dir, &cancellation);
    let begun = match &args.from {
        Some(from) => match url {
            Some(url) => {
                let (url, text) = fetched(url, &cancellation).await?;
                toolcrib_project::init_from_url(&args.dir, &url, &text)
            }
            None => toolcrib_project::init_from(&args.dir, from),
        },
        None => match args.with {
            Some(InitKind::Browser) => toolcrib_project::init_with_browser(&args.dir),
            None => toolcrib_project::init(&args.dir),
        }
        .map(InitReport::from),
    };
    let InitReport { files: written, notices, .. } = begun?;
    edit.trust();
    if !global.quiet {
        notices.iter().for_each(|notice| output::notice(notice));
    }
    if global.json {
        let created: Vec<_> = written.iter().map(|path| path.to_string_lossy()).collect();
        output::json(&json!({ "dir": args.dir.to_string_lossy(), "created": created }));
    } else {
        let is_from = args.from.is_some() || args.with.is_some();
        output::begun(&args.dir, &written, is_from, global.quiet);
    }
    Ok(exit::FINE)
}
