//! The servers of a file of an MCP client, for a new project: only those, and only the usable ones.

use std::{
    env,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toolcrib_mcp::server::{
    FileServer, ServerTarget, ServersFile, is_secret_header, is_secret_variable, read_servers,
};

/// Written in place of the `${` of a variable, so that it is not expanded.
const VARIABLE: char = '\u{e000}';

/// The servers of a file.
pub(super) struct ImportedServers {
    /// A file of `mcpServers` with the usable ones.
    pub(super) text: String,
    /// Their names.
    pub(super) names: Vec<String>,
    /// The others, each with the reason.
    pub(super) left_out: Vec<(String, String)>,
    /// The variables and headers with names of secrets whose values are in the file, each with its
    /// server.
    pub(super) secrets: Vec<String>,
}

/// Reads the servers of a file. `None` if it has none. Their programs run where the client would start
/// them: a project is another folder, from which their folder is `seen` as another path.
pub(super) fn imported(
    source: &Path,
    text: &str,
    seen: impl Fn(&Path) -> PathBuf,
) -> Option<ImportedServers> {
    let folder = client_folder(source);
    let shown = source.file_name().unwrap_or_default().to_string_lossy();
    let read = |text: &str, variables: &dyn Fn(&str) -> Option<String>| {
        let env_file = |_: &Path| Err("is not copied to the project; write `env`".to_owned());
        read_servers(&shown, text, &folder, variables, &env_file)
    };
    let ServersFile { servers, .. } = read(text, &|name| env::var(name).ok());
    // The folder is known only here; all other variables are expanded whenever the project is loaded.
    let masked = text.replace("${", &VARIABLE.to_string());
    let masked = masked.replace(&format!("{VARIABLE}workspace"), "${workspace");
    let of_variable = |name: &str| env::var_os(name).map(|_| format!("{VARIABLE}{name}}}"));
    let written = read(&masked, &of_variable).servers;
    if servers.is_empty() {
        return None;
    }
    let (mut entries, mut left_out, mut secrets) = (Map::new(), Vec::new(), Vec::new());
    for (server, written) in servers.into_iter().zip(written) {
        let name = server.name.to_string();
        match reason_against(&server) {
            Some(reason) => left_out.push((name, reason)),
            None => {
                let entry = entry(&written, &folder, &seen, &mut secrets);
                entries.extend(entry.map(|entry| (name, entry)));
            }
        }
    }
    let names = entries.keys().cloned().collect();
    let text = format!("{:#}\n", json!({ "mcpServers": entries }));
    Some(ImportedServers { text: text.replace(VARIABLE, "${"), names, left_out, secrets })
}

/// The folders in which clients keep their files.
const CLIENT_FOLDERS: [&str; 6] = [".vscode", ".cursor", ".zed", ".gemini", ".codex", ".copilot"];

/// The folder in which a client starts the programs of its file: that of the file, or of a file in a
/// folder such as `.vscode` the one around it.
fn client_folder(file: &Path) -> PathBuf {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(&file);
    let is_of_client = CLIENT_FOLDERS.iter().any(|name| folder.ends_with(name));
    folder.parent().filter(|_| is_of_client).unwrap_or(folder).to_owned()
}

fn reason_against(server: &FileServer) -> Option<String> {
    if server.disabled {
        return Some("it is disabled there".to_owned());
    }
    if let Some(error) = server.problems.errors().next() {
        let help = error.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        return Some(format!("{}{help}", error.message));
    }
    let checked = server.transport.as_ref().map(|transport| transport.check(&server.name));
    checked.and_then(|checked| Some(checked.err()?.to_string()))
}

/// The entry of a server, and the names of its secrets that have values in the file.
fn entry(
    server: &FileServer,
    folder: &Path,
    seen: impl Fn(&Path) -> PathBuf,
    secrets: &mut Vec<String>,
) -> Option<Value> {
    let mut learn = |pairs: &[(String, String)], is_secret: fn(&str) -> bool| {
        let literal =
            |(name, value): &&(String, String)| is_secret(name) && !value.contains(VARIABLE);
        let found = pairs.iter().filter(literal);
        secrets.extend(found.map(|(name, _)| format!("{name} of {}", server.name)));
        pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>()
    };
    let mut entry = match server.transport.as_ref()?.target() {
        ServerTarget::Program { command, args, env, working_dir } => {
            let cwd = working_dir.unwrap_or(folder);
            // A path that begins with a variable is not relative to the folder.
            let own = cwd.strip_prefix(folder).ok().and_then(Path::to_str);
            let cwd = match own.filter(|own| own.starts_with(VARIABLE)) {
                Some(own) => PathBuf::from(own),
                None => seen(cwd),
            };
            let env = learn(env, is_secret_variable);
            json!({ "command": command, "args": args, "env": env, "cwd": cwd })
        }
        ServerTarget::Endpoint { url, headers } => {
            json!({ "type": "http", "url": url, "headers": learn(headers, is_secret_header) })
        }
        _ => return None,
    };
    let fields = entry.as_object_mut()?;
    fields.retain(|_, value| *value != json!([]) && *value != json!({}));
    if let Some(only) = &server.tools.only {
        fields.insert("includeTools".to_owned(), json!(only));
    }
    if !server.tools.except.is_empty() {
        fields.insert("excludeTools".to_owned(), json!(server.tools.except));
    }
    Some(entry)
}
