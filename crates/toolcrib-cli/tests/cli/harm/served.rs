//! The program as a server, and requests to it as they go over the wire.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Project, wait_for};

/// A gateway over HTTP. Dropping it ends it.
pub(super) struct Served {
    pub(super) child: Child,
    pub(super) address: String,
}

/// An answer, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Their names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(found, _)| found == name);
        named.next().map(|(_, value)| value.as_str())
    }

    /// The message in it: all of the body, or its last event.
    pub(super) fn message(&self) -> Value {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let last = events.map(str::trim).rfind(|data| !data.is_empty());
        serde_json::from_str(last.unwrap_or(&self.body)).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(super) fn tools(&self) -> Vec<String> {
        let message = self.message();
        let tools = message["result"]["tools"].as_array().unwrap_or_else(|| panic!("{self:?}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Served {
    /// Serves at a port that was free.
    pub(super) fn start(project: &Project, command: &mut Command) -> Self {
        let errors = project.path().join("errors.txt");
        let file = fs::File::create(&errors).unwrap();
        let child = command.args(["--http", "0"]).stderr(file).spawn().unwrap();
        let mut address = None;
        wait_for(|| {
            let said = fs::read_to_string(&errors).unwrap();
            let at = said.lines().find_map(|line| line.split_once("http://")?.1.split_once("/mcp"));
            address = at.map(|(address, _)| address.to_owned());
            address.is_some()
        });
        Self { child, address: address.unwrap() }
    }

    pub(super) fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    /// Sends a request as it is given, but for `Host`, which is added where it is not given.
    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        // The date differs in each response.
        let headers = headers.filter(|(name, _)| name != "date").collect();
        Answer { status, headers, body: body.to_owned() }
    }

    /// A request of the stateless era.
    pub(super) fn stateless(&self, path: &str, token: &str, method: &str, params: Value) -> Answer {
        let name = params["name"].as_str().map(str::to_owned);
        let body = message(method, &with_metadata(params));
        let authorization = format!("Bearer {token}");
        let mut headers = vec![
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        self.send("POST", path, &headers, &body)
    }

    /// A request of an era with sessions.
    pub(super) fn post(
        &self,
        path: &str,
        token: &str,
        session: Option<&str>,
        body: &str,
    ) -> Answer {
        let authorization = format!("Bearer {token}");
        let mut headers = vec![
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
        self.send("POST", path, &headers, body)
    }

    /// Begins a session; gives its id.
    pub(super) fn session(&self, path: &str, token: &str) -> String {
        let answer = self.post(path, token, None, &initialize());
        answer.header("mcp-session-id").unwrap_or_else(|| panic!("{answer:?}")).to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client on pipes, which reads one answer for each request.
pub(super) struct Piped {
    pub(super) child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Piped {
    pub(super) fn start(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The answer to a request, which has the id 7.
    pub(super) fn ask(&mut self, request: &str) -> Value {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{request}\n").as_bytes()).unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the output ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == 7 {
                return answer;
            }
        }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn message(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string()
}

/// Parameters with the metadata of every request of the stateless era.
pub(super) fn with_metadata(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

/// The parameters of a handshake.
pub(super) fn greeting() -> Value {
    json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    })
}

pub(super) fn initialize() -> String {
    message("initialize", &greeting())
}
