//! Files that are written, and when.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use toolcrib_capabilities::database::{Database, DatabaseError, DatabaseSpec, Seed};
use toolcrib_core::CancellationToken;
use toolcrib_project::{
    Consent, LoadError, LoadOptions, Mode, Project, ProjectPlan, Review, Verdict,
};

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

/// Counts the questions about trust, and about replaced databases.
#[derive(Debug, Default)]
struct Counter([AtomicUsize; 2]);

impl Consent for Counter {
    fn review(&self, _: &Review) -> Verdict {
        self.0[0].fetch_add(1, Ordering::Relaxed);
        Verdict::Use
    }

    fn replace(&self, files: &[PathBuf]) -> bool {
        self.0[1].fetch_add(files.len(), Ordering::Relaxed);
        true
    }
}

#[test]
fn a_previewed_plan_is_opened_without_a_second_load_or_question() {
    let folder = desk();
    drop(folder.load_as(RUN).unwrap());
    let before = folder.listing();
    let counter = Arc::new(Counter::default());
    let asked = || [0, 1].map(|question: usize| counter.0[question].load(Ordering::Relaxed));
    let options = LoadOptions {
        mode: Mode::Run { fresh: true },
        consent: Some(Arc::clone(&counter) as _),
        ..LoadOptions::default()
    };

    let plan = ProjectPlan::of_folder(folder.path(), &options).unwrap();
    let (preview, plan) = plan.preview().unwrap();
    assert_eq!(preview.tools().len(), 1);
    assert!(preview.held().is_some(), "no program is started for a preview");
    assert_eq!((folder.listing(), asked()), (before, [1, 0]));

    // What was read once is what is opened.
    fs::write(folder.path().join("toolcrib.toml"), "nam = 1").unwrap();
    let project = plan.open().unwrap();
    assert!(project.databases()[0].kept().is_some());
    assert_eq!((project.tools().len(), project.held(), asked()), (1, None, [1, 1]));
}

#[test]
fn of_several_databases_all_are_made_anew_or_none() {
    let two = DATABASE.replace("desk", "notes").replace("seed.sql", "notes.sql");
    let folder = Folder::with(&format!("{DATABASE}{two}")).file("notes.sql", "CREATE TABLE n (x);");
    drop(folder.load_as(RUN).unwrap());
    let state = || {
        let mut files = folder.listing();
        files.retain(|(path, _)| path.ends_with("desk.db") || path.ends_with("notes.db"));
        files.into_iter().map(|(path, _)| fs::metadata(path).unwrap().modified().unwrap())
    };
    let before: Vec<_> = state().collect();
    assert_eq!(before.len(), 2);
    let fresh = Mode::Run { fresh: true };

    let notes = DatabaseSpec {
        name: "notes".into(),
        file: folder.path().join(".toolcrib/notes.db"),
        seed: Seed { name: "notes.sql".into(), sql: "".into() },
    };
    let user = Database::open(&notes, &CancellationToken::new()).unwrap();
    let load = folder.load_as(fresh);
    let Err(LoadError::Database(DatabaseError::InUse { name, .. })) = load else {
        panic!("{load:?}");
    };
    assert_eq!(&*name, "notes");
    assert_eq!(state().collect::<Vec<_>>(), before);
    drop(user);

    fs::remove_file(folder.path().join("notes.sql")).unwrap();
    assert!(matches!(folder.load_as(fresh), Err(LoadError::Diagnostics(_))));
    assert_eq!(state().collect::<Vec<_>>(), before);

    fs::write(folder.path().join("notes.sql"), "CREATE TABLE n (x);").unwrap();
    let project = folder.load_as(fresh).unwrap();
    let made: Vec<_> = project.databases().iter().map(Database::was_made).collect();
    assert!(!made.is_empty() && made.iter().all(|made| *made), "{made:?}");
}

#[test]
fn a_project_with_an_error_in_its_approvals_keeps_its_databases() {
    let rule = "[[policy]]\ntool = \"*\"\neffect = \"ask\"\n";
    let build = "[[tool]]\nname = \"build\"\ndescription = \"Builds.\"\nkind = \"command\"\n\
                 program = \"true\"\nsandbox = \"tree\"\n";
    let project = format!("policy_default = \"allow\"\n{DATABASE}{TOOL}{rule}{build}");
    let folder = Folder::with(&project);
    drop(folder.load_as(RUN).unwrap());
    let before = folder.listing();

    let strict = format!("{project}[approvals]\nmode = \"strict\"\n");
    let folder = folder.file("toolcrib.toml", strict);
    let load = folder.load_as(Mode::Run { fresh: true });
    let Err(LoadError::Diagnostics(problems)) = load else { panic!("{load:?}") };
    assert!(problems.to_string().contains("approvals are advisory here"), "{problems}");
    let changed: Vec<_> =
        folder.listing().into_iter().filter(|file| !before.contains(file)).collect();
    assert!(matches!(&*changed, [(path, _)] if path.ends_with("toolcrib.toml")), "{changed:?}");
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
