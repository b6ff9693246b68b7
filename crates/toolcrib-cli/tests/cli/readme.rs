//! The console blocks of README and tutorial run as they are, in order, and print the lines they show.

use std::{
    env, fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{
    support::{Project, toolcrib},
    texts::steady,
};

const README: &str = include_str!("../../../../README.md");
const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");

/// Commands of the README that other checks run.
const ELSEWHERE: [&str; 1] = ["cargo xtask test"];

/// A client of the gateway: it connects and lists the tools.
const CLIENT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
"#;

/// The words of a command line that contains nothing but blanks and double quotes.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        1 => vec![part],
        _ => part.split_whitespace().collect(),
    });
    words.map(str::to_owned).collect()
}

/// Runs one command in the folder; gives both streams in the order in which they were written.
fn printed(home: &Path, args: &[String]) -> String {
    let path = home.join("printed");
    let file = fs::File::create(&path).unwrap();
    let is_served = args[0] == "serve";
    // A message of the protocol and its line end are two writes: a note must not come between.
    let errors = if is_served { Stdio::inherit() } else { file.try_clone().unwrap().into() };
    let program = Path::new(env!("CARGO_BIN_EXE_toolcrib")).parent().unwrap();
    let search = env::var_os("PATH").unwrap_or_default();
    let folders = [program.to_owned()].into_iter().chain(env::split_paths(&search));
    let mut command: Command = toolcrib();
    let mut child = command
        .args(args)
        .current_dir(home)
        .env("PATH", env::join_paths(folders).unwrap())
        .stdin(Stdio::piped())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .unwrap();
    if is_served {
        // The answer comes before the input ends: the end of the input ends the session.
        child.stdin.as_mut().unwrap().write_all(CLIENT.as_bytes()).unwrap();
        crate::support::wait_for(|| {
            let printed = fs::read_to_string(&path).unwrap();
            printed.split_inclusive('\n').any(|l| l.contains("\"id\":2") && l.ends_with('\n'))
        });
    }
    drop(child.stdin.take());
    let status = child.wait().unwrap();
    let printed = fs::read_to_string(path).unwrap();
    assert!(status.success(), "{args:?}: {printed}");
    printed
}

/// Runs the console blocks of a page; gives each command's name with all that it printed.
fn run(page: &str) -> Vec<(String, String)> {
    let home = Project::of(&[]);
    let home = home.path();
    Project::copy_desk(&home.join("examples/support-desk"));
    let mut ran = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (head, text) = block.split_once('\n').unwrap();
        match head.split_once(' ') {
            Some(("json", file)) => fs::write(home.join(file), text).unwrap(),
            Some(("toml", "append")) => {
                let file = home.join("my-agent/toolcrib.toml");
                fs::write(&file, fs::read_to_string(&file).unwrap() + "\n" + text).unwrap();
            }
            _ => {}
        }
        if head != "console" {
            continue;
        }
        for command in text.split("$ ").skip(1) {
            let (line, shown) = command.split_once('\n').unwrap_or((command, ""));
            if ELSEWHERE.contains(&line) {
                continue;
            }
            let args = line.strip_prefix("toolcrib ");
            let args = args.or_else(|| line.strip_prefix("cargo run -- "));
            let args = words(args.unwrap_or_else(|| panic!("no check runs `{line}`")));
            let printed = printed(home, &args);
            let (real, mut rest) = (steady(&printed), 0);
            for shown in steady(shown).lines().filter(|line| !["", "…"].contains(line)) {
                let position = real.lines().skip(rest).position(|real| real == shown);
                rest += 1 + position.unwrap_or_else(|| panic!("{shown:?} is not in:\n{printed}"));
            }
            ran.push((args[0].clone(), printed));
        }
    }
    ran
}

fn names(ran: &[(String, String)]) -> Vec<&str> {
    ran.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn the_console_blocks_of_the_readme_print_their_output() {
    let ran = run(README);
    assert_eq!(names(&ran), ["run", "init", "run", "check", "explain", "mcp", "serve"]);
    let (_, served) = ran.last().unwrap();
    let mut listed = served.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let listed = listed.rfind(|message| message["id"] == 2).unwrap();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 15, "{listed}");
}

#[test]
fn the_tutorial_runs_as_it_stands() {
    let ran = run(TUTORIAL);
    assert_eq!(names(&ran), ["init", "run", "check", "call", "menu", "explain", "run", "run"]);
    let (_, menu) = &ran[4];
    assert!(menu.contains("count_notes"), "{menu}");
}

#[test]
fn the_readme_has_at_most_150_lines() {
    assert!(README.lines().count() <= 150);
}
