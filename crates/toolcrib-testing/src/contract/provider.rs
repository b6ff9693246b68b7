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
    CancellationToken, Catalog, DiscoveryErrorClass, Identity, ListContext, ToolProvider,
    panic_text,
};

use super::{
    Checked, Clause, Findings, Violations,
    asking::{Answer, Problem, alive_tasks, ask, fresh, handed},
    shape::Shape,
};
use crate::{clock::within, fail::fail};

/// How many listings of one context run at the same time.
const AT_ONCE: usize = 8;

/// Holds a provider to the contract that [`ToolProvider`] states. Await it for a `Result`, or end
/// it with [`assert`](ProviderCheck::assert).
///
/// The provider must work meanwhile: its source is there and does not change. It is asked some
/// dozen times. Run it with a [paused](crate::paused()) clock where the provider waits for
/// nothing but the clock, so that one that does not stop is found at once; and on a runtime that
/// does nothing else, because tasks that are left behind are found by counting. A provider that
/// blocks the thread hangs the check as it would hang an engine.
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
    /// Adds a context to ask in; its cancellation is not used. Several that give different lists
    /// make the check stronger. Default: the first two iterations of a conversation.
    pub fn context(mut self, context: ListContext) -> Self {
        self.contexts.push(context);
        self
    }

    /// Sets how long an answer may take. Default: 30 seconds.
    pub fn answer_within(mut self, limit: Duration) -> Self {
        self.answer_within = limit;
        self
    }

    /// Sets how long the provider may take to stop once its token fired. Default: 1 second.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.stop_within = limit;
        self
    }

    /// Leaves a clause out that does not hold by design.
    pub fn without(mut self, clause: Clause) -> Self {
        self.without.insert(clause);
        self
    }

    /// The check as an assertion.
    ///
    /// # Panics
    /// When the provider breaks its contract, naming what.
    pub async fn assert(self) -> Checked {
        match self.await {
            Ok(checked) => checked,
            Err(violations) => fail(violations),
        }
    }

    async fn run(mut self) -> Result<Checked, Violations> {
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
        // What does not even answer alone has no list to be compared with.
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

    /// Asks in one context, one listing after the other.
    async fn alone(&self, context: &ListContext, findings: &mut Findings) -> Option<Shape> {
        let (cx, _token) = fresh(context);
        let first = match self.answer(self.ask(&cx, Catalog::new())).await {
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
                Some(name) => Err(format!("`{name}` is offered twice, and neither yields")),
                None => Ok(()),
            },
        );
        match self.answer(self.ask(&cx, Catalog::new())).await {
            Ok(catalog) => {
                let difference = first.difference(&Shape::of(&catalog));
                findings.hold(Clause::SameList, difference.map_or(Ok(()), Err));
            }
            Err(problem) => problem.report(findings),
        }
        match self.answer(self.ask(&cx, handed())).await {
            Ok(catalog) => self.kept(&first, &catalog, findings),
            Err(problem) => problem.report(findings),
        }
        Some(first)
    }

    fn kept(&self, first: &Shape, catalog: &Catalog, findings: &mut Findings) {
        let Some(added) = Shape::of(catalog).behind(&Shape::of(&handed())) else {
            let found =
                "the list that it was handed did not come back; add to `into` and return it";
            return findings.broken(Clause::KeepsTheList, found);
        };
        findings.holds(Clause::KeepsTheList);
        if let Some(difference) = first.difference(&added) {
            let found = format!("with something in the list already, {difference}");
            findings.broken(Clause::SameList, found);
        }
    }

    /// Asks in all contexts at the same time.
    async fn together(&self, alone: &[(&ListContext, Shape)], findings: &mut Findings) {
        // Asked in order and answered the other way round: what one listing leaves in the
        // provider must not be taken by another.
        let mut asked = Vec::new();
        for (context, list) in alone {
            let (cx, token) = fresh(context);
            asked.push((self.ask(&cx, Catalog::new()), token, list));
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
                (at, ask(&provider, &cx, Catalog::new()).await)
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
                "{} at the same time do not end within {:?}",
                AT_ONCE * alone.len(),
                self.answer_within
            );
            findings.broken(Clause::Reentrant, found);
            // They must be gone before others are asked.
            within(self.stop_within, tasks.shutdown()).await;
        }
    }

    /// Asks with a token that has fired, and with one that fires while the answer is awaited.
    async fn cancelled(&self, context: &ListContext, list: &Shape, findings: &mut Findings) {
        let (cx, token) = fresh(context);
        token.cancel();
        self.stopped(self.ask(&cx, Catalog::new()), list, findings).await;

        let (cx, token) = fresh(context);
        let mut listing = Box::pin(self.ask(&cx, Catalog::new()));
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
                let half =
                    |difference| format!("cancelled, it answered all the same, and {difference}");
                findings.hold(Clause::SameList, difference.map_or(Ok(()), |d| Err(half(d))));
            }
            Some(Err(Problem::Failed(failed))) => findings.hold(
                Clause::SaysCancelled,
                match failed.error.class() {
                    DiscoveryErrorClass::Cancelled => Ok(()),
                    class => Err(format!(
                        "its error has the class {class:?}, not Cancelled: {}",
                        failed.error.message()
                    )),
                },
            ),
            Some(Err(problem)) => problem.report(findings),
        }
    }

    /// Drops a listing that waits, and asks again.
    async fn dropped(&self, context: &ListContext, list: &Shape, findings: &mut Findings) {
        let tasks = alive_tasks();
        let (cx, _token) = fresh(context);
        let mut listing = Box::pin(self.ask(&cx, Catalog::new()));
        if (&mut listing).now_or_never().is_some() {
            return;
        }
        drop(listing);
        self.settled(tasks, "a listing was dropped", findings).await;
        let after = match self.answer(self.ask(&cx, Catalog::new())).await {
            Ok(catalog) => list.difference(&Shape::of(&catalog)),
            Err(problem) => Some(problem.to_string()),
        };
        let found =
            after.map(|after| format!("after a listing was dropped, the next went wrong: {after}"));
        findings.hold(Clause::LeavesNothing, found.map_or(Ok(()), Err));
    }

    /// Whether all tasks have gone that listings began.
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

    fn ask(&self, cx: &ListContext, into: Catalog) -> BoxFuture<'static, Answer> {
        ask(&self.provider, cx, into)
    }

    async fn answer(&self, listing: impl Future<Output = Answer>) -> Answer {
        let limit = self.answer_within;
        within(limit, listing).await.unwrap_or(Err(Problem::Late(limit)))
    }
}

impl IntoFuture for ProviderCheck {
    type Output = Result<Checked, Violations>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl std::fmt::Debug for ProviderCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderCheck").field("contexts", &self.contexts).finish_non_exhaustive()
    }
}

fn same_as_alone(answer: Answer, list: &Shape, findings: &mut Findings) {
    let found = match answer {
        Ok(catalog) => list.difference(&Shape::of(&catalog)),
        Err(problem) => Some(problem.to_string()),
    };
    let found = found.map(|found| format!("alone and then beside others, {found}"));
    findings.hold(Clause::Reentrant, found.map_or(Ok(()), Err));
}
