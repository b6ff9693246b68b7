//! Sandboxes from outside: what a program in a tier can do, and what it is denied.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use tempfile::TempDir;
use toolcrib_capabilities::process::{
    ProcessEnd, ProcessError, ProcessSpec, SandboxTier, sandbox_support, self_test,
};
use toolcrib_skip::skip;

use crate::{
    hosts::succeeds,
    support::{run, sh, text},
};

/// The namespaces that a machine lacks.
const LACKS: &str = "TOOLCRIB_TEST_LACKS";

/// A project folder, and beside it a folder that no program may read.
pub(crate) struct Home {
    _folder: TempDir,
    pub(crate) project: PathBuf,
    pub(crate) secret: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (project, private) = (root.join("project"), root.join("private"));
        for folder in [&project, &private, &project.join("out"), &project.join(".toolcrib")] {
            fs::create_dir(folder).unwrap();
        }
        let secret = private.join("key");
        fs::write(&secret, "the key").unwrap();
        fs::write(project.join("shown"), "shown").unwrap();
        fs::write(project.join(".toolcrib/state"), "the state").unwrap();
        Self { _folder: folder, project, secret }
    }

    /// A shell script in the project, which may write to `out`; `$1` is the secret.
    pub(crate) fn sh(&self, tier: SandboxTier, script: &str) -> ProcessSpec {
        let mut spec = sh(script, &[self.secret.to_str().unwrap()]);
        spec.working_dir = self.project.clone();
        spec.sandbox = tier.into();
        spec.sandbox.write = vec![self.project.join("out")];
        spec.sandbox.hidden = vec![self.project.join(".toolcrib")];
        spec
    }

    /// The stdout of a script, and how it ended.
    pub(crate) async fn output(&self, tier: SandboxTier, script: &str) -> (ProcessEnd, String) {
        let finished = run(self.sh(tier, script)).await.unwrap();
        (finished.ended, format!("{}{}", text(&finished.stdout), text(&finished.stderr)))
    }
}

pub(crate) const CONFINED: [SandboxTier; 2] = [SandboxTier::Files, SandboxTier::Full];

/// Whether this machine can run the tests of a tier; if not, they are skipped.
pub(crate) fn is_possible(tier: SandboxTier) -> bool {
    sandbox_support(tier).map_err(skip).is_ok()
}

#[test]
fn every_tier_proves_itself_or_names_what_is_missing() {
    for tier in SandboxTier::ALL {
        let test = self_test(tier);
        assert_eq!(test.tier, tier);
        let failed = test.attempts.iter().any(|attempt| !attempt.is_as_required);
        match &test.verdict {
            Ok(()) => assert!(!failed, "{test:?}"),
            Err(missing) => assert!(!missing.to_string().is_empty()),
        }
        if test.verdict.is_ok() && tier > SandboxTier::None {
            assert!(test.attempts.len() >= 4, "{test:?}");
        }
    }
}

#[tokio::test]
async fn a_confined_program_reads_its_folder_and_writes_declared_ones() {
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let home = Home::new();
        let script = "cat shown && echo new > out/file && cat out/file && echo t > \"$TMPDIR/t\" && \
                      cat \"$TMPDIR/t\" && cat /etc/passwd >/dev/null && cat /proc/self/comm && \
                      echo x >/dev/null && ls -d /usr && ls out && (echo pipe | cat)";
        let (ended, output) = home.output(tier, script).await;
        assert_eq!(ended, ProcessEnd::Code(0), "{tier}: {output}");
        assert_eq!(output, "shownnew\nt\ncat\n/usr\nfile\npipe\n", "{tier}");
        assert_eq!(fs::read_to_string(home.project.join("out/file")).unwrap(), "new\n");
    }
}

#[tokio::test]
async fn the_private_temporary_folder_ends_with_the_program() {
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let home = Home::new();
        let script = "echo x > \"$TMPDIR/left\" && echo \"$TMPDIR\" && ls \"$TMPDIR\"";
        let (_, output) = home.output(tier, script).await;
        assert!(output.ends_with("\nleft\n"), "{tier}: {output}");
        let (_, again) = home.output(tier, "ls -A \"$TMPDIR\"").await;
        assert_eq!(again, "", "{tier}");
    }
}

#[tokio::test]
async fn a_writable_folder_around_a_hidden_one_is_refused() {
    if !is_possible(SandboxTier::Files) {
        return;
    }
    let home = Home::new();
    let mut spec = home.sh(SandboxTier::Files, "true");
    spec.sandbox.write = vec![home.project.clone()];
    let error = run(spec).await.unwrap_err();
    assert!(matches!(error, ProcessError::SandboxFolder { .. }), "{error}");
    assert!(error.to_string().contains(".toolcrib"), "{error}");
}

#[tokio::test]
async fn a_declared_folder_that_became_a_symlink_is_refused() {
    if !is_possible(SandboxTier::Files) {
        return;
    }
    let home = Home::new();
    fs::remove_dir(home.project.join("out")).unwrap();
    std::os::unix::fs::symlink(home.secret.parent().unwrap(), home.project.join("out")).unwrap();
    let error = run(home.sh(SandboxTier::Files, "cat out/key")).await.unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
}

#[tokio::test]
async fn without_a_sandbox_a_program_keeps_its_rights() {
    let home = Home::new();
    let script = "grep NoNewPrivs /proc/self/status; cat \"$1\"";
    let (_, output) = home.output(SandboxTier::None, script).await;
    assert_eq!(output, "NoNewPrivs:\t0\nthe key");
}

/// Not a separate test: the machine without some namespaces of the next one.
#[tokio::test]
async fn machine() {
    let Ok(lacks) = env::var(LACKS) else { return };
    let home = Home::new();
    let (possible, named) = match &*lacks {
        "pid" => (SandboxTier::None, "user.max_pid_namespaces"),
        "mnt" => (SandboxTier::Tree, "mount"),
        "net" => (SandboxTier::Files, "user.max_net_namespaces"),
        other => panic!("no such namespace: {other}"),
    };
    for tier in SandboxTier::ALL {
        let mut spec = home.sh(tier, "echo ran");
        // Stray children are permitted, a weaker sandbox is not.
        spec.allow_stray_children = true;
        match run(spec).await {
            Ok(finished) => {
                assert!(tier <= possible.max(SandboxTier::Tree), "{tier} without {lacks}");
                assert_eq!(text(&finished.stdout), "ran\n", "{tier}: {finished:?}");
            }
            Err(error) => {
                assert!(tier > possible, "{tier} without {lacks}: {error}");
                assert!(matches!(error, ProcessError::Sandbox { .. }), "{error}");
                assert!(error.to_string().contains(named), "{error}");
                assert!(!sandbox_support(tier).unwrap_err().to_string().is_empty());
            }
        }
    }
}

#[test]
fn what_a_machine_cannot_enforce_is_refused_and_named() {
    for lacks in ["pid", "mnt", "net"] {
        let forbid = format!("echo 0 > /proc/sys/user/max_{lacks}_namespaces || exit 1;");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "/bin/sh", "-c"]);
        command.arg(format!("{forbid} exec \"$0\" \"$@\""));
        command.arg(env::current_exe().unwrap());
        command.args(["--exact", "sandbox::machine", "--nocapture"]);
        command.env(LACKS, lacks).stdin(Stdio::null());
        succeeds(&mut command);
    }
}
