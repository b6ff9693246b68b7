//! The contract of a tool.

use std::{collections::BTreeSet, fmt, time::Duration};

use futures_util::future::BoxFuture;
use serde_json::Value;
use toolcrib_core::{Tool, ToolContextParts, ToolError, ToolOutput};
use toolcrib_engine::Limits;

use super::{
    Checked, Clause, Findings, Violations,
    body::{Body, Ended},
    cap::fits,
    generate::{Generator, telling_texts},
    schema::Schema,
};
use crate::fail::{fail, shown, shown_json};

/// How many values are made for a tool that says that it changes nothing.
const GENERATED: usize = 64;
/// How many values are tried for one that fits the schema.
const TRIES: usize = 8;

/// Holds a tool to its contract, with arguments as it should take them. Await it for a `Result`,
/// or end it with [`assert`](ToolCheck::assert).
///
/// **The body runs, with all its effects.** Each sample is called once, once more if the tool is
/// `read_only`, and once to be cancelled; a tool that says that it is `read_only` is also called
/// with 64 made-up values that fit its schema. Give it a state that may be changed. The body is
/// called without an engine, as [`Tool::call`] does; schema and cap are those that an engine
/// enforces.
///
/// With a [paused](crate::paused()) clock a tool that waits for nothing but the clock is checked
/// at once. A body on the blocking pool that ignores its token is found on any clock; the runtime
/// still waits for it in the end.
///
/// ```
/// use serde_json::json;
/// use toolcrib_core::{Tool, ToolContext};
/// use toolcrib_testing::{check_tool, paused};
///
/// #[derive(serde::Deserialize)]
/// struct Args { order: u32 }
///
/// let find_order = || {
///     Tool::builder("find_order")
///         .description("The state of an order.")
///         .input_schema(json!({
///             "type": "object",
///             "properties": { "order": { "type": "integer", "minimum": 0, "maximum": 9999 } },
///             "required": ["order"],
///             "additionalProperties": false,
///         }))
///         .read_only()
///         .handler(|args: Args, _: ToolContext| async move {
///             format!("order {} is on its way", args.order)
///         })
/// };
/// let check = check_tool(&find_order()?, [json!({ "order": 1042 })])
///     .rejects([json!({}), json!({ "order": "1042" }), json!({ "order": -1 })])
///     .again(&find_order()?);
/// paused(check.assert());
/// # Ok::<(), toolcrib_core::InvalidTool>(())
/// ```
pub fn check_tool(tool: &Tool, samples: impl IntoIterator<Item = Value>) -> ToolCheck {
    ToolCheck {
        body: Body { tool: tool.clone(), context: Box::new(ToolContextParts::detached) },
        samples: samples.into_iter().collect(),
        rejects: Vec::new(),
        again: None,
        generate: if tool.annotations().read_only { GENERATED } else { 0 },
        seed: 0,
        stop_within: Duration::from_secs(1),
        without: BTreeSet::new(),
    }
}

/// A check of a tool, made by [`check_tool()`].
#[must_use = "nothing is checked until it is awaited"]
pub struct ToolCheck {
    body: Body,
    samples: Vec<Value>,
    rejects: Vec<Value>,
    again: Option<Tool>,
    generate: usize,
    seed: u64,
    stop_within: Duration,
    without: BTreeSet<Clause>,
}

impl ToolCheck {
    /// Adds arguments that the schema must refuse. The body is not called with them.
    pub fn rejects(mut self, args: impl IntoIterator<Item = Value>) -> Self {
        self.rejects.extend(args);
        self
    }

    /// Gives the same tool, made a second time, as another process would make it.
    pub fn again(mut self, tool: &Tool) -> Self {
        self.again = Some(tool.clone());
        self
    }

    /// Sets what the body sees of the call: a working folder, secrets, an identity. The
    /// cancellation is the check's own. Default: [`ToolContextParts::detached`].
    pub fn context(
        mut self,
        context: impl Fn() -> ToolContextParts + Send + Sync + 'static,
    ) -> Self {
        self.body.context = Box::new(context);
        self
    }

    /// Sets how many made-up values the body is called with, and their seed. Default: 64 for a
    /// `read_only` tool, else 0.
    pub fn generate(mut self, values: usize, seed: u64) -> Self {
        (self.generate, self.seed) = (values, seed);
        self
    }

    /// Sets how long the body may take to end once its token fired. Default: 1 second.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.stop_within = limit;
        self
    }

    /// Leaves a clause out that does not hold by design: a tool that tells the time is read-only
    /// and not repeatable.
    pub fn without(mut self, clause: Clause) -> Self {
        self.without.insert(clause);
        self
    }

    /// The check as an assertion.
    ///
    /// # Panics
    /// When the tool breaks its contract, naming what.
    pub async fn assert(self) -> Checked {
        match self.await {
            Ok(checked) => checked,
            Err(violations) => fail(violations),
        }
    }

    async fn run(mut self) -> Result<Checked, Violations> {
        let subject = format!("tool `{}`", self.tool().name());
        let mut findings = Findings::new(subject, std::mem::take(&mut self.without));
        if let Some(again) = &self.again {
            findings.hold(Clause::SameDefinition, same_definition(self.tool(), again));
        }
        let schema = match Schema::of(self.tool()) {
            Ok(schema) => schema,
            Err(problem) => {
                findings.broken(Clause::SchemaEnforceable, problem);
                return findings.end();
            }
        };
        findings.holds(Clause::SchemaEnforceable);
        for args in &self.rejects {
            let found = match schema.refusal(args).await {
                Some(_) => Ok(()),
                None => Err(format!("it accepts {}", shown_json(args))),
            };
            findings.hold(Clause::SchemaRejects, found);
        }
        for args in &self.samples {
            if let Some(refusal) = schema.refusal(args).await {
                let found = format!("it refuses {}: {refusal}", shown_json(args));
                findings.broken(Clause::SchemaAccepts, found);
            } else {
                findings.holds(Clause::SchemaAccepts);
                self.sample(args, &mut findings).await;
            }
        }
        self.made_up(&schema, &mut findings).await;
        findings.end()
    }

    fn tool(&self) -> &Tool {
        &self.body.tool
    }

    fn timeout(&self) -> Duration {
        self.tool().timeout().unwrap_or(Limits::default().tool_timeout)
    }

    async fn sample(&self, args: &Value, findings: &mut Findings) {
        let first = self.ended(args, self.body.run(args, self.timeout()).await, findings);
        if let Some(Ok(output)) = &first {
            let has_text = !output.value.trim().is_empty() || !output.blocks.is_empty();
            let found = if has_text { Ok(()) } else { Err("its text is empty".to_owned()) };
            findings.hold(Clause::HasText, found);
            if let Some(cap) = self.tool().max_result_chars() {
                findings.hold(Clause::FitsItsCap, fits(self.tool(), output, cap).await);
            }
        }
        if let (Some(first), true) = (first, self.tool().annotations().read_only) {
            let second = self.body.run(args, self.timeout()).await;
            if let Some(second) = self.ended(args, second, findings) {
                findings.hold(Clause::Repeatable, same_outcome(&first, &second));
            }
        }
        match self.body.cancel(args, self.stop_within).await {
            None => {}
            Some(Ended::Late) => findings.broken(
                Clause::StopsWhenCancelled,
                format!("it still ran {:?} after its token fired", self.stop_within),
            ),
            Some(ended) => {
                findings.holds(Clause::StopsWhenCancelled);
                self.ended(args, ended, findings);
            }
        }
    }

    /// What holds however a call ends. Gives what came back, if something did.
    fn ended(
        &self,
        args: &Value,
        ended: Ended,
        findings: &mut Findings,
    ) -> Option<Result<ToolOutput, ToolError>> {
        match ended {
            Ended::Late => {
                let found = format!("it did not end within {:?}", self.timeout());
                findings.broken(Clause::EndsInTime, found);
                None
            }
            Ended::Panicked(message) => {
                findings.holds(Clause::EndsInTime);
                findings.broken(Clause::NeverPanics, format!("it panicked: {message}"));
                None
            }
            Ended::Returned(outcome) => {
                findings.holds(Clause::EndsInTime);
                findings.holds(Clause::NeverPanics);
                if let Err(error) = &outcome {
                    self.error(args, error, findings);
                }
                Some(outcome)
            }
        }
    }

    fn error(&self, args: &Value, error: &ToolError, findings: &mut Findings) {
        let texts = telling_texts(args, &self.tool().input_schema().to_string());
        if texts.is_empty() {
            return;
        }
        let found = match texts.iter().find(|text| error.message.contains(text.as_str())) {
            Some(text) => Err(format!("{} holds {}", shown(&error.message), shown(text))),
            None => Ok(()),
        };
        findings.hold(Clause::ErrorsWithoutValues, found);
    }

    async fn made_up(&self, schema: &Schema, findings: &mut Findings) {
        let mut values = Generator::new(self.tool().input_schema(), &self.samples, self.seed);
        let mut left = self.generate;
        for _ in 0..self.generate.saturating_mul(TRIES) {
            if left == 0 {
                break;
            }
            let args = values.next();
            if schema.refusal(&args).await.is_some() {
                continue;
            }
            left -= 1;
            let found = match self.body.run(&args, self.timeout()).await {
                Ended::Late => Err(format!("no end within {:?}", self.timeout())),
                Ended::Panicked(message) => Err(format!("it panicked: {message}")),
                Ended::Returned(outcome) => {
                    if let Err(error) = &outcome {
                        self.error(&args, error, findings);
                    }
                    Ok(())
                }
            };
            let found = found.map_err(|found| format!("{found}, with {}", shown_json(&args)));
            findings.hold(Clause::TakesWhatItsSchemaTakes, found);
        }
    }
}

impl IntoFuture for ToolCheck {
    type Output = Result<Checked, Violations>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for ToolCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCheck")
            .field("tool", self.tool())
            .field("samples", &self.samples)
            .field("rejects", &self.rejects)
            .finish_non_exhaustive()
    }
}

fn same_definition(tool: &Tool, again: &Tool) -> Result<(), String> {
    if tool.digest() == again.digest() {
        return Ok(());
    }
    Err(format!("it was {}, and is {}", tool.rendering(), again.rendering()))
}

/// Whether two calls came to the same. What they cost may differ.
fn same_outcome(
    first: &Result<ToolOutput, ToolError>,
    second: &Result<ToolOutput, ToolError>,
) -> Result<(), String> {
    let same = match (first, second) {
        (Ok(a), Ok(b)) => {
            a.value == b.value && a.structured == b.structured && a.blocks == b.blocks
        }
        (Err(a), Err(b)) => a.code == b.code && a.message == b.message,
        _ => false,
    };
    let text = |outcome: &Result<ToolOutput, ToolError>| match outcome {
        Ok(output) => shown(&output.value),
        Err(error) => format!("the error {}", shown(&error.message)),
    };
    if same {
        return Ok(());
    }
    Err(format!("first it gave {}, then {}", text(first), text(second)))
}
