//! Measures deciding which tools a model may see: rules, gates, and caches.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;
use toolcrib_benches::{Cell, Outcome, Table, engine, median, micros, print, runtime, tool};
use toolcrib_core::{
    CacheOptions, CancellationToken, Identity, KeyField, ListContext, Listing, Policy, Rule,
    RuleConditions, Tool, ToolProvider, Ttl, cached, gated_tools, static_tools,
};
use toolcrib_engine::TurnOptions;

/// Number of repetitions; the figures are medians.
const TIMES: usize = 200;

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench visibility";

fn main() -> Outcome {
    let runtime = runtime()?;
    print(&[rules(&runtime)?, gates()?, hits()?])
}

/// Rules of every kind, of which only the last matches most tools.
fn fifty_rules() -> Policy {
    let narrow = (0..49).map(|number| {
        let rule = Rule::deny(format!("rule {number}"))
            .tools([format!("look_up_{number:02}?7"), format!("*_ledger_{number}")]);
        match number % 3 {
            0 => rule.destructive(true),
            1 => rule
                .when(RuleConditions { tenants: vec!["acme".into()], ..RuleConditions::default() }),
            _ => rule.when(RuleConditions {
                roles: vec!["trainee".into()],
                ..RuleConditions::default()
            }),
        }
    });
    Policy::of(narrow.chain([Rule::allow("the rest").read_only(true)]))
}

/// The first iteration of a turn, in which everything is decided, and the next, in which nothing
/// has changed.
fn rules(runtime: &Runtime) -> Outcome<Table> {
    let mut rows = Vec::new();
    for count in [10, 1000, 10_000] {
        let tools: Vec<Tool> = (0..count).map(tool).collect::<Result<_, _>>()?;
        for (name, policy) in [("none", Policy::default()), ("50", fifty_rules())] {
            let source = static_tools(tools.iter().cloned());
            let (mut first, mut next) = (Vec::new(), Vec::new());
            let engine = engine().provider(source).policy(policy).build()?;
            for time in 0..TIMES {
                // A different principal each time: the result for one would be reused for the same
                // one.
                let somebody = TurnOptions::default().principal(time.to_string());
                let mut turn = engine.turn(somebody)?;
                for times in [&mut first, &mut next] {
                    let began = Instant::now();
                    let iteration = runtime.block_on(turn.iteration())?;
                    times.push(micros(began.elapsed()));
                    if iteration.menu().len() != count {
                        return Err("a rule withholds what it should not".into());
                    }
                }
            }
            rows.push(vec![
                Cell::from(count as u64),
                name.into(),
                median(first).into(),
                median(next).into(),
            ]);
        }
    }
    Ok(Table {
        title: "What is offered, under rules",
        command: COMMAND,
        columns: vec!["tools", "rules", "composed first, µs", "composed again, unchanged, µs"],
        rows,
    })
}

/// Listing alone, and the time that a closure adds per tool.
fn gates() -> Outcome<Table> {
    const TOOLS: usize = 1000;
    let tools: Vec<Tool> = (0..TOOLS).map(tool).collect::<Result<_, _>>()?;
    let bare = static_tools(tools);
    let gated = gated_tools("nines", Arc::clone(&bare), |tool: &Tool, _: &ListContext| {
        !tool.name().ends_with('9')
    });
    let bare = listed(&bare)?;
    let gated = listed(&gated)?;
    Ok(Table {
        title: "A closure as a gate",
        command: COMMAND,
        columns: vec!["1,000 tools", "listed, µs", "more per tool, ns"],
        rows: vec![
            vec!["no gate".into(), bare.into(), "–".into()],
            vec![
                "one closure".into(),
                gated.into(),
                ((gated - bare) * 1000.0 / TOOLS as f64).into(),
            ],
        ],
    })
}

/// The time that a cache adds to a listing, and the time of a hit alone.
fn hits() -> Outcome<Table> {
    let mut rows = Vec::new();
    for count in [10, 100, 1000] {
        let tools: Vec<Tool> = (0..count).map(tool).collect::<Result<_, _>>()?;
        let bare = static_tools(tools);
        let options = CacheOptions::new([KeyField::Tenant], Ttl::after(Duration::from_secs(3600)));
        let cache: Arc<dyn ToolProvider> = cached(Arc::clone(&bare), options);
        fill(&cache)?;
        let (bare, hit) = (listed(&bare)?, listed(&cache)?);
        rows.push(vec![Cell::from(count as u64), bare.into(), hit.into(), (hit - bare).into()]);
    }
    Ok(Table {
        title: "A hit of a cache",
        command: COMMAND,
        columns: vec!["tools", "listed without, µs", "a hit, µs", "more, µs"],
        rows,
    })
}

/// Lists once, to fill the cache.
fn fill(provider: &Arc<dyn ToolProvider>) -> Outcome {
    let filled = match Arc::clone(provider).list(&nobody()) {
        Listing::Now(filled) => filled,
        Listing::Later(later) => runtime()?.block_on(later),
    };
    Ok(filled.map(drop)?)
}

/// A listing without an identity.
fn nobody() -> ListContext {
    ListContext::new(Arc::new(Identity::conversation("bench")), CancellationToken::new())
}

/// The time of a listing.
fn listed(provider: &Arc<dyn ToolProvider>) -> Outcome<f64> {
    let cx = nobody();
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let began = Instant::now();
        let Listing::Now(Ok(filled)) = Arc::clone(provider).list(&cx) else {
            return Err("it did not list at once".into());
        };
        times.push(micros(began.elapsed()));
        black_box(filled);
    }
    Ok(median(times))
}
