//! Runs the rounds, and reports the figures.

use tokio::runtime::Builder;
use toolcrib_benches::{Cell, Outcome, Table};

use crate::{
    COMMAND, chaos,
    figures::{Round, Rounds},
    replicas,
    ways::{Setup, Way, missing},
};

/// Numbers of concurrent calls.
const CALLERS: [usize; 3] = [1, 16, 64];

/// Default number of rounds of each way with each number of callers.
pub(crate) const ROUNDS: usize = 7;

const EACH: [&str; 10] = [
    "",
    "1 caller: median, µs",
    "99 % below, µs",
    "calls/s",
    "16: median, µs",
    "99 % below, µs",
    "calls/s",
    "64: median, µs",
    "99 % below, µs",
    "calls/s",
];

/// All tables of this bench, or only those of the ways with this in their name.
pub(crate) fn tables(rounds: usize, named: Option<&str>) -> Outcome<Vec<Table>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let setup = Setup::find()?;
    let found = |ways: &[Way]| {
        let named = |way: &&Way| named.is_none_or(|part| way.name().contains(part));
        let ways: Vec<Way> = ways.iter().filter(named).copied().collect();
        runtime.block_on(Found::by(&setup, &ways, rounds))
    };
    let (http, stdio) = (found(&Way::HTTP)?, found(&Way::STDIO)?);
    let mut tables = vec![
        http.calls("A call over HTTP"),
        stdio.calls("A call over stdio"),
        goals(&http, &stdio),
        memory(&http, &stdio),
    ];
    if named.is_none_or(|part| part == replicas::NAME) {
        tables.extend(replicas::tables(&setup, rounds)?);
    }
    match &setup.chaos {
        _ if named.is_some() => {}
        Some(program) => tables.push(chaos::table(program, rounds)?),
        None => missing("a bad server"),
    }
    tables.retain(|table| !table.rows.is_empty());
    Ok(tables)
}

/// The results of ways that were measured alternately.
struct Found(Vec<Gone>);

/// The results of one way.
struct Gone {
    way: Way,
    /// By number of callers, as in [`CALLERS`].
    rounds: [Rounds; CALLERS.len()],
    at_rest: f64,
    afterwards: f64,
}

impl Found {
    /// Opens them all, and measures one after the other, repeatedly.
    async fn by(setup: &Setup, ways: &[Way], rounds: usize) -> Outcome<Self> {
        let mut open = Vec::new();
        for way in ways {
            if let Some(mut way) = setup.open(*way).await? {
                way.once().await?;
                let at_rest = way.memory();
                let found =
                    Gone { way: way.way, rounds: Default::default(), at_rest, afterwards: 0.0 };
                open.push((way, found));
            }
        }
        for round in 1..=rounds {
            eprintln!("round {round} of {rounds}");
            for (at, callers) in CALLERS.into_iter().enumerate() {
                for (way, gone) in &mut open {
                    let found = way.round(callers).await?;
                    if let Some(rounds) = gone.rounds.get_mut(at) {
                        rounds.0.push(found);
                    }
                }
            }
        }
        for (way, gone) in &mut open {
            gone.afterwards = way.memory();
        }
        Ok(Self(open.into_iter().map(|(_, gone)| gone).collect()))
    }

    fn calls(&self, title: &'static str) -> Table {
        let row = |gone: &Gone| {
            let figures = gone.rounds.iter().flat_map(|rounds| {
                let middle = |of: fn(&Round) -> f64| Cell::from(rounds.middle(of));
                [middle(|each| each.p50), middle(|each| each.p99), middle(|each| each.rate)]
            });
            [Cell::from(gone.way.name())].into_iter().chain(figures).collect()
        };
        Table {
            title,
            command: COMMAND,
            columns: EACH.to_vec(),
            rows: self.0.iter().map(row).collect(),
        }
    }

    fn on(&self, way: Way, callers: usize) -> Option<&Rounds> {
        let at = CALLERS.iter().position(|number| *number == callers)?;
        self.0.iter().find(|gone| gone.way == way)?.rounds.get(at)
    }
}

/// The goals with the measured figures; a goal that lacks a way has no row.
fn goals(http: &Found, stdio: &Found) -> Table {
    use Bound::{Least, Most};

    let over = |ours: Way, other: Way, of: fn(&Round) -> f64, callers: usize, found: &Found| {
        Some(found.on(ours, callers)?.with(found.on(other, callers)?, |a, b| of(a) / of(b)))
    };
    let rate = |round: &Round| round.rate;
    let p50 = |round: &Round| round.p50;
    let half = |ours, direct| over(ours, direct, rate, 64, http);
    let best = |ours| {
        let gateways = [Way::McpProxy, Way::Supergateway];
        let each = gateways.map(|way| over(ours, way, rate, 64, http));
        each.into_iter().flatten().reduce(f64::min)
    };
    let added = |ours: Way, direct: Way, found: &Found| {
        Some(found.on(ours, 1)?.with(found.on(direct, 1)?, |a, b| a.p50 - b.p50))
    };
    let hops = || {
        let ours = added(Way::StdioOursToStdio, Way::StdioDirect, stdio)?;
        Some(ours / added(Way::StdioHop, Way::StdioDirect, stdio)?)
    };
    let rows = [
        goal(
            "sessions, 64 callers: calls/s / direct",
            half(Way::OursToHttp, Way::Direct),
            Least(0.5),
        ),
        goal(
            "stateless, 64 callers: calls/s / direct",
            half(Way::OursStateless, Way::DirectStateless),
            Least(0.5),
        ),
        goal(
            "to HTTP, 64 callers: calls/s / the best other gateway's to stdio",
            best(Way::OursToHttp),
            Least(4.0),
        ),
        goal("to stdio, 64 callers: the same", best(Way::OursToStdio), None),
        goal(
            "to stdio, 64 callers: calls/s / the bare proxy's",
            over(Way::OursToStdio, Way::Hop, rate, 64, http),
            None,
        ),
        goal(
            "sessions, 1 caller: added to the median, µs",
            added(Way::OursToHttp, Way::Direct, http),
            Most(300.0),
        ),
        goal(
            "stateless, 1 caller: added to the median, µs",
            added(Way::OursStateless, Way::DirectStateless, http),
            Most(300.0),
        ),
        goal("stdio, 1 caller: added / what the bare proxy adds", hops(), Most(1.3)),
        goal(
            "stdio, 1 caller: median / through the bare proxy",
            over(Way::StdioOursToStdio, Way::StdioHop, p50, 1, stdio),
            Most(1.3),
        ),
    ];
    Table {
        title: "The gateway's goals",
        command: COMMAND,
        columns: vec!["", "found", "goal", "met"],
        rows: rows.into_iter().flatten().collect(),
    }
}

/// The goal of a figure.
#[derive(Clone, Copy)]
enum Bound {
    Least(f64),
    Most(f64),
}

/// A row of the goals; one without a goal is for comparison.
fn goal(what: &str, found: Option<f64>, bound: impl Into<Option<Bound>>) -> Option<Vec<Cell>> {
    let found = found?;
    let Some(bound) = bound.into() else {
        return Some(vec![what.into(), found.into(), "".into(), "".into()]);
    };
    let (sign, goal, met) = match bound {
        Bound::Least(goal) => ("≥", goal, found >= goal),
        Bound::Most(goal) => ("≤", goal, found <= goal),
    };
    let goal = format!("{sign} {}", Cell::from(goal));
    let met = if met { "yes" } else { "no" };
    Some(vec![what.into(), found.into(), goal.as_str().into(), met.into()])
}

fn memory(http: &Found, stdio: &Found) -> Table {
    let rows = |found: &Found, front: &str| {
        let row = |gone: &Gone| {
            let name = format!("{front}: {}", gone.way.name());
            vec![name.as_str().into(), gone.at_rest.into(), gone.afterwards.into()]
        };
        found.0.iter().map(row).collect::<Vec<Vec<Cell>>>()
    };
    Table {
        title: "Memory of what the client talks to",
        command: COMMAND,
        columns: vec!["", "after one call, MiB", "after all rounds, MiB"],
        rows: rows(http, "HTTP").into_iter().chain(rows(stdio, "stdio")).collect(),
    }
}
