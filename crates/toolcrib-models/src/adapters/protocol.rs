//! The interface of a vendor's protocol.

use serde::Serialize;
use serde_json::{Value, value::RawValue};
use toolcrib_capabilities::http::{HeaderName, StatusCode, header};
use toolcrib_core::{
    Arguments, CALL_TOOL, Digest, ImageSupport, Menu, Message, ModelError, ModelErrorClass,
    ModelRequest, SEARCH_TOOLS, Tool,
};

use super::{
    answer::Answer, frames::Framing, images::SentImages, sent_parts::SentForm, settings::Settings,
};

/// The tools of a request, as a protocol declares them.
#[derive(Clone, Copy)]
pub(super) struct Offer<'a> {
    menu: &'a Menu,
    loads: bool,
}

impl<'a> Offer<'a> {
    /// The offer of a menu to a model whose vendor loads found tools itself, or does not.
    pub(super) fn new(menu: &'a Menu, vendor_loads: bool) -> Self {
        let searches = || menu.get(SEARCH_TOOLS).is_some_and(|tool| tool.is_framework());
        Self { menu, loads: vendor_loads && !menu.deferred().is_empty() && searches() }
    }

    /// Whether the vendor loads the definitions of found tools: then the model calls them by their
    /// names, and `call_tool` is not declared.
    pub(super) fn loads(self) -> bool {
        self.loads
    }

    /// The tools whose definitions the model reads.
    pub(super) fn declared(self) -> impl Iterator<Item = &'a Tool> {
        let tools = if self.loads { self.menu.stable() } else { self.menu.tools() };
        tools
            .iter()
            .filter(move |tool| !(self.loads && tool.is_framework() && *tool.name() == *CALL_TOOL))
    }

    /// The number of [declared](Self::declared) tools that no search changes.
    pub(super) fn stable(self) -> usize {
        self.declared().count().min(self.menu.stable().len())
    }

    /// The found tools that the vendor may load, in the order of their finding.
    pub(super) fn loadable(self) -> &'a [Tool] {
        if self.loads { self.menu.revealed() } else { &[] }
    }

    /// The tools that a message names and that the vendor may load.
    pub(super) fn found_in(self, message: &Message) -> Vec<&'a Tool> {
        if self.loadable().is_empty() {
            return Vec::new();
        }
        let loadable = |name| self.loadable().iter().find(|tool| *tool.name() == name);
        message.found_tools().into_iter().filter_map(loadable).collect()
    }

    /// A digest of everything that the tool block depends on.
    pub(super) fn digest(self) -> Digest {
        match self.loads {
            false => self.menu.fingerprint(),
            true => Digest::of_all(&[self.declared_digest(), digest(self.loadable())]),
        }
    }

    /// A digest of the definitions before the first message.
    pub(super) fn declared_digest(self) -> Digest {
        match self.loads {
            false => self.menu.fingerprint(),
            true => Digest::of_all(&[Digest::of("searched"), digest(self.declared())]),
        }
    }
}

fn digest<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> Digest {
    let digests: Vec<_> = tools.into_iter().map(|tool| tool.digest()).collect();
    Digest::of_all(&digests)
}

/// The input of a request body.
pub(super) struct RequestInput<'a> {
    /// The base URL of the server.
    pub(super) server: &'a str,
    /// The vendor's name of the model.
    pub(super) model: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) request: &'a ModelRequest,
    pub(super) offer: Offer<'a>,
    /// The result of [`Protocol::tools`] for the offer; `None` when it is empty.
    pub(super) tools: Option<&'a RawValue>,
    /// The parts that were sent before.
    pub(super) first: &'a SentForm,
    pub(super) images: &'a SentImages,
}

impl RequestInput<'_> {
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
        Message::User { text, .. } | Message::Tool { text, .. } => text.len(),
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
    /// Its name in keys of parts that were sent, which never changes.
    fn name(&self) -> &'static str;

    /// The path for a model's next message, after the base URL; begins with `/`.
    fn path(&self, model: &str) -> String;

    /// The header that carries the key, and its value.
    fn key(&self, key: &str) -> (HeaderName, String) {
        (header::AUTHORIZATION, format!("Bearer {key}"))
    }

    /// Headers beside the key's, `content-type` and `accept`.
    fn headers(&self, _settings: &Settings) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Whether the vendor can make room in a conversation that becomes too long.
    fn clears(&self) -> bool {
        false
    }

    /// How the response is split into frames.
    fn framing(&self) -> Framing;

    /// The tool block, as JSON. Depends only on the offer and on the definitions that were sent
    /// before.
    fn tools(&self, offer: Offer<'_>, first: &SentForm) -> String;

    /// Whether a model is known by its name to see images, whether those in results are sent without
    /// a setting, and the vendor's limits.
    fn images(&self, model: &str) -> ImageSupport;

    /// Whether a model is known to load tools that a search of its client has found; `None` if the
    /// protocol has no such search.
    fn loads_tools(&self, _model: &str) -> Option<bool> {
        None
    }

    /// The body, as JSON. Its beginning does not change from iteration to iteration, so that
    /// vendors find their cache entries: growing parts come last.
    fn body(&self, input: &RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error>;

    /// The reader for the frames of the response.
    fn reader(&self, input: &RequestInput<'_>) -> Box<dyn Reader>;

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
