//! Skills that are installed from archives, sound and hostile ones.

use std::{
    fs,
    io::{Cursor, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use toolcrib_project::InstallError;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::folder::{DATABASE, Folder, SKILL, TOOL};

const PROJECT: &str = "[agent]\nmax_iterations = 3\n";

pub(crate) fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// An entry of a tar whose name no checking writer would write.
pub(crate) struct Raw<'a> {
    name: &'a [u8],
    kind: tar::EntryType,
    link: &'a str,
    mode: u32,
    bytes: &'a [u8],
}

impl Raw<'_> {
    pub(crate) fn file<'a>(name: &'a str, bytes: &'a [u8]) -> Raw<'a> {
        Raw { name: name.as_bytes(), kind: tar::EntryType::Regular, link: "", mode: 0o644, bytes }
    }
}

pub(crate) fn tarred(entries: &[Raw<'_>]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..entry.name.len()].copy_from_slice(entry.name);
        header.set_entry_type(entry.kind);
        header.as_old_mut().linkname[..entry.link.len()].copy_from_slice(entry.link.as_bytes());
        header.set_mode(entry.mode);
        header.set_size(entry.bytes.len() as u64);
        header.set_cksum();
        tar.append(&header, entry.bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

struct Desk {
    folder: Folder,
}

impl Desk {
    fn new() -> Self {
        Self { folder: Folder::with(&format!("{PROJECT}{DATABASE}{TOOL}")) }
    }

    fn install(
        &self,
        name: &str,
        archive: &[u8],
    ) -> Result<toolcrib_project::InstalledSkill, InstallError> {
        self.install_over(name, archive, false)
    }

    fn install_over(
        &self,
        name: &str,
        archive: &[u8],
        replace: bool,
    ) -> Result<toolcrib_project::InstalledSkill, InstallError> {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, archive).unwrap();
        self.folder.load().install_skill(&path, replace)
    }

    /// Why an archive is refused. Nothing of it may be left, within the project or around it.
    fn refuses(&self, archive: &[u8]) -> String {
        let before = self.folder.listing();
        let error = self.install("billing.zip", archive).unwrap_err();
        let mut after = self.folder.listing();
        after.retain(|(path, _)| *path != self.folder.path().join("skills"));
        assert_eq!(before, after, "{error}");
        error.to_string()
    }
}

#[test]
fn a_skill_lies_in_a_folder_or_at_the_top_of_its_archive() {
    let desk = Desk::new();
    let zip = zipped(&[
        ("billing/SKILL.md", SKILL.as_bytes()),
        ("billing/references/tax.md", b"Tax."),
        ("__MACOSX/billing/._SKILL.md", b"noise"),
    ]);
    let installed = desk.install("whatever.zip", &zip).unwrap();
    assert_eq!((&*installed.id, &*installed.description), ("billing", "Charges."));
    let files: Vec<_> = installed.files.iter().map(|(path, size)| (&**path, *size)).collect();
    assert_eq!(files, [("SKILL.md", SKILL.len() as u64), ("references/tax.md", 4)]);
    assert_eq!(installed.folder, desk.folder.path().canonicalize().unwrap().join("skills/billing"));

    let run = Raw { mode: 0o4755, ..Raw::file("./scripts/sum.sh", b"echo 1") };
    let top = Raw { kind: tar::EntryType::Directory, ..Raw::file("./", b"") };
    let tar = tarred(&[top, Raw::file("./SKILL.md", SKILL.as_bytes()), run]);
    let installed = desk.install("audit.v2.tar.gz", &tar).unwrap();
    assert_eq!(&*installed.id, "audit");
    // The name in the file is not the folder's.
    assert_eq!(installed.warnings.iter().len(), 1);
    let mode = |path: &str| {
        fs::metadata(installed.folder.join(path)).unwrap().permissions().mode() & 0o7777
    };
    // The mode after the umask, without the set-user-id bit.
    assert_eq!((mode("scripts/sum.sh") & 0o7700, mode("SKILL.md") & 0o7700), (0o700, 0o600));
    let project = desk.folder.load();
    let ids: Vec<_> = project.skills().iter().map(|skill| skill.id.to_string()).collect();
    assert_eq!(ids, ["audit", "billing"]);
    assert_eq!(fs::read_dir(desk.folder.path().join("skills")).unwrap().count(), 2);
}

#[test]
fn one_that_is_there_is_replaced_only_when_asked_for_and_then_as_a_whole() {
    let desk = Desk::new();
    let of = |text: &str| zipped(&[("billing/SKILL.md", text.as_bytes()), ("billing/a.md", b"a")]);
    desk.install("b.zip", &of(SKILL)).unwrap();
    let error = desk.install("b.zip", &of(SKILL)).unwrap_err();
    assert!(matches!(error, InstallError::Exists { .. }), "{error}");
    let upper = zipped(&[("Billing/SKILL.md", SKILL.as_bytes())]);
    let error = desk.install_over("b.zip", &upper, true).unwrap_err();
    assert!(matches!(error, InstallError::Exists { .. }), "{error}");
    let other = SKILL.replace("Charges.", "Other.");
    let installed = desk
        .install_over("b.zip", &zipped(&[("billing/SKILL.md", other.as_bytes())]), true)
        .unwrap();
    assert!(installed.replaced);
    assert!(!installed.folder.join("a.md").exists());
    assert_eq!(fs::read_dir(desk.folder.path().join("skills")).unwrap().count(), 1);
}

#[test]
fn an_archive_without_a_name_says_that_the_skill_has_none() {
    let zip = zipped(&[("SKILL.md", SKILL.as_bytes())]);
    let error = Desk::new().install(".zip", &zip).unwrap_err().to_string();
    assert!(
        error.contains("a skill has the name of its folder, and `` is not a valid name"),
        "{error}"
    );
}

#[test]
fn what_no_skill_needs_is_refused_and_leaves_nothing() {
    let desk = Desk::new();
    let skill = ("billing/SKILL.md", SKILL.as_bytes());
    let tar_skill = || Raw::file("billing/SKILL.md", SKILL.as_bytes());
    let link = |kind, name: &'static str, link: &'static str| {
        tarred(&[tar_skill(), Raw { kind, link, ..Raw::file(name, b"") }])
    };
    let mut said = Vec::new();
    for name in [
        "../evil",
        "billing/../../evil",
        "/etc/evil",
        "C:evil",
        "billing\\..\\evil",
        "billing/a\nb",
        "billing//a",
        "billing/./a",
        "beside/a",
    ] {
        let zip = desk.refuses(&zipped(&[skill, (name, b"x")]));
        let tar = desk.refuses(&tarred(&[tar_skill(), Raw::file(name, b"x")]));
        assert_eq!(zip, tar);
        said.push(zip);
    }
    let not_utf8 = Raw { name: b"billing/\xff", ..Raw::file("", b"x") };
    said.push(desk.refuses(&tarred(&[tar_skill(), not_utf8])));
    said.push(desk.refuses(&link(tar::EntryType::Symlink, "billing/l", "/etc/passwd")));
    said.push(desk.refuses(&link(tar::EntryType::Link, "billing/l", "/etc/passwd")));
    said.push(desk.refuses(&link(tar::EntryType::Char, "billing/null", "")));
    said.push(desk.refuses(&link(tar::EntryType::Fifo, "billing/pipe", "")));
    // A link first, then a file through it.
    said.push(desk.refuses(&tarred(&[
        Raw { kind: tar::EntryType::Symlink, link: "/tmp", ..Raw::file("billing/l", b"") },
        Raw::file("billing/l/evil", b"x"),
        tar_skill(),
    ])));
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file(skill.0, SimpleFileOptions::default()).unwrap();
    zip.write_all(skill.1).unwrap();
    zip.add_symlink("billing/l", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    said.push(desk.refuses(&zip.finish().unwrap().into_inner()));
    insta::assert_snapshot!(said.join("\n"), @r"
    this archive is refused: `../evil` leads out of the skill
    this archive is refused: `billing/../../evil` leads out of the skill
    this archive is refused: `/etc/evil` has an absolute path
    this archive is refused: `C:evil` has a control character, a backslash or a colon in its path
    this archive is refused: `billing\\..\\evil` has a control character, a backslash or a colon in its path
    this archive is refused: `billing/a\nb` has a control character, a backslash or a colon in its path
    this archive is refused: `billing//a` has an empty part in its path
    this archive is refused: `billing/./a` has an empty part in its path
    this archive is refused: `beside/a` is outside the skill's folder `billing`
    this archive is refused: `billing/�` has a name that is not UTF-8
    this archive is refused: `billing/l` is neither a file nor a folder: links and devices are refused
    this archive is refused: `billing/l` is neither a file nor a folder: links and devices are refused
    this archive is refused: `billing/null` is neither a file nor a folder: links and devices are refused
    this archive is refused: `billing/pipe` is neither a file nor a folder: links and devices are refused
    this archive is refused: `billing/l` is neither a file nor a folder: links and devices are refused
    this archive is refused: `billing/l` is neither a file nor a folder: links and devices are refused
    ");
}

#[test]
fn names_that_stand_there_twice_or_differ_in_case_are_refused() {
    let desk = Desk::new();
    let skill = ("billing/SKILL.md", SKILL.as_bytes());
    let tar_skill = || Raw::file("billing/SKILL.md", SKILL.as_bytes());
    let mut said = vec![
        desk.refuses(&tarred(&[tar_skill(), tar_skill()])),
        desk.refuses(&zipped(&[skill, ("billing/a.md", b""), ("billing/A.md", b"")])),
        desk.refuses(&zipped(&[skill, ("billing/x/a", b""), ("billing/X/b", b"")])),
        desk.refuses(&zipped(&[skill, ("billing/x", b""), ("billing/x/b", b"")])),
        desk.refuses(&zipped(&[skill, ("other/SKILL.md", SKILL.as_bytes())])),
        desk.refuses(&zipped(&[("billing/skill.md", SKILL.as_bytes())])),
        desk.refuses(&zipped(&[("a/b/SKILL.md", SKILL.as_bytes())])),
    ];
    // Two entries of one name, which no writer writes: a name that is as long takes the other's.
    let mut twice = zipped(&[skill, ("billing/SKILL.mx", b"evil")]);
    let (from, to) = (b"billing/SKILL.mx", b"billing/SKILL.md");
    while let Some(at) = twice.windows(from.len()).position(|window| window == from) {
        twice[at..at + to.len()].copy_from_slice(to);
    }
    said.push(desk.refuses(&twice));
    insta::assert_snapshot!(said.join("\n"), @"
    this archive is refused: `billing/SKILL.md` occurs twice
    this archive is refused: `billing/A.md` differs from `billing/a.md` only in case
    this archive is refused: `billing/X` differs from `billing/x` only in case
    this archive is refused: `billing/x` occurs twice
    this archive is refused: `other/SKILL.md` is a second SKILL.md; install one skill at a time
    this archive is refused: it contains no SKILL.md
    this archive is refused: `a/b/SKILL.md` is more than one folder below the top of the archive
    this archive is refused: it contains a file twice
    ");
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    let desk = Desk::new();
    let skill = || ("billing/SKILL.md".to_owned(), SKILL.as_bytes().to_vec());
    let zip = |files: Vec<(String, Vec<u8>)>| {
        let files: Vec<_> = files.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
        zipped(&files)
    };
    let zeros = |mib: usize| vec![0; mib * 1024 * 1024];
    let mut noise = vec![0_u8; 9 * 1024 * 1024];
    let mut state = 1_u32;
    for byte in &mut noise {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
    let many = (0..1001).map(|at| (format!("billing/{at}"), Vec::new()));
    let zero_tar = zeros(40);
    let said = [
        desk.refuses(&zip(vec![skill(), ("billing/zeros".into(), zeros(7))])),
        desk.refuses(&zip(vec![skill(), ("billing/noise".into(), noise.clone())])),
        desk.refuses(&zip([skill()].into_iter().chain(many).collect())),
        desk.refuses(&tarred(&[
            Raw::file("billing/SKILL.md", SKILL.as_bytes()),
            Raw::file("billing/zeros", &zero_tar),
        ])),
        desk.refuses(&[&b"PK\x03\x04"[..], &noise, &noise].concat()),
        desk.refuses(b"#!/bin/sh"),
        desk.refuses(b""),
        desk.refuses(&zip(vec![skill()])[..40]),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    this archive is refused: it unpacks to more than 32 MiB, or to a hundred times its size
    this archive is refused: `billing/noise` is larger than 8 MiB
    this archive is refused: it contains more than 1,000 entries, or no list of entries
    this archive is refused: it unpacks to more than 32 MiB, or to a hundred times its size
    this archive is refused: it is larger than 16 MiB
    this archive is refused: it is neither a .zip nor a .tar.gz file
    this archive is refused: it is neither a .zip nor a .tar.gz file
    this archive is refused: it contains more than 1,000 entries, or no list of entries
    ");
}

#[test]
fn the_skill_in_it_is_checked_as_those_of_the_project_are() {
    let desk = Desk::new();
    let broken = "---\nname: billing\nmetadata:\n  toolcrib-tools: list_charge\n---\nB.\n";
    let said = [
        desk.refuses(&zipped(&[("billing/SKILL.md", broken.as_bytes())])),
        desk.refuses(&zipped(&[("bill ing/SKILL.md", SKILL.as_bytes())])),
        desk.refuses(&zipped(&[("billing/SKILL.md", b"\xff\xfe")])),
        desk.refuses(&zipped(&[(".hidden/SKILL.md", SKILL.as_bytes())])),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    the skill in this archive cannot be used:
    billing/SKILL.md:2:1: `description` is missing in the frontmatter
        help: write for example: description: What it is for, and when to use it.
    the skill in this archive cannot be used:
    bill ing/SKILL.md:1:1: a skill has the name of its folder, and `bill ing` is not a valid name
        help: rename the folder: use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`
    bill ing/SKILL.md:2:7: warning: the name `billing` differs from the folder's and is not used
        help: the skill has the name of its folder, `bill ing`
    this archive is refused: `billing/SKILL.md` is not text of at most 1 MiB
    the skill in this archive cannot be used:
    .hidden/SKILL.md:1:1: a skill has the name of its folder, and `.hidden` is not a valid name
        help: rename the folder: use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`
    .hidden/SKILL.md:2:7: warning: the name `billing` differs from the folder's and is not used
        help: the skill has the name of its folder, `.hidden`
    ");
}

/// Names as archives of attackers have them.
fn a_name() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "..", ".", "", "a", "A", "billing", "SKILL.md", "x\\y", "C:", "~", "\u{202e}", "é", " ",
    ]);
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_an_archive_holds_nothing_is_written_outside_of_the_skill(
        names in prop::collection::vec(a_name(), 0..6),
        links in prop::collection::vec((a_name(), a_name()), 0..2),
    ) {
        let around = tempfile::TempDir::new().unwrap();
        let project = around.path().join("deep/er/project");
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("toolcrib.toml"), PROJECT).unwrap();
        let mut entries = vec![Raw::file("billing/SKILL.md", SKILL.as_bytes())];
        entries.extend(names.iter().map(|name| Raw::file(name, b"x")));
        entries.extend(links.iter().map(|(name, link)| Raw {
            kind: tar::EntryType::Symlink,
            link,
            ..Raw::file(name, b"")
        }));
        let archive = around.path().join("billing.tar.gz");
        fs::write(&archive, tarred(&entries)).unwrap();
        let loaded = toolcrib_project::Project::load(&project, &Default::default()).unwrap();
        let installed = loaded.install_skill(&archive, false);
        prop_assert!(links.is_empty() || installed.is_err());
        let skill = project.join("skills/billing");
        let mut found: Vec<PathBuf> = Vec::new();
        let mut folders = vec![around.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                prop_assert!(!entry.file_type().unwrap().is_symlink());
                if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
            }
        }
        found.retain(|path| !path.starts_with(&skill));
        found.sort();
        let mut own = [archive, project.join("toolcrib.toml")];
        own.sort();
        prop_assert_eq!(found, own.to_vec());
        prop_assert_eq!(skill.exists(), installed.is_ok());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..400_usize) {
        let desk = Desk::new();
        let mut zip = zipped(&[("billing/SKILL.md", SKILL.as_bytes()), ("billing/a", b"a")]);
        let mut tar = tarred(&[Raw::file("billing/SKILL.md", SKILL.as_bytes())]);
        for archive in [&mut zip, &mut tar] {
            let at = at.min(archive.len());
            let end = (at + bytes.len()).min(archive.len());
            archive[at..end].copy_from_slice(&bytes[..end - at]);
            let _ = desk.install_over("b.zip", archive, true);
        }
    }
}

/// As the project would not load any more.
#[test]
fn a_name_that_a_skill_of_a_plugin_has_is_taken() {
    let plugin = "[plugin.crm]\npath = \"plugins/crm\"\n";
    let desk = Desk { folder: Folder::with(&format!("{plugin}{PROJECT}{DATABASE}{TOOL}")) };
    let folder = desk.folder.file("plugins/crm/plugin.toml", "");
    let desk = Desk { folder: folder.file("plugins/crm/skills/billing/SKILL.md", SKILL) };
    let archive = zipped(&[("billing/SKILL.md", SKILL.as_bytes())]);
    for replace in [false, true] {
        let refused = desk.install_over("billing.zip", &archive, replace).unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused, @"a skill `billing` exists already, at plugins/crm/skills/billing/SKILL.md (plugin `crm`); rename one of them");
        }
    }
    assert!(!desk.folder.path().join("skills").exists());
    let other = SKILL.replace("name: billing", "name: returns");
    desk.install("returns.zip", &zipped(&[("returns/SKILL.md", other.as_bytes())])).unwrap();
}
