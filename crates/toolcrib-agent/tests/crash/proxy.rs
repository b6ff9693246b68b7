//! A proxy that cuts connections at any byte.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    thread,
};

use crate::script::Random;

/// The largest number of bytes after which a connection is cut, of both directions together.
const MOST_BYTES: u64 = 120_000;

pub(crate) struct Proxy {
    pub(crate) port: u16,
    pub(crate) cuts: Arc<AtomicU64>,
}

impl Proxy {
    /// Passes connections on to a port, and cuts every other one.
    pub(crate) fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&cuts);
        thread::spawn(move || {
            let mut random = Random::of(7);
            for client in listener.incoming().flatten() {
                // Without a server, the connection is closed.
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let left = match random.below(2) {
                    0 => i64::MAX,
                    _ => random.below(MOST_BYTES).try_into().unwrap(),
                };
                let left = Arc::new(AtomicI64::new(left));
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (left, cuts) = (Arc::clone(&left), Arc::clone(&counted));
                    thread::spawn(move || pump(from, to, &left, &cuts));
                }
            }
        });
        Self { port, cuts }
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, left: &AtomicI64, cuts: &AtomicU64) {
    let mut bytes = [0; 16_384];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        let before = left.fetch_sub(read.try_into().unwrap(), Ordering::SeqCst);
        let passes = usize::try_from(before).unwrap_or_default().min(read);
        if to.write_all(&bytes[..passes]).is_err() {
            break;
        }
        if passes < read {
            cuts.fetch_add(u64::from(before > 0), Ordering::SeqCst);
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
