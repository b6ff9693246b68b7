use toolcrib_store::SqliteStore;
use toolcrib_testing::stores::{
    check_approval_store, check_kv_store, check_limit_store, check_session_store, check_usage_store,
};

#[test]
fn both_stores_obey_the_contract() {
    check_session_store(&SqliteStore::in_memory().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteStore::open(folder.path().join("sessions.db")).unwrap();
    check_session_store(&file).unwrap();
    check_approval_store(&file).unwrap();
    check_approval_store(&SqliteStore::in_memory().unwrap()).unwrap();
    check_usage_store(&file).unwrap();
    check_usage_store(&SqliteStore::in_memory().unwrap()).unwrap();
    check_kv_store(&file).unwrap();
    check_limit_store(&file).unwrap();
    check_kv_store(&SqliteStore::in_memory().unwrap()).unwrap();
}
