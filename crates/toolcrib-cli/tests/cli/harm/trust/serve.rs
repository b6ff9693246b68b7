//! The gateway of a found project wrote, read and dialed outside it.

use std::{fs, os::unix::fs::PermissionsExt as _};

use tempfile::TempDir;

use super::{Found, modes};
use crate::support::listing;

#[test]
fn serve_used_files_and_hosts_outside_without_trust() {
    let elsewhere = TempDir::new().unwrap();
    let there = elsewhere.path().canonicalize().unwrap();
    let log = there.join("victim.log");
    fs::write(&log, "precious\n").unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o644)).unwrap();
    let before = (listing(&there), modes(&there));
    let (log, there) = (log.display().to_string(), there.display().to_string());
    for (serve, told) in [
        (format!("[serve]\naudit = '{log}'\n"), format!("adds lines to the file: {log}")),
        // A link of the project leads to a file that does not exist yet.
        (
            "[serve]\naudit = 'logs/new.jsonl'\n".to_owned(),
            format!("adds lines to the file: {there}/new.jsonl"),
        ),
        (
            format!("[serve.tls]\ncertificate = 'cert.pem'\nkey = '{there}/key.pem'\n"),
            format!("reads the file: {there}/key.pem"),
        ),
        (
            "[serve.oauth]\nresource = 'https://tools.example/mcp'\nissuer = 'https://a.example'\n"
                .to_owned(),
            "sends requests to: https://a.example".to_owned(),
        ),
    ] {
        let found = Found::of(&[("toolcrib.toml", &serve)]);
        std::os::unix::fs::symlink(elsewhere.path(), found.path().join("logs")).unwrap();
        let served = found.run(&["serve"]);
        assert_eq!(served.code, Some(2), "{serve}: {}", served.stderr);
        assert!(served.stderr.contains(&told), "{serve}: {}", served.stderr);
        assert_eq!((listing(elsewhere.path()), modes(elsewhere.path())), before, "{serve}");
        let checked = found.run(&["check", "-v"]);
        assert!(checked.stderr.contains(&told), "{serve}: {}", checked.stderr);
        found.trust();
        assert_eq!(found.run(&["serve"]).code, Some(0), "{serve}");
        // The file that was created is the trusted one.
        assert_eq!(found.run(&["serve"]).code, Some(0), "{serve}");
        let _ = fs::remove_file(elsewhere.path().join("new.jsonl"));
        fs::write(elsewhere.path().join("victim.log"), "precious\n").unwrap();
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(elsewhere.path().join("victim.log"), mode).unwrap();
    }
}

#[test]
fn a_gateway_within_its_project_needs_no_trust() {
    let serve = "[serve]\naudit = 'audit.jsonl'\n";
    let found = Found::of(&[("toolcrib.toml", serve)]);
    let served = found.run(&["serve"]);
    assert_eq!(
        (served.code, served.stderr.contains("trust")),
        (Some(0), false),
        "{}",
        served.stderr
    );
}
