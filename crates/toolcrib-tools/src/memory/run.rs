//! The body: one call, one topic or one search.

use std::{
    cmp::Reverse,
    fmt::Write as _,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use tokio::task::spawn_blocking;
use toolcrib_capabilities::{
    __internal::folder_of,
    files::{Entry, EntryKind, FileError, FilesHandle},
};
use toolcrib_core::{
    __internal::{may_contain_credential, millis},
    ErrorCode, SessionOwner, SessionSearch, ToolContext, ToolError, ToolOutput, harmless,
};

use super::{
    ACTION, CONTENT, FIRST_LINE, LIMIT, MATCHES, MOST_MATCHES, MOST_TOPIC_BYTES, MOST_TOPICS,
    MemoryScope, MemoryTool, OLD, QUERY, SearchSessions, TOPIC,
    day::day,
    search::{paragraphs, words},
    topic::{Topic, Write, is_name},
};
use crate::arguments::{present, refused, text};

/// How often a write is tried while other processes change the same topic.
const ATTEMPTS: usize = 10;

/// The characters of a result that are kept for the line about the topic and for the fence.
const RESERVED_CHARS: usize = 500;

/// The most characters of a paragraph in the results of a search.
const MOST_PARAGRAPH: usize = 500;

/// The handler of a tool.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) tool: MemoryTool,
    pub(super) scope: MemoryScope,
    pub(super) files: Option<FilesHandle>,
    pub(super) sessions: SearchSessions,
}

impl Body {
    pub(super) async fn call(self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        if self.tool == MemoryTool::Sessions {
            return self.sessions(&args, &cx).await;
        }
        let files = self.files.as_ref().ok_or_else(|| {
            ToolError::not_set_up("a folder").caused_by("the project was not loaded to run calls")
        })?;
        let folder = Folder { files, path: folder_of_scope(self.scope, &cx), cx: &cx };
        match (self.tool, topic_of(&args)?) {
            (MemoryTool::Write, Some(topic)) => folder.write(&topic, &args).await,
            (MemoryTool::Write, None) => Err(refused(TOPIC, "is missing")),
            (MemoryTool::Search, _) => folder.search(&args).await,
            (_, Some(topic)) => folder.read(&topic, &args).await,
            (_, None) => folder.list().await,
        }
    }

    async fn sessions(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let words = words(&text(args, QUERY).unwrap_or_default());
        if words.is_empty() {
            return Err(refused(QUERY, "has no word of letters or digits"));
        }
        let owner = SessionOwner::from(cx.identity());
        let without = Some(Arc::clone(&cx.identity().conversation));
        let search = SessionSearch { words, without, limit: limit(args) };
        let sessions = Arc::clone(&self.sessions);
        let found = spawn_blocking(move || sessions(&owner, &search));
        let found = tokio::select! {
            biased;
            () = cx.cancellation().cancelled() => return Err(cancelled()),
            found = found => found?.map_err(|error| {
                ToolError::failed("the sessions could not be searched").caused_by(error)
            })?,
        };
        let mut lines = String::new();
        for one in &found {
            let session = one.name.as_ref().unwrap_or(&one.session);
            let excerpt = one.excerpt.split_whitespace().collect::<Vec<_>>().join(" ");
            let (at, turn, role) = (day(one.at_ms), one.turn, &one.role);
            let _ = writeln!(lines, "{at}, session {session}, turn {turn}, {role}: {excerpt}");
        }
        if lines.is_empty() {
            lines.push_str("no earlier message has all these words; use fewer or other words\n");
        }
        Ok(ToolOutput::text(lines))
    }
}

fn cancelled() -> ToolError {
    ToolError::new(ErrorCode::Cancelled, "the call was cancelled")
}

fn limit(args: &Value) -> usize {
    let limit = present(args, LIMIT).and_then(Value::as_u64);
    let limit = limit.map_or(MATCHES, |limit| usize::try_from(limit).unwrap_or(MOST_MATCHES));
    limit.clamp(1, MOST_MATCHES)
}

/// The folder of a scope, the same in all calls of a turn.
fn folder_of_scope(scope: MemoryScope, cx: &ToolContext) -> String {
    match scope {
        MemoryScope::Global => "global".to_owned(),
        MemoryScope::Personality => format!("personality/{}", folder_of(cx.personality())),
        MemoryScope::Principal => {
            let identity = cx.identity();
            // No id has one of these folders: `%` is followed by digits there, and `=` never written.
            let part = |id: &Option<Arc<str>>| {
                id.as_ref().map_or_else(|| "=none".to_owned(), |id| folder_of(id))
            };
            format!("principal/{}/{}", part(&identity.tenant), part(&identity.principal))
        }
        // The tools of a team are offered only in a team.
        MemoryScope::Team => format!("team/{}", folder_of(cx.team().unwrap_or_default())),
    }
}

fn topic_of(args: &Value) -> Result<Option<String>, ToolError> {
    let Some(topic) = text(args, TOPIC) else { return Ok(None) };
    let topic = topic.strip_suffix(".md").unwrap_or(&topic);
    if !is_name(topic) {
        let how = "must have lower-case letters, digits, - and _, and begin with a letter or digit";
        return Err(refused(TOPIC, how));
    }
    Ok(Some(topic.to_owned()))
}

/// The topics of a scope during a call.
struct Folder<'a> {
    files: &'a FilesHandle,
    path: String,
    cx: &'a ToolContext,
}

impl Folder<'_> {
    fn path_of(&self, topic: &str) -> String {
        format!("{}/{topic}.md", self.path)
    }

    /// The names of the topics, and what else is in the folder.
    async fn topics(&self) -> Result<(Vec<String>, LeftOut), ToolError> {
        let cx = self.cx.clone().for_own_files();
        let listing = match self.files.list(&cx, &self.path, 1, true).await {
            Err(error) if is_missing(&error) => return Ok((Vec::new(), LeftOut::default())),
            listing => listing?,
        };
        let name = |entry: &Entry| {
            let name = entry.path.rsplit('/').next()?.strip_suffix(".md")?;
            (entry.kind == EntryKind::File && is_name(name)).then(|| name.to_owned())
        };
        let (mut names, mut left_out) = (Vec::new(), LeftOut::default());
        for entry in &listing.entries {
            match name(entry) {
                Some(name) => names.push(name),
                None => left_out.add(entry.path.rsplit('/').next().unwrap_or_default(), "no topic"),
            }
        }
        Ok((names, left_out))
    }

    /// A listed topic; `None` if it was removed meanwhile, or cannot be read and is left out.
    async fn listed(&self, name: &str, left_out: &mut LeftOut) -> Result<Option<Topic>, ToolError> {
        match self.topic(name).await {
            Ok((topic, _)) => Ok(topic),
            Err(error) if error.code == ErrorCode::Cancelled => Err(error),
            Err(error) => {
                left_out.add(&format!("{name}.md"), &error.message);
                Ok(None)
            }
        }
    }

    /// The topic, and a context that knows its present content; `None` if there is none.
    async fn topic(&self, topic: &str) -> Result<(Option<Topic>, ToolContext), ToolError> {
        let cx = self.cx.clone().for_own_files();
        match self.files.read_text(&cx, &self.path_of(topic)).await {
            Ok(file) => Ok((Some(Topic::read(&file)), cx)),
            Err(error) if is_missing(&error) => Ok((None, cx)),
            Err(error) => Err(error),
        }
    }

    async fn list(&self) -> Result<ToolOutput, ToolError> {
        let (mut lines, mut tainted) = (String::new(), false);
        let (names, mut left_out) = self.topics().await?;
        for name in names {
            let Some(topic) = self.listed(&name, &mut left_out).await? else { continue };
            tainted |= topic.tainted;
            let count = topic.text.lines().count();
            let _ = writeln!(lines, "{name} ({count} lines{})", written(&topic));
        }
        if lines.is_empty() {
            lines.push_str("no topics yet\n");
        }
        Ok(marked(lines + &left_out.warning(), tainted))
    }

    async fn read(&self, name: &str, args: &Value) -> Result<ToolOutput, ToolError> {
        let (topic, _) = self.topic(name).await?;
        let topic =
            topic.ok_or_else(|| refused(TOPIC, "does not exist; read without it for a list"))?;
        let text = harmless(&self.cx.redacted(&topic.text)).into_owned();
        let total = text.lines().count();
        let first = present(args, FIRST_LINE).and_then(Value::as_u64).unwrap_or(1).max(1);
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        if first > total.max(1) {
            return Err(refused(FIRST_LINE, &format!("is after the last line, {total}")));
        }
        let room = self.cx.result_budget_chars().saturating_sub(RESERVED_CHARS).max(RESERVED_CHARS);
        let (mut part, mut chars, mut count) = (String::new(), 0, 0);
        for line in text.split_inclusive('\n').skip(first - 1) {
            chars += line.chars().count();
            if chars > room {
                if count == 0 {
                    part.extend(line.chars().take(room));
                    count = 1;
                }
                break;
            }
            part.push_str(line);
            count += 1;
        }
        let last = first + count - usize::from(count > 0);
        let next = match last < total {
            true => format!("; continue with {FIRST_LINE} {}", last + 1),
            false => String::new(),
        };
        let about =
            format!("{name}: lines {first} to {last} of {total}{}{next}\n", written(&topic));
        Ok(marked(about + &part, topic.tainted))
    }

    async fn search(&self, args: &Value) -> Result<ToolOutput, ToolError> {
        let words = words(&text(args, QUERY).unwrap_or_default());
        if words.is_empty() {
            return Err(refused(QUERY, "has no word of letters or digits"));
        }
        let mut found = Vec::new();
        let (names, mut left_out) = self.topics().await?;
        for name in names {
            if self.cx.cancellation().is_cancelled() {
                return Err(cancelled());
            }
            let Some(topic) = self.listed(&name, &mut left_out).await? else { continue };
            let text = harmless(&self.cx.redacted(&topic.text)).into_owned();
            found.extend(paragraphs(&text, &words).into_iter().map(|one| {
                let cut: String = one.text.chars().take(MOST_PARAGRAPH).collect();
                (one.score, format!("{name}, line {}: {cut}\n", one.line), topic.tainted)
            }));
        }
        found.sort_by_key(|(score, ..)| Reverse(*score));
        found.truncate(limit(args));
        let tainted = found.iter().any(|(_, _, tainted)| *tainted);
        let lines: String = found.into_iter().map(|(_, line, _)| line).collect();
        if lines.is_empty() {
            let none = "no paragraph has one of these words\n".to_owned();
            return Ok(ToolOutput::text((none + &left_out.warning()).trim_end()));
        }
        Ok(marked(lines + &left_out.warning(), tainted))
    }

    async fn write(&self, name: &str, args: &Value) -> Result<ToolOutput, ToolError> {
        let change = Change::of(args)?;
        for (argument, text) in [(CONTENT, change.content.as_deref()), (TOPIC, Some(name))] {
            let Some(text) = text else { continue };
            if self.cx.redacted(text) != text || may_contain_credential(text) {
                return Err(refused(
                    argument,
                    "looks like it contains a password, key or token, which memory does not keep; \
                     write where it is found instead",
                ));
            }
        }
        for _ in 0..ATTEMPTS {
            let (topic, cx) = self.topic(name).await?;
            let is_new = topic.is_none();
            let mut topic = topic.unwrap_or_default();
            match change.apply(&mut topic, is_new)? {
                ChangeOutcome::Removed => {
                    self.files.remove(&cx, &self.path_of(name)).await?;
                    return Ok(ToolOutput::text(format!("removed the topic {name}")));
                }
                ChangeOutcome::Changed => {}
            }
            if is_new && self.topics().await?.0.len() >= MOST_TOPICS {
                return Err(ToolError::failed(format!(
                    "the memory has {MOST_TOPICS} topics; add to one of them, or remove one"
                )));
            }
            self.sign(&mut topic, change.action);
            let file = topic.file();
            if file.len() > MOST_TOPIC_BYTES {
                return Err(ToolError::failed(format!(
                    "the topic would be larger than {MOST_TOPIC_BYTES} bytes; make it shorter, or begin \
                     another topic"
                )));
            }
            match self.files.write(&cx, &self.path_of(name), file).await {
                Err(error) if error.code == ErrorCode::StaleWrite => {}
                written => {
                    written?;
                    let lines = topic.text.lines().count();
                    return Ok(ToolOutput::text(format!("{name} now has {lines} lines")));
                }
            }
        }
        Err(ToolError::failed("other programs keep changing this topic; try again later"))
    }

    /// Notes who has written it.
    fn sign(&self, topic: &mut Topic, action: &str) {
        let identity = self.cx.identity();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let tainted = self.cx.is_tainted();
        topic.tainted |= tainted;
        topic.writes.push(Write {
            at_ms: millis(now),
            action: action.to_owned(),
            principal: identity.principal.as_deref().map(str::to_owned),
            session: identity.conversation.to_string(),
            turn: self.cx.turn_id().to_string(),
            tainted,
        });
    }
}

/// The files of a memory folder that are not shown, each with the reason.
#[derive(Default)]
struct LeftOut {
    shown: Vec<String>,
    count: usize,
}

impl LeftOut {
    fn add(&mut self, name: &str, why: &str) {
        const MOST_SHOWN: usize = 5;
        const MOST_NAME: usize = 60;
        self.count += 1;
        if self.shown.len() < MOST_SHOWN {
            let name: String = name.chars().take(MOST_NAME).collect();
            self.shown.push(format!(
                "{} ({})",
                harmless(&name.escape_debug().to_string()),
                harmless(why)
            ));
        }
    }

    /// A line about them; empty if there are none.
    fn warning(&self) -> String {
        match self.count {
            0 => String::new(),
            count => {
                let more = if count > self.shown.len() { ", and others" } else { "" };
                format!("warning: left out of the memory: {}{more}\n", self.shown.join(", "))
            }
        }
    }
}

fn is_missing(error: &ToolError) -> bool {
    matches!(FileError::of(error), Some(FileError::NotFound { .. }))
}

/// A text that others may have written is fenced.
fn marked(text: String, tainted: bool) -> ToolOutput {
    let output = ToolOutput::text(text);
    if tainted { output.untrusted() } else { output }
}

/// The last write.
fn written(topic: &Topic) -> String {
    let taint = if topic.tainted { ", with untrusted content" } else { "" };
    match topic.writes.last() {
        Some(last) => format!(", written {}{taint}", day(last.at_ms)),
        None => taint.to_owned(),
    }
}

/// A change of a topic.
struct Change {
    action: &'static str,
    content: Option<String>,
    old: Option<String>,
}

enum ChangeOutcome {
    Changed,
    Removed,
}

impl Change {
    fn of(args: &Value) -> Result<Self, ToolError> {
        let content = text(args, CONTENT).map(std::borrow::Cow::into_owned);
        let old = text(args, OLD).map(std::borrow::Cow::into_owned);
        let action = match text(args, ACTION).as_deref() {
            None | Some("add") => "add",
            Some("replace") => "replace",
            Some("remove") => "remove",
            Some(_) => return Err(refused(ACTION, "is not `add`, `replace` or `remove`")),
        };
        if action != "remove" && content.is_none() {
            return Err(refused(CONTENT, "is missing: it is the new text"));
        }
        if action == "remove" && content.is_some() {
            return Err(refused(CONTENT, "has no effect with `remove`; the removed text is `old`"));
        }
        if action == "add" && old.is_some() {
            return Err(refused(OLD, "has no effect with `add`; use `replace`"));
        }
        Ok(Self { action, content, old })
    }

    fn apply(&self, topic: &mut Topic, is_new: bool) -> Result<ChangeOutcome, ToolError> {
        let content = self.content.as_deref().unwrap_or_default();
        match (self.action, &self.old) {
            (_, Some(old)) => match topic.text.matches(old.as_str()).count() {
                1 => topic.text = topic.text.replacen(old.as_str(), content, 1),
                0 => return Err(refused(OLD, "does not occur in the topic; read it first")),
                count => {
                    let how = format!("occurs {count} times in the topic; use a longer text");
                    return Err(refused(OLD, &how));
                }
            },
            ("remove", None) if is_new => {
                return Err(refused(TOPIC, "does not exist"));
            }
            ("remove", None) => return Ok(ChangeOutcome::Removed),
            ("replace", None) => {
                // Nothing of the old text is left.
                topic.tainted = false;
                topic.text = with_end(content);
            }
            _ => {
                let gap = if topic.text.is_empty() { "" } else { "\n" };
                topic.text = format!("{}{gap}{}", with_end(&topic.text), with_end(content));
            }
        }
        Ok(ChangeOutcome::Changed)
    }
}

fn with_end(text: &str) -> String {
    match text.trim_end_matches('\n') {
        "" => String::new(),
        text => format!("{text}\n"),
    }
}
