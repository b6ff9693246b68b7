//! The traffic of one handshake: which messages of the server break the rules, and the pages of its lists.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Instant,
};

use parking_lot::Mutex;
use serde_json::{Map, Value, value::RawValue};
use toolcrib_core::{
    __internal::{PlainJson, beginning},
    Redact as _,
};
use toolcrib_engine::Redactor;
use toolcrib_mcp::__internal::WireEvent;

use super::faults::{self, FaultKind};
use crate::output::ServerFinding;

/// The methods whose results are kept: the lists.
const LISTS: [&str; 4] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/// The size limit of the kept pages, in bytes. The client refuses longer lists.
const MOST_KEPT: usize = 64 * 1024 * 1024;

/// How many bytes of a message are quoted, and how many characters of these.
const LOOKED_AT: usize = 4 * 1024;
const QUOTED: usize = 80;

/// The version that permits several messages in one.
const VERSION_OF_BATCHES: &str = "2025-03-26";

/// The fields of a message, unread. Nesting costs nothing.
pub(super) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Records the traffic.
pub(super) struct Recorder {
    redactor: Redactor,
    /// Whether the server is a program, whose messages are lines of its standard output.
    is_program: bool,
    recording: Mutex<Recording>,
}

#[derive(Default)]
struct Recording {
    /// The method of each request of the present connection.
    sent: HashMap<i64, String>,
    answered: HashSet<i64>,
    /// Whether the client has sent `notifications/initialized`.
    is_initialized: bool,
    /// Whether the handshake is `server/discover`.
    is_new: bool,
    version: Option<String>,
    /// The declared capabilities, once known.
    capabilities: Option<Map<String, Value>>,
    /// Whether the lines of a message that is not on one line are being skipped.
    is_in_message: bool,
    seen: Vec<SeenFault>,
    pages: HashMap<String, Vec<String>>,
    kept: usize,
    listed_at: Option<Instant>,
}

/// A kind of fault, with its first example.
struct SeenFault {
    kind: &'static FaultKind,
    count: usize,
    first: String,
}

impl Recorder {
    pub(super) fn new(redactor: Redactor, is_program: bool) -> Self {
        Self { redactor, is_program, recording: Mutex::default() }
    }

    pub(super) fn record(&self, event: WireEvent<'_>) {
        let mut recording = self.recording.lock();
        match event {
            WireEvent::Sent(message) => recording.sent(message),
            WireEvent::Received(bytes) => {
                if let Some((kind, example)) = recording.received(bytes, self.is_program) {
                    recording.note(kind, || self.quoted(example));
                }
            }
            WireEvent::OutlivedInput => recording.note(&faults::KEEPS_RUNNING, String::new),
            _ => {}
        }
    }

    /// The pages of a list of the last connection, as results.
    pub(super) fn pages(&self, method: &str) -> Vec<String> {
        self.recording.lock().pages.get(method).cloned().unwrap_or_default()
    }

    /// The negotiated version, once known.
    pub(super) fn version(&self) -> Option<String> {
        self.recording.lock().version.clone()
    }

    /// Whether a capability is declared; `None` before the handshake.
    pub(super) fn declares(&self, capability: &str) -> Option<bool> {
        let recording = self.recording.lock();
        Some(recording.capabilities.as_ref()?.contains_key(capability))
    }

    /// When the first page of the tools arrived.
    pub(super) fn listed_at(&self) -> Option<Instant> {
        self.recording.lock().listed_at
    }

    /// One finding for each kind of fault.
    pub(super) fn findings(&self) -> Vec<ServerFinding> {
        let recording = self.recording.lock();
        let all = recording.seen.iter();
        all.map(|seen| seen.kind.finding(seen.count, &seen.first)).collect()
    }

    /// The beginning of a message, redacted before it is cut: half of a secret cannot be detected.
    fn quoted(&self, bytes: &[u8]) -> String {
        let shown = match bytes.get(..LOOKED_AT) {
            Some(begin) => self.redactor.redact_start(&String::from_utf8_lossy(begin)),
            None => self.redactor.redact(&String::from_utf8_lossy(bytes)),
        };
        beginning(shown.trim(), QUOTED)
    }
}

/// A fault, and the bytes that show it.
type Found<'a> = Option<(&'static FaultKind, &'a [u8])>;

impl Recording {
    fn note(&mut self, kind: &'static FaultKind, example: impl FnOnce() -> String) {
        match self.seen.iter_mut().find(|seen| seen.kind == kind) {
            Some(seen) => seen.count += 1,
            None => self.seen.push(SeenFault { kind, count: 1, first: example() }),
        }
    }

    fn sent(&mut self, message: &[u8]) {
        let Ok(fields) = serde_json::from_slice::<Fields<'_>>(message) else { return };
        let Some(method) = text(&fields, "method") else { return };
        if method == "notifications/initialized" {
            self.is_initialized = true;
        }
        let Some(id) = fields.get("id").and_then(|id| id.get().parse().ok()) else { return };
        if matches!(method.as_str(), "initialize" | "server/discover") {
            // Another connection: its ids begin again.
            self.sent.clear();
            self.answered.clear();
            self.is_initialized = false;
            self.is_new = method == "server/discover";
            self.capabilities = None;
        }
        let params = fields.get("params");
        let has_cursor = params.is_some_and(|params| params.get().contains("\"cursor\""));
        if LISTS.contains(&method.as_str()) && !has_cursor {
            let before = self.pages.remove(&method).unwrap_or_default();
            self.kept -= before.iter().map(String::len).sum::<usize>();
        }
        self.sent.insert(id, method);
    }

    fn received<'a>(&mut self, bytes: &'a [u8], is_program: bool) -> Found<'a> {
        let line = bytes.trim_ascii();
        if line.is_empty() {
            return None;
        }
        if self.is_in_message && is_program {
            // Only the end of the message is not indented.
            self.is_in_message = !matches!(bytes.trim_ascii_end(), b"}" | b"]");
            return None;
        }
        if let Some(rest) = line.strip_prefix(b"\xef\xbb\xbf") {
            let more = self.received(rest, is_program);
            return more.or(Some((&faults::BYTE_ORDER_MARK, line)));
        }
        let kind = match serde_json::from_slice::<Fields<'_>>(line) {
            Ok(fields) => self.message(&fields),
            Err(_) if is_program && matches!(line, b"{" | b"[") => {
                self.is_in_message = true;
                Some(&faults::SEVERAL_LINES)
            }
            Err(_) => self.not_a_message(line, is_program),
        };
        kind.map(|kind| (kind, line))
    }

    fn not_a_message(&self, line: &[u8], is_program: bool) -> Option<&'static FaultKind> {
        let text = if is_program { &faults::STDOUT_TEXT } else { &faults::NOT_JSON };
        let is_like_message = line.strip_prefix(b"{").is_some_and(|rest| {
            let rest = rest.trim_ascii_start();
            rest.is_empty() || rest.starts_with(b"\"")
        });
        let Ok(shown) = str::from_utf8(line) else {
            return Some(if is_like_message { &faults::NOT_UTF8 } else { text });
        };
        if let Ok(several) = serde_json::from_str::<Vec<&RawValue>>(shown) {
            let is_batch = several.first().is_some_and(|first| first.get().starts_with('{'));
            return match is_batch {
                true if self.version.as_deref() == Some(VERSION_OF_BATCHES) => None,
                true => Some(&faults::BATCH),
                false => Some(text),
            };
        }
        if !is_like_message {
            return Some(text);
        }
        let mut values = serde_json::Deserializer::from_str(shown).into_iter::<&RawValue>();
        if let Some(Ok(_)) = values.next() {
            return Some(&faults::JOINED);
        }
        let numbers = shown.replace("-Infinity", "0").replace("Infinity", "0").replace("NaN", "0");
        Some(match serde_json::from_str::<&RawValue>(&numbers) {
            Ok(_) => &faults::NOT_A_NUMBER,
            Err(_) => &faults::INVALID_JSON,
        })
    }

    fn message(&mut self, fields: &Fields<'_>) -> Option<&'static FaultKind> {
        if text(fields, "jsonrpc").as_deref() != Some("2.0") {
            return Some(&faults::NO_VERSION);
        }
        let has = |name: &str| fields.contains_key(name);
        match (text(fields, "method"), has("result"), has("error")) {
            (Some(method), false, false) => self.request_or_notification(&method, fields),
            (None, true, false) | (None, false, true) if !has("method") => self.response(fields),
            _ => Some(&faults::UNCLEAR_KIND),
        }
    }

    fn request_or_notification(
        &self,
        method: &str,
        fields: &Fields<'_>,
    ) -> Option<&'static FaultKind> {
        match fields.get("id").map(|id| id.get()) {
            None => self.notification(method),
            Some(id)
                if !id.starts_with(['"', '-']) && !id.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                Some(&faults::UNUSABLE_ID)
            }
            Some(_) if method == "ping" && !self.is_new => None,
            Some(_) if !self.is_initialized && !self.is_new => Some(&faults::EARLY_REQUEST),
            // This client declares no capabilities.
            Some(_) => Some(&faults::UNDECLARED_REQUEST),
        }
    }

    fn notification(&self, method: &str) -> Option<&'static FaultKind> {
        let capabilities = self.capabilities.as_ref().filter(|_| !self.is_new)?;
        let has = |name: &str, part: &str| {
            capabilities.get(name).and_then(|all| all.get(part)) == Some(&Value::Bool(true))
        };
        let is_declared = match method {
            "notifications/message" => capabilities.contains_key("logging"),
            "notifications/tools/list_changed" => has("tools", "listChanged"),
            "notifications/prompts/list_changed" => has("prompts", "listChanged"),
            "notifications/resources/list_changed" => has("resources", "listChanged"),
            "notifications/resources/updated" => has("resources", "subscribe"),
            _ => true,
        };
        (!is_declared).then_some(&faults::UNDECLARED_NOTIFICATION)
    }

    fn response(&mut self, fields: &Fields<'_>) -> Option<&'static FaultKind> {
        let id = match fields.get("id").map(|id| id.get()) {
            None | Some("null") => return Some(&faults::NO_ID),
            Some(id) => id,
        };
        let is_text = id.starts_with('"');
        let id = id.trim_matches('"').parse::<i64>().ok();
        let Some(id) = id.filter(|id| self.sent.contains_key(id)) else {
            return Some(&faults::UNKNOWN_ID);
        };
        if !self.answered.insert(id) {
            return Some(&faults::ANSWERED_TWICE);
        }
        let fault = self.first_response(id, fields);
        fault.or(is_text.then_some(&faults::TEXT_ID))
    }

    fn first_response(&mut self, id: i64, fields: &Fields<'_>) -> Option<&'static FaultKind> {
        if let Some(error) = fields.get("error") {
            let error = serde_json::from_str::<Fields<'_>>(error.get()).unwrap_or_default();
            let code = error.get("code").map(|code| code.get().parse::<i64>());
            let is_valid = matches!(code, Some(Ok(_))) && text(&error, "message").is_some();
            return (!is_valid).then_some(&faults::INVALID_ERROR);
        }
        let result = fields.get("result").map(|result| result.get()).unwrap_or_default();
        if !result.starts_with('{') {
            return Some(&faults::INVALID_RESULT);
        }
        let method = self.sent.get(&id).cloned().unwrap_or_default();
        match method.as_str() {
            "initialize" | "server/discover" => self.handshake(result),
            list if LISTS.contains(&list) => self.page(list, result),
            _ => {}
        }
        None
    }

    fn handshake(&mut self, result: &str) {
        let Ok(result) = PlainJson::read(result.as_bytes()) else { return };
        self.version = match self.is_new {
            true => Some("2026-07-28".to_owned()),
            false => result.get("protocolVersion").and_then(Value::as_str).map(str::to_owned),
        };
        self.capabilities = result.get("capabilities").and_then(Value::as_object).cloned();
    }

    fn page(&mut self, method: &str, result: &str) {
        if method == "tools/list" {
            self.listed_at.get_or_insert_with(Instant::now);
        }
        if self.kept + result.len() <= MOST_KEPT {
            self.kept += result.len();
            self.pages.entry(method.to_owned()).or_default().push(result.to_owned());
        }
    }
}

/// A field that is a text.
pub(super) fn text(fields: &Fields<'_>, name: &str) -> Option<String> {
    serde_json::from_str(fields.get(name)?.get()).ok()
}
