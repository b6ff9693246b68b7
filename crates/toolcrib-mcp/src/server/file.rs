//! `mcpServers` files, as editors, desktop apps and agents write them.

use std::{fmt, path::Path, sync::Arc};

use toolcrib_config::{Diagnostic, Diagnostics, Located, Problems, Spot, suggest};

use super::{
    Http, Stdio, Transport, expand, is_secret_header, is_secret_variable,
    json::{EXAMPLE, Object, Source, Value, quoted},
    narrow::{self, FileTools, Servers},
    secrets_in,
};
use crate::ServerName;

/// The keys of an entry for the transport of a server.
const KEYS: [&str; 10] =
    ["type", "command", "args", "env", "cwd", "url", "serverUrl", "httpUrl", "headers", "disabled"];

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
    /// Its transport; `None` if it is invalid, which is recorded, and if the server is disabled and
    /// was not checked.
    pub transport: Option<Transport>,
    /// Secret texts: values of variables, of its environment and of headers with names of secrets.
    pub secrets: Vec<String>,
    /// All errors and probable mistakes of this server; the others can still be used.
    pub problems: Diagnostics,
}

/// The content of a file.
#[derive(Debug)]
pub struct ServersFile {
    /// The servers, in the order of the file, including invalid ones.
    pub servers: Vec<FileServer>,
    /// All errors and probable mistakes of the file or of the names in it; those of a server are in
    /// the server. Parts of the file that may be a secret are not repeated.
    pub problems: Diagnostics,
}

/// Reads a file of servers: `mcpServers` as in `.mcp.json`, or VS Code's `servers`, with comments
/// and trailing commas.
///
/// `file` is its name in problems. `working_dir` is where its programs run, and the base of a
/// relative `cwd`. `variables` is the environment that [`expand`] uses in commands, arguments,
/// `env`, `cwd`, URLs and headers. Keys of other products are ignored with a warning, except for
/// those that restrict a server: they apply, and an unsupported one makes the server unusable.
pub fn read_servers(
    file: &str,
    text: &str,
    working_dir: &Path,
    variables: &dyn Fn(&str) -> Option<String>,
) -> ServersFile {
    let problems = Problems::new(file);
    let source = Source::new(file, text, &problems);
    let root = source.parse();
    let reader = Reader { file, problems: &problems, working_dir, variables };
    let servers = root.as_ref().map(|root| reader.servers(&Value::root(&source, root)));
    ServersFile { servers: servers.unwrap_or_default(), problems: problems.into_diagnostics() }
}

/// The inputs to read an entry.
struct Reader<'a> {
    file: &'a str,
    problems: &'a Problems,
    working_dir: &'a Path,
    variables: &'a dyn Fn(&str) -> Option<String>,
}

/// An entry being read.
struct Entry<'a> {
    reader: &'a Reader<'a>,
    problems: &'a Problems,
    name: &'a str,
    object: Object<'a>,
    secrets: Vec<String>,
}

impl Reader<'_> {
    fn servers(&self, root: &Value<'_>) -> Vec<FileServer> {
        let Some(top) = root.object() else { return Vec::new() };
        let of_settings = || top.value("mcp")?.object()?.value("servers");
        let list = top.value("mcpServers").or_else(|| top.value("servers")).or_else(of_settings);
        let Some(list) = list else {
            root.refuse("`mcpServers` is missing in this file", EXAMPLE);
            return Vec::new();
        };
        let ignored = top.entries().find(|(key, _)| key.value == "servers");
        if let (Some(_), Some((ignored, _))) = (top.value("mcpServers"), ignored) {
            let message = "`servers` is ignored, because the file has `mcpServers` too";
            self.problems.push(Diagnostic::warning(&ignored.at, message));
        }
        let rules = Servers::read(&top, self.working_dir);
        let mut servers: Vec<FileServer> = Vec::new();
        for (written, value) in list.object().iter().flat_map(Object::entries) {
            let Some(name) = self.name(&written) else { continue };
            if let Some(other) = servers.iter().find(|other| other.name == name) {
                let message = format!(
                    "{} would be named `{name}` here, like the server at {}",
                    quoted(written.value),
                    other.at
                );
                self.refuse(&written.at, message, "rename one of them");
                continue;
            }
            servers.push(self.server(name, written, &value, &rules));
        }
        servers
    }

    /// The name of a server here: invalid characters become one `_`.
    fn name(&self, written: &Located<&str>) -> Option<Arc<str>> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let words = written.value.split(|c| !is_plain(c)).filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("_");
        if ServerName::new(written.value).is_ok() {
            return Some(written.value.into());
        }
        if let Err(error) = ServerName::new(&*name) {
            // An error about the original name is more helpful than one about the replaced name.
            let error =
                if name.is_empty() { ServerName::new(written.value).err() } else { Some(error) };
            let message = error.map(|error| error.to_string()).unwrap_or_default();
            self.refuse(&written.at, message, "give it another name");
            return None;
        }
        let message = format!("{} is named `{name}` here", quoted(written.value));
        self.problems.push(Diagnostic::warning(&written.at, message));
        Some(name.into())
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
            let secrets = Vec::new();
            let mut entry = Entry { reader: self, problems, name: written, object, secrets };
            entry.warn_of_other_keys();
            server.transport = entry.transport(&value);
            server.secrets = entry.secrets;
        }
    }

    fn refuse(&self, at: &Spot, message: String, help: &str) {
        self.problems.push(Diagnostic::error(at, message).help(help));
    }
}

impl Entry<'_> {
    /// Other products have their own keys, and some keys are misspelled.
    fn warn_of_other_keys(&self) {
        let other = |(key, _): (Located<_>, _)| {
            (!KEYS.contains(&key.value) && !narrow::is_known(key.value)).then_some(key)
        };
        let others: Vec<Located<&str>> = self.object.entries().filter_map(other).collect();
        let Some(first) = others.first() else { return };
        let names = suggest::quoted(others.iter().map(|key| key.value));
        let message = format!("not used here, in server {}: {names}", quoted(self.name));
        let meant = others.iter().find_map(|key| suggest::nearest(key.value, KEYS));
        let help = if let Some(meant) = meant {
            Some(format!("did you mean `{meant}`?"))
        } else {
            let is_timeout = others.iter().any(|key| key.value == "timeout");
            is_timeout.then(|| {
                "its unit differs between products; write `timeout` below a [mcp.NAME] of the \
                 project"
                    .to_owned()
            })
        };
        self.problems.push(Diagnostic::warning(&first.at, message).help(help));
    }

    /// The transport of the server; problems are recorded.
    fn transport(&mut self, whole: &Value<'_>) -> Option<Transport> {
        let url = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| self.object.value(key));
        let command = self.object.value("command");
        let by_http = match self.object.value("type") {
            Some(kind) => Some(self.is_http(&kind)?),
            None => None,
        };
        match (command, url, by_http) {
            (Some(command), None, None | Some(false)) | (Some(command), Some(_), Some(false)) => {
                self.stdio(&command).map(Transport::Stdio)
            }
            (None, Some(url), None | Some(true)) | (Some(_), Some(url), Some(true)) => {
                self.http(&url).map(Transport::Http)
            }
            (Some(_), Some(url), None) => {
                let message = self.about("has both `command` and `url`");
                url.refuse(message, "keep one of them, or choose one with \"type\"");
                None
            }
            (None, _, Some(false)) => {
                whole.refuse(self.about("has no `command`"), r#"write "command": "…""#);
                None
            }
            (_, None, Some(true)) => {
                whole.refuse(self.about("has no `url`"), r#"write "url": "https://…""#);
                None
            }
            (None, None, None) => {
                let help = r#"write "command": "…" for a program, or "url": "https://…""#;
                whole.refuse(self.about("has neither `command` nor `url`"), help);
                None
            }
        }
    }

    fn about(&self, what: &str) -> String {
        format!("server {} {what}", quoted(self.name))
    }

    /// Whether it uses HTTP. `None` if unknown or not supported, which is recorded.
    fn is_http(&self, kind: &Value<'_>) -> Option<bool> {
        match kind.text()? {
            "stdio" | "local" => Some(false),
            "http" | "streamable-http" | "streamableHttp" => Some(true),
            "sse" => {
                let message = self.about(
                    "uses HTTP+SSE (`sse`), which MCP replaced by Streamable HTTP, and which is \
                     not supported here",
                );
                let help = "write \"type\": \"http\" and the server's URL for Streamable HTTP, \
                            which often ends in /mcp";
                kind.refuse(message, help);
                None
            }
            other => {
                let words = ["stdio", "http", "streamable-http", "streamableHttp"];
                let help = suggest::help(other, "types", words);
                kind.refuse(self.about(&format!("has an unknown `type`: {}", quoted(other))), help);
                None
            }
        }
    }

    fn stdio(&mut self, command: &Value<'_>) -> Option<Stdio> {
        let program = self.expanded(command);
        let args = match self.object.value("args") {
            Some(args) => self.texts(&args),
            None => Some(Vec::new()),
        };
        let env = self.pairs("env", is_secret_variable);
        let cwd = match self.object.value("cwd") {
            Some(cwd) => self.expanded(&cwd).map(|cwd| self.reader.working_dir.join(cwd)),
            None => Some(self.reader.working_dir.to_owned()),
        };
        let program = program?;
        if program.trim().is_empty() {
            command.refuse(self.about("has a blank `command`"), None);
            return None;
        }
        let mut stdio = Stdio::new(program).args(args?).working_dir(cwd?);
        for (name, value) in env? {
            stdio = stdio.env(name, value);
        }
        Some(stdio)
    }

    fn http(&mut self, url: &Value<'_>) -> Option<Http> {
        let address = self.expanded(url);
        let headers = self.pairs("headers", |_| false);
        let mut http = Http::new(address?);
        for (name, value) in headers? {
            if is_secret_header(&name) {
                self.secrets.extend(secrets_in(&value));
            }
            http = http.header(name, value);
        }
        Some(http)
    }

    /// A list of texts; all problems in it are recorded.
    fn texts(&mut self, list: &Value<'_>) -> Option<Vec<String>> {
        let texts: Vec<_> = list.items()?.iter().map(|item| self.expanded(item)).collect();
        texts.into_iter().collect()
    }

    /// The entries of an object of texts; secrets among them are collected.
    fn pairs(
        &mut self,
        key: &str,
        is_secret: impl Fn(&str) -> bool,
    ) -> Option<Vec<(String, String)>> {
        let Some(value) = self.object.value(key) else { return Some(Vec::new()) };
        let object = value.object()?;
        let pairs: Vec<_> = object
            .entries()
            .map(|(name, value)| {
                let value = self.expanded(&value)?;
                if is_secret(name.value) {
                    self.secrets.extend(secrets_in(&value));
                }
                Some((name.value.to_owned(), value))
            })
            .collect();
        pairs.into_iter().collect()
    }

    /// A text with the values of its variables.
    fn expanded(&mut self, value: &Value<'_>) -> Option<String> {
        match expand(value.text()?, self.reader.variables) {
            Ok(expanded) => {
                self.secrets.extend(expanded.secrets);
                Some(expanded.text)
            }
            Err(error) => {
                value.refuse_at(error.offset, self.about(&format!("cannot be used: {error}")));
                None
            }
        }
    }
}

/// Without the values of secrets.
impl fmt::Debug for FileServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileServer")
            .field("name", &self.name)
            .field("at", &self.at)
            .field("disabled", &self.disabled)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ServersFile {
        let variables = |name: &str| match name {
            "HOME" => Some("/home/me".to_owned()),
            "DOCS_TOKEN" => Some("t-0123456".to_owned()),
            _ => None,
        };
        read_servers(".mcp.json", text, Path::new("/work dir"), &variables)
    }

    /// All problems, including those of servers.
    fn problems(text: &str) -> Diagnostics {
        let found = read(text);
        let problems = Problems::new(".mcp.json");
        problems.merge(found.problems);
        found.servers.into_iter().for_each(|server| problems.merge(server.problems));
        problems.into_diagnostics()
    }

    #[test]
    fn files_of_several_products_are_read_as_they_are() {
        let text = r#"{
                // Claude Code, Claude Desktop, Cursor
                "mcpServers": {
                    "git": { "command": "uvx", "args": ["mcp-server-git", "--repository", "${HOME}/x"] },
                    "My docs": {
                        "type": "http", "url": "https://docs.example/mcp",
                        "headers": { "Authorization": "Bearer ${DOCS_TOKEN}", "X-A": "b" },
                    },
                    "off": { "command": "${NOT_SET}", "disabled": true },
                    "files": {
                        "command": "${NO:-./run}", "cwd": "sub", "env": { "API_KEY": "hush-hush", "A": "1" },
                        "alwaysAllow": ["x"], "autoApprove": [],
                    },
                },
                "globalShortcut": "",
            }"#;
        let found = read(text);
        insta::assert_snapshot!(problems(text), @r#"
        .mcp.json:5:21: warning: `My docs` is named `My_docs` here
        .mcp.json:12:25: warning: not used here, in server `files`: `alwaysAllow`, `autoApprove`
        "#);
        insta::assert_debug_snapshot!(found.servers, @r#"
        [
            FileServer {
                name: "git",
                at: Spot {
                    file: ".mcp.json",
                    line: 4,
                    column: 21,
                },
                disabled: false,
                transport: Some(
                    Stdio(
                        Stdio {
                            command: "uvx",
                            args: [
                                "mcp-server-git",
                                "--repository",
                                "/home/me/x",
                            ],
                            env: [],
                            working_dir: Some(
                                "/work dir",
                            ),
                            ..
                        },
                    ),
                ),
                ..
            },
            FileServer {
                name: "My_docs",
                at: Spot {
                    file: ".mcp.json",
                    line: 5,
                    column: 21,
                },
                disabled: false,
                transport: Some(
                    Http(
                        Http {
                            url: "https://docs.example/mcp",
                            headers: [
                                "Authorization",
                                "X-A",
                            ],
                            ..
                        },
                    ),
                ),
                ..
            },
            FileServer {
                name: "off",
                at: Spot {
                    file: ".mcp.json",
                    line: 9,
                    column: 21,
                },
                disabled: true,
                transport: None,
                ..
            },
            FileServer {
                name: "files",
                at: Spot {
                    file: ".mcp.json",
                    line: 10,
                    column: 21,
                },
                disabled: false,
                transport: Some(
                    Stdio(
                        Stdio {
                            command: "./run",
                            args: [],
                            env: [
                                "API_KEY",
                                "A",
                            ],
                            working_dir: Some(
                                "/work dir/sub",
                            ),
                            ..
                        },
                    ),
                ),
                ..
            },
        ]
        "#);
        let secrets: Vec<_> = found.servers.iter().map(|server| server.secrets.clone()).collect();
        assert_eq!(
            secrets,
            [vec![], vec!["t-0123456", "Bearer t-0123456", "t-0123456"], vec![], vec!["hush-hush"]]
        );
        for text in [
            r#"{"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []}"#,
            r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#,
            r#"{"mcpServers": {"a": {"serverUrl": "https://a.example/mcp"}}}"#,
            r#"{"mcpServers": {"a": {"type": "streamableHttp", "url": "https://a.example/mcp"}}}"#,
            r#"{"mcpServers": {}}"#,
        ] {
            let found = read(text);
            assert_eq!(problems(text), Diagnostics::default(), "{text}");
            assert!(found.servers.iter().all(|server| server.transport.is_some()), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_at_its_place_and_all_at_once() {
        insta::assert_snapshot!(problems(""), @r#"
        .mcp.json:1:1: this file is empty
            help: write { "mcpServers": { "git": { "command": "uvx", "args": ["mcp-server-git"] } } }
        "#);
        insta::assert_snapshot!(problems("{ \"mcpServers\": {\n  'a': 1 } }"), @".mcp.json:2:3: this is not JSON: Single-quoted strings are not allowed");
        insta::assert_snapshot!(problems("[]"), @".mcp.json:1:1: this file must be an object in `{…}`; this is a list");
        insta::assert_snapshot!(
            problems(r#"{ "servers": {}, "mcpServers": {} }"#),
            @".mcp.json:1:3: warning: `servers` is ignored, because the file has `mcpServers` too"
        );
        insta::assert_snapshot!(problems(r#"{ "tools": {} }"#), @r#"
        .mcp.json:1:1: `mcpServers` is missing in this file
            help: write { "mcpServers": { "git": { "command": "uvx", "args": ["mcp-server-git"] } } }
        "#);
        insta::assert_snapshot!(
            problems(
                r#"{ "mcpServers": {
  "sse": { "type": "sse", "url": "https://a.example/sse" },
  "kind": { "type": "htpp", "url": "https://a.example" },
  "both": { "command": "x", "url": "https://a.example" },
  "none": { "args": [] },
  "comand": { "comand": "x" },
  "lacks": { "type": "http", "command": "x" },
  "unset": { "command": "é${NOT_SET}", "args": ["a", "${workspaceFolder}", 1, "\u0024{input:x}"] },
  "types": { "command": 1, "args": "x", "env": { "A": 2, "A": "3" }, "disabled": "no" },
  "blank": { "command": " " },
  "waits": { "command": "x", "timeout": 60 },
  "twice": { "command": "x" },
  "twice": { "command": "y" },
  "a b": { "command": "x" },
  "a.b": { "command": "x" },
  "…": { "command": "x" },
  "number": 1
} }"#
            ),
            @r#"
        .mcp.json:2:20: server `sse` uses HTTP+SSE (`sse`), which MCP replaced by Streamable HTTP, and which is not supported here
            help: write "type": "http" and the server's URL for Streamable HTTP, which often ends in /mcp
        .mcp.json:3:21: server `kind` has an unknown `type`: `htpp`
            help: did you mean `http`?
        .mcp.json:4:36: server `both` has both `command` and `url`
            help: keep one of them, or choose one with "type"
        .mcp.json:5:11: server `none` has neither `command` nor `url`
            help: write "command": "…" for a program, or "url": "https://…"
        .mcp.json:6:13: server `comand` has neither `command` nor `url`
            help: write "command": "…" for a program, or "url": "https://…"
        .mcp.json:6:15: warning: not used here, in server `comand`: `comand`
            help: did you mean `command`?
        .mcp.json:7:12: server `lacks` has no `url`
            help: write "url": "https://…"
        .mcp.json:8:27: server `unset` cannot be used: the environment variable `NOT_SET` is not set; set it, or write `${NOT_SET:-DEFAULT}`
        .mcp.json:8:55: server `unset` cannot be used: `${workspaceFolder}` is known to an editor only; write its value, or `${VAR}` with an environment variable
        .mcp.json:8:76: args[2] must be a text in quotes; this is a number
        .mcp.json:8:79: server `unset` cannot be used: `${input:x}` is known to an editor only; write its value, or `${VAR}` with an environment variable
        .mcp.json:9:25: `command` must be a text in quotes; this is a number
        .mcp.json:9:36: `args` must be a list; this is a text
        .mcp.json:9:55: `A` must be a text in quotes; this is a number
        .mcp.json:9:58: `A` occurs twice here; the first is at .mcp.json:9
            help: keep one of them
        .mcp.json:9:82: `disabled` must be `true` or `false`; this is a text
        .mcp.json:10:25: server `blank` has a blank `command`
        .mcp.json:11:30: warning: not used here, in server `waits`: `timeout`
            help: its unit differs between products; write `timeout` below a [mcp.NAME] of the project
        .mcp.json:13:3: `twice` occurs twice here; the first is at .mcp.json:12
            help: keep one of them
        .mcp.json:14:3: warning: `a b` is named `a_b` here
        .mcp.json:15:3: warning: `a.b` is named `a_b` here
        .mcp.json:15:3: `a.b` would be named `a_b` here, like the server at .mcp.json:14
            help: rename one of them
        .mcp.json:16:3: `…` is not a valid name of an MCP server: it contains '…'; use 1 to 32 of the characters a-z, A-Z, 0-9, `_` and `-`, without `__` and not ending in `_`
            help: give it another name
        .mcp.json:17:13: `number` must be an object in `{…}`; this is a number
        "#
        );
    }
}
