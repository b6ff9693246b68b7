//! `toolcrib serve`: the project's engine as an MCP server.

mod http;
mod reload;

use std::{
    convert::Infallible,
    io::IsTerminal as _,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::json;
use toolcrib_core::{CancellationToken, Digest, Event, Identity};
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_gateway::{
    Access, AccessEntry, Gateway, GatewayBuilder, GatewayError, LogHealth, Readiness, Replicas,
};
use toolcrib_project::{Project, Sessions};

use self::reload::Reload;
use crate::{
    args::{FreshArgs, GlobalArgs, HttpAddress, ServeArgs, claims},
    exit::{self, Exit},
    host::{
        approver,
        gateway_calls::GatewayCalls,
        json_lines::{self, AuditLog},
        servers::ask_all,
    },
    output::{self, QueriedServer},
    problem::Problem,
    project::{
        load::{ChosenModel, Purpose, blocking, with_project},
        turn::{engine, export_spans, personality, project_flags, skills, whom_flags},
    },
};

pub(super) async fn serve(
    global: &GlobalArgs,
    args: ServeArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    if global.json {
        return Err(Problem::usage(
            "`serve` prints no result as JSON; see `--access-log` and `--events`",
        ));
    }
    let purpose = Purpose::Run(FreshArgs::default());
    let token = cancellation.clone();
    let served = with_project(global, purpose, ChosenModel::default(), &token, async |project| {
        serve_project(global, &args, project, cancellation).await
    })
    .await;
    match served {
        // A server runs until it is stopped: service managers treat any exit code but 0 as a
        // failure. This includes a stop while it starts.
        Err(problem) if problem.is_cancelled() => Ok(exit::FINE),
        served => served.map(|()| exit::FINE),
    }
}

/// The parts that continue after a reload: the writers of a gateway's logs, and what its replicas share.
#[derive(Clone, Default)]
struct Lasting {
    events: Option<EventLog>,
    access: Option<EntryLog>,
    audit: Option<AuditLog>,
    calls: Option<GatewayCalls>,
    /// The state of those that are files.
    health: Vec<LogHealth>,
    replicas: Option<Replicas>,
}

type EventLog = Arc<dyn Fn(&Event) + Send + Sync>;
type EntryLog = Arc<dyn Fn(&AccessEntry) + Send + Sync>;

impl Lasting {
    async fn open(args: &ServeArgs, project: &Project) -> Result<Self, Problem> {
        let mut logs = Self::default();
        if let Some(path) = &args.events {
            let (events, health) = json_lines::events(path, project)?;
            logs.events = Some(Arc::new(events));
            logs.health.push(health);
        }
        if let Some(path) = &args.access_log {
            let (access, health) = json_lines::access_log(path, project)?;
            logs.access = Some(Arc::new(access));
            logs.health.extend(health);
        }
        logs.calls = args.store_calls.then(|| GatewayCalls::open(project)).transpose()?;
        logs.audit = AuditLog::open(project)?;
        logs.health.extend(logs.audit.as_ref().map(AuditLog::health));
        if args.http.is_some() {
            logs.replicas = replicas(project).await?;
        }
        Ok(logs)
    }
}

/// The store and the key that this process shares with the other replicas of the gateway; `None` if the project declares none.
async fn replicas(project: &Project) -> Result<Option<Replicas>, Problem> {
    let Some(secret) = project.shared_secret() else { return Ok(None) };
    let sessions = project.sessions().clone();
    let opened = sessions.clone();
    let store = blocking(move || opened.open()).await?;
    tokio::spawn(prune(sessions));
    let store = store.map_err(|error| Problem::failed("store_failed", error.to_string()))?;
    let replicas = Replicas::new(store, secret.expose());
    replicas.map(Some).map_err(|error| Problem::invalid(format!("`[approvals] key`: {error}")))
}

/// How often the store is opened again, which removes what has expired.
const PRUNE_EVERY: Duration = Duration::from_hours(1);

/// Removes what has expired from the store, as long as this is polled.
async fn prune(sessions: Sessions) {
    loop {
        tokio::time::sleep(PRUNE_EVERY).await;
        let sessions = sessions.clone();
        // Without the database, requests say so.
        let _ = blocking(move || sessions.open()).await;
    }
}

/// A project as a gateway serves it.
struct ServedProject {
    engine: Engine,
    gateway: GatewayBuilder,
    /// The access on standard input and output, and of a generated token.
    access: Access,
}

/// The engine, with its logs of events.
async fn observed_engine(
    global: &GlobalArgs,
    args: &ServeArgs,
    project: &Project,
    logs: &Lasting,
) -> Result<Engine, Problem> {
    let mut builder = project.engine_builder();
    if let Some(approvals) = approver::of_calls(project).await? {
        builder = builder.approver(approvals.approver(None));
    }
    if let Some(timeout) = args.timeout {
        builder = builder.tool_timeout(timeout);
    }
    let engine = builder.build().map_err(|error| Problem::invalid(error.to_string()))?;
    if let Some(log) = &logs.events {
        let log = Arc::clone(log);
        engine.events().on("*", move |event: &Event| log(event))?;
    }
    if let Some(calls) = logs.calls.clone() {
        engine.events().on("*", move |event: &Event| calls.event(event))?;
    }
    export_spans(&engine)?;
    // Events are produced once there is a subscriber.
    if !global.quiet && project.watches_skills() {
        engine.events().on("skill.reload_failed", output::reload_failed)?;
    }
    Ok(engine)
}

async fn configured(
    global: &GlobalArgs,
    args: &ServeArgs,
    project: &Project,
    logs: &Lasting,
) -> Result<ServedProject, Problem> {
    let engine = observed_engine(global, args, project, logs).await?;
    let mut access = Access::new();
    access.principal = args.principal.as_deref().map(Into::into);
    access.tenant = args.tenant.as_deref().map(Into::into);
    access.claims = claims(&args.claims);
    access.skills = skills(project, &args.skills)?;
    access.personality = personality(project, args.personality.as_deref())?;

    let clients = project.mcp_servers().iter().filter_map(|server| server.client().ok());
    let gateway = Gateway::builder(engine.clone()).working_dir(project.root());
    let mut gateway = clients.fold(gateway, GatewayBuilder::watch);
    for server in project.mcp_servers().iter().filter(|server| !server.is_fenced()) {
        gateway = gateway.without_fence(server.name().as_str());
    }
    for server in project.mcp_servers() {
        let none = || args.no_prefix.then(|| Arc::from(""));
        if let Some(prefix) = server.prefix().cloned().or_else(none) {
            gateway = gateway.prefix(server.name().as_str(), prefix);
        }
    }
    if logs.access.is_some() || logs.calls.is_some() {
        let (log, calls) = (logs.access.clone(), logs.calls.clone());
        gateway = gateway.access_log(move |entry| {
            log.iter().for_each(|log| log(entry));
            calls.iter().for_each(|calls| calls.ended(entry));
        });
    }
    let settings = project.serving();
    if let Some(log) = &logs.audit {
        let (written, retried) = (log.clone(), log.clone());
        gateway = gateway.audit_log(move |entry| written.write(entry));
        if settings.audit_is_required {
            gateway = gateway.require(log.health(), move || retried.retry());
        }
    }
    gateway = logs.health.iter().cloned().fold(gateway, GatewayBuilder::log_health);
    if let Some(store) = project.key_values() {
        gateway = gateway.remember_in(store);
    }
    gateway = gateway.config_digest(config_digest(project.clone()).await?);
    if let Some(replicas) = &logs.replicas {
        gateway = gateway.replicas(replicas.clone());
    }
    if settings.asks_for_new_tools {
        project.lock().ask_for_new();
    }
    gateway = gateway.drain(settings.drain);
    if settings.ready_with_any {
        gateway = gateway.readiness(Readiness::AnyServer);
    }
    Ok(ServedProject { engine, gateway, access })
}

/// The digest of the files that declare a project: the same for equal files, wherever the project is.
async fn config_digest(project: Project) -> Result<Digest, Problem> {
    blocking(move || {
        let files = project.watched_files().iter().map(|path| {
            let name = path.strip_prefix(project.root()).unwrap_or(path);
            let content = std::fs::read(path).map(|bytes| Digest::of(bytes).to_string());
            json!([name.to_string_lossy(), content.ok()])
        });
        Digest::of_json(&files.collect())
    })
    .await
}

/// The identities that are served.
fn accesses(args: &ServeArgs, project: &Project, default: &Access) -> Vec<Access> {
    if args.http.is_some() && http::is_declared(project) {
        http::declared(project, default).collect()
    } else {
        vec![default.clone()]
    }
}

async fn serve_project(
    global: &GlobalArgs,
    args: &ServeArgs,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<(), Problem> {
    let logs = Lasting::open(args, project).await?;
    let ServedProject { engine, gateway, access } =
        configured(global, args, project, &logs).await?;
    let gateway = gateway.build();

    let accesses = accesses(args, project, &access);
    let address = OnceLock::new();
    let mut reload = Reload::new(global, args, project, &gateway, &logs, &address);
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
            Some(HttpAddress(wanted)) => {
                let socket = http::bind(wanted)?;
                let at = socket.local_addr().unwrap_or(wanted);
                let (access, tokens) = http::access(args, project, &engine, access, at)?;
                let _ = address.set(at);
                if let Some(replicas) = &logs.replicas {
                    let is_tls = project.serving().tls.is_some();
                    let reached = args.replica_address.or_else(|| own_address(at));
                    match reached.filter(|_| !is_tls) {
                        Some(at) => replicas.reached_at(at),
                        None if global.quiet => {}
                        None => output::not_reached(is_tls),
                    }
                }
                let listener = http::listen(socket, at)?;
                if !global.quiet {
                    http::tell(args, project, &tokens, at);
                }
                let served = gateway.serve_http(listener, access, cancellation.clone());
                served.await.map_err(|error| http::problem(&error, &tokens))
            }
        }
    };
    let served = tokio::select! {
        served = serving => served,
        never = start_servers(global, project, accesses, &cancellation) => match never {},
        never = reload.follow(&cancellation) => match never {},
    };
    reload.close().await;
    if let Some(calls) = logs.calls.clone() {
        blocking(move || calls.flush()).await?;
    }
    served
}

/// Starts the servers now, not in the first request, and prints the menus that are served.
async fn start_servers(
    global: &GlobalArgs,
    project: &Project,
    accesses: Vec<Access>,
    cancellation: &CancellationToken,
) -> Infallible {
    let warmed = warmed(&accesses);
    let asked = warmed.iter().map(|identity| ask_all(project, identity));
    let asked = join_all(asked).await.into_iter().next().unwrap_or_default();
    if !global.quiet && !cancellation.is_cancelled() {
        let is_warmed = |access: &Access| warmed.iter().any(|identity| is_whose(identity, access));
        let (now, later): (Vec<_>, Vec<_>) = accesses.into_iter().partition(is_warmed);
        tell(global, project, &asked, now, cancellation).await;
        output::served_later(later.len());
        join_all(asked.iter().map(|asked| follow(project, asked))).await;
    }
    std::future::pending().await
}

/// The maximum of identities whose servers are started at once: each may need its own programs.
const WARMED: usize = 4;

/// The identities whose servers start before the first request; at least one.
fn warmed(accesses: &[Access]) -> Vec<Identity> {
    let mut warmed: Vec<Identity> = Vec::new();
    for access in accesses {
        if warmed.len() < WARMED && !warmed.iter().any(|known| is_whose(known, access)) {
            let mut identity = Identity::conversation("serve");
            identity.tenant.clone_from(&access.tenant);
            identity.principal.clone_from(&access.principal);
            warmed.push(identity);
        }
    }
    warmed
}

fn is_whose(identity: &Identity, access: &Access) -> bool {
    identity.tenant == access.tenant && identity.principal == access.principal
}

/// Prints the menus that are served, per identity. Uses a separate engine: no client requested
/// these menus, and they must not appear in events.
async fn tell(
    global: &GlobalArgs,
    project: &Project,
    asked: &[QueriedServer<'_>],
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
        // The skills exist: they were resolved before.
        let Ok(mut turn) = engine.turn(options) else { return };
        let iteration = turn.iteration().await;
        if cancellation.is_cancelled() {
            return;
        }
        let iteration = iteration.as_ref().map_err(ToString::to_string);
        let whom = whom_flags(access.principal.as_deref(), access.tenant.as_deref());
        let why = format!("toolcrib menu --why{}{whom}", project_flags(global));
        output::served(project, &access, iteration, engine.redactor(), &why);
    }
    output::asked(asked, engine.redactor());
}

/// Prints each change of a client's connection state.
async fn follow(project: &Project, asked: &QueriedServer<'_>) {
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

/// The served address, where other machines or processes can reach it.
fn own_address(at: SocketAddr) -> Option<SocketAddr> {
    (!at.ip().is_unspecified()).then_some(at)
}

fn problem(error: &GatewayError) -> Problem {
    match error {
        GatewayError::Access(_) => Problem::usage(error.to_string()),
        _ => Problem::failed("serve_failed", error.to_string()),
    }
}
