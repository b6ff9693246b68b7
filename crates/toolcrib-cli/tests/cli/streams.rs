//! Output that cannot be written.

use std::{
    fs::File,
    io::Write as _,
    process::{Output, Stdio},
};

use crate::support::{Project, toolcrib};

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn standard_output_that_is_full_is_a_failure() {
    let desk = Project::desk();
    for args in [
        &["check"][..],
        &["check", "--json"],
        &["menu"],
        &["menu", "--json"],
        &["call", "list_tickets"],
        &["run", "hello"],
        &["run", "hello", "--json"],
        &["--help"],
        &["--version"],
    ] {
        let output = desk.command(args).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let told = told(&output);
        assert!(told.contains("standard output could not be written: No space left"), "{told}");
    }
    // A worse exit code is kept.
    let output = toolcrib().args(["run", "--json"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn events_that_are_lost_are_a_failure_and_the_run_goes_on() {
    let desk = Project::desk();
    let ask = "I was charged twice for order 1042, please refund one charge";
    let output = desk.command(&["run", ask, "--events", "/dev/full"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = told(&output);
    assert!(told.contains("the events file /dev/full could not be written: No space left"));
    assert_eq!(told.matches("could not be written").count(), 1);
    assert!(String::from_utf8(output.stdout).unwrap().contains("I have refunded one charge"));
    assert_eq!(desk.refunds(1042), 1);

    let output = desk.command(&["run", "hello", "--events", "-"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_closed_stream_ends_the_output_quietly() {
    let desk = Project::desk();
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // The test's own end behaves as the program's will.
        assert!((&writer).write_all(b"x").is_err());
        Stdio::from(writer)
    };
    for args in [&["check", "--json"][..], &["menu"], &["run", "hello", "--events", "-"]] {
        let status = desk.command(args).stdout(closed()).stderr(closed()).status().unwrap();
        assert_eq!(status.code(), Some(0), "{args:?}");
    }
}
