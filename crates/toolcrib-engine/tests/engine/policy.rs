//! The one rule list, at the menu and at the call.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::future::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{
    Approval, ApprovalRequest, Approver, CancellationToken, Effect, ErrorCode, Glob, Policy,
    PolicyDefault, Rule, Tool, ToolContext,
};
use toolcrib_engine::{Engine, TurnOptions};

use crate::support::{
    Log, builder, call, engine, in_time, menu, offered, once, policy, reading, rule, rule_on, says,
    skill_id, skills, tool, why,
};

use Effect::{Allow, Ask, Deny};

fn three(policy: Policy) -> Engine {
    engine()
        .tools([reading("read_a"), tool("write_a"), tool("write_b")])
        .policy(policy)
        .build()
        .unwrap()
}

async fn left(policy: Policy) -> Vec<String> {
    offered(&three(policy), TurnOptions::default()).await
}

#[tokio::test]
async fn the_first_rule_that_matches_decides() {
    let deny_then_allow = policy([rule_on("1", Deny, "write_*"), rule_on("2", Allow, "write_a")]);
    assert_eq!(left(deny_then_allow).await, ["read_a"]);
    let allow_then_deny = policy([rule_on("1", Allow, "write_a"), rule_on("2", Deny, "write_*")]);
    assert_eq!(left(allow_then_deny).await, ["read_a", "write_a"]);
}

#[tokio::test]
async fn the_default_decides_where_no_rule_matches() {
    assert_eq!(left(Policy::default()).await.len(), 3);
    let mut denied = policy([rule_on("1", Allow, "read_a")]);
    denied.default = PolicyDefault::Deny;
    let engine = three(denied);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    let mut iteration = turn.iteration().await.unwrap();
    assert_eq!(menu(&iteration), ["read_a"]);
    assert_eq!(
        why(iteration.withheld(), "write_a"),
        "no rule allows it, and policy_default is \"deny\"; \
         no skill, personality, principal, role, tenant or iteration would offer it"
    );
    iteration.execute(vec![call("write_a", json!({}))]).await;
    assert_eq!(log.of_name("policy.denied")[0]["rule"], "policy_default");
}

#[tokio::test]
async fn patterns_and_labels_are_exact_about_letter_case() {
    for (glob, expected) in [
        ("write_*", 1),
        ("*", 0),
        ("WRITE_*", 3),
        ("write_?", 1),
        ("write", 3),
        ("", 3),
        ("*_a", 1),
    ] {
        let left = left(policy([rule_on("1", Deny, glob)])).await;
        assert_eq!(left.len(), expected, "{glob:?} leaves {left:?}");
    }
}

#[tokio::test]
async fn toolsets_and_annotations_narrow_a_rule() {
    let tools = || {
        [
            says(builder("a").toolset("billing").read_only(), ""),
            says(builder("b").toolset("billing").destructive(), ""),
            says(builder("c").toolset("shipping").idempotent(), ""),
            tool("d"),
        ]
    };
    let left = |narrow: fn(&mut Rule)| async move {
        let mut rule = rule("1", Deny);
        narrow(&mut rule);
        let engine = engine().tools(tools()).policy(policy([rule])).build().unwrap();
        offered(&engine, TurnOptions::default()).await
    };
    let nobody: [&str; 0] = [];
    assert_eq!(left(|_| {}).await, nobody);
    assert_eq!(left(|r| r.tools.toolsets = vec![Glob::new("bill*")]).await, ["c", "d"]);
    assert_eq!(left(|r| r.tools.annotations.read_only = Some(false)).await, ["a"]);
    assert_eq!(left(|r| r.tools.annotations.destructive = Some(true)).await, ["a", "c", "d"]);
    assert_eq!(left(|r| r.tools.annotations.idempotent = Some(true)).await, ["a", "b", "d"]);
    assert_eq!(
        left(|r| {
            r.tools.toolsets = vec![Glob::new("billing")];
            r.tools.annotations.read_only = Some(true);
        })
        .await,
        ["b", "c", "d"]
    );
}

#[tokio::test]
async fn roles_are_those_of_the_principal_and_nobody_has_one_by_default() {
    let mut trainees = rule_on("1", Deny, "write_*");
    trainees.when.roles = vec!["trainee".into(), "guest".into()];
    let mut policy = policy([trainees]);
    policy.roles.grant("intern", "trainee");
    policy.roles.grant("visitor", "guest");
    policy.roles.grant("boss", "manager");
    let engine = three(policy);
    for (principal, expected) in [
        (Some("intern"), 1),
        (Some("visitor"), 1),
        (Some("boss"), 3),
        (Some("trainee"), 3),
        (Some("Intern"), 3),
        (None, 3),
    ] {
        let mut options = TurnOptions::default();
        options.principal = principal.map(Into::into);
        assert_eq!(offered(&engine, options).await.len(), expected, "{principal:?}");
    }
}

#[tokio::test]
async fn tenants_are_exact_and_absent_ones_match_no_rule() {
    let mut acme = rule_on("1", Deny, "write_*");
    acme.when.tenants = vec!["acme".into()];
    let engine = three(policy([acme]));
    for (tenant, expected) in [("acme", 1), ("Acme", 3), ("other", 3)] {
        let options = TurnOptions::default().tenant(tenant);
        assert_eq!(offered(&engine, options).await.len(), expected, "{tenant}");
    }
    assert_eq!(offered(&engine, TurnOptions::default()).await.len(), 3);
}

#[tokio::test]
async fn writes_only_for_an_active_skill_that_lists_them_is_one_rule() {
    let mut unlisted = rule("writes", Deny);
    unlisted.tools.annotations.read_only = Some(false);
    unlisted.when.listed_by_active_skill = Some(false);
    let engine = engine()
        .tools([reading("read_a"), tool("write_a"), tool("write_b")])
        .skills(skills([("a", &["write_a"]), ("b", &["write_b"])]).focus(false))
        .policy(policy([unlisted]))
        .build()
        .unwrap();
    let with = |ids: &[&str]| {
        let options =
            ids.iter().fold(TurnOptions::default(), |options, id| options.skill(skill_id(id)));
        offered(&engine, options)
    };
    assert_eq!(with(&[]).await, ["read_a", "read_skill"]);
    assert_eq!(with(&["a"]).await, ["read_a", "write_a", "read_skill"]);
    assert_eq!(with(&["a", "b"]).await, ["read_a", "write_a", "write_b", "read_skill"]);
}

#[tokio::test]
async fn a_rule_on_skills_holds_while_one_of_them_is_active() {
    let mut in_a = rule_on("1", Deny, "t");
    in_a.when.skills = vec![skill_id("a"), skill_id("b")];
    let engine = engine()
        .tool(says(builder("t").always_include(), ""))
        .skills(skills([("a", &[]), ("b", &[]), ("c", &[])]))
        .policy(policy([in_a]))
        .build()
        .unwrap();
    for (skill, there) in [("a", false), ("b", false), ("c", true)] {
        let options = TurnOptions::default().skill(skill_id(skill));
        let offered = offered(&engine, options).await;
        assert_eq!(offered.contains(&"t".to_owned()), there, "{skill}");
    }
}

#[tokio::test]
async fn what_toolcrib_itself_offers_is_judged_only_by_rules_that_name_it() {
    let offers_read_skill = |policy: Policy| async {
        let engine = engine()
            .tool(tool("t"))
            .skills(skills([("a", &["t"])]))
            .policy(policy)
            .build()
            .unwrap();
        let offered = offered(&engine, TurnOptions::default()).await;
        offered.contains(&"read_skill".to_owned())
    };
    let mut all_of_a_kind = rule("1", Deny);
    all_of_a_kind.tools.annotations.read_only = Some(true);
    for rule in
        [rule("1", Deny), rule_on("1", Deny, "*"), rule_on("1", Deny, "read_*"), all_of_a_kind]
    {
        assert!(offers_read_skill(policy([rule])).await);
    }
    let closed = Policy { default: PolicyDefault::Deny, ..Policy::default() };
    assert!(offers_read_skill(closed).await);
    assert!(!offers_read_skill(policy([rule_on("1", Deny, "read_skill")])).await);
}

/// Counts how often its body ran.
fn counted(name: &str, runs: &Arc<AtomicUsize>) -> Tool {
    let runs = Arc::clone(runs);
    let schema =
        json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}});
    builder(name)
        .input_schema(schema)
        .handler(move |_: Value, _: ToolContext| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { "ran" }
        })
        .unwrap()
}

#[tokio::test]
async fn what_is_withheld_never_runs_under_any_name_and_reads_like_what_never_was() {
    let runs = Arc::new(AtomicUsize::new(0));
    let mut denied = rule_on("rule 1 (toolcrib.toml:9)", Deny, "refund");
    denied.reason = Some("Not on Fridays.".into());
    let engine = engine()
        .tools([counted("refund", &runs), tool("other")])
        .policy(policy([denied]))
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    let mut iteration = turn.iteration().await.unwrap();
    for (name, by_rule) in [
        ("refund", true),
        ("refund", true),
        ("Refund", false),
        ("REFUND", false),
        ("refund ", false),
        (" refund", false),
        ("refund\u{200b}", false),
        ("r\u{0435}fund", false),
        ("no_such_tool", false),
    ] {
        let seen = log.of_name("policy.denied").len();
        // Arguments that do not match its schema must not reveal that it exists, either.
        let args = if seen == 0 { json!({"x": 1}) } else { json!({"x": "one"}) };
        let result = iteration.execute(vec![call(name, args)]).await.remove(0);
        assert_eq!(result.code, Some(ErrorCode::NotAvailable), "{name:?}");
        assert_eq!(
            &*result.value,
            format!(
                "unknown tool `{}`; call one of the tools that are offered",
                name.escape_debug()
            )
        );
        assert!(!result.untrusted);
        let denials = log.of_name("policy.denied");
        assert_eq!(denials.len() - seen, usize::from(by_rule), "{name:?}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    let denied = &log.of_name("policy.denied")[0];
    assert_eq!(denied["rule"], "rule 1 (toolcrib.toml:9)");
    assert_eq!(denied["reason"], "Not on Fridays.");
    assert_eq!(denied["call_id"], "id-refund");
}

#[tokio::test]
async fn what_a_skill_hides_cannot_be_called_and_no_rule_is_blamed() {
    let runs = Arc::new(AtomicUsize::new(0));
    let engine = engine()
        .tools([counted("refund", &runs), tool("lookup")])
        .skills(skills([("a", &["lookup"]), ("b", &["refund"])]))
        .build()
        .unwrap();
    let options = TurnOptions::default().skill(skill_id("a"));
    let mut turn = engine.turn(options).unwrap();
    let log = Log::of(turn.events().run());
    let mut iteration = turn.iteration().await.unwrap();
    let result = iteration.execute(vec![call("refund", json!({"x": 1}))]).await.remove(0);
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert!(log.of_name("policy.denied").is_empty());
}

/// An approver from a function, which records its requests.
struct Answers<F>(F, Arc<Mutex<Vec<Value>>>);

impl<F> Approver for Answers<F>
where
    F: Fn() -> BoxFuture<'static, Approval> + Send + Sync + 'static,
{
    fn approve<'a>(&'a self, call: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        self.1.lock().unwrap().push(call.args.clone());
        (self.0)()
    }
}

struct Asked {
    engine: Engine,
    runs: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<Value>>>,
}

fn asking(answer: impl Fn() -> BoxFuture<'static, Approval> + Send + Sync + 'static) -> Asked {
    let (runs, asked) = (Arc::default(), Arc::default());
    let engine = engine()
        .tool(counted("pay", &runs))
        .policy(policy([rule_on("rule 4", Ask, "pay")]))
        .approver(Answers(answer, Arc::clone(&asked)))
        .build()
        .unwrap();
    Asked { engine, runs, asked }
}

#[tokio::test]
async fn ask_is_offered_and_denied_where_nobody_can_be_asked() {
    let runs = Arc::new(AtomicUsize::new(0));
    let engine = engine()
        .tool(counted("pay", &runs))
        .policy(policy([rule_on("rule 4", Ask, "pay")]))
        .build()
        .unwrap();
    assert_eq!(offered(&engine, TurnOptions::default()).await, ["pay"]);
    let log = Log::of(engine.events());
    let result = once(&engine, "pay", json!({"x": 1})).await;
    assert_eq!(result.code, Some(ErrorCode::Denied));
    assert_eq!(log.of_name("policy.denied")[0]["rule"], "rule 4");
    assert_eq!(&*result.value, "calling `pay` needs approval, and no approver is available");
    assert_eq!(result.cause.as_deref(), Some("rule 4: no approver is configured"));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_tool_that_asks_when_tainted_is_approved_first_in_a_tainted_turn() {
    for (tainted, approval, expected) in [
        (false, Approval::Refused("not now".into()), (None, 1, 0)),
        (true, Approval::Refused("not now".into()), (Some(ErrorCode::Denied), 0, 1)),
        (true, Approval::Approved, (None, 1, 1)),
    ] {
        let (runs, asked) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let counts = Arc::clone(&runs);
        let remember =
            builder("remember").asks_when_tainted().handler(move |_: Value, _: ToolContext| {
                counts.fetch_add(1, Ordering::SeqCst);
                async { "remembered" }
            });
        let answer = move || -> BoxFuture<'static, Approval> {
            let approval = approval.clone();
            Box::pin(async { approval })
        };
        let approver = Answers(answer, Arc::clone(&asked));
        let engine = engine().tool(remember).approver(approver).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default().tainted(tainted)).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        let result = iteration.execute(vec![call("remember", json!({}))]).await.remove(0);
        let asked = asked.lock().unwrap().len();
        assert_eq!((result.code, runs.load(Ordering::SeqCst), asked), expected, "{tainted}");
    }
}

#[tokio::test]
async fn an_approved_call_runs_and_a_refused_one_says_why() {
    let yes = asking(|| Box::pin(async { Approval::Approved }));
    assert!(once(&yes.engine, "pay", json!({"x": 1})).await.is_ok());
    assert_eq!(*yes.asked.lock().unwrap(), [json!({"x": 1})]);
    assert_eq!(yes.runs.load(Ordering::SeqCst), 1);

    let no = asking(|| Box::pin(async { Approval::Refused("ask again tomorrow".into()) }));
    let result = once(&no.engine, "pay", json!({"x": 1})).await;
    assert_eq!((result.code, &*result.value), (Some(ErrorCode::Denied), "ask again tomorrow"));
    assert_eq!(no.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_approver_that_panics_denies_and_what_it_said_is_not_the_models() {
    let now = asking(|| panic!("s3cret bug"));
    let later = asking(|| Box::pin(async { panic!("s3cret bug") }));
    for Asked { engine, runs, .. } in [now, later] {
        let result = once(&engine, "pay", json!({"x": 1})).await;
        assert_eq!(result.code, Some(ErrorCode::Denied));
        assert_eq!(&*result.value, "calling `pay` was not approved");
        assert_eq!(result.cause.as_deref(), Some("rule 4: the approver panicked: s3cret bug"));
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn invalid_arguments_are_refused_before_an_approval() {
    let yes = asking(|| Box::pin(async { Approval::Approved }));
    let result = once(&yes.engine, "pay", json!({"x": "one"})).await;
    assert_eq!(result.code, Some(ErrorCode::InputInvalid));
    assert!(yes.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn cancellation_does_not_wait_for_a_person() {
    let never = asking(|| Box::pin(std::future::pending()));
    let cancel = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancel.clone());
    let mut turn = never.engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let calls = vec![call("pay", json!({"x": 1}))];
    let cancelling = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (results, ()) = in_time(async { tokio::join!(iteration.execute(calls), cancelling) }).await;
    assert_eq!(results[0].code, Some(ErrorCode::Cancelled));
    assert_eq!(never.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_calls_of_a_batch_are_judged_one_by_one() {
    let runs = Arc::new(AtomicUsize::new(0));
    let engine = engine()
        .tools(["a", "b", "c"].map(|name| counted(name, &runs)))
        .policy(policy([rule_on("1", Deny, "b")]))
        .build()
        .unwrap();
    let calls = ["a", "b", "c"].map(|name| call(name, json!({"x": 1})));
    let results = crate::support::batch(&engine, calls.into()).await;
    let codes: Vec<_> = results.iter().map(|result| result.code).collect();
    assert_eq!(codes, [None, Some(ErrorCode::NotAvailable), None]);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bodies_run_exactly_for_the_calls_that_are_permitted(
        allowed in prop::collection::hash_set(0..5_usize, 0..5),
        batch in prop::collection::vec((0..6_usize, 0..4_usize), 0..12),
    ) {
        let runs: Vec<Arc<AtomicUsize>> = (0..5).map(|_| Arc::default()).collect();
        let tools = runs.iter().enumerate().map(|(n, runs)| counted(&format!("tool_{n}"), runs));
        let mut policy = Policy { default: PolicyDefault::Deny, ..Policy::default() };
        for n in &allowed {
            policy.rules.push(rule_on("allowed", Allow, &format!("tool_{n}")));
        }
        let engine = engine().tools(tools).policy(policy).build().unwrap();
        // Exactly the name, or something that only looks like it.
        let name = |n: usize, form: usize| match form {
            0 | 1 => format!("tool_{n}"),
            2 => format!("TOOL_{n}"),
            _ => format!("tool_{n} "),
        };
        let calls = batch.iter().map(|(n, form)| call(&name(*n, *form), json!({"x": 1})));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let results = runtime.block_on(crate::support::batch(&engine, calls.collect()));
        let mut expected = vec![0; 5];
        for ((n, form), result) in batch.iter().zip(&results) {
            let permitted = allowed.contains(n) && *form < 2;
            prop_assert_eq!(result.is_ok(), permitted, "{}", &result.name);
            if permitted {
                expected[*n] += 1;
            }
        }
        let ran: Vec<_> = runs.iter().map(|runs| runs.load(Ordering::SeqCst)).collect();
        prop_assert_eq!(ran, expected);
    }
}
