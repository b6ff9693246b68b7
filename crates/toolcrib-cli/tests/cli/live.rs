//! Text that appears while a model writes it.

use std::process::Command;

use tokio::runtime::Runtime;
use toolcrib_models::Vendor;
use toolcrib_testbed::{CannedServer, Gate, Reply};

use crate::{
    model_faults::wire::{self, Answer},
    support::Project,
    terminal::Terminal,
};

const LONG: &str = "The refund of the duplicated charge was confirmed by the payment provider, and \
                    the customer receives the amount within five working days";

/// A model that writes when a test lets it.
pub(crate) struct SlowModel {
    server: CannedServer,
    gate: Gate,
    _runtime: Runtime,
}

impl SlowModel {
    /// A model that waits before each of these pieces of text, and before its end.
    fn writing(responses: &[&[&str]]) -> Self {
        let responses: Vec<_> = responses.iter().map(|pieces| Answer::text(pieces)).collect();
        Self::saying(&responses)
    }

    pub(crate) fn saying(responses: &[Answer]) -> Self {
        let gate = Gate::new();
        let replies: Vec<_> = responses.iter().map(|said| reply(said, &gate)).collect();
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(CannedServer::start(replies)).unwrap();
        Self { server, gate, _runtime: runtime }
    }

    /// Lets it write the next piece.
    pub(crate) fn open(&self) {
        self.gate.open();
    }

    pub(crate) fn command(&self, project: &Project, args: &[&str]) -> Command {
        let mut command = project.command(args);
        command.args(["--model", "openai:test", "--base-url"]);
        command.arg(format!("{}/v1", self.server.url()));
        command
    }
}

fn reply(said: &Answer, gate: &Gate) -> Reply {
    let frames = wire::frames(Vendor::OpenAi, said);
    frames
        .into_iter()
        .fold(wire::reply(Vendor::OpenAi), |reply, frame| reply.gate(gate).piece(frame))
}

/// The lines of a screen that are text of the model, as one line.
fn joined(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn text_grows_while_the_model_writes_and_fits_the_terminal() {
    let desk = Project::desk();
    for columns in [60, 80, 120] {
        let pieces: Vec<_> = LONG.split_inclusive(' ').collect();
        let model = SlowModel::writing(&[&pieces]);
        let command = model.command(&desk, &["run", "--no-session", "hello"]);
        let mut terminal = Terminal::start(&command, columns);
        terminal.wait_for("iteration 1");
        terminal.wait_for("waiting for the model");
        let mut written = String::new();
        for piece in &pieces[..pieces.len() - 1] {
            written.push_str(piece);
            model.open();
            let written = written.trim_end().to_owned();
            assert!(terminal.wait_until(|screen| joined(screen).contains(&written)), "{written}");
            assert!(!joined(&terminal.shown()).contains("working days"));
        }
        // The last word, and the frames of the protocol's end.
        (0..8).for_each(|_| model.open());
        let (code, screen, _) = terminal.end();
        assert_eq!(code, Some(0), "{screen}");
        assert!(joined(&screen).contains(LONG), "{screen}");
        assert!(!screen.contains("waiting"), "{screen}");
        assert_eq!(
            screen.matches("The refund of").count(),
            1,
            "the answer is there once: {screen}"
        );
        let text = screen.lines().filter(|line| LONG.contains(line.trim()) && !line.is_empty());
        let longest = text.map(|line| line.chars().count()).max().unwrap();
        assert!((usize::from(columns) - 20..=columns.into()).contains(&longest), "{screen}");
    }
}

#[test]
fn text_wraps_at_the_width_of_a_resized_terminal() {
    let desk = Project::desk();
    let pieces: Vec<_> = LONG.split_inclusive(' ').collect();
    let model = SlowModel::writing(&[&pieces]);
    let mut terminal =
        Terminal::start(&model.command(&desk, &["run", "--no-session", "hello"]), 120);
    // Up to a line that is longer than the next width.
    (0..11).for_each(|_| model.open());
    terminal.wait_for("payment");
    terminal.resize(60);
    (0..30).for_each(|_| model.open());
    let (code, screen, _) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    let last = screen.lines().rfind(|line| line.contains("five")).unwrap();
    assert!(last.chars().count() <= 60, "{screen}");
    assert!(screen.contains("working days") && screen.contains("changed  nothing"), "{screen}");
}

#[test]
fn calls_are_shown_when_they_start_and_when_they_end() {
    let desk = Project::desk();
    let model = SlowModel::saying(&[
        Answer::text(&["I look ", "it up."]).calling(
            "a",
            "list_charges",
            &[r#"{"order_id":1042}"#],
        ),
        Answer::text(&["It was charged twice."]),
    ]);
    let mut terminal =
        Terminal::start(&model.command(&desk, &["run", "--no-session", "hello"]), 80);
    (0..40).for_each(|_| model.open());
    terminal.wait_for("✓ list_charges");
    let (code, screen, _) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text:?}: {screen}"));
    let order = [
        at("iteration 1"),
        at("\n\nI look it up.\n\n"),
        at("→ list_charges {\"order_id\":1042}"),
        at("✓ list_charges  "),
        at("iteration 2"),
        at("\n\nIt was charged twice.\n\n"),
        at("changed  nothing"),
    ];
    assert!(order.is_sorted(), "{screen}");
    let result = screen.lines().find(|line| line.contains("✓ list_charges")).unwrap();
    assert!(result.ends_with('…') && result.chars().count() <= 80, "{screen}");
}

/// An answer with all that is rendered, and what must not reach a terminal.
const MARKDOWN: &str = "# Refund\n\nOrder **1042** is `done`, see [the guide](https://a.example/b).\n\
                        \n- one thing\n- another one\n\n| charge | state |\n|---|--:|\n| 74 | kept |\n\
                        \n```sh\nls *.txt\n```\nred \u{1b}[31mtext\u{202e} 2 * 3 and snake_case_name";

#[test]
fn markdown_is_rendered_at_a_terminal_and_left_alone_in_a_pipe() {
    let desk = Project::desk();
    let pieces: Vec<String> = MARKDOWN.chars().map(String::from).collect();
    let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();
    let model = SlowModel::writing(&[&pieces, &pieces]);
    (0..2 * pieces.len() + 40).for_each(|_| model.open());

    let mut command = model.command(&desk, &["run", "--no-session", "hello"]);
    let piped = command.env("CLICOLOR", "1").env_remove("NO_COLOR").output().unwrap();
    let (answer, told) = (String::from_utf8(piped.stdout).unwrap(), piped.stderr);
    let plain = MARKDOWN.replace('\u{1b}', r"\u{1b}").replace('\u{202e}', r"\u{202e}");
    assert_eq!(answer, plain + "\n");
    let told = String::from_utf8(told).unwrap();
    assert!(!told.contains(['\u{1b}', '\r']), "{told}");

    let (code, screen, raw) = Terminal::start(&command, 80).end();
    assert_eq!(code, Some(0), "{screen}");
    let answer = screen.split_once("Refund").unwrap().1.split_once("changed").unwrap().0;
    insta::assert_snapshot!(answer, @r"


    Order 1042 is done, see the guide (https://a.example/b).

    • one thing
    • another one

    charge  state
    ─────────────
    74       kept

      ls *.txt
    red \u{1b}[31mtext\u{202e} 2 * 3 and snake_case_name
    ");
    assert!(raw.contains("\u{1b}[1mRefund") && raw.contains("\u{1b}[1m1042"), "{raw:?}");
    assert!(!raw.contains("\u{1b}[31mtext"), "{raw:?}");

    // Without colors, the terminal gets no escape sequence but those of the spinner.
    let model = SlowModel::writing(&[&pieces]);
    (0..2 * pieces.len()).for_each(|_| model.open());
    let command = model.command(&desk, &["run", "--no-session", "-q", "hello"]);
    let (_, screen, raw) = Terminal::start(&command, 80).end();
    assert!(screen.starts_with("Refund\n\nOrder 1042 is done"), "{screen}");
    assert!(!raw.contains('\u{1b}'), "{raw:?}");
}

#[test]
fn nothing_stays_of_a_spinner_that_fills_the_line_when_it_is_interrupted() {
    let desk = Project::desk();
    for columns in [20, 24, 29] {
        let model = SlowModel::writing(&[&["never"]]);
        let command = model.command(&desk, &["run", "--no-session", "hello"]);
        let mut terminal = Terminal::start(&command, columns);
        terminal.wait_for(" waiting f");
        terminal.send("\u{3}");
        let (code, screen, _) = terminal.end();
        assert_eq!(code, Some(3), "{screen}");
        assert!(!screen.contains("waiting f"), "{columns}: {screen}");
    }
}
