//! The project that `init` writes.

use toolcrib_engine::TurnOptions;
use toolcrib_project::{InitError, LoadOptions, PROJECT_FILE, Project, init};

use crate::folder::{Folder, RUN, block_on};

#[test]
fn a_new_project_runs_at_once() {
    let folder = Folder::new();
    let dir = folder.path().join("new/notes");
    assert_eq!(init(&dir).unwrap().len(), 5);
    let options = LoadOptions { mode: RUN, ..LoadOptions::default() };
    let project = Project::load(&dir, &options).unwrap();
    assert!(project.warnings().is_empty(), "{}", project.warnings());
    let agent = project.agent_builder().build().unwrap();
    let ask = |message: &str, principal: &str| {
        let outcome = agent.run(message, TurnOptions::default().principal(principal));
        block_on(outcome).into_answer().unwrap().to_string()
    };
    assert_eq!(
        ask("remember: the tea is in the right cupboard", "me"),
        "Noted as number 3: the tea is in the right cupboard"
    );
    assert_eq!(
        ask("what do we know about the cupboard?", "me"),
        "3. the tea is in the right cupboard\n2. Coffee beans are in the left cupboard.\n"
    );
    assert_eq!(ask("what do we know about ghosts?", "me"), "There is no note about that.");
    assert_eq!(ask("remember: I was here", "guest"), "I may not write notes for you.");
    assert_eq!(ask("hello", "me"), "Say \"remember: …\" or ask \"what do we know about …?\".");
}

#[test]
fn a_new_project_overwrites_nothing() {
    for name in [PROJECT_FILE, "script.toml", "skills/notes/SKILL.md"] {
        let folder = Folder::new().file(name, "mine");
        let before = folder.listing();
        assert!(matches!(init(folder.path()), Err(InitError::AlreadyThere { .. })), "{name}");
        assert_eq!(folder.listing(), before);
    }
    let folder = Folder::new().file("a file", "mine");
    let before = folder.listing();
    let file = folder.path().join("a file");
    for dir in [&file, &file.join("below/it")] {
        let error = init(dir).unwrap_err();
        assert!(matches!(error, InitError::NotAFolder { .. }), "{error}");
        let expected = format!("{} is a file; name a folder", file.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    assert_eq!(folder.listing(), before);
    let folder = Folder::new().file("README.md", "mine");
    init(folder.path()).unwrap();
    folder.load();
}
