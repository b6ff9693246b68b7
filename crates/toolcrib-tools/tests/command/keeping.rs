//! Programs that write more than is kept in memory, in an engine that keeps artifacts.

use std::{io, thread::sleep, time::Duration};

use serde_json::{Value, json};
use toolcrib_artifacts::{Artifacts, FileStore, MemoryStore};
use toolcrib_core::{
    ArtifactEntry, ArtifactMeta, ArtifactPolicy, ArtifactStore, ArtifactStoreError, CommitError,
    ErrorCode, Identity, OnConflict, StoreWriter, StoredBytes, ToolCall, ToolResult, unfence,
};
use toolcrib_engine::{Engine, Redactor, Turn, TurnOptions};
use toolcrib_tools::command::CommandToolSpec;

use crate::support::sh;

const SECRET: &str = "hunter2hunter2";

/// 30,000 lines, every third a secret: 258,890 bytes, of which 218,890 are left without them; and one on
/// stderr.
const LINES: &str = "i=0; echo warned >&2; while [ $i -lt 10000 ]; do \
     echo line $i; echo; echo hunter2hunter2; i=$((i+1)); done";

fn engine(spec: CommandToolSpec, store: impl ArtifactStore) -> Engine {
    Engine::builder()
        .tool(spec.build().unwrap())
        .redactor(Redactor::new([SECRET.to_owned()]))
        .artifacts(Artifacts::new(store))
        .build()
        .unwrap()
}

fn small(script: &str) -> CommandToolSpec {
    let mut spec = sh(script, &[]);
    spec.max_output_bytes = 10_000;
    spec
}

async fn call(turn: &mut Turn, name: &str, args: Value) -> ToolResult {
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("call_1", name, args)]).await.remove(0)
}

fn inside(result: &ToolResult) -> &str {
    unfence(&result.text).0
}

#[tokio::test]
async fn a_large_stdout_is_an_artifact_as_it_came_but_redacted() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(small(LINES), FileStore::new(folder.path()));
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let result = call(&mut turn, "run_it", json!({})).await;
    assert!(
        inside(&result).starts_with("[artifact call_1: text, 218890 bytes, 30001 lines; read on"),
        "{}",
        result.text
    );
    assert!(result.untrusted);
    assert_eq!(
        result.structured,
        Some(json!({
            "exit_code": 0, "artifact": "call_1", "stderr": "warned\n", "truncated": true,
        }))
    );
    assert_eq!((result.produced_chars, &*result.artifacts), (218_890, &["call_1".into()][..]));
    let args = json!({ "id": "call_1", "tail": 3 });
    let tail = call(&mut turn, "artifact_read", args).await;
    assert_eq!(inside(&tail), "line 9999\n\n[redacted]");
    let args = json!({ "id": "call_1", "pattern": "hunter|line 4999$" });
    let found = call(&mut turn, "artifact_search", args).await;
    assert_eq!(inside(&found), "14998:line 4999");
}

#[tokio::test]
async fn a_short_output_becomes_an_artifact_only_by_policy() {
    for (artifact_policy, expected) in
        [(ArtifactPolicy::WhenCut, "hello"), (ArtifactPolicy::Always, "[artifact ")]
    {
        let mut spec = small("echo hello");
        spec.declaration.artifact_policy = artifact_policy;
        let engine = engine(spec, MemoryStore::new());
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let result = call(&mut turn, "run_it", json!({})).await;
        assert!(inside(&result).starts_with(expected), "{}", result.text);
    }
    // One artifact, not one of the other's handle.
    let mut spec = small(LINES);
    spec.declaration.artifact_policy = ArtifactPolicy::Always;
    spec.declaration.artifact_kind = Some("csv".into());
    let engine = engine(spec, MemoryStore::new());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let result = call(&mut turn, "run_it", json!({})).await;
    assert_eq!(result.artifacts.len(), 1);
    assert!(inside(&result).starts_with("[artifact call_1: csv, 218890 bytes"));
}

/// All bytes of the artifact `call_1` of the conversation `c`.
fn kept(store: &impl ArtifactStore) -> Vec<u8> {
    let stored = store.open(&Identity::conversation("c"), "call_1").unwrap();
    let mut bytes = vec![0; usize::try_from(stored.entry.bytes).unwrap()];
    assert_eq!(stored.reader.read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

#[tokio::test]
async fn the_artifact_of_a_small_stdout_has_its_redacted_bytes() {
    // As `printf` receives them; the rest of a secret; and the text before it as the model reads it.
    let outputs: [(&str, &[u8], &str); 5] = [
        ("\\n\\n  lead\\nx\\n\\n\\n", b"\n\n  lead\nx\n\n\n", "\n\n  lead\nx\n"),
        ("a,b\\r\\n1,2\\r\\n", b"a,b\r\n1,2\r\n", "a,b\r\n"),
        ("name\\nM\\374ller\\n", b"name\nM\xFCller\n", "[bytes that are no UTF-8"),
        ("\\377hunter2hunter2\\377hunter2\\n", b"\xFF[redacted]\xFFhunter2\n", "[bytes that"),
        ("no line end", b"no line end", "no line end"),
    ];
    for (printed, expected, read) in outputs {
        let mut spec = small(&format!("printf '{printed}'"));
        spec.declaration.artifact_policy = ArtifactPolicy::Always;
        let store = MemoryStore::new();
        let engine = engine(spec, store.clone());
        let mut turn = engine.turn(TurnOptions::default().conversation("c")).unwrap();
        let result = call(&mut turn, "run_it", json!({})).await;
        assert_eq!(kept(&store).escape_ascii().to_string(), expected.escape_ascii().to_string());
        let size = format!(", {} bytes", expected.len());
        assert!(inside(&result).contains(&size), "{}", result.text);

        // Where a result is cut, the text has what it had; the artifact has the bytes.
        let mut spec =
            small(&format!("printf '{printed}'; head -c 900 /dev/zero | tr '\\0' x; echo"));
        spec.declaration.max_result_chars = Some(300);
        let store = MemoryStore::new();
        let engine = self::engine(spec, store.clone());
        let mut turn = engine.turn(TurnOptions::default().conversation("c")).unwrap();
        let result = call(&mut turn, "run_it", json!({})).await;
        assert!(result.text.contains("the rest: artifact_read call_1]"), "{}", result.text);
        let inside = inside(&result).replace("\r", "");
        assert!(inside.starts_with(&read.replace("\r", "")), "{}", result.text);
        let expected = [expected, &[b'x'; 900], b"\n"].concat();
        assert_eq!(kept(&store).escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
}

#[tokio::test]
async fn a_program_without_output_has_no_artifact() {
    for (script, read) in [("true", "done, without output"), ("echo warned >&2", "warned")] {
        let mut spec = small(script);
        spec.declaration.artifact_policy = ArtifactPolicy::Always;
        spec.declaration.artifact_kind = Some("csv".into());
        let engine = engine(spec, MemoryStore::new());
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let result = call(&mut turn, "run_it", json!({})).await;
        assert_eq!((inside(&result), result.artifacts.len()), (read, 0));
    }
}

#[tokio::test]
async fn what_a_program_wrote_that_failed_is_kept_and_what_one_wrote_that_was_cut_off_is_not() {
    let store = MemoryStore::new();
    let engine = engine(small(&format!("{LINES}; exit 3")), store.clone());
    let mut turn = engine.turn(TurnOptions::default().conversation("c")).unwrap();
    let result = call(&mut turn, "run_it", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
    let text = inside(&result);
    assert!(text.starts_with("`sh` failed with exit code 3; it wrote to stderr:\nwarned\n"));
    assert!(text.contains("All of its stdout:\n[artifact call_1: text, 218890 bytes"), "{text}");

    let mut spec = small(&format!("{LINES}; sleep 600"));
    spec.declaration.timeout = Some(Duration::from_millis(1_500));
    let engine = self::engine(spec, store.clone());
    let mut turn = engine.turn(TurnOptions::default().conversation("other")).unwrap();
    let result = call(&mut turn, "run_it", json!({})).await;
    assert!(!result.is_ok() && result.artifacts.is_empty(), "{}", result.text);
    assert!(store.entries(&Identity::conversation("other")).unwrap().is_empty());
}

#[tokio::test]
async fn a_store_without_room_leaves_beginning_and_end() {
    let engine = engine(small(LINES), Strange::Full);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let result = call(&mut turn, "run_it", json!({})).await;
    assert!(result.is_ok() && result.artifacts.is_empty());
    let text = inside(&result);
    let first = "[the first 10000 of 258890 bytes; not all was kept: the disk is full]\nline 0\n";
    assert!(text.starts_with(first), "{text}");
    assert!(text.ends_with("line 9999\n\n[redacted]"), "{text}");
    assert!(!text.contains("hunter"));
    assert_eq!(result.structured.unwrap()["truncated"], true);

    // Of one that is cut by little nothing is shown twice. The first word beyond may be half a secret.
    let script =
        "head -c 9990 /dev/zero | tr '\\0' 'x'; echo; echo 'the head' ends; echo and goes on";
    let engine = self::engine(small(script), Strange::Full);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let result = call(&mut turn, "run_it", json!({})).await;
    assert!(inside(&result).ends_with("x\nthe head \n[…]\n…and goes on"), "{}", result.text);

    // One that failed says it too.
    let engine = self::engine(small(&format!("{LINES}; exit 3")), Strange::Full);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let result = call(&mut turn, "run_it", json!({})).await;
    let text = inside(&result);
    assert!(text.contains("it wrote to stderr:\nwarned\nand to stdout:\n\u{2026}"), "{text}");
    let why = "line 9999\n\n[redacted]\n[not all of its stdout was kept: the disk is full]";
    assert!(text.ends_with(why), "{text}");
}

#[tokio::test]
async fn a_store_that_is_slow_makes_the_program_wait_and_loses_nothing() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo end";
    let engine = engine(small(script), Strange::Slow(MemoryStore::new()));
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let result = call(&mut turn, "run_it", json!({})).await;
    assert!(inside(&result).starts_with("[artifact call_1: text, 3000005 bytes, 3 lines"));
}

/// Stores on disks that are not as one would wish.
enum Strange {
    Full,
    Slow(MemoryStore),
}

struct StrangeWriter(Option<Box<dyn StoreWriter>>);

impl ArtifactStore for Strange {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        Ok(Box::new(StrangeWriter(match self {
            Self::Full => None,
            Self::Slow(store) => Some(store.create(owner)?),
        })))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        match self {
            Self::Full => Err(ArtifactStoreError::Unknown { id: id.into() }),
            Self::Slow(store) => store.open(owner, id),
        }
    }

    fn entries(&self, _: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        Ok(Vec::new())
    }

    fn remove(&self, _: &Identity, _: &str) -> Result<(), ArtifactStoreError> {
        Ok(())
    }
}

impl StoreWriter for StrangeWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactStoreError> {
        match &mut self.0 {
            None => Err(ArtifactStoreError::Full { source: io::ErrorKind::StorageFull.into() }),
            Some(writer) => {
                sleep(Duration::from_millis(30));
                writer.write(bytes)
            }
        }
    }

    fn commit(
        self: Box<Self>,
        id: &str,
        note: ArtifactMeta,
        on_conflict: OnConflict,
    ) -> Result<ArtifactEntry, CommitError> {
        match self.0 {
            None => {
                Err(ArtifactStoreError::Full { source: io::ErrorKind::StorageFull.into() }.into())
            }
            Some(writer) => writer.commit(id, note, on_conflict),
        }
    }
}
