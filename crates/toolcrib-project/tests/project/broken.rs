//! Errors in a project file, its policy, its databases and its skills.

use toolcrib_project::PROJECT_FILE;

use crate::folder::{DATABASE, Folder, SKILL, TOOL};

#[test]
fn unknown_keys_and_bad_values_of_every_section_are_reported_at_once() {
    let folder = Folder::with(
        r#"nam = "x"
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
max_rows = 0
timeout = "2 days"
color = "red"
statements = [{ sql = "SELECT 1", onempty = "x" }]
[[role]]
name = "trainee"
principal = "intern"
[[policy]]
effect = "deny"
tool = 3
annotation = { readonly = true }
"#,
    );
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:1:1: unknown key `nam` in this file
        help: did you mean `name`?
    toolcrib.toml:3:1: unknown key `modell` in `[agent]`
        help: did you mean `model`?
    toolcrib.toml:4:18: `max_iterations` must be from 1 to 1000
    toolcrib.toml:5:16: `turn_timeout` is not a duration: expected number at 0
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    toolcrib.toml:7:16: `tool_timeout` must be a duration in quotes, such as "30s"; this is a whole number
    toolcrib.toml:8:22: `batch_result_chars` must be from 1 to 10000000
    toolcrib.toml:10:1: unknown key `focuss` in `[skills]`
        help: did you mean `focus`?
    toolcrib.toml:12:8: `a/b.db` does not exist
        help: correct `file`; to create a new database, declare a `seed`
    toolcrib.toml:13:1: unknown key `sed` in `[database.desk]`
        help: did you mean `seed`?
    toolcrib.toml:18:12: `max_rows` must be from 1 to 1000000
    toolcrib.toml:19:11: `timeout` is longer than a day
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    toolcrib.toml:20:1: unknown key `color` in `[[tool]]`
        help: the keys here are `kind`, `name`, `toolset`, `description`, `read_only`, `dry_run`, `destructive`, `idempotent`, `untrusted`, `always_include`, `defer`, `timeout`, `max_result_chars`, `artifact_policy`, `artifact_kind`, `params`, `schema_file`, `database`, `max_rows`, `statements`
    toolcrib.toml:21:35: unknown key `onempty` in this statement
        help: did you mean `on_empty`?
    toolcrib.toml:24:1: unknown key `principal` in `[[role]]`
        help: did you mean `principals`?
    toolcrib.toml:25:1: `policy_default` is missing: it decides on a tool that no `[[policy]]` matches
        help: write policy_default = "allow" or "deny" at the top of the file, before the first `[section]`
    toolcrib.toml:27:8: `tool` must be a text in quotes or a list of them; this is a whole number
    toolcrib.toml:28:16: unknown key `readonly` in `annotation`
        help: did you mean `read_only`?
    "#);
}

#[test]
fn a_project_file_that_is_no_text_or_too_large_is_refused() {
    let binary = Folder::new().file(PROJECT_FILE, [0xff]);
    insta::assert_snapshot!(binary.problems(), @r#"toolcrib.toml:1:1: this is not UTF-8 text"#);
    let folder = Folder::new().file("toolcrib.toml/x", "");
    insta::assert_snapshot!(folder.problems(), @r#"toolcrib.toml:1:1: this is a folder, not a file"#);
    let large = Folder::new().file(PROJECT_FILE, "#".repeat(1024 * 1024 + 1));
    insta::assert_snapshot!(large.problems(), @r#"toolcrib.toml:1:1: this is larger than 1 MiB"#);
}

#[test]
fn what_a_policy_names_must_be_there() {
    let folder = Folder::with(&format!(
        r#"{DATABASE}{TOOL}
[[role]]
name = "trainee"
principals = []
[[role]]
name = "trainee"
principals = ["intern"]
[[policy]]
effect = "refuse"
tool = ["list_charge", "list_charges", "refund_*", "read_skill"]
toolset = ["biling", "bill*", "ship*"]
role = "trainees"
skill = "biling"
tenant = []
[[policy]]
reason = "No effect."
"#
    ))
    .skill("billing", SKILL);
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:16:14: `principals` is an empty list
        help: write at least one text in it
    toolcrib.toml:18:8: role `trainee` is declared twice; the first is at toolcrib.toml:15
        help: put all its principals into one list
    toolcrib.toml:20:1: `policy_default` is missing: it decides on a tool that no `[[policy]]` matches
        help: write policy_default = "allow" or "deny" at the top of the file, before the first `[section]`
    toolcrib.toml:21:10: `effect` cannot be `refuse`
        help: the values are `allow`, `deny`, `ask`, `halt`
    toolcrib.toml:22:9: unknown tool `list_charge`
        help: did you mean `list_charges`?
    toolcrib.toml:22:40: warning: no tool matches `refund_*`
    toolcrib.toml:23:12: unknown toolset `biling`
        help: did you mean `billing`?
    toolcrib.toml:23:31: warning: no toolset matches `ship*`
    toolcrib.toml:24:8: unknown role `trainees`
        help: did you mean `trainee`?
    toolcrib.toml:25:9: unknown skill `biling`
        help: did you mean `billing`?
    toolcrib.toml:26:10: `tenant` is an empty list
        help: write at least one text in it
    toolcrib.toml:27:1: `effect` is missing in `[[policy]]`
        help: write for example: effect = "deny"
    "#);
}

#[test]
fn read_skill_is_known_only_where_there_are_skills_and_no_tool_may_take_its_name() {
    let rule = "policy_default = \"allow\"\n[[policy]]\neffect = \"deny\"\ntool = \"read_skill\"\n";
    insta::assert_snapshot!(Folder::with(rule).problems(), @r#"
    toolcrib.toml:4:8: unknown tool `read_skill`
        help: no tools exist
    "#);
    Folder::with(rule).skill("billing", SKILL).load();
    let taken = format!("{DATABASE}{}", TOOL.replace("list_charges", "read_skill"));
    insta::assert_snapshot!(Folder::with(&taken).skill("billing", SKILL).problems(), @r#"
    toolcrib.toml:8:8: `read_skill` is a tool that Toolcrib has for skills
        help: give the tool another name
    "#);
    Folder::with(&taken).load();
}

#[test]
fn databases_lie_in_the_state_folder_and_their_seeds_in_the_project() {
    let folder = Folder::with(
        r#"[database]
x = 1
[database.a]
file = "one.db"
seed = "nope.sql"
[database.b]
file = "one.db"
seed = "/etc/passwd"
[database.c]
file = "../c.db"
seed = "sub/../../c.sql"
[database.d]
file = ".gitignore"
seed = "broken.sql"
[database.e]
file = "e.db"
seed = "broken.sql"
[[tool]]
kind = "sql"
name = "which"
description = "Names no database."
statements = ["SELECT 1"]
"#,
    )
    .file("broken.sql", "CREATE TABLE a (x);\n\nINSERT INTO b VALUES (1);\n");
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:2:5: `x` is not a database
        help: write `[database.NAME]`, with a name of your choice, and below it `file`
    toolcrib.toml:5:8: `nope.sql` does not exist
    toolcrib.toml:7:8: `one.db` is the file of database `a` already
        help: give each database a separate file
    toolcrib.toml:8:8: `/etc/passwd` is an absolute path; write it relative to the project's folder
    toolcrib.toml:10:8: `../c.db` is not a plain file name
        help: a database with a seed is stored in the state folder: write a name such as "desk.db"; for an existing file of your own, remove `seed`
    toolcrib.toml:11:8: `sub/../../c.sql` leads out of the project's folder; copy the needed files into the project
    toolcrib.toml:13:8: `.gitignore` is not a plain file name
        help: a database with a seed is stored in the state folder: write a name such as "desk.db"; for an existing file of your own, remove `seed`
    toolcrib.toml:18:1: `database` is missing: more than one is declared
        help: write database = "a" or "b" or "c" or "d" or "e"
    broken.sql:3:1: the seed fails: no such table: b
    "#);
    insta::assert_snapshot!(Folder::with(TOOL).problems(), @r#"
    toolcrib.toml:2:1: the tool needs a database, and none is declared
        help: write below a [database.NAME]: file = "../NAME.db" for an existing one, or file = "NAME.db" and seed = "seed.sql" for a new one
    "#);
}

#[test]
fn no_database_may_have_the_name_of_what_another_keeps_beside_its_own() {
    let declared = |name: &str, file: &str| {
        format!("[database.{name}]\nfile = \"{file}\"\nseed = \"seed.sql\"\n")
    };
    let all = [
        declared("lock", "notes.db.lock"),
        declared("log", "notes.db-wal"),
        declared("notes", "notes.db"),
        declared("draft", "notes.db.new"),
        declared("draft_log", "notes.db.new-journal"),
        declared("fine", "notes.db.old"),
        declared("fine_too", "notes"),
    ];
    insta::assert_snapshot!(Folder::with(&all.concat()).problems(), @r#"
    toolcrib.toml:2:8: `notes.db.lock` is a side file of database `notes`, next to `notes.db`
        help: choose another file name, such as "other.db"
    toolcrib.toml:5:8: `notes.db-wal` is a side file of database `notes`, next to `notes.db`
        help: choose another file name, such as "other.db"
    toolcrib.toml:11:8: `notes.db.new` is a side file of database `notes`, next to `notes.db`
        help: choose another file name, such as "other.db"
    toolcrib.toml:14:8: `notes.db.new-journal` is a side file of database `notes`, next to `notes.db`
        help: choose another file name, such as "other.db"
    "#);
}

#[test]
fn the_model_and_the_system_text_are_checked_with_the_rest() {
    let folder = Folder::with("[agent]\nmodel = 'opnai:x'\nsystem = 'x'\nsystem_file = 's.md'\n");
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:2:9: unknown model `opnai:x`
        help: did you mean `openai:x`?
    toolcrib.toml:4:15: `system` and `system_file` both give the system text
        help: keep one of them
    "#);
    let folder = Folder::with("[agent]\nmodel = 'script:s.toml'\nsystem_file = 's.md'\n")
        .file("s.toml", "[[rule]]\ntxt = 'a'\n")
        .file("s.md", [0xff, 0xfe]);
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:3:15: `s.md` is not UTF-8 text
    s.toml:1:1: the rule has no answer
        help: give it `text`, `calls` or both
    s.toml:2:1: unknown key `txt` in `[[rule]]`
        help: did you mean `text`?
    "#);
}

#[test]
fn skill_files_from_elsewhere_only_warn_and_what_is_ours_is_checked() {
    let folder = Folder::with("")
        .file("skills/empty/notes.txt", "")
        .file("skills/README.md", "not a skill")
        .skill("none", "no frontmatter")
        .skill("open", "---\nname: open\n")
        .skill("colon", "---\nname: colon\ndescription: Use when: b\n  or: c: d\n---\n")
        .skill("other", "---\nname: othr\ndescription: ''\n---\n")
        .skill("a b", "---\nname: a b\ndescription: x\n---\n")
        .skill("list", "---\nname: list\ndescription: x\nmetadata: {toolcrib-tools: [a, [b]]}\n---")
        .skill("twice", "---\nname: twice\nname: twice\n---\n")
        .skill("sequence", "---\n- a\n---\n")
        .skill("deep", &format!("---\na: {}\n---\n", "[".repeat(100)))
        .skill("huge", &"x".repeat(2_000_000))
        .skill(
            "foreign",
            r#"---
name: foreign
description: |
  Two
  lines.
licence: MIT
version: 1
allowed-tools: Bash(git add:*), Read
toolcrib-tools: a
metadata:
  author: me
  toolcrib-tols: b
  toolcrib-tools: "refund list_charges"
---
body"#,
        );
    insta::assert_snapshot!(folder.load().warnings(), @r#"
    skills/a b/SKILL.md:1:1: warning: a skill has the name of its folder, and `a b` is not a valid name
        help: rename the folder: use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`
    skills/a b/SKILL.md:1:1: warning: skill `a b` is left out until this file is mended
    skills/colon/SKILL.md:3:13: warning: a text with `: ` in it is not quoted; it is read as if it were
        help: write description: "…"
    skills/deep/SKILL.md:1:1: warning: skill `deep` is left out until this file is mended
    skills/deep/SKILL.md:2:1: warning: `name` is missing in the frontmatter
        help: the skill has the name of its folder, `deep`
    skills/deep/SKILL.md:2:1: warning: `description` is missing in the frontmatter
        help: write for example: description: What it is for, and when to use it.
    skills/deep/SKILL.md:2:1: warning: unknown key `a` in the frontmatter
    skills/deep/SKILL.md:2:3: warning: a text that must be quoted is not; it is read as if it were
        help: write a: "…"
    skills/empty/SKILL.md:1:1: warning: folder `empty` has no SKILL.md
        help: write one, or move the folder out of the skills folder
    skills/foreign/SKILL.md:1:1: warning: skill `foreign` is left out until this file is mended
    skills/foreign/SKILL.md:6:1: warning: unknown key `licence` in the frontmatter
        help: did you mean `license`?
    skills/foreign/SKILL.md:7:1: warning: unknown key `version` in the frontmatter
    skills/foreign/SKILL.md:9:1: warning: `toolcrib-tools` belongs under `metadata`
        help: write below `metadata:`, indented: toolcrib-tools: NAME NAME
    skills/foreign/SKILL.md:12:3: warning: unknown key `toolcrib-tols` in `metadata`
        help: did you mean `toolcrib-tools`?
    skills/huge/SKILL.md:1:1: warning: this is larger than 1 MiB
    skills/huge/SKILL.md:1:1: warning: skill `huge` is left out until this file is mended
    skills/list/SKILL.md:1:1: warning: skill `list` is left out until this file is mended
    skills/list/SKILL.md:4:32: warning: `toolcrib-tools` must be names, in one text or in a list
    skills/none/SKILL.md:1:1: warning: the file does not begin with frontmatter between two lines of `---`
        help: begin it with: --- / name: none / description: Its purpose. / ---
    skills/none/SKILL.md:1:1: warning: skill `none` is left out until this file is mended
    skills/open/SKILL.md:1:1: warning: the file does not begin with frontmatter between two lines of `---`
        help: begin it with: --- / name: open / description: Its purpose. / ---
    skills/open/SKILL.md:1:1: warning: skill `open` is left out until this file is mended
    skills/other/SKILL.md:1:1: warning: skill `other` is left out until this file is mended
    skills/other/SKILL.md:2:7: warning: the name `othr` differs from the folder's and is not used
        help: the skill has the name of its folder, `other`
    skills/other/SKILL.md:3:14: warning: `description` is blank
    skills/sequence/SKILL.md:1:1: warning: skill `sequence` is left out until this file is mended
    skills/sequence/SKILL.md:2:1: warning: the frontmatter must be a mapping of keys to values
    skills/twice/SKILL.md:1:1: warning: skill `twice` is left out until this file is mended
    skills/twice/SKILL.md:2:1: warning: `description` is missing in the frontmatter
        help: write for example: description: What it is for, and when to use it.
    skills/twice/SKILL.md:3:1: warning: `name` occurs twice in the frontmatter
    "#);
}

#[test]
fn a_skill_folder_that_is_named_must_be_there() {
    insta::assert_snapshot!(Folder::with("[skills]\nfolder = \"abilities\"").problems(), @r#"toolcrib.toml:2:10: skill folder `abilities` does not exist"#);
    insta::assert_snapshot!(Folder::with("[skills]\nfolder = \"seed.sql\"").problems(), @r#"toolcrib.toml:2:10: skill folder `seed.sql` is not a folder"#);
    assert!(Folder::with("").load().skills().is_empty());
}

#[cfg(unix)]
#[test]
fn symbolic_links_may_not_lead_out_of_the_project() {
    use std::{fs, os::unix::fs::symlink};

    let outside = Folder::new()
        .file("seed.sql", "CREATE TABLE t (x);")
        .file("SKILL.md", "---\nname: away\ndescription: x\n---\n");
    let folder = Folder::new()
        .file(PROJECT_FILE, "[database.d]\nfile = \"d.db\"\nseed = \"link.sql\"\n")
        .file("inside/seed.sql", "CREATE TABLE t (x);");
    symlink(outside.path().join("seed.sql"), folder.path().join("link.sql")).unwrap();
    fs::create_dir(folder.path().join("skills")).unwrap();
    symlink(outside.path(), folder.path().join("skills/away")).unwrap();
    insta::assert_snapshot!(folder.problems(), @"
    toolcrib.toml:3:8: `link.sql` leads out of the project's folder; copy the needed files into the project
    skills/away/SKILL.md:1:1: warning: this leads out of the project's folder; copy the needed files into the project
    skills/away/SKILL.md:1:1: warning: skill `away` is left out until this file is mended
    ");

    fs::remove_file(folder.path().join("link.sql")).unwrap();
    fs::remove_file(folder.path().join("skills/away")).unwrap();
    symlink("inside/seed.sql", folder.path().join("link.sql")).unwrap();
    folder.load();
}
