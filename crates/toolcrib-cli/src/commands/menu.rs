//! `toolcrib menu`: the tools that the model would see.

use toolcrib_core::CancellationToken;

use crate::{
    args::{GlobalArgs, MenuArgs},
    exit::{self, Exit},
    host::iteration::with_iteration,
    output::{self, MenuJson},
    problem::Problem,
};

pub(super) async fn menu(
    global: &GlobalArgs,
    args: MenuArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    with_iteration(
        global,
        args.look,
        &args.situation,
        cancellation,
        async |project, _, iteration| {
            output::unmatched(project);
            if global.json {
                output::json(&MenuJson::new(iteration, project, args.why));
            } else {
                output::menu(iteration, args.why || global.verbose, global.verbose);
            }
            Ok(exit::FINE)
        },
    )
    .await
}
