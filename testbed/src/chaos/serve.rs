//! The protocol, with a fault.

use std::{
    io::{self, BufRead as _},
    process, thread,
};

use serde_json::{Value, json};

use crate::{
    fault::Fault,
    log::Log,
    wire::{answer, changed, garbage, refusal, send, send_raw, send_when_quiet},
};

const NOT_FOUND: i64 = -32601;

/// Answers until the input ends.
pub(crate) fn serve(fault: Fault, log: &Log) {
    let mut server = Server { fault, log, calls: 0 };
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if let Ok(message) = serde_json::from_str::<Value>(&line) {
            server.take(&message);
        }
    }
}

struct Server<'a> {
    fault: Fault,
    log: &'a Log,
    calls: u64,
}

impl Server<'_> {
    fn take(&mut self, message: &Value) {
        if self.fault == Fault::HangAtStart {
            return;
        }
        let method = message["method"].as_str().unwrap_or_default();
        let Some(id) = message.get("id") else {
            self.notified(method, &message["params"]);
            return;
        };
        match method {
            "initialize" => self.answer(id, &hello(&message["params"])),
            "ping" => self.answer(id, &json!({})),
            "tools/list" => self.list(id, &message["params"]),
            "tools/call" => self.call(id, &message["params"]),
            // The newest revision is unknown here, as with most servers.
            _ => send(&refusal(id, NOT_FOUND, "Method not found")),
        }
    }

    fn notified(&self, method: &str, params: &Value) {
        match method {
            "notifications/initialized" if self.fault == Fault::FloodChanges => {
                thread::spawn(|| {
                    loop {
                        send_when_quiet(&changed());
                    }
                });
            }
            "notifications/initialized" if self.fault == Fault::FloodAnswers => {
                thread::spawn(|| {
                    for id in 1_000_000_u64.. {
                        send_when_quiet(&answer(&json!(id), &json!({})));
                    }
                });
            }
            "notifications/cancelled" => {
                self.log.line(&format!("cancelled {}", params["requestId"]));
            }
            _ => {}
        }
    }

    fn list(&self, id: &Value, params: &Value) {
        let cursor = params["cursor"].as_str();
        self.log.line(&format!("list {}", cursor.unwrap_or("first")));
        let page: u64 = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        match self.fault {
            Fault::HangAtList => {}
            Fault::EndlessPages => {
                let tools = [tool(&format!("echo{page}"))];
                self.answer(id, &json!({"tools": tools, "nextCursor": (page + 1).to_string()}));
            }
            Fault::CursorLoop => {
                self.answer(id, &json!({"tools": [tool("echo")], "nextCursor": "1"}));
            }
            _ => self.answer(id, &json!({"tools": [tool("echo")]})),
        }
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let asked = params.pointer("/arguments/id").and_then(Value::as_str).unwrap_or_default();
        self.log.line(&format!("call {asked}"));
        self.calls += 1;
        match self.fault {
            Fault::HangAtCall => {}
            Fault::CrashOnCall(nth) if self.calls == nth => process::abort(),
            Fault::DieMidCall => {
                let whole = answer(id, &text(asked)).to_string();
                let (half, _) = whole.split_at(whole.len() / 2);
                send_raw(half.as_bytes());
                process::abort();
            }
            Fault::GarbageOnly => loop {
                garbage();
            },
            Fault::WrongIds => {
                for wrong in
                    [json!(null), json!("x"), json!(-1), json!(1.5), json!({}), json!(999_999)]
                {
                    send(&answer(&wrong, &text("not what was asked for")));
                }
            }
            Fault::LongLine => {
                let part = [b'x'; 1_000_000];
                for _ in 0..1_000 {
                    send_raw(&part);
                }
                self.answer(id, &text(asked));
            }
            Fault::BadResult => self.answer(id, &json!({"content": 7})),
            Fault::BadBase64 => {
                let image = json!({"type": "image", "data": "%%%", "mimeType": "image/png"});
                self.answer(id, &json!({"content": [image]}));
            }
            Fault::HugeResult(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                self.answer(id, &text(&"h".repeat(bytes)));
            }
            _ => self.answer(id, &text(asked)),
        }
    }

    fn answer(&self, id: &Value, result: &Value) {
        if self.fault == Fault::Garbage {
            garbage();
        }
        let answer = answer(id, result);
        send(&answer);
        if self.fault == Fault::AnswersTwice {
            send(&answer);
        }
    }
}

/// The response to `initialize`, with the requested version.
fn hello(params: &Value) -> Value {
    json!({
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "chaos", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Returns its id.",
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "string"}},
            "required": ["id"],
        },
    })
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}
