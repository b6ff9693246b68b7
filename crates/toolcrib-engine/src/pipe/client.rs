//! The client of a call: the servers that a call reaches may ask it, within the policy, a few times
//! per call, and without using up the time of the call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolcrib_core::{
    BoxFuture, ClientAbilities, ClientPort, ClientRefusal, Effect, PolicyDefault, RuleMatch,
};

use crate::compose::{Situation, Visibility};

/// The limit of requests of servers per call.
const MOST_REQUESTS: usize = 16;

/// The toolsets by which rules name the requests of servers.
const ELICITATION: &str = "mcp.elicitation";
const SAMPLING: &str = "mcp.sampling";
const ROOTS: &str = "mcp.roots";

/// Counts the time that a call waits for its client. It does not count towards the call's deadline.
#[derive(Default)]
pub(crate) struct ClientWait(Mutex<WaitTime>);

#[derive(Default)]
struct WaitTime {
    /// The number of present waits, and the beginning of the first.
    waiting: usize,
    since: Option<Instant>,
    before: Duration,
}

impl ClientWait {
    /// The time so far.
    pub(super) fn so_far(&self) -> Duration {
        let waited = self.0.lock();
        waited.before + waited.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    pub(crate) fn begin(self: &Arc<Self>) -> WaitGuard {
        let mut waited = self.0.lock();
        waited.waiting += 1;
        waited.since.get_or_insert_with(Instant::now);
        WaitGuard(Arc::clone(self))
    }
}

/// A wait, until it is dropped.
pub(crate) struct WaitGuard(Arc<ClientWait>);

impl Drop for WaitGuard {
    fn drop(&mut self) {
        let mut waited = self.0.0.lock();
        waited.waiting -= 1;
        if waited.waiting == 0
            && let Some(since) = waited.since.take()
        {
            waited.before += since.elapsed();
        }
    }
}

/// A client as the servers of a call see it: limited by the policy.
pub(crate) struct RuledClient {
    client: Arc<dyn ClientPort>,
    visibility: Arc<Visibility>,
    situation: Situation,
    wait: Arc<ClientWait>,
    made: AtomicUsize,
}

impl RuledClient {
    pub(crate) fn new(
        client: &Arc<dyn ClientPort>,
        visibility: &Arc<Visibility>,
        situation: Situation,
        wait: Arc<ClientWait>,
    ) -> Self {
        Self {
            client: Arc::clone(client),
            visibility: Arc::clone(visibility),
            situation,
            wait,
            made: AtomicUsize::new(0),
        }
    }

    /// Whether the rules permit a kind of request to a server. Elicitation is permitted unless a
    /// rule denies it. For the others a client may require a rule that names the toolset and the
    /// server.
    fn permits(&self, server: &str, toolset: &'static str) -> bool {
        let visibility = &self.visibility;
        let is_explicit = toolset != ELICITATION && self.client.needs_rule();
        if visibility.policy.rules.is_empty() && !is_explicit {
            return visibility.policy.default == PolicyDefault::Allow;
        }
        let Some(asks) = visibility.requests.tool(server, toolset) else { return false };
        let facts = self.situation.facts();
        if facts.personality.objection(&asks).is_some() {
            return false;
        }
        let ruling = visibility.judge(&asks, facts);
        // By its own name: a rule for any toolset, or any server, was written with tools in mind.
        let names_it = |ruling: &RuleMatch<'_>| {
            ruling.rule().is_some_and(|rule| {
                let tools = &rule.tools;
                let names_server = [&tools.mcp_servers, &tools.origins, &tools.names];
                tools.toolsets.iter().any(|glob| glob.as_str() == toolset)
                    && names_server.into_iter().any(|globs| !globs.is_empty())
            })
        };
        ruling.effect() == Effect::Allow && (!is_explicit || names_it(&ruling))
    }
}

impl ClientPort for RuledClient {
    fn abilities(&self, server: &str) -> ClientAbilities {
        let mut can = self.client.abilities(server);
        if can == ClientAbilities::default() {
            return can;
        }
        if (can.elicitation_form || can.elicitation_url) && !self.permits(server, ELICITATION) {
            (can.elicitation_form, can.elicitation_url) = (false, false);
        }
        if !(can.sampling && self.permits(server, SAMPLING)) {
            (can.sampling, can.sampling_tools, can.sampling_context) = (false, false, false);
        }
        if !(can.roots && self.permits(server, ROOTS)) {
            (can.roots, can.roots_changes) = (false, false);
        }
        can
    }

    fn key(&self) -> usize {
        self.client.key()
    }

    fn meta(&self) -> Option<&Map<String, Value>> {
        self.client.meta()
    }

    fn log_level(&self) -> Option<&'static str> {
        self.client.log_level()
    }

    fn shows_required_urls(&self) -> bool {
        self.client.shows_required_urls()
    }

    fn request(
        &self,
        server: Arc<str>,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        let refused = |problem: String| -> BoxFuture<'static, _> {
            Box::pin(async move { Err(ClientRefusal::not_supported(problem)) })
        };
        let can = self.abilities(&server);
        for request in requests.values() {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let is_url = request.pointer("/params/mode").and_then(Value::as_str) == Some("url");
            let is_possible = match method {
                "elicitation/create" if is_url => can.elicitation_url,
                "elicitation/create" => can.elicitation_form,
                "sampling/createMessage" => can.sampling,
                "roots/list" => can.roots,
                _ => false,
            };
            if !is_possible {
                let method: String = method.chars().take(64).collect();
                return refused(format!("this client was not declared to answer `{method}`"));
            }
        }
        if self.made.fetch_add(requests.len(), Ordering::Relaxed) + requests.len() > MOST_REQUESTS {
            return refused(format!(
                "a call may send {MOST_REQUESTS} requests, and this is one more"
            ));
        }
        let waiting = self.wait.begin();
        let answer = self.client.request(server, requests);
        Box::pin(async move {
            let answer = answer.await;
            drop(waiting);
            answer
        })
    }

    fn log(&self, server: &str, message: Value) {
        self.client.log(server, message);
    }
}
