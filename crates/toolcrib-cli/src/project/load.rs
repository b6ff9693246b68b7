//! Loads the project of a command, and shuts it down.

use std::{env, path::PathBuf, sync::Arc};

use toolcrib_core::CancellationToken;
use toolcrib_project::{
    LoadOptions, LockEvent, LockMode, McpServer, Mode, Project, ProjectPlan, TrustStore, find,
};

use super::{consent::UserConsent, slow_servers, turn::project_flags};
use crate::{
    args::{FreshArgs, GlobalArgs, ModelArgs, OfflineArgs},
    output,
    problem::Problem,
};

/// The model of the command line, which replaces the project's.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChosenModel {
    pub(crate) name: Option<String>,
    pub(crate) base_url: Option<String>,
}

impl From<&ModelArgs> for ChosenModel {
    fn from(args: &ModelArgs) -> Self {
        Self { name: args.model.clone(), base_url: args.base_url.clone() }
    }
}

/// Why a project is loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// To inspect it: parts without trust are left out.
    Look(OfflineArgs),
    /// The same, with all warnings.
    Check(OfflineArgs),
    /// To query its servers, without calls.
    Ask,
    /// The same, to show or accept changed definitions.
    Review,
    /// To run calls.
    Run(FreshArgs),
}

impl Purpose {
    fn mode(self) -> Mode {
        match self {
            Self::Look(_) | Self::Check(_) | Self::Ask | Self::Review => Mode::Inspect,
            Self::Run(FreshArgs { fresh, .. }) => Mode::Run { fresh },
        }
    }
}

/// Loads the project while signals are still handled.
pub(crate) async fn load(
    global: &GlobalArgs,
    purpose: Purpose,
    model: ChosenModel,
    cancellation: &CancellationToken,
) -> Result<Project, Problem> {
    let plan = plan(global, purpose, model, cancellation).await?;
    open(plan, global, purpose, cancellation).await
}

/// Reads and checks the project's files.
async fn plan(
    global: &GlobalArgs,
    purpose: Purpose,
    model: ChosenModel,
    cancellation: &CancellationToken,
) -> Result<ProjectPlan, Problem> {
    let dir = project_folder(global)?;
    let options = options(global, purpose, model, dir.is_some(), cancellation)?;
    let reading = blocking(move || match dir {
        Some(dir) => ProjectPlan::of_folder(&dir, &options),
        None => ProjectPlan::of_imports(&options),
    });
    Ok(unless_cancelled(reading, cancellation).await???)
}

async fn open(
    plan: ProjectPlan,
    global: &GlobalArgs,
    purpose: Purpose,
    cancellation: &CancellationToken,
) -> Result<Project, Problem> {
    let project = unless_cancelled(blocking(|| plan.open()), cancellation).await???;
    refuse_unknown_servers(global, &project)?;
    if !global.quiet {
        tell(&project, global, purpose);
    }
    Ok(project)
}

fn options(
    global: &GlobalArgs,
    purpose: Purpose,
    model: ChosenModel,
    has_folder: bool,
    cancellation: &CancellationToken,
) -> Result<LoadOptions, Problem> {
    let consent = UserConsent {
        store: TrustStore::of_user(),
        found: has_folder && global.project.is_none(),
        import: global.imports.first().cloned(),
        purpose,
        quiet: global.quiet,
        verbose: global.verbose,
    };
    Ok(LoadOptions {
        state: absolute(global.state.as_ref())?,
        store: global.store.clone(),
        mode: purpose.mode(),
        consent: Some(Arc::new(consent)),
        offline: match purpose {
            Purpose::Look(look) | Purpose::Check(look) => look.offline,
            Purpose::Ask | Purpose::Review | Purpose::Run(_) => false,
        },
        model: model.name,
        base_url: model.base_url,
        imports: global.imports.clone(),
        allow_stray_children: global.allow_stray_children,
        trusted: global.trusted.clone(),
        lint_allow: global.lint_allow.clone(),
        lock: match purpose {
            Purpose::Review => LockMode::Review,
            _ if global.locked => LockMode::Locked,
            _ => LockMode::Pin,
        },
        flags: project_flags(global),
        cancel: cancellation.clone(),
        ..LoadOptions::default()
    })
}

/// Refuses flags about servers that no imported file declares.
fn refuse_unknown_servers(global: &GlobalArgs, project: &Project) -> Result<(), Problem> {
    let is_server = |name: &str| {
        let is_named = |server: &McpServer| server.name().as_str() == name;
        project.mcp_servers().iter().any(|server| server.is_imported() && is_named(server))
    };
    let trusted = global.trusted.iter().map(|name| (name, format!("--trust {name}")));
    let allowed = global.lint_allow.iter();
    let allowed = allowed.map(|(name, rule)| (name, format!("--lint-allow {name}={rule}")));
    match trusted.chain(allowed).find(|(name, _)| !is_server(name)) {
        Some((_, unknown)) => {
            Err(Problem::usage(format!("`{unknown}`: no file of `--import` declares this server")))
        }
        None => Ok(()),
    }
}

/// The project's folder; `None` for imported servers alone.
pub(crate) fn project_folder(global: &GlobalArgs) -> Result<Option<PathBuf>, Problem> {
    if let Some(dir) = &global.project {
        return Ok(Some(dir.clone()));
    }
    if global.no_project {
        return Ok(None);
    }
    match find(&global.search_from.clone().map_or_else(here, Ok)?) {
        // The project's rules must not be ignored by accident.
        Ok(dir) if !global.imports.is_empty() => Err(Problem::usage(format!(
            "this is in the project {}, whose rules `--import` alone ignores; add `--project` \
             with its folder to use them, or `--no-project`",
            dir.display()
        ))),
        Ok(dir) => Ok(Some(dir)),
        Err(_) if !global.imports.is_empty() => Ok(None),
        Err(error) => Err(Problem::usage(format!("{error}; name a project with `--project DIR`"))),
    }
}

/// Loads the project, runs a function on it, and shuts down its programs and connections in any
/// case.
pub(crate) async fn with_project<T>(
    global: &GlobalArgs,
    purpose: Purpose,
    model: ChosenModel,
    cancellation: &CancellationToken,
    work: impl AsyncFnOnce(&Project) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let tells = !global.quiet && !global.json;
    with_project_told(global, tells, purpose, model, cancellation, work).await
}

/// The same, where `tells` says whether a person reads standard error.
pub(crate) async fn with_project_told<T>(
    global: &GlobalArgs,
    tells: bool,
    purpose: Purpose,
    model: ChosenModel,
    cancellation: &CancellationToken,
    work: impl AsyncFnOnce(&Project) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let project = load(global, purpose, model, cancellation).await?;
    work_on(project, tells, work).await
}

/// Runs a function on the project for calls. With `--fresh`, another one runs before databases are
/// replaced, on the project with the new databases in memory, and without programs and connections;
/// its result, if it returns one, ends the command.
pub(crate) async fn with_fresh_project<T>(
    global: &GlobalArgs,
    tells: bool,
    fresh: FreshArgs,
    model: ChosenModel,
    cancellation: &CancellationToken,
    (judge, work): (
        impl AsyncFnOnce(&Project) -> Result<Option<T>, Problem>,
        impl AsyncFnOnce(&Project) -> Result<T, Problem>,
    ),
) -> Result<T, Problem> {
    let purpose = Purpose::Run(fresh);
    let mut plan = plan(global, purpose, model, cancellation).await?;
    if fresh.fresh {
        let preview = unless_cancelled(blocking(|| plan.preview()), cancellation).await???;
        refuse_unknown_servers(global, &preview.0)?;
        if let Some(end) = judge(&preview.0).await? {
            return Ok(end);
        }
        plan = preview.1;
    }
    work_on(open(plan, global, purpose, cancellation).await?, tells, work).await
}

async fn work_on<T>(
    project: Project,
    tells: bool,
    work: impl AsyncFnOnce(&Project) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let outcome = tokio::select! {
        biased;
        outcome = work(&project) => outcome,
        never = slow_servers::tell(&project, tells) => match never {},
    };
    project.close().await;
    outcome
}

/// Runs a function that blocks, off the async workers.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::failed("internal", error.to_string()))
}

/// The result of a future, unless the command is cancelled before.
pub(crate) async fn unless_cancelled<T>(
    work: impl Future<Output = T>,
    cancellation: &CancellationToken,
) -> Result<T, Problem> {
    tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(Problem::cancelled()),
        done = work => Ok(done),
    }
}

/// A relative state folder on the command line starts at the current folder, not at the project.
fn absolute(path: Option<&PathBuf>) -> Result<Option<PathBuf>, Problem> {
    path.map(std::path::absolute)
        .transpose()
        .map_err(|error| Problem::usage(format!("`--state`: {error}")))
}

/// Prints the project's warnings and backups, and from now on the news about its pinned definitions.
fn tell(project: &Project, global: &GlobalArgs, purpose: Purpose) {
    if !global.json {
        // `check` does not exist for imported files, and their warnings may be about lost servers.
        let all =
            global.verbose || !global.imports.is_empty() || matches!(purpose, Purpose::Check(_));
        output::warnings(project.warnings(), all);
    }
    let flags = project_flags(global);
    project.lock().on_event(move |event| match event {
        LockEvent::Pinned { source, kind, count } => output::pinned(source, *kind, *count),
        LockEvent::Changed(place) => output::pin_changed(place, &flags),
        LockEvent::New(place) => output::pin_new(place, &flags),
        LockEvent::Unsaved(reason) => output::pins_unsaved(reason),
        _ => {}
    });
    for database in project.databases() {
        if let Some(kept) = database.kept() {
            output::kept(database.name(), kept);
        }
    }
}

pub(crate) fn here() -> Result<PathBuf, Problem> {
    env::current_dir()
        .map_err(|error| Problem::usage(format!("the current folder no longer exists: {error}")))
}
