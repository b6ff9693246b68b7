//! `[files.NAME]` and tools of the kind `files`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;
use toolcrib_core::ToolContextParts;
use toolcrib_engine::TurnOptions;
use toolcrib_project::{Action, LoadOptions, Mode, Project};

use crate::folder::{Folder, RUN, block_on};

const NOTES: &str = "
[files.notes]
folder = 'notes'
write = true
[[tool]]
kind = 'files'
name = 'notes'
";

fn folder(text: &str) -> Folder {
    Folder::with(text).file("notes/a.md", "one\n")
}

fn names(project: &Project) -> Vec<&str> {
    project.tools().iter().map(|tool| tool.name().as_str()).collect()
}

fn call(project: &Project, tool: &str, args: serde_json::Value) -> String {
    let tool = project.tools().iter().find(|one| one.name().as_str() == tool).unwrap();
    let called = block_on(tool.call(args, ToolContextParts::detached().into()));
    called.map_or_else(|error| error.message, |output| output.value)
}

#[test]
fn a_folder_gives_a_toolset_that_writes_where_it_may() {
    let project = folder(NOTES).load();
    let all = [
        "notes_read_file",
        "notes_list_files",
        "notes_search_files",
        "notes_write_file",
        "notes_patch_file",
        "notes_move_file",
        "notes_delete_file",
        "notes_undo_edit",
    ];
    assert_eq!(names(&project), all);
    assert!(project.tools().iter().all(|tool| tool.untrusted()));
    for text in
        [NOTES.replace("write = true\n", ""), NOTES.replace("kind =", "read_only = true\nkind =")]
    {
        assert_eq!(
            names(&folder(&text).load()),
            ["notes_read_file", "notes_list_files", "notes_search_files"]
        );
    }
    let trusted = folder(&NOTES.replace("kind =", "untrusted = false\nkind =")).load();
    assert!(!trusted.tools().iter().any(|tool| tool.untrusted()));
}

#[test]
fn a_toolset_without_a_name_has_the_usual_names() {
    let project = folder(&NOTES.replace("name = 'notes'\n", "")).load();
    let all = [
        "read_file",
        "list_files",
        "search_files",
        "write_file",
        "patch_file",
        "move_file",
        "delete_file",
        "undo_edit",
    ];
    assert_eq!(names(&project), all);
    assert!(project.tools().iter().all(|tool| tool.toolset() == Some("file")));
    let two = folder(&NOTES.replace("name = 'notes'\n", "[[tool]]\nkind = 'files'\n"));
    assert!(two.problems().to_string().contains("two tools are called `read_file`"));
    let invalid = folder(&NOTES.replace("name = 'notes'", "name = 'my notes'"));
    assert!(invalid.problems().to_string().contains("my notes"));
}

#[test]
fn a_project_that_is_only_inspected_writes_nothing() {
    let folder = folder(NOTES);
    let before = folder.listing();
    let project = folder.load();
    let new = json!({ "path": "b.md", "content": "x" });
    assert_eq!(call(&project, "notes_write_file", new.clone()), "the folder `notes` is read-only");
    assert_eq!(folder.listing(), before);
    let project = folder.load_as(RUN).unwrap();
    assert_eq!(call(&project, "notes_write_file", new), "created b.md (1 bytes)");
    assert_eq!(call(&project, "notes_delete_file", json!({ "path": "b.md" })), "deleted b.md");
    let trash = folder.path().join(".toolcrib/trash/notes");
    assert_eq!(fs::read_dir(trash).unwrap().count(), 2, "the created file, and the deleted one");
}

#[test]
fn the_files_that_declare_the_project_cannot_be_written_through_it() {
    let text = "
[files.all]
folder = '.'
write = true
[[tool]]
kind = 'files'
name = 'all'
[[tool]]
kind = 'command'
name = 'build'
description = 'x'
program = './build.sh'
[plugin.crm]
path = 'plugins/crm'
programs = true
";
    let folder = Folder::with(text)
        .skill("billing", crate::folder::SKILL)
        .file("build.sh", "#!/bin/sh\n")
        .file("plugins/crm/plugin.toml", "");
    let script = folder.path().join("build.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o700)).unwrap();
    let project = folder.load_as(RUN).unwrap();
    for path in [
        "toolcrib.toml",
        "build.sh",
        "skills/billing/SKILL.md",
        "skills/new/SKILL.md",
        "plugins/crm/new.sh",
        ".toolcrib/x",
    ] {
        let refused = call(&project, "all_write_file", json!({ "path": path, "content": "x" }));
        assert!(refused.contains("is protected"), "{path}: {refused}");
    }
    let state = call(&project, "all_read_file", json!({ "path": ".toolcrib/.gitignore" }));
    assert!(state.contains("is protected"), "{state}");
    let read = call(&project, "all_read_file", json!({ "path": "toolcrib.toml" }));
    assert!(read.contains("[files.all]"), "{read}");
    let created = call(&project, "all_write_file", json!({ "path": "notes.md", "content": "x" }));
    assert_eq!(created, "created notes.md (1 bytes)");
}

#[test]
fn a_personality_narrows_the_folders() {
    let text = format!(
        "{NOTES}\n[files.docs]\nfolder = 'docs'\n[[tool]]\nkind = 'files'\nname = 'docs'\n\
         files = ['docs']\n[[personality]]\nname = 'reader'\nfiles = ['docs']\n\
         [[personality]]\nname = 'none'\nfiles = []\n"
    )
    .replace("name = 'notes'\n", "name = 'notes'\nfiles = 'notes'\n");
    let project = folder(&text).file("docs/x", "").load();
    let engine = project.engine_builder().build().unwrap();
    let offered = |personality: &str| {
        let options = TurnOptions::default().personality(personality);
        block_on(async {
            let mut turn = engine.turn(options).unwrap();
            let menu = turn.iteration().await.unwrap();
            menu.menu().names().map(ToString::to_string).collect::<Vec<_>>()
        })
    };
    assert_eq!(offered("default").len(), 11);
    assert_eq!(offered("reader"), ["docs_read_file", "docs_list_files", "docs_search_files"]);
    assert!(offered("none").is_empty());
}

#[test]
fn mistakes_are_named_with_their_place() {
    let problems = |text: &str| folder(text).problems().to_string();
    for (text, expected) in [
        (NOTES.replace("'notes'\nwrite", "'nots'\nwrite"), "`nots` does not exist"),
        (NOTES.replace("'notes'\nwrite", "'notes/a.md'\nwrite"), "`notes/a.md` is not a folder"),
        (NOTES.replace("'notes'\nwrite", "'/proc'\nwrite"), "`/proc` is protected"),
        (NOTES.replace("folder = 'notes'\n", ""), "`folder` is missing"),
        (NOTES.replace("write = true", "writes = true"), "unknown key `writes`"),
        (NOTES.replace("write = true", "max_depth = 65"), "max_depth"),
        (format!("{NOTES}files = 'note'\n"), "unknown folder `note`"),
        (
            "[[tool]]\nkind = 'files'\nname = 'x'\n".to_owned(),
            "needs a folder, and none is declared",
        ),
        (format!("{NOTES}[files.more]\nfolder = 'notes'\n"), "`files` is missing: more than one"),
        (
            format!("{NOTES}[[personality]]\nname = 'p'\nfiles = ['note']\n"),
            "unknown folder `note`",
        ),
        ("[files]\nnotes = 'x'\n".to_owned(), "write `[files.NAME]`"),
    ] {
        let found = problems(&text);
        assert!(found.contains(expected), "{expected}: {found}");
        assert!(found.contains("toolcrib.toml:"), "{found}");
        assert_eq!(found.matches(expected).count(), 1, "once for the toolset: {found}");
    }
    assert!(problems(&NOTES.replace("'notes'\nwrite", "'nots'\nwrite")).contains("did you mean"));
}

#[test]
fn a_plugin_uses_the_folders_that_the_project_grants() {
    let plugin = "[[tool]]\nkind = 'files'\nname = 'crm'\nfiles = ['notes']\n";
    let project = |grant: &str| {
        folder(&format!(
            "[files.notes]\nfolder = 'notes'\n[plugin.crm]\npath = 'plugins/crm'\n{grant}"
        ))
        .file("plugins/crm/plugin.toml", plugin)
    };
    assert_eq!(names(&project("files = ['notes']\n").load()).len(), 3);
    let refused = project("").problems().to_string();
    assert!(refused.contains("uses the folder `notes`"), "{refused}");
    assert!(refused.contains("write below [plugin.crm]: files = [\"notes\"]"), "{refused}");
}

#[test]
fn a_folder_outside_the_project_is_its_users_decision() {
    use std::sync::{Arc, Mutex};
    use toolcrib_project::{Consent, Review, Verdict};

    #[derive(Debug)]
    struct Decides(Verdict, Arc<Mutex<Vec<Action>>>);
    impl Consent for Decides {
        fn review(&self, review: &Review) -> Verdict {
            let actions = review.powers.iter().map(|power| power.action.clone());
            self.1.lock().unwrap().extend(actions);
            self.0.clone()
        }

        fn replace(&self, _: &[std::path::PathBuf]) -> bool {
            false
        }
    }
    let outer = Folder::new()
        .file("project/toolcrib.toml", NOTES.replace("'notes'\nwrite", "'../mine'\nwrite"))
        .file("mine/a.md", "one\n");
    let load = |verdict: Verdict| {
        let seen = Arc::default();
        let consent = Decides(verdict, Arc::clone(&seen));
        let options = LoadOptions {
            mode: Mode::Inspect,
            consent: Some(Arc::new(consent)),
            ..LoadOptions::default()
        };
        let project = Project::load(&outer.path().join("project"), &options).unwrap();
        let seen = seen.lock().unwrap().clone();
        (project, seen)
    };
    let (project, seen) = load(Verdict::Use);
    assert_eq!(project.tools().len(), 8);
    let mine = outer.path().canonicalize().unwrap().join("mine").to_string_lossy().into_owned();
    assert_eq!(seen, [Action::Files { folder: mine, writable: true }]);
    let (project, _) = load(Verdict::LookOnly("it is not trusted".into()));
    assert!(project.tools().is_empty());
    let warnings = project.warnings().to_string();
    assert!(warnings.contains("folder `notes` is not opened"), "{warnings}");
}
