//! Logs of a gateway on a disk that is full, and then has room again.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::{
    gateway::{Http, Piped, message},
    support::{Project, wait_for},
};

const TOKEN: &str = "a-token-of-a-test-0001";

/// The size of a log before the test: larger than all other files of a gateway, which have the same
/// limit.
const BEFORE: usize = 8 << 20;

fn project(serve: &str) -> Project {
    let file = format!(
        "policy_default = 'allow'\n[secrets]\nA = {{ env = 'TEST_A' }}\n[serve]\n{serve}\n\
         [[serve.token]]\nsecret = 'secret:A'\nprincipal = 'ana'\n\
         [[tool]]\nkind = 'command'\nname = 'hello'\ndescription = 'Says hello.'\n\
         program = 'echo'\nargs = ['hello']\nuntrusted = false\n"
    );
    Project::of(&[("toolcrib.toml", &file)])
}

fn serve(project: &Project, args: &[&str]) -> Command {
    let mut command = project.command(&[&["serve"], args].concat());
    command.env("TEST_A", TOKEN);
    command
}

fn start(project: &Project, args: &[&str]) -> Http {
    Http::start(&mut serve(project, args), &errors(project))
}

fn errors(project: &Project) -> PathBuf {
    project.path().join("errors.txt")
}

/// A log with earlier lines, the last of which was not ended.
fn prepared(path: &Path) {
    let line = json!({ "code": "ok", "filler": "x".repeat(1_000) }).to_string() + "\n";
    let mut text = line.repeat(BEFORE / line.len());
    text += "{\"code\":\"o";
    fs::write(path, text).unwrap();
}

/// The disk has room for so many more bytes of that file.
fn leave_room(http: &Http, path: &Path, bytes: u64) {
    limit(http, Some(fs::metadata(path).unwrap().len() + bytes));
}

fn limit(http: &Http, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(http.pid()).unwrap());
    let maximum = rustix::process::getrlimit(Resource::Fsize).maximum;
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

fn called(http: &Http) -> (String, String) {
    http.post(Some(TOKEN), "tools/call", &json!({ "name": "hello", "arguments": {} }), None)
}

fn metrics(http: &Http) -> String {
    http.get("/metrics").1
}

/// The lines after the earlier ones; each is whole, except those that were cut.
fn new_lines(path: &Path) -> Vec<Result<Value, String>> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    let new = text.lines().filter(|line| !line.contains("filler"));
    new.map(|line| serde_json::from_str(line).map_err(|_| line.to_owned())).collect()
}

#[test]
fn without_its_audit_log_a_gateway_makes_no_calls_until_there_is_room_again() {
    let project = project("audit = 'audit.jsonl'");
    let audit = project.path().join("audit.jsonl");
    prepared(&audit);
    let http = start(&project, &[]);
    assert!(called(&http).1.contains("hello"));
    assert_eq!(http.get("/readyz").0, "200");

    leave_room(&http, &audit, 10);
    let (_, answer) = called(&http);
    assert!(answer.contains("hello"), "it was made before its line failed: {answer}");
    for _ in 0..2 {
        let (_, answer) = called(&http);
        assert!(
            answer.contains("cannot write its audit log") && !answer.contains("hello"),
            "{answer}"
        );
    }
    let (status, answer) = http.get("/readyz");
    assert_eq!(status, "503", "{answer}");
    let text = metrics(&http);
    assert!(text.contains(r#"toolcrib_lost_log_lines_total{log="audit"} 3"#), "{text}");
    assert!(text.contains(r#"toolcrib_log_failing{log="audit"} 1"#), "{text}");
    let said = fs::read_to_string(errors(&project)).unwrap();
    assert!(said.contains("audit.jsonl cannot be written"), "at once: {said}");

    limit(&http, None);
    assert_eq!(http.get("/readyz").0, "200");
    assert!(called(&http).1.contains("hello"));
    assert!(metrics(&http).contains(r#"toolcrib_log_failing{log="audit"} 0"#));
    let said = fs::read_to_string(errors(&project)).unwrap();
    assert!(said.contains("written again, after 3 lines that could not be"), "{said}");
    http.end();

    let lines = new_lines(&audit);
    // The line that was cut before the start, the first call, the cut one, the gap, the last call.
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!(lines[0], Err("{\"code\":\"o".to_owned()));
    assert_eq!(lines[1].as_ref().unwrap()["code"], "ok");
    assert_eq!(lines[2].as_ref().unwrap_err().len(), 10);
    assert_eq!(lines[3].as_ref().unwrap()["lost_lines"], 3);
    assert!(lines[3].as_ref().unwrap()["since"].is_string());
    assert_eq!(lines[4].as_ref().unwrap()["tool"], "hello");
}

#[test]
fn where_calls_continue_the_gap_is_recorded_in_the_audit_log_and_in_the_access_log() {
    let project = project("audit = 'audit.jsonl'\naudit_on_error = 'continue'");
    let logs = ["audit.jsonl", "access.jsonl"].map(|name| project.path().join(name));
    logs.iter().for_each(|path| prepared(path));
    let http = start(&project, &["--access-log", logs[1].to_str().unwrap()]);
    assert!(called(&http).1.contains("hello"));
    let larger = logs.iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let smaller = logs.iter().min_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    leave_room(&http, smaller, 0);
    for _ in 0..3 {
        assert!(called(&http).1.contains("hello"));
    }
    assert_eq!(http.get("/readyz").0, "200");
    for log in ["audit", "access"] {
        let failing = format!("toolcrib_log_failing{{log=\"{log}\"}} 1");
        assert!(metrics(&http).contains(&failing), "{log}: {}", metrics(&http));
    }
    let said = fs::read_to_string(errors(&project)).unwrap();
    for log in &logs {
        let line = format!("{} cannot be written", log.file_name().unwrap().to_str().unwrap());
        assert_eq!(said.matches(&line).count(), 1, "{said}");
    }
    limit(&http, None);
    assert!(called(&http).1.contains("hello"));
    http.end();
    for log in [larger, smaller] {
        let lines = new_lines(log);
        let gaps: Vec<_> =
            lines.iter().flatten().filter(|line| line["lost_lines"].is_u64()).collect();
        assert_eq!(gaps.len(), 1, "{lines:?}");
        assert!(gaps[0]["lost_lines"].as_u64().unwrap() >= 3, "{gaps:?}");
        assert_eq!(lines.last().unwrap().as_ref().unwrap()["tool"], "hello");
    }
}

#[test]
fn a_required_audit_log_that_cannot_be_written_is_an_error_at_the_start() {
    let required = project("audit = 'audit.jsonl'");
    let inner = serve(&required, &["--http", "0"]);
    let output = wrapped("ulimit -f 8 && exec \"$@\"", &inner).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("audit.jsonl cannot be written"), "{said}");
    assert!(said.contains("audit_on_error = \"continue\""), "{said}");

    let missing = project("audit = 'missing/audit.jsonl'");
    let output = serve(&missing, &["--http", "0"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");

    let file = fs::read_to_string(missing.path().join("toolcrib.toml")).unwrap();
    let file = file.replace("[serve]\n", "[serve]\naudit_on_error = 'continue'\n");
    missing.write("toolcrib.toml", &file);
    let http = start(&missing, &[]);
    assert!(called(&http).1.contains("hello"), "it runs on");
    let said = fs::read_to_string(errors(&missing)).unwrap();
    assert!(said.contains("missing/audit.jsonl cannot be written"), "{said}");
    fs::create_dir(missing.path().join("missing")).unwrap();
    assert!(called(&http).1.contains("hello"));
    http.end();
    let lines = new_lines(&missing.path().join("missing/audit.jsonl"));
    assert_eq!(lines.len(), 2, "the gap and the call: {lines:?}");
    assert_eq!(lines[0].as_ref().unwrap()["lost_lines"], 1);
}

#[test]
fn events_that_cannot_be_written_do_not_end_a_gateway() {
    let project = project("");
    let http = start(&project, &["--events", "/dev/full", "--access-log", "/dev/full"]);
    for _ in 0..3 {
        assert!(called(&http).1.contains("hello"));
    }
    let text = metrics(&http);
    for log in ["events", "access"] {
        assert!(text.contains(&format!("toolcrib_log_failing{{log=\"{log}\"}} 1")), "{text}");
    }
    let said = fs::read_to_string(errors(&project)).unwrap();
    assert!(said.contains("the events file /dev/full cannot be written"), "{said}");
    assert_eq!(http.end(), Some(1), "stopped, with what was lost");
}

#[test]
fn a_closed_standard_error_does_not_end_a_gateway() {
    let project = project("audit = 'audit.jsonl'");
    for script in ["exec \"$@\" 2>&-", "exec \"$@\" 2>/dev/full"] {
        let inner = serve(&project, &["--access-log", "-", "--events", "-"]);
        let mut client = Piped::start(&mut wrapped(script, &inner));
        for id in 10..13 {
            let params = json!({ "name": "hello", "arguments": {} });
            let answer = client.ask(&message(id, "tools/call", &params));
            assert!(answer.to_string().contains("hello"), "{script}: {answer}");
        }
        client.end();
    }
    assert_eq!(new_lines(&project.path().join("audit.jsonl")).len(), 6);
}

/// A file system that is really full, where the test may mount one.
#[test]
fn a_full_file_system_is_noticed_and_its_room_too() {
    let project = project("audit = 'disk/audit.jsonl'");
    let disk = project.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&disk);
    if !mount.output().is_ok_and(|output| output.status.success()) {
        return toolcrib_skip::skip("no file system can be mounted");
    }
    let mounted = Mounted(disk.clone());
    let http = start(&project, &[]);
    assert!(called(&http).1.contains("hello"));
    let filler = disk.join("filler");
    let mut file = OpenOptions::new().create(true).append(true).open(&filler).unwrap();
    while file.write_all(&[b'x'; 512]).is_ok() {}
    wait_for(|| called(&http).1.contains("cannot write its audit log"));
    assert_eq!(http.get("/readyz").0, "503");
    drop(file);
    fs::remove_file(&filler).unwrap();
    assert_eq!(http.get("/readyz").0, "200");
    assert!(called(&http).1.contains("hello"));
    http.end();
    let lines = new_lines(&disk.join("audit.jsonl"));
    let gaps = lines.iter().flatten().filter(|line| line["lost_lines"].is_u64()).count();
    assert_eq!(gaps, 1, "{lines:?}");

    while fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&filler)
        .and_then(|mut file| file.write_all(&[b'x'; 4096]))
        .is_ok()
    {}
    let output = serve(&project, &["--http", "0"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("disk/audit.jsonl cannot be written"), "{said}");
    drop(mounted);
}

/// Unmounts at the end of the test.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// A command, started by a shell.
fn wrapped(script: &str, inner: &Command) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}
