//! No caller receives another identity's tools, regardless of the key and the order of requests.

use std::sync::Arc;

use proptest::prelude::*;
use toolcrib_core::{
    CacheOptions, CancellationToken, Identity, IdentityScope, KeyField, ListContext, Listing, Tool,
    ToolProvider, Ttl, cached, from_fn, per_identity, static_tools,
};

use crate::support::{names, skill, tool};

fn key() -> impl Strategy<Value = Vec<KeyField>> {
    let all = vec![
        KeyField::Tenant,
        KeyField::Principal,
        KeyField::Conversation,
        KeyField::ActiveSkill,
        KeyField::ActiveSkills,
        KeyField::Iteration,
    ];
    prop::sample::subsequence(all, 0..=6)
}

fn context() -> impl Strategy<Value = ListContext> {
    let name = || prop::option::of("[ab]{1}");
    (name(), name(), "[cd]{1}", prop::collection::vec("[st]{1}", 0..3), 1..3_u32).prop_map(
        |(tenant, principal, conversation, skills, iteration)| {
            let identity = Identity {
                tenant: tenant.map(Into::into),
                principal: principal.map(Into::into),
                conversation: conversation.into(),
            };
            ListContext::new(Arc::new(identity), CancellationToken::new())
                .with_iteration(iteration)
                .with_active_skills(skills.iter().map(|id| skill(id)).collect())
        },
    )
}

/// A tool named after the identity that its provider received.
fn whose(cx: &ListContext) -> String {
    let identity = cx.identity();
    let or = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let skills: Vec<_> = cx.active_skills().iter().map(toolcrib_core::SkillId::as_str).collect();
    format!(
        "t_{}_{}_{}_{}_{}",
        or(identity.tenant.as_deref()),
        or(identity.principal.as_deref()),
        or(Some(&*identity.conversation).filter(|text| !text.is_empty())),
        skills.concat(),
        cx.iteration(),
    )
}

fn at_once(provider: Arc<dyn ToolProvider>, cx: &ListContext) -> Vec<String> {
    let Listing::Now(Ok(catalog)) = provider.list(cx) else {
        panic!("it answers at once");
    };
    names(&catalog)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_cache_hands_out_what_the_same_person_would_get_without_it(
        key in key(),
        contexts in prop::collection::vec(context(), 1..40),
    ) {
        let source = from_fn("whose", |cx: &ListContext| [tool(&whose(cx))]);
        let cache = cached(source, CacheOptions::new(key.clone(), Ttl::forever()).max_entries(3));
        let has = |field| key.contains(&field);
        for cx in contexts {
            let got = at_once(Arc::clone(&cache) as _, &cx).remove(0);
            // Field by field: the caller's value if the key declares it, otherwise absent.
            let identity = cx.identity();
            let expected = Identity {
                tenant: identity.tenant.clone().filter(|_| has(KeyField::Tenant)),
                principal: identity.principal.clone().filter(|_| has(KeyField::Principal)),
                conversation: match has(KeyField::Conversation) {
                    true => Arc::clone(&identity.conversation),
                    false => "".into(),
                },
            };
            let skills: Arc<[_]> = match (has(KeyField::ActiveSkills), has(KeyField::ActiveSkill)) {
                (true, _) => Arc::clone(cx.active_skills()),
                (false, true) => cx.active_skill().cloned().into_iter().collect(),
                (false, false) => Arc::default(),
            };
            let iteration = if has(KeyField::Iteration) { cx.iteration() } else { 0 };
            let expected = ListContext::new(Arc::new(expected), CancellationToken::new())
                .with_active_skills(skills)
                .with_iteration(iteration);
            prop_assert_eq!(got, whose(&expected));
            prop_assert!(cache.len() <= 3);
        }
    }

    #[test]
    fn a_provider_of_one_is_never_asked_for_another(
        contexts in prop::collection::vec(context(), 1..40),
        by_tenant in any::<bool>(),
    ) {
        let by = if by_tenant { IdentityScope::Tenant } else { IdentityScope::Principal };
        let name = |identity: &Identity| {
            let or = |text: &Option<Arc<str>>| text.as_deref().unwrap_or("-").to_owned();
            format!("t_{}_{}", or(&identity.tenant), or(&identity.principal))
        };
        let provider = per_identity(by, 3, move |identity| {
            Ok::<_, String>(static_tools([tool(&name(identity)) as Tool]))
        });
        for cx in contexts {
            let mut own = (**cx.identity()).clone();
            if by_tenant {
                own.principal = None;
            }
            prop_assert_eq!(at_once(Arc::clone(&provider) as _, &cx), [name(&own)]);
            prop_assert!(provider.len() <= 3);
        }
    }
}
