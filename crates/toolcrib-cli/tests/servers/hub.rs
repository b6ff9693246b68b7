//! Hubs of a project, as its commands show them.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

use serde_json::json;

use crate::support::{Outcome, Project, toolcrib};

/// One tool that is named after its tenant and its principal, and one invalid tool.
fn hub() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // It ends with the process of the tests.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            for line in lines {
                if line.unwrap().is_empty() {
                    break;
                }
            }
            let path = first.split(' ').nth(1).unwrap().trim_start_matches('/');
            let name = path.replace('/', "_");
            let body = json!([
                {
                    "name": name,
                    "description": "Finds a customer by name. Use it when an order is not known.",
                    "input_schema": {"type": "object"},
                },
                {"description": "It has no name."},
            ])
            .to_string();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
            write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    format!("http://{address}")
}

fn project(base: &str) -> Project {
    let file = format!(
        r#"
[hub.crm]
url = "{base}/{{tenant}}/{{principal}}"
key = ["tenant", "principal"]
ttl = "60s"
on_failure = "omit"
allow_addresses = ["127.0.0.0/8"]

[hub.crm.call]
method = "POST"
url = "{base}/run/{{tool}}"
"#
    );
    Project::of(&[("toolcrib.toml", &file)])
}

#[test]
fn a_hub_is_asked_on_behalf_of_whom_lint_and_tools_are_told() {
    let project = project(&hub());
    let whom = ["--as", "ann", "--tenant", "acme"];
    let names = |args: &[&str]| -> Vec<String> {
        let (_, listed) = project.json(args);
        let tools = listed["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let with = |command| [&[command], &whom[..]].concat();
    assert_eq!(names(&with("tools")), ["crm_acme_ann"]);
    assert_eq!(names(&with("lint")), ["crm_acme_ann"]);
    // Without a tenant it is not queried, and names the missing fact.
    let (code, listed) = project.json(&["tools"]);
    assert_eq!((code, &listed["tools"]), (Some(0), &json!([])));
    let said = listed["sources"][0]["error"].as_str().unwrap();
    assert!(said.contains("tenant"), "{said}");
    let outcome = project.toolcrib(&with("lint"));
    let said = "1 tool of hub:crm withheld and not checked; `toolcrib menu --why --project ";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    // The suggested command works.
    let (_, suggested) = outcome.stderr.split_once("`toolcrib ").unwrap();
    let suggested: Vec<_> = suggested.split_once('`').unwrap().0.split(' ').collect();
    let menu = Outcome::from(toolcrib().args(&suggested).output().unwrap());
    assert!(menu.stdout.contains("gives it no name"), "{}{}", menu.stdout, menu.stderr);
}

#[test]
fn linting_a_file_refuses_an_identity() {
    for whom in [["--as", "ann"], ["--tenant", "acme"]] {
        let mut command = crate::support::toolcrib();
        let output = command.args(["lint", "tools.json"]).args(whom).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("a catalog in a file has no principal"), "{said}");
    }
}

#[test]
fn check_lists_hubs_and_asks_none() {
    // Nothing listens there.
    let project = project("http://127.0.0.1:9");
    let file = std::fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    let with_key = file.replace("{principal}\"", "{principal}?api_key=hunter2\"");
    assert_ne!(file, with_key);
    project.write("toolcrib.toml", &with_key);
    let (code, check) = project.json(&["check"]);
    assert_eq!(code, Some(0), "{check}");
    assert_eq!(
        check["hubs"],
        json!([{
            "name": "crm",
            "origin": "toolcrib.toml:2",
            "plugin": null,
            "url": "http://127.0.0.1:9/{tenant}/{principal}",
            "on_failure": "omit",
        }])
    );
    let outcome = project.toolcrib(&["check"]);
    let line = "  hub crm: http://127.0.0.1:9/{tenant}/{principal}\n";
    assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
}
