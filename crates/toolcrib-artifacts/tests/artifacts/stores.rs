//! Stores: the contract of their port, and their specifics.

use std::{fs, sync::Arc, thread::ScopedJoinHandle, time::Duration};

use tempfile::TempDir;
use tokio::runtime::Handle;
use toolcrib_artifacts::{Artifacts, FileStore, MemoryStore};
use toolcrib_core::{
    ArtifactEntry, ArtifactMeta, ArtifactReader, ArtifactStore, ArtifactStoreError, Digest,
    Identity, OnConflict, StoreWriter, StoredBytes, TextOrigin,
};
use toolcrib_testing::stores::check_artifact_store;

use crate::support::{body, keep_as, turn_of};

fn note() -> ArtifactMeta {
    ArtifactMeta {
        kind: "text".into(),
        tool: "t".into(),
        call_id: "c".into(),
        turn_id: "r".into(),
        untrusted: false,
        text_origin: TextOrigin::Foreign,
        chars: 0,
    }
}

fn write(
    store: &dyn ArtifactStore,
    id: &str,
    content: &[u8],
) -> Result<ArtifactEntry, ArtifactStoreError> {
    let mut writer = store.create(&Identity::conversation("c1"))?;
    writer.write(content)?;
    Ok(writer.commit(id, note(), OnConflict::Replace)?)
}

fn files() -> (TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path().join("artifact_store"));
    (folder, store)
}

#[test]
fn memory_and_files_keep_the_contract() {
    check_artifact_store(&MemoryStore::new()).unwrap();
    let (_folder, store) = files();
    check_artifact_store(&store).unwrap();
}

#[test]
fn what_was_written_to_memory_is_not_copied_to_be_kept_or_read() {
    let store = MemoryStore::new();
    let owner = Identity::conversation("c1");
    let mut writer = store.create(&owner).unwrap();
    writer.write(&[b'x'; 1 << 20]).unwrap();
    let allocated = allocation_counter::measure(|| {
        writer.commit("a", note(), OnConflict::Fail).unwrap();
        let stored = store.open(&owner, "a").unwrap();
        assert_eq!(stored.reader.read_at(1_000, &mut [0; 100]).unwrap(), 100);
    });
    assert!(allocated.bytes_max < 100_000, "{allocated:?}");
}

/// A store that violates its contract.
struct Careless(MemoryStore);

impl ArtifactStore for Careless {
    fn create(&self, _: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        self.0.create(&Identity::conversation("everybody"))
    }

    fn open(&self, _: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        self.0.open(&Identity::conversation("everybody"), id)
    }

    fn entries(&self, _: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.0.entries(&Identity::conversation("everybody"))
    }

    fn remove(&self, _: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        self.0.remove(&Identity::conversation("everybody"), id)
    }
}

#[test]
fn a_store_that_mixes_owners_up_is_found_out() {
    let broken = check_artifact_store(&Careless(MemoryStore::new())).unwrap_err();
    assert!(broken.iter().any(|clause| clause.starts_with("artifacts of one owner")), "{broken}");
}

/// A store with an asynchronous client.
struct Remote {
    runtime: Handle,
    store: Arc<MemoryStore>,
}

struct RemoteReader {
    runtime: Handle,
    reader: Arc<dyn ArtifactReader>,
}

impl ArtifactReader for RemoteReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, ArtifactStoreError> {
        let (reader, length) = (Arc::clone(&self.reader), into.len());
        let read = self.runtime.block_on(async move {
            tokio::task::yield_now().await;
            let mut bytes = vec![0; length];
            reader.read_at(offset, &mut bytes).map(|count| (bytes, count))
        });
        let (bytes, count) = read?;
        into[..count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }
}

impl ArtifactStore for Remote {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        self.store.create(owner)
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        let stored = self.store.open(owner, id)?;
        let reader = RemoteReader { runtime: self.runtime.clone(), reader: stored.reader };
        Ok(StoredBytes { reader: Arc::new(reader), ..stored })
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.store.entries(owner)
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        self.store.remove(owner, id)
    }
}

/// Case 56.
#[test]
fn a_store_behind_an_asynchronous_client_answers_the_same() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let handle = runtime.handle().clone();
    let remote = Remote { runtime: handle, store: Arc::new(MemoryStore::new()) };
    check_artifact_store(&remote).unwrap();
    let (_folder, files) = files();
    let content: String = (0..20_000).map(|n| format!("{n} some words\r\n")).collect();
    let turns = [
        turn_of(&Artifacts::new(remote), "c1"),
        turn_of(&Artifacts::new(files), "c1"),
        turn_of(&Artifacts::new(MemoryStore::new()), "c1"),
    ];
    for turn in &turns {
        keep_as(turn, "call", &content);
    }
    for (name, args) in [
        ("artifact_head", serde_json::json!({ "n": 20 })),
        ("artifact_tail", serde_json::json!({ "n": 3 })),
        ("artifact_cat", serde_json::json!({ "start": 9_000, "end": 9_010 })),
        ("artifact_grep", serde_json::json!({ "pattern": "^1.*9 some" })),
        ("artifact_line_count", serde_json::json!({})),
    ] {
        let [remote, files, memory] =
            turns.each_ref().map(|turn| crate::support::forged(turn, name, args.clone()).unwrap());
        assert_eq!(remote, memory, "{name}");
        assert_eq!(files, memory, "{name}");
        assert!(!body(&memory).is_empty());
    }
}

#[test]
fn files_outlive_the_store_that_wrote_them() {
    let (folder, store) = files();
    write(&store, "a", b"kept").unwrap();
    drop(store);
    let store = FileStore::new(folder.path().join("artifact_store"));
    let stored = store.open(&Identity::conversation("c1"), "a").unwrap();
    let mut buffer = [0; 8];
    assert_eq!(stored.reader.read_at(0, &mut buffer).unwrap(), 4);
    assert_eq!(&buffer[..4], b"kept");
}

#[test]
fn no_id_reaches_out_of_the_folder_and_the_same_bytes_are_there_once() {
    let (folder, store) = files();
    for id in ["../../outside", "/etc/passwd", "a\0b", "..", "", &"long".repeat(1_000)] {
        write(&store, id, b"the same bytes").unwrap();
        assert!(store.open(&Identity::conversation("c1"), id).is_ok(), "{id}");
    }
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let owner =
        fs::read_dir(folder.path().join("artifact_store")).unwrap().next().unwrap().unwrap();
    let files: Vec<_> = fs::read_dir(owner.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let contents = files.iter().filter(|name| name.len() == 64).count();
    let entries = files.iter().filter(|name| name.ends_with(".entry")).count();
    assert_eq!((contents, entries, files.len()), (1, 6, 9), "{files:?}");
}

#[cfg(unix)]
#[test]
fn only_its_user_reads_what_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, store) = files();
    write(&store, "a", b"kept").unwrap();
    let mut ahead = vec![folder.path().join("artifact_store")];
    while let Some(path) = ahead.pop() {
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{path:?}");
        if metadata.is_dir() {
            ahead.extend(fs::read_dir(&path).unwrap().map(|file| file.unwrap().path()));
        }
    }
}

#[test]
fn what_has_expired_is_unknown_and_its_space_is_freed() {
    let (folder, forever) = files();
    write(&forever, "a", b"kept").unwrap();
    let owner = Identity::conversation("c1");
    let an_hour =
        FileStore::new(folder.path().join("artifact_store")).keep_for(Duration::from_hours(1));
    an_hour.sweep().unwrap();
    assert!(an_hour.open(&owner, "a").is_ok());
    let not_at_all = FileStore::new(folder.path().join("artifact_store")).keep_for(Duration::ZERO);
    assert!(matches!(not_at_all.open(&owner, "a"), Err(ArtifactStoreError::Unknown { .. })));
    assert_eq!(not_at_all.entries(&owner).unwrap(), []);
    assert!(matches!(forever.open(&owner, "a"), Err(ArtifactStoreError::Unknown { .. })));

    let memory = MemoryStore::new().keep_for(Duration::ZERO);
    write(&memory, "a", b"kept").unwrap();
    assert!(matches!(memory.open(&owner, "a"), Err(ArtifactStoreError::Unknown { .. })));
    assert_eq!(memory.entries(&owner).unwrap(), []);
    write(&memory, "a", b"again").unwrap();
    let memory = MemoryStore::new().keep_for(Duration::from_hours(1));
    write(&memory, "a", b"kept").unwrap();
    write(&memory, "b", b"too").unwrap();
    assert_eq!(memory.entries(&owner).unwrap().len(), 2, "an hour is not over");
}

#[test]
fn the_first_that_reads_frees_what_has_expired() {
    let reads: [fn(&FileStore); 2] = [
        |store| assert!(store.open(&Identity::conversation("c2"), "b").is_err()),
        |store| assert_eq!(store.entries(&Identity::conversation("c2")).unwrap(), []),
    ];
    for read in reads {
        let (folder, forever) = files();
        write(&forever, "a", b"kept").unwrap();
        let root = folder.path().join("artifact_store");
        read(&FileStore::new(&root).keep_for(Duration::from_hours(1)));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
        read(&FileStore::new(&root).keep_for(Duration::ZERO));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    }
}

#[test]
fn a_link_in_the_place_of_a_folder_leads_nowhere() {
    let (folder, store) = files();
    let owner = Identity::conversation("c1");
    write(&store, "a", b"kept").unwrap();
    let mut begun = store.create(&owner).unwrap();
    begun.write(b"begun").unwrap();
    let place =
        fs::read_dir(folder.path().join("artifact_store")).unwrap().next().unwrap().unwrap().path();
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&place, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &place).unwrap();
    let before = names_in(&elsewhere);
    assert!(begun.commit("b", note(), OnConflict::Fail).is_err());
    assert!(matches!(store.create(&owner), Err(ArtifactStoreError::Io { .. })));
    assert!(matches!(store.open(&owner, "a"), Err(ArtifactStoreError::Io { .. })));
    assert!(store.entries(&owner).is_err());
    assert!(store.remove(&owner, "a").is_err());
    store.sweep().unwrap();
    let mut after = names_in(&elsewhere);
    // The draft of an unfinished write is removed by its path.
    after.retain(|name| before.contains(name));
    assert_eq!(after.len() + 1, before.len());
    store.forget(&owner).unwrap();
    assert!(!place.exists() && elsewhere.exists(), "the link goes, and not what it leads to");
    write(&store, "a", b"anew").unwrap();
    assert!(store.open(&owner, "a").is_ok());
}

#[test]
fn the_first_that_writes_frees_what_has_expired_and_takes_empty_folders_away() {
    let (folder, forever) = files();
    write(&forever, "a", b"kept").unwrap();
    let root = folder.path().join("artifact_store");
    let folders = || fs::read_dir(&root).unwrap().count();
    let brief = FileStore::new(&root).keep_for(Duration::ZERO);
    // Of another process, which writes once and ends.
    drop(brief.create(&Identity::conversation("c2")).unwrap());
    assert!(matches!(
        forever.open(&Identity::conversation("c1"), "a"),
        Err(ArtifactStoreError::Unknown { .. })
    ));
    assert_eq!(folders(), 1, "that of the first is gone");
    brief.sweep().unwrap();
    assert_eq!(folders(), 0);
    write(&forever, "a", b"again").unwrap();
    assert!(forever.open(&Identity::conversation("c1"), "a").is_ok());
}

#[test]
fn folders_that_come_and_go_lose_nothing_that_is_written() {
    let (folder, forever) = files();
    let root = folder.path().join("artifact_store");
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|writer| {
            let store = &forever;
            scope.spawn(move || {
                for n in 0..100 {
                    drop(store.create(&Identity::conversation("c1")).unwrap());
                    let id = format!("{writer}-{n}");
                    write(store, &id, id.as_bytes()).unwrap();
                    let owner = Identity::conversation("c1");
                    assert!(store.open(&owner, &id).is_ok(), "{id}");
                    store.remove(&owner, &id).unwrap();
                }
            })
        });
        // Nothing expires; empty folders are removed.
        let sweeper = FileStore::new(root).keep_for(Duration::from_hours(1));
        while !writers.iter().all(ScopedJoinHandle::is_finished) {
            sweeper.sweep().unwrap();
        }
    });
}

#[test]
fn an_entry_that_cannot_be_read_keeps_its_content_and_all_else_goes_on() {
    let (folder, store) = files();
    write(&store, "a", b"the same").unwrap();
    write(&store, "b", b"the same").unwrap();
    let owner =
        fs::read_dir(folder.path().join("artifact_store")).unwrap().next().unwrap().unwrap().path();
    let of_b = owner.join(format!("{}.entry", Digest::of("b")));
    let text = fs::read(&of_b).unwrap();
    fs::write(&of_b, r#"{ "of": "a version to come" }"#).unwrap();
    let identity = Identity::conversation("c1");
    assert_eq!(store.entries(&identity).unwrap().len(), 1);
    store.remove(&identity, "a").unwrap();
    store.sweep().unwrap();
    fs::write(&of_b, text).unwrap();
    assert!(store.open(&identity, "b").is_ok(), "its content is still there");
}

#[test]
fn an_entry_that_is_taken_away_while_all_are_listed_is_not_there() {
    let (folder, store) = files();
    write(&store, "a", b"kept").unwrap();
    let owner =
        fs::read_dir(folder.path().join("artifact_store")).unwrap().next().unwrap().unwrap().path();
    // The name exists, but its target does not.
    std::os::unix::fs::symlink(owner.join("gone"), owner.join("gone.entry")).unwrap();
    let listed = store.entries(&Identity::conversation("c1")).unwrap();
    assert_eq!(listed.len(), 1);
}

/// The names of all files of the one owner.
fn names(root: &std::path::Path) -> Vec<String> {
    names_in(&fs::read_dir(root.join("artifact_store")).unwrap().next().unwrap().unwrap().path())
}

fn names_in(folder: &std::path::Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_cannot_be_put_in_place_as_a_whole_leaves_nothing() {
    let (folder, store) = files();
    write(&store, "a", b"kept").unwrap();
    let before = names(folder.path());
    let owner =
        fs::read_dir(folder.path().join("artifact_store")).unwrap().next().unwrap().unwrap().path();
    // A folder is in the place of the line index, or of the entry.
    for in_the_way in [format!("{}.lines", Digest::of("new")), format!("{}.entry", Digest::of("b"))]
    {
        let in_the_way = owner.join(in_the_way);
        fs::create_dir(&in_the_way).unwrap();
        let error = write(&store, "b", b"new").unwrap_err();
        assert_eq!(error.to_string(), "it could not be kept");
        let unread = store.open(&Identity::conversation("c1"), "b").unwrap_err();
        match in_the_way.extension().and_then(|kind| kind.to_str()) {
            Some("entry") => {
                assert_eq!(unread.to_string(), "it could not be read");
                let unlisted = store.entries(&Identity::conversation("c1")).unwrap_err();
                assert_eq!(unlisted.to_string(), "it could not be listed");
            }
            _ => assert!(matches!(unread, ArtifactStoreError::Unknown { .. })),
        }
        fs::remove_dir(&in_the_way).unwrap();
        assert_eq!(names(folder.path()), before);
        // Another id's content stays.
        assert!(write(&store, "b", b"kept").is_ok());
        store.remove(&Identity::conversation("c1"), "b").unwrap();
        assert_eq!(names(folder.path()), before);
    }
    assert!(store.open(&Identity::conversation("c1"), "a").is_ok());
}

#[test]
fn what_a_killed_process_left_goes_with_a_sweep() {
    let (folder, store) = files();
    write(&store, "a", b"kept").unwrap();
    let before = names(folder.path());
    let owner =
        fs::read_dir(folder.path().join("artifact_store")).unwrap().next().unwrap().unwrap().path();
    let orphan = Digest::of("nobody names it").to_string();
    fs::write(owner.join(&orphan), "nobody names it").unwrap();
    fs::write(owner.join(format!("{orphan}.lines")), "").unwrap();
    let (young, old) = (owner.join("new-young"), owner.join("new-old"));
    fs::write(&young, "being written").unwrap();
    let file = fs::File::create(&old).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_hours(25)).unwrap();
    store.sweep().unwrap();
    let mut expected = before;
    expected.push("new-young".to_owned());
    expected.sort_unstable();
    assert_eq!(names(folder.path()), expected);
}

#[test]
fn a_sweep_of_nothing_is_fine_and_of_what_is_no_folder_is_told() {
    let (folder, store) = files();
    store.sweep().unwrap();
    fs::write(folder.path().join("artifact_store"), "a file").unwrap();
    assert_eq!(store.sweep().unwrap_err().to_string(), "it could not be swept");
    let owner = Identity::conversation("c1");
    assert_eq!(store.entries(&owner).unwrap_err().to_string(), "it could not be listed");
    assert_eq!(store.open(&owner, "a").unwrap_err().to_string(), "it could not be read");
}

/// Writers sweep once a minute and not each time.
#[test]
fn an_artifact_says_when_it_was_made_and_takes_its_space_until_a_sweep() {
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let (folder, store) = files();
    let store = store.keep_for(Duration::ZERO);
    let before = now();
    let entry = write(&store, "a", b"first").unwrap();
    assert!((before..=now()).contains(&u128::from(entry.made_ms)));
    write(&store, "b", b"second").unwrap();
    assert!(names(folder.path()).contains(&entry.digest.to_string()));
    store.sweep().unwrap();
    assert_eq!(fs::read_dir(folder.path().join("artifact_store")).unwrap().count(), 0);
}

#[test]
fn what_expires_while_it_is_read_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let owner = Identity::conversation("c1");
    let long: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    let brief = FileStore::new(folder.path()).keep_for(Duration::ZERO);
    write(&FileStore::new(folder.path()), "a", &long).unwrap();
    let opened = FileStore::new(folder.path()).open(&owner, "a").unwrap();
    let mut all = vec![0; 1_000];
    opened.reader.read_at(0, &mut all).unwrap();
    brief.sweep().unwrap();
    assert!(matches!(brief.open(&owner, "a"), Err(ArtifactStoreError::Unknown { .. })));
    all.resize(long.len(), 0);
    assert_eq!(opened.reader.read_at(1_000, &mut all[1_000..]).unwrap(), long.len() - 1_000);
    assert!(all == long);
}

#[test]
fn two_runs_share_a_store_and_what_one_replaces_the_other_still_reads() {
    let (folder, one) = files();
    let another = FileStore::new(folder.path().join("artifact_store"));
    let owner = Identity::conversation("c1");
    write(&one, "a", b"old").unwrap();
    let opened = another.open(&owner, "a").unwrap();
    write(&one, "a", b"new").unwrap();
    let mut buffer = [0; 3];
    opened.reader.read_at(0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"old");
    another.open(&owner, "a").unwrap().reader.read_at(0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"new");
    let left = names(folder.path());
    assert!(!left.contains(&Digest::of("old").to_string()), "nobody finds it any more: {left:?}");
    assert_eq!(left.len(), 4, "the lock, an entry, its content and where its lines are");
    write(&another, "a", b"new").unwrap();
    assert_eq!(names(folder.path()), left, "the same again");
}

#[test]
fn a_folder_that_is_deleted_in_mid_run_is_an_error_and_what_comes_is_kept_again() {
    let (folder, store) = files();
    write(&store, "a", b"kept").unwrap();
    let owner = Identity::conversation("c1");
    let opened = store.open(&owner, "a").unwrap();
    let mut half = store.create(&owner).unwrap();
    half.write(b"half").unwrap();
    fs::remove_dir_all(folder.path().join("artifact_store")).unwrap();
    let mut buffer = [0; 4];
    assert_eq!(opened.reader.read_at(0, &mut buffer).unwrap(), 4, "who holds it still reads it");
    assert!(matches!(store.open(&owner, "a"), Err(ArtifactStoreError::Unknown { .. })));
    assert!(half.commit("b", note(), OnConflict::Fail).is_err());
    write(&store, "c", b"again").unwrap();
    assert!(store.open(&owner, "c").is_ok());
}

#[test]
fn a_content_that_is_taken_away_or_cut_is_gone_and_not_something_else() {
    let (folder, store) = files();
    let digest = write(&store, "a", b"kept").unwrap().digest;
    let owner =
        fs::read_dir(folder.path().join("artifact_store")).unwrap().next().unwrap().unwrap().path();
    let open = || store.open(&Identity::conversation("c1"), "a");
    fs::write(owner.join(digest.to_string()), b"kep").unwrap();
    assert!(matches!(open(), Err(ArtifactStoreError::Gone { .. })));
    fs::write(owner.join(format!("{digest}.lines")), b"no index").unwrap();
    assert!(matches!(open(), Err(ArtifactStoreError::Gone { .. })));
    fs::remove_file(owner.join(digest.to_string())).unwrap();
    let error = open().unwrap_err();
    assert_eq!(error.to_string(), "the content of this artifact was deleted from the store");
}

/// A content that is truncated while it is read gets no invented bytes for the missing part.
#[test]
fn a_content_that_is_cut_behind_a_reader_is_gone() {
    let (folder, store) = files();
    let turn = turn_of(&Artifacts::new(store), "c1");
    let artifact = keep_as(&turn, "a", "some words\n".repeat(20_000));
    let owner =
        fs::read_dir(folder.path().join("artifact_store")).unwrap().next().unwrap().unwrap().path();
    let file = owner.join(artifact.entry().digest.to_string());
    fs::OpenOptions::new().write(true).open(file).unwrap().set_len(100_000).unwrap();
    let content = artifact.content();
    assert_eq!(content.read(99_990..100_000).unwrap().len(), 10);
    assert!(matches!(content.read(99_990..100_001), Err(ArtifactStoreError::Gone { .. })));
    let mut lines = content.lines_from(0).unwrap();
    let end = loop {
        match lines.next(10) {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert!(matches!(end, Err(ArtifactStoreError::Gone { .. })), "{end:?}");
    assert!(content.line_start(15_000).is_err());
}
