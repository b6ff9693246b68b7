//! Requests that go on from a history, held to what each vendor's API takes.

use toolcrib_agent::{Agent, EndReason, RunOptions};
use toolcrib_core::Message;
use toolcrib_models::Vendor;
use toolcrib_testbed::CannedServer;

use super::{
    accepted, agent, in_time, stream, vendor_model,
    wire::{self, Answer},
};

/// Models by which an adapter tells what it may send: servers of other people's, OpenAI's own, and
/// Gemini's that want signatures.
const MODELS: [(Vendor, &str); 6] = [
    (Vendor::OpenAi, "test-model"),
    (Vendor::OpenAi, "gpt-5.1"),
    (Vendor::Anthropic, "test-model"),
    (Vendor::Gemini, "gemini-2.5-flash"),
    (Vendor::Gemini, "gemini-3.8-flash"),
    (Vendor::Ollama, "test-model"),
];

/// A server for each model, and agents over it.
pub(super) struct Targets(Vec<Target>);

struct Target {
    vendor: Vendor,
    model: &'static str,
    server: CannedServer,
    /// With the tools of these tests, and with none.
    agents: [Agent; 2],
}

impl Targets {
    pub(super) async fn start() -> Self {
        let mut targets = Vec::new();
        for (vendor, model) in MODELS {
            let reply = stream(vendor, &wire::frames(vendor, &Answer::text(&["Understood."])));
            let server = CannedServer::start(std::iter::repeat(reply)).await.unwrap();
            let over = || vendor_model(&server.url(), vendor, model).build().unwrap();
            let bare = Agent::builder().model(over()).build().unwrap();
            let agents = [agent(over()).build().unwrap(), bare];
            targets.push(Target { vendor, model, server, agents });
        }
        Self(targets)
    }

    /// Fails unless each API takes the history with one more message of the user's.
    pub(super) async fn accept(&self, history: &[Message]) {
        for Target { vendor, model, server, agents } in &self.0 {
            for (agent, tools) in agents.iter().zip(["with tools", "without tools"]) {
                let options = RunOptions::default().history(history.to_vec());
                let outcome = in_time(agent.run("Go on.", options)).await;
                let sent = server.recorder().last().unwrap().json().unwrap();
                let accepted = accepted::check(*vendor, model, &sent);
                assert_eq!(
                    (outcome.end_reason, &accepted),
                    (EndReason::Answered, &Ok(())),
                    "{vendor} {model} {tools}: {:?}\n{history:#?}\n{sent}",
                    outcome.error,
                );
                server.recorder().clear();
            }
        }
    }
}
