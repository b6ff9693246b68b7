//! A tool that records its calls.

use std::{future::pending, sync::Arc};

use parking_lot::Mutex;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolcrib_core::{
    ErrorCode, IntoToolOutput, Tool, ToolBody, ToolBuilder, ToolContext, ToolError, ToolOutput,
};

use crate::{count::Count, fail::fail};

/// A test tool: accepts any object, returns `ran`, and records its arguments.
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
/// If the name is not a valid tool name.
#[track_caller]
pub fn tool(name: &str) -> TestTool {
    let builder = Tool::builder(name).description("A tool of a test.");
    TestTool::of(builder.input_schema(json!({ "type": "object" })))
}

/// A tool with a configurable, observable body. Clones share it.
#[derive(Clone)]
pub struct TestTool {
    tool: Tool,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    reply: Mutex<Reply>,
    calls: Mutex<Vec<Value>>,
    running: Count,
}

type Reaction = dyn Fn(&Value) -> Result<ToolOutput, ToolError> + Send + Sync;

/// The behavior of the body. The last setting counts.
#[derive(Clone, Default)]
enum Reply {
    #[default]
    Ran,
    By(Arc<Reaction>),
    Panics(Arc<str>),
    Never,
}

impl TestTool {
    /// A test tool with a custom definition: with a schema, annotations, limits.
    ///
    /// # Panics
    /// If the definition is invalid.
    #[track_caller]
    pub fn of(builder: ToolBuilder) -> Self {
        let state = Arc::new(State::default());
        match builder.body(Body(Arc::clone(&state))) {
            Ok(tool) => Self { tool, state },
            Err(error) => fail(error),
        }
    }

    /// Returns a text from each call.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.answers(move |_| text.clone())
    }

    /// Answers each call with a function of its arguments, which returns a text, data, an output,
    /// or a `Result` of one of these.
    #[must_use]
    pub fn answers<T: IntoToolOutput>(
        self,
        answer: impl Fn(&Value) -> T + Send + Sync + 'static,
    ) -> Self {
        self.replies(Reply::By(Arc::new(move |args| answer(args).into_tool_output())))
    }

    /// Fails each call of the tool.
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

    /// Never returns, and ignores its cancellation: only dropping its future ends it.
    #[must_use]
    pub fn never_returns(self) -> Self {
        self.replies(Reply::Never)
    }

    fn replies(self, reply: Reply) -> Self {
        *self.state.reply.lock() = reply;
        self
    }

    /// The tool, for an engine or an agent.
    pub fn tool(&self) -> Tool {
        self.tool.clone()
    }

    /// The arguments of each call that reached the body, in order. Denied calls do not count.
    pub fn calls(&self) -> Vec<Value> {
        self.state.calls.lock().clone()
    }

    /// The number of running bodies. It is 0 after a run has ended.
    pub fn running(&self) -> usize {
        self.state.running.now()
    }

    /// Fails if a call reached the body.
    ///
    /// # Panics
    /// With the calls.
    #[track_caller]
    pub fn assert_never_called(&self) {
        let calls = self.calls();
        if !calls.is_empty() {
            let calls = Value::from(calls);
            fail(format!("`{}` was called, but should not have been: {calls}", self.tool.name()));
        }
    }
}

toolcrib_core::__internal::debug_fields!(
    TestTool,
    tool,
    tool = tool.tool,
    calls = tool.calls(),
    ..
);

struct Body(Arc<State>);

impl ToolBody for Body {
    fn call(
        self: Arc<Self>,
        args: Value,
        _cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.0.calls.lock().push(args.clone());
        let reply = self.0.reply.lock().clone();
        let running = self.0.running.begin();
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
