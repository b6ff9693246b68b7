//! Files of another user were used. Changing an owner takes root; without it these tests are skipped.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
    path::Path,
};
use toolcrib_skip::skip;

use super::{Found, SERVER};
use crate::support::{Outcome, toolcrib};

/// A user who is neither the tester nor root.
const OTHER: u32 = 54_321;

fn is_root() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        skip("only root can give files away");
    }
    is_root
}

fn give_away(path: &Path) {
    // Programs of the project have no capabilities, so that root enters the folder by its mode alone.
    let mode = if path.is_dir() { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    chown(path, Some(OTHER), None).unwrap();
}

fn take_back(path: &Path) {
    chown(path, Some(0), None).unwrap();
}

/// That nothing of the project runs, however it is reached.
fn assert_refused(found: &Found, what: &Path) {
    found.trust_anyway();
    for outcome in [found.run(&["call", "look"]), found.named(&["call", "look"])] {
        assert_eq!(outcome.code, Some(2), "{}: {}", what.display(), outcome.stderr);
        let help = format!("toolcrib trust --owner {}", what.display());
        assert!(outcome.stderr.contains(&help), "{help}: {}", outcome.stderr);
    }
    for outcome in [found.run(&["mcp", "list"]), found.named(&["mcp", "list"])] {
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("toolcrib trust --owner"), "{}", outcome.stderr);
    }
    assert!(!found.was_started(), "{}", what.display());
}

impl Found {
    /// May be refused.
    fn trust_anyway(&self) -> Outcome {
        self.run(&["trust"])
    }
}

#[test]
fn a_project_of_another_user_was_used() {
    if !is_root() {
        return;
    }
    let project = format!("mcp_files = [\"j.json\"]\n{SERVER}\n[plugin.crm]\npath = \"crm\"\n");
    let found = Found::of(&[
        ("toolcrib.toml", &project),
        ("j.json", r#"{ "mcpServers": {} }"#),
        ("crm/plugin.toml", "# nothing\n"),
        ("skills/x/SKILL.md", "---\nname: x\ndescription: X.\n---\nX.\n"),
    ]);
    found.trust();
    for what in ["", "toolcrib.toml", "j.json", "crm", "crm/plugin.toml", "skills", "skills/x"] {
        let what = found.path().join(what).components().collect::<std::path::PathBuf>();
        give_away(&what);
        assert_refused(&found, &what);
        assert!(found.trust_anyway().stderr.contains("--owner"));
        // Once the owner is accepted, named is used, and found is as it was trusted.
        let accepted = found.run(&["trust", "--owner", what.to_str().unwrap()]);
        assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
        assert_eq!(found.named(&["call", "look"]).code, Some(0), "{}", what.display());
        assert_eq!(found.run(&["call", "look"]).code, Some(0), "{}", what.display());
        assert!(found.was_started());
        take_back(&what);
        assert_eq!(found.run(&["trust", "--remove", what.to_str().unwrap()]).code, Some(0));
        found.trust();
    }
}

#[test]
fn an_owner_that_was_accepted_above_was_not_accepted_below() {
    if !is_root() {
        return;
    }
    let found = Found::with_server();
    give_away(&found.path());
    give_away(&found.path().join("toolcrib.toml"));
    let above = found.path().parent().unwrap().to_owned();
    // Only the owner of that folder is: here it is not the other user.
    assert_eq!(found.run(&["trust", "--owner", above.to_str().unwrap()]).code, Some(0));
    assert_eq!(found.named(&["call", "look"]).code, Some(2));
    assert_eq!(found.run(&["trust", "--owner"]).code, Some(0));
    assert_eq!(found.named(&["call", "look"]).code, Some(0));
}

#[test]
fn an_imported_file_of_another_user_was_used() {
    if !is_root() {
        return;
    }
    let found = Found::of(&[(
        "j.json",
        r#"{ "mcpServers": { "spy": { "command": "sh", "args": ["-c", "touch started"] } } }"#,
    )]);
    let file = found.path().join("j.json");
    let link = found.config.path().join("link.json");
    symlink(&file, &link).unwrap();
    for path in [&file, &link] {
        let list = ["mcp", "list", "--import", path.to_str().unwrap()];
        found.run(&list);
        assert!(found.was_started(), "a file of the user's is agreed to by naming it");
        give_away(&file);
        found.run(&list);
        assert!(!found.was_started());
        let serve = found.run(&["mcp", "test", "spy", "--import", path.to_str().unwrap()]);
        assert_eq!((serve.code, found.was_started()), (Some(2), false), "{}", serve.stderr);
        assert!(serve.stderr.contains("touch started"), "{}", serve.stderr);
        let owner = ["trust", "--owner", path.to_str().unwrap()];
        assert_eq!(found.run(&owner).code, Some(0));
        found.run(&list);
        assert!(found.was_started());
        found.run(&["trust", "--remove", path.to_str().unwrap()]);
        take_back(&file);
    }
}

#[test]
fn a_file_that_everybody_may_change_was_used() {
    let found = Found::with_server();
    found.trust();
    for what in ["", "toolcrib.toml"] {
        let what = found.path().join(what).components().collect::<std::path::PathBuf>();
        let mode = fs::metadata(&what).unwrap().permissions().mode();
        fs::set_permissions(&what, fs::Permissions::from_mode(mode | 0o002)).unwrap();
        assert_refused(&found, &what);
        fs::set_permissions(&what, fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn init_wrote_into_the_folder_of_another_user() {
    if !is_root() {
        return;
    }
    let found = Found::of(&[]);
    give_away(&found.path());
    for folder in [found.path(), found.path().join("new/project")] {
        let mut init = toolcrib();
        init.arg("init").arg(&folder).env("XDG_CONFIG_HOME", found.config.path());
        let outcome: Outcome = init.output().unwrap().into();
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("another user"), "{}", outcome.stderr);
        assert_eq!(fs::read_dir(found.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_program_of_another_user_was_not_shown() {
    if !is_root() {
        return;
    }
    use std::fmt::Write as _;
    let outside = tempfile::TempDir::new().unwrap();
    let program = outside.path().canonicalize().unwrap().join("look");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut project = SERVER.replace("program = \"touch\"", &format!("program = {program:?}"));
    write!(project, "\n[mcp.other]\ncommand = \"sh\"\nargs = [{program:?}]\n").unwrap();
    let found = Found::of(&[("toolcrib.toml", &project)]);
    let told = "runs a program that another user controls";
    found.trust();
    let checked = found.run(&["check"]);
    assert!(!checked.stderr.contains(told), "{}", checked.stderr);
    // It asks again, and the consent is stored.
    chown(&program, Some(OTHER), None).unwrap();
    let refused = found.run(&["call", "look"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let line = format!("{told}: {} belongs to another user (uid {OTHER})", program.display());
    assert_eq!(refused.stderr.matches(&line).count(), 2, "{}", refused.stderr);
    found.trust();
    assert_eq!(found.run(&["call", "look"]).code, Some(0));
    assert_eq!(found.named(&["check"]).stderr.matches(&line).count(), 2);
    // A folder that others may write to is as bad.
    chown(&program, Some(0), None).unwrap();
    fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = found.run(&["call", "look"]);
    let line = format!("{told}: every user of this machine may change");
    assert!(refused.code == Some(2) && refused.stderr.contains(&line), "{}", refused.stderr);
}

#[test]
fn a_file_of_a_skill_that_another_user_put_there_was_read() {
    if !is_root() {
        return;
    }
    let found = Found::of(&[
        ("toolcrib.toml", "policy_default = \"allow\"\n"),
        ("skills/x/SKILL.md", "---\nname: x\ndescription: X.\n---\nX.\n"),
        ("skills/x/notes/more.md", "injected"),
    ]);
    let read =
        || found.named(&["call", "read_skill", "id=x", "path=notes/more.md", "--skill", "x"]);
    assert!(read().stdout.contains("injected"), "{}", read().stderr);
    for what in ["skills/x/notes/more.md", "skills/x/notes"] {
        let what = found.path().join(what);
        give_away(&what);
        let refused = read();
        assert_eq!(refused.code, Some(1), "{}: {}", what.display(), refused.stderr);
        assert!(!refused.stdout.contains("injected"));
        take_back(&what);
    }
    assert!(read().stdout.contains("injected"), "{}", read().stderr);
}
