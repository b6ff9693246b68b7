//! One file per command.

mod acp;
mod approvals;
mod approver;
mod attachments;
mod call;
mod call_arguments;
mod catalog;
mod chat;
mod check;
mod check_server;
mod consent;
mod conversation;
mod default_answers;
mod discover;
mod doctor;
mod editor;
mod explain;
mod find;
mod fresh;
mod init;
mod install;
mod json_lines;
mod lint;
mod lock;
mod mcp;
mod mcp_entry;
mod menu;
mod models;
mod problem;
mod questions;
mod recording;
mod replay;
mod run;
mod run_session;
mod secret;
mod serve;
mod server_words;
mod sessions;
mod skills;
mod slow_servers;
mod tools;
mod trace;
mod trust;
mod usage;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_config::suggest;
use toolcrib_core::{CancellationToken, SkillId};
use toolcrib_engine::{DEFAULT_PERSONALITY, Engine, Personality, TurnOptions};
use toolcrib_project::{LoadOptions, LockMode, McpServer, Mode, Project, TrustStore, find};

use self::consent::UserConsent;
pub(crate) use self::{
    problem::{Form, Problem, misread},
    replay::{Difference, DifferentCall},
};
use crate::{
    args::{Cli, Command, FreshArgs, GlobalArgs, ModelArgs, OfflineArgs, Situation, claims},
    exit::Exit,
    output,
};

/// Runs the command.
pub(crate) async fn dispatch(cli: Cli, cancellation: CancellationToken) -> Result<Exit, Problem> {
    let Cli { global, command } = cli;
    match command {
        Command::Run(args) => run::run(&global, args, cancellation).await,
        Command::Resume(args) => run::resume(&global, args, cancellation).await,
        Command::Chat(args) => chat::chat(&global, args, cancellation).await,
        Command::Sessions { list, command } => {
            sessions::sessions(&global, list, command, cancellation).await
        }
        Command::Show(args) => sessions::show(&global, args, cancellation).await,
        Command::Export(args) => sessions::export(&global, args, cancellation).await,
        Command::Runs(list) => trace::runs(&global, list, cancellation).await,
        Command::Trace(args) => trace::show_trace(&global, args, cancellation).await,
        Command::Approvals { list, command } => {
            approvals::approvals(&global, list, command, cancellation).await
        }
        Command::Approve(args) => approvals::approve(&global, args, cancellation).await,
        Command::Deny(args) => approvals::deny(&global, args, cancellation).await,
        Command::Replay(args) => replay::replay(&global, args, cancellation).await,
        Command::Usage(args) => usage::usage(&global, args, cancellation).await,
        Command::Menu(args) => menu::menu(&global, args, cancellation).await,
        Command::Explain(args) => explain::explain(&global, args, cancellation).await,
        Command::Find(args) => find::find(&global, args, cancellation).await,
        Command::Call(args) => call::call(&global, args, cancellation).await,
        Command::Serve(args) => serve::serve(&global, args, cancellation).await,
        Command::Acp(args) => acp::acp(&global, args, cancellation).await,
        Command::Mcp { command } => mcp::mcp(&global, command, cancellation).await,
        Command::Tools(args) => tools::tools(&global, args, cancellation).await,
        Command::Lint(args) => lint::lint(&global, args, cancellation).await,
        Command::Skills { look, command } => {
            skills::skills(&global, look, command, cancellation).await
        }
        Command::Secret { command } => secret::secret(&global, command, cancellation).await,
        Command::Lock { command } => lock::lock(&global, command, cancellation).await,
        Command::CheckServer(args) => check_server::check_server(&global, args, cancellation).await,
        Command::Discover => discover::discover(&global, cancellation).await,
        Command::Install(args) => install::install(&global, args, cancellation).await,
        Command::Doctor => doctor::doctor(&global, cancellation).await,
        Command::Completions { shell, .. } => editor::completions(&global, shell),
        Command::Man { dir, .. } => editor::man(&global, dir.as_deref()),
        Command::Schema => Ok(editor::schema()),
        Command::Models(look) => models::models(&global, look, cancellation).await,
        Command::Check(look) => check::check(&global, look, cancellation).await,
        Command::Trust(args) => trust::trust(&global, args, cancellation).await,
        Command::Init(args) => init::init(&global, &args, cancellation).await,
    }
}

/// The model of the command line, which replaces the project's.
#[derive(Debug, Clone, Default)]
struct ChosenModel {
    name: Option<String>,
    base_url: Option<String>,
}

impl From<&ModelArgs> for ChosenModel {
    fn from(args: &ModelArgs) -> Self {
        Self { name: args.model.clone(), base_url: args.base_url.clone() }
    }
}

/// Why a project is loaded.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// To inspect it: parts without trust are left out.
    Look(OfflineArgs),
    /// The same, with all warnings.
    Check(OfflineArgs),
    /// To query its servers, without calls.
    Ask,
    /// The same, to show or accept changed definitions.
    Review,
    /// To evaluate a call or run, with databases as they would be created. Replaces nothing.
    Judge,
    /// To run calls.
    Run(FreshArgs),
}

impl Purpose {
    fn mode(self) -> Mode {
        match self {
            Self::Look(_) | Self::Check(_) | Self::Ask | Self::Review => Mode::Inspect,
            Self::Judge => Mode::Preview,
            Self::Run(FreshArgs { fresh, .. }) => Mode::Run { fresh },
        }
    }
}

/// Loads the project while signals are still handled.
async fn load(
    global: &GlobalArgs,
    purpose: Purpose,
    model: ChosenModel,
    cancellation: &CancellationToken,
) -> Result<Project, Problem> {
    let dir = project_folder(global)?;
    let consent = UserConsent {
        store: TrustStore::of_user(),
        found: dir.is_some() && global.project.is_none(),
        import: global.imports.first().cloned(),
        purpose,
        quiet: global.quiet,
    };
    let options = LoadOptions {
        state: absolute(global.state.as_ref())?,
        mode: purpose.mode(),
        consent: Some(Arc::new(consent)),
        offline: match purpose {
            Purpose::Judge => true,
            Purpose::Look(look) | Purpose::Check(look) => look.offline,
            Purpose::Ask | Purpose::Review | Purpose::Run(_) => false,
        },
        model: model.name,
        base_url: model.base_url,
        imports: global.imports.clone(),
        allow_stray_children: global.allow_stray_children,
        trusted: global.trusted.clone(),
        lint_allow: global.lint_allow.clone(),
        plugins: Vec::new(),
        lock: match purpose {
            Purpose::Review => LockMode::Review,
            _ if global.locked => LockMode::Locked,
            _ => LockMode::Pin,
        },
        flags: project_flags(global),
        cancel: cancellation.clone(),
    };
    let loading = tokio::task::spawn_blocking(move || match dir {
        Some(dir) => Project::load(&dir, &options),
        None => Project::of_imports(&options),
    });
    let project = tokio::select! {
        biased;
        loaded = loading => loaded
            .map_err(|error| Problem::failed("internal", error.to_string()))??,
        () = cancellation.cancelled() => return Err(Problem::cancelled()),
    };
    if cancellation.is_cancelled() {
        return Err(Problem::cancelled());
    }
    let is_server = |name: &str| {
        let is_named = |server: &McpServer| server.name().as_str() == name;
        project.mcp_servers().iter().any(|server| server.is_imported() && is_named(server))
    };
    let trusted = global.trusted.iter().map(|name| (name, format!("--trust {name}")));
    let allowed = global.lint_allow.iter();
    let allowed = allowed.map(|(name, rule)| (name, format!("--lint-allow {name}={rule}")));
    if let Some((_, unknown)) = trusted.chain(allowed).find(|(name, _)| !is_server(name)) {
        let message = format!("`{unknown}`: no file of `--import` declares this server");
        return Err(Problem::usage(message));
    }
    // After an evaluation, the project is loaded once more.
    if !global.quiet && !global.json && !matches!(purpose, Purpose::Judge) {
        // `check` does not exist for imported files, and their warnings may be about lost servers.
        let all =
            global.verbose || !global.imports.is_empty() || matches!(purpose, Purpose::Check(_));
        output::warnings(project.warnings(), all);
    }
    if !global.quiet && !matches!(purpose, Purpose::Judge) {
        lock::tell(&project, project_flags(global));
    }
    if !global.quiet {
        for database in project.databases() {
            if let Some(kept) = database.kept() {
                output::kept(database.name(), kept);
            }
        }
    }
    Ok(project)
}

/// The project's folder; `None` for imported servers alone.
fn project_folder(global: &GlobalArgs) -> Result<Option<PathBuf>, Problem> {
    if let Some(dir) = &global.project {
        return Ok(Some(dir.clone()));
    }
    if global.no_project {
        return Ok(None);
    }
    let here = global.search_from.clone().map_or_else(std::env::current_dir, Ok);
    let here = here
        .map_err(|error| Problem::usage(format!("the current folder no longer exists: {error}")))?;
    match find(&here) {
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
async fn with_project<T>(
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
async fn with_project_told<T>(
    global: &GlobalArgs,
    tells: bool,
    purpose: Purpose,
    model: ChosenModel,
    cancellation: &CancellationToken,
    work: impl AsyncFnOnce(&Project) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let project = load(global, purpose, model, cancellation).await?;
    let outcome = tokio::select! {
        biased;
        outcome = work(&project) => outcome,
        never = slow_servers::tell(&project, tells) => match never {},
    };
    project.close().await;
    outcome
}

/// Runs a function that blocks, off the async workers.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::failed("internal", error.to_string()))
}

/// The options by which another command finds the same project.
fn project_flags(global: &GlobalArgs) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, path: &Path| {
        let _ = write!(flags, " {flag} {}", output::shell_word(path));
    };
    global.project.iter().for_each(|path| push("--project", path));
    global.state.iter().for_each(|path| push("--state", path));
    global.imports.iter().for_each(|path| push("--import", path));
    global.trusted.iter().for_each(|name| push("--trust", Path::new(name)));
    for (name, rule) in &global.lint_allow {
        push("--lint-allow", Path::new(&format!("{name}={rule}")));
    }
    let switches = [
        ("--no-project", global.no_project),
        ("--allow-stray-children", global.allow_stray_children),
    ];
    for (switch, _) in switches.iter().filter(|(_, on)| *on) {
        let _ = write!(flags, " {switch}");
    }
    flags
}

/// The options by which another command acts for the same principal and tenant.
fn whom_flags(principal: Option<&str>, tenant: Option<&str>) -> String {
    let flags = [("--as", principal), ("--tenant", tenant)];
    let given = flags.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
    given.map(|(flag, value)| format!(" {flag} {}", output::shell_word(Path::new(value)))).collect()
}

/// A relative state folder on the command line starts at the current folder, not at the project.
fn absolute(path: Option<&PathBuf>) -> Result<Option<PathBuf>, Problem> {
    path.map(std::path::absolute)
        .transpose()
        .map_err(|error| Problem::usage(format!("`--state`: {error}")))
}

fn engine(project: &Project) -> Result<Engine, Problem> {
    project.engine_builder().build().map_err(|error| Problem::invalid(error.to_string()))
}

/// Exports the spans of an engine, if the program is built with OTLP and the environment names an
/// endpoint.
fn export_spans(engine: &Engine) -> Result<(), Problem> {
    #[cfg(feature = "otlp")]
    return crate::otlp::export(engine.events());
    #[cfg(not(feature = "otlp"))]
    {
        let _ = engine;
        Ok(())
    }
}

/// Resolves the named skills.
fn skills(project: &Project, names: &[String]) -> Result<Vec<SkillId>, Problem> {
    let unknown = |name: &str| {
        let known: Vec<_> =
            project.skills().iter().map(|skill| format!("`{}`", skill.id)).collect();
        let known = match known.as_slice() {
            [] => "this project has none".to_owned(),
            known => format!("available: {}", known.join(", ")),
        };
        Problem::usage(format!("unknown skill `{name}`; {known}"))
    };
    names
        .iter()
        .map(|name| project.skills().get(name).map(|s| s.id.clone()).ok_or_else(|| unknown(name)))
        .collect()
}

/// Resolves the named personality.
fn personality(project: &Project, name: Option<&str>) -> Result<Option<Arc<str>>, Problem> {
    let Some(name) = name else { return Ok(None) };
    let mut known: Vec<_> = project.personalities().map(Personality::id).collect();
    if !known.contains(&DEFAULT_PERSONALITY) {
        known.insert(0, DEFAULT_PERSONALITY);
    }
    if known.contains(&name) {
        return Ok(Some(name.into()));
    }
    let help = suggest::help(name, "personalities", known);
    Err(Problem::usage(format!("unknown personality {}; {help}", suggest::quoted([name]))))
}

fn turn_options(
    project: &Project,
    situation: &Situation,
    cancellation: CancellationToken,
) -> Result<TurnOptions, Problem> {
    let text = |value: &Option<String>| value.as_deref().map(Arc::from);
    let mut options = TurnOptions::default().cancellation(cancellation);
    options.skills = skills(project, &situation.skills)?;
    options.principal = text(&situation.whom.principal);
    options.tenant = text(&situation.whom.tenant);
    options.claims = claims(&situation.claims);
    options.conversation = text(&situation.session);
    options.personality = personality(project, situation.personality.as_deref())?;
    options.working_dir = Some(project.root().to_owned());
    options.info.platform = Some("cli".into());
    options.info.agent_id = project.agent_id().cloned();
    let folder = project.root().file_name().unwrap_or_default().to_string_lossy();
    options.info.session_key = Some(match &situation.session {
        Some(session) => format!("cli:{folder}:{session}").into(),
        None => format!("cli:{folder}").into(),
    });
    Ok(options)
}
