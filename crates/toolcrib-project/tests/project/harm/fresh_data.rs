//! Databases were replaced before the project was known to load.

use std::fs;

use toolcrib_project::{LoadError, Mode};

use crate::folder::{DATABASE, Folder, RUN, TOOL};

#[test]
fn a_project_that_does_not_load_cost_its_data() {
    let project = format!("{DATABASE}{TOOL}");
    let folder = Folder::with(&project);
    drop(folder.load_as(RUN).unwrap());
    let file = folder.path().join(".toolcrib/desk.db");
    let made = fs::read(&file).unwrap();
    let fresh = Mode::Run { fresh: true };
    for (name, text) in [
        ("toolcrib.toml", project.replace("amount", "amuont")),
        ("toolcrib.toml", format!("nam = 1\n{project}")),
        ("seed.sql", "CREATE TABLE charges (id INTEGER PRIMARY KEY);".to_owned()),
        ("seed.sql", "CREATE TABEL charges (id, amount);".to_owned()),
    ] {
        let before = fs::read_to_string(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name), &text).unwrap();
        let load = folder.load_as(fresh);
        assert!(matches!(load, Err(LoadError::Diagnostics(_))), "{text}: {load:?}");
        assert!(fs::read(&file).unwrap() == made, "{text}");
        fs::write(folder.path().join(name), before).unwrap();
    }
    let project = folder.load_as(fresh).unwrap();
    let kept = project.databases()[0].kept().unwrap().to_owned();
    assert!(fs::read(kept).is_ok_and(|kept| !kept.is_empty()));
}
