//! Sums of usage.

use std::sync::Arc;

use toolcrib_core::{SessionOwner, SessionStoreError, Usage, UsageEntry, UsageSource, UsageStore};

use super::{StoreViolations, outcome, owner};

/// Tests a store of usage. It uses its own owners, and ignores the sums of others.
///
/// # Errors
/// All violations.
pub fn check_usage_store(store: &dyn UsageStore) -> Result<(), StoreViolations> {
    let mut broken = StoreViolations::default();
    let result = check(store, &mut broken);
    outcome(broken, [("usage", result)])
}

fn check(store: &dyn UsageStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let (ann, bob) = (owner(), owner());
    let unnamed = SessionOwner { tenant: ann.tenant.clone(), principal: None };
    let session: Arc<str> = "3f2a91c0d4e5".into();
    let usage = Usage {
        input_tokens: 10,
        cached_input_tokens: 4,
        cache_write_tokens: 3,
        output_tokens: 2,
        cost_usd: Some(0.5),
    };
    let model = || UsageEntry::new(UsageSource::Model("m".into()));
    let mut cut_off = model().used(&Usage { cost_usd: None, ..Usage::NOTHING });
    cut_off.assumed_costs = 1;
    cut_off.assumed_tokens = 7;
    cut_off.assumed_cost_usd = 0.25;
    let mut tool = UsageEntry::new(UsageSource::Tool("m\0".into()));
    tool.definition_bytes = 100;
    tool.result_chars = 20;

    let before = store.spent_today(None)?;
    store.add_usage(&ann, Some(&session), &[model().used(&usage), tool.clone()])?;
    store.add_usage(&ann, Some(&session), &[model().used(&usage), cut_off.clone()])?;
    store.add_usage(&ann, None, &[model().used(&usage)])?;
    let unpriced = Usage { cost_usd: None, ..usage };
    store.add_usage(&bob, Some(&session), &[model().used(&unpriced)])?;

    let sums = store.usage_since(0)?;
    let of = |owner: &SessionOwner, in_session: bool| {
        let theirs = sums.iter().filter(|sum| sum.owner == *owner);
        let theirs = theirs.filter(|sum| sum.session.is_some() == in_session);
        theirs.map(|sum| sum.entry.clone()).collect::<Vec<_>>()
    };
    let mut twice = model().used(&usage).used(&usage);
    twice.add(&cut_off);
    let found = of(&ann, true);
    broken.unless(
        found.len() == 2 && found.contains(&twice) && found.contains(&tool),
        "entries of one source, session and day must be added up, and models must not count as tools",
    );
    broken
        .unless(of(&ann, false) == [model().used(&usage)], "usage without a session must be apart");
    let theirs = store.spent_today(Some(&ann))?;
    broken.unless(
        theirs.tokens == 43 && (theirs.usd - 1.75).abs() < 1e-9 && theirs.unknown_costs == 0,
        "the sum of a day must have the assumed usage of requests that broke off",
    );
    let unknown = store.spent_today(Some(&bob))?.unknown_costs;
    broken.unless(unknown == 1, "the sum of a day must count unknown costs");
    let all = store.spent_today(None)?;
    broken.unless(
        all.tokens >= before.tokens + 55 && all.unknown_costs > before.unknown_costs,
        "the sum of a day must be that of all owners",
    );
    let none = store.spent_today(Some(&unnamed))?;
    broken.unless(none.tokens == 0, "the owner without a principal must be apart");
    let day = sums.iter().map(|sum| sum.day).max().unwrap_or_default();
    broken.unless(store.usage_since(day + 1)?.is_empty(), "`usage_since` must begin at its day");
    Ok(())
}
