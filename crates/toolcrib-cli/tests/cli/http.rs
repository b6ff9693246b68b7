//! Tools of the kind `http`, against a server on this machine.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::support::{Outcome, Project};

/// Nowhere else in this process, so that finding it anywhere is a leak.
const SECRET: &str = "hush-83b0d5e6aa";
const VARIABLE: &str = "TOOLCRIB_TEST_CREDENTIAL";

const SCRIPT: &str = r#"
[[rule]]
user = 'city (?P<city>\w+)'
not_called = "forecast"
calls = [{ tool = "forecast", args = { city = "{{ city }}" } }]
[[rule]]
text = "done"
"#;

/// A server that returns its request, and remembers it.
pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let (mut head, mut length) = (String::new(), 0);
                loop {
                    let start = head.len();
                    if reader.read_line(&mut head).unwrap() <= 2 {
                        break;
                    }
                    let line = head[start..].to_lowercase();
                    if let Some(bytes) = line.strip_prefix("content-length:") {
                        length = bytes.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let request = head + &String::from_utf8(body).unwrap();
                let first = request.lines().next().unwrap_or_default();
                let status = if first.contains("/missing") { "404 Not Found" } else { "200 OK" };
                let answer = json!({ "request": request, "data": { "first": first } }).to_string();
                seen.lock().unwrap().push(request);
                let length = answer.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n\
                     Content-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                reader.get_mut().write_all((head + &answer).as_bytes()).unwrap();
            }
        });
        Self { port, asked }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn project(&self) -> Project {
        let file = r#"
[secrets]
CREDENTIAL = { env = "TOOLCRIB_TEST_CREDENTIAL" }

[agent]
model = "script:script.toml"

[[tool]]
kind = "http"
name = "forecast"
description = "The forecast for a city."
url = "http://127.0.0.1:PORT/v1/{city}/forecast?days={days}"
headers = { Authorization = "Bearer {secret:CREDENTIAL}" }
allow_addresses = ["127.0.0.1"]
[tool.params]
city = { type = "string" }
days = { type = "integer", optional = true }

[[tool]]
kind = "http"
name = "first_line"
description = "What was asked."
url = "http://127.0.0.1:PORT/{path}"
pointer = "/data/first"
allow_addresses = ["127.0.0.0/8"]
[tool.params]
path = { type = "string" }

[[tool]]
kind = "http"
name = "order"
description = "Orders something."
method = "POST"
url = "http://127.0.0.1:PORT/orders"
headers = { X-Key = "secret:CREDENTIAL" }
body = { item = "{item}", count = "{count}", note = "for {item}" }
pointer = "/data/first"
allow_addresses = ["127.0.0.1/32"]
[tool.params]
item = { type = "string" }
count = { type = "integer" }

[[tool]]
kind = "http"
name = "private"
description = "Goes where it may not."
url = "http://127.0.0.1:PORT/"
"#;
        let file = file.replace("PORT", &self.port.to_string());
        Project::of(&[("toolcrib.toml", &file), ("script.toml", SCRIPT)])
    }
}

fn with_secret(project: &Project, args: &[&str]) -> Outcome {
    project.command(args).env(VARIABLE, SECRET).output().unwrap().into()
}

fn call(project: &Project, args: &[&str]) -> (Option<i32>, Value) {
    let args: Vec<_> = ["call"].iter().chain(args).chain(&["--json"]).copied().collect();
    let outcome = with_secret(project, &args);
    (outcome.code, serde_json::from_str(&outcome.stdout).unwrap())
}

#[test]
fn arguments_stay_in_place_and_the_pointed_part_is_returned() {
    let server = Server::start();
    let project = server.project();
    let (code, line) = call(&project, &["first_line", "path=a b/..x/?x=1#é"]);
    assert_eq!(code, Some(0), "{line}");
    assert_eq!(line["value"], "GET /a%20b%2F..x%2F%3Fx%3D1%23%C3%A9 HTTP/1.1", "{line}");
    let (code, order) = call(&project, &["order", "item=a \"cup\"", "count=2"]);
    assert_eq!((code, &order["value"]), (Some(0), &"POST /orders HTTP/1.1".into()), "{order}");
    let asked = server.asked();
    let request = asked.last().unwrap();
    let body: Value = serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body, json!({ "item": "a \"cup\"", "count": 2, "note": "for a \"cup\"" }));
}

#[test]
fn a_secret_reaches_the_server_and_shows_up_nowhere_else() {
    let server = Server::start();
    let project = server.project();
    let events = project.path().join("events.jsonl");
    let file = events.to_str().unwrap();
    let mut said = String::new();
    for city in ["Ulm", "missing"] {
        let (prompt, argument) = (format!("city {city}"), format!("city={city}"));
        for flag in ["--json", "-v"] {
            let outcome = with_secret(&project, &["call", "forecast", &argument, flag]);
            assert_eq!(outcome.code, Some(i32::from(city == "missing")), "{}", outcome.stderr);
            said += &outcome.stdout;
            said += &outcome.stderr;
        }
        let outcome = with_secret(&project, &["run", &prompt, "-v", "--events", file]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        said += &outcome.stdout;
        said += &outcome.stderr;
        let events = std::fs::read_to_string(&events).unwrap();
        assert!(events.contains("[redacted]"), "{events}");
        said += &events;
    }
    for request in server.asked() {
        assert!(request.to_lowercase().contains(&format!("authorization: bearer {SECRET}")));
        assert!(!request.contains("days"), "{request}");
    }
    assert_eq!(server.asked().len(), 6);
    assert!(said.contains("[redacted]") && said.contains("404"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
}

#[test]
fn unavailable_and_forbidden_hosts_are_never_dialed() {
    let server = Server::start();
    let project = server.project();
    for command in [&["check"][..], &["menu", "-v"]] {
        let outcome = with_secret(&project, command);
        assert_eq!(outcome.code, Some(0));
        // Of the one that may not go there, before anybody calls it.
        assert_eq!(outcome.stderr.matches("allow_addresses = [\"127.0.0.1/32\"]").count(), 1);
    }
    let (code, refused) = project.json(&["call", "forecast", "city=Ulm"]);
    assert_eq!((code, &refused["code"]), (Some(1), &"not_available".into()), "{refused}");
    assert!(refused["cause"].as_str().unwrap().contains(VARIABLE), "{refused}");
    let (code, refused) = call(&project, &["private"]);
    assert_eq!(code, Some(1), "{refused}");
    assert!(refused["value"].as_str().unwrap().contains("127.0.0.1"), "{refused}");
    let port = server.port;
    assert_eq!(
        refused["cause"],
        format!(
            "GET http://127.0.0.1:{port}/: `127.0.0.1` leads to 127.0.0.1, which is this machine; if \
             it is meant, write `allow_addresses = [\"127.0.0.1/32\"]` in the tool"
        )
    );
    assert_eq!(server.asked(), [""; 0]);
}
