//! `[mcp.NAME]`: an MCP server, or settings for a server that a file declares.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use toolcrib_config::{Diagnostic, Located, Spot, Table, Value};
use toolcrib_core::{ListOrder, ToolBuilder};
use toolcrib_engine::OnFailure;
use toolcrib_mcp::{Handshake, ServerName, SessionScope};
use toolcrib_tools::{
    MAX_RESULT_CHARS,
    command::{ProcessLimitsSection, SandboxSection},
};

use super::{
    remote::{read_on_failure, read_order, read_unfenced},
    secrets::secret_reference,
    text::Text,
};

/// The permitted number of concurrent sessions of a server.
const SESSIONS: RangeInclusive<usize> = 1..=1024;

/// The keys for programs only. Keys that also apply to a server of a file are checked where its
/// kind is known.
const OF_PROGRAMS: [&str; 3] = ["args", "env", "cwd"];
/// The keys for endpoints only.
const OF_ENDPOINTS: [&str; 1] = ["headers"];

/// A section.
#[derive(Debug)]
pub(crate) struct McpSection {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) transport: TransportSection,
    /// The callers with their own credentials.
    pub(crate) callers: Vec<CallerSection>,
    pub(crate) settings: McpSettings,
}

/// `[[mcp.NAME.caller]]`: the credentials of one caller.
#[derive(Debug)]
pub(crate) struct CallerSection {
    pub(crate) at: Spot,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) tenant: Option<Arc<str>>,
    /// Headers or variables.
    pub(crate) pairs: Vec<Pair>,
}

/// The transport of the server.
#[derive(Debug)]
pub(crate) enum TransportSection {
    Program(ProgramSection),
    Endpoint(EndpointSection),
    /// Declared by a file.
    OfFile,
    /// Invalid; the problem is recorded.
    Broken,
}

/// A server that is a program.
#[derive(Debug)]
pub(crate) struct ProgramSection {
    pub(crate) command: Text,
    pub(crate) args: Vec<Text>,
    pub(crate) env: Vec<Pair>,
    pub(crate) cwd: Option<Text>,
}

/// A server at a URL.
#[derive(Debug)]
pub(crate) struct EndpointSection {
    pub(crate) url: Text,
    pub(crate) headers: Vec<Pair>,
}

/// An environment variable or a header.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) value: Text,
}

/// Settings of a server, wherever it is declared.
#[derive(Debug, Default)]
pub(crate) struct McpSettings {
    pub(crate) trusted: Option<bool>,
    pub(crate) on_failure: Option<OnFailure>,
    /// Whether its tools are deferred.
    pub(crate) defer: bool,
    /// The alternative servers that rules may query, in order.
    pub(crate) alternatives: Vec<Located<Arc<str>>>,
    pub(crate) include: Option<Vec<Arc<str>>>,
    pub(crate) exclude: Vec<Arc<str>>,
    /// The tools with another name or description here.
    pub(crate) tools: Vec<McpToolSection>,
    pub(crate) order: ListOrder,
    /// The lint rules whose findings withhold no tool.
    pub(crate) lint_allow: Vec<Located<Arc<str>>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) start_timeout: Option<Duration>,
    pub(crate) list_timeout: Option<Duration>,
    pub(crate) max_result_chars: Option<usize>,
    /// The only handshake to try.
    pub(crate) handshake: Option<Handshake>,
    pub(crate) session: Option<SessionScope>,
    /// Whether its definitions are pinned. Default: yes.
    pub(crate) pin: Option<bool>,
    /// Whether its skills are offered.
    pub(crate) skills: bool,
    /// Whether its texts are not fenced for clients of a gateway.
    pub(crate) unfenced: bool,
    /// The prefix of its names for clients of a gateway.
    pub(crate) prefix: Option<Arc<str>>,
    pub(crate) max_sessions: Option<usize>,
    pub(crate) limits: ProcessLimitsSection,
    pub(crate) allow_stray_children: Option<Located<bool>>,
    pub(crate) sandbox: SandboxSection,
    pub(crate) allow_addresses: Vec<Located<Arc<str>>>,
    pub(crate) auth: Option<AuthSection>,
}

/// `[mcp.NAME.tool.TOOL]`: the name of one tool of the server here, and the description that models read.
#[derive(Debug)]
pub(crate) struct McpToolSection {
    /// The server's own name.
    pub(crate) own: Arc<str>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) description: Option<Arc<str>>,
}

/// `auth`: how tokens for a server at a URL are got.
#[derive(Debug)]
pub(crate) struct AuthSection {
    pub(crate) at: Spot,
    pub(crate) client_id: Option<Text>,
    /// A reference to a secret.
    pub(crate) client_secret: Option<Text>,
    pub(crate) issuer: Option<Text>,
    pub(crate) scopes: Vec<Located<Arc<str>>>,
    pub(crate) redirect_port: Option<u16>,
    pub(crate) client_credentials: bool,
}

impl McpSection {
    pub(crate) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(servers) = file.value("mcp").and_then(|value| value.entries("`[mcp]`")) else {
            return Vec::new();
        };
        servers.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "write `[mcp.NAME]`, with a name of your choice, and below it `command` for \
                        a program, or `url`";
            value.refuse(format!("`{}` is not an MCP server", name.value), help);
            return None;
        }
        if let Err(error) = ServerName::new(Arc::clone(&name.value)) {
            value.problems().push(Diagnostic::error(&name.at, error.to_string()));
        }
        let what = format!("`[mcp.{}]`", name.value);
        value.table(&what, |table| {
            let settings = McpSettings::read(table);
            let transport = TransportSection::read(table);
            let callers = CallerSection::read_all(table, &transport);
            Self { transport, callers, settings, name }
        })
    }

    /// The texts that may contain secrets.
    pub(crate) fn secret_texts(&self) -> impl Iterator<Item = &Text> {
        let pairs = match &self.transport {
            TransportSection::Program(program) => program.env.as_slice(),
            TransportSection::Endpoint(endpoint) => endpoint.headers.as_slice(),
            TransportSection::OfFile | TransportSection::Broken => &[],
        };
        let of_callers = self.callers.iter().flat_map(|caller| &caller.pairs);
        let of_auth = self.settings.auth.as_ref().and_then(|auth| auth.client_secret.as_ref());
        pairs.iter().chain(of_callers).map(|pair| &pair.value).chain(of_auth)
    }
}

impl CallerSection {
    fn read_all(table: &Table<'_>, transport: &TransportSection) -> Vec<Self> {
        let Some(callers) = table.value("caller") else { return Vec::new() };
        let (key, other): (_, (&[&'static str], _)) = match transport {
            TransportSection::Program(_) => ("env", (&OF_ENDPOINTS, "`url`")),
            TransportSection::Endpoint(_) => ("headers", (&["env"], "`command`")),
            TransportSection::Broken => return Vec::new(),
            TransportSection::OfFile => {
                let help = "declare the server here, with `command` or `url`";
                callers.refuse("callers of a server of a file cannot differ", help);
                return Vec::new();
            }
        };
        callers.tables("`[[mcp.NAME.caller]]`", |table| {
            refuse_others(table, other.0, other.1);
            Self {
                at: table.at().clone(),
                principal: table.text("principal").map(|text| text.value),
                tenant: table.text("tenant").map(|text| text.value),
                pairs: pairs(table, key).unwrap_or_default(),
            }
        })
    }
}

impl TransportSection {
    fn read(table: &Table<'_>) -> Self {
        let (command, url) = (table.value("command"), table.value("url"));
        table.explain("working_dir", "the key is `cwd`, as in `mcpServers` files");
        table.explain("program", "the key is `command`, as in `mcpServers` files");
        table.explain("disabled", "remove the section, or comment it out");
        table.explain("type", "it follows from `command` or `url`");
        match (command, url) {
            (Some(_), Some(url)) => {
                url.refuse("`command` and `url` both say where the server is", "keep one of them");
                let _ = (pairs(table, "env"), pairs(table, "headers"), texts(table, "args"));
                let _ = table.value("cwd");
                Self::Broken
            }
            (Some(command), None) => {
                refuse_others(table, &OF_ENDPOINTS, "`url`");
                let (args, env) = (texts(table, "args"), pairs(table, "env"));
                let cwd = table.value("cwd").map(|cwd| Text::read(&cwd));
                match (Text::read(&command), args, env, cwd) {
                    (Some(command), Some(args), Some(env), cwd) if !matches!(cwd, Some(None)) => {
                        let cwd = cwd.flatten();
                        Self::Program(ProgramSection { command, args, env, cwd })
                    }
                    _ => Self::Broken,
                }
            }
            (None, Some(url)) => {
                refuse_others(table, &OF_PROGRAMS, "`command`");
                match (Text::read(&url), pairs(table, "headers")) {
                    (Some(url), Some(headers)) => Self::Endpoint(EndpointSection { url, headers }),
                    _ => Self::Broken,
                }
            }
            (None, None) => {
                for key in ["args", "env", "cwd", "headers"] {
                    if let Some(value) = table.value(key) {
                        let help = "without `command` and `url` a section only changes settings \
                            of a server that a file of `mcp_files` declares";
                        value.refuse(format!("`{key}` has no effect alone"), help);
                    }
                }
                Self::OfFile
            }
        }
    }
}

/// Refuses keys of the other kind of server.
fn refuse_others(table: &Table<'_>, keys: &[&'static str], owner: &str) {
    for key in keys {
        if let Some(value) = table.value(key) {
            value.refuse(format!("`{key}` is only for a server with {owner}"), "remove it");
        }
    }
}

fn texts(table: &Table<'_>, key: &'static str) -> Option<Vec<Text>> {
    let Some(list) = table.value(key) else { return Some(Vec::new()) };
    list.items()?.iter().map(Text::read_any).collect()
}

fn pairs(table: &Table<'_>, key: &'static str) -> Option<Vec<Pair>> {
    let Some(value) = table.value(key) else { return Some(Vec::new()) };
    let entries = value.entries(&format!("`{key}`"))?;
    let pairs: Vec<_> = entries
        .rest()
        .map(|(name, value)| Some(Pair { name, value: Text::read_any(&value)? }))
        .collect();
    pairs.into_iter().collect()
}

impl McpSettings {
    fn read(table: &Table<'_>) -> Self {
        Self {
            trusted: table.boolean("trusted"),
            on_failure: read_on_failure(table),
            alternatives: table.texts("alternatives"),
            include: table.has("include").then(|| globs(table, "include")),
            exclude: globs(table, "exclude"),
            tools: McpToolSection::read_all(table),
            defer: table.boolean("defer").unwrap_or_default(),
            order: read_order(table),
            lint_allow: table.texts("lint_allow"),
            timeout: table.duration("timeout"),
            start_timeout: table.duration("start_timeout"),
            list_timeout: table.duration("list_timeout"),
            max_result_chars: table
                .integer("max_result_chars", ToolBuilder::MIN_RESULT_CHARS..=MAX_RESULT_CHARS),
            handshake: table
                .value("protocol")
                .and_then(|value| {
                    value.word(&[
                        ("2025-11-25", Handshake::Initialize),
                        ("2026-07-28", Handshake::Discover),
                    ])
                })
                .map(|word| word.value),
            session: table
                .value("session")
                .and_then(|value| {
                    value.word(&[
                        ("principal", SessionScope::Principal),
                        ("client", SessionScope::Client),
                        ("shared", SessionScope::Shared),
                    ])
                })
                .map(|word| word.value),
            pin: table.boolean("pin"),
            skills: table.boolean("skills").unwrap_or_default(),
            unfenced: read_unfenced(table),
            prefix: prefix(table),
            max_sessions: table.integer("max_sessions", SESSIONS),
            limits: ProcessLimitsSection::read(table),
            allow_stray_children: table
                .value("allow_stray_children")
                .and_then(|value| value.boolean()),
            sandbox: SandboxSection::read(table),
            allow_addresses: table
                .value("allow_addresses")
                .and_then(|addresses| addresses.items())
                .map(|addresses| addresses.iter().filter_map(Value::text).collect())
                .unwrap_or_default(),
            auth: table.value("auth").and_then(|auth| {
                let at = auth.at();
                auth.table("`auth`", |table| AuthSection::read(table, at))
            }),
        }
    }
}

impl McpToolSection {
    fn read_all(table: &Table<'_>) -> Vec<Self> {
        let tools = table.value("tool").and_then(|tools| tools.entries("`[mcp.NAME.tool]`"));
        let Some(tools) = tools else { return Vec::new() };
        let tool = |(own, value): (Located<Arc<str>>, Value<'_>)| {
            let what = format!("`[mcp.NAME.tool.{}]`", own.value);
            value.table(&what, |table| {
                table.explain("rename", "the key is `name`");
                let text = |key| table.text(key).map(|text| text.value);
                Self { own: own.value, name: text("name"), description: text("description") }
            })
        };
        tools.rest().filter_map(tool).collect()
    }
}

impl AuthSection {
    /// The texts that may contain variables and secrets.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Text> {
        self.client_id.iter().chain(&self.client_secret).chain(&self.issuer)
    }

    fn read(table: &Table<'_>, at: Spot) -> Self {
        let text = |key| table.value(key).and_then(|value| Text::read(&value));
        table.explain("scope", "the key is `scopes`, a list");
        Self {
            at,
            client_id: text("client_id"),
            client_secret: table.value("client_secret").and_then(|value| {
                secret_reference(&value, "client_secret")?;
                Text::read(&value)
            }),
            issuer: text("issuer"),
            scopes: table.texts("scopes"),
            redirect_port: table.integer("redirect_port", 1..=u16::MAX),
            client_credentials: table
                .value("grant")
                .and_then(|value| {
                    value.word(&[("authorization_code", false), ("client_credentials", true)])
                })
                .is_some_and(|word| word.value),
        }
    }
}

/// The characters of a prefix, which leave room for the tool's name.
const LONGEST_PREFIX: usize = 32;

fn prefix(table: &Table<'_>) -> Option<Arc<str>> {
    let value = table.value("prefix")?;
    let prefix = value.any_text()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let problem = if !prefix.value.chars().all(is_plain) || prefix.value.len() > LONGEST_PREFIX {
        "cannot begin the names of tools"
    } else if prefix.value.starts_with("mcp__") {
        "claims a server"
    } else {
        return Some(prefix.value);
    };
    let help = format!(
        "use up to {LONGEST_PREFIX} of a-z A-Z 0-9 _ -, \"\" for none; without the key it is \
         `mcp__NAME__`"
    );
    value.refuse(format!("`prefix` {:?} {problem}", &*prefix.value), help);
    None
}

fn globs(table: &Table<'_>, key: &'static str) -> Vec<Arc<str>> {
    table.texts(key).into_iter().map(|glob| glob.value).collect()
}
