//! Metadata of a stack of providers, and its treatment of other providers' tools.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{
    __internal::of_plugin, CacheOptions, Catalog, DiscoveryError, DiscoveryErrorClass,
    IdentityScope, ListContext, Listing, Preparation, Tool, ToolProvider, Ttl, cached, concat,
    from_fn, gated_tools, per_identity, prefixed, prepared, skill_scoped_tools, static_tools,
    with_timeout,
};

use crate::support::{Source, cx, fails, listed, skill, tool};

type Provider = Arc<dyn ToolProvider>;

/// A provider without metadata.
struct Silent;

impl ToolProvider for Silent {
    fn list(self: Arc<Self>, _: &ListContext) -> Listing {
        Listing::now(Catalog::new())
    }
}

/// A provider with a name and a pattern of its tools' names.
struct Git {
    gated: bool,
}

impl ToolProvider for Git {
    fn id(&self) -> &str {
        "git"
    }
    fn covers(&self) -> Option<&str> {
        Some("git_*")
    }
    fn is_gated(&self) -> bool {
        self.gated
    }
    fn list(self: Arc<Self>, _: &ListContext) -> Listing {
        Listing::now(Catalog::new())
    }
}

fn offer_all(_: &Tool, _: &ListContext) -> bool {
    true
}

fn keep_all(_: &Tool, _: &ListContext) -> Preparation {
    Preparation::Keep
}

#[test]
fn every_provider_has_its_id_path_leaf_and_pattern() {
    type Around = fn(Provider) -> Provider;
    type Case = (Around, [&'static str; 3], Option<&'static str>, [bool; 2]);
    let cases: [Case; 7] = [
        (
            |inner| cached(inner, CacheOptions::new([], Ttl::forever())),
            ["cached", "cached > git", "git"],
            Some("git_*"),
            [false, true],
        ),
        (
            |inner| with_timeout(inner, Duration::from_millis(1500)),
            ["timeout", "timeout(1.5s) > git", "git"],
            Some("git_*"),
            [false, true],
        ),
        (
            |inner| of_plugin("crm", inner),
            ["git", "plugin(crm) > git", "git"],
            Some("git_*"),
            [false, true],
        ),
        (
            |inner| gated_tools("all", inner, offer_all),
            ["gated", "gated(all) > git", "git"],
            Some("git_*"),
            [true, true],
        ),
        (
            |inner| prepared("all", inner, keep_all),
            ["prepared", "prepared(all) > git", "git"],
            None,
            [true, true],
        ),
        (
            |inner| prefixed("my_", inner).unwrap(),
            ["prefixed", "prefixed(my_) > git", "git"],
            Some("my_*"),
            [false, true],
        ),
        (
            |inner| concat([Arc::new(Silent), inner]),
            ["concat", "concat(unnamed, git)", "concat"],
            None,
            [false, true],
        ),
    ];
    for (around, [id, path, leaf], covers, gated) in cases {
        let stack = around(Arc::new(Git { gated: false }));
        assert_eq!((stack.id(), stack.leaf(), stack.covers()), (id, leaf, covers));
        assert_eq!(stack.path(), path);
        let gates = [false, true].map(|gated| around(Arc::new(Git { gated })).is_gated());
        assert_eq!(gates, gated, "{path}");
    }
    let billing = skill_scoped_tools("billing", []).unwrap();
    let named = from_fn("named", |_: &ListContext| []);
    for (provider, id) in [
        (Arc::new(Silent) as Provider, "unnamed"),
        (static_tools([]), "static"),
        (billing, "skill-scoped:billing"),
        (named, "named"),
    ] {
        assert_eq!((provider.id(), provider.leaf(), provider.covers()), (id, id, None));
        assert_eq!((provider.path().as_str(), provider.is_gated()), (id, false));
    }
}

#[tokio::test]
async fn one_of_each_identity_is_gated_once_one_that_was_made_is() {
    for gated in [false, true] {
        let provider = per_identity(IdentityScope::Tenant, 1, move |_| {
            Ok::<_, String>(Arc::new(Git { gated }) as _)
        });
        assert_eq!(
            (provider.id(), provider.path().as_str()),
            ("per-identity", "per-identity(tenant)")
        );
        assert!(provider.is_empty() && !provider.is_gated(), "nobody knows yet");
        assert!(listed(Arc::clone(&provider), &cx()).await.is_empty());
        assert!(!provider.is_empty());
        assert_eq!(provider.is_gated(), gated);
    }
}

#[tokio::test]
async fn what_a_plugin_lists_carries_its_id() {
    let catalog = of_plugin(
        "crm",
        gated_tools("no_b", static_tools([tool("a"), tool("b")]), |tool: &Tool, _: &_| {
            tool.name() != "b"
        }),
    )
    .list(&cx())
    .wait()
    .await
    .unwrap();
    assert_eq!(catalog.offered()[0].plugin(), Some("crm"));
    assert_eq!(catalog.withheld_by_provider()[0].tool.plugin(), Some("crm"));
}

#[tokio::test]
async fn concat_reports_an_immediate_failure_after_pending_listings() {
    let failing = || from_fn("failing", |_: &ListContext| Err::<[Tool; 0], _>("down"));
    let listing = concat([static_tools([]), failing()]).list(&cx());
    assert!(matches!(listing, Listing::Now(Err(_))), "{listing:?}");
    let (first, last) = (Source::counting(), Source::counting());
    let all = concat([Arc::clone(&first) as _, failing(), Arc::clone(&last) as _]);
    assert_eq!(fails(all, &cx()).await.to_string(), "provider `failing`: down");
    assert_eq!((first.asked(), first.dropped(), last.asked()), (1, 0, 0));
}

#[tokio::test]
async fn tools_of_a_skill_are_offered_while_it_is_the_one_activated_last() {
    let provider = skill_scoped_tools("billing", [tool("pay")]).unwrap();
    let with =
        |skills: &[&str]| cx().with_active_skills(skills.iter().map(|id| skill(id)).collect());
    for (active, expected) in [
        (&[][..], &[][..]),
        (&["billing"], &["pay"]),
        (&["other", "billing"], &["pay"]),
        (&["billing", "other"], &[]),
    ] {
        assert_eq!(listed(Arc::clone(&provider), &with(active)).await, expected, "{active:?}");
    }
}

#[test]
fn an_error_of_a_source_carries_what_rules_look_at() {
    use std::error::Error as _;

    let plain = DiscoveryError::source_failed("down");
    assert_eq!((plain.code(), plain.http_status(), plain.retry_after()), (None, None, None));
    assert_eq!(plain.source().unwrap().to_string(), "down");
    let told = plain.with_code("quota").with_status(429).with_retry_after(Duration::from_secs(7));
    assert_eq!(
        (told.code(), told.http_status(), told.retry_after()),
        (Some("quota"), Some(429), Some(Duration::from_secs(7)))
    );
    let redacted = told.with_message("up to something");
    assert_eq!((redacted.message(), redacted.code()), ("up to something", Some("quota")));
    assert!(redacted.source().is_none());
    assert_eq!(
        DiscoveryErrorClass::ALL.map(DiscoveryErrorClass::as_str),
        ["source", "gate", "panic", "timeout", "cancelled", "breaker_open"]
    );
}
