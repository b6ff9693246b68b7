//! A tool that its user has forbidden in a file was offered all the same.

use serde_json::{Value, json};

use super::faults::{file, offered, project, script};
use crate::support::toolcrib;

const ALL: [&str; 8] = ["alpha", "breaks", "flood", "hostile", "ids", "keeps", "omits", "zeta"];

fn with(entry: &Value) -> (Option<i32>, Vec<String>, String) {
    offered(&file(entry, &json!({})))
}

#[test]
fn lists_of_tools_in_an_entry_were_ignored() {
    let but = |hidden: &[&str]| ALL.into_iter().filter(|name| !hidden.contains(name)).collect();
    let cases: [(Value, Vec<&str>); 10] = [
        (json!({ "disabledTools": ["flood", "ids"] }), but(&["flood", "ids"])),
        (json!({ "Disabled-Tools": ["flood"] }), but(&["flood"])),
        (json!({ "includeTools": ["zeta", "ids"], "excludeTools": ["ids"] }), vec!["zeta"]),
        (json!({ "enabled_tools": ["alpha"] }), vec!["alpha"]),
        (json!({ "tools": ["*"] }), ALL.to_vec()),
        (json!({ "tools": ["alpha", "zeta"], "allowedTools": ["zeta"] }), vec!["zeta"]),
        (json!({ "tools": [] }), vec![]),
        (json!({ "tools": { "flood": false } }), but(&["flood"])),
        (json!({ "tools": { "alpha": true, "zeta": false } }), vec!["alpha"]),
        (json!({ "disabledTools": ["*"] }), vec![]),
    ];
    for (entry, expected) in cases {
        let (code, names, stderr) = with(&entry);
        assert_eq!(
            (code, names),
            (Some(0), expected.into_iter().map(str::to_owned).collect()),
            "{entry}"
        );
        assert!(!stderr.contains("not used here"), "{entry}: {stderr}");
    }
}

#[test]
fn a_key_that_may_narrow_and_is_not_understood_was_ignored() {
    for (key, entry) in [
        ("disabledTools", json!({ "disabledTools": "flood" })),
        ("flood*", json!({ "disabledTools": ["flood*"] })),
        ("alpha(x)", json!({ "includeTools": ["alpha(x)"] })),
        ("disabledTools", json!({ "disabledTools": [{ "name": "flood" }] })),
        ("alpha", json!({ "tools": { "alpha": { "enabled": false } } })),
        ("toolFilter", json!({ "toolFilter": ["alpha"] })),
        ("whitelist", json!({ "whitelist": ["alpha"] })),
        ("status", json!({ "status": "disabled" })),
        ("permissions", json!({ "permissions": { "deny": ["flood"] } })),
        ("sandbox", json!({ "sandbox": true })),
        ("enabled", json!({ "enabled": "no" })),
    ] {
        let (code, names, stderr) = with(&entry);
        assert_eq!((code, names.len()), (Some(0), 0), "{entry}: {stderr}");
        assert!(stderr.contains(key) && stderr.contains("cannot be used"), "{entry}: {stderr}");
    }
    // Keys that widen, and unrelated ones, only cause a warning.
    let ignored = json!({ "autoApprove": ["flood"], "alwaysAllow": ["ids"], "trust": true,
        "toolTimeout": 5, "description": "d" });
    let (code, names, stderr) = with(&ignored);
    assert_eq!((code, names.len()), (Some(0), ALL.len()), "{stderr}");
    assert!(stderr.contains("not used here"), "{stderr}");
}

#[test]
fn a_key_that_requires_approval_was_ignored() {
    for entry in [
        json!({ "require_approval": "always" }),
        json!({ "requireApproval": true }),
        json!({ "alwaysAsk": ["flood"] }),
        json!({ "userApproval": "required" }),
        json!({ "approvalRequired": ["flood"] }),
        json!({ "approval_mode": "prompt" }),
        json!({ "confirm": true }),
        json!({ "ask": true }),
        json!({ "alwaysDeny": ["flood"] }),
        json!({ "autoBlock": true }),
    ] {
        let (code, names, stderr) = with(&entry);
        assert_eq!((code, names.len()), (Some(0), 0), "{entry}: {stderr}");
        assert!(stderr.contains("cannot be used"), "{entry}: {stderr}");
    }
    let (_, _, stderr) = with(&json!({ "requireApproval": true }));
    assert!(stderr.contains("effect = \"ask\""), "{stderr}");
    let (code, names, stderr) = with(&json!({ "require_approval": "never", "userApproval": false,
        "autoApproveTools": ["ids"], "alwaysApprove": true, "alwaysLoad": true }));
    assert_eq!((code, names.len()), (Some(0), ALL.len()), "{stderr}");
    let (code, names, stderr) = offered(&file(&json!({}), &json!({ "mcpApproval": "always" })));
    assert_eq!((code, names.len()), (Some(0), 0), "{stderr}");
    assert!(stderr.contains("`mcpApproval`") && stderr.contains("cannot be used"), "{stderr}");
    let beside = json!({ "chat.tools.autoApprove": true, "approval_policy": "on-request" });
    let (code, names, stderr) = offered(&file(&json!({}), &beside));
    assert_eq!((code, names.len()), (Some(0), ALL.len()), "{stderr}");
}

#[test]
fn servers_that_a_file_switches_off_were_started() {
    for (entry, beside) in [
        (json!({ "enabled": false }), json!({})),
        (json!({ "isActive": false }), json!({})),
        (json!({ "is_active": false }), json!({})),
        (json!({}), json!({ "enabledMcpjsonServers": ["g"] })),
        (json!({}), json!({ "excludeMCPServers": ["f"] })),
        (json!({}), json!({ "disabledMcpServers": ["f"] })),
        (json!({}), json!({ "mcp": { "excluded": ["f"] } })),
        (json!({}), json!({ "mcp": { "allowed": ["g"] } })),
        (json!({}), json!({ "allowMCPServers": ["g"] })),
    ] {
        let (code, names, stderr) = offered(&file(&entry, &beside));
        let case = format!("{entry} {beside}: {stderr}");
        assert_eq!((code, names.len()), (Some(0), 0), "{case}");
        assert!(!stderr.contains("could not be listed"), "{case}");
    }
    let (_, names, _) = offered(&file(&json!({}), &json!({ "mcp": { "allowed": ["f"] } })));
    assert_eq!(names, ALL);
    for beside in [
        json!({ "excludeMCPServers": "f" }),
        json!({ "deniedMcpServers": [{ "serverName": "f" }] }),
        json!({ "disallowedTools": ["flood"] }),
    ] {
        let (_, names, stderr) = offered(&file(&json!({}), &beside));
        assert!(names.is_empty(), "{beside}: {stderr}");
        assert!(stderr.contains("not supported here") || stderr.contains("error"), "{stderr}");
    }
    // It has the client ask about the servers of a project, as a project's trust does here.
    let asked = offered(&file(&json!({}), &json!({ "enableAllProjectMcpServers": false })));
    assert_eq!(asked.1, ALL);
}

#[test]
fn a_project_widened_what_its_file_narrows() {
    let entry =
        json!({ "command": "python3", "args": [script()], "includeTools": ["zeta", "ids"] });
    let project = project("");
    project.write("file.json", &json!({ "mcpServers": { "f": entry } }).to_string());
    project
        .write("toolcrib.toml", "mcp_files = ['file.json']\n[mcp.f]\ninclude = ['z*', 'alpha']\n");
    let (_, menu) = project.json(&["menu"]);
    let names: Vec<_> = menu["offered"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["mcp__f__zeta"]);
    let mut called = toolcrib();
    let called = called.args(["call", "mcp__f__alpha", "-p"]).arg(project.path()).output().unwrap();
    assert!(!called.status.success());
}

#[test]
fn permissions_and_projects_of_a_settings_file_were_ignored() {
    let but = |hidden: &[&str]| ALL.into_iter().filter(|name| !hidden.contains(name)).collect();
    let deny = |rules: &[&str]| json!({ "permissions": { "deny": rules, "allow": ["mcp__f"] } });
    let cases: [(Value, Vec<&str>); 8] = [
        (deny(&["mcp__f__flood", "mcp__g__alpha", "Bash(rm *)"]), but(&["flood"])),
        (deny(&["mcp__f__flood(x)"]), but(&["flood"])),
        (json!({ "permissions": { "ask": ["mcp__f__ids"] } }), but(&["ids"])),
        (deny(&["mcp__f"]), vec![]),
        (deny(&["mcp__f__*"]), vec![]),
        (deny(&["mcp__*"]), vec![]),
        (json!({ "projects": { "/": { "disabledMcpServers": ["f"] } } }), vec![]),
        (json!({ "projects": { "/nowhere": { "disabledMcpServers": ["f"] } } }), ALL.to_vec()),
    ];
    for (beside, expected) in cases {
        let (code, names, stderr) = offered(&file(&json!({}), &beside));
        assert_eq!(code, Some(0), "{beside}: {stderr}");
        assert_eq!(names, expected, "{beside}: {stderr}");
    }
    // A pattern may mean any of the tools.
    let (code, names, stderr) = offered(&file(&json!({}), &deny(&["mcp__f__fl*"])));
    assert_eq!((code, names.len()), (Some(0), 0), "{stderr}");
    assert!(stderr.contains("mcp__f__fl*") && stderr.contains("cannot be used"), "{stderr}");
    for beside in [
        deny(&["Mcp(f:flood)"]),
        json!({ "permissions": ["mcp__f"] }),
        json!({ "permission": { "f_*": "deny" } }),
        json!({ "tools": { "exclude": ["flood"] } }),
        json!({ "chat.mcp.access": "none" }),
    ] {
        let (_, names, stderr) = offered(&file(&json!({}), &beside));
        assert!(names.is_empty(), "{beside}: {stderr}");
        assert!(stderr.contains("not supported here") || stderr.contains("error"), "{stderr}");
    }
}
