//! Existing databases: what a project may do with them, and what is left to its user.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use toolcrib_capabilities::database::rusqlite::Connection;
use toolcrib_core::ToolContextParts;
use toolcrib_project::{Action, Consent, LoadError, LoadOptions, Mode, Project, Review, Verdict};

use crate::folder::{DATABASE, Folder, RUN, block_on};

const SHOP: &str = "
[database.shop]
file = '../shop.db'
[[tool]]
kind = 'sql_explore'
name = 'shop'
";

/// A project in a folder with a database that is not of Toolcrib's making.
fn project(text: &str) -> (Folder, PathBuf) {
    let folder = Folder::new()
        .file("project/toolcrib.toml", text)
        .file("project/seed.sql", "CREATE TABLE charges (id INTEGER);");
    let shop = folder.path().join("shop.db");
    Connection::open(&shop)
        .unwrap()
        .execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE orders (id INTEGER); \
             INSERT INTO orders VALUES (7);",
        )
        .unwrap();
    (folder, shop)
}

#[allow(clippy::needless_pass_by_value, reason = "options are made for each load")]
fn load(folder: &Folder, options: LoadOptions) -> Result<Project, LoadError> {
    Project::load(&folder.path().join("project"), &options)
}

fn run() -> LoadOptions {
    LoadOptions { mode: RUN, ..LoadOptions::default() }
}

fn problems(text: &str) -> String {
    let (folder, _) = project(text);
    load(&folder, LoadOptions::default()).unwrap_err().to_string()
}

fn call(project: &Project, tool: &str, args: serde_json::Value) -> String {
    let tool = project.tools().iter().find(|one| one.name().as_str() == tool).unwrap();
    let called = block_on(tool.call(args, ToolContextParts::detached().into()));
    called.map_or_else(|error| error.message, |output| output.value)
}

#[test]
fn a_file_of_another_program_gives_rows_in_six_lines_and_is_never_changed() {
    let (folder, shop) = project(SHOP);
    let before = fs::read(&shop).unwrap();
    for mode in [Mode::Inspect, RUN, Mode::Run { fresh: true }] {
        let project = load(&folder, LoadOptions { mode, ..LoadOptions::default() }).unwrap();
        let names: Vec<_> = project.tools().iter().map(|tool| tool.name().as_str()).collect();
        assert_eq!(names, ["shop_list_tables", "shop_describe_table", "shop_query"]);
        if mode != Mode::Inspect {
            let rows =
                call(&project, "shop_query", serde_json::json!({ "sql": "SELECT * FROM orders" }));
            assert_eq!(rows, r#"{"rows":[{"id":7}]}"#);
        }
        drop(project);
        assert_eq!(fs::read(&shop).unwrap(), before);
    }
    // Nothing of it is in the state folder, which it does not need.
    assert!(!folder.path().join("project/.toolcrib").exists());
}

#[test]
fn only_a_writable_file_is_written() {
    let tool = "[[tool]]\nkind = 'sql'\nname = 'clear'\ndescription = 'Clears.'\n\
        statements = ['DELETE FROM orders']\n";
    let read_only = format!("[database.shop]\nfile = '../shop.db'\n{tool}");
    let found = problems(&read_only);
    assert!(
        found.contains("write `writable = true` below [database.shop] to permit it"),
        "{found}"
    );
    let (folder, _) = project(&read_only.replace("'../shop.db'", "'../shop.db'\nwritable = true"));
    let project = load(&folder, run()).unwrap();
    let cleared = call(&project, "clear", serde_json::json!({}));
    assert_eq!(cleared, r#"{"rows":[],"changed":1}"#);
}

#[test]
fn every_tool_over_a_database_that_is_only_read_is_read_only() {
    let tool = "[[tool]]\nkind = 'sql'\nname = 'all'\ndescription = 'All.'\n\
        statements = ['SELECT * FROM orders']\n";
    let (folder, _) = project(&format!("[database.shop]\nfile = '../shop.db'\n{tool}"));
    assert!(load(&folder, run()).unwrap().tools()[0].annotations().read_only);
}

#[test]
fn what_is_wrong_with_a_database_is_said_where_it_is_declared() {
    let of = |section: &str| problems(&format!("[database.shop]\n{section}"));
    for (section, expected) in [
        (
            "file = '../shpo.db'",
            "toolcrib.toml:2:8: `../shpo.db` does not exist\n    help: did you mean `../shop.db`?",
        ),
        ("file = '..'", "toolcrib.toml:2:8: `..` is not a file"),
        ("file = 'seed.sql'", "toolcrib.toml:2:8: `seed.sql` is not an SQLite database"),
        (
            "file = 'a.db'\nseed = 'seed.sql'\nwritable = true",
            "a database that is created from a seed is always writable",
        ),
        ("url = 'postgres://me:secret@host/db'", "this is not a reference to a secret"),
        ("url = 'secret:NOPE'", "unknown secret `NOPE`"),
        (
            "url = 'secret:A'\nfile = 'x.db'\n[secrets]\nA = { env = 'A' }",
            "has either a `file` or a `url`",
        ),
    ] {
        let found = of(section);
        assert!(found.contains(expected), "{section}: {found}");
        assert!(!found.contains("me:secret@"), "{found}");
    }
}

#[test]
fn the_names_of_the_toolset_are_known_to_rules_and_taken() {
    let rule = "[[policy]]\neffect = 'deny'\ntool = 'shop_query'\n";
    let (folder, _) = project(&format!("policy_default = 'allow'\n{SHOP}{rule}"));
    load(&folder, run()).unwrap();
    let twice = format!(
        "{SHOP}[[tool]]\nkind = 'sql'\nname = 'shop_query'\ndescription = 'x'\n\
         statements = ['SELECT 1 AS a']\n"
    );
    assert!(problems(&twice).contains("two tools are called `shop_query`"));
    let long = SHOP.replace("'shop'", &format!("'{}'", "s".repeat(60)));
    assert!(problems(&long).contains("toolcrib.toml:6:8: "), "{}", problems(&long));
    let read_only = format!("{SHOP}read_only = true\n");
    assert!(problems(&read_only).contains("a tool of the kind `sql_explore` always is"));
}

/// Trusts or not, and keeps what it was shown.
#[derive(Debug)]
struct User(Verdict, Mutex<Vec<(String, Action)>>);

impl Consent for User {
    fn review(&self, review: &Review) -> Verdict {
        let powers = review.powers.iter().map(|power| (power.to_string(), power.action.clone()));
        *self.1.lock().unwrap() = powers.collect();
        self.0.clone()
    }

    fn replace(&self, _: &[PathBuf]) -> bool {
        true
    }
}

fn reviewed(folder: &Folder, verdict: Verdict) -> (Project, Vec<(String, Action)>) {
    let user = Arc::new(User(verdict, Mutex::default()));
    let consent = Some(Arc::clone(&user) as _);
    let project = load(folder, LoadOptions { consent, ..LoadOptions::default() }).unwrap();
    let shown = std::mem::take(&mut *user.1.lock().unwrap());
    (project, shown)
}

fn look() -> Verdict {
    Verdict::LookOnly("it is not trusted".into())
}

#[test]
fn a_file_outside_the_project_needs_trust_and_is_not_opened_without() {
    let (folder, shop) = project(SHOP);
    let (project, shown) = reviewed(&folder, look());
    let file = shop.canonicalize().unwrap().to_string_lossy().into_owned();
    let expected = Action::Open { file: file.clone(), writable: false };
    assert_eq!(shown.iter().map(|(_, action)| action).collect::<Vec<_>>(), [&expected]);
    assert!(shown[0].0.contains("database `shop`") && shown[0].0.contains(&file), "{shown:?}");
    assert!(project.tools().is_empty() && project.databases().is_empty());
    assert!(project.warnings().to_string().contains("database `shop` is not opened"));
    assert!(!Path::new(&format!("{file}-shm")).exists());
    let (project, _) = reviewed(&folder, Verdict::Use);
    assert_eq!(project.tools().len(), 3);
}

#[test]
fn a_link_out_of_the_project_is_a_file_outside() {
    let text = SHOP.replace("../shop.db", "data.db");
    let (folder, shop) = project(&text);
    let link = folder.path().join("project/data.db");
    std::os::unix::fs::symlink(&shop, &link).unwrap();
    let (_, shown) = reviewed(&folder, look());
    assert!(matches!(&shown[0].1, Action::Open { file, .. } if file.ends_with("/shop.db")));
    // A file in the project needs none.
    fs::remove_file(&link).unwrap();
    fs::copy(&shop, &link).unwrap();
    let (project, shown) = reviewed(&folder, look());
    assert!(shown.is_empty() && project.tools().len() == 3);
}

#[test]
fn a_server_needs_trust_and_is_not_connected_to_without_or_offline() {
    let text = "[database.crm]\nurl = 'secret:CRM'\n[secrets]\nCRM = { env = 'PATH' }\n\
        [[tool]]\nkind = 'sql_explore'\nname = 'crm'\n";
    let (folder, _) = project(text);
    let (project, shown) = reviewed(&folder, look());
    assert_eq!(shown[0].1, Action::Connect { writable: false });
    assert!(shown[0].0.contains("receives from your environment: PATH"), "{shown:?}");
    assert_eq!(project.tools().len(), 3);
    assert_eq!(project.database_servers()[0].shown(), "it is not trusted");
    let offline = LoadOptions { offline: true, consent: None, ..LoadOptions::default() };
    assert_eq!(load(&folder, offline).unwrap().tools().len(), 3);
    // The value of the variable is no URL, and is not repeated.
    let found = load(&folder, run()).unwrap_err().to_string();
    assert!(found.contains("database `crm`: the URL is invalid"), "{found}");
    assert!(!found.contains("/usr"), "{found}");
    let missing = text.replace("'PATH'", "'TOOLCRIB_TEST_NO_SUCH_VARIABLE'");
    let (folder, _) = self::project(&missing);
    let project = load(&folder, run()).unwrap();
    let warned = project.warnings().to_string();
    assert!(warned.contains("TOOLCRIB_TEST_NO_SUCH_VARIABLE` is not set"), "{warned}");
    assert!(
        call(&project, "crm_query", serde_json::json!({ "sql": "SELECT 1" })).contains("server")
    );
}

#[test]
fn fresh_replaces_only_what_a_seed_makes() {
    let (folder, shop) = project(&format!(
        "{DATABASE}{}",
        SHOP.replace("name = 'shop'", "name = 'shop'\ndatabase = 'shop'")
    ));
    drop(load(&folder, run()).unwrap());
    let before = fs::read(&shop).unwrap();
    let fresh = LoadOptions { mode: Mode::Run { fresh: true }, ..LoadOptions::default() };
    let project = load(&folder, fresh).unwrap();
    let kept: Vec<_> = project.databases().iter().filter_map(|one| one.kept()).collect();
    assert_eq!(kept.len(), 1);
    assert!(kept[0].ends_with("desk.db.old-1"));
    assert_eq!(fs::read(&shop).unwrap(), before);
    let beside: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!beside.iter().any(|name| name.to_string_lossy().contains(".old-")), "{beside:?}");
}
