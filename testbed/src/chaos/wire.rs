//! Writes lines to standard output.

use std::{
    io::{self, Write as _},
    process,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};

use serde_json::{Value, json};

/// The number of threads that wait to write a line outside of a flood.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Writes one line. Exits when standard output is closed.
pub(crate) fn send(message: &Value) {
    send_raw(format!("{message}\n").as_bytes());
}

/// Writes raw bytes.
pub(crate) fn send_raw(bytes: &[u8]) {
    WAITING.fetch_add(1, SeqCst);
    write(bytes);
    WAITING.fetch_sub(1, SeqCst);
}

/// Writes one line after all waiting ones: with the lock alone, a flood would starve the responses.
pub(crate) fn send_when_quiet(message: &Value) {
    while WAITING.load(SeqCst) > 0 {
        thread::yield_now();
    }
    write(format!("{message}\n").as_bytes());
}

fn write(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        process::abort();
    }
}

/// A response to a request.
pub(crate) fn answer(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// An error response to a request.
pub(crate) fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

pub(crate) fn changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

/// Lines that are not JSON-RPC, each in a different way.
pub(crate) fn garbage() {
    send_raw(b"Server running on stdio\n\n\x00\xff\xfe\x80\n{\"jsonrpc\":\"2.0\",\"id\":1,\n");
    send_raw(b"[]\nnull\n42\n\"text\"\n{}\n{\"jsonrpc\":\"1.0\",\"id\":7}\n");
    send_raw("[".repeat(10_000).as_bytes());
    send_raw(b"\r\n");
}
