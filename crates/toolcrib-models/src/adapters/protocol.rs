//! The interface of a vendor's protocol.

use serde::Serialize;
use serde_json::{Value, value::RawValue};
use toolcrib_capabilities::http::{HeaderName, StatusCode, header};
use toolcrib_core::{
    CALL_TOOL, Digest, ImageSupport, Menu, Message, ModelError, ModelErrorClass, ModelRequest,
    SEARCH_TOOLS, Tool, ToolName,
};

use super::{
    answer::Answer, conversation::Conversation, frames::Framing, images::SentImages,
    sent_parts::SentForm, settings::Settings,
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

    /// Their names.
    pub(super) fn names_found_in(self, message: &Message) -> Vec<ToolName> {
        self.found_in(message).into_iter().map(|tool| tool.name().clone()).collect()
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

/// The fields of a request body, in the order in which they are written.
pub(super) struct BodyFields<'a, Before, After> {
    /// The fields before the conversation.
    pub(super) before: &'a Before,
    /// The name of the conversation's field, as JSON.
    pub(super) name: &'static str,
    /// Writes the elements of the conversation's list.
    pub(super) list: &'a dyn Fn(&mut Vec<u8>) -> serde_json::Result<()>,
    /// The fields after it.
    pub(super) after: &'a After,
}

impl<Before: Serialize, After: Serialize> BodyFields<'_, Before, After> {
    /// The body, whose conversation has about this size.
    pub(super) fn write(&self, list_bytes: usize) -> serde_json::Result<Vec<u8>> {
        let mut body = serde_json::to_vec(self.before)?;
        let after = serde_json::to_vec(self.after)?;
        /// The overhead around the conversation, and for the marks in it.
        const AROUND: usize = 256;
        // A body that grows is copied repeatedly, and ends up twice as large.
        body.reserve_exact(list_bytes + after.len() + AROUND);
        // Both are objects.
        body.pop();
        if body.len() > 1 {
            body.push(b',');
        }
        body.extend_from_slice(self.name.as_bytes());
        body.extend_from_slice(b":[");
        (self.list)(&mut body)?;
        body.push(b']');
        let fields = after.get(1..).unwrap_or_default();
        if fields.len() > 1 {
            body.push(b',');
        }
        body.extend_from_slice(fields);
        Ok(body)
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
    /// vendors find their cache entries: growing parts come last. Only those messages are written that
    /// the conversation lacks.
    fn body(
        &self,
        input: &RequestInput<'_>,
        conversation: &mut Conversation,
    ) -> serde_json::Result<Vec<u8>>;

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
