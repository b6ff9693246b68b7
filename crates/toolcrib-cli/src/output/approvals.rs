//! Calls that wait for approval, decisions and grants.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use toolcrib_approvals::{GrantScope, Review, shown_arguments};
use toolcrib_core::{
    ApprovalGrant, ApprovalState, SecretReference, SessionOwner, StoredApproval, StoredArguments,
};
use toolcrib_project::Project;

use super::{
    print::{note, say},
    terminal::{Stream, verbatim},
    text::{BAD, DIM, GOOD, STRONG, WARN, arguments, count, one_line, safe, shell_word},
};

/// The width of arguments without a terminal, in characters.
const WIDTH: usize = 100;

/// A call that waits, or is over, as JSON.
pub(crate) fn approval_json(review: &Review) -> Value {
    let StoredApproval { id, call, created_ms, state } = &review.stored;
    let (denied_because, expires_ms) = match state {
        ApprovalState::Settled(settled) => (settled.reason.as_deref(), settled.until_ms),
        _ => (None, call.expires_ms),
    };
    json!({
        "id": id,
        "state": review.state,
        "tool": call.tool,
        "origin": call.origin,
        // Null once they are deleted. A secret is `secret:NAME` at a place of `secrets`; elsewhere that
        // is literal text.
        "arguments": call.arguments.as_ref().map(|arguments| &arguments.value),
        "secrets": call.arguments.as_ref().map(secrets_json),
        "tenant": call.owner.tenant,
        "principal": call.owner.principal,
        "session": call.session,
        "call_id": call.call_id,
        "rule": call.rule,
        "reason": call.reason,
        "denied_because": denied_because,
        "created_ms": created_ms,
        "expires_ms": expires_ms,
    })
}

/// The places of the secrets: the JSON pointer of a text, and the position in it in bytes.
fn secrets_json(arguments: &StoredArguments) -> Vec<Value> {
    let secrets = arguments.secrets.iter();
    let place =
        |one: &SecretReference| json!({ "pointer": one.pointer, "at": one.at, "name": one.name });
    secrets.map(place).collect()
}

/// A grant as JSON.
pub(crate) fn grant_json(grant: &ApprovalGrant) -> Value {
    json!({
        "id": grant.id,
        "tool": grant.tool,
        "origin": grant.origin,
        "tenant": grant.owner.tenant,
        "principal": grant.owner.principal,
        "scope": serde_json::from_str::<Value>(&grant.scope).ok(),
        "created_ms": grant.created_ms,
        "until_ms": grant.until_ms,
    })
}

/// The output of `approvals --json`, with why a model could approve its own calls here.
pub(crate) fn approvals_json(
    reviews: &[Review],
    grants: &[ApprovalGrant],
    project: &Project,
) -> Value {
    json!({
        "approvals": reviews.iter().map(approval_json).collect::<Vec<_>>(),
        "grants": grants.iter().map(grant_json).collect::<Vec<_>>(),
        "advisory": project.approvals().advisory(),
    })
}

/// The output of `approve --json` and `deny --json`.
pub(crate) fn decision_json(
    settled: &StoredApproval,
    is_approved: bool,
    grant: Option<&ApprovalGrant>,
) -> Value {
    json!({
        "id": settled.id,
        "decision": decision(is_approved),
        "tool": settled.call.tool,
        "session": settled.call.session,
        "grant": grant.map(grant_json),
    })
}

fn decision(is_approved: bool) -> &'static str {
    if is_approved { "approved" } else { "denied" }
}

fn owner(owner: &SessionOwner) -> String {
    let principal = owner.principal.as_deref().unwrap_or("no principal");
    match &owner.tenant {
        Some(tenant) => safe(&format!("{principal}, tenant {tenant}")),
        None => safe(principal),
    }
}

/// `in 23h`, `in 5m`; the past is `over`.
fn left(until_ms: u64) -> String {
    let until = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(until_ms));
    let left = until.and_then(|until| until.duration_since(SystemTime::now()).ok());
    let Some(left) = left.filter(|left| !left.is_zero()) else { return "over".to_owned() };
    // Two units are enough.
    let whole = match left.as_secs() {
        86_400.. => left.as_secs() / 3_600 * 3_600,
        3_600.. => left.as_secs() / 60 * 60,
        seconds => seconds.max(1),
    };
    format!("in {}", humantime::format_duration(Duration::from_secs(whole)))
}

/// The calls that wait, and the grants.
pub(crate) fn approvals(reviews: &[Review], grants: &[ApprovalGrant], flags: &str, quiet: bool) {
    for review in reviews {
        let StoredApproval { id, call, .. } = &review.stored;
        if quiet {
            say!("{id}");
            continue;
        }
        let style = if &*review.state == "open" { WARN } else { DIM };
        let args = call.arguments.as_ref().map(|one| arguments(&one.shown())).unwrap_or_default();
        say!(
            "{GOOD}{id}{GOOD:#}  {style}{}{style:#}  {STRONG}{}{STRONG:#} {args}",
            safe(&review.state),
            safe(&call.tool)
        );
        let of = match &call.session {
            Some(session) => format!("session {}", safe(session)),
            None => "no session".to_owned(),
        };
        let ends = match &review.stored.state {
            ApprovalState::Open => format!(", expires {}", left(call.expires_ms)),
            ApprovalState::Settled(settled) => format!(", expires {}", left(settled.until_ms)),
            _ => String::new(),
        };
        say!("    {DIM}for {}, {of}, {}{ends}{DIM:#}", owner(&call.owner), safe(&call.rule));
    }
    for grant in grants {
        if quiet {
            continue;
        }
        say!(
            "{GOOD}{}{GOOD:#}  grant  {STRONG}{}{STRONG:#} {}",
            grant.id,
            safe(&grant.tool),
            one_line(&scope(&grant.scope), 120)
        );
        say!("    {DIM}for {}, ends {}{DIM:#}", owner(&grant.owner), left(grant.until_ms));
    }
    if quiet {
        return;
    }
    let flags = safe(flags);
    if reviews.is_empty() && grants.is_empty() {
        note!("no call waits for approval");
    } else if reviews.iter().any(|review| &*review.state == "open") {
        note!(
            "{DIM}`toolcrib approvals show ID{flags}` shows a call in full, `toolcrib approve ID{flags}` \
             and `toolcrib deny ID{flags}` decide{DIM:#}"
        );
    }
}

fn scope(text: &str) -> String {
    serde_json::from_str::<GrantScope>(text).map_or_else(|_| text.to_owned(), |one| one.to_string())
}

/// One call in full.
pub(crate) fn approval(review: &Review) {
    let StoredApproval { id, call, state, .. } = &review.stored;
    say!("{STRONG}{}{STRONG:#} {DIM}({}){DIM:#}", safe(&call.tool), safe(&call.origin));
    say!("  {DIM}id{DIM:#}        {id}, {}", safe(&review.state));
    say!("  {DIM}for{DIM:#}       {}", owner(&call.owner));
    if let Some(session) = &call.session {
        say!("  {DIM}session{DIM:#}   {}", safe(session));
    }
    let reason = call.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    say!("  {DIM}because{DIM:#}   {}", safe(&format!("{}{reason}", call.rule)).replace('\n', " "));
    match state {
        ApprovalState::Open => say!("  {DIM}expires{DIM:#}   {}", left(call.expires_ms)),
        ApprovalState::Settled(settled) => {
            say!("  {DIM}expires{DIM:#}   {}", left(settled.until_ms));
            if let Some(reason) = &settled.reason {
                say!("  {DIM}reason{DIM:#}    {}", one_line(reason, 400));
            }
        }
        _ => {}
    }
    match &call.arguments {
        Some(arguments) => {
            say!("  {DIM}arguments{DIM:#}");
            let width = Stream::Out.columns().unwrap_or(WIDTH);
            say!("{}", shown_arguments(arguments, width).trim_end_matches('\n'));
        }
        None => say!("  {DIM}arguments{DIM:#} deleted with the decision"),
    }
}

/// A call before the user approves it.
pub(crate) fn approval_asked(review: &Review, grant: Option<(&GrantScope, Duration)>) {
    approval(review);
    if let Some((scope, time)) = grant {
        let time = humantime::format_duration(time);
        say!(
            "{WARN}grant{WARN:#} for {time}: every call of {} by {} with {}",
            safe(&review.stored.call.tool),
            owner(&review.stored.call.owner),
            safe(&scope.to_string()).replace('\n', "\\n")
        );
    }
}

/// A decision, and the next step.
/// `flags` are the options of this command that the next one needs too.
pub(crate) fn settled(settled: &StoredApproval, is_approved: bool, flags: &str, quiet: bool) {
    if quiet {
        return;
    }
    let (style, word) = if is_approved { (GOOD, "approved") } else { (BAD, "denied") };
    say!("{style}{word}{style:#} {} {}", settled.id, safe(&settled.call.tool));
    match &settled.call.session {
        Some(session) => {
            let whom = whom(&settled.call.owner);
            let flags = safe(flags);
            note!("{DIM}continue the run: toolcrib resume {}{flags}{whom}{DIM:#}", safe(session));
            note!(
                "{DIM}repeat its `--model`, `--base-url` and `--claim`, which are not stored{DIM:#}"
            );
        }
        None => note!("{DIM}the decision counts when the same call is made again{DIM:#}"),
    }
}

/// A revoked grant.
pub(crate) fn revoked(grant: &ApprovalGrant, quiet: bool) {
    if !quiet {
        say!("{GOOD}revoked{GOOD:#} {} {}", grant.id, safe(&grant.tool));
    }
}

/// Prints why a model could approve its own calls.
pub(crate) fn advisory(reasons: &[Arc<str>]) {
    for reason in reasons {
        note!("{WARN}approvals are advisory here{WARN:#}: {}", safe(reason));
    }
}

/// Says why calls that a rule asks about can only be approved at a terminal. `check` names the rules.
pub(crate) fn unanswered(reason: Option<&str>) {
    if let Some(reason) = reason {
        note!("{WARN}warning{WARN:#}: a policy rule asks, and without a terminal {reason}");
    }
}

/// Prints whether a model of a project could approve its own calls.
pub(crate) fn approvals_hold(reasons: &[Arc<str>]) {
    if reasons.is_empty() {
        say!("{GOOD}✓{GOOD:#} approvals: no program of this project reaches your key");
    }
    for reason in reasons {
        say!("{WARN}!{WARN:#} approvals are advisory here: {}", safe(reason));
    }
}

/// The calls that a run waits for, and the commands that go on. The one that continues the run repeats `more` of
/// its options.
pub(crate) fn waiting(reviews: &[Review], session: &str, flags: &str, more: &str) {
    if reviews.is_empty() {
        return;
    }
    let (flags, more) = (safe(flags), safe(more));
    note!("{WARN}{} for approval{WARN:#}", count_waiting(reviews.len()));
    for Review { stored, .. } in reviews {
        let args = stored.call.arguments.as_ref().map(|one| arguments(&one.shown()));
        note!("  {STRONG}{}{STRONG:#} {}", safe(&stored.call.tool), args.unwrap_or_default());
        verbatim(&format!("    toolcrib approve {}{flags}", stored.id));
        verbatim(&format!("    toolcrib deny {}{flags}", stored.id));
    }
    let whom = reviews.first().map(|first| whom(&first.stored.call.owner)).unwrap_or_default();
    verbatim(&format!("then continue: toolcrib resume {}{flags}{more}{whom}", safe(session)));
}

/// The options that `approve` and `deny` of a call need too.
pub(crate) fn flags_of_approval(flags: &str) {
    note!(
        "{DIM}add the options of this call to `toolcrib approve` and `toolcrib deny`:{}{DIM:#}",
        safe(flags)
    );
}

/// The options by which another command acts for the same owner.
fn whom(owner: &SessionOwner) -> String {
    let option = |name: &str, value: &Option<Arc<str>>| {
        let value = value.as_deref().map(|value| safe(&shell_word(Path::new(value))));
        value.map(|value| format!(" {name} {value}")).unwrap_or_default()
    };
    option("--as", &owner.principal) + &option("--tenant", &owner.tenant)
}

fn count_waiting(n: usize) -> String {
    format!("{} {}", count(n, "call"), if n == 1 { "waits" } else { "wait" })
}
