//! What differs from vendor to vendor.

use serde::Serialize;
use serde_json::{Value, value::RawValue};
use toolcrib_core::{Arguments, Menu, Message, ModelError, ModelErrorClass, ModelRequest};
use toolcrib_scope::http::{HeaderName, StatusCode};

use super::{answer::Answer, frames::Framing, settings::Settings};

/// What is asked, as the body of a request needs it.
pub(super) struct Asked<'a> {
    /// The base URL of the server that is asked.
    pub(super) server: &'a str,
    /// The model, as its vendor calls it.
    pub(super) model: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) request: &'a ModelRequest,
    /// What [`Protocol::tools`] made of the menu; none when it is empty.
    pub(super) tools: Option<&'a RawValue>,
}

impl Asked<'_> {
    /// A body as bytes, in a buffer that has about the size that it will need: one that grows with a
    /// large tool block is copied over and over, and ends up twice as large.
    pub(super) fn write(&self, body: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
        /// What stands around the text of a message.
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

/// How one vendor is spoken to. Stateless: what an answer needs is kept by its [`Reader`].
pub(super) trait Protocol: Send + Sync + 'static {
    /// Where a model's next message is asked for, after the base URL; begins with `/`.
    fn path(&self, model: &str) -> String;

    /// The header that carries the key, and its value.
    fn key(&self, key: &str) -> (HeaderName, String);

    /// Headers beside the key's, `content-type` and `accept`.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// How the answer is cut into frames.
    fn framing(&self) -> Framing;

    /// The tool block, as JSON. Depends on nothing but the menu, and is made once for each.
    fn tools(&self, menu: &Menu) -> String;

    /// The body, as JSON. The beginning depends on nothing that changes from iteration to
    /// iteration, so that vendors find what they have cached: what grows stands last.
    fn body(&self, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error>;

    /// What takes in the frames of the answer to this.
    fn reader(&self, asked: &Asked<'_>) -> Box<dyn Reader>;

    /// What an answer with an error's status means, beyond what the status says. The body is null
    /// where it is no JSON.
    fn refusal(&self, status: StatusCode, body: &Value) -> Refusal;

    /// Where its models are listed, after the base URL.
    fn models_path(&self) -> &'static str;

    /// The names in such a list; none if it is no such list.
    fn model_names(&self, list: &Value) -> Option<Vec<String>>;
}

/// What a vendor says when it refuses.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// More exact than the status, where the vendor has a code for it.
    pub(super) class: Option<ModelErrorClass>,
    /// The vendor's own words.
    pub(super) message: Option<String>,
    /// How long to wait, where the body says it and no header does.
    pub(super) retry_after: Option<std::time::Duration>,
}

/// Takes in the frames of one answer.
pub(super) trait Reader: Send {
    /// Takes in one frame. Unknown fields and unknown kinds of frames are passed over. Calls
    /// [`Answer::complete`] at the frame after which none is to come.
    fn read(&mut self, frame: &super::frames::Frame, answer: &mut Answer)
    -> Result<(), ModelError>;

    /// The stream has ended without a last frame: completes the answer if nothing of it can be
    /// missing, and else leaves it.
    fn end(&mut self, answer: &mut Answer) {
        let _ = answer;
    }
}
