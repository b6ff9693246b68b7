//! The program, unchanged, with a local server in the place of the vendor.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use toolcrib::models::ScriptedModel;
use toolcrib_testbed::ModelServer;

const RULES: &str = r#"
    [[rule]]
    called = "refund_order"
    text = "The shop says: {{ results.refund_order }}."
    [[rule]]
    calls = [{ tool = "refund_order", args = { order = 1042, cents = 500 } }]
"#;

/// The program, ended with the test.
struct Program {
    child: Child,
    address: String,
}

impl Program {
    fn start(base_url: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_example-web-service"))
            .env("OPENAI_BASE_URL", base_url)
            .env("OPENAI_API_KEY", "test-key")
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().strip_prefix("http://").unwrap().to_owned() }
    }

    /// The lines of the response to a request.
    fn post(&self, path: &str, user: &str, kind: &str, body: &str) -> impl Iterator<Item = String> {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        write!(
            connection,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-user: {user}\r\n\
             content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        BufReader::new(connection).lines().map_while(Result::ok)
    }

    fn answer(&self, id: &str, user: &str, body: &str) -> String {
        self.post(&format!("/questions/{id}"), user, "application/json", body).next().unwrap()
    }

    /// The events of a run whose first question the user answers.
    fn run(&self, answer: &str) -> Vec<String> {
        let mut events = Vec::new();
        let lines = self.post("/runs", "ann", "text/plain", "Refund 5 euro of order 1042");
        for line in lines {
            let Some(line) = line.strip_prefix("event: ").or(line.strip_prefix("data: ")) else {
                continue;
            };
            match line.split_once(r#"{"id":""#) {
                Some((_, rest)) => {
                    let (id, _) = rest.split_once('"').unwrap();
                    assert!(rest.contains(r#""args":{"order":1042,"cents":500}"#), "{rest}");
                    assert_eq!(self.answer(id, "bo", answer), "HTTP/1.1 400 Bad Request");
                    assert_eq!(self.answer(id, "ann", answer), "HTTP/1.1 204 No Content");
                }
                None => events.push(line.to_owned()),
            }
        }
        events
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_streamed_and_the_same_user_decides_by_a_second_request() {
    let model = ScriptedModel::from_toml("script.toml", RULES).unwrap();
    let server = ModelServer::builder(Arc::new(model)).model_name("gpt-5-mini").start().await;
    let server = server.unwrap();
    let base_url = server.base_url();
    let run = move || {
        let program = Program::start(&base_url);
        let refused = r#"{ "approve": false, "message": "not today" }"#;
        (program.run(r#"{ "approve": true }"#), program.run(refused))
    };
    let (approved, refused) = tokio::task::spawn_blocking(run).await.unwrap();
    let text = |events: &[String]| {
        let texts = events.windows(2).filter(|pair| pair[0] == "text").map(|pair| &pair[1]);
        texts.map(|text| text.trim_matches('"')).collect::<String>()
    };
    assert!(approved.iter().any(|event| event == "tool"), "{approved:?}");
    assert_eq!(text(&approved), "The shop says: refunded 500 of 12900 cents of order 1042.");
    assert!(text(&refused).contains("not today"), "{refused:?}");
    for events in [approved, refused] {
        assert!(events.ends_with(&["end".to_owned(), r#""answered""#.to_owned()]), "{events:?}");
    }
}
