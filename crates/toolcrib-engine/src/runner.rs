//! Turns of an engine, each driven by an executor.

use std::sync::Arc;

use toolcrib_core::{__internal::millis, EventKind, ToolRegistry, Usage};

use crate::{
    engine::Engine,
    turn::{Executor, Turn, TurnEnd, TurnError, TurnOptions},
};

/// Runs turns: any number of them, also concurrently. Edits by an executor or a middleware are
/// visible only in their own turn.
///
/// An agent is a runner with a model; use this type if other code decides which tools are called.
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

/// The outcome of a turn, on every way out.
#[derive(Debug)]
#[non_exhaustive]
pub struct TurnOutcome {
    /// The run's id.
    pub turn_id: Arc<str>,
    /// How it ended.
    pub end: TurnEnd,
    /// The number of iterations.
    pub iterations: u32,
    /// The turn's tools at its end; tools with the lifetime of an iteration are included only after
    /// a nack.
    pub registry: ToolRegistry,
}

impl TurnRunner {
    /// Runs turns of that engine.
    pub fn new(engine: Engine) -> Self {
        Self { engine, max_iterations: 10 }
    }

    /// Sets the maximum number of iterations of a turn. Default: 10.
    #[must_use]
    pub fn max_iterations(mut self, iterations: u32) -> Self {
        self.max_iterations = iterations;
        self
    }

    /// Runs one turn, with a separate registry made from the engine's baseline; see
    /// [`Turn::drive`]. Failures inside it are its [end](TurnOutcome::end). When this completes, no
    /// part of the turn continues, and contexts that were passed on are refused. Dropping it
    /// half-way cancels the turn.
    ///
    /// # Errors
    /// [`TurnError`] when the turn cannot begin.
    pub async fn run(
        &self,
        options: TurnOptions,
        mut executor: impl Executor,
    ) -> Result<TurnOutcome, TurnError> {
        let mut running = RunningTurn { turn: self.engine.turn(options)? };
        running.turn.events().emit(None, || EventKind::TurnStart {
            message: "".into(),
            model: "".into(),
            personality: Arc::clone(&running.turn.personality().id),
            dry_run: running.turn.is_dry_run(),
            parent_turn: running.turn.parent().map(|parent| Arc::clone(parent.turn_id())),
        });
        let end = running.turn.drive(&mut executor, self.max_iterations).await;
        running.over(&end);
        let turn = &running.turn;
        Ok(TurnOutcome {
            turn_id: Arc::clone(turn.turn_id()),
            iterations: turn.iterations(),
            registry: turn.registry().clone(),
            end,
        })
    }
}

/// A turn whose last event is emitted on every way out.
struct RunningTurn {
    turn: Turn,
}

impl RunningTurn {
    fn over(&mut self, end: &TurnEnd) {
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
            duration_ms: millis(events.began().elapsed()),
            error: error.map(|error| self.turn.redactor().text(&error).into_owned()),
        });
        events.close();
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        // Nothing is emitted after the end.
        self.over(&TurnEnd::Cancelled);
    }
}
