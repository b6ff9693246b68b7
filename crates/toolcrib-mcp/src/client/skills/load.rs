//! The tool that loads a server's skills: reads their files, and verifies them.

use std::{
    fmt::Write as _,
    sync::{Arc, Weak},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rmcp::model::{SKILL_MD, SkillResource};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolcrib_core::{BoxFuture, ClientHandle, ToolBody, ToolContext, ToolError, ToolOutput};

use super::{
    format::{MOST_FILE_BYTES, RemoteSkill},
    frontmatter,
};
use crate::client::{
    call::session_of,
    request::{McpRequest, plain},
    sessions::Sessions,
    supervisor::Supervisor,
};

/// The limit of files named to a model; of further ones it reads only the count.
const MOST_NAMED: usize = 100;

/// The body of the tool. Like that of a remote tool it has no reference to the client.
pub(crate) struct LoadSkill {
    pub(crate) sessions: Weak<Sessions>,
    /// The server's name, for calls after the client is gone.
    pub(crate) server: Arc<str>,
    /// The offered skills: no other can be read.
    pub(crate) skills: Arc<[Arc<RemoteSkill>]>,
}

#[derive(Deserialize)]
struct Args {
    name: String,
    path: Option<String>,
}

impl ToolBody for LoadSkill {
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Args { name, path } = Args::deserialize(args)
                .map_err(|error| ToolError::input_invalid(error.to_string()))?;
            let skill = self.skills.iter().find(|skill| skill.name() == Some(name.as_str()));
            let skill = skill.ok_or_else(|| ToolError::input_invalid("there is no such skill"))?;
            let (sessions, session) = session_of(&self.sessions, &self.server, &cx)?;
            let call = LoadCall { session: &session, skill, name: &name, cx: &cx };
            let conversation = Sessions::conversation(cx.identity());
            let text = match path {
                None => {
                    let body = call.instructions().await?;
                    sessions.shared().loads_skill(&conversation, &name.as_str().into());
                    // Its tools may be offered now.
                    session.tick();
                    call.with_files(body)
                }
                Some(path) => {
                    // A file of a skill is used only if its instructions may be.
                    if !sessions.shared().loaded_skills(&conversation).contains(name.as_str()) {
                        call.instructions().await?;
                    }
                    call.file(&path).await?
                }
            };
            Ok(ToolOutput::text(text))
        })
    }

    fn runs_inline(&self) -> bool {
        true
    }
}

/// One call.
struct LoadCall<'a> {
    session: &'a Arc<Supervisor>,
    skill: &'a RemoteSkill,
    name: &'a str,
    cx: &'a ToolContext,
}

impl LoadCall<'_> {
    /// The text of `SKILL.md` below the frontmatter, which must be the listed one.
    async fn instructions(&self) -> Result<String, ToolError> {
        let uri = self.skill.uri().unwrap_or_default();
        let expected = self.skill.files().iter().find(|file| file.uri == uri);
        let content = self.read(uri, expected).await?;
        let listed = self.skill.frontmatter().cloned().unwrap_or_default();
        let text =
            String::from_utf8(content).map_err(|_| self.refused("`SKILL.md` is not text"))?;
        match frontmatter::body(&text, &listed) {
            Ok(body) => Ok(body.to_owned()),
            Err(problem) => Err(self.refused(&format!("`SKILL.md` {problem}"))),
        }
    }

    /// The body with the names of the files.
    fn with_files(&self, mut text: String) -> String {
        let paths: Vec<_> = self.skill.paths().collect();
        if !paths.is_empty() {
            let named: Vec<_> = paths
                .iter()
                .take(MOST_NAMED)
                .map(|path| format!("`{}`", path.escape_debug()))
                .collect();
            let _ = write!(text, "\n\nFiles, which `path` reads: {}", named.join(", "));
            if let Some(more @ 1..) = paths.len().checked_sub(MOST_NAMED) {
                let _ = write!(text, ", and {more} more");
            }
        }
        text
    }

    async fn file(&self, path: &str) -> Result<String, ToolError> {
        let shown: String = path.chars().take(100).collect();
        let absent = || {
            let text = format!("`{}` is not a file of skill `{}`", shown.escape_debug(), self.name);
            ToolError::input_invalid(text)
        };
        let uri = format!("{}{path}", self.skill.root().unwrap_or_default());
        let expected = self.skill.files().iter().find(|file| file.uri == uri);
        let is_permitted = match self.skill.is_dynamic() {
            true => is_inside(path),
            false => expected.is_some(),
        };
        if !is_permitted || path == SKILL_MD {
            return Err(absent());
        }
        let content = self.read(&uri, expected).await?;
        String::from_utf8(content).map_err(|_| {
            let text = format!("`{}` is not text, and cannot be read", shown.escape_debug());
            ToolError::input_invalid(text)
        })
    }

    /// The verified content of a file; of a dynamic skill, nothing is `expected`.
    async fn read(
        &self,
        uri: &str,
        expected: Option<&SkillResource>,
    ) -> Result<Vec<u8>, ToolError> {
        let too_large = || {
            let most = MOST_FILE_BYTES / 1024;
            self.refused(&format!("a file is larger than {most} KiB"))
        };
        if expected.is_some_and(|file| file.size > MOST_FILE_BYTES) {
            return Err(too_large());
        }
        let request = McpRequest {
            method: "resources/read",
            params: Arc::new(Map::from_iter([("uri".to_owned(), Value::from(uri))])),
            on_progress: None,
            client: self.cx.handle::<ClientHandle>().ok().cloned(),
            cancellation: self.cx.cancellation().clone(),
        };
        let answer = plain(self.session, request).await?;
        let content = content(&answer, uri)
            .ok_or_else(|| self.refused("the server's answer does not have the file"))?;
        if u64::try_from(content.len()).unwrap_or(u64::MAX) > MOST_FILE_BYTES {
            return Err(too_large());
        }
        match expected.map(|file| file.verify(&content)) {
            None | Some(Ok(())) => Ok(content),
            Some(Err(error)) => Err(self.refused(&error.to_string())),
        }
    }

    /// The server gave something else than it listed: it is listed again, for the pins.
    fn refused(&self, problem: &str) -> ToolError {
        self.session.tools_changed();
        ToolError::failed(format!("skill `{}` cannot be used: {problem}", self.name))
    }
}

/// The bytes of the resource in a response.
fn content(answer: &Map<String, Value>, uri: &str) -> Option<Vec<u8>> {
    let contents = answer.get("contents")?.as_array()?;
    let found =
        contents.iter().find(|each| each.get("uri").and_then(Value::as_str) == Some(uri))?;
    match (found.get("text"), found.get("blob")) {
        (Some(Value::String(text)), None) => Some(text.clone().into_bytes()),
        (None, Some(Value::String(blob))) => BASE64_STANDARD.decode(blob).ok(),
        _ => None,
    }
}

/// Whether a path stays within its skill: plain segments, which no server decodes to others.
fn is_inside(path: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    !path.contains(['%', '?', '#', '\\']) && path.split('/').all(is_plain)
}
