//! A valid project.

use std::path::Path;

use toolcrib_engine::TurnOptions;
use toolcrib_project::{LoadError, LoadOptions, PROJECT_FILE, Project, find};

use crate::folder::{DATABASE, Folder, SKILL, TOOL, block_on};

#[test]
fn a_project_is_what_its_file_says() {
    let project_file = format!(
        r#"name = "desk"
policy_default = "deny"
[agent]
system_file = "system.md"
max_iterations = 3
turn_timeout = "1m 30s"
[limits]
batch_result_chars = 5000
[skills]
focus = false
{DATABASE}
[[tool]]
kind = "sql"
name = "list_charges"
description = "Lists the charges."
read_only = true
untrusted = false
timeout = "2s"
max_result_chars = 900
statements = ["SELECT id FROM charges WHERE id = :zeta OR amount = :alpha"]
[tool.params]
zeta = {{ type = "integer", optional = true }}
alpha = {{ enum = ["b", "a"], x-unit = "cents" }}
[[role]]
name = "clerk"
principals = ["ann", "bob"]
[[policy]]
effect = "allow"
tool = "list_charges"
role = "clerk"
"#
    );
    let skill = "---\r\nname: billing\r\ndescription: >\r\n  Charges.\r\nlicense: MIT\r\n\
                 metadata:\r\n  toolcrib-tools: [list_charges]\r\n---\r\n\r\nLook first.\r\n";
    let folder =
        Folder::with(&project_file).file("system.md", "Be brief.\n").skill("billing", skill);
    let project = folder.load();
    assert_eq!(&**project.name(), "desk");
    assert_eq!(&**project.system().unwrap(), "Be brief.\n");
    assert_eq!(project.max_iterations(), Some(3));
    assert_eq!(project.turn_timeout().unwrap().as_secs(), 90);
    assert_eq!(project.limits().batch_result_chars, 5000);
    assert!(project.warnings().is_empty(), "{}", project.warnings());
    let skill = project.skills().get("billing").unwrap();
    assert_eq!((&*skill.description, &*skill.body), ("Charges.", "Look first."));
    assert_eq!(skill.tools, ["list_charges"]);
    let tool = &project.tools()[0];
    assert_eq!(tool.origin(), "toolcrib.toml:16");
    assert_eq!(tool.timeout().unwrap().as_secs(), 2);
    assert_eq!(tool.max_result_chars(), Some(900));
    assert!(!tool.untrusted() && tool.annotations().read_only);
    insta::assert_snapshot!(tool.input_schema(), @r#"{"additionalProperties":false,"properties":{"zeta":{"type":"integer"},"alpha":{"enum":["b","a"],"x-unit":"cents"}},"required":["alpha"],"type":"object"}"#);
    assert_eq!(&*project.policy().rules[0].label, "policy rule 1 (toolcrib.toml:31)");
    assert!(project.agent_builder().build().is_err(), "it names no model");
}

#[test]
fn a_project_may_be_empty_and_begin_with_a_byte_order_mark() {
    let project = Folder::new().file(PROJECT_FILE, "\u{feff}# nothing yet\n").load();
    assert!(project.name().starts_with("desk"), "the folder's name");
    assert!(project.tools().is_empty() && project.warnings().is_empty());
}

#[test]
fn the_roles_of_the_file_decide_who_sees_a_tool() {
    let folder = Folder::with(&format!(
        "policy_default = \"deny\"\n{DATABASE}{TOOL}[[role]]\nname = \"clerk\"\n\
         principals = [\"ann\"]\n[[policy]]\neffect = \"allow\"\nrole = \"clerk\"\n"
    ));
    let engine = folder.load().engine_builder().build().unwrap();
    for (principal, offered) in [("ann", 1), ("eve", 0)] {
        let mut turn = engine.turn(TurnOptions::default().principal(principal)).unwrap();
        let iteration = block_on(turn.iteration()).unwrap();
        assert_eq!(iteration.menu().len(), offered, "{principal}");
    }
}

#[test]
fn a_model_that_the_caller_chooses_may_lie_anywhere() {
    let elsewhere = Folder::new().file("m.toml", "[[rule]]\ntext = 'x'\n");
    let folder = Folder::with("[agent]\nmodel = \"script:gone.toml\"\n");
    let load = |model: String| {
        let options = LoadOptions { model: Some(model), ..LoadOptions::default() };
        Project::load(folder.path(), &options)
    };
    let path = elsewhere.path().join("m.toml");
    let project = load(format!("script:{}", path.display())).unwrap();
    assert!(project.model().unwrap().name().ends_with("m.toml"));
    let refused = |model: &str| match load(model.to_owned()) {
        Err(LoadError::Model { problem }) => problem,
        other => panic!("{other:?}"),
    };
    insta::assert_snapshot!(refused("gpt"), @r#"unknown model `gpt`; write anthropic:MODEL, openai:MODEL, gemini:MODEL, ollama:MODEL, "script:FILE" for a scripted model, or the name of a [model.NAME] of the project"#);
    insta::assert_snapshot!(refused("script:none.toml"), @r#"script `none.toml` does not exist"#);
    insta::assert_snapshot!(refused("script:sed.sql"), @r#"script `sed.sql` does not exist; did you mean `seed.sql`?"#);
    let near = format!("script:{}", elsewhere.path().join("n.toml").display());
    let meant = format!("/n.toml` does not exist; did you mean `{}`?", path.display());
    assert!(refused(&near).ends_with(&meant), "{}", refused(&near));
    let a_folder = refused(&format!("script:{}", folder.path().join("..").display()));
    assert!(a_folder.ends_with("/..` is a folder, not a file"), "{a_folder}");
    // Errors inside a script have a position.
    let broken = elsewhere.file("broken.toml", "[[rule]]\ntxt = 'x'\n");
    let broken = broken.path().join("broken.toml");
    let problems = load(format!("script:{}", broken.display())).unwrap_err();
    assert!(problems.to_string().contains("/broken.toml:2:1: unknown key `txt`"), "{problems}");
    insta::assert_snapshot!(folder.problems(), @r#"toolcrib.toml:2:9: script `gone.toml` does not exist"#);
}

#[test]
fn skill_files_from_elsewhere_load_unchanged() {
    let long = "x".repeat(1025);
    let project = Folder::with(&format!("{DATABASE}{TOOL}"))
        .skill("skill-creator", "---\nname: Skill Creator\ndescription: Makes skills.\n---\n")
        .skill("no_name", "---\ndescription: Has no name.\n---\n")
        .skill("blank", "---\nname:\ndescription: Has a blank name.\nmetadata:\n---\n")
        .skill("list", "---\nname: [a]\ndescription: x\nallowed-tools: [{a: b}]\n---\n")
        .skill("Big", &format!("---\nname: Big\ndescription: {long}\n---\n"))
        .skill(
            "colon",
            "---\r\nname: colon\r\ndescription: It's this: when x # 5\r\n\
             license: see: \r\ncompatibility: 'a: b' # c: d\r\nversion: 1 # e: f\r\n\
             metadata:\r\n  toolcrib-tools: [list_charges]\r\n---\r\nBody.",
        )
        .skill(
            "twice",
            "---\nname: twice\ndescription: x\nmetadata:\n  \
             toolcrib-tools: [list_charges, list_charges]\n---\n",
        )
        .load();
    insta::assert_snapshot!(project.warnings(), @r#"
    skills/Big/SKILL.md:3:14: warning: `description` has 1025 characters
        help: every model request contains it; keep it within 1024, and move the rest into the body
    skills/blank/SKILL.md:2:5: warning: `name` is blank
        help: the skill has the name of its folder, `blank`
    skills/colon/SKILL.md:3:13: warning: a text with `: ` in it is not quoted; it is read as if it were
        help: write description: "…"
    skills/colon/SKILL.md:4:9: warning: a text with `: ` in it is not quoted; it is read as if it were
        help: write license: "…"
    skills/colon/SKILL.md:6:1: warning: unknown key `version` in the frontmatter
    skills/list/SKILL.md:2:6: warning: a text that must be quoted is not; it is read as if it were
        help: write name: "…"
    skills/list/SKILL.md:2:7: warning: the name `[a]` differs from the folder's and is not used
        help: the skill has the name of its folder, `list`
    skills/list/SKILL.md:4:17: warning: `allowed-tools` must be names, in one text or in a list
    skills/no_name/SKILL.md:2:1: warning: `name` is missing in the frontmatter
        help: the skill has the name of its folder, `no_name`
    skills/skill-creator/SKILL.md:2:7: warning: the name `Skill Creator` differs from the folder's and is not used
        help: the skill has the name of its folder, `skill-creator`
    skills/twice/SKILL.md:5:34: warning: `list_charges` occurs twice in `toolcrib-tools`
        help: remove one of them
    "#);
    let skill = |id: &str| project.skills().get(id).unwrap();
    assert_eq!(&*skill("skill-creator").description, "Makes skills.");
    assert_eq!(&*skill("no_name").description, "Has no name.");
    assert_eq!(&*skill("blank").description, "Has a blank name.");
    assert_eq!(*skill("Big").description, *long);
    let colon = skill("colon");
    assert_eq!((&*colon.description, &*colon.body), ("It's this: when x # 5", "Body."));
    assert_eq!(colon.tools, ["list_charges"]);
    assert_eq!(skill("twice").tools, ["list_charges"]);
}

#[test]
fn the_nearest_project_upward_is_found() {
    let folder = Folder::with("").file("a/b/c.txt", "");
    let root = folder.path().canonicalize().unwrap();
    assert_eq!(find(&root).unwrap(), root);
    assert_eq!(find(&root.join("a/b")).unwrap(), root);
    assert!(find(&root.join("nowhere")).is_err());
    let said = |path: &Path| {
        let said = Project::load(path, &LoadOptions::default()).unwrap_err().to_string();
        said.replace(path.to_str().unwrap(), "PATH")
    };
    insta::assert_snapshot!(said(Folder::new().path()), @r#"`PATH` contains no toolcrib.toml; `toolcrib init` writes a small project"#);
    insta::assert_snapshot!(said(&root.join("nowhere")), @r#"the folder `PATH` does not exist; name the folder that contains toolcrib.toml"#);
    insta::assert_snapshot!(said(&root.join("toolcrib.toml")), @r#"`PATH` is a file; name the folder that contains toolcrib.toml"#);
}

#[test]
fn a_script_that_calls_what_is_not_there_is_a_warning_at_the_call() {
    let script = r#"[[rule]]
user = "charges"
calls = [
    { tool = "list_charges" },
    { tool = "list_charge" },
    { tool = "read_skill", args = { skill = "billing" } },
    { tool = "rm_rf", even_if_not_offered = true },
]
[[rule]]
calls = [{ tool = "teleport", even_if_not_offered = false }]
"#;
    let file = format!("[agent]\nmodel = \"script:sub/s.toml\"\n{DATABASE}{TOOL}");
    let folder = Folder::with(&file).file("sub/s.toml", script);
    insta::assert_snapshot!(folder.load().warnings(), @r#"
    sub/s.toml:5:14: warning: the project has no tool `list_charge`: a run that reaches this call fails
        help: did you mean `list_charges`?
    sub/s.toml:6:14: warning: the project has no tool `read_skill`: a run that reaches this call fails
        help: if this is intended, write even_if_not_offered = true in the call
    sub/s.toml:10:19: warning: the project has no tool `teleport`: a run that reaches this call fails
        help: if this is intended, write even_if_not_offered = true in the call
    "#);
    let folder = folder.skill("billing", SKILL);
    assert_eq!(folder.load().warnings().iter().len(), 2, "read_skill is there");
}

#[test]
fn a_get_is_read_only_unless_the_file_says_otherwise_and_a_post_is_not() {
    let tool = |name: &str, more: &str| {
        format!(
            "[[tool]]\nkind = \"http\"\nname = \"{name}\"\ndescription = \"Asks.\"\n\
             url = \"https://a.example\"\n{more}\n"
        )
    };
    let tools = [
        tool("plain", ""),
        tool("head", "method = \"HEAD\""),
        tool("writes", "read_only = false"),
        tool("post", "method = \"POST\""),
        tool("query", "method = \"POST\"\nread_only = true"),
    ];
    let project = Folder::with(&tools.concat()).load();
    let read_only: Vec<_> =
        project.tools().iter().map(|tool| tool.annotations().read_only).collect();
    assert_eq!(read_only, [true, true, false, false, true]);
}
