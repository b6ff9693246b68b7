//! `mcpServers` files, as editors, desktop apps and agents write them.

use std::{collections::HashSet, path::Path, sync::Arc, time::Duration};

use toolcrib_config::{Diagnostic, Diagnostics, Located, Problems, Spot};
use toolcrib_core::{__internal::composed, Digest};

use super::{
    Transport,
    entry::Entry,
    json::{EXAMPLE, Object, Source, Value, quoted},
    name::ServerName,
    narrow::{self, FileTools, Servers},
    registry::{self, RegistryServer},
    toml_file,
};

/// The servers of a file, by their names in it.
type Entries<'a> = Vec<(Located<&'a str>, Value<'a>)>;

/// A server that a file declares.
pub struct FileServer {
    /// Its name here: the name in the file, with invalid characters of a [`ServerName`] replaced by
    /// `_`.
    pub name: Arc<str>,
    /// Its position.
    pub at: Spot,
    /// Whether the file disables it.
    pub disabled: bool,
    /// The tools that the file allows.
    pub tools: FileTools,
    /// The client with which its authorization server knows the user of the file, if it is declared.
    pub oauth: Option<FileOAuth>,
    /// How long a call may take, and the start.
    pub timeouts: FileTimeouts,
    /// Its transport; `None` if it is invalid, which is recorded, and if the server is disabled and
    /// was not checked.
    pub transport: Option<Transport>,
    /// Secret texts: values of variables, of its environment and of headers with names of secrets.
    pub secrets: Vec<String>,
    /// All errors and probable mistakes of this server; the others can still be used.
    pub problems: Diagnostics,
}

/// Timeouts of a server in a file, in the units of the product whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FileTimeouts {
    /// The timeout of a call.
    pub call: Option<Duration>,
    /// The timeout of the start.
    pub start: Option<Duration>,
}

/// A client that is registered with the authorization server of a server in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileOAuth {
    /// Its id.
    pub client_id: String,
    /// The registered local port of its redirect; any if none is declared.
    pub redirect_port: Option<u16>,
}

/// The content of a file.
#[derive(Debug)]
pub struct ServersFile {
    /// The servers, in the order of the file, including invalid ones.
    pub servers: Vec<FileServer>,
    /// Whether the file has no place for servers at all, which is one of the problems.
    pub lacks_servers: bool,
    /// All errors and probable mistakes of the file or of the names in it; those of a server are in
    /// the server. Parts of the file that may be a secret are not repeated.
    pub problems: Diagnostics,
}

/// Reads a file of servers: `mcpServers` as in `.mcp.json`, `servers` of VS Code, `context_servers`
/// of Zed, `mcp` of opencode, with comments and trailing commas; `mcp_servers` of Codex, in a file
/// that is named `*.toml`; or one server as a `server.json` of the MCP registry.
///
/// `file` is its name in problems. `working_dir` is where its programs run, the base of a
/// relative `cwd`, and the `${workspaceFolder}`; of a file with `projects`, those of this folder
/// and above count. `variables` is the environment that [`expand`](super::expand) uses in commands,
/// arguments, `env`, `cwd`, URLs and headers. `env_file` reads the file of an `envFile`; its error
/// ends a sentence about the file. Keys of other products are ignored with a warning, except for
/// those that restrict a server: they apply, and an unsupported one makes the server unusable.
pub fn read_servers(
    file: &str,
    text: &str,
    working_dir: &Path,
    variables: &dyn Fn(&str) -> Option<String>,
    env_file: &dyn Fn(&Path) -> Result<String, String>,
) -> ServersFile {
    let problems = Problems::new(file);
    // Some editors of Windows write a byte order mark.
    let source = Source::new(file, text.strip_prefix('\u{feff}').unwrap_or(text), &problems);
    let is_toml = Path::new(file).extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
    let root = if is_toml { toml_file::parse(&source) } else { source.parse() };
    let variables = |name: &str| match name {
        "workspaceFolder" | "workspaceRoot" => Some(working_dir.to_string_lossy().into_owned()),
        "workspaceFolderBasename" => {
            Some(working_dir.file_name().unwrap_or_default().to_string_lossy().into_owned())
        }
        "userHome" => variables("HOME"),
        "pathSeparator" => Some(std::path::MAIN_SEPARATOR.to_string()),
        name => variables(name),
    };
    let reader = Reader { file, problems: &problems, working_dir, variables: &variables, env_file };
    let servers = root.as_ref().map(|root| reader.servers(&Value::root(&source, root)));
    let lacks_servers = matches!(servers, Some(None));
    let servers = servers.flatten().unwrap_or_default();
    ServersFile { servers, lacks_servers, problems: problems.into_diagnostics() }
}

/// The help of a file in another format.
pub(super) const FORMATS: &str = "servers are read from JSON, and from the TOML of Codex if the \
    file's name ends in `.toml`; YAML, as of goose, is not read";

/// The inputs to read an entry.
pub(super) struct Reader<'a> {
    file: &'a str,
    problems: &'a Problems,
    pub(super) working_dir: &'a Path,
    pub(super) variables: &'a dyn Fn(&str) -> Option<String>,
    pub(super) env_file: &'a dyn Fn(&Path) -> Result<String, String>,
}

impl Reader<'_> {
    /// The servers; `None` if the file has no place for them, which is recorded.
    fn servers(&self, root: &Value<'_>) -> Option<Vec<FileServer>> {
        let Some(top) = root.object() else { return Some(Vec::new()) };
        if let Some(server) = registry::server_of(root) {
            return Some(self.registered(&server).into_iter().collect());
        }
        let of_project = self.of_projects(&top);
        let is_flat = is_flat(&top);
        let entries = match list_of(&top).filter(|_| !is_flat) {
            None if is_flat => {
                top.entries().filter(|(key, _)| !key.value.starts_with('$')).collect()
            }
            Some(list) => list.object().iter().flat_map(Object::entries).collect(),
            None if of_project.is_empty() => {
                root.refuse("`mcpServers` is missing in this file", EXAMPLE);
                return None;
            }
            None => Vec::new(),
        };
        let ignored = top.entries().find(|(key, _)| key.value == "servers" && !is_flat);
        if let (Some(_), Some((ignored, _))) = (top.value("mcpServers"), ignored) {
            let message = "`servers` is ignored, because the file has `mcpServers` too";
            self.problems.push(Diagnostic::warning(&ignored.at, message));
        }
        let rules = match is_flat {
            true => Servers::default(),
            false => Servers::read(&top, self.working_dir),
        };
        // As in Claude Code, a server of the project replaces one of the user.
        let replaced = |name: &str| of_project.iter().any(|(known, _)| known.value == name);
        let entries: Entries<'_> = entries
            .into_iter()
            .filter(|(name, _): &(Located<&str>, _)| !replaced(name.value))
            .collect();
        let all: Entries<'_> = of_project.iter().cloned().chain(entries).collect();
        let names: HashSet<&str> = all.iter().map(|(name, _)| name.value).collect();
        let mut taken: HashSet<String> = HashSet::new();
        let mut servers: Vec<FileServer> = Vec::new();
        for (written, value) in all.iter().cloned() {
            let is_taken = |name: &str| {
                taken.contains(&name.to_ascii_lowercase())
                    || name != written.value && names.contains(name)
            };
            let name = self.name(&written, is_taken);
            if !taken.insert(name.to_ascii_lowercase()) {
                let message = format!("{} would be named `{name}` here", quoted(written.value));
                self.refuse(&written.at, message, "rename it");
                continue;
            }
            servers.push(self.server(name, written, &value, &rules));
        }
        Some(servers)
    }

    /// The servers of `projects` for this folder and those above it, the nearest first.
    fn of_projects<'v>(&self, top: &Object<'v>) -> Entries<'v> {
        let Some(projects) = top.value("projects").and_then(|value| value.object_silently()) else {
            return Vec::new();
        };
        let mut here: Vec<_> = projects
            .entries()
            .filter(|(path, _)| self.working_dir.starts_with(path.value))
            .collect();
        here.sort_by_key(|(path, _)| std::cmp::Reverse(path.value.len()));
        let mut found: Entries<'v> = Vec::new();
        for (_, project) in here {
            let project = project.object_silently();
            let list = project.and_then(|project| project.value("mcpServers"));
            for (name, value) in
                list.and_then(|list| list.object()).iter().flat_map(Object::entries)
            {
                if !found.iter().any(|(known, _)| known.value == name.value) {
                    found.push((name, value));
                }
            }
        }
        found
    }

    /// The server of a `server.json`.
    fn registered(&self, server: &Value<'_>) -> Option<FileServer> {
        let object = server.object()?;
        let (written, value) = object.entries().find(|(key, _)| key.value == "name")?;
        let short = registry::short_name(value.text()?);
        let name = self.name(&Located { value: short, at: written.at.clone() }, |_| false);
        let problems = Problems::new(self.file);
        let source = server.source(&problems);
        let mut registered = RegistryServer { variables: self.variables, secrets: Vec::new() };
        let transport = registered.transport(&server.in_source(&source));
        let transport = transport.map(|transport| match transport {
            Transport::Stdio(stdio) => stdio.working_dir(self.working_dir).into(),
            http @ Transport::Http(_) => http,
        });
        let secrets = registered.secrets;
        drop(source);
        Some(FileServer {
            name,
            at: written.at,
            disabled: false,
            tools: FileTools::default(),
            oauth: None,
            timeouts: FileTimeouts::default(),
            transport,
            secrets,
            problems: problems.into_diagnostics(),
        })
    }

    /// The name of a server here: invalid characters become one `_`. A name that would be too long, lose
    /// letters or differ from that of another server at most by case ends in digits of a digest.
    fn name(&self, written: &Located<&str>, is_taken: impl Fn(&str) -> bool) -> Arc<str> {
        let own = &*composed(written.value);
        let is_usable = |name: &str| ServerName::new(name).is_ok() && !is_taken(name);
        if is_usable(own) {
            return own.into();
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let words = own.split(|c| !is_plain(c)).filter(|word| !word.is_empty());
        let mut name = words.collect::<Vec<_>>().join("_");
        let loses_letters = own.chars().any(|c| c.is_alphanumeric() && !c.is_ascii());
        if loses_letters || !is_usable(&name) {
            name = with_digest(name, own);
        }
        let message = format!("{} is named `{name}` here", quoted(own));
        self.problems.push(Diagnostic::warning(&written.at, message));
        name.into()
    }

    fn server(
        &self,
        name: Arc<str>,
        written: Located<&str>,
        value: &Value<'_>,
        rules: &Servers<'_>,
    ) -> FileServer {
        let problems = Problems::new(self.file);
        let mut server = FileServer {
            name,
            at: written.at,
            disabled: !rules.uses(written.value),
            tools: FileTools::default(),
            oauth: None,
            timeouts: FileTimeouts::default(),
            transport: None,
            secrets: Vec::new(),
            problems: Diagnostics::default(),
        };
        self.fill(&mut server, written.value, value, rules, &problems);
        server.problems = problems.into_diagnostics();
        server
    }

    fn fill(
        &self,
        server: &mut FileServer,
        written: &str,
        value: &Value<'_>,
        rules: &Servers<'_>,
        problems: &Problems,
    ) {
        let source = value.source(problems);
        let value = value.in_source(&source);
        let Some(object) = value.object() else { return };
        server.disabled |= narrow::is_disabled(&object);
        if !server.disabled {
            server.tools = FileTools::read(&object, written);
            rules.denied(written).apply(&mut server.tools, &value);
            rules.unsupported().iter().for_each(|problem| problems.push(problem.clone()));
            let mut entry = Entry::new(self, problems, written, object);
            entry.warn_of_other_keys();
            server.oauth = entry.oauth();
            server.timeouts = entry.timeouts(self.unit(rules.is_zed()));
            server.transport = entry.transport(&value);
            server.secrets = entry.secrets;
        }
    }

    /// The unit of `timeout` in this file.
    fn unit(&self, is_zed: bool) -> Unit {
        let path = self.file.replace('\\', "/").to_ascii_lowercase();
        let is_of = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
        if is_zed || is_of(&["cline", ".roo/", "roo-cline", "roo_code", "mcp_settings.json"]) {
            Unit::Seconds
        } else if is_of(&[".gemini", ".claude", ".mcp.json", ".amazonq", ".kiro", ".qwen"]) {
            Unit::Milliseconds
        } else if is_of(&["opencode"]) {
            Unit::OfListing
        } else {
            Unit::Unknown
        }
    }

    fn refuse(&self, at: &Spot, message: String, help: &str) {
        self.problems.push(Diagnostic::error(at, message).help(help));
    }
}

/// A name that begins as `name`, and ends in digits of the digest of what is `written`.
pub fn with_digest(mut name: String, written: &str) -> String {
    const DIGITS: usize = 8;
    name.truncate(ServerName::MAX - DIGITS - 1);
    let begin = match name.trim_end_matches('_') {
        "" => "server",
        begin => begin,
    };
    let digest = Digest::of(written).to_string();
    format!("{begin}_{}", digest.get(..DIGITS).unwrap_or_default())
}

/// The unit of a `timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    /// It limits the listing of tools, in milliseconds.
    OfListing,
    /// Of a product that the name of the file does not tell.
    Unknown,
}

/// Whether a file is a list of servers without a key around it, as plugins have it.
fn is_flat(top: &Object<'_>) -> bool {
    let is_server = |value: &Value<'_>| {
        let entry = value.object_silently();
        let has = |key: &str, is_reach: fn(&Value<'_>) -> bool| {
            entry.as_ref().and_then(|entry| entry.value(key)).is_some_and(|value| is_reach(&value))
        };
        let is_text = |value: &Value<'_>| value.text_silently().is_some();
        has("command", |command| command.is_list() || command.text_silently().is_some())
            || ["url", "serverUrl", "httpUrl"].iter().any(|key| has(key, is_text))
    };
    let mut entries = top.entries().filter(|(key, _)| !key.value.starts_with('$')).peekable();
    entries.peek().is_some() && entries.all(|(_, value)| is_server(&value))
}

/// The servers of a file, under the key of its product.
fn list_of<'a>(top: &Object<'a>) -> Option<Value<'a>> {
    let names = ["mcpServers", "servers", "context_servers", "mcp_servers"];
    let settings = || top.value("mcp")?.object_silently();
    let of_opencode = || {
        let servers = settings()?;
        let is_server = servers.entries().any(|(_, value)| value.is_object());
        is_server.then(|| top.value("mcp"))?
    };
    names
        .iter()
        .find_map(|name| top.value(name))
        .or_else(|| settings()?.value("servers"))
        .or_else(of_opencode)
}

// Without the values of secrets.
toolcrib_core::__internal::debug_fields!(FileServer { name, at, disabled, transport, .. });
