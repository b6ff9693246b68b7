//! MCP clients on this machine: their configuration files, and one entry in each.

mod edit;
mod installed;
mod place;
mod write;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

pub(crate) use self::{
    edit::{EditError, masked, with_entry, without_entry},
    installed::{InstalledEntry, InstalledError, Records},
    place::{NoHomeError, Place, folder_of_state},
    write::{CurrentFile, WriteError, put, read},
};

/// An MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Windsurf,
    Cline,
    Gemini,
    Copilot,
    Zed,
    Opencode,
    Codex,
}

/// Whose configuration a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Scope {
    /// The user's, for all folders
    #[default]
    User,
    /// That of the current folder, often in version control
    Project,
}

/// The format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, with comments and trailing commas where the file has them.
    Json,
    Toml,
}

/// The form of an entry.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// `command` and `args`.
    Plain,
    /// The same with this `type`.
    Typed(&'static str),
    /// The same with `source`.
    Zed,
    /// One list, with `enabled`.
    Opencode,
}

/// The form of an entry of a server at a URL.
#[derive(Debug, Clone, Copy)]
struct Remote {
    /// The key of the URL.
    url: &'static str,
    /// The other keys.
    others: &'static [(&'static str, &'static str)],
    token: Token,
}

/// How an entry refers to the environment variable with the token of a server.
#[derive(Debug, Clone, Copy)]
enum Token {
    /// In the header `Authorization`, between these two texts.
    Header(&'static str, &'static str),
    /// By its name, as the value of this key.
    Key(&'static str),
    /// The file has no variables.
    None,
}

impl Remote {
    const fn new(
        url: &'static str,
        others: &'static [(&'static str, &'static str)],
        token: Token,
    ) -> Option<Self> {
        Some(Self { url, others, token })
    }
}

/// The key that tells a server at a URL from a program.
const HTTP: &[(&str, &str)] = &[("type", "http")];

/// `${NAME}` and `${env:NAME}`.
const PLAIN: Token = Token::Header("${", "}");
const ENV: Token = Token::Header("${env:", "}");

/// The facts about a client.
struct Facts {
    id: &'static str,
    title: &'static str,
    user: Place,
    /// The file below a project's folder.
    project: Option<&'static str>,
    /// The key of its servers.
    key: &'static str,
    format: Format,
    form: Form,
    /// `None` if the file has no servers at a URL.
    remote: Option<Remote>,
}

impl Client {
    /// All, in the order in which they are shown.
    pub(crate) const ALL: [Self; 11] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::Vscode,
        Self::Windsurf,
        Self::Cline,
        Self::Gemini,
        Self::Copilot,
        Self::Zed,
        Self::Opencode,
        Self::Codex,
    ];

    const fn facts(self) -> Facts {
        let json = Facts {
            id: "",
            title: "",
            user: Place::home(&[]),
            project: None,
            key: "mcpServers",
            format: Format::Json,
            form: Form::Plain,
            remote: None,
        };
        match self {
            Self::ClaudeCode => Facts {
                id: "claude-code",
                title: "Claude Code",
                user: Place::home(&[".claude.json"]).or_in("CLAUDE_CONFIG_DIR", ".claude.json"),
                project: Some(".mcp.json"),
                form: Form::Typed("stdio"),
                remote: Remote::new("url", HTTP, PLAIN),
                ..json
            },
            Self::ClaudeDesktop => Facts {
                id: "claude-desktop",
                title: "Claude Desktop",
                user: Place::application(&["Claude/claude_desktop_config.json"]),
                ..json
            },
            Self::Cursor => Facts {
                id: "cursor",
                title: "Cursor",
                user: Place::home(&[".cursor/mcp.json"]),
                project: Some(".cursor/mcp.json"),
                remote: Remote::new("url", &[], ENV),
                ..json
            },
            Self::Vscode => Facts {
                id: "vscode",
                title: "VS Code",
                user: Place::application(&["Code/User/mcp.json"]),
                project: Some(".vscode/mcp.json"),
                key: "servers",
                form: Form::Typed("stdio"),
                remote: Remote::new("url", HTTP, ENV),
                ..json
            },
            Self::Windsurf => Facts {
                id: "windsurf",
                title: "Windsurf",
                user: Place::home(&[".codeium/windsurf/mcp_config.json"]),
                remote: Remote::new("serverUrl", &[], ENV),
                ..json
            },
            Self::Cline => Facts {
                id: "cline",
                title: "Cline",
                user: Place::application(&[concat!(
                    "Code/User/globalStorage/saoudrizwan.claude-dev/settings/",
                    "cline_mcp_settings.json"
                )]),
                remote: Remote::new("url", &[("type", "streamableHttp")], Token::None),
                ..json
            },
            Self::Gemini => Facts {
                id: "gemini",
                title: "Gemini CLI",
                user: Place::home(&[".gemini/settings.json"]),
                project: Some(".gemini/settings.json"),
                remote: Remote::new("httpUrl", &[], PLAIN),
                ..json
            },
            Self::Copilot => Facts {
                id: "copilot",
                title: "Copilot CLI",
                user: Place::home(&[".copilot/mcp-config.json"])
                    .or_in("COPILOT_HOME", "mcp-config.json"),
                form: Form::Typed("local"),
                remote: Remote::new("url", HTTP, Token::None),
                ..json
            },
            Self::Zed => Facts {
                id: "zed",
                title: "Zed",
                user: Place::config(&["zed/settings.json"]),
                project: Some(".zed/settings.json"),
                key: "context_servers",
                form: Form::Zed,
                remote: Remote::new("url", &[], Token::None),
                ..json
            },
            Self::Opencode => Facts {
                id: "opencode",
                title: "opencode",
                user: Place::config(&["opencode/opencode.json", "opencode/opencode.jsonc"]),
                project: Some("opencode.json"),
                key: "mcp",
                form: Form::Opencode,
                remote: Remote::new("url", &[("type", "remote")], Token::Header("{env:", "}")),
                ..json
            },
            Self::Codex => Facts {
                id: "codex",
                title: "Codex",
                user: Place::home(&[".codex/config.toml"]).or_in("CODEX_HOME", "config.toml"),
                project: Some(".codex/config.toml"),
                key: "mcp_servers",
                format: Format::Toml,
                remote: Remote::new("url", &[], Token::Key("bearer_token_env_var")),
                ..json
            },
        }
    }

    /// Its name on the command line.
    pub(crate) const fn id(self) -> &'static str {
        self.facts().id
    }

    /// Its name for people.
    pub(crate) const fn title(self) -> &'static str {
        self.facts().title
    }

    /// The key of its servers.
    pub(crate) const fn key(self) -> &'static str {
        self.facts().key
    }

    pub(crate) const fn format(self) -> Format {
        self.facts().format
    }

    /// Its configuration file; `None` if it has none in this scope.
    pub(crate) fn file(self, scope: Scope, here: &Path) -> Result<Option<PathBuf>, NoHomeError> {
        match scope {
            Scope::User => self.facts().user.file().map(Some),
            Scope::Project => Ok(self.facts().project.map(|file| here.join(file))),
        }
    }

    /// The entry for a program.
    pub(crate) fn entry(self, program: &str, args: &[String]) -> Value {
        match self.facts().form {
            Form::Plain => json!({ "command": program, "args": args }),
            Form::Typed("local") => {
                json!({ "type": "local", "command": program, "args": args, "tools": ["*"] })
            }
            Form::Typed(kind) => json!({ "type": kind, "command": program, "args": args }),
            Form::Zed => json!({ "source": "custom", "command": program, "args": args }),
            Form::Opencode => {
                let words: Vec<_> =
                    std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
                json!({ "type": "local", "command": words, "enabled": true })
            }
        }
    }

    /// The entry for a server at a URL. The token is in the environment variable of this name, which the
    /// client reads.
    pub(crate) fn remote_entry(
        self,
        url: &str,
        variable: Option<&str>,
    ) -> Result<Value, RemoteError> {
        let Facts { title, form, remote, .. } = self.facts();
        let Remote { url: key, others, token } = remote.ok_or(RemoteError::NoServers { title })?;
        let mut entry: Map<_, _> =
            others.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        entry.insert(key.to_owned(), json!(url));
        match (variable, token) {
            (None, _) => {}
            (Some(variable), Token::Header(before, after)) => {
                let header = format!("Bearer {before}{variable}{after}");
                entry.insert("headers".to_owned(), json!({ "Authorization": header }));
            }
            (Some(variable), Token::Key(key)) => {
                entry.insert(key.to_owned(), json!(variable));
            }
            (Some(_), Token::None) => return Err(RemoteError::NoVariables { title }),
        }
        match form {
            Form::Typed("local") => drop(entry.insert("tools".to_owned(), json!(["*"]))),
            Form::Opencode => drop(entry.insert("enabled".to_owned(), json!(true))),
            _ => {}
        }
        Ok(Value::Object(entry))
    }
}

/// Why a client has no entry of a server at a URL.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    #[error(
        "the file of {title} has no servers at a URL; add the gateway as a connector in its settings, \
         which needs `[serve.oauth]` in the gateway's project"
    )]
    NoServers { title: &'static str },
    #[error(
        "the file of {title} has no variables, and `install` writes no token; leave out \
         `--token-variable`, and add the header `Authorization` to the entry by hand"
    )]
    NoVariables { title: &'static str },
}

#[cfg(test)]
mod tests {
    use toolcrib_capabilities::__internal::steering;

    use super::*;

    #[test]
    fn no_tool_and_no_sandbox_may_change_the_configuration_of_a_client() {
        for client in Client::ALL {
            for scope in [Scope::User, Scope::Project] {
                let Ok(Some(file)) = client.file(scope, Path::new("/p")) else { continue };
                assert!(steering(&file).is_some(), "{}: {}", client.id(), file.display());
            }
        }
    }
}
