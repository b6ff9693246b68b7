//! `toolcrib serve`: the project's engine as an MCP server.

mod http;

use std::io::IsTerminal as _;

use futures_util::future::join_all;
use toolcrib_core::CancellationToken;
use toolcrib_engine::TurnOptions;
use toolcrib_mcp::{Access, Gateway, GatewayError, McpClient};
use toolcrib_project::{Mode, Project};

use super::{
    Asked, ChosenModel, Problem, engine, json_lines, mcp::ask_all, personality, skills,
    with_project,
};
use crate::{
    args::{Global, HttpAddress, ServeArgs, claims},
    exit::{self, Exit},
    output,
};

pub(super) async fn serve(
    global: &Global,
    args: ServeArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    if global.json {
        return Err(Problem::usage(
            "`serve` prints no result, so there is nothing to print as JSON; see `--access-log` \
             and `--events`",
        ));
    }
    let mode = Mode::Run { fresh: false };
    let token = cancellation.clone();
    with_project(global, mode, ChosenModel::default(), &token, async |project| {
        serve_project(global, &args, project, cancellation).await
    })
    .await
}

async fn serve_project(
    global: &Global,
    args: &ServeArgs,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let engine = engine(project)?;
    if let Some(path) = &args.events {
        engine.events().on("*", json_lines::events(path, project)?)?;
    }
    // Every event is made as soon as anybody listens.
    if !global.quiet && project.watches_skills() {
        engine.events().on("skill.reload_failed", output::reload_failed)?;
    }
    let mut access = Access::new();
    access.principal = args.principal.as_deref().map(Into::into);
    access.tenant = args.tenant.as_deref().map(Into::into);
    access.claims = claims(&args.claims);
    access.skills = skills(project, &args.skills)?;
    access.personality = personality(project, args.personality.as_deref())?;

    let clients = || project.mcp_servers().iter().filter_map(|server| server.client().ok());
    let mut gateway = Gateway::builder(engine.clone()).working_dir(project.root());
    for changes in clients().map(McpClient::changes) {
        gateway = gateway.changes(changes);
    }
    if let Some(path) = &args.access_log {
        gateway = gateway.access_log(json_lines::access_log(path, project)?);
    }
    let gateway = gateway.build();

    let accesses = if args.http.is_some() && !project.serve_tokens().is_empty() {
        http::declared(project, &access).collect()
    } else {
        vec![access.clone()]
    };
    let quiet = global.quiet;
    let telling = async {
        // Told of or not, the servers start now and not in the first request.
        let asked = ask_all(project).await;
        if !quiet && !cancellation.is_cancelled() {
            tell(project, &asked, accesses, &cancellation).await;
            join_all(asked.iter().map(|asked| follow(project, asked))).await;
        }
        std::future::pending::<()>().await;
    };
    let serving = async {
        match args.http {
            None => {
                if !global.quiet && std::io::stdin().is_terminal() {
                    output::how_to_start(global, args, project);
                }
                let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
                let served = gateway.serve_stdio(stdin, stdout, access, cancellation.clone());
                served.await.map_err(|error| problem(&error))
            }
            Some(HttpAddress(address)) => {
                let listener = http::listen(address).await?;
                let at = listener.local_addr().unwrap_or(address);
                let (access, tokens) = http::access(global, args, project, &engine, access, at)?;
                let served = gateway.serve_http(listener, access, cancellation.clone());
                served.await.map_err(|error| http::problem(&error, &tokens))
            }
        }
    };
    tokio::select! {
        served = serving => served?,
        () = telling => {}
    }
    Ok(if cancellation.is_cancelled() { exit::CANCELLED } else { exit::FINE })
}

/// Says what is served, and for whom. On an engine of its own: nobody has asked for these menus, so
/// they stand in no events.
async fn tell(
    project: &Project,
    asked: &[Asked<'_>],
    accesses: Vec<Access>,
    cancellation: &CancellationToken,
) {
    let Ok(engine) = engine(project) else { return };
    for access in accesses {
        let mut options = TurnOptions::default().cancellation(cancellation.child_token());
        options.principal = access.principal.clone();
        options.tenant = access.tenant.clone();
        options.claims = access.claims.clone();
        options.personality = access.personality.clone();
        options.skills = access.skills.clone();
        // The skills are there: they were looked up.
        let Ok(mut turn) = engine.turn(options) else { return };
        let iteration = turn.iteration().await;
        if cancellation.is_cancelled() {
            return;
        }
        let iteration = iteration.as_ref().map_err(ToString::to_string);
        output::served(project, &access, iteration, engine.redactor());
    }
    output::asked(asked, engine.redactor());
}

/// Says each time that a client stands elsewhere with its server than it was last told.
async fn follow(project: &Project, asked: &Asked<'_>) {
    let (Ok(client), Some(told)) = (asked.server.client(), &asked.status) else { return };
    let redactor = project.redactor();
    let mut changes = client.changes();
    let mut last = told.state;
    loop {
        let status = client.status();
        if status.state != last {
            last = status.state;
            output::server_state(&status, &redactor);
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

fn problem(error: &GatewayError) -> Problem {
    Problem::failed("serve_failed", error.to_string())
}
