//! Lines on the terminal that read as the opposite of what is so, and a stop that read as a failure.

use std::{
    fs,
    process::{Child, Command, Stdio},
};

use super::served::{Piped, Served, initialize};
use crate::support::{Project, wait_for};

#[test]
fn the_names_on_the_line_of_a_step_read_as_those_of_withheld_tools() {
    let project = Project::desk();
    let said = project.toolcrib(&["run", "I was charged twice for order 1042"]).stderr;
    let menu = project.json(&["menu"]).1;
    let count = |what: &str| menu[what].as_array().unwrap().len();
    let (offered, all) = (count("offered"), count("offered") + count("withheld"));
    let line = said.lines().find(|line| line.starts_with("iteration 1 ")).unwrap();
    assert!(line.contains(&format!("offers {offered} of {all} tools: list_charges, ")), "{line}");
    assert!(!line.contains("withheld"), "{line}");
    let picture = include_str!("../../../../../docs/run-light.svg");
    assert!(picture.contains(&format!("offers {offered} of {all} tools: ")), "{line}");
}

#[test]
fn a_step_that_offers_nothing_names_nothing() {
    let project = Project::of(&[
        ("toolcrib.toml", "[agent]\nmodel = \"script:script.toml\"\n"),
        ("script.toml", "[[rule]]\ntext = \"done\"\n"),
    ]);
    let said = project.toolcrib(&["run", "go"]).stderr;
    assert!(said.lines().any(|line| line == "iteration 1  offers 0 of 0 tools"), "{said}");
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[test]
fn a_server_that_was_stopped_ended_as_one_that_failed() {
    let project = Project::desk();
    for name in ["-TERM", "-INT"] {
        let mut http = Served::start(&project, &mut project.command(&["serve"]));
        signal(&http.child, name);
        assert_eq!(http.child.wait().unwrap().code(), Some(0), "{name} over HTTP");
        let mut piped = Piped::start(&mut project.command(&["serve"]));
        piped.ask(&initialize());
        signal(&piped.child, name);
        assert_eq!(piped.child.wait().unwrap().code(), Some(0), "{name} on pipes");
    }
}

#[test]
fn a_server_that_was_stopped_while_it_started_ended_as_one_that_failed() {
    let project = Project::desk();
    let mut serve = project.command(&["serve", "--http", "0"]);
    let mut child = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // It hears signals before it does anything else.
    wait_for(|| {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|caught| caught & (1 << 14) != 0)
    });
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_help_says_how_a_server_ends() {
    let project = Project::desk();
    let help = project.toolcrib(&["serve", "--help"]).stdout;
    assert!(help.contains("exit code 0"), "{help}");
}

#[test]
fn a_server_that_is_away_was_counted_as_a_tool() {
    let project = Project::of(&[
        (
            "toolcrib.toml",
            "policy_default = \"allow\"\n[agent]\nmodel = \"script:script.toml\"\n\
             [mcp.gone]\ncommand = \"false\"\non_failure = \"omit\"\n\
             [[tool]]\nkind = \"command\"\nname = \"look\"\ndescription = \"Looks.\"\n\
             program = \"true\"\n",
        ),
        ("script.toml", "[[rule]]\ntext = \"done\"\n"),
    ]);
    let said = project.toolcrib(&["run", "go"]).stderr;
    let line = "iteration 1  offers 1 of 1 tool, 1 server unavailable: look";
    assert!(said.lines().any(|said| said == line), "{said}");
    let menu = project.toolcrib(&["menu"]).stdout;
    assert!(menu.contains("withheld (0 tools, 1 server unavailable)"), "{menu}");
}
