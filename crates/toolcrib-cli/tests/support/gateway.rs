//! The gateway as its clients meet it: a client on pipes, and one over HTTP.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::wait_for;

pub(crate) fn message(id: u32, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub(crate) fn initialize() -> String {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    message(1, "initialize", &params)
}

/// A client on pipes.
pub(crate) struct Piped {
    pub(crate) child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Piped {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::start_with(command, Stdio::piped())
    }

    pub(crate) fn start_with(command: &mut Command, stderr: Stdio) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = piped.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut this = Self { child, lines };
        let answer = this.ask(&initialize());
        assert_eq!(answer["result"]["serverInfo"]["name"], json!("toolcrib"), "{answer}");
        this.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        this
    }

    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// The answer to a request; every line of the output is of the protocol.
    pub(crate) fn ask(&mut self, request: &str) -> Value {
        let id = serde_json::from_str::<Value>(request).unwrap()["id"].clone();
        self.send(request);
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the output ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["jsonrpc"], json!("2.0"));
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// Reads up to a line that contains a word, such as a notification; gives the line.
    pub(crate) fn hear(&mut self, word: &str) -> String {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the output ended");
        }
        line
    }

    /// The next answer to any request.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the output ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer.get("id").is_some() {
                return answer;
            }
        }
    }

    pub(crate) fn tools(&mut self) -> Vec<String> {
        let answer = self.ask(&message(2, "tools/list", &json!({})));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Ends the input; gives the exit code and what was said on standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        self.wait()
    }

    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

pub(crate) fn terminate(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
}

/// The metadata of a request without a session.
pub(crate) fn stateless() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Only a request without an answer takes so long.
pub(crate) const HANGS: Duration = Duration::from_secs(120);

/// A gateway over HTTP, and where it is.
pub(crate) struct Http {
    child: Child,
    address: String,
    /// The path of its messages.
    pub(crate) path: &'static str,
}

impl Http {
    pub(crate) fn start(command: &mut Command, errors: &Path) -> Self {
        Self::start_at(command, "0", errors)
    }

    pub(crate) fn start_at(command: &mut Command, at: &str, errors: &Path) -> Self {
        let errors_file = fs::File::create(errors).unwrap();
        let child = command.args(["--http", at]).stderr(errors_file).spawn().unwrap();
        let mut address = None;
        wait_for(|| {
            let said = fs::read_to_string(errors).unwrap();
            address = said
                .lines()
                .find_map(|line| line.split_once("http://")?.1.split_once("/mcp"))
                .map(|(address, _)| address.to_owned());
            address.is_some()
        });
        Self::of(child, address.unwrap())
    }

    /// A program that serves at an address.
    pub(crate) fn of(child: Child, address: String) -> Self {
        Self { child, address, path: "/mcp" }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The status and the body of a `tools/list` with a token.
    pub(crate) fn list(&self, token: Option<&str>) -> (String, String) {
        self.post(token, "tools/list", &json!({}), None)
    }

    /// The status and the whole answer of a request, in a session or without one.
    pub(crate) fn post(
        &self,
        token: Option<&str>,
        method: &str,
        params: &Value,
        session: Option<&str>,
    ) -> (String, String) {
        let mut params = params.clone();
        let mut headers = match session {
            Some(id) => format!("MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {id}\r\n"),
            None => {
                params["_meta"] = stateless();
                format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n")
            }
        };
        if let (None, Some(name)) = (session, params["name"].as_str()) {
            headers += &format!("Mcp-Name: {name}\r\n");
        }
        self.send(token, &headers, &message(7, method, &params))
    }

    /// Begins a session; its id.
    pub(crate) fn begin(&self, token: &str) -> String {
        let (status, answer) = self.send(Some(token), "", &initialize());
        assert_eq!(status, "200", "{answer}");
        let id = answer.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        let id = id.unwrap();
        let headers = format!("MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {id}\r\n");
        self.send(
            Some(token),
            &headers,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        );
        id
    }

    /// The status of the end of a session.
    pub(crate) fn delete(&self, token: &str, session: &str) -> String {
        let (status, _) = self.ask(&format!(
            "DELETE /mcp HTTP/1.1\r\nHost: {}\r\nMcp-Session-Id: {session}\r\n\
             Authorization: Bearer {token}\r\nConnection: close\r\n\r\n",
            self.address,
        ));
        status
    }

    pub(crate) fn send(&self, token: Option<&str>, headers: &str, body: &str) -> (String, String) {
        self.ask(&self.request(token, headers, body))
    }

    /// Sends a request, whose response is read from the stream.
    pub(crate) fn open(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    pub(crate) fn request(&self, token: Option<&str>, headers: &str, body: &str) -> String {
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\n{headers}{}\
             Content-Length: {}\r\n\r\n{body}",
            self.path,
            self.address,
            token.unwrap_or_default(),
            body.len()
        )
    }

    /// The status and the whole answer of a GET without a token.
    pub(crate) fn get(&self, path: &str) -> (String, String) {
        let host = &self.address;
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }

    pub(crate) fn ask(&self, request: &str) -> (String, String) {
        let mut stream = self.open(request);
        let (began, mut answer, mut part) = (Instant::now(), Vec::new(), [0; 4096]);
        loop {
            let read = stream.read(&mut part).unwrap_or_else(|error| panic!("{error}: {request}"));
            answer.extend_from_slice(&part[..read]);
            if read == 0 {
                break;
            }
            // An open stream has a sign of life every 15 seconds, also if its answer is lost.
            assert!(began.elapsed() < HANGS, "no end of the answer to {request}");
        }
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().to_owned();
        (status, answer)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A call in a session, with a separate id.
    pub(crate) fn call_in(
        &self,
        token: &str,
        session: &str,
        id: u32,
        params: &Value,
    ) -> (String, String) {
        let headers = format!("MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n");
        self.send(Some(token), &headers, &message(id, "tools/call", params))
    }

    /// The status of a call, in a session or without one; `None` if its gateway ends before the answer.
    pub(crate) fn try_call(
        &self,
        token: &str,
        session: Option<&str>,
        id: u32,
        params: &Value,
    ) -> Option<String> {
        let mut params = params.clone();
        let headers = match session {
            Some(id) => format!("MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {id}\r\n"),
            None => {
                params["_meta"] = stateless();
                let name = params["name"].as_str().unwrap();
                format!(
                    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n"
                )
            }
        };
        let body = message(id, "tools/call", &params);
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(HANGS)).unwrap();
        let request = self.request(Some(token), &headers, &body);
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let is_whole = answer.contains("\"result\"") || answer.contains("\"error\"");
        is_whole.then(|| answer.split(' ').nth(1).unwrap().to_owned())
    }

    /// Kills it, as a machine that is gone.
    pub(crate) fn kill(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
    }

    /// Asks it to stop.
    pub(crate) fn terminate(&self) {
        terminate(&self.child);
    }

    /// The exit code, after it was asked to stop.
    pub(crate) fn ended(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    pub(crate) fn end(mut self) -> Option<i32> {
        terminate(&self.child);
        self.child.wait().unwrap().code()
    }
}

/// A failed test leaves no gateway, which would keep the output of the tests open.
impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
