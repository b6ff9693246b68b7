//! `toolcrib skills`.

use std::{fs, path::PathBuf};

use flate2::{Compression, write::GzEncoder};

use crate::support::Project;

const FILE: &str = "[agent]\nmax_iterations = 3\n\n[[tool]]\nkind = \"command\"\nname = \"say\"\n\
    description = \"Says.\"\nprogram = \"true\"\n";
const SKILL: &str = "---\nname: talking\ndescription: Talking to people.\nmetadata:\n  \
    toolcrib-steps:\n    - say: Be kind.\n    - say\n  toolcrib-on-skip: hold\n---\nTalk.\n";

fn project() -> Project {
    Project::of(&[
        ("toolcrib.toml", FILE),
        ("skills/talking/SKILL.md", SKILL),
        ("skills/talking/references/words.md", "Words."),
        ("skills/rest/SKILL.md", "---\nname: rest\ndescription: Resting.\n---\nRest.\n"),
    ])
}

fn archive(project: &Project, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    let path = project.path().join(name);
    fs::write(&path, tar.into_inner().unwrap().finish().unwrap()).unwrap();
    path
}

#[test]
fn the_list_says_what_each_skill_has() {
    let project = project();
    let listed = project.toolcrib(&["skills"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let expected = "rest  Resting.\ntalking  Talking to people.\n  tools say (while_active)\n  \
                    steps say → say (skip: hold)\n  files references/words.md\n";
    assert_eq!(listed.stdout, expected);
    assert_eq!(project.toolcrib(&["skills", "list"]).stdout, listed.stdout);
    assert_eq!(project.toolcrib(&["skills", "-q"]).stdout, "rest\ntalking\n");
    let (code, json) = project.json(&["skills"]);
    assert_eq!(code, Some(0));
    assert_eq!(json["skills"][1]["files"][0], "references/words.md");
    assert_eq!(json["skills"][1]["steps"][0]["note"], "Be kind.");
    assert_eq!(json["skills"][1]["on_skip"], "hold");
}

#[test]
fn a_skill_is_installed_listed_and_not_overwritten() {
    let project = project();
    let skill = "---\nname: waiting\ndescription: Waiting.\n---\nWait.\n";
    let archive =
        archive(&project, "w.tar.gz", &[("waiting/SKILL.md", skill), ("waiting/a.md", "a")]);
    let archive = archive.to_str().unwrap();
    let installed = project.toolcrib(&["skills", "install", archive]);
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let folder = project.path().canonicalize().unwrap().join("skills/waiting");
    let bytes = skill.len();
    let expected = format!(
        "installed waiting  {}\n  Waiting.\n  SKILL.md {bytes} bytes\n  a.md 1 byte\n",
        folder.display()
    );
    assert_eq!(installed.stdout, expected);
    assert_eq!(project.toolcrib(&["skills", "-q"]).stdout, "rest\ntalking\nwaiting\n");
    let again = project.toolcrib(&["skills", "install", archive]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("`--force`"), "{}", again.stderr);
    let (code, json) = project.json(&["skills", "install", archive, "--force"]);
    assert_eq!(code, Some(0));
    assert_eq!((json["replaced"].as_bool(), json["id"].as_str()), (Some(true), Some("waiting")));
}

#[test]
fn a_skill_that_cannot_be_installed_is_a_usage_error() {
    let project = project();
    let broken =
        archive(&project, "b.tar.gz", &[("broken/SKILL.md", "---\nname: broken\n---\nB.\n")]);
    let outcome = project.toolcrib(&["skills", "install", broken.to_str().unwrap()]);
    assert_eq!(outcome.code, Some(2));
    let said = "broken/SKILL.md:2:1: error: `description` is missing in the frontmatter";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    let (code, json) = project.json(&["skills", "install", broken.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert_eq!(json["errors"][0]["file"], "broken/SKILL.md");
    let missing = project.toolcrib(&["skills", "install", "nowhere.zip"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("nowhere.zip"), "{}", missing.stderr);
    let folder = project.path().join("skills");
    for (source, next) in [
        (folder.to_str().unwrap(), "copy this folder into the project's skills folder"),
        ("https://a.example/skill.zip", "download the archive, and name the file"),
    ] {
        let refused = project.toolcrib(&["skills", "install", source]);
        assert!(refused.code == Some(2) && refused.stderr.contains(next), "{}", refused.stderr);
    }
    assert_eq!(project.toolcrib(&["skills", "-q"]).stdout, "rest\ntalking\n");
}

#[test]
fn a_skill_is_removed_and_a_name_that_is_close_is_suggested() {
    let project = project();
    let close = project.toolcrib(&["skills", "remove", "rests"]);
    assert_eq!(close.code, Some(2));
    assert!(close.stderr.contains("no skill `rests`; did you mean `rest`?"), "{}", close.stderr);
    assert!(project.path().join("skills/rest/SKILL.md").exists());

    let removed = project.toolcrib(&["skills", "remove", "rest"]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    let folder = project.path().canonicalize().unwrap().join("skills/rest");
    assert_eq!(removed.stdout, format!("removed rest  {}\n", folder.display()));
    assert_eq!(project.toolcrib(&["skills", "-q"]).stdout, "talking\n");
    // Nothing is left beside the other skill.
    assert_eq!(fs::read_dir(project.path().join("skills")).unwrap().count(), 1);

    let (code, json) = project.json(&["skills", "remove", "talking"]);
    assert_eq!((code, json["id"].as_str()), (Some(0), Some("talking")));
}
