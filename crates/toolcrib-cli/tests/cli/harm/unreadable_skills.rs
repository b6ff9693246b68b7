//! One skill file that no command of the project survived.

use std::fs;

use crate::support::Project;

const MODEL: &str = "policy_default = 'allow'\n[agent]\nmodel = 'script:s.toml'\n";
const SCRIPT: &str = "[[rule]]\ntext = 'done'\n";

fn project(skills: &[(&str, &[u8])]) -> Project {
    let project = Project::of(&[("toolcrib.toml", MODEL), ("s.toml", SCRIPT)]);
    for (name, file) in skills {
        let folder = project.path().join("skills").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), file).unwrap();
    }
    project
}

#[test]
fn one_unreadable_skill_stopped_every_command() {
    let good: (&str, &[u8]) = ("good", b"---\nname: good\ndescription: Good.\n---\nDo it.\n");
    for (name, file) in [
        ("no-frontmatter", b"Only text.\n".as_slice()),
        ("no-description", b"---\nname: no-description\n---\nText.\n"),
        ("not-yaml", b"---\nname: not-yaml\n  : [\n- x\n---\nText.\n"),
        ("a-list", b"---\n- a\n- b\n---\nText.\n"),
        ("twice", b"---\ndescription: a\ndescription: b\n---\nText.\n"),
        ("not-utf-8", b"---\ndescription: \xff\xfe\n---\nText.\n"),
        ("wrong key", b"---\ndescription: x\ntoolcrib-tools: y\n---\nText.\n"),
    ] {
        let project = project(&[good, (name, file)]);
        for args in [["check"].as_slice(), &["menu"], &["run", "--no-session", "go"], &["skills"]] {
            let outcome = project.toolcrib(args);
            assert_eq!(outcome.code, Some(0), "{name} {args:?}: {}", outcome.stderr);
            let said = outcome.stderr + &outcome.stdout;
            let is_said = said.contains(&format!("skill `{name}` is left out"));
            assert!(is_said || args != ["check"], "{name} {args:?}: {said}");
        }
        let run = project.toolcrib(&["run", "--no-session", "--skill", name, "go"]);
        let expected = format!("error: skill `{name}` is left out until this file is mended");
        assert_eq!(run.code, Some(2), "{name}: {}", run.stdout);
        assert!(
            run.stderr.contains(&expected) && run.stderr.contains("SKILL.md"),
            "{}",
            run.stderr
        );
        let menu = project.json(&["menu"]).1["offered"].to_string();
        assert!(menu.contains("good") && !menu.contains(name), "{name}: {menu}");
    }
}

#[test]
fn frontmatter_as_published_skills_write_it_was_refused() {
    let cases: [(&str, &str); 16] = [
        ("description: [WIP] use this: carefully", "[WIP] use this: carefully"),
        ("description: [WIP]", "[WIP]"),
        ("description: {draft} of it", "{draft} of it"),
        ("description: *Important*: read first", "*Important*: read first"),
        ("description: `code` first", "`code` first"),
        ("description: @team uses this", "@team uses this"),
        ("description: %d of them: a list", "%d of them: a list"),
        ("description: \"Quoted\" and more: x", "\"Quoted\" and more: x"),
        ("description: 'It's good'", "It's good"),
        ("description: Use this: when\n  you need: it", "Use this: when you need: it"),
        ("description:\tA tab", "A tab"),
        ("description:No blank", "No blank"),
        ("description: Ends with:", "Ends with:"),
        ("description: Plain\nmetadata:\n\tauthor: me\n\tshort: Do: it", "Plain"),
        ("description: Plain\nmetadata:\n  note: Use: it\n  toolcrib-tools: ''", "Plain"),
        ("description: >\n  Folded: text\nlicense: MIT: see file", "Folded: text"),
    ];
    for (frontmatter, described) in cases {
        for (start, end) in [("", "\n"), ("\u{feff}", "\n"), ("", "\r\n")] {
            let text =
                format!("{start}---\nname: a\n{frontmatter}\n---\nText.\n").replace('\n', end);
            let project = project(&[("a", text.as_bytes())]);
            let checked = project.toolcrib(&["check"]);
            assert_eq!(checked.code, Some(0), "{text:?}: {}", checked.stderr);
            let shown = project.json(&["menu"]).1.to_string();
            let expected = serde_json::json!(described).to_string();
            assert!(
                shown.contains(expected.trim_matches('"')),
                "{text:?}: {shown}\n{}",
                checked.stderr
            );
        }
    }
}
