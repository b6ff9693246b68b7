//! The body: one call, one change of the list in the session.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;
use toolcrib_core::{KvScope, ToolContext, ToolError, ToolOutput};

use super::{
    CONTENT, DONE, FIRST, ID, NOTES, STATUS, TASKS, TodoTool,
    list::{Status, Tasks},
};
use crate::arguments::{present, refused, text};

/// The handler of a tool.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) tool: TodoTool,
    pub(super) key: Arc<str>,
}

fn string<'a>(args: &'a Value, name: &str) -> Cow<'a, str> {
    text(args, name).unwrap_or_default()
}

fn flag(args: &Value, name: &str, default: bool) -> bool {
    present(args, name).and_then(Value::as_bool).unwrap_or(default)
}

fn status(args: &Value) -> Option<Status> {
    Status::of(&text(args, STATUS)?)
}

impl Body {
    pub(super) async fn call(self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let kv = cx.kv(KvScope::Session)?;
        if self.tool == TodoTool::List {
            let stored = kv.get(&self.key).await?;
            let shown = Tasks::read(stored.as_deref()).shown(flag(&args, DONE, true));
            return Ok(ToolOutput::text(shown));
        }
        let changed = kv.update(&self.key, |stored| {
            let mut tasks = Tasks::read(stored);
            let does = self.change(&mut tasks, &args)?;
            let is_empty = tasks == Tasks::default();
            Ok(((!is_empty).then(|| tasks.written()), format!("{does}{}", tasks.shown(true))))
        });
        changed.await.map(ToolOutput::text)
    }

    /// Changes the list, and says what was done, if the list does not show it.
    fn change(&self, tasks: &mut Tasks, args: &Value) -> Result<String, ToolError> {
        match self.tool {
            TodoTool::Set => {
                *tasks = Tasks::default();
                for task in args.get(TASKS).and_then(Value::as_array).into_iter().flatten() {
                    let status = status(task).unwrap_or(Status::Open);
                    let added =
                        tasks.add(&string(task, CONTENT), &string(task, NOTES), status, false);
                    added.map_err(ToolError::failed)?;
                }
                Ok(String::new())
            }
            TodoTool::Add => {
                let (content, notes) = (string(args, CONTENT), string(args, NOTES));
                let first = flag(args, FIRST, false);
                let id = tasks.add(&content, &notes, Status::Open, first);
                Ok(format!("added {}\n", id.map_err(ToolError::failed)?))
            }
            TodoTool::Update => {
                let id = string(args, ID);
                let ids = tasks.ids();
                let updated = tasks.update(&id, |task| {
                    task.status = status(args).unwrap_or(task.status);
                    if let Some(content) = text(args, CONTENT) {
                        task.content = content.into_owned();
                    }
                    if let Some(notes) = text(args, NOTES) {
                        task.notes = notes.into_owned();
                    }
                });
                updated.map_err(|problem| match problem {
                    Some(problem) => ToolError::failed(problem),
                    None if ids.is_empty() => refused(ID, "is no task; the list is empty"),
                    None => refused(ID, &format!("is none of the tasks {ids}")),
                })?;
                Ok(String::new())
            }
            TodoTool::List | TodoTool::Clear => {
                *tasks = Tasks::default();
                Ok(String::new())
            }
        }
    }
}
