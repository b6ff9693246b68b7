//! An approval counted although the program of its tool had changed since.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::Value;

use crate::support::Project;

fn project(program: &str, args: &str) -> Project {
    let file = format!(
        "policy_default = 'allow'\n[secrets]\ntoken = {{ env = 'PATH' }}\n\
         [[policy]]\neffect = 'ask'\ntool = 'act'\n\
         [[tool]]\nkind = 'command'\nname = 'act'\ndescription = 'Acts when you need it.'\n\
         program = '{program}'\nargs = [{args}]\n[tool.params]\nx = {{ type = 'string' }}\n"
    );
    let project =
        Project::of(&[("toolcrib.toml", &file), ("act.sh", "#!/bin/sh\necho good \"$@\"\n")]);
    let script = project.path().join("act.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    project
}

fn waiting(project: &Project) -> Vec<Value> {
    let (_, shown) = project.json(&["approvals"]);
    let all = shown["approvals"].as_array().unwrap().iter();
    all.filter(|one| one["state"] == "open").cloned().collect()
}

#[test]
fn an_approval_counted_after_the_program_had_changed() {
    for (program, args) in [("./act.sh", "'{x}'"), ("/bin/sh", "'act.sh', '{x}'")] {
        let project = project(program, args);
        let call = || project.toolcrib(&["call", "act", "x=1"]);
        assert_ne!(call().code, Some(0));
        let id = waiting(&project)[0]["id"].as_str().unwrap().to_owned();
        assert_eq!(project.toolcrib(&["approve", &id]).code, Some(0));
        let script = project.path().join("act.sh");
        fs::write(&script, "#!/bin/sh\necho evil\n").unwrap();
        let changed = call();
        assert!(!changed.stdout.contains("evil"), "{program}: {}", changed.stdout);
        assert_ne!(changed.code, Some(0), "{program}");
        // Another decision is needed, about the present program.
        let id = waiting(&project)[0]["id"].as_str().unwrap().to_owned();
        assert_eq!(project.toolcrib(&["approve", &id]).code, Some(0));
        let approved = call();
        assert_eq!(approved.code, Some(0), "{program}: {}", approved.stderr);
        assert!(approved.stdout.contains("evil"), "{}", approved.stdout);
    }
}
