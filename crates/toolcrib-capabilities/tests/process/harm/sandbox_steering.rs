//! A program in a sandbox wrote files that run or steer code when a person opens the folder, enters it,
//! or uses version control in it, although the files toolset protects the same files.

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command};

use tempfile::TempDir;
use toolcrib_capabilities::process::{MovedFile, ProcessEnd, ProcessSpec, SandboxTier};
use toolcrib_skip::skip;

use crate::{
    sandbox::{CONFINED, is_possible},
    support::{run, sh, text},
};

/// A folder that a program may change, and its trash.
struct Work {
    _folder: TempDir,
    project: PathBuf,
    trash: PathBuf,
}

impl Work {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (project, trash) = (root.join("project"), root.join("state/trash"));
        fs::create_dir(&project).unwrap();
        Self { _folder: folder, project, trash }
    }

    /// With a repository that has one commit.
    fn with_repository() -> Self {
        let work = Self::new();
        let script = "git init -q . && git config user.name a && git config user.email a@b.c && \
                      echo one > file && git add file && git commit -qm one";
        let made = Command::new("/bin/sh").args(["-c", script]).current_dir(&work.project).status();
        assert!(made.unwrap().success());
        work
    }

    fn spec(&self, tier: SandboxTier, script: &str) -> ProcessSpec {
        let mut spec = sh(script, &[]);
        spec.env = vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("HOME".into(), self.project.clone().into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ];
        spec.working_dir = self.project.clone();
        spec.sandbox = tier.into();
        spec.sandbox.write = vec![self.project.clone()];
        spec.sandbox.trash = Some(self.trash.clone());
        spec
    }

    async fn run(&self, tier: SandboxTier, script: &str) -> (ProcessEnd, String, Vec<MovedFile>) {
        let finished = run(self.spec(tier, script)).await.unwrap();
        let said = format!("{}{}", text(&finished.stdout), text(&finished.stderr));
        (finished.ended, said, finished.moved)
    }

    /// The paths that were moved, below the project.
    async fn moved(&self, tier: SandboxTier, script: &str) -> Vec<String> {
        let (ended, said, moved) = self.run(tier, script).await;
        assert_eq!(ended, ProcessEnd::Code(0), "{script}: {said}");
        assert!(moved.iter().all(|moved| moved.is_moved), "{moved:?}");
        let below = |moved: &MovedFile| {
            moved.path.strip_prefix(&self.project).unwrap().display().to_string()
        };
        moved.iter().map(below).collect()
    }

    fn has(&self, path: &str) -> bool {
        self.project.join(path).symlink_metadata().is_ok()
    }

    /// The names in the trash.
    fn kept(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.trash) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn tiers() -> impl Iterator<Item = SandboxTier> {
    CONFINED.into_iter().filter(|tier| is_possible(*tier))
}

#[tokio::test]
async fn existing_files_that_steer_code_are_read_only() {
    const FILES: [&str; 6] = [
        ".vscode/tasks.json",
        ".envrc",
        "sub/.husky/pre-commit",
        ".github/workflows/ci.yml",
        ".mcp.json",
        "app.code-workspace",
    ];
    for tier in tiers() {
        let work = Work::with_repository();
        for file in FILES {
            let path = work.project.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "mine").unwrap();
        }
        for file in FILES.into_iter().chain([
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/info/attributes",
        ]) {
            for change in [
                format!("echo evil > '{file}'"),
                format!("echo evil > other && mv -f other '{file}'"),
                format!("rm -rf '{file}' && ! test -e '{file}' && test -e '{file}'"),
            ] {
                let (ended, ..) = work.run(tier, &change).await;
                assert_ne!(ended, ProcessEnd::Code(0), "{tier}: {change}");
            }
        }
        for file in FILES {
            assert_eq!(fs::read_to_string(work.project.join(file)).unwrap(), "mine", "{file}");
        }
        let config = fs::read_to_string(work.project.join(".git/config")).unwrap();
        assert!(!config.contains("evil") && !work.has(".git/hooks/pre-commit"));
    }
}

#[tokio::test]
async fn new_files_that_steer_code_are_moved_to_the_trash_and_reported() {
    for tier in tiers() {
        let work = Work::with_repository();
        for (script, moved) in [
            ("mkdir .vscode && echo evil > .vscode/tasks.json", ".vscode"),
            ("mkdir -p a/b && echo evil > a/b/.envrc", "a/b/.envrc"),
            ("echo evil > .Envrc", ".Envrc"),
            (
                "mkdir x && echo evil > x/ci.yml && mkdir .github && mv x .github/workflows",
                ".github/workflows",
            ),
            ("mkdir w && ln -s w .cursor", ".cursor"),
            ("mkdir -p g/workflows && rm -rf .github && ln -s g .github", ".github"),
            ("echo evil > a/.git", "a/.git"),
            ("echo ../evil > .git/commondir", ".git/commondir"),
            (
                "mkdir -p .git/modules/m && echo '[core] fsmonitor=evil' > .git/modules/m/config",
                ".git/modules/m/config",
            ),
            // A folder that Git takes for a repository.
            (
                "mkdir -p bare/objects bare/refs && echo 'ref: refs/heads/main' > bare/HEAD && \
                 printf '[core]\\n\\tfsmonitor = evil\\n' > bare/config",
                "bare/config",
            ),
            // A repository whose configuration runs a program, and one with a hook.
            ("git init -q r && git -C r config core.fsmonitor evil", "r/.git/config"),
            ("git init -q s && git -C s config core.hooksPath h", "s/.git/config"),
            ("git init -q h && echo evil > h/.git/hooks/pre-commit", "h/.git/hooks/pre-commit"),
        ] {
            let before = work.kept().len();
            assert_eq!(work.moved(tier, script).await, [moved], "{tier}: {script}");
            assert!(!work.has(moved), "{tier}: {moved}");
            assert_eq!(work.kept().len(), before + 1, "{tier}: nothing is erased");
        }
        // The whole repository under another name, and a new one in its place.
        let script = "mv .git old && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit && \
                      printf '[core]\\n\\tfsmonitor = evil\\n' > .git/config";
        let mut moved = work.moved(tier, script).await;
        moved.sort();
        assert_eq!(moved, [".git/config", ".git/hooks/pre-commit"], "{tier}");
    }
}

#[tokio::test]
async fn without_a_trash_new_files_stay_under_a_name_that_nothing_reads() {
    for tier in tiers() {
        let work = Work::new();
        let mut spec = work.spec(tier, "echo evil > .envrc");
        spec.sandbox.trash = None;
        let finished = run(spec).await.unwrap();
        assert!(finished.moved.len() == 1 && finished.moved[0].is_moved, "{:?}", finished.moved);
        let names: Vec<_> = fs::read_dir(&work.project).unwrap().collect();
        assert_eq!(names.len(), 1);
        let name = names[0].as_ref().unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with(".envrc.untrusted-"), "{name}");
    }
}

#[tokio::test]
async fn a_symlink_that_the_user_made_stays_and_another_one_does_not() {
    for tier in tiers() {
        let work = Work::new();
        fs::create_dir(work.project.join("settings")).unwrap();
        symlink("settings", work.project.join(".zed")).unwrap();
        assert!(work.moved(tier, "true").await.is_empty());
        let moved = work.moved(tier, "mkdir evil && rm .zed && ln -s evil .zed").await;
        assert_eq!(moved, [".zed"]);
    }
}

#[tokio::test]
async fn version_control_works_in_the_sandbox() {
    for tier in tiers() {
        let work = Work::with_repository();
        let script = "set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c \
                      GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c; \
                      git commit -q --allow-empty -m two; git branch b; git checkout -q b; \
                      echo x > file; git stash -q; git stash pop -q; git commit -qam three; \
                      git tag t; git gc -q --prune=now 2>/dev/null || true; git log --oneline | wc -l; \
                      git init -q fresh; git clone -q . copy; git clone -q --bare . copy.git; \
                      git -C copy commit -q --allow-empty -m four; git -C copy status --porcelain";
        let (ended, said, moved) = work.run(tier, script).await;
        assert_eq!((ended, said.trim()), (ProcessEnd::Code(0), "3"), "{tier}");
        assert_eq!(moved, [], "{tier}");
        for kept in ["fresh/.git/config", "copy/.git/config", "copy.git/config", "fresh/.git/hooks"]
        {
            assert!(work.has(kept), "{tier}: {kept}");
        }
    }
}

#[tokio::test]
async fn package_managers_work_in_the_sandbox() {
    for tier in tiers() {
        let work = Work::new();
        let project = &work.project;
        for (path, content) in [
            ("dep/package.json", r#"{"name":"dep","version":"1.0.0"}"#),
            ("dep/.github/workflows/ci.yml", "on: push"),
            ("dep/.npmignore", "none"),
            ("package.json", r#"{"name":"app","version":"1.0.0"}"#),
            (
                "Cargo.toml",
                "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2024\"\n[workspace]\n",
            ),
            ("src/main.rs", "fn main() {}"),
        ] {
            let path = project.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        if is_there("npm") {
            let script = "npm install --offline --no-audit --no-fund --install-links ./dep >&2 && \
                          test -e node_modules/dep/package.json";
            assert_eq!(work.moved(tier, script).await, Vec::<String>::new(), "{tier}");
        } else {
            skip("npm is not installed");
        }
        // Another user than the one who installed it may not run it.
        if !Command::new("cargo").arg("--version").output().is_ok_and(|ran| ran.status.success()) {
            skip("cargo cannot be run");
            continue;
        }
        let mut spec = work.spec(tier, "cargo build --offline -q && target/debug/app");
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        let rustup =
            std::env::var_os("RUSTUP_HOME").map_or_else(|| home.join(".rustup"), Into::into);
        let folders = [rustup.clone(), home.join(".cargo/bin")];
        spec.sandbox.read.extend(folders.iter().filter_map(|folder| folder.canonicalize().ok()));
        spec.env.push(("RUSTUP_HOME".into(), rustup.into()));
        spec.env.push(("CARGO_HOME".into(), project.join(".cargo").into()));
        let finished = run(spec).await.unwrap();
        assert_eq!(finished.ended, ProcessEnd::Code(0), "{tier}: {}", text(&finished.stderr));
        assert_eq!(finished.moved, [], "{tier}");
    }
}

fn is_there(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).exists())
}

#[tokio::test]
async fn a_program_whose_run_is_dropped_leaves_nothing_that_steers_code() {
    for tier in tiers() {
        let work = Work::new();
        let spec = work.spec(tier, "echo evil > .envrc; echo made; sleep 1000");
        let process = toolcrib_capabilities::process::Processes::any().start(spec).await.unwrap();
        while !work.has(".envrc") {
            tokio::task::yield_now().await;
        }
        drop(process);
        while work.has(".envrc") {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        assert_eq!(work.kept().len(), 1);
    }
}
