//! No command splits a word at the end of a terminal's line.

use std::process::Command;

use crate::{
    support::{Project, toolcrib},
    terminal::Terminal,
};

fn check(command: &Command, columns: u16) {
    let mut terminal = Terminal::start(command, columns);
    terminal.wait_until(|_| false);
    let split = terminal.split_words();
    // A word that is longer than a line cannot be whole.
    let split: Vec<_> = split.iter().filter(|word| word.len() < usize::from(columns) / 2).collect();
    let shown = terminal.shown();
    assert!(!shown.trim().is_empty(), "{:?} prints nothing", command.get_args());
    assert!(split.is_empty(), "{split:?} of {:?}:\n{shown}", command.get_args());
}

/// All commands with their own commands, as `--help` lists them.
fn commands(of: &[&str]) -> Vec<Vec<String>> {
    let help = toolcrib().args(of).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let mut all = vec![of.iter().map(|word| (*word).to_owned()).collect()];
    if !help.contains("<COMMAND>") && !help.contains("[COMMAND]") {
        return all;
    }
    let listed = help.lines().skip_while(|line| !line.ends_with(':'));
    let listed = listed.take_while(|line| !matches!(*line, "Options:" | "Global options:"));
    let names = listed.filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    for name in names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help") {
        all.extend(commands(&[of, &[name]].concat()));
    }
    all
}

#[test]
fn no_help_splits_a_word() {
    let all = commands(&[]);
    assert!(all.len() > 20, "{all:?}");
    for (number, words) in all.iter().enumerate() {
        let mut command = toolcrib();
        command.args(words).arg("--help");
        check(&command, if number % 2 == 0 { 80 } else { 60 });
    }
}

#[test]
fn no_command_splits_a_word() {
    let desk = Project::desk();
    let ask = "I was charged twice for order 1042, please refund one charge";
    assert_eq!(desk.toolcrib(&["run", ask, "--session", "refund"]).code, Some(0));
    let broken = Project::of(&[("toolcrib.toml", super::check::BROKEN), ("seed.sql", "")]);
    let commands: [&[&str]; 24] = [
        &["run", "show ticket 6", "--no-session"],
        &["run", "show ticket 6", "--no-session", "-v"],
        &["run", "hello", "--model", "gpt-5"],
        &["call", "list_charges", "order_id=1042", "-v"],
        &["call", "list_charges", "order_id=x", "more=1"],
        &["call", "close_account", "customer_id=1", "-v"],
        &["menu"],
        &["menu", "--why", "--skill", "billing", "--as", "intern"],
        &["explain", "refund_duplicate_charge", "--as", "intern"],
        &["find", "return the money of a charge", "--expect", "close_account"],
        &["check", "-v"],
        &["tools", "-v"],
        &["lint"],
        &["skills", "-v"],
        &["models"],
        &["doctor"],
        &["sessions"],
        &["show", "refund", "-v"],
        &["mcp", "test", "none"],
        &["runs"],
        &["trace"],
        &["replay"],
        &["usage"],
        &["usage", "--by", "tool"],
    ];
    for words in commands {
        check(&desk.command(words), 80);
    }
    check(&broken.command(&["check"]), 80);
    let mut serve = desk.command(&["explai", "menu"]);
    serve.arg("--unknown-option");
    check(&serve, 80);
}
