//! Shows a model the files that the user attached to the message of the turn.

use std::{fmt::Write as _, sync::Arc};

use tokio::task::spawn_blocking;
use toolcrib_core::{ArtifactCall, Attachment, fence, harmless};

use super::Turn;

/// The tool in fences and artifacts.
const TOOL: &str = "attachment";

/// The text of all attachments that a message contains, in characters. The rest of a longer one is in
/// an artifact.
const SHOWN_CHARS: usize = 20_000;

impl Turn {
    /// The message for the model: the user's text, and below it the name, size and id of each
    /// attachment, with its redacted text in a fence. Of all texts together 20,000 characters are shown;
    /// a longer one is stored as an artifact, if the engine has a store of artifacts. The message is
    /// unchanged without attachments; with texts, the conversation is tainted.
    pub async fn with_attachments(&self, message: &str) -> String {
        let attachments = &self.state.attachments;
        let mut shown = message.to_owned();
        let mut left = SHOWN_CHARS;
        for attachment in attachments.iter() {
            let (name, bytes) = (attachment.name(), attachment.data().len());
            let _ = write!(
                shown,
                "\n\nAttached file `{name}`, {bytes} bytes, attachment id {}",
                attachment.id()
            );
            let Some(text) = attachment.text() else {
                shown.push_str("; it is not text.");
                continue;
            };
            self.state.taint();
            let text = self.redactor().text(text).into_owned();
            let end = text.char_indices().nth(left).map_or(text.len(), |(at, _)| at);
            let (begin, rest) = text.split_at(end);
            left -= begin.chars().count();
            if rest.is_empty() {
                shown.push_str(":\n");
            } else {
                let chars = begin.chars().count() + rest.chars().count();
                let _ = write!(shown, ", {chars} characters");
                match self.store_attachment(attachment, text.as_bytes()).await {
                    Ok(id) => {
                        let _ = writeln!(shown, "; the whole: artifact_read {id}. Its beginning:");
                    }
                    Err(why) => {
                        let _ = writeln!(shown, "; the rest cannot be read: {why}. Its beginning:");
                    }
                }
            }
            shown.push_str(&fence(TOOL, &harmless(begin)));
        }
        shown
    }

    /// Stores the text of an attachment as an artifact, and returns its id.
    async fn store_attachment(
        &self,
        attachment: &Attachment,
        text: &[u8],
    ) -> Result<Arc<str>, String> {
        let Some(port) = self.state.engine.artifact_port.clone() else {
            return Err("results are not stored here".to_owned());
        };
        let call = ArtifactCall {
            identity: Arc::clone(self.identity()),
            turn_id: Arc::clone(self.turn_id()),
            call_id: attachment.id().into(),
            tool: TOOL.into(),
            kind: None,
            untrusted: true,
        };
        let text = text.to_vec();
        let stored = spawn_blocking(move || port.keep(&call, &text)).await;
        match stored {
            Ok(Ok(stored)) => Ok(stored.entry.id),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}
