//! Servers on the Python SDK, which speak the newest revision.

use std::path::Path;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    process::Command,
};

use super::support::{Peers, Server, text};

const ERA: &str = "2026-07-28";

#[tokio::test]
async fn git_reads_a_repository() {
    let Some(peers) = Peers::find() else { return };
    let mut git = Server::start("git", |_| peers.python("mcp-server-git"));
    assert_eq!(
        git.names().await,
        [
            "git_add",
            "git_branch",
            "git_checkout",
            "git_commit",
            "git_create_branch",
            "git_diff",
            "git_diff_staged",
            "git_diff_unstaged",
            "git_log",
            "git_reset",
            "git_show",
            "git_status",
        ]
    );
    assert_eq!(&*git.protocol(), ERA);

    let folder = git.folder.path().to_owned();
    let at = text(&folder);
    run_git(&folder, &["init", "--quiet", "--initial-branch", "main"]).await;
    std::fs::write(folder.join("a.txt"), "a").unwrap();
    let status = git.says("git_status", json!({"repo_path": at})).await;
    assert!(status.contains("On branch main") && status.contains("a.txt"), "{status}");
    run_git(&folder, &["add", "a.txt"]).await;
    let committer = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    run_git(&folder, &[&committer[..], &["commit", "--quiet", "-m", "The first one"]].concat())
        .await;
    let log = git.says("git_log", json!({"repo_path": at, "max_count": 1})).await;
    assert!(log.contains("The first one") && log.contains("Ada"), "{log}");
    let refused = git.refuses("git_log", json!({"repo_path": "/nowhere/at/all"})).await;
    assert!(refused.contains("/nowhere/at/all"), "{refused}");
    git.close().await;
}

async fn run_git(folder: &Path, args: &[&str]) {
    let status = Command::new("git").current_dir(folder).args(args).status().await.unwrap();
    assert!(status.success(), "git {args:?}");
}

#[tokio::test]
async fn time_converts() {
    let Some(peers) = Peers::find() else { return };
    let mut time = Server::start("time", |_| {
        peers.python("mcp-server-time").args(["--local-timezone", "UTC"])
    });
    assert_eq!(time.names().await, ["convert_time", "get_current_time"]);
    assert_eq!(&*time.protocol(), ERA);

    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let converted = time.call("convert_time", noon).await.structured.unwrap();
    let there = converted["target"]["datetime"].as_str().unwrap();
    assert!(there.ends_with("T21:00:00+09:00"), "{there}");
    let nowhere = time.refuses("get_current_time", json!({"timezone": "Moon/Crater"})).await;
    assert!(nowhere.contains("Moon/Crater"), "{nowhere}");
    time.close().await;
}

#[tokio::test]
async fn fetch_reads_a_page_where_it_may() {
    let Some(peers) = Peers::find() else { return };
    let url = page().await;
    let mut fetch = Server::start("fetch", |_| {
        peers.python("mcp-server-fetch").args(["--allow-private-ips", "--ignore-robots-txt"])
    });
    assert_eq!(fetch.names().await, ["fetch"]);
    assert_eq!(&*fetch.protocol(), ERA);
    let read = fetch.says("fetch", json!({"url": url})).await;
    assert!(read.contains("The weather is fine today."), "{read}");
    fetch.close().await;

    let mut careful =
        Server::start("fetch", |_| peers.python("mcp-server-fetch").arg("--ignore-robots-txt"));
    careful.refuses("fetch", json!({"url": url})).await;
    careful.close().await;
}

/// The URL of a page on this machine, which is there as long as the test's runtime.
async fn page() -> String {
    const PAGE: &str = "<html><body><h1>News</h1><p>The weather is fine today.</p></body></html>";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/news.html", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // Any request gets the same response.
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{PAGE}",
                PAGE.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}
