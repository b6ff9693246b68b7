//! The engine and the turns of a command, and the options by which another command does the same.

use std::{fmt::Write as _, path::Path, sync::Arc};

use toolcrib_config::suggest;
use toolcrib_core::{CancellationToken, SkillId};
use toolcrib_engine::{DEFAULT_PERSONALITY, Engine, TurnOptions};
use toolcrib_project::Project;

use crate::{
    args::{Claim, GlobalArgs, ModelArgs, Situation, claims},
    output,
    problem::Problem,
};

/// The options by which another command finds the same project.
pub(crate) fn project_flags(global: &GlobalArgs) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, path: &Path| {
        let _ = write!(flags, " {flag} {}", output::shell_word(path));
    };
    global.project.iter().for_each(|path| push("--project", path));
    global.state.iter().for_each(|path| push("--state", path));
    // The URL may contain a password.
    global.store.iter().for_each(|_| push("--store", Path::new("URL")));
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
pub(crate) fn whom_flags(principal: Option<&str>, tenant: Option<&str>) -> String {
    given_flags([("--as", principal), ("--tenant", tenant)])
}

/// The options by which another command uses the same model.
pub(crate) fn model_flags(model: &ModelArgs) -> String {
    given_flags([("--model", model.model.as_deref()), ("--base-url", model.base_url.as_deref())])
}

/// The options by which another command has the same claims, which are not stored.
pub(crate) fn claim_flags(claims: &[Claim]) -> String {
    let claims = claims.iter().map(|claim| format!("{}={}", claim.name, claim.value));
    claims.map(|claim| given_flags([("--claim", Some(claim.as_str()))])).collect()
}

fn given_flags<const N: usize>(flags: [(&str, Option<&str>); N]) -> String {
    let given = flags.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
    given.map(|(flag, value)| format!(" {flag} {}", output::shell_word(Path::new(value)))).collect()
}

pub(crate) fn engine(project: &Project) -> Result<Engine, Problem> {
    project.engine_builder().build().map_err(|error| Problem::invalid(error.to_string()))
}

/// Exports the spans of an engine, if the program is built with OTLP and the environment names an
/// endpoint.
pub(crate) fn export_spans(engine: &Engine) -> Result<(), Problem> {
    #[cfg(feature = "otlp")]
    return crate::otlp::export(engine.events());
    #[cfg(not(feature = "otlp"))]
    {
        let _ = engine;
        Ok(())
    }
}

/// Resolves the named skills.
pub(crate) fn skills(project: &Project, names: &[String]) -> Result<Vec<SkillId>, Problem> {
    let unknown = |name: &str| {
        let left_out = format!("skill `{name}` is left out");
        let mut warnings = project.warnings().iter();
        if let Some(warning) = warnings.find(|one| one.message.starts_with(&left_out)) {
            let message =
                format!("{}: `{}`; `toolcrib check` says why", warning.message, warning.file);
            return Problem::usage(message);
        }
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
pub(crate) fn personality(
    project: &Project,
    name: Option<&str>,
) -> Result<Option<Arc<str>>, Problem> {
    let Some(name) = name else { return Ok(None) };
    let mut known: Vec<_> = project.personalities().map(|one| &*one.id).collect();
    if !known.contains(&DEFAULT_PERSONALITY) {
        known.insert(0, DEFAULT_PERSONALITY);
    }
    if known.contains(&name) {
        return Ok(Some(name.into()));
    }
    let help = suggest::help(name, "personalities", known);
    Err(Problem::usage(format!("unknown personality {}; {help}", suggest::quoted([name]))))
}

pub(crate) fn turn_options(
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
