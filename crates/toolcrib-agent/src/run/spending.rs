//! The usage of a run: its share of the sums of all runs, and the limits and budgets on tokens
//! and money.

use std::{mem, sync::Arc};

use tokio::task::spawn_blocking;
use toolcrib_core::{
    BudgetUse, Menu, Message, ModelErrorClass, Price, SessionOwner, SessionStoreError, ToolResult,
    Usage, UsageEntry, UsageSource, UsageStore,
};

use super::{guard::ReachedLimit, parts::AgentParts, pending_usage::PendingUsage};
use crate::{
    limits::{Allowance, Budget},
    models::Models,
    options::RunOptions,
    outcome::RunError,
    session::Session,
    tally::Tally,
};

/// The bytes of a request or response that count as one token, where the vendor reported no tokens.
/// Texts have three to four; a low number does not understate.
const BYTES_PER_TOKEN: u64 = 3;

/// The usage of a run.
pub(super) struct Spending {
    pub(super) store: Option<Arc<dyn UsageStore>>,
    owner: SessionOwner,
    pub(super) session: Option<Arc<str>>,
    budget: Budget,
    /// The limits, and the usage that they count.
    tally: Arc<Tally>,
    pub(super) pending: PendingUsage,
    /// The last menu, and the number of requests with it: its definitions are counted once the menu
    /// changes, or at the end.
    offered: Option<(Arc<Menu>, u64)>,
}

/// The end of a request, for its usage.
pub(super) struct RequestUsage<'a> {
    pub(super) model: &'a str,
    pub(super) price: Option<Price>,
    pub(super) menu: &'a Arc<Menu>,
    pub(super) usage: Usage,
    /// The sizes of the request and of the response so far, in bytes.
    pub(super) bytes: (u64, u64),
    /// Whether the vendor reported no usage for a request that it may have charged.
    pub(super) is_cut_off: bool,
}

impl Spending {
    /// The usage of a run with these options, before a session completes them.
    pub(super) fn of(agent: &AgentParts, options: &RunOptions) -> Self {
        let RunOptions { turn, session, usage_store, child, .. } = options;
        let child = child.as_ref();
        let of_parent = child.and_then(|child| child.session.as_ref());
        let limits = child.map_or(&agent.settings.turn_limits, |child| &child.limits);
        let of_agent = || agent.store.as_ref().map(|store| Arc::clone(&store.usage));
        let store = usage_store.clone().or_else(of_agent);
        let parent = child.map(|child| Arc::clone(&child.tally));
        Self {
            pending: PendingUsage::of(store.as_ref()),
            store,
            owner: SessionOwner { tenant: turn.tenant.clone(), principal: turn.principal.clone() },
            session: session.as_ref().map(Session::id).or(of_parent).cloned(),
            budget: agent.settings.budget.clone(),
            tally: Tally::new(limits.clone(), parent),
            offered: None,
        }
    }

    pub(super) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Refuses limits and budgets that cannot be kept.
    pub(super) fn check_models(&self, models: &Models) -> Result<(), RunError> {
        let of_money = self.tally.all().find_map(|tally| tally.limits().max_cost_usd);
        let of_money = of_money.or(self.budget.day.max_cost_usd);
        let of_money = of_money.or(self.budget.principal.max_cost_usd);
        let unpriced = models.all().find(|model| !model.reports_cost());
        if let (Some(_), Some(model)) = (of_money, unpriced) {
            let name = model.name();
            return Err(RunError::new(
                RunError::COST_UNKNOWN,
                format!(
                    "the model `{name}` has no price, so a limit or budget of money cannot be \
                     kept; give it a price, or remove the limit"
                ),
            ));
        }
        if !self.budget.is_empty() && self.store.is_none() {
            let text = "a budget requires a store of usage: set `AgentBuilder::store` or `RunOptions::usage_store`";
            return Err(RunError::new(RunError::SESSION_FAILED, text));
        }
        Ok(())
    }

    /// Continues the usage of an interrupted turn, which the store has.
    pub(super) fn resumed(&mut self, usage: &Usage) {
        let mut earlier = UsageEntry::new(UsageSource::Model(Arc::default())).used(usage);
        // The session keeps no estimates of requests that were cut off. A response without a price
        // has ended its run.
        earlier.assumed_costs = earlier.unknown_costs;
        self.tally.resumed(&earlier);
    }

    /// Counts a request.
    pub(super) fn requested(&mut self, request: &RequestUsage<'_>) {
        let RequestUsage { model, price, menu, usage, bytes, is_cut_off } = request;
        let mut entry = UsageEntry::new(UsageSource::Model((*model).into())).used(usage);
        if *is_cut_off {
            let assumed = Usage {
                input_tokens: bytes.0.div_ceil(BYTES_PER_TOKEN),
                output_tokens: bytes.1.div_ceil(BYTES_PER_TOKEN),
                ..Usage::NOTHING
            };
            entry.assumed_tokens = assumed.input_tokens + assumed.output_tokens;
            if let Some(cost) = price.and_then(|price| price.cost(&assumed)) {
                entry.assumed_costs = 1;
                entry.assumed_cost_usd = cost;
            }
        }
        self.add(entry);
        if self.store.is_none() {
            return;
        }
        match &mut self.offered {
            Some((known, times)) if known.fingerprint() == menu.fingerprint() => *times += 1,
            _ => {
                self.count_definitions();
                self.offered = Some((Arc::clone(menu), 1));
            }
        }
    }

    /// Counts the definitions of the last menu.
    pub(super) fn count_definitions(&mut self) {
        let Some((menu, times)) = self.offered.take() else { return };
        self.pending.lock().extend(menu.tools().iter().map(|tool| {
            let mut entry = UsageEntry::new(UsageSource::Tool(tool.name().as_str().into()));
            entry.definition_bytes = tool.rendering().len() as u64 * times;
            entry
        }));
    }

    /// Counts the results of calls.
    pub(super) fn called(&mut self, results: &[ToolResult]) {
        for result in results {
            let name = result.name.chars().take(64).collect::<String>();
            let usage = Usage::of_tool(result.cost_usd);
            let mut entry = UsageEntry::new(UsageSource::Tool(name.into())).used(&usage);
            entry.result_chars = result.text.chars().count() as u64;
            self.add(entry);
        }
    }

    /// Counts the result of a call that another process of the run made.
    pub(super) fn kept(&mut self, result: &Message) {
        if let Message::Tool { name, text, .. } = result {
            let name = name.chars().take(64).collect::<String>();
            let mut entry = UsageEntry::new(UsageSource::Tool(name.into()));
            (entry.count, entry.result_chars) = (1, text.chars().count() as u64);
            self.add(entry);
        }
    }

    /// Counts an answer of code.
    pub(super) fn answered_by_code(&mut self, usage: &Usage) {
        self.add(UsageEntry::new(UsageSource::Model("answer".into())).used(usage));
    }

    fn add(&mut self, entry: UsageEntry) {
        self.tally.add(&entry);
        if self.store.is_some() {
            self.pending.lock().push(entry);
        }
    }

    /// The limit of the run that its usage has reached.
    pub(super) fn over_limit(&self) -> Option<ReachedLimit> {
        self.tally.all().find_map(Tally::over_limit)
    }

    /// The limit or budget that forbids another request. Writes what the store lacks before.
    pub(super) async fn over(&mut self) -> Result<Option<ReachedLimit>, RunError> {
        self.write().await?;
        if let Some(reached) = self.over_limit() {
            return Ok(Some(reached));
        }
        let Some(store) = self.store.clone().filter(|_| !self.budget.is_empty()) else {
            return Ok(None);
        };
        let (owner, budget) = (self.owner.clone(), self.budget.clone());
        let checked = move || {
            for (name, whose, allowance, owner) in [
                ("budget.day", "of all principals", &budget.day, None),
                ("budget.principal", "of this principal", &budget.principal, Some(&owner)),
            ] {
                if allowance.is_empty() {
                    continue;
                }
                let spent = store.spent_today(owner)?;
                if let Some(reached) = allowance.reached(name, whose, &spent) {
                    return Ok(Some(reached));
                }
            }
            Ok(None)
        };
        blocking(checked).await
    }

    /// Writes what the store lacks.
    pub(super) async fn write(&self) -> Result<(), RunError> {
        let Some(store) = self.store.clone() else { return Ok(()) };
        let entries = mem::take(&mut *self.pending.lock());
        if entries.is_empty() {
            return Ok(());
        }
        let (owner, session) = (self.owner.clone(), self.session.clone());
        blocking(move || store.add_usage(&owner, session.as_ref(), &entries)).await
    }
}

impl Tally {
    /// The limit that the usage has reached.
    fn over_limit(&self) -> Option<ReachedLimit> {
        let (spent, limits) = (self.spent(), self.limits());
        let (tokens, usd) = (spent.tokens, spent.usd);
        if let Some(limit) = limits.max_tokens.filter(|limit| tokens >= *limit) {
            let what = format!("{limit} tokens ({tokens} were used)");
            return Some(ReachedLimit::of_run("max_tokens", None, &what));
        }
        let limit = limits.max_cost_usd?;
        if spent.unknown_costs > 0 {
            let what = format!(
                "a cost of {limit} US dollars cannot be kept, because the cost of a response is \
                 unknown: its model has no price for a part of its tokens"
            );
            return Some(ReachedLimit::of_run("max_cost_usd", None, &what));
        }
        (usd >= limit).then(|| {
            let what = format!("a cost of {limit} US dollars ({usd:.4} were spent)");
            ReachedLimit::of_run("max_cost_usd", None, &what)
        })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionStoreError> + Send + 'static,
) -> Result<T, RunError> {
    let failed = |error: &dyn std::fmt::Display| {
        RunError::new(RunError::SESSION_FAILED, format!("usage cannot be counted: {error}"))
    };
    match spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| failed(&error)),
        Err(error) => Err(failed(&error)),
    }
}

impl Allowance {
    fn reached(&self, name: &str, whose: &str, spent: &BudgetUse) -> Option<ReachedLimit> {
        let again = "a new day begins at 00:00 UTC";
        let reached = |key: &str, what: String| Some(ReachedLimit::of_budget(name, key, &what));
        let tokens = spent.tokens;
        if let Some(limit) = self.max_tokens.filter(|limit| tokens >= *limit) {
            let what =
                format!("{limit} tokens per day {whose} ({tokens} were used today); {again}");
            return reached("max_tokens", what);
        }
        let limit = self.max_cost_usd?;
        if spent.unknown_costs > 0 {
            let unknown = spent.unknown_costs;
            let what = format!(
                "{limit} US dollars per day {whose} cannot be kept, because the cost of {unknown} \
                 requests of today is unknown: their models have no price; {again}"
            );
            return reached("max_cost_usd", what);
        }
        let usd = spent.usd;
        if usd < limit {
            return None;
        }
        let what =
            format!("{limit} US dollars per day {whose} ({usd:.4} were spent today); {again}");
        reached("max_cost_usd", what)
    }
}

/// The cost of a request: of a price if there is one, else as the model states it. The second value
/// says whether the vendor may have charged a request whose usage it did not report.
pub(super) fn cost(
    price: Option<Price>,
    reports_cost: bool,
    mut usage: Usage,
    failure: Option<ModelErrorClass>,
    is_answered: bool,
) -> (Usage, bool) {
    let has_tokens = usage.input_tokens > 0 || usage.output_tokens > 0;
    let is_cut_off = !is_answered && !has_tokens && failure.is_none_or(may_be_charged);
    if is_cut_off {
        // A model without a vendor states its cost.
        if price.is_some() || !reports_cost {
            usage.cost_usd = None;
        }
        return (usage, true);
    }
    match price {
        Some(price) => usage.cost_usd = price.cost(&usage),
        // A failed request may have been charged too.
        None if !reports_cost => usage.cost_usd = None,
        None => {}
    }
    (usage, false)
}

/// Whether a vendor may charge a failed request: one that it has begun to answer.
fn may_be_charged(class: ModelErrorClass) -> bool {
    !matches!(
        class,
        ModelErrorClass::NoRule
            | ModelErrorClass::Auth
            | ModelErrorClass::Quota
            | ModelErrorClass::RateLimit
            | ModelErrorClass::Overloaded
            | ModelErrorClass::Server
            | ModelErrorClass::ContextOverflow
            | ModelErrorClass::BadRequest
            | ModelErrorClass::Network
            | ModelErrorClass::BreakerOpen
    )
}
