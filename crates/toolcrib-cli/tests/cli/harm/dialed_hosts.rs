//! Hosts that are dialed were not shown before a project was trusted, and other ports of a permitted host
//! were reached.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use crate::support::Project;

fn review(file: &str, variables: &[(&str, &str)]) -> String {
    let project = Project::of(&[("toolcrib.toml", file)]);
    let mut command = project.command(&["trust"]);
    // A project that was found, before the user trusts it.
    command.current_dir(project.path()).env("XDG_CONFIG_HOME", project.path().join("config"));
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_base_url_of_the_environment_was_not_shown() {
    let file = "[agent]\nmodel = 'openai:m'\n";
    let shown = review(file, &[("OPENAI_BASE_URL", "https://elsewhere.example/v1")]);
    assert!(shown.contains("https://elsewhere.example/v1"), "{shown}");
    assert!(shown.contains("OPENAI_BASE_URL"), "{shown}");
    let shown = review(file, &[]);
    assert!(shown.contains("https://api.openai.com"), "{shown}");
}

#[test]
fn the_host_that_a_variable_gives_a_server_was_not_shown() {
    let file = "[mcp.s]\nurl = '${SERVER_URL}/mcp?key=${SERVER_KEY}'\n";
    let variables =
        [("SERVER_URL", "https://elsewhere.example:8443"), ("SERVER_KEY", "s3cr3t-key-1")];
    let shown = review(file, &variables);
    assert!(shown.contains("now at https://elsewhere.example:8443"), "{shown}");
    assert!(!shown.contains("s3cr3t-key-1"), "{shown}");
}

#[test]
fn the_hosts_of_a_document_are_shown() {
    let document = r#"{"openapi":"3.1.0","info":{"title":"t","version":"1"},
        "servers":[{"url":"https://api.example.com/v1"}],
        "paths":{"/a":{"get":{"operationId":"a"}},
                 "/b":{"get":{"operationId":"b","servers":[{"url":"https://other.example"}]}}}}"#;
    let file = "[secrets]\nKEY = { env = 'PATH' }\n[[tool]]\nkind = 'openapi'\nfile = 'd.json'\n\
                auth = 'secret:KEY'\nallow_servers = ['https://other.example']\n";
    let project = Project::of(&[("toolcrib.toml", file), ("d.json", document)]);
    let mut command = project.command(&["trust"]);
    command.current_dir(project.path()).env("XDG_CONFIG_HOME", project.path().join("config"));
    let output = command.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(shown.contains("https://api.example.com/v1"), "{shown}");
    assert!(shown.contains("https://other.example"), "{shown}");
}

#[test]
fn the_public_hosts_of_tools_without_secrets_were_not_shown() {
    let tool = "policy_default = 'allow'\n[[tool]]\nkind = 'http'\nname = 'look'\ndescription = 'Looks.'\n\
                url = 'https://public.example/x'\n";
    let program = "[mcp.s]\ncommand = 'true'\n";
    let shown = review(&format!("{tool}{program}"), &[]);
    assert!(shown.contains("https://public.example/x"), "{shown}");
    // They alone need no trust.
    let project = Project::of(&[("toolcrib.toml", tool)]);
    let mut command = project.command(&["menu", "--json"]);
    command.current_dir(project.path()).env("XDG_CONFIG_HOME", project.path().join("config"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("trust"), "{output:?}");
}

#[test]
fn the_hosts_that_a_sandbox_permits_were_not_shown() {
    let file = "policy_default = 'allow'\n[mcp.s]\ncommand = 'true'\nsandbox = 'full'\n\
                sandbox_hosts = ['of-server.example']\n\
                [[tool]]\nkind = 'command'\nname = 'get'\ndescription = 'Gets.'\nprogram = 'true'\n\
                sandbox = 'full'\nsandbox_hosts = ['of-tool.example:8443']\n";
    let shown = review(file, &[]);
    for host in ["of-server.example", "of-tool.example:8443"] {
        assert!(shown.contains(host), "{host}: {shown}");
    }
}

/// A server that redirects each request for `/away…` to a URL, and answers others. It remembers the first
/// lines of its requests.
struct Front {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Front {
    fn start(away: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(stream);
                let mut first = String::new();
                lines.read_line(&mut first).unwrap();
                let mut line = String::new();
                while lines.read_line(&mut line).unwrap() > 2 {
                    line.clear();
                }
                let answer = match first.contains("/away") {
                    true => format!("302 Found\r\nLocation: {away}\r\nContent-Length: 0"),
                    false => "200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7".to_owned(),
                };
                let body = if first.contains("/away") { "" } else { "arrived" };
                seen.lock().unwrap().push(first);
                let answer = format!("HTTP/1.1 {answer}\r\nConnection: close\r\n\r\n{body}");
                lines.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { port, asked }
    }

    fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[test]
fn another_port_of_a_permitted_host_was_reached() {
    let inner = Front::start(String::new());
    let front = Front::start(format!("http://127.0.0.1:{}/inner", inner.port));
    let origin = format!("http://127.0.0.1:{}", front.port);
    let document = serde_json::json!({
        "openapi": "3.1.0", "info": { "title": "t", "version": "1" },
        "servers": [{ "url": origin }],
        "paths": {
            "/here": { "get": { "operationId": "here" } },
            "/away": { "get": { "operationId": "away" } },
            "/other": { "get": { "operationId": "other",
                "servers": [{ "url": format!("http://127.0.0.1:{}", inner.port) }] } },
        },
    });
    let file = format!(
        "policy_default = 'allow'\n\
         [[tool]]\nkind = 'http'\nname = 'get'\ndescription = 'Gets.'\nurl = '{origin}/{{path}}'\n\
         allow_addresses = ['127.0.0.1']\n[tool.params]\npath = {{ type = 'string' }}\n\
         [[tool]]\nkind = 'openapi'\nfile = 'd.json'\n\
         allow_addresses = ['127.0.0.1']\nlint_allow = ['*']\n\
         [[tool]]\nkind = 'web'\nallow_addresses = ['127.0.0.1']\n"
    );
    let project = Project::of(&[("toolcrib.toml", &file), ("d.json", &document.to_string())]);
    let call = |args: &[&str]| project.toolcrib(&[&["call"], args].concat());
    let here = format!("url={origin}/here");
    for reached in [&["get", "path=here"][..], &["here"], &["fetch_url", &here]] {
        let outcome = call(reached);
        assert!(outcome.stdout.contains("arrived"), "{reached:?}: {outcome:?}");
    }
    let before = front.requests();
    let away = format!("url={origin}/away");
    let port = format!("port {} of", inner.port);
    for redirected in [&["get", "path=away"][..], &["away"], &["fetch_url", &away]] {
        let outcome = call(redirected);
        assert_ne!(outcome.code, Some(0), "{redirected:?}: {outcome:?}");
        let said = outcome.stdout.clone() + &outcome.stderr;
        assert!(said.contains(&port), "{redirected:?}: {said}");
    }
    assert_eq!(front.requests(), before + 3);
    // An argument is no part of the origin, and an operation with another origin is withheld.
    for path in ["@127.0.0.1:1", ":1/", "//127.0.0.1:1/"] {
        call(&["get", &format!("path={}", path.replace(":1", &format!(":{}", inner.port)))]);
    }
    assert_ne!(call(&["other"]).code, Some(0));
    assert_ne!(call(&["fetch_url", "url=http://127.0.0.1:25/"]).code, Some(0));
    assert_eq!(inner.requests(), 0, "{:?}", inner.asked);
}
