//! `toolcrib chat`: turns of one session at the terminal, until the user quits.

mod editor;
mod slash;

use std::{
    io::{self, IsTerminal as _},
    path::Path,
    sync::Arc,
};

use toolcrib_agent::EndReason;
use toolcrib_approvals::TerminalApprover;
use toolcrib_core::{Attachments, CancellationToken, Usage};
use toolcrib_engine::Iteration;
use toolcrib_project::Project;

use self::{
    editor::{Editor, Line},
    slash::SlashCommand,
};
use crate::{
    args::{ChatArgs, GlobalArgs},
    exit::{self, Exit},
    host::{agent, approver, attachments, budget, conversation::Conversation, iteration, stored},
    output::{self, ChatStart, Narrator},
    problem::{Form, Problem},
    project::{
        load::{ChosenModel, unless_cancelled, with_fresh_project},
        scratch::with_scratch,
        turn::{claim_flags, model_flags, project_flags, skills},
    },
    signals::TurnGuard,
};

pub(super) async fn chat(
    global: &GlobalArgs,
    args: ChatArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    if global.json {
        return Err(Problem::usage("`chat` has no JSON; use `toolcrib run --json -c`"));
    }
    if !(io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()) {
        return Err(Problem::usage(
            "`chat` requires a terminal; use `toolcrib run`, and `toolcrib run -c` to continue",
        ));
    }
    let global = &with_scratch(global, &args.scratch.with, !global.quiet, &cancellation).await?;
    let model = ChosenModel::from(&args.model);
    let token = cancellation.clone();
    let judge = async |project: &Project| {
        let agent = agent::agent(project, &args.situation, false).await?;
        iteration::turn_of(project, agent.engine(), &args.situation, token.clone())?;
        Ok(None)
    };
    let talk = async |project: &Project| {
        let chat = Chat::begin(global, &args, project, &cancellation);
        unless_cancelled(chat, &cancellation).await??.talk().await
    };
    with_fresh_project(global, !global.quiet, args.fresh, model, &token, (judge, talk)).await
}

struct Chat<'a> {
    global: &'a GlobalArgs,
    project: &'a Project,
    cancellation: &'a CancellationToken,
    conversation: Conversation<'a>,
    /// Keeps the permissions of the session.
    terminal: TerminalApprover,
    /// The files attached to the next message.
    attachments: Attachments,
    usage: Usage,
    turns: usize,
    /// The options of model and claims, which a command that continues it needs too.
    repeated: String,
}

impl<'a> Chat<'a> {
    async fn begin(
        global: &'a GlobalArgs,
        args: &'a ChatArgs,
        project: &'a Project,
        cancellation: &'a CancellationToken,
    ) -> Result<Self, Problem> {
        let ChatArgs { model, situation, session, timeout, .. } = args;
        let tells = !global.quiet;
        let conversation =
            Conversation::begin(project, situation, session, *timeout, tells, cancellation);
        let conversation = conversation.await?;
        Ok(Self {
            global,
            project,
            cancellation,
            conversation,
            terminal: approver::terminal(),
            attachments: Attachments::default(),
            usage: Usage::NOTHING,
            turns: 0,
            repeated: model_flags(model) + &claim_flags(&situation.claims),
        })
    }

    /// Reads messages and commands until the user quits.
    async fn talk(mut self) -> Result<Exit, Problem> {
        let iteration = self.look(self.cancellation.child_token()).await?;
        if !self.global.quiet {
            self.tell_start(&iteration).await;
        }
        drop(iteration);
        let is_stored = self.conversation.is_stored();
        let history = is_stored.then(|| self.project.state().join(editor::HISTORY));
        let mut editor = Editor::start(history)?;
        let mut is_leaving = false;
        loop {
            let line = tokio::select! {
                biased;
                line = editor.read() => line,
                () = self.cancellation.cancelled() => return Err(Problem::cancelled()),
            };
            let text = match line {
                Line::Text(text) => text,
                Line::Interrupted if is_leaving => break,
                Line::Interrupted => {
                    is_leaving = true;
                    output::chat_note("Ctrl-C again or Ctrl-D quits");
                    continue;
                }
                Line::End => break,
                Line::Failed(error) => {
                    return Err(Problem::failed(
                        "terminal_failed",
                        format!("the terminal: {error}"),
                    ));
                }
            };
            is_leaving = false;
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            editor.keep(&self.conversation.agent().engine().redactor().text(text));
            let outcome = match SlashCommand::parse(text) {
                None => self.turn(text.to_owned()).await,
                Some(SlashCommand::Quit) => break,
                Some(command) => self.command(command).await,
            };
            if let Err(problem) = outcome {
                // Signals other than Ctrl-C end the chat.
                if self.cancellation.is_cancelled() {
                    return Err(problem);
                }
                problem.report(Form::Text);
            }
        }
        if let Some(session) = self.conversation.session()
            && !self.global.quiet
        {
            let flags = project_flags(self.global) + &self.repeated;
            output::chat_ends(session.id(), &flags);
        }
        self.conversation.close().await;
        Ok(exit::FINE)
    }

    async fn tell_start(&self, iteration: &Iteration) {
        let conversation = &self.conversation;
        let own = agent::own_model(self.project, &conversation.situation);
        let session = match conversation.session() {
            Some(session) => session.info().await.ok(),
            None => None,
        };
        output::chat_begins(&ChatStart {
            project: self.project.name(),
            model: own.unwrap_or_else(|| conversation.agent().model()).name(),
            session: session.as_ref(),
            is_stored: conversation.is_stored(),
            offered: iteration.menu().len(),
        });
    }

    /// Sends a message, and shows the answer.
    async fn turn(&mut self, message: String) -> Result<(), Problem> {
        let token = self.cancellation.child_token();
        let _guard = TurnGuard::new(&token);
        self.conversation.create(true, &token).await?;
        let mut turn = self.conversation.turn(token)?;
        let session = self.conversation.session();
        approver::attend(&mut turn, self.project, session, false, self.terminal.clone()).await?;
        turn.attachments = std::mem::take(&mut self.attachments);
        let narrator = Arc::new(Narrator::of_chat(self.global.verbose));
        let told = Arc::clone(&narrator);
        let run = self.conversation.run(message, turn, move |event| told.tell(event));
        let outcome = run.await?;
        self.usage += outcome.usage;
        self.turns += 1;
        match outcome.end_reason {
            EndReason::Cancelled => output::chat_note("cancelled; the chat goes on"),
            EndReason::AwaitingApproval => {
                output::chat_note(
                    "a call waits for approval: /approvals; the next message withdraws it",
                );
            }
            _ => output::answer(&outcome, Some(&narrator)),
        }
        drop(narrator);
        if !self.global.quiet {
            let tools = agent::remote_tools(self.project, &self.conversation.situation).await;
            output::turn_summary(&outcome, self.project, &tools);
        }
        Ok(())
    }

    async fn command(&mut self, command: SlashCommand<'_>) -> Result<(), Problem> {
        let token = self.cancellation.child_token();
        let _guard = TurnGuard::new(&token);
        match command {
            SlashCommand::Menu => {
                let verbose = self.global.verbose;
                output::menu(&self.look(token).await?, verbose, verbose);
            }
            SlashCommand::Why(tool) => {
                let iteration = self.look(token).await?;
                let why = iteration::why(&iteration, tool);
                output::why(&why.ok_or_else(|| iteration::unknown(&iteration, tool))?);
            }
            SlashCommand::Skills => {
                let known = self.project.skills().iter().map(|skill| &*skill.id);
                output::chat_skills(known, &self.conversation.situation.skills);
            }
            SlashCommand::Skill { name, is_on } => {
                self.switch_skill(name, is_on, token).await?;
            }
            SlashCommand::Attach(path) => {
                self.attach(Path::new(path), &token).await?;
            }
            SlashCommand::Approvals => {
                let (reviews, grants) = stored::listed(self.project, false).await?;
                let flags = project_flags(self.global);
                output::approvals(&reviews, &grants, &flags, self.global.quiet);
            }
            SlashCommand::Usage => {
                output::chat_usage(self.turns, &self.usage);
                let owner = self.conversation.situation.whom.owner();
                output::budget(&budget::budget(self.project, &owner).await?);
            }
            SlashCommand::Help => output::chat_help(slash::HELP),
            SlashCommand::Invalid(problem) => return Err(Problem::usage(problem)),
            SlashCommand::Quit => {}
        }
        Ok(())
    }

    async fn switch_skill(
        &mut self,
        name: &str,
        is_on: bool,
        token: CancellationToken,
    ) -> Result<(), Problem> {
        skills(self.project, &[name.to_owned()])?;
        self.conversation.situation.skills.retain(|active| active != name);
        if is_on {
            self.conversation.situation.skills.push(name.to_owned());
        }
        // The skill may be refused for this principal.
        if let Err(problem) = self.look(token).await {
            self.conversation.situation.skills.retain(|active| active != name);
            return Err(problem);
        }
        let what = if is_on { "is active from the next turn" } else { "is not active" };
        output::chat_note(&format!("skill {name} {what}"));
        Ok(())
    }

    async fn attach(&mut self, path: &Path, token: &CancellationToken) -> Result<(), Problem> {
        let reader = attachments::Reader {
            project: self.project,
            engine: self.conversation.agent().engine(),
            situation: &self.conversation.situation,
            cancellation: token,
        };
        for attachment in reader.one(path).await? {
            let (name, bytes) = (attachment.name(), attachment.data().len());
            let image = match attachment.image() {
                Some(Ok(image)) => format!(", {image}"),
                Some(Err(error)) => format!("; {error}"),
                None => String::new(),
            };
            let note = format!("{name}, {bytes} bytes, is attached to the next message{image}");
            let added = self.attachments.add(attachment);
            added.map_err(|error| Problem::usage(error.to_string()))?;
            output::chat_note(&note);
        }
        Ok(())
    }

    /// The menu that the next turn begins with.
    async fn look(&self, cancellation: CancellationToken) -> Result<Iteration, Problem> {
        let engine = self.conversation.agent().engine();
        let mut turn =
            iteration::turn_of(self.project, engine, &self.conversation.situation, cancellation)?;
        Ok(turn.iteration().await?)
    }
}
