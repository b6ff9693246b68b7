//! One oversized or foreign file in a memory folder made all of the memory unreadable.

use std::fs;

use serde_json::json;
use toolcrib_tools::memory::MemoryScope;

use crate::support::{Agent, call, turn};

#[tokio::test]
async fn an_oversized_or_foreign_file_is_left_out_with_a_warning() {
    let agent = Agent::new();
    let mut turn = turn(&agent.engine(MemoryScope::Principal), "ann");
    let add = json!({ "topic": "deploy", "content": "Deploy with make." });
    call(&mut turn, "memory_write", add).await;
    let folder = agent.path("principal/=none/ann");
    fs::write(folder.join("huge.md"), "deploy ".repeat(8 * 1024 * 1024)).unwrap();
    fs::write(folder.join("binary.md"), [0xff, 0xfe, 0x00, 0x9f, 0x92]).unwrap();
    fs::write(folder.join("photo.png"), "no topic").unwrap();
    fs::write(folder.join("Notes.md"), "deploy").unwrap();
    fs::create_dir(folder.join("sub")).unwrap();
    let list = call(&mut turn, "memory_read", json!({})).await;
    assert!(list.value.starts_with("deploy (1 lines, written 20"), "{}", list.value);
    let found = call(&mut turn, "memory_search", json!({ "query": "deploy" })).await;
    assert!(found.value.starts_with("deploy, line 1: Deploy with make."), "{}", found.value);
    for result in [&list, &found] {
        let (_, warning) = result.value.split_once("warning: left out of the memory: ").unwrap();
        for name in ["huge.md", "photo.png", "Notes.md", "sub"] {
            assert!(warning.contains(name), "{warning}");
        }
    }
    let add = json!({ "topic": "other", "content": "Another." });
    let added = call(&mut turn, "memory_write", add).await;
    assert_eq!(&*added.value, "other now has 1 lines");
}
