//! Processes with one key and one store, and separate configuration folders.

use std::{
    collections::HashSet,
    env, fs,
    path::Path,
    sync::{Arc, Mutex},
};

use tokio::task::JoinSet;
use toolcrib_approvals::{ApprovalKeys, Approvals};
use toolcrib_core::{ApprovalMark, ErrorCode, MarkStore, SessionStoreError};
use toolcrib_store::SqliteStore;

use crate::setup::{Made, PLACE, Setup, payment};

/// The number of approvals, each for another call, in CI, and of `cargo xtask attacks`.
const APPROVALS: (u64, u64) = (100, 1_000);

/// The number of approvals that wait at a time: a store parks only so many calls.
const BATCH: u64 = 100;

/// The number of callers per configuration folder that make each approved call at the same time.
const CLAIMANTS: usize = 8;

/// The approvals of another process: its own connection to the store, and its own folder.
fn process(setup: &Setup, name: &str) -> Approvals {
    let folder = setup.folder.path().join(name);
    fs::create_dir_all(&folder).unwrap();
    copy_private(&setup.config().join("key"), &folder.join("key"));
    let store = SqliteStore::open(setup.folder.path().join("sessions.db")).unwrap();
    Approvals::new(Arc::new(store), ApprovalKeys::new(Some(folder)), PLACE)
}

fn copy_private(from: &Path, to: &Path) {
    // The copy has the permissions of the original.
    fs::copy(from, to).unwrap();
}

fn delete_open(setup: &Setup) {
    setup.file().execute("DELETE FROM approvals WHERE closed IS NULL", []).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_with_separate_folders_use_each_approval_once() {
    let setup = Arc::new(Setup::new());
    let first = setup.parked(&payment(0)).await;
    setup.approvals.approve(&first).unwrap();
    delete_open(&setup);
    let processes = [process(&setup, "first"), process(&setup, "second")];
    let approvals = match env::var_os("TOOLCRIB_ATTACK_ROUNDS") {
        Some(_) => APPROVALS.1,
        None => APPROVALS.0,
    };
    let mut paid = setup.paid();
    for batch in 0..approvals / BATCH {
        let calls: Vec<Made> = (1..=BATCH).map(|one| payment(batch * BATCH + one)).collect();
        for call in &calls {
            assert_eq!(setup.make(call).await.code, Some(ErrorCode::AwaitingApproval));
        }
        for review in setup.approvals.list(false).unwrap() {
            setup.approvals.approve(&review.stored.id).unwrap();
        }
        for call in calls {
            let mut claims = JoinSet::new();
            for process in processes.iter().flat_map(|process| vec![process; CLAIMANTS]) {
                let (setup, process, call) = (Arc::clone(&setup), process.clone(), call.clone());
                claims.spawn(async move { setup.make_with(&call, &process).await });
            }
            let results = claims.join_all().await;
            let made = results.iter().filter(|result| result.is_ok()).count();
            assert_eq!((made, setup.paid()), (1, paid + 1), "{call:?}: {results:?}");
            paid += 1;
        }
        delete_open(&setup);
    }
}

#[tokio::test]
async fn a_denial_is_told_once_and_an_older_copy_of_the_store_revives_nothing() {
    let setup = Setup::new();
    let call = payment(7);
    let id = setup.parked(&call).await;
    setup.approvals.deny(&id, None).unwrap();
    let processes = [process(&setup, "first"), process(&setup, "second")];
    let codes = [
        setup.make_with(&call, &processes[0]).await.code,
        setup.make_with(&call, &processes[1]).await.code,
    ];
    assert_eq!(codes, [Some(ErrorCode::Denied), Some(ErrorCode::AwaitingApproval)]);

    let other = payment(8);
    let before = setup.approvals.list(false).unwrap();
    assert_eq!(setup.make(&other).await.code, Some(ErrorCode::AwaitingApproval));
    let listed = setup.approvals.list(false).unwrap();
    assert_eq!(listed.len(), before.len() + 1);
    // Approvals of one millisecond have no order.
    let is_new = |id: &str| !before.iter().any(|known| *known.stored.id == *id);
    let new = listed.iter().find(|approval| is_new(&approval.stored.id)).unwrap();
    let id = Arc::clone(&new.stored.id);
    setup.approvals.approve(&id).unwrap();
    let file = setup.file();
    file.execute("CREATE TEMP TABLE saved AS SELECT * FROM approvals WHERE id = ?1", [&*id])
        .unwrap();
    assert!(setup.make_with(&other, &processes[0]).await.is_ok());
    file.execute("DELETE FROM approvals WHERE id = ?1", [&*id]).unwrap();
    file.execute("INSERT INTO approvals SELECT * FROM saved", []).unwrap();
    let again = setup.make_with(&other, &processes[0]).await;
    assert_eq!(again.code, Some(ErrorCode::AwaitingApproval), "the mark of the folder refuses it");
    assert_eq!(setup.paid(), 1);
}

/// The marks that machines share, apart from the store.
#[derive(Default)]
struct Marks(Mutex<HashSet<(ApprovalMark, String)>>);

impl MarkStore for Marks {
    fn mark(&self, mark: ApprovalMark, id: &str, _: u64) -> Result<bool, SessionStoreError> {
        Ok(self.0.lock().unwrap().insert((mark, id.to_owned())))
    }

    fn marked(&self, mark: ApprovalMark, ids: &[&str]) -> Result<Vec<String>, SessionStoreError> {
        let marks = self.0.lock().unwrap();
        let ids = ids.iter().map(|id| (*id).to_owned());
        Ok(ids.filter(|id| marks.contains(&(mark, id.clone()))).collect())
    }
}

#[tokio::test]
async fn an_older_dump_revives_no_approval_on_another_machine_with_the_key() {
    let setup = Setup::new();
    let marks: Arc<dyn MarkStore> = Arc::new(Marks::default());
    let secret = "0123456789abcdef0123456789abcdef";
    let keys = ApprovalKeys::shared(secret, marks).unwrap();
    let here = Approvals::new(setup.store.clone(), keys.clone(), PLACE);
    let call = payment(7);
    let id = setup.parked(&call).await;
    here.approve(&id).unwrap();
    let dump = setup.folder.path().join("dump.db");
    setup.file().execute("VACUUM INTO ?1", [dump.to_str().unwrap()]).unwrap();
    assert!(setup.make_with(&call, &here).await.is_ok());
    let there = Approvals::new(Arc::new(SqliteStore::open(&dump).unwrap()), keys, PLACE);
    let again = setup.make_with(&call, &there).await;
    assert_eq!((again.code, setup.paid()), (Some(ErrorCode::AwaitingApproval), 1), "{again:?}");
    let short = ApprovalKeys::shared("short", Arc::new(Marks::default())).unwrap_err();
    assert!(short.to_string().contains("less than 32 bytes"), "{short}");
}
