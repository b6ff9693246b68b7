//! One file per command.

mod acp;
mod approvals;
mod call;
mod chat;
mod check;
mod check_server;
pub(crate) mod completions;
mod discover;
mod doctor;
mod explain;
mod find;
mod generate;
mod init;
mod install;
mod lint;
mod lock;
mod mcp;
mod mcp_entry;
mod menu;
mod models;
mod replay;
mod run;
mod secret;
mod serve;
mod sessions;
mod skills;
mod tools;
mod trace;
mod trust;
mod usage;
mod work;
mod worker;

use toolcrib_core::CancellationToken;

use crate::{
    args::{Cli, Command, WorkCommand},
    exit::Exit,
    problem::Problem,
};

/// Runs the command.
pub(crate) async fn dispatch(cli: Cli, cancellation: CancellationToken) -> Result<Exit, Problem> {
    let Cli { global, command } = cli;
    match command {
        Command::Run(args) => run::run(&global, args, cancellation).await,
        Command::Resume(args) => run::resume(&global, args, cancellation).await,
        Command::Chat(args) => chat::chat(&global, args, cancellation).await,
        Command::Work(WorkCommand::Submit(args)) => work::submit(&global, args, cancellation).await,
        Command::Work(WorkCommand::Worker(args)) => {
            worker::worker(&global, args, cancellation).await
        }
        Command::Work(WorkCommand::Follow(args)) => work::follow(&global, args, cancellation).await,
        Command::Work(WorkCommand::Cancel(args)) => work::cancel(&global, args, cancellation).await,
        Command::Sessions { list, command } => {
            sessions::sessions(&global, list, command, cancellation).await
        }
        Command::Show(args) => sessions::show(&global, args, cancellation).await,
        Command::Export(args) => sessions::export(&global, args, cancellation).await,
        Command::Runs(list) => trace::runs(&global, list, cancellation).await,
        Command::Trace(args) => trace::show_trace(&global, args, cancellation).await,
        Command::Approvals { list, command } => {
            approvals::approvals(&global, list, command, cancellation).await
        }
        Command::Approve(args) => approvals::approve(&global, args, cancellation).await,
        Command::Deny(args) => approvals::deny(&global, args, cancellation).await,
        Command::Replay(args) => replay::replay(&global, args, cancellation).await,
        Command::Usage(args) => usage::usage(&global, args, cancellation).await,
        Command::Menu(args) => menu::menu(&global, args, cancellation).await,
        Command::Explain(args) => explain::explain(&global, args, cancellation).await,
        Command::Find(args) => find::find(&global, args, cancellation).await,
        Command::Call(args) => call::call(&global, args, cancellation).await,
        Command::Serve(args) => serve::serve(&global, args, cancellation).await,
        Command::Acp(args) => acp::acp(&global, args, cancellation).await,
        Command::Mcp { command } => mcp::mcp(&global, command, cancellation).await,
        Command::Tools(args) => tools::tools(&global, args, cancellation).await,
        Command::Lint(args) => lint::lint(&global, args, cancellation).await,
        Command::Skills { look, command } => {
            skills::skills(&global, look, command, cancellation).await
        }
        Command::Secret { command } => secret::secret(&global, command, cancellation).await,
        Command::Lock { command } => lock::lock(&global, command, cancellation).await,
        Command::CheckServer(args) => check_server::check_server(&global, args, cancellation).await,
        Command::Discover => discover::discover(&global, cancellation).await,
        Command::Install(args) => install::install(&global, args, cancellation).await,
        Command::Doctor => doctor::doctor(&global, cancellation).await,
        Command::Completions { shell, .. } => completions::completions(&global, shell),
        Command::Man { dir, .. } => generate::man(&global, dir.as_deref()),
        Command::Schema => Ok(generate::schema()),
        Command::Models { look, command } => {
            models::models(&global, look, command, cancellation).await
        }
        Command::Check(look) => check::check(&global, look, cancellation).await,
        Command::Trust(args) => trust::trust(&global, args, cancellation).await,
        Command::Init(args) => init::init(&global, &args, cancellation).await,
    }
}
