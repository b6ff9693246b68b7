//! A toolset for what an agent remembers beyond a session: Markdown files of topics, one folder for
//! each scope; and a search in earlier sessions.
//!
//! Each file keeps where its text comes from: the principal, session and turn of its last writes, and
//! whether one of them was made by a conversation that had read content of unknown authors. Such a
//! topic is read as untrusted content. No text and no name of a topic enters a system text or the
//! description of a tool.

mod day;
mod run;
mod search;
mod table;
mod topic;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_capabilities::files::Files;
#[doc(no_inline)]
pub use toolcrib_core::MemoryScope;
use toolcrib_core::{Annotations, Capabilities, Tool};

use self::run::Body;
pub(crate) use self::table::KIND;
pub use crate::kind::SearchSessions;
use crate::{
    Declaration, ToolErrors,
    declaration::{Parameters, closed, prefixed},
    findings::Findings,
};

/// The names of parameters.
const TOPIC: &str = "topic";
const CONTENT: &str = "content";
const ACTION: &str = "action";
const OLD: &str = "old";
const FIRST_LINE: &str = "first_line";
const QUERY: &str = "query";
const LIMIT: &str = "limit";

/// The label of the toolset, unless a project gives it another one.
pub const TOOLSET: &str = "memory";

/// The longest text of one write, in characters.
const MOST_CONTENT: usize = 16_000;

/// The largest topic, in bytes, with the record of its writes.
const MOST_TOPIC_BYTES: usize = 64 * 1024;

/// The most topics of a scope.
const MOST_TOPICS: usize = 200;

/// The longest query of a search, in characters, and the most words of it that count.
const MOST_QUERY: usize = 400;
const MOST_WORDS: usize = 16;

/// The default and the most matches of a search.
const MATCHES: usize = 10;
const MOST_MATCHES: usize = 20;

/// The inputs of a toolset.
#[derive(Clone)]
#[non_exhaustive]
pub struct Memory {
    /// The folder of all scopes; `None` where nothing may be read or written.
    pub files: Option<Files>,
    /// The scope.
    pub scope: MemoryScope,
    /// The search in sessions.
    pub sessions: SearchSessions,
}

impl Memory {
    /// A memory in a folder.
    pub fn new(files: Option<Files>, scope: MemoryScope, sessions: SearchSessions) -> Self {
        Self { files, scope, sessions }
    }
}

/// A tool of the toolset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryTool {
    /// Lists the topics, or reads one.
    Read,
    /// Changes a topic.
    Write,
    /// Searches the topics.
    Search,
    /// Searches the principal's earlier sessions.
    Sessions,
}

impl MemoryTool {
    /// Every tool of the set.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Search, Self::Sessions];

    /// Its name, after the prefix of the toolset, if it has one: `memory_read`, `my_memory_read`.
    pub fn name(self, prefix: Option<&str>) -> String {
        let name = match self {
            Self::Read => "memory_read",
            Self::Write => "memory_write",
            Self::Search => "memory_search",
            Self::Sessions => "session_search",
        };
        prefixed(prefix, name)
    }

    /// Its declaration: its name, description and parameters, and all else as in `base`. The
    /// description of `base` says what the memory is for; it may be empty.
    pub fn declaration(self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        let does = self.does(prefix);
        let description = if self == Self::Sessions { does } else { base.described(&does) };
        let writes = self == Self::Write;
        Declaration {
            name: self.name(prefix),
            description,
            annotations: Annotations {
                read_only: !writes,
                destructive: writes,
                idempotent: !writes,
            },
            input_schema: closed(self.parameters()),
            // Results of topics are marked one by one.
            untrusted: self == Self::Sessions,
            ..base.in_toolset(TOOLSET)
        }
    }

    fn does(self, prefix: Option<&str>) -> String {
        match self {
            Self::Read => {
                "Reads a topic of your memory, or lists all topics. Your memory outlives \
                this session: use it before you ask for what you may already know."
                    .to_owned()
            }
            Self::Write => format!(
                "Changes a topic of your memory: adds a paragraph, replaces text, or removes it. Keep \
                 what later sessions need, in short sentences; {} shows what there is. Never a \
                 password or key.",
                Self::Read.name(prefix)
            ),
            Self::Search => {
                "Finds the paragraphs of your memory with the words of a query. Use it when you do not \
                 know the topic."
                    .to_owned()
            }
            Self::Sessions => {
                "Finds what the user and you have written in earlier sessions, by the \
                words of a query. A match has all of them. Use it when the user refers to an earlier \
                conversation."
                    .to_owned()
            }
        }
    }

    /// The required parameters, and all of them.
    fn parameters(self) -> Parameters {
        let text = |most: usize, about: &str| json!({ "type": "string", "minLength": 1, "maxLength": most, "description": about });
        let topic = |about: &str| (TOPIC, text(topic::MOST_NAME, about));
        let query = || (QUERY, text(MOST_QUERY, "The words to look for."));
        let limit = || {
            let limit = json!({
                "type": "integer", "minimum": 1, "maximum": MOST_MATCHES, "default": MATCHES,
                "description": "The most matches.",
            });
            (LIMIT, limit)
        };
        match self {
            Self::Read => {
                let first = json!({
                    "type": "integer", "minimum": 1, "default": 1,
                    "description": "The first line to read.",
                });
                let about = "The topic; without it, the topics are listed.";
                (Vec::new(), vec![topic(about), (FIRST_LINE, first)])
            }
            Self::Write => {
                let action = json!({
                    "enum": ["add", "replace", "remove"], "default": "add",
                    "description": "`add` appends `content`; `replace` puts it in place of `old`, or of \
                        the whole topic; `remove` removes `old`, or the whole topic.",
                });
                let old = text(
                    MOST_CONTENT,
                    "The exact text that is replaced or removed, which must occur once; the whole topic by \
                     default.",
                );
                let all = vec![
                    topic("A short name of letters, digits and -, such as deployment."),
                    (ACTION, action),
                    (CONTENT, text(MOST_CONTENT, "The new text, in Markdown; none for `remove`.")),
                    (OLD, old),
                ];
                (vec![TOPIC], all)
            }
            Self::Search | Self::Sessions => (vec![QUERY], vec![query(), limit()]),
        }
    }

    /// Makes the tool, of its [`declaration`](Self::declaration).
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn build(self, declaration: Declaration, memory: &Memory) -> Result<Tool, ToolErrors> {
        let found = Findings::of(&declaration).finish();
        let name = declaration.name.clone();
        let writes = self == Self::Write;
        let files = memory.files.as_ref();
        let files = files.map(|files| if writes { files.writable() } else { files.read_only() });
        let sessions = Arc::clone(&memory.sessions);
        let body = Body { tool: self, scope: memory.scope, files, sessions };
        let mut capabilities = Capabilities::none();
        capabilities.team = self != Self::Sessions && memory.scope == MemoryScope::Team;
        let mut builder = declaration.into_builder().capabilities(capabilities);
        if writes {
            // Two writes of one message would both read the topic first. Each is signed with the taint.
            builder = builder.sequential().reads_taint();
            if memory.scope.is_shared() {
                builder = builder.asks_when_tainted();
            }
        } else {
            builder = builder.dry_run();
        }
        let made = builder.handler(move |args: Value, cx| body.clone().call(args, cx));
        found.or_tool(name, made)
    }
}
