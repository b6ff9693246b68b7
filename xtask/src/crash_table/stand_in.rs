//! All that the loops reach, in one HTTP server on loopback that is never killed: the model, the API
//! with the effects, and the person. It counts what arrives, and tells nothing to the loops.
//!
//! | request | response |
//! |---|---|
//! | `POST /v1/chat/completions` | the next of four responses, in the form of OpenAI's Chat Completions |
//! | `POST /effect/RUN/TOOL/KEY` | `ok`, after the effect; without a second effect if the key is known |
//! | `POST /approval/RUN` | `approved`, as soon as the model has proposed the call and a person could have read it |
//! | `POST /ended/RUN` | `ok` |

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufRead, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use regex_lite::Regex;
use tinyjson::JsonValue;

use super::{random::Random, watched::Watched};
use crate::example::{field, items, text};

/// The effects of a run, in order. A person approves the second.
pub(super) const TOOLS: [&str; 3] = ["charge", "refund", "notify"];

/// The index of the tool that a person approves.
const APPROVED: usize = 1;

/// Responses and effects take so long, and the person twice that, in milliseconds.
const MILLIS: (u64, u64) = (10, 20);

/// A process that has slept for so long since its last request does no more.
const ASLEEP: Duration = Duration::from_secs(60);

/// How often it is looked at.
const SAMPLE: Duration = Duration::from_millis(500);

/// After this time the row fails, because it cannot be judged.
const LONGEST: Duration = Duration::from_secs(3_600);

/// What arrived for one run.
#[derive(Debug, Default, Clone)]
pub(super) struct Run {
    /// How often each effect happened.
    pub(super) effects: [u64; TOOLS.len()],
    /// Whether the model was told that the outcome is unknown.
    pub(super) unknown: [bool; TOOLS.len()],
    /// How often each response was requested.
    pub(super) responses: [u64; TOOLS.len() + 1],
    pub(super) is_approved: bool,
    /// Whether the second effect happened before its approval.
    pub(super) is_unapproved: bool,
    pub(super) has_ended: bool,
}

#[derive(Default)]
struct Arrived {
    runs: HashMap<String, Run>,
    keys: HashSet<String>,
    /// The requests of the process that runs now to the model and the API.
    requests: u64,
    /// Those without a response.
    in_progress: u64,
    calls: u64,
}

#[derive(Default)]
struct Shared {
    arrived: Mutex<Arrived>,
    changed: Condvar,
}

#[derive(Clone)]
pub(super) struct StandIn {
    url: String,
    shared: Arc<Shared>,
}

impl StandIn {
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::<Shared>::default();
        let of_server = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&of_server);
                // A process that is killed breaks its connections.
                thread::spawn(move || drop(serve(&stream, &shared)));
            }
        });
        Ok(Self { url, shared })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Counts the requests of a new process.
    pub(super) fn expect_process(&self) {
        self.shared.lock().requests = 0;
    }

    /// Waits for a number of requests of the process to the model and the API, or until all runs have
    /// ended, or until it makes no more.
    pub(super) fn wait_for_requests(
        &self,
        number: u64,
        runs: &[String],
        watched: &Watched,
    ) -> io::Result<()> {
        let is_there = |arrived: &Arrived| arrived.requests >= number || have_ended(arrived, runs);
        self.shared.wait_while_it_works(watched, is_there)?;
        Ok(())
    }

    /// Waits for a time, or until all runs have ended; returns whether they have.
    pub(super) fn ends_within(&self, runs: &[String], time: Duration) -> bool {
        self.shared.wait(time, |arrived| have_ended(arrived, runs))
    }

    /// Waits until all runs have ended, or the process makes no more requests; returns whether they have
    /// ended.
    pub(super) fn ends(&self, runs: &[String], watched: &Watched) -> io::Result<bool> {
        self.shared.wait_while_it_works(watched, |arrived| have_ended(arrived, runs))
    }

    /// Returns as soon as the person has approved the call of a run.
    pub(super) fn approve(&self, run: &str) {
        approve(run, &self.shared);
    }

    pub(super) fn end(&self, run: &str) {
        self.shared.change(run, |run| run.has_ended = true);
    }

    /// What arrived for a run.
    pub(super) fn run(&self, run: &str) -> Run {
        self.shared.lock().runs.get(run).cloned().unwrap_or_default()
    }
}

fn have_ended(arrived: &Arrived, runs: &[String]) -> bool {
    runs.iter().all(|run| arrived.runs.get(run).is_some_and(|run| run.has_ended))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what arrived for a run.
    fn change<T>(&self, run: &str, change: impl FnOnce(&mut Run) -> T) -> T {
        let mut arrived = self.lock();
        let changed = change(arrived.runs.entry(run.to_owned()).or_default());
        self.changed.notify_all();
        changed
    }

    fn wait(&self, limit: Duration, is_there: impl Fn(&Arrived) -> bool) -> bool {
        let until = Instant::now() + limit;
        let mut arrived = self.lock();
        loop {
            if is_there(&arrived) {
                return true;
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else { return false };
            let waited = self.changed.wait_timeout(arrived, left);
            arrived = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for something; returns whether it is there. Gives up as soon as the process has slept for
    /// [`ASLEEP`] since its last request. Time in which it waits for a processor, for the disk or for a
    /// response does not count, so the load of the machine does not decide.
    fn wait_while_it_works(
        &self,
        watched: &Watched,
        is_there: impl Fn(&Arrived) -> bool,
    ) -> io::Result<bool> {
        let began = Instant::now();
        let (mut requests, mut slept) = (0, Duration::ZERO);
        while slept < ASLEEP {
            if self.wait(SAMPLE, &is_there) {
                return Ok(true);
            }
            if began.elapsed() > LONGEST {
                return Err(io::Error::other("a process has neither ended nor slept for an hour"));
            }
            let arrived = self.lock();
            let (has_progress, is_answered) =
                (arrived.requests != requests, arrived.in_progress == 0);
            requests = arrived.requests;
            drop(arrived);
            if has_progress {
                slept = Duration::ZERO;
            } else if is_answered && watched.sleeps() {
                slept += SAMPLE;
            }
        }
        Ok(false)
    }
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some((path, body)) = read(&mut reader)? {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let is_of_loop = matches!(parts.first(), Some(&("v1" | "effect")));
        if is_of_loop {
            let mut arrived = shared.lock();
            arrived.requests += 1;
            arrived.in_progress += 1;
            shared.changed.notify_all();
        }
        let (kind, answer) = match parts.as_slice() {
            ["v1", ..] => respond(&body, shared),
            ["effect", run, tool, key @ ..] => ("text/plain", effect(run, tool, key, shared)),
            ["approval", run] => ("text/plain", approve(run, shared)),
            ["ended", run] => {
                shared.change(run, |run| run.has_ended = true);
                ("text/plain", "ok".to_owned())
            }
            _ => ("text/plain", format!("there is no {path}")),
        };
        if is_of_loop {
            shared.lock().in_progress -= 1;
        }
        let length = answer.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
        (&*stream).write_all(format!("{head}{answer}").as_bytes())?;
    }
    Ok(())
}

/// The path and the body of the next request.
fn read(reader: &mut impl BufRead) -> io::Result<Option<(String, String)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some((path, String::from_utf8_lossy(&body).into_owned())))
}

/// The response to a conversation: the call that follows its results, or the answer. Each has a new
/// id, as those of real models have.
fn respond(body: &str, shared: &Shared) -> (&'static str, String) {
    let order = Regex::new("order ([0-9]+-[0-9]+)").ok().and_then(|order| {
        order.captures(body).and_then(|found| found.get(1)).map(|found| found.as_str().to_owned())
    });
    let request: Option<JsonValue> = body.parse().ok();
    let (Some(order), Some(request)) = (order, request) else {
        return ("text/plain", format!("this is not a request of the loop: {body}"));
    };
    let results: Vec<String> = items(&request, "messages")
        .filter(|message| text(message, "role") == Some("tool"))
        .map(|message| format!("{:?}", field(message, "content")))
        .collect();
    let number = results.len().min(TOOLS.len());
    shared.change(&order, |run| {
        if let Some(count) = run.responses.get_mut(number) {
            *count += 1;
        }
        for (unknown, result) in run.unknown.iter_mut().zip(&results) {
            *unknown |= result.contains("outcome_unknown");
        }
    });
    pause(&order, number as u64, 1);
    let id = {
        let mut arrived = shared.lock();
        arrived.calls += 1;
        arrived.calls
    };
    let (message, reason) = match TOOLS.get(number) {
        Some(tool) => (
            format!(
                r#""content":null,"tool_calls":[{{"index":0,"id":"call_{id}","type":"function","function":{{"name":"{tool}","arguments":"{{\"order\":\"{order}\"}}"}}}}]"#
            ),
            "tool_calls",
        ),
        None => (r#""content":"Done.""#.to_owned(), "stop"),
    };
    let is_stream = matches!(field(&request, "stream"), Some(JsonValue::Boolean(true)));
    let (object, field) =
        if is_stream { ("chat.completion.chunk", "delta") } else { ("chat.completion", "message") };
    let response = format!(
        r#"{{"id":"response_{id}","object":"{object}","created":1,"model":"stand-in","choices":[{{"index":0,"{field}":{{"role":"assistant",{message}}},"finish_reason":"{reason}"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
    );
    match is_stream {
        true => ("text/event-stream", format!("data: {response}\n\ndata: [DONE]\n\n")),
        false => ("application/json", response),
    }
}

/// Has an effect: a request that has arrived is carried out, even if its client is killed meanwhile.
fn effect(run: &str, tool: &str, key: &[&str], shared: &Shared) -> String {
    let Some(number) = TOOLS.iter().position(|name| *name == tool) else {
        return format!("there is no tool {tool}");
    };
    pause(run, number as u64 + 10, 2);
    let key = key.concat();
    let is_known = !key.is_empty() && !shared.lock().keys.insert(key);
    if !is_known {
        shared.change(run, |run| {
            if let Some(count) = run.effects.get_mut(number) {
                *count += 1;
            }
            run.is_unapproved |= number == APPROVED && !run.is_approved;
        });
    }
    pause(run, number as u64 + 20, 2);
    "ok".to_owned()
}

/// Approves, as soon as the call is proposed and a person could have read it.
fn approve(run: &str, shared: &Shared) -> String {
    let is_proposed = |arrived: &Arrived| {
        let responses = arrived.runs.get(run).and_then(|run| run.responses.get(APPROVED));
        responses.is_some_and(|count| *count > 0)
    };
    // As long as a run may take: no machine is too slow for its person.
    if !shared.wait(LONGEST, is_proposed) {
        return "the model has not proposed it".to_owned();
    }
    pause(run, 30, 1);
    pause(run, 31, 1);
    shared.change(run, |run| run.is_approved = true);
    "approved".to_owned()
}

/// Takes the time of a response, or a part of it: the same for the same run and number.
fn pause(run: &str, number: u64, part: u64) {
    let seed = run.bytes().fold(number, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
    let (least, more) = MILLIS;
    thread::sleep(Duration::from_millis((least + Random::of(seed).below(more)) / part));
}
