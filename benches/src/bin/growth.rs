//! What may not grow, for `cargo xtask counts`: `growth NAME` runs an operation at two sizes, and
//! calls [`counted_mark`] before and after each, where callgrind writes what it has counted so far.
//! It prints the sizes and the limit. `growth --list` prints the names. `growth --fill KIND SIZE FOLDER`
//! creates a project, for the commands whose costs are compared.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "host program: it creates files, and prints what it finds"
)]

use std::{env, fmt::Write as _, fs, hint::black_box, path::Path, sync::Arc};

use serde_json::json;
use tokio::runtime::Runtime;
use toolcrib_agent::{Agent, EndReason, RunOptions, Session};
use toolcrib_benches::{
    Caller, Menu, Outcome, agent, call, engine, runtime,
    session::{new_session, stored, turn_ended},
    tools,
};
use toolcrib_core::{
    Policy, Rule, SessionOwner, SessionRecord, SkillId, ToolResult, UsageEntry, UsageSource,
    static_tools,
};
use toolcrib_engine::{Skill, Skills, TurnOptions};
use toolcrib_store::SqliteStore;

/// An operation at two sizes.
struct Growth {
    name: &'static str,
    sizes: [usize; 2],
    /// The greatest cost at the second size, as a multiple of the cost at the first.
    limit: f64,
    run: fn([usize; 2]) -> Outcome,
}

/// The limit along a session, and for what does not depend on the size of a set.
const CONSTANT: f64 = 1.2;

/// The limit along a set that is ten times as large.
const LINEAR: f64 = 12.0;

/// The iterations that are counted from each size on.
const ITERATIONS: usize = 20;

const GROWTHS: [Growth; 9] = [
    Growth { name: "iteration", sizes: [100, 10_000], limit: CONSTANT, run: iterations },
    Growth {
        name: "iteration_in_session",
        sizes: [100, 10_000],
        limit: CONSTANT,
        run: iterations_in_session,
    },
    Growth { name: "call_beside_tools", sizes: [100, 10_000], limit: CONSTANT, run: calls },
    Growth { name: "menu_of_tools", sizes: [1_000, 10_000], limit: LINEAR, run: menus_of_tools },
    Growth {
        name: "menu_under_rules",
        sizes: [1_000, 10_000],
        limit: LINEAR,
        run: menus_under_rules,
    },
    Growth { name: "menu_of_skills", sizes: [1_000, 10_000], limit: LINEAR, run: menus_of_skills },
    Growth { name: "resume", sizes: [1_000, 10_000], limit: LINEAR, run: resumes },
    Growth { name: "turn", sizes: [1_000, 10_000], limit: LINEAR, run: turns },
    Growth {
        name: "turn_of_few_messages",
        sizes: [1_000, 10_000],
        limit: LINEAR,
        run: turns_of_few_messages,
    },
];

fn main() -> Outcome {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => GROWTHS.iter().for_each(|growth| println!("{}", growth.name)),
        ["--fill", kind, size, folder] => fill(kind, size.parse()?, Path::new(folder))?,
        [name] => {
            let growth = GROWTHS.iter().find(|growth| growth.name == name);
            let growth = growth.ok_or("unknown operation; `--list` prints the names")?;
            (growth.run)(growth.sizes)?;
            println!("{}", json!({ "sizes": growth.sizes, "limit": growth.limit }));
        }
        _ => return Err("write `growth NAME`, `--list`, or `--fill KIND SIZE FOLDER`".into()),
    }
    Ok(())
}

/// The place where callgrind writes its counts; it finds it by its name.
#[inline(never)]
fn counted_mark() {
    black_box(());
}

/// Counts the second run of an operation: the first one fills caches.
fn counted(mut work: impl FnMut() -> Outcome) -> Outcome {
    work()?;
    counted_mark();
    work()?;
    counted_mark();
    Ok(())
}

/// A run of iterations, of which those after each size are counted.
fn run(sizes: [usize; 2], runtime: &Runtime, options: RunOptions) -> Outcome {
    let all = sizes[1] + ITERATIONS;
    let model = Caller::new(all, move |request| {
        // Each iteration before this one added two messages.
        let iteration = request.messages.len() / 2;
        if sizes.iter().any(|size| iteration == *size || iteration == size + ITERATIONS) {
            counted_mark();
        }
    });
    let agent = agent(Menu::Ten, Arc::new(model.with_parsed_arguments()), all)?;
    match runtime.block_on(async { agent.run("Read the ledgers.", options).await }).end_reason {
        EndReason::Answered => Ok(()),
        stopped => Err(format!("it ended otherwise: {stopped}").into()),
    }
}

fn iterations(sizes: [usize; 2]) -> Outcome {
    run(sizes, &runtime()?, RunOptions::default())
}

fn iterations_in_session(sizes: [usize; 2]) -> Outcome {
    let (folder, runtime) = (tempfile::tempdir()?, runtime()?);
    let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db"))?);
    let session = runtime.block_on(Session::create(store, new_session("growth")))?;
    run(sizes, &runtime, RunOptions::default().session(&session))
}

/// A call in an engine with this many tools.
fn calls(sizes: [usize; 2]) -> Outcome {
    let runtime = runtime()?;
    for size in sizes {
        let engine = engine().provider(static_tools(tools(size)?)).build()?;
        let mut turn = engine.turn(TurnOptions::default())?;
        let mut iteration = runtime.block_on(turn.iteration())?;
        counted(|| {
            let results = runtime.block_on(iteration.execute(vec![call(1)]));
            results.iter().all(ToolResult::is_ok).then_some(()).ok_or("a call failed".into())
        })?;
    }
    Ok(())
}

/// The first menu of a turn.
fn menu(runtime: &Runtime, builder: toolcrib_engine::EngineBuilder, skills: &[SkillId]) -> Outcome {
    let engine = builder.build()?;
    counted(|| {
        let options = skills.iter().cloned().fold(TurnOptions::default(), TurnOptions::skill);
        let mut turn = engine.turn(options)?;
        runtime.block_on(async {
            black_box(turn.iteration().await?.menu().rendering());
            Ok(())
        })
    })
}

fn menus_of_tools(sizes: [usize; 2]) -> Outcome {
    let runtime = runtime()?;
    sizes
        .into_iter()
        .try_for_each(|size| menu(&runtime, engine().provider(static_tools(tools(size)?)), &[]))
}

/// One rule in ten concerns a tool, by its arguments.
fn menus_under_rules(sizes: [usize; 2]) -> Outcome {
    let runtime = runtime()?;
    sizes.into_iter().try_for_each(|size| {
        let rules = (0..size).map(|number| {
            Rule::deny(format!("rule {number}")).tools([format!("*_{}", number / 10)])
        });
        menu(&runtime, engine().tools(tools(100)?).policy(Policy::of(rules)), &[])
    })
}

fn menus_of_skills(sizes: [usize; 2]) -> Outcome {
    let runtime = runtime()?;
    sizes.into_iter().try_for_each(|size| {
        let listed = tools(100)?;
        let skills = (0..size).map(|number| {
            Skill::new(SkillId::from(format!("skill-{number}")), "Reads a ledger.", "Read it.")
                .tools(listed.get(number % 100).map(|tool| tool.name().clone()))
        });
        let skills = Skills::new(skills.collect::<Vec<_>>())?;
        menu(&runtime, engine().tools(tools(100)?).skills(skills), &["skill-7".into()])
    })
}

/// An agent whose model answers at once.
fn answering() -> Outcome<Agent> {
    agent(Menu::Ten, Arc::new(Caller::new(0, |_| {})), 0)
}

/// The rest of a turn whose process was killed after so many calls.
fn resumes(sizes: [usize; 2]) -> Outcome {
    let (folder, runtime, owner) = (tempfile::tempdir()?, runtime()?, SessionOwner::default());
    let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db"))?);
    for size in sizes {
        let ids = [0, 1].map(|copy| stored(&store, &format!("{size}-{copy}"), size, []));
        let mut ids = ids.into_iter().collect::<Outcome<Vec<_>>>()?.into_iter();
        counted(|| {
            let id = ids.next().ok_or("there are two sessions")?.id;
            runtime.block_on(async {
                let session = Session::open(Arc::clone(&store) as _, &owner, &id).await?;
                let options = RunOptions::default().session(&session);
                answering()?.resume(options).await.into_answer()?;
                Ok(session.close().await?)
            })
        })?;
    }
    Ok(())
}

/// Another turn of a session that has so many calls, which are all sent.
fn turns(sizes: [usize; 2]) -> Outcome {
    turns_after(sizes, |_| Vec::new())
}

/// The same, if all but the last messages are left out.
fn turns_of_few_messages(sizes: [usize; 2]) -> Outcome {
    turns_after(sizes, |calls| (1..2 * calls - 20).collect())
}

fn turns_after(sizes: [usize; 2], left_out: fn(usize) -> Vec<usize>) -> Outcome {
    let (folder, runtime, owner) = (tempfile::tempdir()?, runtime()?, SessionOwner::default());
    let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db"))?);
    let agent = answering()?;
    for size in sizes {
        let more = [SessionRecord::LeftOut(left_out(size)), turn_ended()];
        let info = stored(&store, &size.to_string(), size, more)?;
        counted(|| {
            runtime.block_on(async {
                let session = Session::open(Arc::clone(&store) as _, &owner, &info.id).await?;
                let options = RunOptions::default().session(&session);
                agent.run("Thanks.", options).await.into_answer()?;
                Ok(session.close().await?)
            })
        })?;
    }
    Ok(())
}

/// Creates a project in a folder.
fn fill(kind: &str, size: usize, folder: &Path) -> Outcome {
    let mut file = "policy_default = 'allow'\n".to_owned();
    let tool = |name: &str| {
        format!(
            "[[tool]]\nkind = 'command'\nname = '{name}'\ndescription = 'Looks in a ledger.'\n\
             program = 'echo'\n"
        )
    };
    let numbers = 0..size;
    match kind {
        "tools" => numbers.for_each(|number| file.push_str(&tool(&format!("look_{number}")))),
        "rules" => {
            let number = "args = ['{n}']\n[tool.params]\nn = { type = 'integer', description = 'Its number.' }\n";
            file.push_str(&format!("{}{number}", tool("look")));
            for number in numbers {
                let test = format!("args = {{ '/n' = {{ equals = {number} }} }}");
                writeln!(file, "[[policy]]\neffect = 'ask'\ntool = 'look'\n{test}")?;
            }
        }
        "servers" => {
            for number in numbers {
                write!(file, "[mcp.server{number}]\ncommand = 'false'\n")?;
            }
        }
        "skills" => {
            for number in numbers {
                let skill = folder.join(format!("skills/skill-{number}"));
                fs::create_dir_all(&skill)?;
                let text = format!(
                    "---\nname: skill-{number}\ndescription: Reads ledger {number}.\n---\nRead it.\n"
                );
                fs::write(skill.join("SKILL.md"), text)?;
            }
        }
        "sessions" => {
            let store = store(folder)?;
            let spent = SessionRecord::Spent(vec![UsageEntry::new(UsageSource::Model("m".into()))]);
            for number in numbers {
                stored(&store, &format!("s{number}"), 1, [spent.clone(), turn_ended()])?;
            }
        }
        "calls" => {
            let (store, runtime) = (Arc::new(store(folder)?), runtime()?);
            let session = runtime.block_on(Session::create(store, new_session("calls")))?;
            run([size, size], &runtime, RunOptions::default().session(&session))?;
        }
        _ => return Err("unknown kind".into()),
    }
    fs::create_dir_all(folder)?;
    Ok(fs::write(folder.join("toolcrib.toml"), file)?)
}

fn store(folder: &Path) -> Outcome<SqliteStore> {
    let state = folder.join(".toolcrib");
    fs::create_dir_all(&state)?;
    Ok(SqliteStore::open(state.join("sessions.db"))?)
}
