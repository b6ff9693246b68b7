//! Transactions: whole or not at all, cancelled in time, never on the runtime's threads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::database::{Database, DatabaseError, TransactionEnd, rusqlite};

use crate::support::{ENDLESS, Folder, REFUND_ONCE, refunds, run};

const INSERT: &str = "INSERT INTO refunds VALUES (1, 1)";

fn endless(connection: &rusqlite::Connection) -> rusqlite::Result<i64> {
    connection.query_row(ENDLESS, [], |row| row.get(0))
}

#[tokio::test]
async fn only_what_is_committed_stays() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    let writable = database.writable();
    let cancel = CancellationToken::new();
    let rolled_back = writable
        .transaction(&cancel, |c| c.execute(INSERT, []).map(TransactionEnd::RollBack))
        .await
        .unwrap();
    assert_eq!((rolled_back, refunds(&database).await), (1, 0));
    let failed = run(&writable, |c| {
        c.execute(INSERT, [])?;
        c.execute("INSERT INTO refunds VALUES (NULL, 1)", [])
    });
    let failed = failed.await.unwrap_err();
    assert_eq!(failed.to_string(), "database `desk`: NOT NULL constraint failed: refunds.order_id");
    assert_eq!(refunds(&database).await, 0);
    run(&writable, |c| c.execute(INSERT, [])).await.unwrap();
    assert_eq!(refunds(&database).await, 1);
}

#[tokio::test]
async fn a_panic_undoes_what_was_done_and_reaches_the_caller() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    let writable = database.writable();
    let panicked = tokio::spawn({
        let writable = writable.clone();
        async move {
            run(&writable, |c| -> rusqlite::Result<()> {
                c.execute(INSERT, [])?;
                panic!("in the middle");
            })
            .await
        }
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(refunds(&database).await, 0);
    run(&writable, |c| c.execute(INSERT, [])).await.unwrap();
    assert_eq!(refunds(&database).await, 1);
}

#[tokio::test]
async fn a_commit_that_fails_is_undone_and_the_connection_serves_on() {
    let folder = Folder::seeded(
        "CREATE TABLE a (x PRIMARY KEY);
         CREATE TABLE b (x REFERENCES a DEFERRABLE INITIALLY DEFERRED);",
    );
    let writable = folder.open().unwrap().writable();
    let failed = run(&writable, |c| c.execute("INSERT INTO b VALUES (1)", [])).await;
    assert!(failed.unwrap_err().to_string().contains("FOREIGN KEY constraint failed"));
    let left: u32 = run(&writable, |c| {
        c.execute("INSERT INTO a VALUES (1)", [])?;
        c.query_row("SELECT count(*) FROM b", [], |row| row.get(0))
    })
    .await
    .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn an_endless_statement_ends_with_its_cancellation_and_the_pool_serves_on() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    for handle in [database.read_only(), database.writable()] {
        for _ in 0..6 {
            let cancel = CancellationToken::new();
            let running = handle.transaction(&cancel, |c| endless(c).map(TransactionEnd::Commit));
            let stop = async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                cancel.cancel();
            };
            let (outcome, ()) = tokio::join!(running, stop);
            assert!(matches!(outcome, Err(DatabaseError::Cancelled { .. })), "{outcome:?}");
        }
    }
    run(&database.writable(), |c| c.execute(INSERT, [])).await.unwrap();
    assert_eq!(refunds(&database).await, 1);
}

#[tokio::test]
async fn a_future_that_is_dropped_stops_its_statement_and_gives_the_write_lock_back() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    let writable = database.writable();
    let endless = run(&writable, |c| {
        c.execute(INSERT, [])?;
        endless(c)
    });
    assert!(tokio::time::timeout(Duration::from_millis(20), endless).await.is_err());
    // Waits for the lock, and gets it.
    run(&writable, |c| c.execute(INSERT, [])).await.unwrap();
    assert_eq!(refunds(&database).await, 1);
}

#[tokio::test]
async fn what_is_cancelled_before_the_commit_is_not_committed() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    let cancel = CancellationToken::new();
    let canceller = cancel.clone();
    let outcome = database
        .writable()
        .transaction(&cancel, move |c| {
            let changed = c.execute(INSERT, [])?;
            canceller.cancel();
            Ok(TransactionEnd::Commit(changed))
        })
        .await;
    assert!(matches!(outcome, Err(DatabaseError::Cancelled { .. })), "{outcome:?}");
    let outcome =
        database.writable().transaction(&cancel, |_| Ok(TransactionEnd::Commit(()))).await;
    assert!(matches!(outcome, Err(DatabaseError::Cancelled { .. })), "{outcome:?}");
    assert_eq!(refunds(&database).await, 0);
}

#[tokio::test]
async fn waiting_for_another_writer_is_cancelled() {
    let folder = Folder::new();
    let (first, second) = (folder.open().unwrap(), folder.open().unwrap());
    let (release, released) = mpsc::channel::<()>();
    let (began, begun) = tokio::sync::oneshot::channel();
    let holder = tokio::spawn({
        let writable = first.writable();
        async move {
            run(&writable, move |c| {
                c.execute(INSERT, [])?;
                began.send(()).unwrap();
                released.recv().unwrap();
                Ok(())
            })
            .await
        }
    });
    begun.await.unwrap();
    let cancel = CancellationToken::new();
    let writable = second.writable();
    let waiting = writable.transaction(&cancel, |_| Ok(TransactionEnd::Commit(())));
    let stop = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(waiting, stop);
    assert!(matches!(outcome, Err(DatabaseError::Cancelled { .. })), "{outcome:?}");
    release.send(()).unwrap();
    holder.await.unwrap().unwrap();
    assert_eq!(refunds(&second).await, 1);
}

#[tokio::test]
async fn a_reader_sees_one_state_whatever_is_written_meanwhile() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    let (read_once, first_read) = tokio::sync::oneshot::channel();
    let (write_done, written) = mpsc::channel::<()>();
    let reader = tokio::spawn({
        let reader = database.read_only();
        async move {
            run(&reader, move |c| {
                // Nothing of the table was read before the write: the snapshot is the beginning's.
                read_once.send(()).unwrap();
                written.recv().unwrap();
                c.query_row("SELECT count(*) FROM refunds", [], |row| row.get::<_, u32>(0))
            })
            .await
        }
    });
    first_read.await.unwrap();
    run(&database.writable(), |c| c.execute(INSERT, [])).await.unwrap();
    write_done.send(()).unwrap();
    assert_eq!(reader.await.unwrap().unwrap(), 0);
    assert_eq!(refunds(&database).await, 1);
}

/// On the runtime's one thread: were it blocked, no beat would come, and no read would end.
#[tokio::test(flavor = "current_thread")]
async fn sixteen_reads_at_once_do_not_stop_the_runtime() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    let beats = Arc::new(AtomicUsize::new(0));
    let reads: Vec<_> = (0..16)
        .map(|_| {
            let (reader, beats) = (database.read_only(), Arc::clone(&beats));
            tokio::spawn(async move {
                run(&reader, move |c| {
                    while beats.load(Ordering::Relaxed) < 20 {
                        thread::sleep(Duration::from_millis(1));
                    }
                    c.query_row("SELECT count(*) FROM mark", [], |row| row.get::<_, u32>(0))
                })
                .await
            })
        })
        .collect();
    let heart = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            beats.fetch_add(1, Ordering::Relaxed);
        }
    });
    for read in reads {
        assert_eq!(read.await.unwrap().unwrap(), 1);
    }
    heart.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_concurrent_writers_inserts_the_row() {
    let folder = Folder::new();
    let databases: Vec<Database> = (0..4).map(|_| folder.open().unwrap()).collect();
    let writers: Vec<_> = (0..16)
        .map(|number| {
            let writable = databases[number % databases.len()].writable();
            tokio::spawn(async move { run(&writable, |c| c.execute(REFUND_ONCE, [])).await })
        })
        .collect();
    let mut inserted = 0;
    for writer in writers {
        inserted += writer.await.unwrap().unwrap();
    }
    assert_eq!(inserted, 1);
    assert_eq!(refunds(&databases[0]).await, 1);
}
