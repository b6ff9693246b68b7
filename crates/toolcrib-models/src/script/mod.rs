//! The scripted model: parses a script into rules, answers a request by a rule.
//!
//! ```text
//! load        TOML text            -> rules, or every problem of the text
//! rule_input  a request            -> the input of rules
//! matching    a rule, its input    -> captures, or the false condition
//! reply       a rule, its captures -> text and calls                        (template)
//! record      a conversation       -> TOML text that repeats it
//! ```

mod load;
mod matching;
mod record;
mod reply;
mod rule;
mod rule_input;
mod template;

use std::sync::Arc;

use futures_util::{FutureExt as _, stream};
use toolcrib_config::Diagnostics;
use toolcrib_core::{
    Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse, ModelStream,
};

pub use self::record::record;
use self::{
    rule::Rule,
    rule_input::RuleInput,
    template::{Captures, Scope, Templates},
};

/// A deterministic model made of stateless rules: the first rule that matches the request gives the
/// answer.
///
/// Its input is that of any model: the conversation and the tool block. The format is described in
/// `docs/models.md#the-scripted-model`.
///
/// A failure to answer is a [`ModelError`] of class [`NoRule`](ModelErrorClass::NoRule): no rule
/// matches (the message shows the input and which condition of each rule was false), a rule calls a
/// tool that is not offered, or a template fails. A rule with `delay_ms` waits on tokio's clock, so
/// it answers only inside a tokio runtime with its time driver enabled.
///
/// ```
/// use toolcrib_models::ScriptedModel;
///
/// let model = ScriptedModel::from_toml("script:echo.toml", r#"
///     [[rule]]
///     user = '^say (?P<words>.+)'
///     text = "{{ words | upper }}"
///
///     [[rule]]
///     text = "I only know `say …`."
/// "#)?;
/// # use toolcrib_core::Model as _;
/// assert_eq!(model.name(), "script:echo.toml");
///
/// let wrong = ScriptedModel::from_toml("script:echo.toml", "[[rule]]\ntxt = 'hello'").unwrap_err();
/// assert!(wrong.to_string().ends_with("did you mean `text`?"));
/// # Ok::<(), toolcrib_models::Diagnostics>(())
/// ```
pub struct ScriptedModel {
    name: Box<str>,
    templates: Templates,
    rules: Vec<Rule>,
}

impl ScriptedModel {
    /// Parses a script in TOML. `name` is the model's name in events and errors; by convention
    /// `script:` and the file's name.
    ///
    /// # Errors
    /// Every problem of the text, in the order of their positions, with `name` as the file. A text
    /// that is not TOML is reported as such, and its rules are not checked.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, Diagnostics> {
        let templates = Templates::new();
        let rules = load::rules(name, text, &templates)?;
        Ok(Self { name: name.into(), templates, rules })
    }

    async fn answer(&self, request: &ModelRequest) -> Result<ModelResponse, ModelError> {
        let input = RuleInput::of(request);
        let (rule, captures) = self.choose(&input)?;
        if !rule.delay.is_zero() {
            tokio::time::sleep(rule.delay).await;
        }
        let scope = Scope::new(&self.templates, &captures, &input);
        reply::reply(rule, &scope, &input).map_err(|problem| self.error(&problem))
    }

    fn choose(&self, input: &RuleInput<'_>) -> Result<(&Rule, Captures), ModelError> {
        let mut tried = String::new();
        for rule in &self.rules {
            match rule.matches(input) {
                Ok(captures) => return Ok((rule, captures)),
                Err(mismatch) => tried.push_str(&format!("\n  {rule}: {mismatch}")),
            }
        }
        Err(self.error(&format!("no rule matches\nseen:{input}\nrules tried:{tried}")))
    }

    fn error(&self, problem: &str) -> ModelError {
        ModelError::new(ModelErrorClass::NoRule, problem)
    }
}

toolcrib_core::__internal::debug_fields!(
    ScriptedModel,
    model,
    name = model.name,
    rules = model.rules.len(),
    ..
);

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        let chunks = async move {
            let chunks = match self.answer(&request).await {
                Ok(response) => chunks(response),
                Err(error) => vec![Err(error)],
            };
            stream::iter(chunks)
        };
        Box::pin(chunks.flatten_stream())
    }
}

fn chunks(response: ModelResponse) -> Vec<Result<ModelChunk, ModelError>> {
    let mut chunks: Vec<_> = reply::pieces(&response.text)
        .into_iter()
        .map(|piece| Ok(ModelChunk::Text(piece)))
        .collect();
    chunks.push(Ok(ModelChunk::Done(response)));
    chunks
}
