//! Several processes with one folder.

use std::{
    collections::HashSet,
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use tempfile::TempDir;
use toolcrib_artifacts::{ArtifactSource, Artifacts, FileStore, MemoryStore, TurnArtifacts};
use toolcrib_core::{
    ArtifactEntry, ArtifactMeta, ArtifactStore, ArtifactStoreError, CommitError, Digest, Identity,
    OnConflict, StoreWriter, StoredBytes,
};

use crate::support::{keep_as, turn_of};

const FOLDER: &str = "TOOLCRIB_TEST_FOLDER";
const NAME: &str = "TOOLCRIB_TEST_NAME";

/// The number of artifacts of each process.
const EACH: usize = 60;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("artifact_store");
    (folder, root)
}

/// The turn of another process.
fn turn_in(root: &Path) -> TurnArtifacts {
    turn_of(&Artifacts::new(FileStore::new(root)), "c1")
}

fn of_owner(root: &Path, name: &str) -> PathBuf {
    let owner = fs::read_dir(root).unwrap().next().unwrap().unwrap().path();
    owner.join(name)
}

fn bytes(turn: &TurnArtifacts, id: &str) -> Vec<u8> {
    turn.get(id).unwrap().content().read(0..u64::MAX).unwrap()
}

/// Not a separate test: the body of each process of the next one.
#[test]
fn child() {
    let (Some(root), Ok(name)) = (env::var_os(FOLDER), env::var(NAME)) else { return };
    let turn = turn_in(Path::new(&root));
    for n in 0..EACH {
        let content = format!("{n} of {name}");
        let kept = keep_as(&turn, "call_1", &content);
        assert_eq!(bytes(&turn, kept.id()), content.as_bytes());
    }
}

#[test]
fn processes_that_want_one_id_at_the_same_time_get_one_each() {
    let (_folder, root) = folder();
    let processes = ["one", "two"].map(|name| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "sharing::child"]).env(FOLDER, &root).env(NAME, name);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let turn = turn_in(&root);
    let live = turn.live().unwrap();
    let contents: HashSet<_> = live.iter().map(|entry| bytes(&turn, &entry.id)).collect();
    let expected = ["one", "two"].iter().flat_map(|name| (0..EACH).map(move |n| (n, name)));
    let expected: HashSet<_> =
        expected.map(|(n, name)| format!("{n} of {name}").into_bytes()).collect();
    assert_eq!(live.len(), 2 * EACH);
    assert!(contents == expected);
}

/// A store in which another writer takes the id just before each commit, a number of times.
struct RacingStore {
    store: FileStore,
    times: usize,
}

struct RacingWriter {
    writer: Box<dyn StoreWriter>,
    /// The other writer's contents.
    theirs: Vec<Box<dyn StoreWriter>>,
}

impl ArtifactStore for RacingStore {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        let theirs = (0..self.times).map(|_| {
            let mut writer = self.store.create(owner)?;
            writer.write(b"theirs").map(|()| writer)
        });
        let theirs = theirs.collect::<Result<_, _>>()?;
        Ok(Box::new(RacingWriter { writer: self.store.create(owner)?, theirs }))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        self.store.open(owner, id)
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.store.entries(owner)
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        self.store.remove(owner, id)
    }
}

impl StoreWriter for RacingWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactStoreError> {
        self.writer.write(bytes)
    }

    fn commit(
        self: Box<Self>,
        id: &str,
        note: ArtifactMeta,
        on_conflict: OnConflict,
    ) -> Result<ArtifactEntry, CommitError> {
        let Self { writer, mut theirs } = *self;
        if let Some(theirs) = theirs.pop() {
            theirs.commit(id, note.clone(), OnConflict::Fail)?;
        }
        writer.commit(id, note, on_conflict).map_err(|error| match error {
            CommitError::Taken { id, writer } => {
                CommitError::Taken { id, writer: Box::new(Self { writer, theirs }) }
            }
            other => other,
        })
    }
}

/// A turn over that folder that loses the race this many times.
fn late(root: &Path, times: usize) -> TurnArtifacts {
    turn_of(&Artifacts::new(RacingStore { store: FileStore::new(root), times }), "c1")
}

#[test]
fn a_writer_whose_id_is_taken_gets_the_next_id_with_its_whole_content() {
    let (_folder, root) = folder();
    let turn = late(&root, 2);
    let mut writer = turn.writer(ArtifactSource::of("tests", "call_1"), None).unwrap();
    (0..1_000).for_each(|n| writer.write(format!("line {n}\n").as_bytes()));
    let kept = writer.finish().unwrap();
    assert_eq!(&**kept.id(), "call_1.3");
    let ours: String = (0..1_000).map(|n| format!("line {n}\n")).collect();
    assert_eq!(bytes(&turn, "call_1.3"), ours.as_bytes());
    assert_eq!(kept.content().line_of(ours.len() as u64 - 2).unwrap(), 999);
    for id in ["call_1", "call_1.2"] {
        assert_eq!(bytes(&turn, id), b"theirs", "{id}");
    }
    // A turn that always loses counts as far as one that does not.
    let kept = keep_as(&late(&root, 20), "call_2", "ours");
    assert_eq!(kept.id().len(), "call_2.abcde".len(), "{}", kept.id());
    assert_eq!(bytes(&turn, kept.id()), b"ours");
}

/// A store that reports every id as taken.
struct TakesNone(MemoryStore);

struct TakesNoneWriter;

impl ArtifactStore for TakesNone {
    fn create(&self, _: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        Ok(Box::new(TakesNoneWriter))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        self.0.open(owner, id)
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.0.entries(owner)
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        self.0.remove(owner, id)
    }
}

impl StoreWriter for TakesNoneWriter {
    fn write(&mut self, _: &[u8]) -> Result<(), ArtifactStoreError> {
        Ok(())
    }

    fn commit(
        self: Box<Self>,
        id: &str,
        _: ArtifactMeta,
        _: OnConflict,
    ) -> Result<ArtifactEntry, CommitError> {
        Err(CommitError::Taken { id: id.into(), writer: self })
    }
}

#[test]
fn a_store_that_takes_no_id_is_given_up_and_beginning_and_end_are_left() {
    let turn = turn_of(&Artifacts::new(TakesNone(MemoryStore::new())), "c1");
    let mut writer = turn.writer(ArtifactSource::of("tests", "call_1"), None).unwrap();
    writer.write(b"all of it");
    let unkept = writer.finish().unwrap_err();
    assert_eq!(unkept.to_string(), "the result was not kept: artifact `call_1` already exists");
    assert_eq!(unkept.text(), "all of it");
}

#[test]
fn an_entry_that_cannot_be_read_is_not_written_over() {
    let (_folder, root) = folder();
    let turn = turn_in(&root);
    keep_as(&turn, "a", "kept");
    let theirs = of_owner(&root, &format!("{}.entry", Digest::of("call_1")));
    fs::write(&theirs, r#"{ "of": "a version to come" }"#).unwrap();
    assert_eq!(&**keep_as(&turn, "call_1", "ours").id(), "call_1.2");
    assert_eq!(fs::read(&theirs).unwrap(), br#"{ "of": "a version to come" }"#);
}

/// The number of open handles of a file in this process.
fn opened(path: &Path) -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let files = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    files.filter(|file| file == path).count()
}

/// Waits until another thread waits for the lock.
fn is_waited_for<T>(lock: &Path, thread: &thread::JoinHandle<T>) -> bool {
    while opened(lock) < 2 && !thread.is_finished() {
        thread::yield_now();
    }
    !thread.is_finished()
}

#[test]
fn nothing_is_put_in_place_or_let_go_of_under_the_lock_of_another() {
    let (_folder, root) = folder();
    let turn = turn_in(&root);
    keep_as(&turn, "a", "kept");
    let path = of_owner(&root, "lock");
    let hold = || {
        let lock = File::options().create(true).append(true).open(&path).unwrap();
        lock.lock().unwrap();
        lock
    };
    let lock = hold();
    let keeping = thread::spawn({
        let turn = turn.clone();
        move || keep_as(&turn, "b", "kept too").id().to_owned()
    });
    assert!(is_waited_for(&path, &keeping));
    // The folder was briefly empty, and the awaited lock file no longer exists.
    fs::remove_file(&path).unwrap();
    let another = hold();
    drop(lock);
    assert!(is_waited_for(&path, &keeping));
    assert!(turn.get("b").is_err());
    drop(another);
    assert_eq!(&*keeping.join().unwrap(), "b");

    let store = FileStore::new(&root);
    let forget = || {
        let store = store.clone();
        thread::spawn(move || store.forget(&Identity::conversation("c1")))
    };
    let lock = hold();
    let forgetting = forget();
    assert!(is_waited_for(&path, &forgetting));
    assert_eq!(bytes(&turn, "a"), b"kept");
    drop(lock);
    forgetting.join().unwrap().unwrap();
    assert!(turn.live().unwrap().is_empty());

    // Two processes end it.
    keep_as(&turn, "a", "kept again");
    let lock = hold();
    let forgetting = forget();
    assert!(is_waited_for(&path, &forgetting));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    drop(lock);
    forgetting.join().unwrap().unwrap();
}

#[test]
fn what_is_kept_for_a_conversation_that_another_process_ends_is_an_error_or_goes_with_it() {
    let (_folder, root) = folder();
    let (turn, other) = (turn_in(&root), FileStore::new(&root));
    let mut writer = turn.writer(ArtifactSource::of("tests", "late"), None).unwrap();
    writer.write(b"all of it");
    other.forget(&Identity::conversation("c1")).unwrap();
    assert_eq!(writer.finish().unwrap_err().text(), "all of it");
    assert!(turn.live().unwrap().is_empty());
    let owner = Arc::new(Identity::conversation("c1"));
    let later = turn.artifacts().turn(owner, "run-2").keep(ArtifactSource::of("t", "b"), b"x");
    assert_eq!(&**later.unwrap().id(), "b");
}
