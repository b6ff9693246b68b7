//! Shows a model the files that the user attached to the message of the turn.

use std::{fmt::Write as _, sync::Arc};

use tokio::task::spawn_blocking;
use toolcrib_core::{
    ArtifactCall, ArtifactPort, Attachment, Attachments, ContentBlock, Message, TextOrigin, fence,
};

use super::Turn;
use crate::secrets::Redactor;

/// The tool in fences and artifacts.
const TOOL: &str = "attachment";

/// The text of all attachments that a message contains, in characters. The rest of a longer one is in
/// an artifact.
const SHOWN_CHARS: usize = 20_000;

impl Turn {
    /// The message for the model: the user's text, and below it the name, size and id of each
    /// attachment, with its redacted text in a fence. Of all texts together 20,000 characters are shown;
    /// a longer one is stored as an artifact, if the engine has a store of artifacts. Images that are
    /// whole are blocks of the message. With a text or an image, the conversation is tainted. `None`
    /// without attachments.
    pub async fn with_attachments(&self, message: &str) -> Option<Message> {
        let attachments = &self.state.attachments;
        if attachments.is_empty() {
            return None;
        }
        let shown = AttachmentRenderer {
            attachments: Arc::clone(attachments),
            redactor: self.redactor().clone(),
            port: self.state.engine.artifact_port.clone(),
            call: ArtifactCall {
                identity: Arc::clone(self.identity()),
                turn_id: Arc::clone(self.turn_id()),
                call_id: Arc::default(),
                tool: TOOL.into(),
                kind: None,
                untrusted: true,
                text_origin: TextOrigin::Project,
            },
        };
        // Megabytes are redacted and stored.
        let below = spawn_blocking(move || shown.all()).await;
        let (below, blocks) = below.unwrap_or_else(|error| {
            (format!("\n\nThe attached files cannot be read: {error}"), Vec::new())
        });
        let text = format!("{message}{below}").into();
        let message = Message::User { text, blocks: blocks.into() };
        if attachments.iter().any(|attachment| attachment.text().is_some())
            || message.is_untrusted()
        {
            self.state.taint();
        }
        Some(message)
    }

    /// The files that the user attached to the message.
    pub fn attachments(&self) -> &Arc<Attachments> {
        &self.state.attachments
    }
}

struct AttachmentRenderer {
    attachments: Arc<Attachments>,
    redactor: Redactor,
    port: Option<Arc<dyn ArtifactPort>>,
    /// The artifacts, without their ids.
    call: ArtifactCall,
}

impl AttachmentRenderer {
    /// The text about the attachments, and the images.
    fn all(&self) -> (String, Vec<ContentBlock>) {
        let (mut shown, mut images) = (String::new(), Vec::new());
        let mut left = SHOWN_CHARS;
        for attachment in self.attachments.iter() {
            let (name, bytes) = (attachment.name(), attachment.data().len());
            let id = attachment.id();
            let _ = write!(shown, "\n\nAttached file `{name}`, {bytes} bytes, attachment id {id}");
            let image = attachment.image();
            let text = attachment.text().filter(|_| !matches!(image, Some(Ok(_))));
            let _ = match &image {
                Some(Ok(info)) => {
                    images.push(ContentBlock::image(info.media_type, attachment.data()));
                    write!(shown, "; image {} of this message: {info}", images.len())
                }
                Some(Err(error)) => write!(shown, "; {error}"),
                None if text.is_none() => write!(shown, "; it is not text"),
                None => Ok(()),
            };
            let Some(text) = text else {
                shown.push('.');
                continue;
            };
            let text = self.redactor.text(text);
            let end = text.char_indices().nth(left).map_or(text.len(), |(at, _)| at);
            let (begin, rest) = text.split_at(end);
            let chars = begin.chars().count();
            left -= chars;
            if rest.is_empty() {
                shown.push_str(":\n");
            } else {
                let _ = write!(shown, ", {} characters", chars + rest.chars().count());
                let _ = match self.store(attachment, &text) {
                    Ok(id) => writeln!(shown, "; the whole: artifact_read {id}. Its beginning:"),
                    Err(why) => {
                        writeln!(shown, "; the rest cannot be read: {why}. Its beginning:")
                    }
                };
            }
            shown.push_str(&fence(TOOL, &TextOrigin::Project.harmless(begin)));
        }
        (shown, images)
    }

    /// Stores a text as an artifact, and returns its id.
    fn store(&self, attachment: &Attachment, text: &str) -> Result<Arc<str>, String> {
        let port = self.port.as_ref().ok_or("results are not stored here")?;
        let call = ArtifactCall { call_id: Arc::clone(attachment.id()), ..self.call.clone() };
        let stored = port.keep(&call, text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(stored.entry.id)
    }
}
