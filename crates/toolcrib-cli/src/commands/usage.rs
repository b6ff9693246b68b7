//! `toolcrib usage`: tokens and money of all runs.

use std::{collections::BTreeMap, io, sync::Arc};

use toolcrib_core::{CancellationToken, SessionOwner, StoredUsage, UsageSource, is_session_id};

use crate::{
    args::{Day, GlobalArgs, UsageArgs, UsageGrouping},
    exit::{self, Exit},
    host::{
        budget::budget,
        stored::{inspected, on_store, write_new},
    },
    output::{self, UsageJson, UsageLine},
    problem::Problem,
};

pub(super) async fn usage(
    global: &GlobalArgs,
    args: UsageArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = inspected(global, &cancellation).await?;
    let owner = owner(&args);
    let filter = Arc::new(args);
    let (sessions, wanted, of) = (project.sessions().clone(), Arc::clone(&filter), owner.clone());
    let stored = on_store(move || {
        let Some(store) = sessions.open_existing()? else { return Ok(Vec::new()) };
        let session = match wanted.session.as_deref() {
            Some(name) if !is_session_id(name) => Some(store.find(&of, name)?.id),
            id => id.map(Arc::from),
        };
        let mut stored = store.usage_since(wanted.since.0)?;
        stored.retain(|one| is_wanted(one, &wanted, session.as_ref()));
        Ok(stored)
    })
    .await?;
    let budget = budget(&project, &owner).await?;
    if let Some(path) = &filter.html {
        let page = PAGE.map(|by| sums(&stored, by, &filter)).map(|mut one| {
            one.budget.clone_from(&budget);
            one
        });
        let page = output::usage_page(&page).map_err(io::Error::other);
        page.and_then(|page| write_new(path, &page))
            .map_err(|error| Problem::usage(format!("`--html`: {error}")))?;
    }
    let usage = UsageJson { budget, ..sums(&stored, filter.by, &filter) };
    match &filter.html {
        _ if global.json => output::json(&usage),
        Some(path) => output::exported_to(path, global.quiet),
        None => output::usage(&usage, global.quiet),
    }
    Ok(exit::FINE)
}

/// The groupings of the page.
const PAGE: [UsageGrouping; 4] =
    [UsageGrouping::Day, UsageGrouping::Model, UsageGrouping::Tool, UsageGrouping::Principal];

/// The sums by one subject.
fn sums(stored: &[StoredUsage], by: UsageGrouping, filter: &UsageArgs) -> UsageJson {
    let mut lines: BTreeMap<String, UsageLine> = BTreeMap::new();
    let mut total = UsageLine::new(String::new());
    for one in stored.iter().filter(|one| counts(one, by)) {
        let name = name(one, by);
        lines.entry(name.clone()).or_insert_with(|| UsageLine::new(name)).add(&one.entry);
        total.add(&one.entry);
    }
    let lines = lines.into_values().collect();
    UsageJson { by, since: filter.since.date(), lines, total, budget: Vec::new() }
}

fn owner(args: &UsageArgs) -> SessionOwner {
    let text = |value: &Option<String>| value.as_deref().map(Arc::from);
    SessionOwner { tenant: text(&args.tenant), principal: text(&args.principal) }
}

fn is_wanted(one: &StoredUsage, wanted: &UsageArgs, session: Option<&Arc<str>>) -> bool {
    let is = |wanted: &Option<String>, found: &Option<Arc<str>>| {
        wanted.is_none() || wanted.as_deref() == found.as_deref()
    };
    let is_model =
        |model: &String| matches!(&one.entry.source, UsageSource::Model(name) if **name == **model);
    is(&wanted.principal, &one.owner.principal)
        && is(&wanted.tenant, &one.owner.tenant)
        && (session.is_none() || session == one.session.as_ref())
        && wanted.model.as_ref().is_none_or(is_model)
}

fn counts(one: &StoredUsage, by: UsageGrouping) -> bool {
    match by {
        UsageGrouping::Model => matches!(one.entry.source, UsageSource::Model(_)),
        UsageGrouping::Tool => matches!(one.entry.source, UsageSource::Tool(_)),
        _ => true,
    }
}

fn name(one: &StoredUsage, by: UsageGrouping) -> String {
    match by {
        UsageGrouping::Day => Day(one.day).date(),
        UsageGrouping::Session => one.session.as_deref().unwrap_or("(no session)").to_owned(),
        UsageGrouping::Principal => match (&one.owner.principal, &one.owner.tenant) {
            (principal, Some(tenant)) => {
                format!("{} of {tenant}", principal.as_deref().unwrap_or("(no principal)"))
            }
            (Some(principal), None) => principal.to_string(),
            (None, None) => "(no principal)".to_owned(),
        },
        UsageGrouping::Model | UsageGrouping::Tool => match &one.entry.source {
            UsageSource::Model(name) | UsageSource::Tool(name) => name.to_string(),
        },
    }
}
