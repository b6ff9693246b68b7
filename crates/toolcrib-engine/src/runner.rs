//! Turns of an engine, each driven by an executor.

use std::{sync::Arc, time::Instant};

use toolcrib_core::{EventKind, ToolRegistry, Usage, millis};

use crate::{
    engine::Engine,
    turn::{Executor, Turn, TurnEnd, TurnError, TurnOptions},
};

/// Runs turns: a value that any number of turns can be run with, at the same time too. What an executor
/// or a middleware edits in one of them is seen in no other.
///
/// An agent is this with a model; use it where something else decides what is called.
///
/// ```
/// use serde_json::json;
/// use toolcrib_core::{Tool, ToolCall, ToolContext};
/// use toolcrib_engine::{Engine, IterationContext, TurnEnd, TurnOptions, TurnRunner};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder()
///     .tool(Tool::builder("ping")
///         .description("Answers.")
///         .handler(|_: serde_json::Value, _: ToolContext| async { "pong" })?)
///     .build()?;
/// let runner = TurnRunner::new(engine);
/// let outcome = runner
///     .run(TurnOptions::default(), |mut cx: IterationContext| async move {
///         let results = cx.execute(vec![ToolCall::new("call_1", "ping", json!({}))]).await;
///         assert_eq!(&*results[0].text, "pong");
///         cx.ack()?;
///         Ok(())
///     })
///     .await?;
/// assert!(matches!(outcome.end, TurnEnd::Acked));
/// assert_eq!(outcome.iterations, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TurnRunner {
    engine: Engine,
    max_iterations: u32,
}

/// What a turn came to, on every way out.
#[derive(Debug)]
#[non_exhaustive]
pub struct TurnOutcome {
    /// The run's id.
    pub run_id: Arc<str>,
    /// How it ended.
    pub end: TurnEnd,
    /// How many iterations there were.
    pub iterations: u32,
    /// The tools of the turn, as it left them; what lives for an iteration is there after a nack only.
    pub registry: ToolRegistry,
}

impl TurnRunner {
    /// Runs turns of that engine.
    pub fn new(engine: Engine) -> Self {
        Self { engine, max_iterations: 10 }
    }

    /// Sets how many iterations a turn may have. Default: 10.
    #[must_use]
    pub fn max_iterations(mut self, iterations: u32) -> Self {
        self.max_iterations = iterations;
        self
    }

    /// Runs one turn, with a registry of its own made of the engine's baseline; see [`Turn::drive`].
    /// What went wrong in it is its [end](TurnOutcome::end). When this is done, nothing of the turn goes
    /// on, and contexts that were handed on are refused. Dropping it half-way cancels the turn.
    ///
    /// # Errors
    /// [`TurnError`] when the turn cannot begin.
    pub async fn run(
        &self,
        options: TurnOptions,
        mut executor: impl Executor,
    ) -> Result<TurnOutcome, TurnError> {
        let mut running = Running { turn: self.engine.turn(options)?, over: false };
        let began = Instant::now();
        running.turn.events().emit(None, || EventKind::TurnStart {
            message: "".into(),
            model: "".into(),
            personality: Arc::clone(&running.turn.personality().id),
        });
        let end = running.turn.drive(&mut executor, self.max_iterations).await;
        running.over(&end, began);
        let turn = &running.turn;
        Ok(TurnOutcome {
            run_id: Arc::clone(turn.run_id()),
            iterations: turn.iterations(),
            registry: turn.registry().clone(),
            end,
        })
    }
}

/// A turn whose last event is to come, on every way out.
struct Running {
    turn: Turn,
    over: bool,
}

impl Running {
    fn over(&mut self, end: &TurnEnd, began: Instant) {
        self.over = true;
        self.turn.end();
        let error = match end {
            TurnEnd::Nacked(error) => Some(error.to_string()),
            TurnEnd::Failed(failure) => Some(failure.to_string()),
            _ => None,
        };
        let events = self.turn.events();
        events.emit(None, || EventKind::TurnEnd {
            stopped: end.as_str().into(),
            answer: None,
            iterations: self.turn.iterations(),
            usage: Usage::default(),
            duration_ms: millis(began.elapsed()),
            error: error.map(|error| self.turn.redactor().text(&error).into_owned()),
        });
        events.close();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            let began = self.turn.events().began();
            self.over(&TurnEnd::Cancelled, began);
        }
    }
}
