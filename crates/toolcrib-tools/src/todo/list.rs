//! The list of tasks and its rules.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The most tasks of a list.
pub(super) const MOST_TASKS: usize = 100;

/// The most characters of a task and of its notes.
pub(super) const MOST_CHARS: usize = 300;
pub(super) const MOST_NOTES: usize = 300;

/// The key of a list in the session.
pub(super) fn key(prefix: Option<&str>) -> String {
    prefix.map_or_else(|| "todo".to_owned(), |prefix| format!("todo/{prefix}"))
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Open,
    InProgress,
    Done,
}

impl Status {
    pub(super) const ALL: [Self; 3] = [Self::Open, Self::InProgress, Self::Done];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::InProgress => "in_progress",
            Self::Done => "done",
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    number: u64,
    pub(super) status: Status,
    pub(super) content: String,
    pub(super) notes: String,
}

/// A list. A task keeps its number until the list is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tasks {
    all: Vec<Task>,
}

impl Tasks {
    /// The list as stored; an empty one if there is none, or it cannot be read.
    pub(super) fn read(stored: Option<&str>) -> Self {
        let read = || {
            let stored: Value = serde_json::from_str(stored?).ok()?;
            let text = |task: &Value, key: &str| Some(task.get(key)?.as_str()?.to_owned());
            let task = |task: &Value| {
                Some(Task {
                    number: task.get("number")?.as_u64()?,
                    status: Status::of(task.get("status")?.as_str()?)?,
                    content: text(task, "content")?,
                    notes: text(task, "notes")?,
                })
            };
            let all = stored.get("tasks")?.as_array()?.iter().map(task).collect::<Option<_>>()?;
            Some(Self { all })
        };
        read().unwrap_or_default()
    }

    pub(super) fn written(&self) -> String {
        let task = |task: &Task| {
            json!({
                "number": task.number, "status": task.status.as_str(), "content": task.content,
                "notes": task.notes,
            })
        };
        json!({ "tasks": self.all.iter().map(task).collect::<Vec<_>>() }).to_string()
    }

    /// Adds a task, and returns its id.
    ///
    /// # Errors
    /// The text for the model, with the next step.
    pub(super) fn add(
        &mut self,
        content: &str,
        notes: &str,
        status: Status,
        first: bool,
    ) -> Result<String, String> {
        if self.all.len() >= MOST_TASKS {
            return Err(format!(
                "the list has {MOST_TASKS} tasks; replace the whole list without those that are done"
            ));
        }
        // A list only grows until it is replaced.
        let number = self.all.len() as u64 + 1;
        let (content, notes) = (content.to_owned(), notes.to_owned());
        let task = Task { number, status, content, notes };
        self.all.insert(if first { 0 } else { self.all.len() }, task);
        self.check()?;
        Ok(id(number))
    }

    /// Changes a task.
    ///
    /// # Errors
    /// `None` for an id that no task has; else the text for the model.
    pub(super) fn update(
        &mut self,
        wanted: &str,
        change: impl FnOnce(&mut Task),
    ) -> Result<(), Option<String>> {
        let task = self.all.iter_mut().find(|task| id(task.number) == wanted);
        change(task.ok_or(None)?);
        self.check().map_err(Some)
    }

    fn check(&self) -> Result<(), String> {
        let mut begun = self.all.iter().filter(|task| task.status == Status::InProgress);
        match (begun.next(), begun.next()) {
            (Some(one), Some(_)) => Err(format!(
                "only one task can be in progress; first end or stop another, such as {}",
                id(one.number)
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn ids(&self) -> String {
        let ids: Vec<_> = self.all.iter().map(|task| id(task.number)).collect();
        ids.join(", ")
    }

    /// The list as text.
    pub(super) fn shown(&self, with_done: bool) -> String {
        let done = self.all.iter().filter(|task| task.status == Status::Done).count();
        let mut text = match self.all.len() {
            0 => return "no tasks".to_owned(),
            count => format!("{count} tasks, {done} done\n"),
        };
        for task in self.all.iter().filter(|task| with_done || task.status != Status::Done) {
            let mark = match task.status {
                Status::Open => ' ',
                Status::InProgress => '>',
                Status::Done => 'x',
            };
            let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(text, "[{mark}] {}: {}", id(task.number), one_line(&task.content));
            if !task.notes.is_empty() {
                let _ = writeln!(text, "    {}", one_line(&task.notes));
            }
        }
        text
    }
}

fn id(number: u64) -> String {
    format!("t{number}")
}
