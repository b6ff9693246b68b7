//! Effects that outlive a process, and their counts.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::Arc,
    thread,
};

use parking_lot::Mutex;
use rusqlite::Connection;

/// The number of effects by tool and key.
pub(crate) type Effects = HashMap<(String, String), u32>;

/// Has the effect of a tool.
pub(crate) fn perform(dir: &Path, address: &str, tool: &str, key: &str) {
    match tool {
        "append" | "wire" => {
            let path = dir.join("effects.txt");
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(format!("{tool} {key}\n").as_bytes()).unwrap();
        }
        "insert" => {
            let insert = "CREATE TABLE IF NOT EXISTS effects (key TEXT)";
            let connection = Connection::open(dir.join("effects.db")).unwrap();
            connection.execute_batch(insert).unwrap();
            connection.execute("INSERT INTO effects VALUES (?1)", [key]).unwrap();
        }
        "post" | "put" => {
            let (host, path) = address.split_once('/').unwrap();
            let mut stream = TcpStream::connect(host).unwrap();
            let request = format!(
                "POST /{path}/{tool}/{key} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        }
        _ => {}
    }
}

/// The effects in a folder.
pub(crate) fn in_folder(dir: &Path) -> Effects {
    let mut effects = Effects::new();
    let mut add = |tool: &str, key: &str| {
        *effects.entry((tool.to_owned(), key.to_owned())).or_default() += 1;
    };
    let appended = fs::read_to_string(dir.join("effects.txt")).unwrap_or_default();
    let effects_of = appended.lines().filter_map(|line| line.split_once(' '));
    effects_of.for_each(|(tool, key)| add(tool, key));
    if let Ok(connection) = Connection::open(dir.join("effects.db"))
        && let Ok(mut rows) = connection.prepare("SELECT key FROM effects")
    {
        let keys = rows.query_map([], |row| row.get::<_, String>(0)).unwrap();
        keys.for_each(|key| add("insert", &key.unwrap()));
    }
    effects
}

/// An HTTP server that counts requests by path: `/SCHEDULE/TOOL/KEY`.
pub(crate) struct Counter {
    address: String,
    counts: Arc<Mutex<HashMap<String, Effects>>>,
}

impl Counter {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let counts = Arc::<Mutex<HashMap<String, Effects>>>::default();
        let counted = Arc::clone(&counts);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let counts = Arc::clone(&counted);
                thread::spawn(move || count(&stream.unwrap(), &counts));
            }
        });
        Self { address, counts }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn of(&self, schedule: &str) -> Effects {
        self.counts.lock().remove(schedule).unwrap_or_default()
    }
}

fn count(stream: &TcpStream, counts: &Mutex<HashMap<String, Effects>>) {
    let mut lines = BufReader::new(stream).lines();
    // A client that was killed sends nothing, or a part.
    let Some(Ok(first)) = lines.next() else { return };
    let is_whole = lines.any(|line| line.is_ok_and(|line| line.is_empty()));
    if !is_whole {
        return;
    }
    let mut parts = first.split([' ', '/']).skip(2).map(str::to_owned);
    let (schedule, tool, key) =
        (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    *counts.lock().entry(schedule).or_default().entry((tool, key)).or_default() += 1;
    let response = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    let mut stream = stream;
    let _ = stream.write_all(response.as_bytes());
}
