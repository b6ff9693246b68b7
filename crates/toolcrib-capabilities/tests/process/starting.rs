//! How a program is started, and why it may not be.

use std::{
    ffi::OsString,
    fs,
    io::Read as _,
    os::unix::ffi::OsStringExt as _,
    path::Path,
    process::{Command, Stdio},
};

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::process::{
    FindProgramError, ProcessError, ProcessSpec, Processes, find_program, inherited,
};
use toolcrib_skip::skip;

use crate::support::{executable, run, sh, text};

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let args = ["$(id)", ";id", "a\nb", "--output=/etc/x", "", "*", "é", "'\"\\"];
    let mut spec = ProcessSpec::new("/usr/bin/printf", "/");
    spec.args = ["[%s]"].iter().chain(&args).map(Into::into).collect();
    let raw = OsString::from_vec(vec![0xff, b'x']);
    spec.args.push(raw);
    let finished = run(spec).await.unwrap();
    let mut expected: Vec<u8> = args.map(|arg| format!("[{arg}]")).concat().into_bytes();
    expected.extend(b"[\xffx]");
    assert_eq!(finished.stdout.head(), expected);
}

#[tokio::test]
async fn the_environment_is_what_is_declared_and_nothing_else() {
    let mut spec = ProcessSpec::new("/usr/bin/env", "/tmp");
    assert_eq!(text(&run(spec.clone()).await.unwrap().stdout), "");
    spec.env = vec![("A".into(), "1=2".into()), ("B".into(), "".into())];
    assert_eq!(text(&run(spec).await.unwrap().stdout), "A=1=2\nB=\n");
    let passed_on = inherited(["PATH", "TOOLCRIB_NOT_SET", "a=b", ""]);
    assert_eq!(passed_on, [("PATH".into(), std::env::var_os("PATH").unwrap())]);
}

#[tokio::test]
async fn a_program_has_its_own_session_and_the_standard_streams() {
    let script = "pwd; umask; cat; ls /proc/self/fd | tr '\\n' ' '; \
                  [ $(ps -o sid= -p $$ 2>/dev/null || echo $$) -eq $$ ] && echo leads";
    let mut spec = sh(script, &[]);
    spec.working_dir = "/usr".into();
    let finished = run(spec).await.unwrap();
    // 3 is the folder that `ls` reads.
    assert_eq!(text(&finished.stdout), "/usr\n0022\n0 1 2 3 leads\n", "{finished:?}");
}

#[tokio::test]
async fn a_program_sees_neither_the_host_process_nor_its_environment() {
    // Containers may forbid that, and then it is said to be best effort.
    if fs::read_to_string("/proc/1/comm").is_err() {
        return skip("/proc/1/comm cannot be read");
    }
    let host = std::process::id().to_string();
    let script = "cat /proc/1/comm; [ -e /proc/$1/environ ] && cat /proc/$1/environ; \
                  (cat /proc/1/environ; cat /proc/1/cmdline; head -c 1 /proc/1/mem) 2>/dev/null | \
                  tr -d '\\0'; tr '\\0' ' ' < /proc/$$/environ; exit 0";
    // A number that the namespace does not get to.
    assert!(std::process::id() > 20);
    let finished = run(sh(script, &[&host])).await.unwrap();
    let own = "PATH=/usr/bin:/bin:/usr/sbin:/sbin ";
    assert_eq!(text(&finished.stdout), format!("toolcrib-init\n{own}"));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_error_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("plain"), "text").unwrap();
    executable(&at("lost"), "#!/no/such/interpreter\n");
    executable(&at("nothing"), "no header that any system knows");
    let error = async |program: &Path| run(ProcessSpec::new(program, "/")).await.unwrap_err();
    let missing = error(&at("missing")).await;
    assert!(matches!(&missing, ProcessError::NotFound { program } if *program == at("missing")));
    let below = error(&at("plain").join("x")).await;
    assert!(matches!(below, ProcessError::NotFound { .. }), "{below}");
    let plain = error(&at("plain")).await;
    assert!(matches!(plain, ProcessError::NotExecutable { .. }), "{plain}");
    let lost = error(&at("lost")).await;
    assert!(matches!(lost, ProcessError::NoInterpreter { .. }), "{lost}");
    // Never a shell, not for what the system cannot execute either.
    let nothing = error(&at("nothing")).await;
    assert!(matches!(nothing, ProcessError::NotExecutable { .. }), "{nothing}");
    let directory = error(folder.path()).await;
    assert!(matches!(directory, ProcessError::IsFolder { .. }), "{directory}");
    let relative = error(Path::new("bin/sh")).await;
    assert!(matches!(relative, ProcessError::NotAbsolute { .. }), "{relative}");

    let in_folder = async |working_dir: &Path| {
        run(ProcessSpec::new("/bin/true", working_dir)).await.unwrap_err()
    };
    for wrong in [at("missing"), at("plain")] {
        let error = in_folder(&wrong).await;
        assert!(
            matches!(&error, ProcessError::WorkingDir { path, .. } if *path == wrong),
            "{error}"
        );
    }
    let error = in_folder(Path::new("tmp")).await;
    assert!(matches!(error, ProcessError::NotAbsolute { .. }), "{error}");
}

/// Another process of the host can have a copy of the descriptor with which a script was just written.
#[tokio::test]
async fn a_program_that_is_open_for_writing_starts_when_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    executable(&script, "#!/bin/sh\necho started\n");
    let mut writer = Command::new("/bin/sh")
        .args(["-c", "exec 3>>\"$0\"; echo open; exec sleep 0.1"])
        .arg(&script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut open = [0; 5];
    writer.stdout.as_mut().unwrap().read_exact(&mut open).unwrap();
    let output = run(ProcessSpec::new(&script, "/")).await.unwrap();
    assert_eq!(text(&output.stdout), "started\n");
    writer.wait().unwrap();
}

#[tokio::test]
async fn an_argument_that_cannot_be_passed_is_an_error() {
    let spec = ProcessSpec::new("/bin/true", "/");
    let error = async |change: fn(&mut ProcessSpec)| {
        let mut spec = spec.clone();
        change(&mut spec);
        run(spec).await.unwrap_err().to_string()
    };
    let nul = error(|spec| spec.args = vec!["a".into(), "b\0c".into()]).await;
    assert!(nul.starts_with("argument 2 contains a NUL byte"), "{nul}");
    let nul = error(|spec| spec.env = vec![("N".into(), "\0".into())]).await;
    assert!(nul.starts_with("the environment variable `N` contains a NUL byte"), "{nul}");
    let nul = error(|spec| spec.program = "/bin/\0".into()).await;
    assert!(nul.starts_with("the program's path contains a NUL byte"), "{nul}");
    let nul = error(|spec| spec.working_dir = "/\0".into()).await;
    assert!(nul.starts_with("the working folder contains a NUL byte"), "{nul}");
    for name in ["", "A=B"] {
        let mut spec = spec.clone();
        spec.env = vec![(name.into(), "x".into())];
        let error = run(spec).await.unwrap_err();
        assert!(matches!(error, ProcessError::Variable { .. }), "{error}");
    }
    let long = error(|spec| spec.args = vec!["x".repeat(4 * 1024 * 1024).into()]).await;
    assert!(long.contains("was passed 4194313 bytes"), "{long}");
}

#[tokio::test]
async fn a_handle_reaches_no_further_than_it_says() {
    let some = Processes::any().only(["/bin/true"]);
    let never = CancellationToken::new();
    some.run(ProcessSpec::new("/bin/true", "/"), &never, |_, _| {}).await.unwrap();
    for program in ["/bin/false", "/bin/../bin/true", "true"] {
        let refused = some.run(ProcessSpec::new(program, "/"), &never, |_, _| {}).await;
        assert!(matches!(refused, Err(ProcessError::NotAllowed { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn a_cancelled_call_does_not_start_its_program() {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let spec = sh("echo > \"$1\"", &[made.to_str().unwrap()]);
    let error = Processes::any().run(spec, &cancelled, |_, _| {}).await.unwrap_err();
    assert!(matches!(error, ProcessError::Cancelled { .. }), "{error}");
    assert!(!made.exists());
}

#[test]
fn programs_are_found_by_name_or_by_file() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path();
    fs::create_dir(base.join("bin")).unwrap();
    executable(&base.join("bin/tool"), "#!/bin/sh\n");
    fs::write(base.join("bin/text"), "text").unwrap();
    assert_eq!(find_program("./bin/tool", base), Ok(base.join("./bin/tool")));
    assert_eq!(find_program("/bin/sh", base), Ok("/bin/sh".into()));
    assert!(find_program("sh", base).unwrap().is_absolute());
    for wrong in ["bin/text", "bin/", "bin/none", "/"] {
        let file = base.join(wrong);
        assert_eq!(find_program(wrong, base), Err(FindProgramError::NoProgram { file }));
    }
    for wrong in ["no-such-program-anywhere", ""] {
        let missing = find_program(wrong, base).unwrap_err();
        assert!(matches!(missing, FindProgramError::NotOnPath { .. }), "{missing}");
    }
    let path = std::env::var("PATH").unwrap();
    let missing = find_program("no-such-program-anywhere", base).unwrap_err();
    let shown = format!("{missing} {missing:?}");
    assert!(shown.contains("`no-such-program-anywhere`") && !shown.contains(&path), "{shown}");
}
