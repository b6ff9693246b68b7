//! Hooks as middleware.

use std::{error::Error, sync::Arc};

use serde_json::{Value, json};
use toolcrib_core::{
    BoxFuture, CallDecision, Glob, HookResult, Middleware, PendingCall, TurnContext,
};
use toolcrib_tools::command::{HookProgram, HookVerdict};

use crate::file::HookPlace;

/// A program that decides at one place. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Hook {
    /// The name in the project file.
    declared_name: Arc<str>,
    /// The name in messages and events.
    name: Arc<str>,
    place: HookPlace,
    /// The tools whose calls it decides on; all if empty.
    tools: Arc<[Glob]>,
    /// The program, or why it must not be started.
    program: Result<Arc<HookProgram>, Arc<str>>,
}

impl Hook {
    pub(crate) fn new(
        declared_name: &Arc<str>,
        place: HookPlace,
        tools: Vec<Arc<str>>,
        program: Result<HookProgram, Arc<str>>,
    ) -> Self {
        Self {
            declared_name: Arc::clone(declared_name),
            name: format!("hook {declared_name}").into(),
            place,
            tools: tools.into_iter().map(Glob::new).collect(),
            program: program.map(Arc::new),
        }
    }

    pub(crate) fn declared_name(&self) -> &str {
        &self.declared_name
    }

    fn decides_on(&self, tool: &str) -> bool {
        self.place == HookPlace::BeforeCall
            && (self.tools.is_empty() || self.tools.iter().any(|glob| glob.matches(tool)))
    }
}

impl Hook {
    /// Has the program decide on a turn or an iteration, if it is called at that place.
    fn pass<'a>(&'a self, place: HookPlace, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async move {
            if self.place != place {
                return Ok(());
            }
            let program = self.program.as_ref().map_err(ToString::to_string)?;
            match program.decide(&input_at(place, &cx)).await? {
                HookVerdict::Allow => Ok(()),
                HookVerdict::Deny(reason) => Err(reason.into()),
                HookVerdict::Rewrite(_) => Err("its decision is `rewrite`, and only calls have \
                     arguments"
                    .into()),
            }
        })
    }
}

toolcrib_core::__internal::debug_fields!(Hook { name, .. });

impl Middleware for Hook {
    fn name(&self) -> &str {
        &self.name
    }

    fn call<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<CallDecision, Box<dyn Error + Send + Sync>>> {
        Box::pin(async move {
            if !self.decides_on(call.tool.name()) {
                return Ok(CallDecision::Proceed);
            }
            let program = self.program.as_ref().map_err(ToString::to_string)?;
            Ok(match program.decide(&input(&call)).await? {
                HookVerdict::Allow => CallDecision::Proceed,
                HookVerdict::Deny(reason) => CallDecision::Deny(reason),
                HookVerdict::Rewrite(args) => CallDecision::Rewrite(args),
            })
        })
    }

    fn before_turn<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        self.pass(HookPlace::BeforeTurn, cx)
    }

    fn after_turn<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        self.pass(HookPlace::AfterTurn, cx)
    }

    fn before_iteration<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        self.pass(HookPlace::BeforeIteration, cx)
    }

    fn after_iteration<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        self.pass(HookPlace::AfterIteration, cx)
    }
}

/// The turn as the program reads it.
fn input_at(place: HookPlace, cx: &TurnContext<'_>) -> Value {
    json!({
        "at": place.word(),
        "iteration": cx.iteration,
        "turn_id": cx.turn_id,
        "conversation": cx.identity.conversation,
        "tenant": cx.identity.tenant,
        "principal": cx.identity.principal,
        "personality": cx.personality,
    })
}

/// The call as the program reads it.
fn input(call: &PendingCall<'_>) -> Value {
    let annotations = call.tool.annotations();
    json!({
        "at": "before_call",
        "tool": call.tool.name(),
        "toolset": call.tool.toolset(),
        "origin": call.tool.origin(),
        "read_only": annotations.read_only,
        "destructive": annotations.destructive,
        "args": call.args,
        "call_id": call.call_id,
        "turn_id": call.turn_id,
        "tenant": call.identity.tenant,
        "principal": call.identity.principal,
        "personality": call.personality,
    })
}
