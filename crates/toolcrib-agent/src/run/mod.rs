//! A run: one message, up to the answer. The loop is the engine's; what a run does in it, a step per
//! function: `run → drive → (step → ask)* → ask_without_calls`.

mod ask;
mod looping;
mod noticed;
mod prefix;
mod recover;
mod report;
mod said;
mod talk;

use std::{collections::HashMap, future::IntoFuture, sync::Arc, time::Instant};

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use toolcrib_core::{
    DiscoveryError, Event, EventStream, FENCE_NOTICE, Identity, Message, SkillId, Subscription,
    UnknownEventError, Usage,
};
use toolcrib_engine::{
    Engine, IterationError, Personality, Skills, Turn, TurnEnd, TurnError, TurnFailure,
};

pub(crate) use self::prefix::Conversations;
use self::{
    looping::{Ending, Looping},
    prefix::Prefix,
    report::Report,
    talk::Talk,
};
use crate::{
    models::Models,
    options::{RunOptions, Settings},
    outcome::{RunError, RunOutcome, Stopped},
};

/// What all runs of an agent share.
pub(crate) struct AgentParts {
    pub(crate) engine: Engine,
    pub(crate) models: Models,
    /// The models of personalities that have one of their own, by personality.
    pub(crate) personality_models: PersonalityModels,
    pub(crate) settings: Settings,
    pub(crate) conversations: Arc<Conversations>,
}

pub(crate) type PersonalityModels = HashMap<Arc<str>, Models>;

impl AgentParts {
    /// The models of a personality; `None` when it names one that the agent was not given. One that
    /// names its model is asked of no other: what it may be told is not for the others.
    fn models_of(&self, personality: &Personality) -> Option<&Models> {
        match personality.model {
            None => Some(&self.models),
            Some(_) => self.personality_models.get(&personality.id),
        }
    }
}

/// A run that is prepared: listen to it, then await it.
#[must_use = "a run does nothing until it is awaited"]
pub struct Run {
    agent: Arc<AgentParts>,
    message: Arc<str>,
    options: RunOptions,
}

impl Run {
    pub(crate) fn new(agent: Arc<AgentParts>, message: Arc<str>, options: RunOptions) -> Self {
        Self { agent, message, options }
    }

    /// This run's events as a queue that ends with the run; see
    /// [`Events::stream`](toolcrib_core::Events::stream).
    pub fn events(&self) -> EventStream {
        self.options.turn.events.stream()
    }

    /// Listens to this run alone; see [`Events::on`](toolcrib_core::Events::on).
    ///
    /// # Errors
    /// [`UnknownEventError`] when no event has such a name.
    pub fn on(
        &self,
        pattern: impl Into<Arc<str>>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Subscription, UnknownEventError> {
        self.options.turn.events.on(pattern, listener)
    }
}

impl IntoFuture for Run {
    type Output = RunOutcome;
    type IntoFuture = BoxFuture<'static, RunOutcome>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { run(&self.agent, self.message, self.options).await })
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Runs one message to its end.
async fn run(agent: &AgentParts, message: Arc<str>, options: RunOptions) -> RunOutcome {
    let began = Instant::now();
    let RunOptions { turn, history: mut messages, tool_choices, turn_timeout } = options;
    let conversation = turn.conversation.clone();
    let allowed = turn_timeout.unwrap_or(agent.settings.turn_timeout);
    let skills = turn.skills.clone();
    messages.push(Message::User { text: Arc::clone(&message) });
    let turn = match agent.engine.turn(turn) {
        Ok(turn) => turn,
        Err(error) => return never_began(code_of(&error), &error.to_string(), messages, began),
    };
    let personality = Arc::clone(turn.personality());
    let Some(models) = agent.models_of(&personality) else {
        let problem = no_model(&personality);
        return never_began("no_model", &problem, messages, began);
    };
    let system = personality.system.as_ref().unwrap_or(&agent.settings.system);
    let system = system_text(turn.skills(), system, &skills);

    let conversation = conversation.map(|_| Arc::clone(turn.events().identity()));
    let prefix = Prefix::new(&agent.conversations, conversation.as_deref(), &system, &messages);
    let report = Report::new(&turn, began);
    let recovery = turn.recovery().cloned();
    let talk = Talk::new(agent, models, system, messages, report, recovery, prefix);
    talk.report.began(
        &agent.engine.redactor().text(&message),
        models.first().name(),
        &personality.id,
    );
    let looping = Looping::new(talk, tool_choices);
    let mut running = Running { turn, looping, conversation };

    // Time that is up ends the run as cancellation does: nothing is cut off in the middle.
    let cancellation = running.turn.cancellation().clone();
    let mut time_is_up = false;
    let ending = {
        let mut iterations = std::pin::pin!(running.drive());
        tokio::select! {
            biased;
            ending = &mut iterations => ending,
            () = sleep(allowed) => {
                time_is_up = true;
                cancellation.cancel();
                iterations.await
            }
        }
    };
    running.settle(match ending {
        Ending::Cancelled if time_is_up => Ending::TimedOut(allowed),
        ending => ending,
    })
}

/// The system text of a run; it does not change until the run ends.
fn system_text(known: &Skills, system: &str, skills: &[SkillId]) -> Arc<str> {
    let mut parts = vec![system.trim().to_owned(), FENCE_NOTICE.to_owned()];
    // One that is named twice is active once, where it was named last.
    let last = |at: usize, id: &SkillId| !skills.iter().skip(at + 1).any(|later| later == id);
    let active = skills
        .iter()
        .enumerate()
        .filter(|(at, id)| last(*at, id))
        .filter_map(|(_, id)| known.get(id));
    parts.extend(active.map(|skill| {
        format!("Skill `{}` is active. Its instructions:\n\n{}", skill.id, skill.instructions())
    }));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n").into()
}

/// Why a personality's model cannot be used.
pub(crate) fn no_model(personality: &Personality) -> String {
    format!(
        "personality `{}` has the model `{}`, which this agent was not given; give it with \
         `AgentBuilder::personality_model`",
        personality.id(),
        personality.model.as_deref().unwrap_or_default()
    )
}

fn code_of(error: &TurnError) -> &'static str {
    match error {
        TurnError::UnknownSkill { .. }
        | TurnError::SkillOutOfReach { .. }
        | TurnError::SkillRefused { .. } => "unknown_skill",
        TurnError::UnknownPersonality { .. } => "unknown_personality",
        _ => "turn_failed",
    }
}

fn never_began(
    code: &'static str,
    problem: &str,
    messages: Vec<Message>,
    began: Instant,
) -> RunOutcome {
    RunOutcome {
        run_id: Arc::default(),
        stopped: Stopped::Failed,
        answer: None,
        error: Some(RunError::new(code, problem)),
        iterations: 0,
        tool_calls: Vec::new(),
        usage: Usage::NOTHING,
        stop: None,
        menus: Vec::new(),
        messages: Arc::new(messages),
        duration: began.elapsed(),
    }
}

/// The state of one run.
struct Running<'a> {
    turn: Turn,
    looping: Looping<'a>,
    /// Whose conversation it is, if the caller named it.
    conversation: Option<Arc<Identity>>,
}

impl Running<'_> {
    /// Until the model answers, or there are no iterations left.
    async fn drive(&mut self) -> Ending {
        let max_iterations = self.looping.talk.agent.settings.max_iterations;
        let end = self.turn.drive(&mut self.looping, max_iterations).await;
        match (end, self.looping.ending.take()) {
            (TurnEnd::Failed(failure), _) => failed(&failure),
            (_, Some(ending)) => ending,
            // A middleware said so.
            (TurnEnd::Acked, None) => Ending::Answered(self.looping.talk.said_last()),
            (TurnEnd::Nacked(error), None) => {
                Ending::Failed(RunError::new("turn_failed", error.to_string()))
            }
            _ => Ending::Cancelled,
        }
    }

    fn settle(self, ending: Ending) -> RunOutcome {
        let Self { mut turn, looping: Looping { mut talk, menus, .. }, conversation } = self;
        turn.end();
        let (stopped, answer, error) = match ending {
            Ending::Answered(answer) => (Stopped::Answered, Some(answer), None),
            Ending::OutOfIterations(answer) => (Stopped::MaxIterations, Some(answer), None),
            Ending::Cancelled => (Stopped::Cancelled, None, None),
            Ending::TimedOut(allowed) => {
                let message = format!("the run did not end within {allowed:?} and was stopped");
                let error = RunError::new("timeout", message);
                (Stopped::Timeout, None, Some(error))
            }
            Ending::Failed(error) => {
                let message = talk.agent.engine.redactor().text(&error.message).into_owned();
                (Stopped::Failed, None, Some(RunError { message, ..error }))
            }
        };
        let answered = answer.is_some();
        talk.report.iterations = turn.iterations();
        talk.report.over(stopped, answer.as_ref(), error.as_ref());
        talk.prefix.keep(&talk.agent.conversations, conversation, &talk.messages);
        RunOutcome {
            run_id: Arc::clone(turn.run_id()),
            stopped,
            answer,
            error,
            iterations: turn.iterations(),
            tool_calls: talk.tool_calls,
            usage: talk.report.usage,
            stop: talk.stop.filter(|_| answered),
            menus,
            messages: talk.messages,
            duration: talk.report.began.elapsed(),
        }
    }
}

fn failed(failure: &TurnFailure) -> Ending {
    match failure {
        TurnFailure::Iteration(error) => failed_to_begin(error),
        TurnFailure::Halted(halt) => Ending::Failed(RunError::halted(halt)),
        TurnFailure::Middleware(error) => {
            let component = Some(error.middleware.to_string());
            Ending::Failed(RunError {
                component,
                ..RunError::new("middleware_failed", error.to_string())
            })
        }
        _ => Ending::Failed(RunError::new("turn_failed", failure.to_string())),
    }
}

fn failed_to_begin(error: &IterationError) -> Ending {
    let (code, component) = match error {
        IterationError::Cancelled => return Ending::Cancelled,
        IterationError::Reliability(given_up) => {
            let provider = given_up.cause.downcast_ref().and_then(DiscoveryError::provider);
            let component = provider.unwrap_or(&given_up.gave_up.provider).to_owned();
            let failed = RunError::new("discovery_failed", error.to_string());
            let failed = RunError { component: Some(component), ..failed };
            return Ending::Failed(failed.given_up(&given_up.gave_up));
        }
        IterationError::Discovery(error) => {
            ("discovery_failed", error.provider().map(str::to_owned))
        }
        IterationError::Collision(_) => ("name_collision", None),
        IterationError::Skill(_) => ("unknown_skill", None),
        _ => ("iteration_failed", None),
    };
    Ending::Failed(RunError { component, ..RunError::new(code, error.to_string()) })
}
