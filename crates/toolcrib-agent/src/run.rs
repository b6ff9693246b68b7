//! The loop of one run, a step per function: `run → iterate → (ask, act)* → wrap_up`.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::{task::yield_now, time::sleep};
use toolcrib_core::{
    EventKind, Events, FENCE_NOTICE, Menu, Message, ModelChunk, ModelError, ModelErrorClass,
    ModelRequest, ModelResponse, RunEvents, SkillId, ToolChoice, ToolResult, Usage, panic_text,
};
use toolcrib_engine::{Engine, IterationError, Turn, TurnOptions};

use crate::{
    agent::{AgentParts, RunOptions},
    outcome::{MenuSummary, RunError, RunOutcome, Stopped},
};

/// Runs one message to its end.
pub(crate) async fn run(
    agent: &AgentParts,
    message: Arc<str>,
    options: RunOptions,
    events: Events,
) -> RunOutcome {
    let began = Instant::now();
    let allowed = options.turn_timeout.unwrap_or(agent.settings.turn_timeout);
    let system = system_text(&agent.engine, &agent.settings.system, &options.skills);

    let mut turn_options = TurnOptions::default().events(events);
    turn_options.tenant = options.tenant;
    turn_options.principal = options.principal;
    turn_options.conversation = options.session;
    turn_options.cancellation = options.cancellation;
    turn_options.skills = options.skills;
    turn_options.working_dir = options.working_dir;
    let turn = match agent.engine.turn(turn_options) {
        Ok(turn) => turn,
        Err(error) => return never_began(&error.to_string(), began),
    };

    let mut messages = options.history;
    messages.push(Message::User { text: Arc::clone(&message) });
    let mut running = Running {
        agent,
        report: Report::new(&turn, began),
        turn,
        system,
        messages: Arc::new(messages),
        tool_calls: Vec::new(),
        menus: Vec::new(),
    };
    running.report.began(&agent.engine.redactor().text(&message), agent.model.name());

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
    parts.extend(skills.iter().filter_map(|id| engine.skills().get(id)).map(|skill| {
        format!("Skill `{}` is active. Its instructions:\n\n{}", skill.id, skill.body)
    }));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n").into()
}

fn never_began(problem: &str, began: Instant) -> RunOutcome {
    RunOutcome {
        run_id: Arc::default(),
        stopped: Stopped::Failed,
        answer: None,
        error: Some(RunError {
            code: "unknown_skill",
            message: problem.to_owned(),
            component: None,
        }),
        iterations: 0,
        tool_calls: Vec::new(),
        usage: Usage::default(),
        menus: Vec::new(),
        messages: Arc::default(),
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

/// The state of one run.
struct Running<'a> {
    agent: &'a AgentParts,
    turn: Turn,
    system: Arc<str>,
    messages: Arc<Vec<Message>>,
    tool_calls: Vec<ToolResult>,
    menus: Vec<MenuSummary>,
    report: Report,
}

impl Running<'_> {
    /// Until the model answers, or there are no iterations left.
    async fn iterate(&mut self) -> Ending {
        let mut menu = Arc::default();
        for number in 1..=self.agent.settings.max_iterations {
            self.report.iteration(number);
            self.report.emit(|| EventKind::IterationStart);
            match self.step(&mut menu).await {
                Ok(None) => {}
                Ok(Some(answer)) => return Ending::Answered(answer),
                Err(ending) => return ending,
            }
        }
        self.report.iteration_over();
        match self.wrap_up(menu).await {
            Ok(answer) => Ending::OutOfIterations(answer),
            Err(ending) => ending,
        }
    }

    /// One iteration: what may the model see, what does it want, what came of it.
    async fn step(&mut self, menu: &mut Arc<Menu>) -> Result<Option<Arc<str>>, Ending> {
        let mut iteration = self.turn.iteration().await.map_err(|error| failed_to_begin(&error))?;
        *menu = Arc::clone(iteration.menu());
        self.menus.push(MenuSummary::new(menu, iteration.withheld().len()));

        let request = ModelRequest {
            system: Arc::clone(&self.system),
            messages: Arc::clone(&self.messages),
            menu: Arc::clone(menu),
            tool_choice: ToolChoice::Auto,
        };
        let response = ask(self.agent, &mut self.report, request).await?;
        let text: Arc<str> = self.agent.engine.redactor().text(&response.text).into();
        let calls = response.calls;
        Arc::make_mut(&mut self.messages)
            .push(Message::Assistant { text: Arc::clone(&text), calls: calls.clone() });
        if calls.is_empty() {
            self.report.emit(|| EventKind::IterationEnd { tool_calls: 0 });
            return Ok(Some(text));
        }
        let results = iteration.execute(calls).await;
        let made = results.len();
        self.keep(results);
        self.report.emit(|| EventKind::IterationEnd { tool_calls: made });
        if self.report.cancelled() { Err(Ending::Cancelled) } else { Ok(None) }
    }

    /// One more model call, with the same tool block so that the prompt cache holds and vendors
    /// accept the history, but without the right to call.
    async fn wrap_up(&mut self, menu: Arc<Menu>) -> Result<Arc<str>, Ending> {
        let request = ModelRequest {
            system: Arc::clone(&self.system),
            messages: Arc::clone(&self.messages),
            menu,
            tool_choice: ToolChoice::None,
        };
        let response = ask(self.agent, &mut self.report, request).await?;
        let text: Arc<str> = self.agent.engine.redactor().text(&response.text).into();
        Arc::make_mut(&mut self.messages)
            .push(Message::Assistant { text: Arc::clone(&text), calls: response.calls.clone() });
        if !response.calls.is_empty() {
            let results = self.turn.refuse(response.calls).await;
            self.keep(results);
        }
        Ok(text)
    }

    /// What is stored is what is replayed.
    fn keep(&mut self, results: Vec<ToolResult>) {
        Arc::make_mut(&mut self.messages).extend(results.iter().map(ToolResult::message));
        self.report.usage.cost_usd += results.iter().filter_map(|r| r.cost_usd).sum::<f64>();
        self.tool_calls.extend(results);
    }

    fn settle(mut self, ending: Ending) -> RunOutcome {
        let (stopped, answer, error) = match ending {
            Ending::Answered(answer) => (Stopped::Answered, Some(answer), None),
            Ending::OutOfIterations(answer) => (Stopped::MaxIterations, Some(answer), None),
            Ending::Cancelled => (Stopped::Cancelled, None, None),
            Ending::TimedOut(allowed) => (
                Stopped::Timeout,
                None,
                Some(RunError {
                    code: "timeout",
                    message: format!("the run did not end within {allowed:?} and was stopped"),
                    component: None,
                }),
            ),
            Ending::Failed(error) => {
                let message = self.agent.engine.redactor().text(&error.message).into_owned();
                (Stopped::Failed, None, Some(RunError { message, ..error }))
            }
        };
        self.report.over(stopped, answer.as_ref(), error.as_ref(), self.turn.iterations());
        RunOutcome {
            run_id: Arc::clone(self.turn.run_id()),
            stopped,
            answer,
            error,
            iterations: self.turn.iterations(),
            tool_calls: self.tool_calls,
            usage: self.report.usage,
            menus: self.menus,
            messages: self.messages,
            duration: self.report.began.elapsed(),
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
    Ending::Failed(RunError { code, message: error.to_string(), component })
}

/// Asks the model and listens to the end. Cancellation drops the stream, which aborts the request.
async fn ask(
    agent: &AgentParts,
    report: &mut Report,
    request: ModelRequest,
) -> Result<ModelResponse, Ending> {
    let model = &agent.model;
    report.emit(|| EventKind::ModelStart {
        model: model.name().into(),
        messages: request.messages.len(),
        tools: request.menu.len(),
        tool_choice: request.tool_choice,
    });
    let began = Instant::now();
    let cancellation = report.cancellation.clone();
    let answer = tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(None),
        answer = AssertUnwindSafe(listen(agent, report, request)).catch_unwind() => match answer {
            Ok(answer) => answer.map_err(Some),
            Err(panic) => Err(Some(ModelError::new(
                ModelErrorClass::Incomplete,
                format!("it panicked: {}", panic_text(&*panic)),
            ))),
        },
    };
    let usage = answer.as_ref().map(|response| response.usage).unwrap_or_default();
    report.usage += usage;
    report.emit(|| EventKind::ModelEnd {
        calls: answer.as_ref().map_or(0, |response| response.calls.len()),
        usage,
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        error: match &answer {
            Ok(_) => None,
            Err(None) => Some("the run was cancelled".to_owned()),
            Err(Some(error)) => Some(agent.engine.redactor().text(&error.to_string()).into_owned()),
        },
    });
    answer.map_err(|error| match error {
        None => Ending::Cancelled,
        Some(error) => Ending::Failed(RunError {
            code: "model_failed",
            message: format!("model `{}`: {error}", model.name()),
            component: Some(model.name().to_owned()),
        }),
    })
}

async fn listen(
    agent: &AgentParts,
    report: &Report,
    request: ModelRequest,
) -> Result<ModelResponse, ModelError> {
    let mut stream = Arc::clone(&agent.model).respond(request);
    let mut text = agent.engine.redactor().stream();
    while let Some(chunk) = stream.next().await {
        match chunk? {
            ModelChunk::Text(piece) => {
                report.text(text.push(&piece));
                // A model whose pieces are all there already must not keep cancellation, the
                // clock and other runs waiting.
                yield_now().await;
            }
            ModelChunk::Done(response) => {
                report.text(text.finish());
                return Ok(response);
            }
            // A piece that this loop does not know is not text and not the end.
            _ => {}
        }
    }
    Err(ModelError::new(ModelErrorClass::Incomplete, "its answer ended before it was complete"))
}

/// Writes the run's own events, and sums up what it used. A run that is dropped half-way still
/// says that it is over, last of all.
struct Report {
    events: Arc<RunEvents>,
    cancellation: toolcrib_core::CancellationToken,
    began: Instant,
    iteration: Option<u32>,
    iterations: u32,
    usage: Usage,
    over: bool,
}

impl Report {
    fn new(turn: &Turn, began: Instant) -> Self {
        Self {
            events: Arc::clone(turn.events()),
            cancellation: turn.cancellation().clone(),
            began,
            iteration: None,
            iterations: 0,
            usage: Usage::default(),
            over: false,
        }
    }

    fn emit(&self, kind: impl FnOnce() -> EventKind) {
        self.events.emit(self.iteration, kind);
    }

    fn text(&self, text: String) {
        if !text.is_empty() {
            self.emit(|| EventKind::ModelText { text });
        }
    }

    fn cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    fn began(&self, message: &str, model: &str) {
        self.emit(|| EventKind::TurnStart { message: message.into(), model: model.into() });
    }

    fn iteration(&mut self, number: u32) {
        self.iteration = Some(number);
        self.iterations = number;
    }

    fn iteration_over(&mut self) {
        self.iteration = None;
    }

    fn over(
        &mut self,
        stopped: Stopped,
        answer: Option<&Arc<str>>,
        error: Option<&RunError>,
        iterations: u32,
    ) {
        self.over = true;
        self.iteration = None;
        self.emit(|| EventKind::TurnEnd {
            stopped: stopped.as_str().into(),
            answer: answer.cloned(),
            iterations,
            usage: self.usage,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            error: error.map(ToString::to_string),
        });
        self.events.close();
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.over {
            self.over(Stopped::Cancelled, None, None, self.iterations);
        }
    }
}
