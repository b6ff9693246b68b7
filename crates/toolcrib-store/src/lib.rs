//! ```
//! use std::time::Duration;
//! use toolcrib_core::{Message, NewSession, SessionOwner, SessionRecord, SessionStore as _};
//! use toolcrib_store::SqliteStore;
//!
//! let store = SqliteStore::in_memory()?;
//! let owner = SessionOwner { tenant: None, principal: Some("ann".into()) };
//! let new = NewSession { owner: owner.clone(), name: None, personality: "default".into() };
//! let session = store.create(&new)?;
//! let lease = store.acquire(&owner, &session.id, Duration::from_secs(10))?;
//! store.write(&lease, 0, &[
//!     SessionRecord::TurnBegan {
//!         model: "openai:gpt-5".into(),
//!         title: "Hello".into(),
//!         skills: Vec::new(),
//!     },
//!     SessionRecord::Message(Message::user("Hello")),
//! ])?;
//! assert_eq!(store.read(&owner, &session.id)?.messages[0].message, Message::user("Hello"));
//! # Ok::<(), toolcrib_core::SessionStoreError>(())
//! ```
//!
//! Stores for sessions: conversations that outlive the process, with their turns, messages and
//! calls, calls that wait for approval, sums of usage, and keys and values of tools. [`SqliteStore`] is one
//! file that several processes may share, or in memory for tests and for programs that keep nothing. It
//! implements [`SessionStore`](toolcrib_core::SessionStore), [`ApprovalStore`](toolcrib_core::ApprovalStore),
//! [`UsageStore`](toolcrib_core::UsageStore) and [`KvStore`](toolcrib_core::KvStore); `toolcrib_testing::stores` tests
//! any implementation.
//!
//! # Layers
//!
//! - `sqlite`: a store in one SQLite file, or in memory.
//! - `postgres`: a store in a PostgreSQL database.
//! - `unsaved`: keys and values that no row can have, in memory.
//! - `usage`: sums of usage.
//! - `session`: the rules that all stores share.
//! - `frozen`: the stored form of a message.

mod frozen;
#[cfg(feature = "postgres")]
mod postgres;
mod session;
mod sqlite;
mod unsaved;
mod usage;

#[cfg(feature = "postgres")]
pub use self::postgres::{PostgresMarks, PostgresStore, ServerFinding};
pub use self::sqlite::SqliteStore;
