//! Conversations at the terminal.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{
    approvals::{paid, project},
    live::SlowModel,
    model_faults::wire::Answer,
    support::Project,
    terminal::Terminal,
};

/// The prompt, ready for the next line.
pub(crate) fn at_prompt(terminal: &mut Terminal) {
    assert!(
        terminal.wait_until(|screen| screen
            .lines()
            .last()
            .is_some_and(|line| line == "> " || line == ">")),
        "no prompt:\n{}",
        terminal.shown()
    );
}

fn say(terminal: &mut Terminal, line: &str) {
    at_prompt(terminal);
    terminal.send(line);
    terminal.send("\r");
}

#[test]
fn a_chat_is_a_session_with_commands_and_a_history() {
    let desk = Project::desk();
    let mut terminal = Terminal::start(&desk.command(&["chat"]), 80);
    terminal.wait_for("new session · 16 tools");
    say(&mut terminal, "I was charged twice for order 1042, please refund one charge");
    terminal.wait_for("I have refunded one charge");
    terminal.wait_for("changed  refund_duplicate_charge");
    for (line, shown) in [
        ("/usage", "1 turn: "),
        ("/why close_account", "close_account is withheld"),
        ("/mneu", "unknown command `/mneu`; did you mean `/menu`?"),
        ("/why nosuch", "unknown tool `nosuch`"),
        ("/skill nosuch", "unknown skill `nosuch`"),
        ("/skill billing", "skill billing is active from the next turn"),
        ("/menu", "offered (4 tools"),
        ("/skill billing off", "skill billing is not active"),
        ("/help", "/skill NAME"),
    ] {
        say(&mut terminal, line);
        terminal.wait_for(shown);
    }
    say(&mut terminal, "/quit");
    let (code, screen, _) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("continues it"), "{screen}");
    assert_eq!(desk.refunds(1042), 1);

    let history = desk.state().join("chat_history");
    assert_eq!(fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
    let lines = fs::read_to_string(&history).unwrap();
    assert!(lines.contains("I was charged twice") && lines.contains("/usage"), "{lines}");

    // The next chat continues it, with the last line one key away.
    let mut terminal = Terminal::start(&desk.command(&["chat", "-c"]), 80);
    terminal.wait_for("(1 turn)");
    at_prompt(&mut terminal);
    terminal.send("\u{1b}[A");
    terminal.wait_for("> /quit");
    terminal.send("\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn ctrl_c_ends_the_turn_and_then_the_chat_and_a_failure_ends_neither() {
    let desk = Project::desk();
    let model = SlowModel::saying(&[
        Answer::text(&["Slowly", " written"]),
        Answer::text(&["The second answer."]),
    ]);
    let mut terminal = Terminal::start(&model.command(&desk, &["chat"]), 80);
    say(&mut terminal, "first");
    terminal.wait_for("waiting for the model");
    terminal.send("\u{3}");
    terminal.wait_for("cancelled; the chat goes on");
    say(&mut terminal, "second");
    (0..20).for_each(|_| model.open());
    terminal.wait_for("The second answer.");
    // The server has no third reply.
    say(&mut terminal, "third");
    terminal.wait_for("error: model");
    say(&mut terminal, "two \\");
    terminal.send("lines\u{3}");
    terminal.wait_for("Ctrl-C again or Ctrl-D quits");
    at_prompt(&mut terminal);
    terminal.send("\u{3}");
    let (code, screen, _) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");

    let (_, listed) = desk.json(&["sessions"]);
    assert_eq!(listed["sessions"][0]["turns"], 3, "{listed}");
}

#[test]
fn a_chat_needs_a_terminal_and_a_link_is_no_history() {
    let desk = Project::desk();
    let piped = desk.toolcrib(&["chat"]);
    assert_eq!(piped.code, Some(2));
    assert!(piped.stderr.contains("`chat` requires a terminal; use `toolcrib run`"));

    fs::create_dir_all(desk.state()).unwrap();
    let target = desk.path().join("profile");
    fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, desk.state().join("chat_history")).unwrap();
    let mut terminal = Terminal::start(&desk.command(&["chat"]), 80);
    say(&mut terminal, "/usage");
    terminal.wait_for("0 turns");
    at_prompt(&mut terminal);
    terminal.send("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(fs::read_to_string(&target).unwrap(), "");
    let (_, listed) = desk.json(&["sessions"]);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 0, "no turn, no session: {listed}");
}

#[test]
fn a_call_that_needs_approval_is_decided_in_a_chat_and_ctrl_c_ends_only_the_turn() {
    let project = project();
    let mut terminal = Terminal::start(&project.command(&["chat", "--as", "ann"]), 80);
    say(&mut terminal, "Pay");
    terminal.wait_for("[y/r/a/N]");
    terminal.send("y\r");
    terminal.wait_for("Done: ");
    assert_eq!(paid(&project), "5 to ann\n");

    say(&mut terminal, "Pay");
    assert!(terminal.wait_until(|screen| screen.matches("[y/r/a/N]").count() == 2));
    terminal.send("n\r");
    assert!(terminal.wait_until(|screen| screen.matches("Done: ").count() == 2));
    assert!(terminal.shown().contains("the user refused this call"), "{}", terminal.shown());

    say(&mut terminal, "Pay");
    assert!(terminal.wait_until(|screen| screen.matches("[y/r/a/N]").count() == 3));
    terminal.send("\u{3}");
    terminal.wait_for("cancelled; the chat goes on");
    say(&mut terminal, "Hello");
    terminal.wait_for("Hello.");
    for (line, shown) in [
        ("/usage", "4 turns: "),
        ("/approvals", "no call waits"),
        ("/skill", "this project has no skills"),
        ("/menu", "offered (2 tools"),
        ("/why pay", "pay is offered"),
    ] {
        say(&mut terminal, line);
        terminal.wait_for(shown);
    }
    say(&mut terminal, "/quit");
    let (code, screen, _) = terminal.end();
    assert_eq!((code, paid(&project).as_str()), (Some(0), "5 to ann\n"), "{screen}");
    assert_eq!(project.json(&["sessions", "--as", "ann"]).1["sessions"][0]["turns"], 4);
}

#[test]
fn an_image_is_attached_in_a_chat_and_the_user_reads_whether_the_model_sees_it() {
    let project = Project::of(&[
        ("toolcrib.toml", "[agent]\nmodel = \"script:s.toml\"\n"),
        ("s.toml", "[[rule]]\ntext = \"I see nothing.\"\n"),
    ]);
    let [good, bad] = ["good.png", "bad.png"].map(|name| project.path().join(name));
    fs::write(&good, toolcrib_testbed::images::PNG).unwrap();
    fs::write(&bad, toolcrib_testbed::images::damaged_png()).unwrap();
    let mut terminal = Terminal::start(&project.command(&["chat"]), 200);
    say(&mut terminal, &format!("/attach {}", good.display()));
    terminal.wait_for("is attached to the next message, image/png, 1 × 1 pixels");
    say(&mut terminal, &format!("/attach {}", bad.display()));
    terminal.wait_for("is attached to the next message; it is a damaged PNG image");
    say(&mut terminal, "What is this?");
    terminal.wait_for("good.png: the model does not see images");
    terminal.wait_for("bad.png: it is a damaged PNG image");
    terminal.wait_for("I see nothing.");
    say(&mut terminal, "/quit");
    assert_eq!(terminal.end().0, Some(0));
}
