//! The interface of a vendor's protocol.

use serde::Serialize;
use serde_json::{Value, value::RawValue};
use toolcrib_capabilities::http::{HeaderName, StatusCode};
use toolcrib_core::{Arguments, Menu, Message, ModelError, ModelErrorClass, ModelRequest};

use super::{answer::Answer, frames::Framing, settings::Settings};

/// The input of a request body.
pub(super) struct Asked<'a> {
    /// The base URL of the server.
    pub(super) server: &'a str,
    /// The vendor's name of the model.
    pub(super) model: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) request: &'a ModelRequest,
    /// The result of [`Protocol::tools`] for the menu; `None` when it is empty.
    pub(super) tools: Option<&'a RawValue>,
}

impl Asked<'_> {
    /// Serializes a body into a buffer of estimated size: one that grows with a large tool block is
    /// copied repeatedly, and ends up twice as large.
    pub(super) fn write(&self, body: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
        /// The overhead around the text of a message.
        const AROUND: usize = 160;
        let messages = self.request.messages.iter().map(|message| AROUND + text_bytes(message));
        let tools = self.tools.map_or(0, |tools| tools.get().len());
        let texts = self.request.system.len() + messages.sum::<usize>();
        // Quotes and line breaks become two bytes each.
        let mut bytes = Vec::with_capacity(tools + texts + texts / 8 + AROUND);
        serde_json::to_writer(&mut bytes, body)?;
        Ok(bytes)
    }
}

fn text_bytes(message: &Message) -> usize {
    match message {
        Message::User { text } | Message::Tool { text, .. } => text.len(),
        Message::Assistant { text, calls, .. } => {
            let arguments = calls.iter().map(|call| match &call.arguments {
                Arguments::Text(text) => text.len(),
                Arguments::Json(_) => 0,
            });
            text.len() + arguments.sum::<usize>()
        }
        _ => 0,
    }
}

/// One vendor's protocol. Stateless: its [`Reader`] has the state of a response.
pub(super) trait Protocol: Send + Sync + 'static {
    /// The path for a model's next message, after the base URL; begins with `/`.
    fn path(&self, model: &str) -> String;

    /// The header that carries the key, and its value.
    fn key(&self, key: &str) -> (HeaderName, String);

    /// Headers beside the key's, `content-type` and `accept`.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// How the response is split into frames.
    fn framing(&self) -> Framing;

    /// The tool block, as JSON. Depends only on the menu, and is created once for each.
    fn tools(&self, menu: &Menu) -> String;

    /// The body, as JSON. Its beginning does not change from iteration to iteration, so that
    /// vendors find their cache entries: growing parts come last.
    fn body(&self, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error>;

    /// The reader for the frames of the response.
    fn reader(&self, asked: &Asked<'_>) -> Box<dyn Reader>;

    /// Classifies an error response beyond its status. The body is null if it is not JSON.
    fn refusal(&self, status: StatusCode, body: &Value) -> Refusal;

    /// The path of its list of models, after the base URL.
    fn models_path(&self) -> &'static str;

    /// The names in such a list; `None` if it is not such a list.
    fn model_names(&self, list: &Value) -> Option<Vec<String>>;
}

/// A vendor's error.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// More precise than the status, if the vendor has a code for it.
    pub(super) class: Option<ModelErrorClass>,
    /// The vendor's message.
    pub(super) message: Option<String>,
    /// The time to wait, if the body contains it and no header does.
    pub(super) retry_after: Option<std::time::Duration>,
}

/// Reads the frames of one response.
pub(super) trait Reader: Send {
    /// Reads one frame. Unknown fields and unknown kinds of frames are ignored. Calls
    /// [`Answer::complete`] at the last frame.
    fn read(&mut self, frame: &super::frames::Frame, answer: &mut Answer)
    -> Result<(), ModelError>;

    /// Handles a stream that ended without a last frame: completes the response if no part of it
    /// can be missing, otherwise leaves it incomplete.
    fn end(&mut self, answer: &mut Answer) {
        let _ = answer;
    }
}
