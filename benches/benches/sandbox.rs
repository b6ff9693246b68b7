//! Measures the start of programs in each sandbox, to the end of a program that does nothing.

use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use toolcrib_benches::{Cell, Outcome, Table, median, micros, print, quantile};
use toolcrib_capabilities::{
    http::{EgressProxy, HttpClient},
    process::{ProcessEnd, ProcessSpec, Processes, SandboxTier, sandbox_support},
};

/// Number of starts in each sandbox, in turns: the machine's load is the same for all.
const TIMES: usize = 200;

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench sandbox";

fn main() -> Outcome {
    // Programs need I/O.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    print(&[starts(&runtime)?])
}

/// `/bin/true` in a sandbox; with a proxy in the strongest.
fn spec(tier: SandboxTier, has_proxy: bool) -> ProcessSpec {
    let mut spec = ProcessSpec::new("/bin/true", "/usr");
    spec.sandbox = tier.into();
    if has_proxy {
        let client = HttpClient::builder().allowed_hosts(Some(Vec::new())).build();
        spec.sandbox.network = Some(EgressProxy::new(client));
    }
    spec
}

fn starts(runtime: &Runtime) -> Outcome<Table> {
    let all = SandboxTier::ALL.map(|tier| (tier, false)).into_iter();
    let mut kinds = Vec::new();
    for (tier, has_proxy) in all.chain([(SandboxTier::Full, true)]) {
        sandbox_support(tier)?;
        let name = if has_proxy { format!("{tier}, with a proxy") } else { tier.to_string() };
        kinds.push((name, spec(tier, has_proxy), Vec::with_capacity(TIMES)));
    }
    let (processes, never) = (Processes::any(), CancellationToken::new());
    for _ in 0..TIMES {
        for (_, spec, times) in &mut kinds {
            let began = Instant::now();
            let run = processes.run(spec.clone(), &never, |_, _| {});
            let ended = runtime.block_on(run)?.ended;
            times.push(micros(began.elapsed()));
            if ended != ProcessEnd::Code(0) {
                return Err(format!("the program ended with {ended}").into());
            }
        }
    }
    let rows = kinds.into_iter().map(|(name, _, times)| {
        vec![
            Cell::Text(name),
            (median(times.clone()) / 1000.0).into(),
            (quantile(times, 0.99) / 1000.0).into(),
        ]
    });
    Ok(Table {
        title: "Starting a program in a sandbox",
        command: COMMAND,
        columns: vec!["sandbox", "p50, ms", "p99, ms"],
        rows: rows.collect(),
    })
}
