//! Hubs: their requests, and their cancellation.

use std::sync::{Arc, Mutex};

use toolcrib_core::{
    BoxFuture, Catalog, CatalogRequest, DiscoveryError, DiscoveryErrorClass, Listing, ToolHub,
    discovery,
};

use crate::support::{fails, in_time, listed, of_tenant, skill, tool};

/// Records its requests; offers a tool named after the tenant, or fails, or never responds.
#[derive(Default)]
struct Hub(Mutex<Vec<String>>);

impl ToolHub for Hub {
    fn fetch_catalog<'a>(
        &'a self,
        request: &'a CatalogRequest,
    ) -> BoxFuture<'a, Result<Catalog, DiscoveryError>> {
        let identity = request.identity();
        let tenant = identity.tenant.as_deref().unwrap_or("-");
        self.0.lock().unwrap().push(format!(
            "{tenant} {:?} {:?} {}",
            request.active_skill(),
            request.active_skills(),
            request.iteration()
        ));
        Box::pin(async move {
            match tenant {
                "never" => std::future::pending().await,
                "refused" => Err(DiscoveryError::source_failed("who are you?").with_status(403)),
                tenant => Ok(Catalog::from_iter([tool(tenant)])),
            }
        })
    }
}

#[tokio::test]
async fn a_hub_receives_the_identity_of_the_request() {
    let hub = Arc::new(Hub::default());
    let provider = discovery(Arc::clone(&hub)).build();
    assert_eq!(
        (provider.id(), provider.leaf(), provider.covers()),
        ("discovery", "discovery", None)
    );
    let cx =
        of_tenant("acme").with_iteration(3).with_active_skills(Arc::from([skill("a"), skill("b")]));
    assert!(matches!(Arc::clone(&provider).list(&cx), Listing::Later(_)));
    assert!(hub.0.lock().unwrap().is_empty(), "nobody is asked before somebody waits");
    assert_eq!(listed(provider, &cx).await, ["acme"]);
    assert_eq!(*hub.0.lock().unwrap(), ["acme Some(\"b\") [\"a\", \"b\"] 3"]);
}

#[tokio::test]
async fn a_hub_has_the_id_and_the_pattern_that_it_is_given() {
    let provider = discovery(Hub::default()).id("rube").covers("rube_*").build();
    assert_eq!((provider.id(), provider.covers()), ("rube", Some("rube_*")));
    let error = fails(provider, &of_tenant("refused")).await;
    assert_eq!((error.message(), error.http_status()), ("who are you?", Some(403)));
}

#[tokio::test]
async fn a_hub_that_ignores_cancellation_is_left() {
    let provider = discovery(Hub::default()).build();
    let cx = of_tenant("never");
    let waiting = tokio::spawn(provider.list(&cx).wait());
    tokio::task::yield_now().await;
    cx.cancellation().cancel();
    let error = in_time(waiting).await.unwrap().unwrap_err();
    assert_eq!(error.class(), DiscoveryErrorClass::Cancelled);
}
