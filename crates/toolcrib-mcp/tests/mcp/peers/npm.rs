//! Servers on the TypeScript SDK.

use serde_json::json;

use super::support::{Peers, Server, text};

const ERA: &str = "2025-11-25";

#[tokio::test]
async fn filesystem_writes_and_reads_within_its_folder() {
    let Some(peers) = Peers::find() else { return };
    let mut files =
        Server::start("files", |folder| peers.npm("mcp-server-filesystem").arg(text(folder)));
    assert_eq!(
        files.names().await,
        [
            "create_directory",
            "directory_tree",
            "edit_file",
            "get_file_info",
            "list_allowed_directories",
            "list_directory",
            "list_directory_with_sizes",
            "move_file",
            "read_file",
            "read_media_file",
            "read_multiple_files",
            "read_text_file",
            "search_files",
            "write_file",
        ]
    );
    assert_eq!(&*files.protocol(), ERA);

    let path = files.folder.path().join("note.txt");
    let (at, outside) = (text(&path), "/etc/passwd");
    files.says("write_file", json!({"path": at, "content": "Grüße 🙂"})).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "Grüße 🙂");
    assert_eq!(files.says("read_text_file", json!({"path": at})).await, "Grüße 🙂");
    let read = files.call("read_text_file", json!({"path": at})).await;
    assert_eq!(read.structured, Some(json!({"content": "Grüße 🙂"})));
    let refused = files.refuses("read_text_file", json!({"path": outside})).await;
    assert!(refused.contains("Access denied"), "{refused}");
    files.close().await;
}

#[tokio::test]
async fn memory_keeps_what_it_is_told() {
    let Some(peers) = Peers::find() else { return };
    let mut memory = Server::start("memory", |folder| {
        peers.npm("mcp-server-memory").env("MEMORY_FILE_PATH", text(&folder.join("memory.jsonl")))
    });
    assert_eq!(
        memory.names().await,
        [
            "add_observations",
            "create_entities",
            "create_relations",
            "delete_entities",
            "delete_observations",
            "delete_relations",
            "open_nodes",
            "read_graph",
            "search_nodes",
        ]
    );
    assert_eq!(&*memory.protocol(), ERA);

    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["writes"]});
    memory.says("create_entities", json!({"entities": [ada]})).await;
    let graph = memory.call("read_graph", json!({})).await;
    assert_eq!(graph.structured, Some(json!({"entities": [ada], "relations": []})));
    memory.close().await;
}

#[tokio::test]
async fn sequential_thinking_counts_thoughts() {
    let Some(peers) = Peers::find() else { return };
    let mut thinking = Server::start("think", |_| peers.npm("mcp-server-sequential-thinking"));
    assert_eq!(thinking.names().await, ["sequentialthinking"]);
    assert_eq!(&*thinking.protocol(), ERA);

    for number in 1..=2 {
        let thought = json!({
            "thought": format!("thought {number}"),
            "thoughtNumber": number,
            "totalThoughts": 2,
            "nextThoughtNeeded": number < 2,
        });
        let kept = thinking.call("sequentialthinking", thought).await.structured.unwrap();
        assert_eq!(kept["thoughtHistoryLength"], number);
    }
    thinking.close().await;
}
