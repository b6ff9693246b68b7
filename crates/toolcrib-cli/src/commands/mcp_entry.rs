//! `toolcrib mcp add`, `remove` and `get`: one `[mcp.NAME]` of the project's file.

use std::{path::PathBuf, sync::Arc};

use serde_json::{Map, Value, json};
use toolcrib_core::CancellationToken;
use toolcrib_mcp::{
    ServerName,
    server::{is_secret_header, is_secret_variable},
};
use toolcrib_project::PROJECT_FILE;

use crate::{
    args::{GlobalArgs, McpAddArgs, OfflineArgs},
    clients::{CurrentFile, EditError, Format, put, read, with_entry, without_entry},
    exit::{self, Exit},
    host::{
        server_words::{self, Target},
        servers::find,
    },
    output,
    problem::Problem,
    project::{
        load::{ChosenModel, Purpose, blocking, project_folder, with_project},
        own_edit::OwnEdit,
    },
};

/// The table of servers.
const KEY: &str = "mcp";

pub(super) async fn add(
    global: &GlobalArgs,
    args: McpAddArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    ServerName::new(&*args.name).map_err(|error| Problem::usage(error.to_string()))?;
    let file = ProjectToml::read(global)?;
    let edited = with_entry(Format::Toml, &file.now.text, KEY, &args.name, &entry(&args)?);
    let (text, known) = edited.map_err(|error| file.unfit(&error))?;
    if known.is_some() && !args.replace {
        return Err(Problem::usage(format!(
            "{} has `[mcp.{}]` already; choose another name, or add `--replace`",
            file.path.display(),
            args.name
        )));
    }
    file.put(global, &text, &cancellation).await?;
    output::server_entry("added", &args.name, &file.path, None, global.json);
    Ok(exit::FINE)
}

pub(super) async fn remove(
    global: &GlobalArgs,
    name: &str,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let file = ProjectToml::read(global)?;
    let removed = without_entry(Format::Toml, &file.now.text, KEY, name);
    let Some((text, _)) = removed.map_err(|error| file.unfit(&error))? else {
        return Err(file.missing(global, name, &cancellation).await);
    };
    file.put(global, &text, &cancellation).await?;
    output::server_entry("removed", name, &file.path, None, global.json);
    Ok(exit::FINE)
}

pub(super) async fn get(
    global: &GlobalArgs,
    name: &str,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let file = ProjectToml::read(global)?;
    let found = without_entry(Format::Toml, &file.now.text, KEY, name);
    let Some((_, entry)) = found.map_err(|error| file.unfit(&error))? else {
        return Err(file.missing(global, name, &cancellation).await);
    };
    let entry = without_values(entry);
    output::server_entry("declared", name, &file.path, Some(&entry), global.json);
    Ok(exit::FINE)
}

/// The entry of a server. A secret is never written as it is.
fn entry(args: &McpAddArgs) -> Result<Value, Problem> {
    let target = Target::of(&args.words)?;
    let mut pairs = Map::new();
    for pair in &args.set {
        let (name, value) = server_words::pair(pair)?;
        let is_secret =
            if target.is_url() { is_secret_header(name) } else { is_secret_variable(name) };
        if is_secret && !is_placeholder(value) {
            return Err(Problem::usage(format!(
                "`--set {name}`: a secret is not written to the project; set a variable of the \
                 environment, and write `{name}=${{VARIABLE}}`"
            )));
        }
        pairs.insert(name.to_owned(), value.into());
    }
    let mut entry = Map::new();
    match &target {
        Target::Url(url) => {
            entry.insert("url".to_owned(), json!(url));
        }
        Target::Program(first, rest) => {
            entry.insert("command".to_owned(), json!(first));
            if !rest.is_empty() {
                entry.insert("args".to_owned(), json!(rest));
            }
        }
    }
    if !pairs.is_empty() {
        entry.insert(if target.is_url() { "headers" } else { "env" }.to_owned(), pairs.into());
    }
    Ok(entry.into())
}

/// Whether a text is filled in when the project is loaded.
fn is_placeholder(value: &str) -> bool {
    ["${", "{secret:"].iter().any(|part| value.contains(part)) || value.starts_with("secret:")
}

/// The entry with `…` in place of values that may be secrets.
fn without_values(mut entry: Value) -> Value {
    for key in ["env", "headers"] {
        let values = entry.get_mut(key).and_then(Value::as_object_mut);
        for (_, value) in values.into_iter().flatten() {
            if !value.as_str().is_some_and(is_placeholder) {
                *value = "…".into();
            }
        }
    }
    if let Some(url) = entry.get_mut("url")
        && let Some((plain, query)) = url.as_str().and_then(|url| url.split_once('?'))
        && !is_placeholder(query)
    {
        *url = format!("{plain}?…").into();
    }
    entry
}

/// The project's file.
struct ProjectToml {
    dir: PathBuf,
    path: PathBuf,
    now: CurrentFile,
}

impl ProjectToml {
    fn read(global: &GlobalArgs) -> Result<Self, Problem> {
        let dir = project_folder(global)?
            .ok_or_else(|| Problem::usage("name a project with `--project DIR`"))?;
        let path = dir.join(PROJECT_FILE);
        // A link stays one.
        let path = path.canonicalize().unwrap_or(path);
        let now = read(&path)?.ok_or_else(|| {
            Problem::usage(format!("there is no {PROJECT_FILE} in {}", dir.display()))
        })?;
        Ok(Self { dir, path, now })
    }

    /// Replaces the file, and restores it if the project cannot be loaded then.
    async fn put(
        &self,
        global: &GlobalArgs,
        text: &str,
        cancellation: &CancellationToken,
    ) -> Result<(), Problem> {
        let (dir, cancel) = (self.dir.clone(), cancellation.clone());
        let edit = blocking(move || Arc::new(OwnEdit::of(&dir, &cancel))).await?;
        let trust = async || {
            let edit = Arc::clone(&edit);
            blocking(move || edit.trust()).await
        };
        put(&self.path, Some(&self.now), Some(text), self.now.mode)?;
        trust().await?;
        let look = Purpose::Look(OfflineArgs { offline: true });
        let loaded =
            with_project(global, look, ChosenModel::default(), cancellation, async |_| Ok(()));
        if let Err(problem) = loaded.await {
            let written = CurrentFile { text: text.to_owned(), mode: self.now.mode };
            put(&self.path, Some(&written), Some(&self.now.text), self.now.mode)?;
            trust().await?;
            return Err(problem);
        }
        Ok(())
    }

    /// The error for a server that the file does not declare.
    async fn missing(
        &self,
        global: &GlobalArgs,
        name: &str,
        cancellation: &CancellationToken,
    ) -> Problem {
        let look = Purpose::Look(OfflineArgs { offline: true });
        let elsewhere =
            with_project(global, look, ChosenModel::default(), cancellation, async |project| {
                find(project, name).map(|server| server.origin().to_owned())
            });
        match elsewhere.await {
            Ok(origin) => Problem::usage(format!(
                "`{name}` is declared at {origin}, not in {PROJECT_FILE}; edit that file"
            )),
            Err(problem) => problem,
        }
    }

    fn unfit(&self, error: &EditError) -> Problem {
        Problem::failed(
            "file_invalid",
            format!("{} {error}; nothing was written", self.path.display()),
        )
    }
}
