//! A source's own order was lost, and untrusted progress was for users.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

use serde_json::{Value, json};

use super::faults::project;
use crate::support::Project;

fn names(menu: &Value) -> Vec<&str> {
    let tools = menu["offered"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().rsplit("__").next().unwrap()).collect()
}

#[test]
fn the_order_of_a_server_could_not_be_kept() {
    let only = "include = ['zeta', 'alpha', 'keeps']";
    let (_, sorted) = project(only).json(&["menu"]);
    assert_eq!(names(&sorted), ["alpha", "keeps", "zeta"]);
    let (_, given) = project(&format!("{only}\norder = 'as_given'")).json(&["menu"]);
    assert_eq!(names(&given), ["zeta", "keeps", "alpha"]);
    let checked = project("order = 'ranked'").toolcrib(&["check"]);
    assert!(checked.stderr.contains("as_given"), "{}", checked.stderr);
}

/// A hub that ranks its tools. It ends with the process of the tests.
fn hub() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            lines.map_while(Result::ok).find(String::is_empty);
            let body =
                json!(["zeta", "alpha", "mid"].map(|name| json!({ "name": name }))).to_string();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
            write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    format!("http://{address}")
}

#[test]
fn the_rank_that_a_hub_gives_its_tools_was_lost() {
    let base = hub();
    for (order, expected) in [
        ("by_name", ["h__alpha", "h__mid", "h__zeta"]),
        ("as_given", ["h__zeta", "h__alpha", "h__mid"]),
    ] {
        let file = format!(
            "[hub.h]\nurl = '{base}/tools'\nkey = []\nttl = '60s'\nprefix = 'h__'\norder = '{order}'\n\
             allow_addresses = ['127.0.0.0/8']\n\
             [hub.h.call]\nmethod = 'POST'\nurl = '{base}/run/{{tool}}'\n"
        );
        let (_, menu) = Project::of(&[("toolcrib.toml", &file)]).json(&["menu"]);
        let tools = menu["offered"].as_array().unwrap().iter();
        let names: Vec<_> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected);
    }
}

#[test]
fn progress_of_a_stranger_was_for_users() {
    let script = "[[rule]]\ncalled = 'mcp__f__hostile'\ntext = 'done'\n\n\
                  [[rule]]\nuser = 'go'\ncalls = [{ tool = 'mcp__f__hostile' }]\n";
    for (more, audience) in [("", "dashboard"), ("trusted = true", "user")] {
        let project = project(&format!("{more}\n[agent]\nmodel = 'script:script.toml'"));
        project.write("script.toml", script);
        let events = project.path().join("events.jsonl");
        let run = project.toolcrib(&["run", "go", "--events", events.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let events = std::fs::read_to_string(events).unwrap();
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let told: Vec<_> = events.filter(|event| event["type"] == "tool.progress").collect();
        assert_eq!((told.len(), &told[0]["audience"]), (1, &json!(audience)));
        let is_shown = run.stderr.contains("… mcp__f__hostile");
        assert_eq!(is_shown, audience == "user", "{}", run.stderr);
    }
}
