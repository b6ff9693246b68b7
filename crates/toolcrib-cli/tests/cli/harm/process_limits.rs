//! Command tools and MCP servers ran with all rights of the host and without limits.

use std::{fs, process::Command};

use serde_json::Value;

use crate::support::{Outcome, Project};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mcp_server.py");

/// A program's facts about itself and the host, whose environment and command line contain `hush`.
const LOOK: &str = "grep -E '^(Cap|NoNewPrivs)' /proc/self/status; cat /proc/self/limits; \
    cat /proc/[0-9]*/environ 2>/dev/null | grep -ao hush-harm; umount /proc 2>&1; true";

fn project(more: &str) -> Project {
    let file = format!(
        r#"
policy_default = "allow"

[[tool]]
kind = "command"
name = "look"
description = "Looks at itself."
program = "sh"
args = ["./look.sh"]
inherit_env = ["PATH"]
{more}

[[tool]]
kind = "command"
name = "fork"
description = "Starts as much as it can."
program = "sh"
args = ["-c", "i=0; while :; do sleep 1000 & i=$((i+1)); echo $i; done"]
inherit_env = ["PATH"]
processes_max = 16
ok_exit_codes = [2]
{more}

[mcp.small]
command = "sh"
args = ["-c", "sh ./look.sh > seen.txt; exec python3 {SERVER} small"]
processes_max = 100
file_max = "1GiB"
cpu_max = "1h"
{more}
"#
    );
    Project::of(&[("toolcrib.toml", &file), ("look.sh", LOOK)])
}

fn assert_confined(seen: &str, limits: &[(&str, &str)]) {
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(seen.contains(&format!("{set}:\t0000000000000000")), "{seen}");
    }
    assert!(seen.contains("NoNewPrivs:\t1") && seen.contains("umount:"), "{seen}");
    assert!(!seen.contains("hush-harm"), "{seen}");
    for (limit, value) in limits {
        let line = seen.lines().find(|line| line.starts_with(limit)).unwrap();
        assert_eq!(line[limit.len()..].split_whitespace().next(), Some(*value), "{seen}");
    }
}

fn call(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", outcome.stdout, outcome.stderr))
}

#[test]
fn a_tool_and_a_server_had_all_rights_and_no_limits() {
    let project = project("");
    let run = |args: &[&str]| -> Outcome {
        project.command(args).env("HARM", "hush-harm").output().unwrap().into()
    };
    let looked = call(&run(&["call", "look", "--json"]));
    let limits = [("Max cpu time", "600"), ("Max file size", "4294967296")];
    assert_confined(looked["structured"]["stdout"].as_str().unwrap_or_default(), &limits);

    let tested = run(&["mcp", "test", "small"]);
    assert_eq!(tested.code, Some(0), "{}{}", tested.stdout, tested.stderr);
    let limits = [("Max cpu time", "3600"), ("Max file size", "1073741824")];
    assert_confined(&fs::read_to_string(project.path().join("seen.txt")).unwrap(), &limits);

    let forked = call(&run(&["call", "fork", "--json"]));
    let started = forked["structured"]["stdout"].as_str().unwrap_or_default();
    assert_eq!(started.lines().last(), Some("15"), "it is one itself: {forked}");
}

#[test]
fn without_a_namespace_the_host_was_readable_and_no_limit_on_processes_was_said_to_be_missing() {
    let project = project("allow_stray_children = true");
    let run = |args: &[&str]| -> Outcome {
        let plain = project.command(args);
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "/bin/sh", "-c"])
            // The shell stays, with the secret in its environment too.
            .arg("echo 0 > /proc/sys/user/max_pid_namespaces && \"$0\" \"$@\"; exit $?")
            .arg(plain.get_program())
            .args(plain.get_args());
        command.env("HARM", "hush-harm").output().unwrap().into()
    };
    let looked = call(&run(&["call", "look", "--json"]));
    assert_confined(looked["structured"]["stdout"].as_str().unwrap_or_default(), &[]);
    let checked = run(&["check"]);
    let warnings = format!("{}{}", checked.stdout, checked.stderr);
    assert_eq!(warnings.matches("`processes_max` has no effect").count(), 1, "{warnings}");
    assert!(!warnings.contains("hush-harm"));
}
