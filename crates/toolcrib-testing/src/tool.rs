//! A tool that a test can look into.

use std::{
    fmt,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolcrib_core::{
    ErrorCode, IntoToolOutput, Tool, ToolBody, ToolBuilder, ToolContext, ToolError, ToolOutput,
};

use crate::fail::{fail, lock};

/// A tool of a test: takes any object, says `ran`, and remembers what it was called with.
///
/// ```
/// use toolcrib_testing::tool;
///
/// let refund = tool("refund").says("refunded");
/// assert_eq!(refund.tool().name(), "refund");
/// refund.assert_never_called();
/// ```
///
/// # Panics
/// When no model API would take the name.
#[track_caller]
pub fn tool(name: &str) -> TestTool {
    let builder = Tool::builder(name).description("A tool of a test.");
    TestTool::of(builder.input_schema(json!({ "type": "object" })))
}

/// A tool with a body that a test chooses and looks into. Cloning shares it.
#[derive(Clone)]
pub struct TestTool {
    tool: Tool,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    reply: Mutex<Reply>,
    calls: Mutex<Vec<Value>>,
    running: AtomicUsize,
}

type Reaction = dyn Fn(&Value) -> Result<ToolOutput, ToolError> + Send + Sync;

/// What the body does. The last word counts.
#[derive(Clone, Default)]
enum Reply {
    #[default]
    Ran,
    By(Arc<Reaction>),
    Panics(Arc<str>),
    Never,
}

impl TestTool {
    /// A test's tool from a definition of one's own: with a schema, annotations, limits.
    ///
    /// # Panics
    /// When the definition is not one.
    #[track_caller]
    pub fn of(builder: ToolBuilder) -> Self {
        let state = Arc::new(State::default());
        match builder.body(Body(Arc::clone(&state))) {
            Ok(tool) => Self { tool, state },
            Err(error) => fail(error),
        }
    }

    /// Says a text at each call.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.answers(move |_| text.clone())
    }

    /// Answers each call by a function of its arguments: with a text, data, an output, or a
    /// `Result` of one of these.
    #[must_use]
    pub fn answers<T: IntoToolOutput>(
        self,
        answer: impl Fn(&Value) -> T + Send + Sync + 'static,
    ) -> Self {
        self.replies(Reply::By(Arc::new(move |args| answer(args).into_tool_output())))
    }

    /// Fails each call.
    #[must_use]
    pub fn fails(self, code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        self.answers(move |_| Err::<String, _>(ToolError::new(code, message.clone())))
    }

    /// Panics at each call.
    #[must_use]
    pub fn panics(self, message: impl Into<Arc<str>>) -> Self {
        self.replies(Reply::Panics(message.into()))
    }

    /// Never returns, and does not look at its cancellation: only its future's end ends it.
    #[must_use]
    pub fn never_returns(self) -> Self {
        self.replies(Reply::Never)
    }

    fn replies(self, reply: Reply) -> Self {
        *lock(&self.state.reply) = reply;
        self
    }

    /// The tool, to be given to an engine or an agent.
    pub fn tool(&self) -> Tool {
        self.tool.clone()
    }

    /// The arguments of each call that reached the body, in order. A call that was refused is
    /// none.
    pub fn calls(&self) -> Vec<Value> {
        lock(&self.state.calls).clone()
    }

    /// How many bodies run now. None does once a run has settled.
    pub fn running(&self) -> usize {
        self.state.running.load(Ordering::SeqCst)
    }

    /// Fails when a call reached the body.
    ///
    /// # Panics
    /// Showing the calls.
    #[track_caller]
    pub fn assert_never_called(&self) {
        let calls = self.calls();
        if !calls.is_empty() {
            let calls = Value::from(calls);
            fail(format!("`{}` was called, and should not have been: {calls}", self.tool.name()));
        }
    }
}

impl fmt::Debug for TestTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestTool")
            .field("tool", &self.tool)
            .field("calls", &self.calls())
            .finish_non_exhaustive()
    }
}

struct Body(Arc<State>);

impl ToolBody for Body {
    fn call(
        self: Arc<Self>,
        args: Value,
        _cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        lock(&self.0.calls).push(args.clone());
        let reply = lock(&self.0.reply).clone();
        let running = Running::begin(&self.0);
        Box::pin(async move {
            let _running = running;
            match reply {
                Reply::Ran => Ok(ToolOutput::text("ran")),
                Reply::By(answer) => answer(&args),
                Reply::Panics(message) => fail(message),
                Reply::Never => pending().await,
            }
        })
    }
}

struct Running(Arc<State>);

impl Running {
    fn begin(state: &Arc<State>) -> Self {
        state.running.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(state))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}
