//! What is written, and when.

use std::fs;

use toolcrib_project::{LoadError, LoadOptions, Mode, Project};
use toolcrib_scope::database::DatabaseError;

use crate::folder::{DATABASE, Folder, RUN, TOOL};

fn desk() -> Folder {
    Folder::with(&format!("{DATABASE}{TOOL}"))
}

#[test]
fn inspecting_writes_nothing_and_a_broken_project_makes_nothing() {
    let folder = desk();
    let before = folder.listing();
    folder.load();
    assert_eq!(folder.listing(), before);

    let broken = Folder::with(&format!("nam = 1\n{DATABASE}{TOOL}"));
    let before = broken.listing();
    assert!(broken.load_as(RUN).is_err());
    assert_eq!(broken.listing(), before);
}

#[test]
fn running_makes_the_state_once_and_hides_it_from_git() {
    let folder = desk();
    let project = folder.load_as(RUN).unwrap();
    assert!(project.databases()[0].was_made());
    assert_eq!(project.databases()[0].file(), project.state().join("desk.db"));
    assert_eq!(fs::read_to_string(project.state().join(".gitignore")).unwrap(), "*\n");
    drop(project);
    assert!(!folder.load_as(RUN).unwrap().databases()[0].was_made());
}

#[test]
fn a_chosen_state_folder_is_made_and_not_hidden() {
    let elsewhere = Folder::new();
    let state = elsewhere.path().join("a/b");
    let options = LoadOptions { state: Some(state.clone()), mode: RUN, ..LoadOptions::default() };
    let folder = desk();
    let project = Project::load(folder.path(), &options).unwrap();
    assert_eq!(project.state(), state);
    assert!(state.join("desk.db").exists() && !state.join(".gitignore").exists());
    assert!(!folder.path().join(".toolcrib").exists());

    let taken = Folder::new().file("state", "a file");
    let options = LoadOptions { state: Some(taken.path().join("state")), ..options };
    let load = Project::load(folder.path(), &options);
    assert!(matches!(load, Err(LoadError::State { .. })), "{load:?}");
}

#[test]
fn databases_in_use_are_not_made_anew() {
    let folder = desk();
    let project = folder.load_as(RUN).unwrap();
    let fresh = folder.load_as(Mode::Run { fresh: true });
    assert!(matches!(fresh, Err(LoadError::Database(DatabaseError::InUse { .. }))), "{fresh:?}");
    drop(project);
    assert!(folder.load_as(Mode::Run { fresh: true }).unwrap().databases()[0].was_made());
}

#[test]
fn a_damaged_database_is_no_problem_of_the_project_s_files() {
    let folder = desk().file(".toolcrib/desk.db", "this is no database, however long it may be");
    for mode in [Mode::Inspect, RUN] {
        let load = folder.load_as(mode);
        let unreadable = matches!(load, Err(LoadError::Database(DatabaseError::Unreadable { .. })));
        assert!(unreadable, "{load:?}");
    }
}

#[test]
fn a_cancelled_load_says_so_and_makes_no_database() {
    let folder = desk();
    let options = LoadOptions { mode: RUN, ..LoadOptions::default() };
    options.cancel.cancel();
    let load = Project::load(folder.path(), &options);
    assert!(matches!(load, Err(LoadError::Cancelled)), "{load:?}");
    assert!(!folder.path().join(".toolcrib/desk.db").exists());
}
