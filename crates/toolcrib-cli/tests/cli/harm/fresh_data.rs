//! Data was lost by following a help text.

use std::{fs, path::PathBuf};

use rusqlite::Connection;

use crate::support::{Outcome, Project, at_terminal, toolcrib};

/// A project of `init` with one note of the user's.
fn notes() -> Project {
    let project = Project::of(&[]);
    fs::remove_dir(project.path()).unwrap();
    let init = toolcrib().arg("init").arg(project.path()).output().unwrap();
    assert!(init.status.success());
    let added = project.toolcrib(&["call", "add_note", "text=precious"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    project
}

fn edit(project: &Project, file: &str, from: &str, to: &str) {
    let text = fs::read_to_string(project.path().join(file)).unwrap();
    assert!(text.contains(from));
    project.write(file, &text.replace(from, to));
}

fn database(project: &Project) -> PathBuf {
    project.state().join("notes.db")
}

fn has_note(file: &std::path::Path) -> bool {
    let database = Connection::open(file).unwrap();
    let count = "SELECT count(*) FROM notes WHERE text = 'precious'";
    database.query_row(count, [], |row| row.get::<_, u32>(0)).unwrap() == 1
}

const ASK: [&str; 2] = ["run", "what do we know about the printer?"];

#[test]
fn a_typo_was_answered_with_the_flag_that_deletes_data() {
    let project = notes();
    edit(&project, "toolcrib.toml", "BY id DESC", "BY idd DESC");
    let checked = project.toolcrib(&["check"]);
    assert_eq!(checked.code, Some(2));
    assert!(checked.stderr.contains("idd") && !checked.stderr.contains("--fresh"));
    let fresh = project.toolcrib(&[&ASK as &[&str], &["--fresh"]].concat());
    assert_eq!(fresh.code, Some(2), "{}", fresh.stderr);
    assert!(fresh.stderr.contains("idd"), "{}", fresh.stderr);
    assert!(has_note(&database(&project)), "nothing is replaced for a project that does not load");
    assert_eq!(fs::read_dir(project.state()).unwrap().count(), 3, "nothing else was made");
}

#[test]
fn the_hint_was_given_though_the_seed_is_the_same_and_is_given_when_it_changed() {
    let project = notes();
    edit(&project, "toolcrib.toml", "SELECT id, text, written_at", "SELECT id, text, color");
    let said = project.toolcrib(&["check"]).stderr;
    assert!(said.contains("color") && !said.contains("--fresh"), "{said}");
    edit(&project, "seed.sql", "text", "color TEXT, text");
    let said = project.toolcrib(&["check"]).stderr;
    assert!(said.contains("--fresh") && said.contains("keeps the old file"), "{said}");
    // The seed that changed does not load: nothing is replaced.
    edit(&project, "seed.sql", "CREATE", "CREAT");
    let fresh = project.toolcrib(&[&ASK as &[&str], &["--fresh"]].concat());
    assert!(fresh.code == Some(2) && fresh.stderr.contains("the seed fails"), "{}", fresh.stderr);
    assert!(has_note(&database(&project)));
}

#[test]
fn fresh_kept_nothing_of_the_old_database() {
    let project = notes();
    for number in 1..=2 {
        let fresh = project.toolcrib(&[&ASK as &[&str], &["--fresh"]].concat());
        assert_eq!(fresh.code, Some(0), "{}", fresh.stderr);
        let kept = project.state().canonicalize().unwrap().join(format!("notes.db.old-{number}"));
        assert!(fresh.stderr.contains(&*kept.to_string_lossy()), "{}", fresh.stderr);
        assert_eq!(has_note(&kept), number == 1);
        assert!(!has_note(&database(&project)));
    }
    // It comes back by renaming it.
    fs::rename(project.state().join("notes.db.old-1"), database(&project)).unwrap();
    let found: Outcome = project.toolcrib(&["call", "find_notes", "word=precious"]);
    assert!(found.stdout.contains("precious"), "{}", found.stderr);
}

#[test]
fn a_database_that_toolcrib_did_not_make_was_replaced() {
    let project = notes();
    let state = tempfile::TempDir::new().unwrap();
    let own = state.path().join("notes.db");
    let ours = Connection::open(&own).unwrap();
    ours.execute_batch(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, written_at TEXT);
         INSERT INTO notes (text) VALUES ('precious');",
    )
    .unwrap();
    drop(ours);
    let before = fs::read(&own).unwrap();
    for more in [&[] as &[&str], &["--yes"]] {
        let state = ["--state", state.path().to_str().unwrap(), "--fresh"];
        let fresh = project.toolcrib(&[&ASK as &[&str], &state, more].concat());
        assert_eq!(fresh.code, Some(1), "{}", fresh.stderr);
        assert!(fresh.stderr.contains("was not created by Toolcrib"), "{}", fresh.stderr);
        assert!(fs::read(&own).unwrap() == before);
    }
}

#[test]
fn the_terminal_was_not_asked_before_data_was_replaced() {
    let project = notes();
    let fresh = [&ASK as &[&str], &["--fresh"]].concat();
    for answer in ["n\n", "\n", ""] {
        let (code, said) = at_terminal(&project.command(&fresh), "[y/N]", answer);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("notes.db") && said.contains("not replaced"), "{said}");
        assert!(has_note(&database(&project)));
    }
    let (code, said) = at_terminal(&project.command(&fresh), "[y/N]", "yes\n");
    assert_eq!((code, has_note(&database(&project))), (Some(0), false), "{said}");
    // Without old data, or with `--yes`, it does not ask.
    let (code, said) =
        at_terminal(&project.command(&[&fresh as &[&str], &["--yes"]].concat()), "[y/N]", "");
    assert!(code == Some(0) && !said.contains("[y/N]"), "{said}");
    fs::remove_dir_all(project.state()).unwrap();
    let (code, said) = at_terminal(&project.command(&fresh), "[y/N]", "");
    assert!(code == Some(0) && !said.contains("[y/N]"), "{said}");
}

#[test]
fn data_was_replaced_for_a_command_that_was_refused_then() {
    let project = notes();
    let refused: [(&[&str], &str); 9] = [
        (&["run", "go", "--skill", "nosuch"], "unknown skill `nosuch`"),
        (&["run", "go", "--personality", "nosuch"], "unknown personality"),
        (&["run", "go", "--model", "script:nosuch.toml"], "nosuch.toml"),
        (&["run", "go", "--record", "toolcrib.toml"], "already exists"),
        (&["run", "go", "--events", "toolcrib.toml"], "--events"),
        (&["call", "add_notes", "text=x"], "add_note"),
        (&["call", "add_note", "txt=x"], "text"),
        (&["call", "find_notes", "{broken"], "JSON"),
        (&["mcp", "call", "nosuch", "x"], "MCP server"),
    ];
    for (args, told) in refused {
        let mut command = project.command(&[args, &["--fresh", "--yes"]].concat());
        let outcome: Outcome = command.current_dir(project.path()).output().unwrap().into();
        assert!(matches!(outcome.code, Some(1 | 2)), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(told), "{args:?}: {}", outcome.stderr);
        assert!(has_note(&database(&project)), "{args:?}: {}", outcome.stderr);
    }
    let fresh = project.toolcrib(&["call", "find_notes", "word=precious", "--fresh"]);
    assert_eq!((fresh.code, has_note(&database(&project))), (Some(0), false), "{}", fresh.stderr);
}
