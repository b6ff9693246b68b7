//! A tool's schema, as the engine enforces it.

use serde_json::Value;
use toolcrib_core::{ErrorCode, Tool, ToolCall, ToolContext};
use toolcrib_engine::{Engine, Redactor, TurnOptions};

/// An engine with one tool that has the tested schema and a body that always succeeds.
pub(super) struct Schema {
    engine: Engine,
    name: String,
}

impl Schema {
    /// The schema of a tool, or the reason why it cannot be enforced.
    pub(super) fn of(tool: &Tool) -> Result<Self, String> {
        let stand_in = Tool::builder(tool.name().as_str())
            .description(tool.description())
            .origin(tool.origin())
            .input_schema(tool.input_schema().clone())
            .handler(|_: Value, _: ToolContext| async { "accepted" })
            .map_err(|error| error.to_string())?;
        // The schema itself is checked: a text that would be read as a number is not a number.
        let engine = Engine::builder().redactor(Redactor::default()).convert_text_arguments(false);
        let engine = engine.tool(stand_in).build();
        let engine = engine.map_err(|error| error.to_string())?;
        Ok(Self { engine, name: tool.name().to_string() })
    }

    /// The reason why arguments are rejected; `None` if they are accepted.
    pub(super) async fn refusal(&self, args: &Value) -> Option<String> {
        let call = ToolCall::new("check", self.name.as_str(), args.clone());
        let mut turn = self.engine.turn(TurnOptions::default()).ok()?;
        let mut iteration = turn.iteration().await.ok()?;
        let results = iteration.execute(vec![call]).await;
        let refused = |code| code == Some(ErrorCode::InputInvalid);
        results.iter().find(|result| refused(result.code)).map(|result| result.value.to_string())
    }
}
