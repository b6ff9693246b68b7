//! Malformed tables, and distant rows.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};
use toolcrib_artifacts::{Artifacts, MemoryStore};
use toolcrib_core::{
    ArtifactEntry, ArtifactReader, ArtifactStore, ArtifactStoreError, Identity, StoreWriter,
    StoredBytes,
};

use crate::support::{keep_kind, pages, query, turn, turn_of};

#[test]
fn a_table_may_have_ragged_rows_and_quotes_across_lines() {
    let table = "\u{feff}id,name,note\n1,Ann\n2,Ben,\"a\n\"\"quoted\"\"\nnote\",more\n\n3,Cem,\n";
    let asked = |name: &str, args: Value| {
        let turn = turn();
        keep_kind(&turn, "csv", table);
        query(&turn, name, args).unwrap()
    };
    assert_eq!(asked("columns", json!({})), "0: id\n1: name\n2: note");
    assert_eq!(asked("row_count", json!({})), "3");
    insta::assert_snapshot!(asked("rows", json!({})), @r#"
    id,name,note
    1,Ann
    2,Ben,"a
    ""quoted""
    note",more
    3,Cem,
    "#);
    assert_eq!(asked("select", json!({ "columns": ["note"] })).lines().next(), Some("note"));
    let exists = |value: Value| {
        let condition = json!({ "column": "note", "op": "exists", "value": value });
        asked("select", json!({ "columns": ["id"], "where": condition }))
    };
    assert_eq!(exists(json!(true)), "id\n2\n3");
    assert_eq!(exists(json!(false)), "id\n1");
}

/// Distant rows found by the index are the same as on the pages.
#[test]
fn rows_far_behind_are_found_where_they_are() {
    let row = |n: u64| match n % 3 {
        0 => format!("{n},\"a\r\nb {n}\"\r\n"),
        1 => format!("{n},plain\r\n\r\n"),
        _ => format!("{n},\"x,\"\"y\"\"\",ragged\r\n"),
    };
    let turn = turn();
    let rows: String = (0..5_000).map(row).collect();
    keep_kind(&turn, "csv", format!("\u{feff}id,note\r\n{rows}"));
    assert_eq!(query(&turn, "row_count", json!({})).unwrap(), "5000");
    for start in [0, 1, 1_023, 1_024, 1_025, 2_047, 2_048, 3_333, 4_999, 5_000, 9_999, u64::MAX] {
        let shown = query(&turn, "rows", json!({ "start": start, "end": start.saturating_add(1) }));
        let (shown, expected) = (shown.unwrap(), row(start));
        let there = if start < 5_000 { expected.trim_end() } else { "" };
        assert_eq!(shown.strip_prefix("id,note").unwrap().trim_start(), there, "{start}");
    }
    let all = pages(&turn, "rows", &json!({ "start": 500 }));
    assert_eq!(all.len(), 45);
    let all: String = all.iter().map(|page| page.strip_prefix("id,note").unwrap()).collect();
    let ids = all.lines().filter_map(|line| line.split(',').next()?.parse::<u64>().ok());
    assert!(ids.eq(500..5_000));
}

/// A store that counts the bytes that are read.
struct Counted {
    store: MemoryStore,
    read: Arc<AtomicU64>,
}

struct CountedReader {
    reader: Arc<dyn ArtifactReader>,
    read: Arc<AtomicU64>,
}

impl ArtifactReader for CountedReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, ArtifactStoreError> {
        let count = self.reader.read_at(offset, into)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl ArtifactStore for Counted {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        self.store.create(owner)
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        let stored = self.store.open(owner, id)?;
        let reader = CountedReader { reader: stored.reader, read: Arc::clone(&self.read) };
        Ok(StoredBytes { reader: Arc::new(reader), ..stored })
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.store.entries(owner)
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        self.store.remove(owner, id)
    }
}

/// The row index is built once, and the first rows and the columns do not need it.
#[test]
fn a_row_far_behind_is_found_without_reading_all_before_it() {
    let read = Arc::new(AtomicU64::new(0));
    let store = Counted { store: MemoryStore::new(), read: Arc::clone(&read) };
    let turn = turn_of(&Artifacts::new(store), "c1");
    let table: String = (0..200_000).map(|n| format!("{n},some words\n")).collect();
    keep_kind(&turn, "csv", format!("id,note\n{table}"));
    let asked = |name: &str, args: Value| {
        read.store(0, Ordering::Relaxed);
        let answer = query(&turn, name, args).unwrap();
        (answer, read.load(Ordering::Relaxed))
    };
    let all = table.len() as u64;
    assert!(asked("columns", json!({})).1 < all / 10);
    assert!(asked("rows", json!({ "start": 500 })).1 < all / 10);
    let (count, bytes) = asked("row_count", json!({}));
    assert!(count == "200000" && bytes >= all);
    assert!(asked("row_count", json!({})).1 < all / 10, "it is known now");
    for start in [2_000, 100_000, 199_990] {
        let (rows, bytes) = asked("rows", json!({ "start": start }));
        assert!(rows.contains(&format!("\n{start},some words")) && bytes < all / 10, "{bytes}");
    }
}

/// With many rows fewer of them are indexed, and all are found.
#[test]
fn every_row_of_millions_is_found() {
    let turn = turn();
    let table: String = (0..4_300_000).map(|n| format!("{n},\n")).collect();
    keep_kind(&turn, "csv", format!("id,\n{table}"));
    for start in [5_u64, 1_024, 2_048, 3_071, 4_194_303, 4_194_304, 4_194_305, 4_299_999] {
        let rows = query(&turn, "rows", json!({ "start": start, "end": start + 1 })).unwrap();
        assert_eq!(rows, format!("id,\n{start},"));
    }
    assert_eq!(query(&turn, "row_count", json!({})).unwrap(), "4300000");
}
