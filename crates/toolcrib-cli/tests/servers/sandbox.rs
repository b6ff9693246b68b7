//! Sandboxes from the command line: what `doctor` shows, and what programs of a project reach.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::Value;

use crate::{
    peers::Peers,
    support::{Outcome, Project, sandboxes_are_possible, toolcrib},
};

#[test]
fn the_doctor_proves_each_tier_by_acts() {
    let doctor: Outcome = toolcrib().args(["doctor", "--json"]).output().unwrap().into();
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let tiers = report["tiers"].as_array().unwrap();
    let names: Vec<_> = tiers.iter().map(|tier| tier["tier"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "tree", "files", "full"]);
    assert_eq!(doctor.code, Some(if report["ok"] == true { 0 } else { 1 }));
    for tier in tiers {
        let acts = tier["acts"].as_array().unwrap();
        if tier["ok"] == true {
            assert_eq!(tier["error"], Value::Null);
            assert!(acts.iter().all(|act| act["required"] == act["outcome"]), "{tier}");
        } else {
            assert!(!tier["error"].as_str().unwrap().is_empty());
        }
    }
    let text: Outcome = toolcrib().arg("doctor").output().unwrap().into();
    assert_eq!(text.code, doctor.code);
    for tier in tiers {
        let mark = if tier["ok"] == true { "✓" } else { "✗" };
        let line = format!("{mark} {}", tier["tier"].as_str().unwrap());
        assert!(text.stdout.lines().any(|found| found.starts_with(&line)), "{}", text.stdout);
    }
    if sandboxes_are_possible() {
        assert!(text.stdout.contains("denied     read a hidden file"), "{}", text.stdout);
    }
}

/// A tool that runs a script of bash in a sandbox.
fn tool(tier: &str, keys: &str, script: &str) -> String {
    format!(
        "[[tool]]\nkind = \"command\"\nname = \"{tier}\"\ndescription = \"Runs.\"\n\
         program = \"/bin/bash\"\nargs = [\"-c\", '''{script}''']\nworking_dir = \"work\"\n\
         inherit_env = [\"PATH\"]\nok_exit_codes = [0, 1, 2]\nsandbox = \"{tier}\"\n{keys}\n"
    )
}

#[test]
fn a_program_reads_its_folder_and_neither_home_nor_state() {
    if !sandboxes_are_possible() {
        return;
    }
    let script = "cat note; echo made > ../out/made; ls ~; cat ~/.ssh/key; cat ../.toolcrib/*; \
                  cat ../toolcrib.toml; ls /proc/1/root/";
    let keys = "sandbox_write = [\"out\"]";
    let tools = ["files", "full"].map(|tier| tool(tier, keys, script)).concat();
    let project = Project::of(&[
        ("toolcrib.toml", &format!("policy_default = \"allow\"\n{tools}")),
        ("work/note", "a note\n"),
        ("out/.keep", ""),
        (".toolcrib/state", "the state"),
        ("home/.ssh/key", "the key"),
    ]);
    let home = project.path().join("home");
    for tier in ["files", "full"] {
        let called = project.command(&["call", tier]).env("HOME", &home).output().unwrap();
        let called = Outcome::from(called);
        assert_eq!(called.stdout.trim(), "a note", "{tier}: {}", called.stderr);
        assert_eq!(fs::read_to_string(project.path().join("out/made")).unwrap(), "made\n");
        fs::remove_file(project.path().join("out/made")).unwrap();
    }
}

#[test]
fn the_proxy_follows_the_personality_of_a_call() {
    if !sandboxes_are_possible() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"welcome");
        }
    });
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/3128 && \
         printf \"CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\nhello\" >&3 && head -c 39 <&3; cat <&3"
    );
    let keys = format!(
        "sandbox_hosts = [\"127.0.0.1:{port}\"]\nsandbox_addresses = [\"127.0.0.1:{port}\"]"
    );
    let narrow = "[[personality]]\nname = \"narrow\"\nnetwork = { deny = [\"127.0.0.1\"] }\n";
    let file = format!("policy_default = \"allow\"\n{narrow}{}", tool("full", &keys, &script));
    let project = Project::of(&[("toolcrib.toml", &file), ("work/note", "")]);
    let open = project.toolcrib(&["call", "full"]);
    assert!(open.stdout.contains("welcome"), "{}{}", open.stdout, open.stderr);
    let denied = project.toolcrib(&["call", "full", "--personality", "narrow"]);
    assert!(denied.stdout.contains("403 Forbidden"), "{}{}", denied.stdout, denied.stderr);
    assert!(!denied.stdout.contains("welcome"), "{}", denied.stdout);
}

/// A server that says who it is to any connection that sends something, and counts these.
fn saying(text: &'static str) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 256]);
            let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{text}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, count)
}

#[test]
fn the_proxy_reaches_no_other_port_of_a_permitted_host() {
    if !sandboxes_are_possible() {
        return;
    }
    let ((named, of_named), (other, of_other)) = (saying("welcome"), saying("inner"));
    let script = format!(
        "for request in \"GET http://127.0.0.1:{named}/\" \"CONNECT 127.0.0.1:{named}\" \
         \"GET http://127.0.0.1:{other}/\" \"CONNECT 127.0.0.1:{other}\"; do\n\
         exec 3<>/dev/tcp/127.0.0.1/3128\n\
         printf \"$request HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\nhello\" >&3\n\
         cat <&3; echo; exec 3>&-\ndone"
    );
    // The address has no port, so only the port of the host decides.
    let keys =
        format!("sandbox_hosts = [\"127.0.0.1:{named}\"]\nsandbox_addresses = [\"127.0.0.1\"]");
    let file = format!("policy_default = \"allow\"\n{}", tool("full", &keys, &script));
    let project = Project::of(&[("toolcrib.toml", &file), ("work/note", "")]);
    let called = project.toolcrib(&["call", "full"]);
    let shown = format!("{}{}", called.stdout, called.stderr);
    assert_eq!(called.stdout.matches("welcome").count(), 2, "{shown}");
    assert_eq!(called.stdout.matches("403 Forbidden").count(), 2, "{shown}");
    assert!(!called.stdout.contains("inner"), "{shown}");
    assert_eq!((of_named.load(Ordering::SeqCst), of_other.load(Ordering::SeqCst)), (2, 0));
}

#[test]
fn a_server_from_npm_works_in_the_strongest_sandbox() {
    let Some(peers) = Peers::find().filter(|_| sandboxes_are_possible()) else { return };
    let peers = peers.0.canonicalize().unwrap();
    let peers = peers.display();
    let file = format!(
        "[mcp.files]\ncommand = \"{peers}/node/bin/node\"\nargs = [\"{peers}/node_modules/.bin/\
         mcp-server-filesystem\", \"served\"]\nsandbox = \"full\"\nsandbox_read = [\"{peers}\"]\n\
         sandbox_write = [\"served\"]\n"
    );
    let project = Project::of(&[("toolcrib.toml", &file), ("served/note.txt", "a note")]);
    let (code, listed) = project.json(&["mcp", "list"]);
    assert_eq!((code, &listed["servers"][0]["ok"]), (Some(0), &Value::Bool(true)), "{listed}");
    assert_eq!(listed["servers"][0]["sandbox"], "full");
    let path = project.path().canonicalize().unwrap().join("served/note.txt");
    let argument = format!("path={}", path.display());
    let read = project.toolcrib(&["mcp", "call", "files", "read_text_file", &argument]);
    assert!(read.stdout.contains("a note"), "{}{}", read.stdout, read.stderr);
    let text = project.toolcrib(&["mcp", "list"]);
    assert!(text.stdout.contains("sandbox full"), "{}", text.stdout);
}
