//! Files of a found project that are all of their size: reading them took time with the square of it.

use std::{thread, time::Duration};

use toolcrib_clock::processor_time;
use toolcrib_project::LoadError;

use crate::folder::{Folder, RUN};

/// 250 ms of processor time is the limit in an optimized build; tests are not optimized.
const WORST: Duration = Duration::from_secs(20);

/// Half of the limit of a file.
const SIZE: usize = 500_000;

fn repeated(one: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(SIZE);
    for at in 0.. {
        let next = one(at);
        if text.len() + next.len() > SIZE {
            return text;
        }
        text += &next;
    }
    text
}

/// How loading ends, on a thread with the stack of an async worker.
fn loaded(name: &str, text: String) -> String {
    let small = thread::Builder::new().stack_size(2 * 1024 * 1024);
    let loading = small.spawn(move || {
        let folder = Folder::with(&text);
        let told = match folder.load_as(RUN).map(drop) {
            Ok(()) => String::new(),
            Err(LoadError::Diagnostics(found)) => found.to_string(),
            Err(other) => other.to_string(),
        };
        (told, processor_time())
    });
    let (told, took) = loading.unwrap().join().unwrap();
    assert!(took < WORST, "{name}: {took:?}");
    assert!(told.len() < 8_000_000, "{name}: a text of {} bytes", told.len());
    told
}

#[test]
fn a_project_file_of_one_megabyte_took_minutes_to_refuse() {
    let long = "k".repeat(SIZE / 2);
    for (name, text) in [
        ("unknown keys", repeated(|at| format!("k{at} = 1\n"))),
        ("one key many times", repeated(|_| "a = 1\n".to_owned())),
        ("keys on one line", format!("x = {{{}}}", repeated(|at| format!("k{at}=1,")))),
        ("servers on one line", format!("mcp = {{{}}}", repeated(|at| format!("s{at}={{x=1}},")))),
        ("an array on one line", format!("mcp_files = [{}]", repeated(|_| "1,".to_owned()))),
        ("a long key", format!("{long} = 1\n")),
        ("a long table", format!("[tools.{long}]\n{}", "a.b=1\n".repeat(10))),
        ("deep arrays", format!("a = {}", "[".repeat(SIZE / 2))),
        ("deep tables", format!("a = {}1", "{a=".repeat(SIZE / 4))),
        ("dotted keys", format!("a{} = 1", ".a".repeat(SIZE / 3))),
        ("a dotted table", format!("[a{}]", ".a".repeat(SIZE / 3))),
    ] {
        let told = loaded(name, text);
        assert!(!told.is_empty(), "{name}");
        if name == "unknown keys" {
            assert!(told.contains("there are more problems than the 1000 that are shown"));
        }
    }
}
