//! Folders and their tools, from the command line.

use std::fs;

use crate::support::Project;

const NOTES: &str = "
[files.notes]
folder = 'notes'
write = true
[[tool]]
kind = 'files'
name = 'notes'
";

/// A model that edits a file before it has read it, learns that it must read it, and edits it then.
const MODEL: &str = "
[[rule]]
step = 1
calls = [{ tool = 'notes_patch_file', args = { path = 'a.md', edits = [{ old = 'one', new = 'two' }] } }]
[[rule]]
step = 2
when = [{ result = 'notes_patch_file', contains = 'read it first' }]
calls = [{ tool = 'notes_read_file', args = { path = 'a.md' } }]
[[rule]]
step = 3
calls = [{ tool = 'notes_patch_file', args = { path = 'a.md', edits = [{ old = 'one', new = 'two' }] } }]
[[rule]]
when = [{ result = 'notes_patch_file', is_error = false }]
text = 'edited'
";

fn project() -> Project {
    let text = format!("[agent]\nmodel = 'script:model.toml'\n{NOTES}");
    Project::of(&[("toolcrib.toml", &text), ("model.toml", MODEL), ("notes/a.md", "one\n")])
}

#[test]
fn a_folder_is_read_listed_searched_and_written() {
    let project = project();
    let call = |args: &[&str]| project.toolcrib(&[&["call"], args].concat());
    assert_eq!(call(&["notes_list_files"]).stdout, "a.md (4 bytes)\n\n");
    assert_eq!(call(&["notes_read_file", "path=a.md"]).stdout, "a.md: lines 1 to 1 of 1\none\n\n");
    // A browser's server names the lines of a file so.
    project.write("notes/log", "1\n2\n3\n4\n");
    let linked = call(&["notes_read_file", "path=log#L2-L3"]);
    assert_eq!(linked.stdout, "log: lines 2 to 3 of 4; continue with first_line 4\n2\n3\n\n");
    assert_eq!(
        call(&["notes_search_files", "pattern=O", "ignore_case=true"]).stdout,
        "a.md:1: one\n\n"
    );
    assert_eq!(call(&["notes_write_file", "path=b/c.md", "content=x"]).code, Some(0));
    assert_eq!(fs::read_to_string(project.path().join("notes/b/c.md")).unwrap(), "x");
    assert_eq!(call(&["notes_delete_file", "path=b/c.md"]).code, Some(0));
    assert_eq!(
        fs::read_dir(project.state().join("trash/notes")).unwrap().count(),
        2,
        "the created file, and the deleted one"
    );
}

#[test]
fn a_model_that_is_refused_a_stale_write_reads_and_then_writes() {
    let project = project();
    let outcome = project.toolcrib(&["run", "change it"]);
    assert!(outcome.stdout.contains("edited"), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(fs::read_to_string(project.path().join("notes/a.md")).unwrap(), "two\n");
}

/// T15: a search of megabytes, a read far into a file and a listing of many names showed nothing until
/// they ended.
#[test]
fn a_person_sees_reads_searches_and_listings_that_take_long() {
    let model = "
[[rule]]
step = 1
calls = [{ tool = 'notes_search_files', args = { path = 'big.log', pattern = 'absent' } }]
[[rule]]
step = 2
calls = [{ tool = 'notes_read_file', args = { path = 'big.log', first_line = 900000, lines = 1 } }]
[[rule]]
step = 3
calls = [{ tool = 'notes_list_files', args = { path = 'many' } }]
[[rule]]
step = 4
calls = [{ tool = 'notes_search_files', args = { path = 'many', pattern = 'absent' } }]
[[rule]]
step = 5
calls = [{ tool = 'notes_read_file', args = { path = 'a.md' } }]
[[rule]]
text = 'done'
";
    let project = project();
    project.write("model.toml", model);
    let line = format!("{}\n", "x".repeat(99));
    project.write("notes/big.log", &line.repeat(1_000_000));
    fs::create_dir(project.path().join("notes/many")).unwrap();
    for number in 0..12_000 {
        fs::write(project.path().join(format!("notes/many/{number}")), "").unwrap();
    }
    let outcome = project.toolcrib(&["run", "look"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let shown: Vec<_> = outcome.stderr.lines().map(str::trim).collect();
    let shows = |beginning: &str, end: &str| {
        shown.iter().any(|line| line.starts_with(beginning) && line.ends_with(end))
    };
    assert!(shows("\u{2026} notes_search_files searched ", " MiB in 1 file"), "{shown:#?}");
    assert!(shows("\u{2026} notes_read_file ", " of 95 MiB of big.log"), "{shown:#?}");
    assert!(shows("\u{2026} notes_list_files looked at ", " names"), "{shown:#?}");
    assert!(shows("\u{2026} notes_search_files looked at ", " names"), "{shown:#?}");
    assert!(!shows("\u{2026} notes_read_file ", "a.md"), "{shown:#?}");
}

mod attacks {
    use super::*;

    #[test]
    fn paths_that_leave_and_protected_files_are_refused_with_their_codes() {
        let project = project();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "the secret").unwrap();
        std::os::unix::fs::symlink(outside.path(), project.path().join("notes/out")).unwrap();
        project.write("notes/.env", "KEY=the secret");
        for (path, code) in [
            ("../toolcrib.toml", "input_invalid"),
            ("/etc/hosts", "input_invalid"),
            ("out/secret", "denied"),
            (".env", "denied"),
        ] {
            let argument = format!("path={path}");
            let (_, result) = project.json(&["call", "notes_read_file", &argument]);
            assert!(result.to_string().contains(code), "{path}: {result}");
            assert!(!result.to_string().contains("the secret"), "{path}: {result}");
            let written = project.toolcrib(&["call", "notes_write_file", &argument, "content=x"]);
            assert_ne!(written.code, Some(0), "{path}");
        }
        assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "the secret");
    }
}
