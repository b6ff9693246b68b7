//! Projects on disk, sound and broken, through the public API alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::{fs, path::PathBuf};

use proptest::prelude::{ProptestConfig, any, proptest};
use tempfile::TempDir;
use toolcrib_core::CancellationToken;
use toolcrib_engine::TurnOptions;
use toolcrib_project::{
    Diagnostics, InitError, LoadError, LoadOptions, Mode, PROJECT_FILE, Project, find, init,
};

/// A project folder that goes away with the value.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::with_prefix("desk").unwrap())
    }

    /// A folder with this project file and a database script to declare databases on.
    fn with(project_file: &str) -> Self {
        Self::new().file(PROJECT_FILE, project_file).file(
            "seed.sql",
            "CREATE TABLE charges (id INTEGER PRIMARY KEY, amount INTEGER);",
        )
    }

    fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn skill(self, name: &str, text: &str) -> Self {
        self.file(&format!("skills/{name}/SKILL.md"), text)
    }

    fn load_as(&self, mode: Mode) -> Result<Project, LoadError> {
        Project::load(
            self.0.path(),
            &LoadOptions {
                mode,
                ..LoadOptions::default()
            },
        )
    }

    fn load(&self) -> Project {
        self.load_as(Mode::Inspect).unwrap()
    }

    fn problems(&self) -> Diagnostics {
        match self.load_as(Mode::Inspect) {
            Err(LoadError::Diagnostics(problems)) => problems,
            other => panic!("{other:?}"),
        }
    }

    /// Every file and folder below, with its size.
    fn listing(&self) -> Vec<(PathBuf, u64)> {
        fn walk(dir: &std::path::Path, into: &mut Vec<(PathBuf, u64)>) {
            for entry in fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                into.push((entry.path(), entry.metadata().unwrap().len()));
                if entry.path().is_dir() {
                    walk(&entry.path(), into);
                }
            }
        }
        let mut found = Vec::new();
        walk(self.0.path(), &mut found);
        found.sort();
        found
    }
}

const DATABASE: &str = "[database.desk]\nfile = \"desk.db\"\nseed = \"seed.sql\"\n";

#[test]
fn print_all() {
    let all = [
        ("unknown keys", Folder::with(r#"
nam = "x"
[agent]
modell = "script:s.toml"
max_iterations = 0
turn_timeout = "soon"
[limits]
tool_timeout = 30
batch_result_chars = -1
[skills]
focuss = true
[database.desk]
file = "a/b.db"
sed = "seed.sql"
[[tool]]
kind = "sql"
name = "find"
description = "Finds."
colour = "red"
statements = [{ sql = "SELECT 1", onempty = "x" }]
[tool.params]
id = { type = "integr", descripton = "x", minimum = "a" }
[[policy]]
effect = "deny"
annotation = { readonly = true }
"#)),
        ("syntax", Folder::with("name = \nx = 'a\n[y]\n[y]\n")),
        ("tools", Folder::with(&format!(r#"{DATABASE}
[[tool]]
kind = "sql"
name = "refund charge"
description = " "
statements = []
[[tool]]
kind = "http"
name = "fetch"
url = "x"
[[tool]]
name = "list_charges"
description = "Lists."
read_only = true
statements = ["SELECT id, amont FROM charges WHERE id = :id", "DELETE FROM charges", """
SELECT id,
       amont
FROM charges"""]
params.idd = {{ type = "integer" }}
[[tool]]
kind = "sql"
name = "list_charges"
description = "Lists."
database = "dsk"
statements = "SELECT 1"
[[tool]]
kind = "sql"
name = "other"
description = "Lists."
schema_file = "../s.json"
statements = ["SELECT 1"]
[[tool]]
kind = "sql"
name = "p"
description = "Lists."
schema_file = "bad.json"
statements = ["SELECT 1"]
[[tool]]
kind = "sql"
name = "q"
description = "Lists."
schema_file = "list.json"
statements = ["SELECT 1"]
[[tool]]
kind = "sql"
name = "r"
description = "Lists."
schema_file = "odd.json"
params = {{}}
statements = ["SELECT 1"]
[[tool]]
kind = "sql"
name = "s"
description = "Lists."
schema_file = "odd.json"
statements = ["SELECT 1"]
[[tool]]
kind = "sql"
name = "t"
description = "Lists."
statements = ["SELECT :a, :b, :c, :d, :e, :f, :g"]
[tool.params]
a = {{ type = "string", pattern = "(" }}
b = {{ type = "string", minLength = -1, enum = "a" }}
c = "string"
d = {{ type = "object", properties = {{ x = {{ tpe = "string" }} }} }}
e = {{ type = "string", required = true }}
f = {{ type = "array", items = {{ type = "strng" }} }}
g = {{ type = 3, default = 2024-01-01, optional = "yes" }}
"#)).file("bad.json", "{\n  \"type\": object }").file("list.json", "[]").file("odd.json", r#"{"type":"object","properties":{"a":{"type":"strin"}}}"#)),
        ("policy", Folder::with(&format!(r#"{DATABASE}
[[tool]]
kind = "sql"
name = "refund"
description = "Refunds."
toolset = "billing"
statements = ["DELETE FROM charges"]
[[role]]
name = "trainee"
principals = []
[[role]]
name = "trainee"
principals = ["a"]
[[policy]]
effect = "ask"
tool = ["refnd", "list_*", "read_skill"]
toolset = ["biling", "x*"]
role = "trainees"
skill = "biling"
tenant = []
[[policy]]
tool = 3
"#)).skill("billing", "---\nname: billing\ndescription: x\n---\nbody")),
        ("databases", Folder::with(r#"
[database]
x = 1
[database.a]
file = "one.db"
seed = "nope.sql"
[database.b]
file = "one.db"
seed = "/etc/passwd"
[database.c]
file = "../c.db"
seed = "../c.sql"
[database.d]
seed = "bad.sql"
file = "d.db"
[[tool]]
kind = "sql"
name = "t"
description = "x"
statements = ["SELECT 1"]
"#).file("bad.sql", "CREATE TABLE a (x);\n\nINSERT INTO b VALUES (1);\n")),
        ("agent", Folder::with("[agent]\nmodel = 'openai:gpt'\nsystem = 'x'\nsystem_file = 's.md'\n")),
        ("script", Folder::with("[agent]\nmodel = 'script:script.toml'\nsystem_file = 's.md'\n").file("script.toml", "[[rule]]\ntxt = 'a'\n").file("s.md", [0xff, 0xfe])),
        ("skills", Folder::with("").file("skills/empty/x", "").skill("none", "no frontmatter").skill("open", "---\nname: open\n").skill("bad", "---\nname: bad\ndescription: Use when: b\n---\n").skill("other", "---\nname: othr\ndescription: ''\n---\n").skill("Big", &format!("---\nname: Big\ndescription: {}\n---\n", "x".repeat(1025))).skill("tools", "---\nname: tools\ndescription: |\n  multi\n  line\nlicence: MIT\nversion: 1\nallowed-tools: Bash(git add:*), Read\ntoolcrib-tools: a\nmetadata:\n  author: me\n  toolcrib-tols: b\n  toolcrib-tools: \"refund list_charges\"\n---\nbody").skill("list", "---\nname: list\ndescription: x\nmetadata: {toolcrib-tools: [a, [b]]}\n---\n").skill("dup", "---\nname: dup\nname: dup\n---\n").skill("seq", "---\n- a\n---\n").skill("huge", &"x".repeat(2_000_000))),
    ];
    for (name, folder) in all {
        match folder.load_as(Mode::Inspect) {
            Err(LoadError::Diagnostics(d)) => println!("=== {name}\n{d}"),
            other => println!("=== {name}\n{other:?}"),
        }
    }
    let t = Folder::new();
    init(t.0.path()).unwrap();
    let p = t.load();
    println!("{:?} {}", p.tools(), p.warnings());
}
