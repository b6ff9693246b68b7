//! The tools of a project that run in a dry run.

use crate::folder::{Folder, RUN};

const PROJECT: &str = "
[database.desk]
file = 'desk.db'
seed = 'seed.sql'
[files.notes]
folder = 'notes'
write = true
[[tool]]
kind = 'sql_explore'
name = 'desk'
database = 'desk'
[[tool]]
kind = 'files'
[[tool]]
kind = 'sql'
name = 'list'
description = 'Lists.'
database = 'desk'
statements = ['SELECT id FROM t']
read_only = true
[[tool]]
kind = 'sql'
name = 'add'
description = 'Adds.'
database = 'desk'
statements = ['INSERT INTO t VALUES (1)']
[[tool]]
kind = 'command'
name = 'status'
description = 'The status.'
program = 'echo'
read_only = true
[[tool]]
kind = 'command'
name = 'state'
description = 'The state.'
program = 'echo'
read_only = true
dry_run = true
";

#[test]
fn bounded_read_only_tools_run_in_a_dry_run_and_others_only_if_declared() {
    let folder = |text: &str| {
        Folder::with(text)
            .file("seed.sql", "CREATE TABLE t (id INTEGER);")
            .file("notes/a.md", "A note.")
    };
    let own = folder(PROJECT);
    let project = own.load_as(RUN).unwrap();
    let runs = |name: &str| {
        let tool = project.tools().iter().find(|tool| *tool.name() == *name);
        tool.unwrap_or_else(|| panic!("no {name}")).runs_in_dry_run()
    };
    let expected = [
        ("list", true),
        ("add", false),
        ("status", false),
        ("state", true),
        ("read_file", true),
        ("write_file", false),
    ];
    for (name, expected) in expected {
        assert_eq!(runs(name), expected, "{name}");
    }
    let explore = project.tools().iter().filter(|tool| tool.name().contains("desk"));
    let explore: Vec<_> = explore.map(|tool| tool.runs_in_dry_run()).collect();
    assert!(!explore.is_empty() && explore.iter().all(|runs| *runs), "{explore:?}");

    let wrong = PROJECT.replace("read_only = true\ndry_run = true", "dry_run = true");
    insta::assert_snapshot!(folder(&wrong).problems(), @r"
    toolcrib.toml:38:11: `dry_run` is for a tool that changes nothing
        help: add `read_only = true`, or leave out `dry_run`: a dry run then plans its calls
    ");
}
