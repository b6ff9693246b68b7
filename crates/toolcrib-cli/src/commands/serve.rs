//! `toolcrib serve`: the project's engine as an MCP server.

use std::{
    fs::OpenOptions,
    io::{IsTerminal as _, Write as _},
    net::SocketAddr,
    path::Path,
    sync::{Mutex, PoisonError},
};

use futures_util::future::join_all;
use tokio::net::TcpListener;
use toolcrib_core::CancellationToken;
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_mcp::{Access, AccessEntry, Gateway, GatewayError, HttpAccess, McpClient};
use toolcrib_project::{Mode, Project, TokenFile};

use super::{ChosenModel, Problem, engine, events_file, mcp::ask_all, skills, with_project};
use crate::{
    args::{DEFAULT_ADDRESS, Global, HttpAddress, ServeArgs},
    exit::{self, Exit},
    output::{self, Served},
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
        engine.events().on("*", events_file::writer(path, project)?);
    }
    let mut access = Access::new();
    access.principal = args.principal.as_deref().map(Into::into);
    access.tenant = args.tenant.as_deref().map(Into::into);
    access.skills = skills(project, &args.skills)?;

    let clients = || project.mcp_servers().iter().filter_map(|server| server.client().ok());
    let mut gateway = Gateway::builder(engine.clone()).working_dir(project.root());
    for changes in clients().map(McpClient::changes) {
        gateway = gateway.changes(changes);
    }
    if let Some(path) = &args.access_log {
        gateway = gateway.access_log(access_log(path)?);
    }
    let gateway = gateway.build();

    let (asker, quiet) = (access.clone(), global.quiet);
    let telling = async {
        if !quiet {
            tell(asker, project, &engine, &cancellation).await;
            join_all(clients().map(|client| follow(client, &engine))).await;
        }
        std::future::pending::<()>().await;
    };
    let serving = async {
        match args.http {
            None => {
                if !global.quiet && std::io::stdin().is_terminal() {
                    output::how_to_start(project);
                }
                let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
                let served = gateway.serve_stdio(stdin, stdout, access, cancellation.clone());
                served.await.map_err(problem)
            }
            Some(HttpAddress(address)) => {
                let listener = listen(address).await?;
                let access = http_access(global, args, project, &engine, access, &listener)?;
                gateway.serve_http(listener, access, cancellation.clone()).await.map_err(problem)
            }
        }
    };
    tokio::select! {
        served = serving => served?,
        () = telling => {}
    }
    Ok(if cancellation.is_cancelled() { exit::CANCELLED } else { exit::FINE })
}

/// Says what is served, as soon as all servers have answered or cannot.
async fn tell(
    access: Access,
    project: &Project,
    engine: &Engine,
    cancellation: &CancellationToken,
) {
    let servers = ask_all(project).await;
    let mut options = TurnOptions::default().cancellation(cancellation.child_token());
    options.principal = access.principal;
    options.tenant = access.tenant;
    options.skills = access.skills;
    // The skills are there: they were looked up.
    let Ok(mut turn) = engine.turn(options) else { return };
    let iteration = turn.iteration().await;
    if !cancellation.is_cancelled() {
        output::served(project, &servers, iteration.as_ref().map_err(ToString::to_string), engine);
    }
}

/// Says each time that a client stands elsewhere with its server.
async fn follow(client: &McpClient, engine: &Engine) {
    let mut changes = client.changes();
    let mut last = client.status().state;
    while changes.changed().await.is_ok() {
        let status = client.status();
        if status.state != last {
            last = status.state;
            output::server_state(&status, engine.redactor());
        }
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Problem> {
    TcpListener::bind(address).await.map_err(|error| {
        Problem::failed("address_unavailable", format!("{address} cannot be served at: {error}"))
    })
}

/// Who may ask, and where the token is; both are told.
fn http_access(
    global: &Global,
    args: &ServeArgs,
    project: &Project,
    engine: &Engine,
    default: Access,
    listener: &TcpListener,
) -> Result<HttpAccess, Problem> {
    let mut access = HttpAccess::new();
    for host in &args.hosts {
        access = access.allow_host(host);
    }
    for origin in &args.origins {
        access = access.allow_origin(origin);
    }
    let address = listener.local_addr().unwrap_or(DEFAULT_ADDRESS);
    let declared = project.serve_tokens();
    let mut file = None;
    if declared.is_empty() {
        let made = project
            .token_file()
            .map_err(|error| Problem::failed("token_unavailable", error.to_string()))?;
        // It stands in no result; should it come into one all the same, nobody reads it.
        let _ = engine.redactor().learn(made.token.expose());
        access = access.token(made.token.expose(), default);
        file = Some(made);
    } else {
        if args.principal.is_some() || args.tenant.is_some() || args.show_token {
            return Err(Problem::usage(
                "`--as`, `--tenant` and `--show-token` are for a project without \
                 `[[serve.token]]`: here each token says for whom it stands",
            ));
        }
        for token in declared {
            let value = project.token(token).map_err(|error| {
                Problem::invalid(format!("{}: the token cannot be had: {error}", token.origin()))
            })?;
            let _ = engine.redactor().learn(value.expose());
            let mut of_token = Access::new();
            of_token.principal = token.principal().cloned();
            of_token.tenant = token.tenant().cloned();
            of_token.skills.clone_from(&default.skills);
            access = access.token(value.expose(), of_token);
        }
    }
    let token = file.as_ref().map(|TokenFile { path, .. }| path.as_path());
    if !global.quiet {
        output::at(&Served { address, token, is_exposed: !address.ip().is_loopback() });
    }
    if let (true, Some(file)) = (args.show_token, &file) {
        output::token(file.token.expose());
    }
    Ok(access)
}

fn problem(error: GatewayError) -> Problem {
    match error {
        GatewayError::Host(_) | GatewayError::Origin(_) => Problem::usage(error.to_string()),
        GatewayError::TokenTooShort { .. } | GatewayError::SameToken { .. } => {
            Problem::invalid(format!("`[[serve.token]]`: {error}"))
        }
        error => Problem::failed("serve_failed", error.to_string()),
    }
}

/// Writes one line for each request.
fn access_log(path: &Path) -> Result<impl Fn(&AccessEntry) + Send + Sync + use<>, Problem> {
    let file = if path == Path::new("-") {
        None
    } else {
        let mut options = OpenOptions::new();
        let opened = options.append(true).create(true).open(path);
        Some(opened.map_err(|error| {
            let path = path.display();
            Problem::usage(format!("`--access-log`: {path} cannot be written: {error}"))
        })?)
    };
    let place = format!("the access log {}", path.display());
    let file = Mutex::new(file);
    Ok(move |entry: &AccessEntry| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(out) = file.as_mut() else {
            output::request(entry);
            return;
        };
        let written = serde_json::to_vec(entry).map_err(Into::into).and_then(|mut line| {
            line.push(b'\n');
            out.write_all(&line)
        });
        if let Err(error) = written {
            output::lost(place.clone(), error);
        }
    })
}
