//! The contract of a provider.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::{task::JoinSet, time::sleep};
use toolcrib_core::{
    __internal::panic_text, CancellationToken, DiscoveryErrorClass, Identity, ListContext,
    ToolProvider,
};

use super::{
    CheckReport, Clause, Findings, Violations,
    asking::{Answer, Problem, alive_tasks, ask, fresh},
    shape::Shape,
};
use crate::{clock::within, fail::fail};

/// The number of concurrent listings of one context.
const AT_ONCE: usize = 8;

/// Checks a provider against the contract of [`ToolProvider`]. Await it for a `Result`, or finish
/// with [`assert`](ProviderCheck::assert).
///
/// The provider must work during the check: its source is available and does not change. It is
/// queried some dozen times. Use a [paused](crate::paused()) clock if the provider waits only for
/// the clock, so that one that does not stop is found immediately; and a runtime without other
/// tasks, because leaked tasks are found by counting. A provider that blocks the thread hangs the
/// check as it would hang an engine.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_core::static_tools;
/// use toolcrib_testing::{Clause, Fault, check_provider, faulty, paused, tool};
///
/// let list = static_tools([tool("search").tool()]);
/// let checked = paused(check_provider(list.clone()).assert());
/// assert!(checked.tried(Clause::SameList));
/// // It answers at once, so there is nothing to cancel.
/// assert!(!checked.tried(Clause::StopsWhenCancelled));
///
/// // One that waits for a minute, whatever happens.
/// let stubborn = faulty(list).always(Fault::None.after(Duration::from_secs(60)));
/// let check = check_provider(stubborn.provider()).answer_within(Duration::from_secs(90));
/// let violations = paused(check).unwrap_err();
/// assert!(violations.clauses().contains(&Clause::StopsWhenCancelled));
/// ```
pub fn check_provider(provider: Arc<dyn ToolProvider>) -> ProviderCheck {
    ProviderCheck {
        provider,
        contexts: Vec::new(),
        answer_within: Duration::from_secs(30),
        stop_within: Duration::from_secs(1),
        without: BTreeSet::new(),
    }
}

/// A check of a provider, made by [`check_provider()`].
#[must_use = "nothing is checked until it is awaited"]
pub struct ProviderCheck {
    provider: Arc<dyn ToolProvider>,
    contexts: Vec<ListContext>,
    answer_within: Duration,
    stop_within: Duration,
    without: BTreeSet<Clause>,
}

impl ProviderCheck {
    /// Adds a context for listings; its cancellation is not used. Several contexts with different
    /// lists make the check stronger. Default: the first two iterations of a conversation.
    pub fn context(mut self, context: ListContext) -> Self {
        self.contexts.push(context);
        self
    }

    /// Sets the timeout of a listing. Default: 30 seconds.
    pub fn answer_within(mut self, limit: Duration) -> Self {
        self.answer_within = limit;
        self
    }

    /// Sets the time within which the provider must stop after its token fired. Default: 1 second.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.stop_within = limit;
        self
    }

    /// Excludes a clause that is violated by design.
    pub fn without(mut self, clause: Clause) -> Self {
        self.without.insert(clause);
        self
    }

    /// Runs the check as an assertion.
    ///
    /// # Panics
    /// If the provider violates its contract, with the violations.
    pub async fn assert(self) -> CheckReport {
        match self.await {
            Ok(checked) => checked,
            Err(violations) => fail(violations),
        }
    }

    async fn run(mut self) -> Result<CheckReport, Violations> {
        if self.contexts.is_empty() {
            let first = ListContext::new(
                Arc::new(Identity::conversation("check")),
                CancellationToken::new(),
            );
            self.contexts = vec![first.clone(), first.with_iteration(2)];
        }
        let named = self.named();
        let mut findings = Findings::new(
            match &named {
                Ok((_, path)) => format!("provider `{path}`"),
                Err(_) => "the provider".to_owned(),
            },
            std::mem::take(&mut self.without),
        );
        let tasks = alive_tasks();
        let mut alone = Vec::new();
        for context in &self.contexts {
            if let Some(list) = self.alone(context, &mut findings).await {
                alone.push((context, list));
            }
        }
        // A listing that fails alone cannot be compared.
        if alone.len() == self.contexts.len() {
            self.together(&alone, &mut findings).await;
            for (context, list) in &alone {
                self.cancelled(context, list, &mut findings).await;
                self.dropped(context, list, &mut findings).await;
            }
        }
        self.settled(tasks, "all listings were over", &mut findings).await;
        findings.hold(Clause::IdStable, self.same_name(named));
        findings.end()
    }

    fn named(&self) -> Result<(String, String), String> {
        let named = || (self.provider.id().to_owned(), self.provider.path());
        catch_unwind(AssertUnwindSafe(named)).map_err(|panic| panic_text(&*panic).to_owned())
    }

    fn same_name(&self, before: Result<(String, String), String>) -> Result<(), String> {
        let (before, after) = (before?, self.named()?);
        if before != after {
            return Err(format!("they were {before:?}, and are {after:?}"));
        }
        if before.0.trim().is_empty() || before.1.trim().is_empty() {
            return Err(format!("id and path are {before:?}"));
        }
        Ok(())
    }

    /// Lists in one context, one listing after the other.
    async fn alone(&self, context: &ListContext, findings: &mut Findings) -> Option<Shape> {
        let (cx, _token) = fresh(context);
        let first = match self.answer(self.ask(&cx)).await {
            Ok(catalog) => Shape::of(&catalog),
            Err(problem) => {
                problem.report(findings);
                return None;
            }
        };
        findings.holds(Clause::Answers);
        findings.holds(Clause::NeverPanics);
        findings.hold(
            Clause::NamesUnique,
            match first.offered_twice() {
                Some(name) => Err(format!("`{name}` is offered twice, without `on_collision`")),
                None => Ok(()),
            },
        );
        match self.answer(self.ask(&cx)).await {
            Ok(catalog) => {
                let difference = first.difference(&Shape::of(&catalog));
                findings.hold(Clause::SameList, difference.map_or(Ok(()), Err));
            }
            Err(problem) => problem.report(findings),
        }
        Some(first)
    }

    /// Lists in all contexts concurrently.
    async fn together(&self, alone: &[(&ListContext, Shape)], findings: &mut Findings) {
        // Started in order and polled in reverse: state that one listing leaves in the provider
        // must not be used by another.
        let mut asked = Vec::new();
        for (context, list) in alone {
            let (cx, token) = fresh(context);
            asked.push((self.ask(&cx), token, list));
        }
        for (listing, _token, list) in asked.into_iter().rev() {
            same_as_alone(self.answer(listing).await, list, findings);
        }
        let mut tasks = JoinSet::new();
        for at in (0..AT_ONCE).flat_map(|_| 0..alone.len()) {
            let Some((context, _)) = alone.get(at) else {
                continue;
            };
            let (cx, token) = fresh(context);
            let provider = Arc::clone(&self.provider);
            tasks.spawn(async move {
                let _token = token;
                (at, ask(&provider, &cx).await)
            });
        }
        let all = async {
            while let Some(ended) = tasks.join_next().await {
                match ended {
                    Ok((at, answer)) => {
                        if let Some((_, list)) = alone.get(at) {
                            same_as_alone(answer, list, findings);
                        }
                    }
                    Err(error) => findings.broken(Clause::Reentrant, error.to_string()),
                }
            }
        };
        if within(self.answer_within, all).await.is_none() {
            let found = format!(
                "{} concurrent listings do not end within {:?}",
                AT_ONCE * alone.len(),
                self.answer_within
            );
            findings.broken(Clause::Reentrant, found);
            // They must end before others start.
            within(self.stop_within, tasks.shutdown()).await;
        }
    }

    /// Lists with a token that has fired, and with one that fires during the listing.
    async fn cancelled(&self, context: &ListContext, list: &Shape, findings: &mut Findings) {
        let (cx, token) = fresh(context);
        token.cancel();
        self.stopped(self.ask(&cx), list, findings).await;

        let (cx, token) = fresh(context);
        let mut listing = Box::pin(self.ask(&cx));
        if (&mut listing).now_or_never().is_none() {
            token.cancel();
            findings.holds(Clause::StopsWhenCancelled);
            self.stopped(listing, list, findings).await;
        }
    }

    async fn stopped(
        &self,
        listing: impl Future<Output = Answer>,
        list: &Shape,
        findings: &mut Findings,
    ) {
        match within(self.stop_within, listing).await {
            None => findings.broken(
                Clause::StopsWhenCancelled,
                format!("it was still busy {:?} after its token fired", self.stop_within),
            ),
            Some(Ok(catalog)) => {
                let difference = list.difference(&Shape::of(&catalog));
                let half = |difference| format!("cancelled, it still answered, and {difference}");
                findings.hold(Clause::SameList, difference.map_or(Ok(()), |d| Err(half(d))));
            }
            Some(Err(Problem::Failed(error))) => findings.hold(
                Clause::SaysCancelled,
                match error.class() {
                    DiscoveryErrorClass::Cancelled => Ok(()),
                    class => Err(format!(
                        "its error has the class {class:?}, not Cancelled: {}",
                        error.message()
                    )),
                },
            ),
            Some(Err(problem)) => problem.report(findings),
        }
    }

    /// Drops a pending listing, and lists again.
    async fn dropped(&self, context: &ListContext, list: &Shape, findings: &mut Findings) {
        let tasks = alive_tasks();
        let (cx, _token) = fresh(context);
        let mut listing = Box::pin(self.ask(&cx));
        if (&mut listing).now_or_never().is_some() {
            return;
        }
        drop(listing);
        self.settled(tasks, "a listing was dropped", findings).await;
        let after = match self.answer(self.ask(&cx)).await {
            Ok(catalog) => list.difference(&Shape::of(&catalog)),
            Err(problem) => Some(problem.to_string()),
        };
        let found =
            after.map(|after| format!("after a listing was dropped, the next failed: {after}"));
        findings.hold(Clause::LeavesNothing, found.map_or(Ok(()), Err));
    }

    /// Whether all tasks started by listings have ended.
    async fn settled(&self, before: usize, when: &str, findings: &mut Findings) {
        let gone = async {
            while alive_tasks() > before {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let found = match within(self.stop_within, gone).await {
            Some(()) => Ok(()),
            None => Err(format!(
                "{:?} after {when}, {} of its tasks still run",
                self.stop_within,
                alive_tasks().saturating_sub(before)
            )),
        };
        findings.hold(Clause::LeavesNothing, found);
    }

    fn ask(&self, cx: &ListContext) -> BoxFuture<'static, Answer> {
        ask(&self.provider, cx)
    }

    async fn answer(&self, listing: impl Future<Output = Answer>) -> Answer {
        let limit = self.answer_within;
        within(limit, listing).await.unwrap_or(Err(Problem::Late(limit)))
    }
}

impl IntoFuture for ProviderCheck {
    type Output = Result<CheckReport, Violations>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

toolcrib_core::__internal::debug_fields!(ProviderCheck { contexts, .. });

fn same_as_alone(answer: Answer, list: &Shape, findings: &mut Findings) {
    let found = match answer {
        Ok(catalog) => list.difference(&Shape::of(&catalog)),
        Err(problem) => Some(problem.to_string()),
    };
    let found = found.map(|found| format!("alone and then concurrently, {found}"));
    findings.hold(Clause::Reentrant, found.map_or(Ok(()), Err));
}
