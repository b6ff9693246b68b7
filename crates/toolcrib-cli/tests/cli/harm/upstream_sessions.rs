//! Two identities that met in one session of a server.

use std::{collections::BTreeSet, fmt::Write as _, fs, process::Command, thread};

use serde_json::json;

use crate::{gateway::Http, support::Project};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/stateful_server.py");

fn token(principal: &str) -> String {
    format!("a-token-of-a-test-{principal}")
}

/// A project with one server that remembers, and a token for each principal.
fn project(principals: &[&str], settings: &str, env: &str) -> Project {
    let mut file = format!(
        "policy_default = 'allow'\n[mcp.notes]\ncommand = 'python3'\nargs = ['{SCRIPT}', 'notes']\n\
         env = {{ LOG = 'log', {env} }}\n{settings}\n[secrets]\n"
    );
    for principal in principals {
        writeln!(file, "T_{principal} = {{ env = 'TOOLCRIB_T_{principal}' }}").unwrap();
    }
    for principal in principals {
        let of_token = format!("secret = 'secret:T_{principal}'\nprincipal = '{principal}'");
        writeln!(file, "[[serve.token]]\n{of_token}").unwrap();
    }
    Project::of(&[("toolcrib.toml", &file)])
}

fn serve(project: &Project, principals: &[&str]) -> Http {
    let mut command: Command = project.command(&["serve"]);
    for principal in principals {
        command.env(format!("TOOLCRIB_T_{principal}"), token(principal));
    }
    Http::start(&mut command, &project.path().join("errors.txt"))
}

/// The response of a server's call.
fn call(http: &Http, who: &str, session: Option<&str>, tool: &str, text: &str) -> String {
    let params = json!({ "name": format!("mcp__notes__{tool}"), "arguments": { "text": text } });
    let (status, answer) = http.post(Some(&token(who)), "tools/call", &params, session);
    assert_eq!(status, "200", "{answer}");
    let (_, memory) = answer.split_once("memory=").unwrap_or_else(|| panic!("{answer}"));
    memory.split(|c: char| !c.is_alphanumeric() && c != ',').next().unwrap().to_owned()
}

fn logged(project: &Project, what: &str) -> Vec<String> {
    let log = fs::read_to_string(project.path().join("log")).unwrap_or_default();
    log.lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
}

#[test]
fn one_principal_read_what_another_had_left() {
    let principals = ["ana", "bob"];
    let project = project(&principals, "", "");
    let http = serve(&project, &principals);
    let session = http.begin(&token("ana"));
    assert_eq!(call(&http, "ana", Some(&session), "remember", "a1"), "a1");
    assert_eq!(call(&http, "bob", None, "remember", "b1"), "b1");
    let of_bob = http.begin(&token("bob"));
    assert_eq!(call(&http, "bob", Some(&of_bob), "recall", ""), "b1");
    // Another client of the same principal goes on where the first one was.
    let second = http.begin(&token("ana"));
    for session in [Some(&*session), Some(&second), None] {
        assert_eq!(call(&http, "ana", session, "recall", ""), "a1");
    }
    assert_eq!(http.end(), Some(0));
    assert_eq!(logged(&project, "start").len(), 2, "one program for each");
}

#[test]
fn a_session_that_is_declared_shared_is_shared() {
    let principals = ["ana", "bob"];
    let project = project(&principals, "session = 'shared'", "");
    let http = serve(&project, &principals);
    call(&http, "ana", None, "remember", "a1");
    assert_eq!(call(&http, "bob", None, "remember", "b1"), "a1,b1");
    assert_eq!(http.end(), Some(0));
    assert_eq!(logged(&project, "start").len(), 1);
}

#[test]
fn there_was_no_bound_on_sessions() {
    let principals = ["ana", "bob", "cleo"];
    let project = project(&principals, "max_sessions = 2", "");
    let http = serve(&project, &principals[..]);
    for (round, text) in ["r1", "r2"].into_iter().enumerate() {
        for who in principals {
            // The one that was unused for longest has made room, and begins again.
            assert_eq!(call(&http, who, None, "remember", text), text, "{round} {who}");
        }
    }
    assert_eq!(call(&http, "cleo", None, "recall", ""), "r2");
    assert_eq!(http.end(), Some(0));
}

#[test]
fn a_crowd_of_principals_started_a_crowd_of_programs_at_once() {
    let principals: Vec<String> = (0..10).map(|n| format!("p{n}")).collect();
    let principals: Vec<&str> = principals.iter().map(String::as_str).collect();
    let project = project(&principals, "", "STARTING = 'starting'");
    fs::create_dir(project.path().join("starting")).unwrap();
    let http = serve(&project, &principals);
    thread::scope(|scope| {
        for who in &principals {
            let http = &http;
            scope.spawn(move || assert_eq!(call(http, who, None, "remember", who), **who));
        }
    });
    assert_eq!(http.end(), Some(0));
    assert!(logged(&project, " start").len() >= principals.len());
    let most: BTreeSet<u32> = logged(&project, "starting")
        .iter()
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(*most.last().unwrap() <= 4, "{most:?}");
}
