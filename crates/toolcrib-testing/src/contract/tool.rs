//! The contract of a tool.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::BoxFuture;
use serde_json::Value;
use toolcrib_core::{Tool, ToolContextParts, ToolError, ToolOutput};
use toolcrib_engine::Limits;

use super::{
    CheckReport, Clause, Findings, Violations,
    body::{Body, BodyOutcome},
    cap::fits,
    generate::{Generator, telling_texts},
    schema::Schema,
};
use crate::fail::{fail, shown, shown_json};

/// The number of generated values for a read-only tool.
const GENERATED: usize = 64;
/// The number of attempts to generate a valid value.
const TRIES: usize = 8;

/// Checks a tool against its contract, with sample arguments that it should accept. Await it for a
/// `Result`, or finish with [`assert`](ToolCheck::assert).
///
/// **The body runs, with all its effects.** Each sample is called once, once more if the tool is
/// `read_only`, and once to be cancelled; a tool that declares `read_only` is also called with 64
/// generated values that fit its schema. Give it a state that may be changed. The body is called
/// without an engine, as [`Tool::call`] does; schema and cap are enforced as by an engine.
///
/// With a [paused](crate::paused()) clock a tool that waits only for the clock is checked
/// immediately. A body on the blocking pool that ignores its token is detected with any clock; the
/// runtime still waits for it in the end.
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
/// # Ok::<(), toolcrib_core::InvalidToolError>(())
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
    /// Adds arguments that the schema must reject. The body is not called with them.
    pub fn rejects(mut self, args: impl IntoIterator<Item = Value>) -> Self {
        self.rejects.extend(args);
        self
    }

    /// Sets the same tool, made a second time, as another process would make it.
    pub fn again(mut self, tool: &Tool) -> Self {
        self.again = Some(tool.clone());
        self
    }

    /// Sets the context of calls: a working folder, secrets, an identity. The check uses its own
    /// cancellation. Default: [`ToolContextParts::detached`].
    pub fn context(
        mut self,
        context: impl Fn() -> ToolContextParts + Send + Sync + 'static,
    ) -> Self {
        self.body.context = Box::new(context);
        self
    }

    /// Sets the number of generated values and their seed. Default: 64 for a `read_only` tool, else
    /// 0.
    pub fn generate(mut self, values: usize, seed: u64) -> Self {
        (self.generate, self.seed) = (values, seed);
        self
    }

    /// Sets the time within which the body must end after its token fired. Default: 1 second.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.stop_within = limit;
        self
    }

    /// Excludes a clause that is violated by design: a tool that returns the time is read-only and
    /// not repeatable.
    pub fn without(mut self, clause: Clause) -> Self {
        self.without.insert(clause);
        self
    }

    /// Runs the check as an assertion.
    ///
    /// # Panics
    /// If the tool violates its contract, with the violations.
    pub async fn assert(self) -> CheckReport {
        match self.await {
            Ok(checked) => checked,
            Err(violations) => fail(violations),
        }
    }

    async fn run(mut self) -> Result<CheckReport, Violations> {
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
            Some(BodyOutcome::Late) => findings.broken(
                Clause::StopsWhenCancelled,
                format!("it still ran {:?} after its token fired", self.stop_within),
            ),
            Some(ended) => {
                findings.holds(Clause::StopsWhenCancelled);
                self.ended(args, ended, findings);
            }
        }
    }

    /// Checks that apply to every end of a call. Returns the result, if any.
    fn ended(
        &self,
        args: &Value,
        ended: BodyOutcome,
        findings: &mut Findings,
    ) -> Option<Result<ToolOutput, ToolError>> {
        match ended {
            BodyOutcome::Late => {
                let found = format!("it did not end within {:?}", self.timeout());
                findings.broken(Clause::EndsInTime, found);
                None
            }
            BodyOutcome::Panicked(message) => {
                findings.holds(Clause::EndsInTime);
                findings.broken(Clause::NeverPanics, format!("it panicked: {message}"));
                None
            }
            BodyOutcome::Returned(outcome) => {
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
            Some(text) => Err(format!("{} contains {}", shown(&error.message), shown(text))),
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
                BodyOutcome::Late => Err(format!("it did not end within {:?}", self.timeout())),
                BodyOutcome::Panicked(message) => Err(format!("it panicked: {message}")),
                BodyOutcome::Returned(outcome) => {
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
    type Output = Result<CheckReport, Violations>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

toolcrib_core::__internal::debug_fields!(
    ToolCheck,
    check,
    tool = check.tool(),
    samples = check.samples,
    rejects = check.rejects,
    ..
);

fn same_definition(tool: &Tool, again: &Tool) -> Result<(), String> {
    if tool.digest() == again.digest() {
        return Ok(());
    }
    Err(format!("it was {}, and is {}", tool.rendering(), again.rendering()))
}

/// Whether two calls have the same result. Their costs may differ.
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
