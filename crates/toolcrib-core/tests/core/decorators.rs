//! Decorators: changed parts, unchanged parts, refusals.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use toolcrib_core::{
    Catalog, DiscoveryErrorClass, Identity, IdentityScope, ListContext, Listing, Preparation,
    Reason, Tool, ToolContextParts, ToolProvider, ToolRewrite, from_async_fn, from_fn, gated_tools,
    per_identity, prefixed, prepared, static_tools, with_timeout,
};

use crate::support::{Source, cx, fails, in_time, listed, of_tenant, tool};

fn tools<const N: usize>(names: [&str; N]) -> Vec<Tool> {
    names.iter().map(|name| tool(name)).collect()
}

fn now(provider: &Arc<dyn ToolProvider>, cx: &ListContext) -> Catalog {
    match Arc::clone(provider).list(cx) {
        Listing::Now(Ok(catalog)) => catalog,
        other => panic!("{other:?}"),
    }
}

/// Listed twice, the same tools are returned: an unchanged menu keeps its identity.
fn gives_the_same_again(provider: &Arc<dyn ToolProvider>, cx: &ListContext) {
    assert!(now(provider, cx).same(&now(provider, cx)), "{}", provider.path());
}

#[tokio::test]
async fn prefixed_tools_have_other_names_and_the_same_bodies() {
    let inner = gated_tools("no_b", static_tools(tools(["a", "b"])), |tool: &Tool, _: &_| {
        tool.name() != "b"
    });
    let provider = prefixed("crm_", inner).unwrap();
    let catalog = now(&provider, &cx());
    assert_eq!(listed(Arc::clone(&provider), &cx()).await, ["crm_a"]);
    assert_eq!(*catalog.withheld_by_provider()[0].tool.name(), *"crm_b");
    let ran = catalog.offered()[0].call(json!({}), ToolContextParts::detached().into()).await;
    assert_eq!(ran.unwrap().value, "a ran");
    assert!(catalog.offered()[0].rendering().contains("crm_a"));
    gives_the_same_again(&provider, &cx());
    assert_eq!(provider.path(), "prefixed(crm_) > gated(no_b) > static");
    assert_eq!((provider.leaf(), provider.covers()), ("static", Some("crm_*")));
}

#[tokio::test]
async fn a_name_that_gets_too_long_is_shortened_and_stays_one_of_its_own() {
    let (long, longer) = ("x".repeat(63), "x".repeat(64));
    let provider = prefixed("crm_", static_tools([tool(&long), tool(&longer)])).unwrap();
    let names = listed(provider, &cx()).await;
    assert!(names.iter().all(|name| name.len() == 64 && name.starts_with("crm_xxx")), "{names:?}");
    assert_ne!(names[0], names[1]);
    for bad in ["", "crm.", "é", &"x".repeat(41)] {
        assert!(prefixed(bad, static_tools([])).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn prepared_tools_are_rewritten_or_dropped_by_the_context() {
    let provider =
        prepared("p", static_tools(tools(["a", "b", "c"])), |tool: &Tool, cx: &ListContext| {
            match tool.name().as_str() {
                "a" => Preparation::Keep,
                "b" => Preparation::Drop("not today".into()),
                _ => {
                    let tenant = cx.identity().tenant.as_deref().unwrap_or("nobody");
                    Preparation::Rewrite(
                    ToolRewrite::new().name("d").description(format!("For {tenant}.")).input_schema(
                        json!({ "type": "object", "properties": { "x": { "type": "integer" } } }),
                    ),
                )
                }
            }
        });
    let acme = now(&provider, &of_tenant("acme"));
    let [a, d] = acme.offered() else { panic!("{acme:?}") };
    assert_eq!((a.name().as_str(), d.name().as_str()), ("a", "d"));
    assert_eq!(d.description(), "For acme.");
    assert_eq!(d.input_schema()["properties"]["x"]["type"], "integer");
    let ran = d.call(json!({}), ToolContextParts::detached().into()).await.unwrap();
    assert_eq!(ran.value, "c ran");
    assert_eq!(acme.withheld_by_provider()[0].reason, Reason::from("not today"));
    assert_eq!(&*acme.withheld_by_provider()[0].gate, "p");
    gives_the_same_again(&provider, &of_tenant("acme"));
    let zeta = now(&provider, &of_tenant("zeta"));
    assert_eq!(zeta.offered()[1].description(), "For zeta.");
    assert!(zeta.offered()[0].same(a));
}

#[tokio::test]
async fn a_rewrite_that_takes_a_taken_name_or_fails_is_an_error() {
    type Prepare = fn(&Tool, &ListContext) -> Result<Preparation, String>;
    let rename = |name: &str| Ok(Preparation::Rewrite(ToolRewrite::new().name(name)));
    let cases: [(Prepare, &str); 6] = [
        (
            |_, _| Ok(Preparation::Rewrite(ToolRewrite::new().name("c"))),
            "preparer `p` failed on tool `c`: another tool of the listing has that name",
        ),
        (
            |tool, _| match tool.name().as_str() {
                "b" => Ok(Preparation::Rewrite(ToolRewrite::new().name("a"))),
                _ => Ok(Preparation::Keep),
            },
            "preparer `p` failed on tool `a`: another tool of the listing has that name",
        ),
        (
            |_, _| Ok(Preparation::Rewrite(ToolRewrite::new().name("a b"))),
            "preparer `p` failed on tool `a`: `a b` is not a tool name: it contains ' '; use 1 \
             to 64 of the characters a-z, A-Z, 0-9, `_` and `-`",
        ),
        (
            |_, _| Ok(Preparation::Rewrite(ToolRewrite::new().description(" "))),
            "preparer `p` failed on tool `a`: tool `a` has no description; say when to use it",
        ),
        (|_, _| Err("no directory".into()), "preparer `p` failed on tool `a`: no directory"),
        (|_, _| panic!("bug"), "preparer `p` failed on tool `a`: it panicked: bug"),
    ];
    for (prepare, message) in cases {
        let provider = prepared("p", static_tools(tools(["a", "b"])), prepare);
        let error = fails(provider, &cx()).await;
        assert_eq!((error.class(), error.message()), (DiscoveryErrorClass::Gate, message));
        assert_eq!(error.provider(), Some("prepared(p) > static"));
    }
    // Names that are swapped do not count as duplicates.
    let swapped = prepared("p", static_tools(tools(["a", "b"])), move |tool: &Tool, _: &_| {
        rename(if tool.name() == "a" { "b" } else { "a" }) as Result<_, String>
    });
    assert_eq!(listed(swapped, &cx()).await, ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn case_59_a_provider_that_never_answers_fails_with_a_timeout_after_its_time() {
    let never = Source::new(|_, _| std::future::pending());
    let provider = with_timeout(Arc::clone(&never) as _, Duration::from_secs(5));
    let began = tokio::time::Instant::now();
    let error = fails(Arc::clone(&provider), &cx()).await;
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!(error.class(), DiscoveryErrorClass::Timeout);
    assert_eq!(error.to_string(), "provider `timeout(5s) > source`: it did not answer within 5s");
    assert_eq!((error.leaf(), never.dropped()), (Some("source"), 1));
    let quick = with_timeout(Source::counting() as _, Duration::from_secs(5));
    assert_eq!(listed(quick, &cx()).await, ["t0"]);
}

#[tokio::test]
async fn functions_are_providers() {
    let a = tool("a");
    let early = from_fn("early", move |cx: &ListContext| match cx.iteration() {
        1 => vec![a.clone()],
        _ => vec![],
    });
    gives_the_same_again(&early, &cx());
    assert_eq!(listed(Arc::clone(&early), &cx().with_iteration(1)).await, ["a"]);
    assert_eq!(now(&early, &cx().with_iteration(2)).offered().len(), 0);
    let failing = from_fn("f", |_: &ListContext| Err::<[Tool; 0], _>("down"));
    let error = fails(failing, &cx()).await;
    assert_eq!((error.class(), error.message()), (DiscoveryErrorClass::Source, "down"));
    let later = from_async_fn("later", |cx: ListContext| async move {
        tokio::task::yield_now().await;
        [tool(cx.identity().tenant.as_deref().unwrap_or("nobody"))]
    });
    assert_eq!(later.id(), "later");
    assert!(matches!(Arc::clone(&later).list(&cx()), Listing::Later(_)));
    assert_eq!(listed(later, &of_tenant("acme")).await, ["acme"]);
}

#[tokio::test]
async fn each_tenant_has_a_provider_of_its_own_made_once() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&made);
    let provider = per_identity(IdentityScope::Tenant, 2, move |identity: &Identity| {
        seen.lock().unwrap().push(format!("{identity:?}"));
        match identity.tenant.as_deref() {
            Some("broken") => Err("no credentials"),
            Some(tenant) => Ok(static_tools([tool(tenant)])),
            None => Ok(static_tools([])),
        }
    });
    let ask = |tenant: &'static str| {
        let provider = Arc::clone(&provider);
        async move { listed(provider, &of_tenant(tenant)).await }
    };
    let expect_made = |count| assert_eq!(made.lock().unwrap().len(), count);
    for _ in 0..2 {
        assert_eq!([ask("a").await, ask("b").await].concat(), ["a", "b"]);
    }
    expect_made(2);
    assert!(!made.lock().unwrap()[0].contains("\"c\""), "no conversation: {made:?}");
    ask("a").await;
    ask("c").await;
    expect_made(3);
    assert_eq!(provider.len(), 2);
    ask("a").await;
    expect_made(3);
    ask("b").await;
    expect_made(4);
    provider.forget(of_tenant("b").identity());
    ask("b").await;
    expect_made(5);
    for count in [6, 7] {
        let error = fails(Arc::clone(&provider), &of_tenant("broken")).await;
        assert_eq!(error.to_string(), "provider `per-identity(tenant)`: no credentials");
        expect_made(count);
    }
}

#[tokio::test]
async fn the_least_recently_used_provider_of_an_identity_is_evicted() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let provider = per_identity(IdentityScope::Tenant, 16, move |_: &Identity| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok::<_, String>(static_tools([]))
    });
    let ask = async |tenants: std::ops::Range<usize>| {
        let before = made.load(Ordering::SeqCst);
        for tenant in tenants {
            listed(Arc::clone(&provider), &of_tenant(&tenant.to_string())).await;
        }
        made.load(Ordering::SeqCst) - before
    };
    assert_eq!(ask(0..24).await, 24, "the first 8 of them make room");
    assert_eq!(ask(8..16).await, 0, "and are used again, so that the others are next");
    assert_eq!(ask(24..32).await, 8);
    assert_eq!(ask(8..16).await + ask(24..32).await, 0);
    assert_eq!(provider.len(), 16);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_of_one_identity_share_a_provider() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let provider = per_identity(IdentityScope::Principal, 8, move |_: &Identity| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now();
        Ok::<_, String>(static_tools([tool("t")]))
    });
    let all: Vec<_> = (0..32)
        .map(|_| {
            let provider = Arc::clone(&provider);
            tokio::spawn(async move { listed(provider, &of_tenant("a")).await })
        })
        .collect();
    for one in all {
        assert_eq!(in_time(one).await.unwrap(), ["t"]);
    }
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn gates_commute() {
    // Case 7: in either order of the gates, tools that pass both are offered.
    let read =
        |inner| gated_tools("read", inner, |tool: &Tool, _: &_| tool.name().starts_with("read_"));
    let billing = |inner| {
        gated_tools("billing", inner, |tool: &Tool, _: &_| tool.name().ends_with("billing"))
    };
    let all = || static_tools(tools(["read_billing", "write_billing", "read_health"]));
    assert_eq!(listed(read(billing(all())), &cx()).await, ["read_billing"]);
    assert_eq!(listed(billing(read(all())), &cx()).await, ["read_billing"]);
}

#[tokio::test]
async fn a_ready_listing_stays_ready_through_every_decorator() {
    let stack = |inner: Arc<dyn ToolProvider>| {
        let inner = prefixed("p_", inner).unwrap();
        let inner = prepared("k", inner, |_: &Tool, _: &_| Preparation::Keep);
        let made = Mutex::new(Some(with_timeout(inner, Duration::from_secs(1))));
        per_identity(IdentityScope::Tenant, 1, move |_| made.lock().unwrap().take().ok_or("once"))
    };
    let now = stack(static_tools(tools(["a"])));
    assert!(matches!(now.list(&cx()), Listing::Now(Ok(_))));
    let later = stack(Source::counting() as _);
    assert!(matches!(later.list(&cx()), Listing::Later(_)));
}
