use std::{
    collections::{HashMap, HashSet},
    io,
    sync::Arc,
};

use parking_lot::Mutex;

/// Keeps a record locked until it is dropped.
pub type TokenLock = Box<dyn Send>;

/// A store of tokens, one record per server and identity. A record is a text of JSON that contains
/// secrets; a key is 64 hexadecimal digits.
///
/// The methods, and the drop of a lock, are called from threads that may block.
pub trait TokenStore: Send + Sync + 'static {
    /// A record.
    ///
    /// # Errors
    /// If it exists and cannot be read, or others could have written it.
    fn read(&self, key: &str) -> io::Result<Option<String>>;

    /// Replaces a record as a whole, or removes it. The caller has its lock.
    ///
    /// # Errors
    /// If it cannot be written.
    fn write(&self, key: &str, record: Option<&str>) -> io::Result<()>;

    /// Locks a record, without waiting; `None` while another task or process has the lock.
    ///
    /// # Errors
    /// If it cannot be locked.
    fn try_lock(&self, key: &str) -> io::Result<Option<TokenLock>>;
}

/// Tokens in memory: they end with the process.
#[derive(Clone, Default)]
pub struct MemoryTokens(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    records: HashMap<String, String>,
    locked: HashSet<String>,
}

struct MemoryLock {
    key: String,
    memory: Arc<Mutex<Memory>>,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.memory.lock().locked.remove(&self.key);
    }
}

impl MemoryTokens {
    /// The keys of its records.
    pub fn keys(&self) -> Vec<String> {
        self.0.lock().records.keys().cloned().collect()
    }
}

impl TokenStore for MemoryTokens {
    fn read(&self, key: &str) -> io::Result<Option<String>> {
        Ok(self.0.lock().records.get(key).cloned())
    }

    fn write(&self, key: &str, record: Option<&str>) -> io::Result<()> {
        let records = &mut self.0.lock().records;
        match record {
            Some(record) => records.insert(key.to_owned(), record.to_owned()),
            None => records.remove(key),
        };
        Ok(())
    }

    fn try_lock(&self, key: &str) -> io::Result<Option<TokenLock>> {
        let is_free = self.0.lock().locked.insert(key.to_owned());
        let lock = || MemoryLock { key: key.to_owned(), memory: Arc::clone(&self.0) };
        Ok(is_free.then(|| Box::new(lock()) as TokenLock))
    }
}
