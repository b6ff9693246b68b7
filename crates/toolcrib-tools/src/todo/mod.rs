//! A toolset for a list of tasks, which is kept in the session: a model plans, and finds its plan again
//! after a resume.

mod list;
mod run;
mod table;

use serde_json::{Value, json};
use toolcrib_core::{Annotations, Capabilities, KvScope, Tool};

pub(crate) use self::table::KIND;
use self::{
    list::{MOST_CHARS, MOST_NOTES, MOST_TASKS, Status},
    run::Body,
};
use crate::{
    Declaration, ToolErrors,
    declaration::{Parameters, closed, prefixed},
    findings::Findings,
};

/// The names of parameters.
const TASKS: &str = "tasks";
const CONTENT: &str = "content";
const NOTES: &str = "notes";
const STATUS: &str = "status";
const FIRST: &str = "first";
const ID: &str = "id";
const DONE: &str = "done";

/// The label of the toolset, unless a project gives it another one.
pub const TOOLSET: &str = "todo";

/// A tool of the toolset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TodoTool {
    /// Replaces the list.
    Set,
    /// Adds a task.
    Add,
    /// Changes a task.
    Update,
    /// Shows the list.
    List,
    /// Empties the list.
    Clear,
}

impl TodoTool {
    /// Every tool of the set.
    pub const ALL: [Self; 5] = [Self::Set, Self::Add, Self::Update, Self::List, Self::Clear];

    /// Its name, after the prefix of the toolset, if it has one: `todo_add`, `plan_todo_add`.
    pub fn name(self, prefix: Option<&str>) -> String {
        let name = match self {
            Self::Set => "todo_set",
            Self::Add => "todo_add",
            Self::Update => "todo_update",
            Self::List => "todo_list",
            Self::Clear => "todo_clear",
        };
        prefixed(prefix, name)
    }

    /// Its declaration: its name, description and parameters, and all else as in `base`.
    pub fn declaration(self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        let does = match self {
            Self::Set => {
                "Replaces your list of tasks for this session. Use it to plan work of several steps."
            }
            Self::Add => {
                "Appends one more task, at the end or as the first. Use it when new work turns up."
            }
            Self::Update => {
                "Changes a task: its status, its text or its notes. Use it when you begin or end the \
                 task. At most one task is in progress."
            }
            Self::List => {
                "Shows your list with the status of each task. Use it when you need their ids."
            }
            Self::Clear => {
                "Removes all tasks from your list. Use it only when the list is of no more use."
            }
        };
        Declaration {
            name: self.name(prefix),
            description: base.described(does),
            annotations: Annotations {
                read_only: self == Self::List,
                destructive: false,
                idempotent: self != Self::Add,
            },
            input_schema: closed(self.parameters()),
            untrusted: false,
            ..base.in_toolset(TOOLSET)
        }
    }

    fn parameters(self) -> Parameters {
        let described = |about: &str, in_new_task: &str| match self {
            Self::Update => format!("{about}; unchanged if omitted."),
            _ => format!("{about}{in_new_task}."),
        };
        let content = || {
            let about = described("What is to be done", "");
            json!({ "type": "string", "minLength": 1, "maxLength": MOST_CHARS, "description": about })
        };
        let notes = || {
            let about = described("What to remember about it", "; none if omitted");
            json!({ "type": "string", "maxLength": MOST_NOTES, "description": about })
        };
        let status = || {
            let about = described("The state of its work", "; open if omitted");
            json!({ "enum": Status::ALL.map(Status::as_str), "description": about })
        };
        match self {
            Self::Set => {
                let task = json!({
                    "type": "object",
                    "required": [CONTENT],
                    "properties": { CONTENT: content(), NOTES: notes(), STATUS: status() },
                    "additionalProperties": false,
                });
                let about = "The whole new list, in the order of the work.";
                let tasks = json!({
                    "type": "array", "maxItems": MOST_TASKS, "items": task, "description": about,
                });
                (vec![TASKS], vec![(TASKS, tasks)])
            }
            Self::Add => {
                let about = "Whether it becomes the first task; else the last.";
                let first = json!({ "type": "boolean", "default": false, "description": about });
                let all = vec![(CONTENT, content()), (NOTES, notes()), (FIRST, first)];
                (vec![CONTENT], all)
            }
            Self::Update => {
                let id = json!({ "type": "string", "description": "The task, such as t2." });
                let all =
                    vec![(ID, id), (STATUS, status()), (CONTENT, content()), (NOTES, notes())];
                (vec![ID], all)
            }
            Self::List => {
                let about = "Whether tasks that are done are shown too.";
                let done = json!({ "type": "boolean", "default": true, "description": about });
                (Vec::new(), vec![(DONE, done)])
            }
            Self::Clear => Parameters::default(),
        }
    }

    /// Makes the tool, of its [`declaration`](Self::declaration) for the same prefix, which also names
    /// the list.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn build(self, declaration: Declaration, prefix: Option<&str>) -> Result<Tool, ToolErrors> {
        let found = Findings::of(&declaration).finish();
        let name = declaration.name.clone();
        let body = Body { tool: self, key: list::key(prefix).into() };
        let capabilities = Capabilities::none().kv([KvScope::Session]);
        let builder = declaration.into_builder().capabilities(capabilities);
        let made = builder.handler(move |args: Value, cx| body.clone().call(args, cx));
        found.or_tool(name, made)
    }
}
