//! Tools from programs that every system has, and calls outside any engine.

use std::pin::Pin;

use serde_json::{Map, Value, json};
use toolcrib_core::{
    Annotations, Secret, SecretError, Secrets, Tool, ToolContext, ToolContextParts, ToolError,
    ToolOutput,
};
use toolcrib_tools::{
    Declaration, ToolErrors,
    command::{ArgItem, CommandToolSpec},
};

/// A tool with these items, and properties that are all required.
pub(crate) fn tool(program: &str, items: &[&str], properties: Value) -> CommandToolSpec {
    let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
    with_optional(program, items, properties, &json!(required))
}

/// A tool with these items and properties, of which only some are required.
#[allow(clippy::needless_pass_by_value, reason = "read as it is written: json!")]
pub(crate) fn with_optional(
    program: &str,
    items: &[&str],
    properties: Value,
    required: &Value,
) -> CommandToolSpec {
    let mut declaration = Declaration::new("run_it", "Runs it.");
    declaration.annotations = Annotations { read_only: true, ..Annotations::default() };
    declaration.input_schema =
        json!({ "type": "object", "properties": properties, "required": required });
    let mut spec = CommandToolSpec::new(declaration, program, "/");
    spec.args = items.iter().copied().map(ArgItem::from).collect();
    spec
}

/// A tool that runs a shell script, whose `$1` and so on are the parameters, all of them texts.
pub(crate) fn sh(script: &str, parameters: &[&str]) -> CommandToolSpec {
    let mut spec = tool("/bin/sh", &["-c"], texts(parameters));
    spec.args.push(script.replace('{', "{{").replace('}', "}}").as_str().into());
    spec.args.push("sh".into());
    spec.args.extend(parameters.iter().map(|name| ArgItem {
        text: format!("{{{name}}}"),
        allow_leading_dash: true,
        when: None,
    }));
    spec.env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    spec
}

pub(crate) fn texts(names: &[&str]) -> Value {
    let properties: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    properties.into()
}

pub(crate) async fn call(spec: CommandToolSpec, args: Value) -> Result<ToolOutput, ToolError> {
    call_in(&spec.build().unwrap(), args, ToolContextParts::detached().into()).await
}

pub(crate) async fn call_in(
    tool: &Tool,
    args: Value,
    cx: ToolContext,
) -> Result<ToolOutput, ToolError> {
    let called = tool.call(args, cx);
    tokio::time::timeout(std::time::Duration::from_secs(300), called).await.expect("it hangs")
}

pub(crate) fn errors(spec: CommandToolSpec) -> ToolErrors {
    spec.build().unwrap_err()
}

/// Knows one secret.
pub(crate) struct OneSecret(pub(crate) &'static str, pub(crate) &'static str);

impl Secrets for OneSecret {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Secret, SecretError>> + Send + 'a>> {
        let found = if name == self.0 {
            Ok(Secret::new(self.1))
        } else {
            Err(SecretError::Unknown { name: name.into() })
        };
        Box::pin(async move { found })
    }
}
