//! Calls that were made again although they had been answered.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::support::Project;

/// A rule that repeats every call that may be repeated.
const RETRY: &str = "[[reliability]]\nwhen = { stage = 'tool' }\nthen = 'retry'\n\
                     attempts = 3\nbase = '1ms'\ncap = '10ms'\n";

/// Codes of errors that no rule repeats for a tool that may write.
const FINAL: [&str; 3] = ["execution_failed", "input_invalid", "outcome_unknown"];

#[test]
fn an_answered_charge_was_made_three_times() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/stateful_server.py");
    for (code, message) in [
        (-32_601, "Client does not support listing roots"),
        (-32_602, "the power tool was not found in crate 7"),
        (-32_602, "Unknown tool: charge"),
        (-32_602, "no"),
        (-32_603, "out of paper"),
        (-32_000, "the server is busy, not available, try again"),
    ] {
        let error = json!({ "code": code, "message": message }).to_string();
        let server = format!(
            "[mcp.bank]\ncommand = 'python3'\nargs = ['{script}', 'bank']\n\
             env = {{ LOG = 'ledger', ERROR = '{error}' }}\n"
        );
        let project = Project::of(&[("toolcrib.toml", &format!("{server}\n{RETRY}"))]);
        let (exit, result) = project.json(&["mcp", "call", "bank", "charge"]);
        assert_eq!(exit, Some(1), "{result}");
        assert!(FINAL.contains(&result["code"].as_str().unwrap()), "{message}: {result}");
        let ledger = fs::read_to_string(project.path().join("ledger")).unwrap();
        let charges = ledger.lines().filter(|line| line.ends_with("call charge")).count();
        assert_eq!(charges, 1, "{code} {message}");
    }
}

/// How a call is answered: the head after `HTTP/1.1 `, and the body; nothing closes the connection.
type Answer = Option<(&'static str, &'static str)>;

/// An endpoint that counts charges, and answers each in one way. It is an MCP server of an era with
/// sessions; whatever else is posted is a charge too.
struct Bank {
    port: u16,
    charges: Arc<AtomicUsize>,
}

impl Bank {
    fn start(session: bool, answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let charges = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&charges);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let counted = Arc::clone(&counted);
                thread::spawn(move || serve(stream.unwrap(), session, answer, &counted));
            }
        });
        Self { port, charges }
    }
}

fn serve(stream: TcpStream, session: bool, answer: Answer, charges: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        if reader.read_line(&mut head).unwrap_or_default() <= 2 {
            break;
        }
        if let Some(bytes) = head[start..].to_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_post = head.starts_with("POST");
    let json_type = "Content-Type: application/json\r\n";
    let result = |result: Value| {
        json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
    };
    let (head, body) = match message["method"].as_str() {
        _ if !is_post => ("405 Method Not Allowed\r\n".to_owned(), String::new()),
        Some("server/discover") => ("404 Not Found\r\n".to_owned(), String::new()),
        Some("initialize") => {
            let id = if session { "Mcp-Session-Id: s1\r\n" } else { "" };
            let info = json!({ "name": "bank", "version": "1" });
            let info = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                               "serverInfo": info });
            (format!("200 OK\r\n{json_type}{id}"), result(info))
        }
        Some("tools/list") => {
            let tool = json!({ "name": "charge", "description": "Charges.",
                               "inputSchema": { "type": "object" } });
            (format!("200 OK\r\n{json_type}"), result(json!({ "tools": [tool] })))
        }
        Some(other) if other != "tools/call" => ("202 Accepted\r\n".to_owned(), String::new()),
        _ => {
            charges.fetch_add(1, Ordering::SeqCst);
            let Some((head, body)) = answer else { return };
            (format!("{head}\r\n"), body.replace("$ID", &message["id"].to_string()))
        }
    };
    let rest = format!("Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    let _ = reader.get_mut().write_all(format!("HTTP/1.1 {head}{rest}").as_bytes());
}

const NO_METHOD: &str =
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"Method not found"}}"#;

/// Error responses, each of a server that had charged by then.
const ANSWERS: [Answer; 13] = [
    Some(("404 Not Found", "no such session")),
    Some(("404 Not Found\r\nContent-Type: application/json", NO_METHOD)),
    Some(("400 Bad Request\r\nContent-Type: application/json", NO_METHOD)),
    Some(("200 OK\r\nContent-Type: application/json", NO_METHOD)),
    Some(("405 Method Not Allowed", "")),
    Some(("429 Too Many Requests\r\nRetry-After: 0", "")),
    Some(("500 Internal Server Error", "oops")),
    Some(("503 Service Unavailable\r\nRetry-After: 0", "")),
    Some(("307 Temporary Redirect\r\nLocation: /mcp", "")),
    Some(("308 Permanent Redirect\r\nLocation: https://elsewhere.example/", "")),
    Some(("401 Unauthorized\r\nWWW-Authenticate: Bearer", "")),
    Some(("200 OK\r\nContent-Type: text/html", "<p>charged</p>")),
    None,
];

#[test]
fn a_charge_over_http_was_made_again_after_its_answer() {
    for (session, answer) in [true, false].into_iter().flat_map(|s| ANSWERS.map(|a| (s, a))) {
        let bank = Bank::start(session, answer);
        let server = format!("[mcp.bank]\nurl = 'http://127.0.0.1:{}/mcp'\n", bank.port);
        // By the protocol, the server has forgotten the session, and executed nothing. The call is repeated once
        // in a new session; a rule may retry it, as often as the back-off of the server permits.
        let is_lost = session && answer == Some(("404 Not Found", "no such session"));
        let rule = if is_lost { "" } else { RETRY };
        let project = Project::of(&[("toolcrib.toml", &format!("{server}\n{rule}"))]);
        let (exit, result) = project.json(&["mcp", "call", "bank", "charge"]);
        assert_eq!(exit, Some(1), "{result}");
        let charges = bank.charges.load(Ordering::SeqCst);
        assert_eq!(charges, if is_lost { 2 } else { 1 }, "{session} {answer:?}: {result}");
        assert!(
            is_lost || FINAL.contains(&result["code"].as_str().unwrap()),
            "{answer:?}: {result}"
        );
    }
}

#[test]
fn a_charge_by_a_declared_tool_was_made_again_after_its_answer() {
    for answer in ANSWERS {
        let bank = Bank::start(false, answer);
        let tool = format!(
            "[[tool]]\nkind = 'http'\nname = 'charge'\ndescription = 'Charges.'\nmethod = 'POST'\n\
             url = 'http://127.0.0.1:{}/mcp'\nbody = {{ note = 'x' }}\n\
             allow_addresses = ['127.0.0.1']\n",
            bank.port
        );
        let project = Project::of(&[("toolcrib.toml", &format!("{tool}\n{RETRY}"))]);
        let (_, result) = project.json(&["call", "charge"]);
        assert_eq!(bank.charges.load(Ordering::SeqCst), 1, "{answer:?}: {result}");
    }
}
