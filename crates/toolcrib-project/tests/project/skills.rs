//! Skills of a project: their modes, steps and files, and what becomes of those that change.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use toolcrib_core::SkillId;
use toolcrib_engine::{Engine, OnSkip, SkillFileError, ToolsMode, TurnOptions};

use crate::folder::{DATABASE, Folder, RUN, SKILL, TOOL, block_on};

const STEPS: &str = "---\nname: refunding\ndescription: Refunds.\nmetadata:\n  \
    toolcrib-tools-mode: hidden_until_active\n  toolcrib-steps:\n    - list_charges: Look first.\n    \
    - list_charges\n  toolcrib-on-skip: hold\n---\nRefund.\n";

fn desk(settings: &str) -> Folder {
    Folder::with(&format!("{settings}\n{DATABASE}{TOOL}"))
}

#[test]
fn modes_and_steps_are_as_the_files_say() {
    let text = "---\nname: text\ndescription: T.\nmetadata:\n  toolcrib-steps: |\n    \
                list_charges: Look: well.\n    list_charges\n---\nT.\n";
    let settings =
        "[skills]\ntools = \"latest_only\"\nlist_skills = true\ndeactivate_skill = true\n";
    let folder =
        desk(settings).skill("refunding", STEPS).skill("text", text).skill("billing", SKILL);
    let project = folder.load();
    assert!(project.warnings().is_empty(), "{}", project.warnings());
    let skills = project.skills();
    let mode = |id: &str| skills.mode_of(skills.get(id).unwrap());
    assert_eq!(mode("billing"), ToolsMode::LatestOnly);
    assert_eq!(mode("refunding"), ToolsMode::HiddenUntilActive);
    let steps = |id: &str| -> Vec<_> {
        let steps = skills.get(id).unwrap().all_steps().iter();
        steps.map(|step| (step.tool.to_string(), step.note.clone())).collect()
    };
    let charges = |note: Option<&str>| ("list_charges".to_owned(), note.map(Into::into));
    assert_eq!(steps("refunding"), [charges(Some("Look first.")), charges(None)]);
    assert_eq!(steps("text"), [charges(Some("Look: well.")), charges(None)]);
    assert_eq!(skills.get("refunding").unwrap().on_skip(), Some(OnSkip::Hold));
    assert_eq!(skills.get("text").unwrap().on_skip(), Some(OnSkip::Advance));
    // Tools of steps belong to the skill.
    assert_eq!(skills.get("refunding").unwrap().tools, ["list_charges"]);
    // The skill `text` lets it be offered while none is active.
    let names = offered(&project.engine_builder().build().unwrap(), None);
    assert_eq!(names, ["list_charges", "read_skill", "list_skills", "deactivate_skill"]);
}

#[test]
fn what_is_wrong_with_modes_and_steps_is_said_where_it_stands() {
    let folder = desk("[skills]\ntools = \"while-active\"\n")
        .skill(
            "modes",
            "---\nname: modes\ndescription: M.\nmetadata:\n  toolcrib-tools-mode: allways\n  \
             toolcrib-on-skip: stay\n  toolcrib-step: x\n---\nM.\n",
        )
        .skill(
            "steps",
            "---\nname: steps\ndescription: S.\nmetadata:\n  toolcrib-steps:\n    - list_charge: N.\n    \
             - [x]\n    - {a: b, c: d}\n---\nS.\n",
        );
    insta::assert_snapshot!(folder.problems(), @"
    toolcrib.toml:2:9: `tools` is one of `while_active`, `always`, `latest_only`, `hidden_until_active`, not `while-active`
        help: did you mean `while_active`?
    skills/modes/SKILL.md:1:1: warning: skill `modes` is left out until this file is mended
    skills/modes/SKILL.md:5:24: warning: `toolcrib-tools-mode` is one of `while_active`, `always`, `latest_only`, `hidden_until_active`, not `allways`
        help: did you mean `always`?
    skills/modes/SKILL.md:6:21: warning: `toolcrib-on-skip` applies to steps, and there are none
        help: write `toolcrib-steps`, or remove it
    skills/modes/SKILL.md:6:21: warning: `toolcrib-on-skip` is `advance` or `hold`, not `stay`
    skills/modes/SKILL.md:7:3: warning: unknown key `toolcrib-step` in `metadata`
        help: did you mean `toolcrib-steps`?
    skills/steps/SKILL.md:1:1: warning: skill `steps` is left out until this file is mended
    skills/steps/SKILL.md:7:7: warning: `toolcrib-steps` must be a list of `NAME` and `NAME: NOTE`
        help: write below `toolcrib-steps:`, indented: - NAME: NOTE
    skills/steps/SKILL.md:8:7: warning: `toolcrib-steps` must be a list of `NAME` and `NAME: NOTE`
        help: write below `toolcrib-steps:`, indented: - NAME: NOTE
    ");
}

#[test]
fn a_tool_may_not_be_called_like_one_that_stands_for_skills() {
    let tool = TOOL.replace("list_charges", "skip_step");
    let folder = Folder::with(&format!("{DATABASE}{tool}")).skill("billing", SKILL);
    insta::assert_snapshot!(folder.problems(), @"
    toolcrib.toml:8:8: `skip_step` is a tool that Toolcrib has for skills
        help: give the tool another name
    ");
}

#[test]
fn files_stay_within_the_folder_of_their_skill() {
    let folder = desk("")
        .skill("billing", SKILL)
        .file("skills/billing/references/tax.md", "Tax.")
        .file("skills/billing/scripts/sum.sh", "echo 1")
        .file("skills/billing/.env", "TOKEN=1")
        .file("skills/billing/logo.png", b"\x89PNG\xff\xfe")
        .file("skills/billing/large.txt", vec![b'x'; 1024 * 1024 + 1])
        .file("secret.txt", "secret")
        .skill("plain", "---\nname: plain\ndescription: P.\n---\nP.\n");
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, folder.path().join("skills/billing").join(name)).unwrap();
    };
    link("../../secret.txt", "out.txt");
    link("../..", "up");
    link("references/tax.md", "within.md");
    let project = folder.load();
    assert!(project.skills().get("plain").unwrap().files.is_none());
    let files = project.skills().get("billing").unwrap().files.clone().unwrap();
    assert_eq!(
        files.list().unwrap(),
        ["large.txt", "logo.png", "references/tax.md", "scripts/sum.sh"]
    );
    assert_eq!(files.read("references/tax.md").unwrap(), b"Tax.");
    assert_eq!(files.read("./references/tax.md").ok(), None);
    assert_eq!(files.read("within.md").unwrap(), b"Tax.");
    for outside in [
        "../../secret.txt",
        "references/../../../secret.txt",
        "out.txt",
        "up/secret.txt",
        "up/skills/billing/references/tax.md",
        "/etc/passwd",
        ".env",
        "references",
        "",
        ".",
        "a\0b",
    ] {
        let read = files.read(outside);
        // A path that leads out and back is inside.
        let back = outside.starts_with("up/skills");
        assert_eq!(matches!(read, Err(SkillFileError::NotThere)), !back, "{outside}: {read:?}");
    }
    assert_eq!(files.read("logo.png").unwrap(), b"\x89PNG\xff\xfe");
    assert!(matches!(files.read("large.txt"), Err(SkillFileError::TooLarge)));
}

fn offered(engine: &Engine, skill: Option<&str>) -> Vec<String> {
    let mut options = TurnOptions::default();
    options.skills.extend(skill.map(|id| SkillId::new(id).unwrap()));
    block_on(async {
        let mut turn = engine.turn(options).unwrap();
        let iteration = turn.iteration().await.unwrap();
        iteration.menu().names().map(ToString::to_string).collect()
    })
}

fn ids(engine: &Engine) -> Vec<String> {
    engine.skills().iter().map(|skill| format!("{}: {}", skill.id, skill.description)).collect()
}

#[test]
fn the_next_turn_has_skills_that_were_edited_added_and_removed() {
    let folder = desk("").skill("billing", SKILL);
    let engine = folder.load().engine_builder().build().unwrap();
    let before = engine.skills();
    assert!(Arc::ptr_eq(&before, &engine.skills()), "nothing has changed");
    let folder = folder.skill("billing", &SKILL.replace("Charges.", "All charges."));
    assert_eq!(ids(&engine), ["billing: All charges."]);
    let folder = folder.skill("audit", "---\nname: audit\ndescription: Audits.\n---\nAudit.\n");
    assert_eq!(ids(&engine), ["audit: Audits.", "billing: All charges."]);
    let both = engine.skills();
    fs::remove_dir_all(folder.path().join("skills/billing")).unwrap();
    assert_eq!(ids(&engine), ["audit: Audits."]);
    let now = engine.skills();
    assert!(
        Arc::ptr_eq(both.iter_shared().next().unwrap(), now.iter_shared().next().unwrap()),
        "it is the very same"
    );
    let folder = folder.file("skills/audit/references/rules.md", "Rules.");
    assert!(engine.skills().get("audit").unwrap().files.is_some());
    fs::remove_dir_all(folder.path().join("skills")).unwrap();
    assert!(ids(&engine).is_empty());
    assert_eq!(offered(&engine, None), ["list_charges"]);
}

#[test]
fn a_skill_that_is_edited_wrongly_stays_as_it_was_and_every_turn_says_so() {
    let folder = desk("").skill("billing", SKILL);
    let engine = folder.load().engine_builder().build().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&told);
    engine
        .events()
        .on("skill.reload_failed", move |event| {
            into.lock()
                .unwrap()
                .push(serde_json::json!(event)["problem"].as_str().unwrap().to_owned());
        })
        .unwrap();
    let folder = folder.skill("billing", "---\nname: billing\n---\nNo description.\n");
    for _ in 0..2 {
        assert_eq!(offered(&engine, Some("billing")), ["list_charges", "read_skill"]);
    }
    assert_eq!(ids(&engine), ["billing: Charges."]);
    let folder = folder.skill("new", "no frontmatter");
    offered(&engine, None);
    let all = told.lock().unwrap().join("\n");
    insta::assert_snapshot!(all, @"
    skills/billing/SKILL.md:2:1: `description` is missing in the frontmatter
        help: write for example: description: What it is for, and when to use it.
    skills/billing/SKILL.md:2:1: `description` is missing in the frontmatter
        help: write for example: description: What it is for, and when to use it.
    skills/billing/SKILL.md:2:1: `description` is missing in the frontmatter
        help: write for example: description: What it is for, and when to use it.
    skills/new/SKILL.md:1:1: the file does not begin with frontmatter between two lines of `---`
        help: begin it with: --- / name: new / description: Its purpose. / ---
    ");
    let folder = folder.skill("billing", &SKILL.replace("Charges.", "Mended."));
    fs::remove_dir_all(folder.path().join("skills/new")).unwrap();
    told.lock().unwrap().clear();
    offered(&engine, None);
    assert_eq!(ids(&engine), ["billing: Mended."]);
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn skills_that_cannot_be_looked_at_or_are_gone_for_a_moment_stay_as_they_were() {
    let folder =
        desk("").skill("billing", SKILL).skill("audit", &SKILL.replace("billing", "audit"));
    let engine = folder.load().engine_builder().build().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&told);
    engine
        .events()
        .on("skill.reload_failed", move |event| {
            into.lock()
                .unwrap()
                .push(serde_json::json!(event)["problem"].as_str().unwrap().to_owned());
        })
        .unwrap();
    let at = |path: &str| folder.path().join(path);
    let look = || {
        offered(&engine, None);
        let ids: Vec<_> = engine.skills().iter().map(|skill| skill.id.to_string()).collect();
        (ids.join(" "), std::mem::take(&mut *told.lock().unwrap()).join("\n"))
    };
    let both = || ("audit billing".to_owned(), String::new());
    // An entry other than a folder is ignored.
    fs::rename(at("skills"), at("aside")).unwrap();
    fs::write(at("skills"), "").unwrap();
    let (ids, why) = look();
    assert_eq!(ids, "audit billing");
    insta::assert_snapshot!(why, @"the skill folder `skills` is not a folder; the previous skills stay in use");
    fs::remove_file(at("skills")).unwrap();
    fs::rename(at("aside"), at("skills")).unwrap();
    assert_eq!(look(), both());
    // An editor writes the file anew.
    fs::rename(at("skills/billing/SKILL.md"), at("kept.md")).unwrap();
    let (ids, why) = look();
    assert_eq!(ids, "audit billing");
    insta::assert_snapshot!(why, @"
    skills/billing/SKILL.md:1:1: this file no longer exists; the previous version of the skill stays in use
        help: to remove the skill too, delete `skills/billing`
    ");
    fs::rename(at("kept.md"), at("skills/billing/SKILL.md")).unwrap();
    assert_eq!(look(), both());
    // An installation is between its two steps.
    fs::rename(at("skills/billing"), at("skills/.replaced-billing-0")).unwrap();
    let (ids, why) = look();
    assert_eq!(ids, "audit billing");
    insta::assert_snapshot!(why, @"
    skills/billing/SKILL.md:1:1: this file no longer exists: another skill was replacing it; the previous version of the skill stays in use
        help: to remove the skill too, delete `skills/.replaced-billing-0`
    ");
    fs::remove_dir_all(at("skills/.replaced-billing-0")).unwrap();
    assert_eq!(look(), ("audit".to_owned(), String::new()));
}

#[test]
fn a_project_without_skills_takes_the_first_one_up() {
    let folder = desk("");
    let engine = folder.load().engine_builder().build().unwrap();
    assert_eq!(offered(&engine, None), ["list_charges"]);
    let _folder = folder.skill("billing", SKILL);
    assert_eq!(offered(&engine, Some("billing")), ["list_charges", "read_skill"]);
}

#[test]
fn allowed_tools_of_a_published_skill_narrow_the_menu_and_name_what_is_off() {
    let files = "[files.notes]\nfolder = 'notes'\n[[tool]]\nkind = 'files'\n";
    let skill = "---\nname: tidy\ndescription: Tidies notes.\n\
                 allowed-tools: Read, Grep Bash(git add:*) Bash\n---\nRead first.\n";
    let folder = Folder::with(files).file("notes/a.md", "a").skill("tidy", skill);
    let project = folder.load_as(RUN).unwrap();
    let engine = project.engine_builder().build().unwrap();
    let offered = |options: TurnOptions| {
        block_on(async {
            let mut turn = engine.turn(options).unwrap();
            let iteration = turn.iteration().await.unwrap();
            iteration.menu().names().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        })
    };
    assert_eq!(offered(TurnOptions::default()), "read_file list_files search_files read_skill");
    let active = offered(TurnOptions::default().skill("tidy"));
    assert_eq!(active, "read_file search_files read_skill");
    let tidy = project.skills().get("tidy").unwrap().instructions().to_string();
    let missing =
        "Read first.\n\n(These tools of the skill are not available here: `Bash`, `Bash`.)";
    assert_eq!(tidy, missing.replace("`Bash`, `Bash`", "`Bash`"));
    let warnings = project.warnings().to_string();
    assert!(warnings.contains("switch on a toolset with `terminal`"), "{warnings}");
}
