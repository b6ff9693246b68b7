//! A run: one message, up to the answer. The loop, a step per function:
//! `run → iterate → step* → ask_without_calls`.

mod ask;
mod noticed;
mod prefix;
mod report;
mod said;
mod talk;

use std::{
    future::IntoFuture,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use toolcrib_core::{
    Event, EventKind, EventStream, FENCE_NOTICE, Identity, Menu, Message, Model, SkillId,
    Subscription, ToolChoice, Usage,
};
use toolcrib_engine::{Engine, IterationError, Turn};

pub(crate) use self::prefix::Conversations;
use self::{ask::Unanswered, prefix::Prefix, report::Report, talk::Talk};
use crate::{
    options::{RunOptions, Settings},
    outcome::{MenuSummary, RunError, RunOutcome, Stopped},
};

/// What all runs of an agent share.
pub(crate) struct AgentParts {
    pub(crate) engine: Engine,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: Settings,
    pub(crate) conversations: Arc<Conversations>,
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
    pub fn on(
        &self,
        pattern: impl Into<Arc<str>>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Subscription {
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
    let system = system_text(&agent.engine, &agent.settings.system, &turn.skills);
    messages.push(Message::User { text: Arc::clone(&message) });
    let turn = match agent.engine.turn(turn) {
        Ok(turn) => turn,
        Err(error) => return never_began(&error.to_string(), messages, began),
    };

    let conversation = conversation.map(|_| Arc::clone(turn.events().identity()));
    let prefix = Prefix::new(&agent.conversations, conversation.as_deref(), &system, &messages);
    let talk = Talk::new(agent, system, messages, Report::new(&turn, began), prefix);
    talk.report.began(&agent.engine.redactor().text(&message), agent.model.name());
    let tool_choices = tool_choices.into_iter();
    let mut running = Running { turn, talk, conversation, tool_choices, menus: Vec::new() };

    // Time that is up ends the run as cancellation does: nothing is cut off in the middle.
    let cancellation = running.turn.cancellation().clone();
    let mut time_is_up = false;
    let ending = {
        let mut iterations = std::pin::pin!(running.iterate());
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
fn system_text(engine: &Engine, system: &str, skills: &[SkillId]) -> Arc<str> {
    let mut parts = vec![system.trim().to_owned(), FENCE_NOTICE.to_owned()];
    // One that is named twice is active once, where it was named last.
    let last = |at: usize, id: &SkillId| !skills.iter().skip(at + 1).any(|later| later == id);
    let active = skills
        .iter()
        .enumerate()
        .filter(|(at, id)| last(*at, id))
        .filter_map(|(_, id)| engine.skills().get(id));
    parts.extend(active.map(|skill| {
        format!("Skill `{}` is active. Its instructions:\n\n{}", skill.id, skill.body)
    }));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n").into()
}

fn never_began(problem: &str, messages: Vec<Message>, began: Instant) -> RunOutcome {
    RunOutcome {
        run_id: Arc::default(),
        stopped: Stopped::Failed,
        answer: None,
        error: Some(RunError::new("unknown_skill", problem)),
        iterations: 0,
        tool_calls: Vec::new(),
        usage: Usage::default(),
        stop: None,
        menus: Vec::new(),
        messages: Arc::new(messages),
        duration: began.elapsed(),
    }
}

/// Why the loop ended.
enum Ending {
    Answered(Arc<str>),
    OutOfIterations(Arc<str>),
    TimedOut(Duration),
    Cancelled,
    Failed(RunError),
}

impl From<Unanswered> for Ending {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Cancelled => Self::Cancelled,
            Unanswered::Failed(error) => Self::Failed(error),
        }
    }
}

/// The state of one run.
struct Running<'a> {
    turn: Turn,
    talk: Talk<'a>,
    /// Whose conversation it is, if the caller named it.
    conversation: Option<Arc<Identity>>,
    tool_choices: std::vec::IntoIter<ToolChoice>,
    menus: Vec<MenuSummary>,
}

impl Running<'_> {
    /// Until the model answers, or there are no iterations left.
    async fn iterate(&mut self) -> Ending {
        let mut menu = Arc::default();
        for number in 1..=self.talk.agent.settings.max_iterations {
            self.talk.report.iteration(number);
            self.talk.report.emit(|| EventKind::IterationStart);
            let before = self.talk.tool_calls.len();
            let step = self.step(&mut menu).await;
            let tool_calls = self.talk.tool_calls.len() - before;
            self.talk.report.emit(|| EventKind::IterationEnd { tool_calls });
            match step {
                Ok(None) => {}
                Ok(Some(answer)) => return Ending::Answered(answer),
                Err(ending) => return ending,
            }
        }
        self.talk.report.iteration_over();
        match self.ask_without_calls(menu).await {
            Ok(answer) => Ending::OutOfIterations(answer),
            Err(ending) => ending,
        }
    }

    /// One iteration: what may the model see, what does it want, what came of it. Gives the
    /// answer, once there is one.
    async fn step(&mut self, menu: &mut Arc<Menu>) -> Result<Option<Arc<str>>, Ending> {
        let mut iteration = self.turn.iteration().await.map_err(|error| failed_to_begin(&error))?;
        *menu = Arc::clone(iteration.menu());
        let summary = MenuSummary::new(menu, iteration.withheld().len(), self.menus.last());
        self.menus.push(summary);
        self.talk.notice(iteration.notices());
        let tool_choice = self.tool_choices.next().unwrap_or_default();
        if tool_choice == ToolChoice::None {
            return self.ask_without_calls(Arc::clone(menu)).await.map(Some);
        }
        let (text, calls) = self.talk.ask(Arc::clone(menu), tool_choice).await?;
        if calls.is_empty() {
            return Ok(Some(text));
        }
        self.talk.keep(iteration.execute(calls).await);
        if self.turn.cancellation().is_cancelled() { Err(Ending::Cancelled) } else { Ok(None) }
    }

    /// A model call with the same tool block, so that the prompt cache holds and vendors accept the
    /// history, but without the right to call: how a run is wrapped up. What is called all the same
    /// is refused, and what was said is the answer.
    async fn ask_without_calls(&mut self, menu: Arc<Menu>) -> Result<Arc<str>, Ending> {
        let (text, calls) = self.talk.ask(menu, ToolChoice::None).await?;
        if !calls.is_empty() {
            self.talk.keep(self.turn.refuse(calls).await);
        }
        Ok(text)
    }

    fn settle(self, ending: Ending) -> RunOutcome {
        let Self { turn, mut talk, conversation, menus, .. } = self;
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

fn failed_to_begin(error: &IterationError) -> Ending {
    let (code, component) = match error {
        IterationError::Cancelled => return Ending::Cancelled,
        IterationError::Discovery(error) => {
            ("discovery_failed", error.provider().map(str::to_owned))
        }
        IterationError::Collision(_) => ("name_collision", None),
        _ => ("iteration_failed", None),
    };
    Ending::Failed(RunError { component, ..RunError::new(code, error.to_string()) })
}
