//! The model's menu, and the reasons for the rest.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

use crate::support::{Project, listing};

fn offered(menu: &Value) -> BTreeSet<String> {
    let tools = menu["offered"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn on_a_refund_turn_the_model_sees_three_tools_and_read_skill() {
    let desk = Project::desk();
    let (code, menu) = desk.json(&["menu", "--skill", "billing"]);
    assert_eq!(code, Some(0));
    let names = ["list_charges", "list_refunds", "read_skill", "refund_duplicate_charge"];
    assert_eq!(offered(&menu), names.map(str::to_owned).into());
    let withheld = menu["withheld"].as_array().unwrap();
    assert_eq!(withheld.len(), 22);
    for tool in withheld {
        assert!(!tool["reason"].as_str().unwrap().is_empty(), "{tool}");
        assert!(["skill", "policy"].contains(&tool["by"].as_str().unwrap()), "{tool}");
    }
    assert_eq!(menu["fingerprint"].as_str().unwrap().len(), 64);
    assert!(menu["chars"].as_u64().unwrap() > 500);
}

/// A situation on the command line.
#[derive(Debug, Clone, Default, PartialEq)]
struct Situation {
    skills: Vec<String>,
    principal: Option<String>,
    tenant: Option<String>,
}

impl Situation {
    fn args(&self) -> Vec<&str> {
        let mut args = vec!["menu"];
        args.extend(self.skills.iter().flat_map(|skill| ["--skill", skill]));
        args.extend(self.principal.iter().flat_map(|principal| ["--as", principal]));
        args.extend(self.tenant.iter().flat_map(|tenant| ["--tenant", tenant]));
        args
    }

    /// Changes one fact as worded by a reason. `nobody` and `ann` have the roles of the
    /// test's project.
    fn change(&mut self, words: &str) {
        let named = Regex::new("`([^`]+)`").unwrap();
        let name = named.captures(words).map(|c| c[1].to_owned()).unwrap_or_default();
        if words.starts_with("activate skill") {
            self.skills.push(name);
        } else if words.ends_with("not active") {
            self.skills.retain(|skill| *skill != name);
        } else if words.starts_with("a principal without role") {
            self.principal = None;
        } else if words.starts_with("a principal with role") {
            let holder = words.split_once('(').unwrap().1.trim_end_matches(')');
            self.principal = Some(holder.to_owned());
        } else if words.starts_with("tenant") {
            self.tenant = Some(name);
        } else if words.starts_with("no tenant") {
            self.tenant = None;
        } else {
            panic!("no way to change {words:?}");
        }
    }
}

/// Changes exactly the facts of a withheld tool's reason and sees the tool appear; with all but
/// one, it does not. Each change starts the program; the engine has a property test for any rules
/// (`why_random`).
fn reasons_hold(project: &Project, start: &Situation, tools: &[&str]) -> usize {
    let (_, menu) = project.json(&start.args());
    let mut checked = 0;
    for tool in menu["withheld"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let reason = tool["reason"].as_str().unwrap();
        if !tools.contains(&name) {
            continue;
        }
        let Some((_, words)) = reason.split_once("to offer it: ") else {
            continue;
        };
        let changes: Vec<_> = words.split(", and ").collect();
        for left_out in (0..changes.len()).map(Some).chain([None]) {
            let mut situation = start.clone();
            for (position, words) in changes.iter().enumerate() {
                if Some(position) != left_out {
                    situation.change(words);
                }
            }
            let (_, menu) = project.json(&situation.args());
            assert_eq!(
                offered(&menu).contains(name),
                left_out.is_none(),
                "{name} in {situation:?}, from {start:?}: {reason}"
            );
            checked += 1;
        }
    }
    checked
}

#[test]
fn the_reasons_of_the_support_desk_name_exactly_what_must_change() {
    let start = Situation {
        skills: vec!["shipping".to_owned()],
        principal: Some("intern".to_owned()),
        tenant: None,
    };
    assert_eq!(reasons_hold(&Project::desk(), &start, &["refund_duplicate_charge"]), 3);
}

#[test]
fn reasons_hold_where_roles_tenants_and_skills_come_together() {
    let project = Project::of(&[
        (
            "toolcrib.toml",
            r#"
            policy_default = "deny"
            [database.db]
            file = "db.db"
            seed = "seed.sql"
            [[tool]]
            kind = "sql"
            name = "look"
            description = "Looks."
            read_only = true
            statements = ["SELECT 1 AS one"]
            [[tool]]
            kind = "sql"
            name = "write"
            description = "Writes."
            statements = ["UPDATE t SET x = 1"]
            [[tool]]
            kind = "sql"
            name = "drop"
            description = "Drops."
            destructive = true
            statements = ["DELETE FROM t"]
            [[role]]
            name = "admin"
            principals = ["ann"]
            [[policy]]
            effect = "deny"
            tool = "drop"
            tenant = "acme"
            [[policy]]
            effect = "allow"
            annotation = { read_only = true }
            [[policy]]
            effect = "allow"
            role = "admin"
            listed_by_active_skill = true
            tenant = ["acme", "zeta"]
        "#,
        ),
        ("seed.sql", "CREATE TABLE t (x INTEGER);"),
        (
            "skills/work/SKILL.md",
            "---\nname: work\ndescription: Work.\nmetadata:\n  toolcrib-tools: write drop\n---\nDo it.\n",
        ),
        ("skills/rest/SKILL.md", "---\nname: rest\ndescription: Rest.\n---\nDo nothing.\n"),
    ]);
    let start = Situation {
        skills: vec!["rest".to_owned()],
        principal: Some("bob".to_owned()),
        tenant: None,
    };
    // A skill, a role and a tenant are missing for each; all, and all but each one.
    assert_eq!(reasons_hold(&project, &start, &["write", "drop"]), 8);
}

#[test]
fn verbose_shows_descriptions_in_full() {
    let desk = Project::desk();
    let (_, menu) = desk.json(&["menu"]);
    let descriptions: Vec<_> = menu["offered"].as_array().unwrap().iter().collect();
    let descriptions = descriptions.iter().map(|tool| tool["description"].as_str().unwrap());
    let lines: Vec<String> =
        descriptions.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(lines.iter().any(|line| line.chars().count() > 72), "{lines:?}");
    let (short, full) = (desk.toolcrib(&["menu"]).stdout, desk.toolcrib(&["menu", "-v"]).stdout);
    assert!(short.contains('…'), "{short}");
    for line in lines {
        assert!(full.contains(&line), "{line}:\n{full}");
    }
}

#[test]
fn the_same_menu_has_the_same_bytes() {
    let desk = Project::desk();
    let (_, first) = desk.json(&["menu", "--skill", "billing"]);
    let (_, second) = desk.json(&["menu", "--skill", "billing", "--session", "other"]);
    assert_eq!(first, second);
}

#[test]
fn menu_and_check_write_nothing() {
    let desk = Project::desk();
    let before = listing(desk.path());
    desk.json(&["menu"]);
    desk.json(&["check"]);
    assert_eq!(listing(desk.path()), before);
    desk.toolcrib(&["call", "list_charges", "order_id=1042"]);
    let before = listing(desk.path());
    desk.json(&["menu"]);
    desk.json(&["check"]);
    assert_eq!(listing(desk.path()), before);
}

#[test]
fn an_unknown_skill_is_a_usage_error_that_names_the_known_ones() {
    let desk = Project::desk();
    for command in [&["menu"][..], &["run", "hello"], &["call", "list_charges"]] {
        let args: Vec<_> = command.iter().copied().chain(["--skill", "biling"]).collect();
        let outcome = desk.toolcrib(&args);
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.stderr.contains("`billing`"), "{}", outcome.stderr);
    }
}
