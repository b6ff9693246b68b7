use std::{path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use toolcrib_core::{
    Approver, Attachments, CancellationToken, ClientHandle, ClientPort, Events, Journal, SkillId,
    TurnInfo,
};

use crate::{
    deferral::{Reveal, RevealedTools},
    personality::child::{ChildAgents, ParentTurn},
    policy::{halt::HaltedByRule, questions::Questions},
};

/// How a turn begins. Every field is optional.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TurnOptions {
    /// The turn's id. Default: a generated one.
    pub turn_id: Option<Arc<str>>,
    /// The customer or organization.
    pub tenant: Option<Arc<str>>,
    /// The person or service that the turn acts for.
    pub principal: Option<Arc<str>>,
    /// Claims of a token that your code has verified. Roles may depend on claims; see
    /// [`Roles`](toolcrib_core::Roles). Default: none.
    pub claims: Map<String, Value>,
    /// The conversation. Default: the turn's id, and then the conversation ends with the turn.
    pub conversation: Option<Arc<str>>,
    /// Whether a named conversation also ends with the turn. The data of an ended conversation is
    /// dropped: its artifacts, and the tools with its lifetime.
    pub ends_conversation: bool,
    /// Whether other processes continue the conversation, which is not a session of the store: the values that
    /// tools keep for it are in the store, for two days after the last change. Default: no, and they are in this
    /// process.
    pub shares_conversation: bool,
    /// The personality; see [`Personality`](crate::Personality). Default: `default`.
    pub personality: Option<Arc<str>>,
    /// Skills that are active from the start, the last of them as the one activated last. Each is
    /// judged as a call of `read_skill` by this caller: if personality or policy would refuse that
    /// call, the turn does not begin. No approval is requested, so a rule with the effect `ask`
    /// refuses. Middleware sees the call before the first iteration, which begins only if every
    /// middleware admits it.
    pub skills: Vec<SkillId>,
    /// Whether an earlier turn of the conversation has activated the skills. Then they are not refused because
    /// the conversation has read content of unknown authors since, or because activating one needs approval,
    /// and no middleware is asked again. Default: no.
    pub skills_admitted: bool,
    /// Whether the turn is not offered `read_skill`, so that it keeps its initial skills. Default:
    /// it is offered if there are skills.
    pub without_read_skill: bool,
    /// Cancels everything that the turn does. Default: only dropping the turn does.
    pub cancellation: Option<CancellationToken>,
    /// The base folder of relative paths for tools. Default: the process's working folder.
    pub working_dir: Option<PathBuf>,
    /// Information for tools: platform, session key, agent, number of the turn. An agent sets the
    /// numbers. Default: none.
    pub info: TurnInfo,
    /// The files that the user attached to the message, for tools that
    /// [declare](toolcrib_core::Capabilities::attachments) them. Default: none.
    pub attachments: Attachments,
    /// Listeners for the events of this turn only.
    pub events: Events,
    /// The questions for people; see [`Questions`]. Default: none, and questions fail.
    pub questions: Option<Questions>,
    /// Decides on this turn's calls that a rule wants approved, instead of the engine's
    /// [approver](crate::EngineBuilder::approver). Default: that one, else the questions.
    pub approver: Option<Arc<dyn Approver>>,
    /// The client that MCP servers may ask during calls. Default: with
    /// [`questions`](Self::questions), the person who answers them; otherwise none.
    pub client: Option<ClientHandle>,
    /// Records the intents and outcomes of this turn's calls, after the engine's
    /// [journal](crate::EngineBuilder::journal). Default: none.
    pub journal: Option<Arc<dyn Journal>>,
    /// An id with which the calls of the turn get their
    /// [idempotency keys](toolcrib_core::ToolContext::idempotency_key). Set it if the turn may be
    /// resumed by another process: to an id that is the same there, and within which no two calls
    /// have the same id. Default: the turn's id.
    pub idempotency_scope: Option<Arc<str>>,
    /// The deferred tools that the conversation has found; see
    /// [`Engine::revealed_in`](crate::Engine::revealed_in). Default: none.
    pub revealed: RevealedTools,
    /// Whether the conversation has read content of unknown authors, as
    /// [`Message::is_untrusted`](toolcrib_core::Message::is_untrusted) tells of its messages. Each
    /// untrusted result sets it for the rest of the turn. Rules may depend on it. Default: no.
    pub tainted: bool,
    /// The call at which a rule ended an earlier turn of the conversation, if any: each call of this
    /// turn is refused. Default: none.
    pub halted: Option<HaltedByRule>,
    /// The number of iterations of the conversation before this turn: the first one has the next
    /// number. Rules may depend on it. Default: 0, so that each turn counts its own.
    pub iterations: u32,
    /// Whether nothing of the turn can be used after it, as its caller makes one call and cannot be
    /// recognized: large results are cut and not stored as artifacts, and tools that begin work
    /// which outlives their call refuse. The conversation ends with the turn. Default: no.
    pub keeps_nothing: bool,
    /// How the model calls found tools. Default: the engine's.
    pub reveal: Option<Reveal>,
    /// Time limit for listing a source in an iteration; after it [`OnFailure`](crate::OnFailure)
    /// decides, as for a failed source. Default: none.
    pub source_timeout: Option<Duration>,
    /// Whether the turn is a dry run. Each call passes the stages before its effect. Then its body runs
    /// only if the tool [declares](toolcrib_core::ToolBuilder::dry_run) that it has no effect in a dry
    /// run and no rule requires approval; otherwise the result is a [plan](toolcrib_core::CallPlan).
    /// No approver is asked. Default: no.
    pub dry_run: bool,
    /// Runs child agents for calls of tools that [declare](toolcrib_core::Capabilities::agents) it. An
    /// agent sets it. Default: none, and such calls fail.
    pub child_agents: Option<Arc<dyn ChildAgents>>,
    /// The turn that gave this one its task: the maximum that this one reaches. Default: none.
    pub parent: Option<ParentTurn>,
}

impl TurnOptions {
    /// The options of a child agent's turn, without those that depend on the call that begins it. It
    /// acts for the same principal with the same claims, and asks the same people.
    #[must_use]
    pub fn for_child(&self) -> Self {
        // Without `..`, so that a new option is decided on here.
        let Self {
            turn_id: _,
            tenant,
            principal,
            claims,
            conversation: _,
            ends_conversation: _,
            shares_conversation: _,
            personality: _,
            skills: _,
            skills_admitted: _,
            without_read_skill: _,
            cancellation: _,
            working_dir,
            info,
            attachments,
            events: _,
            questions,
            approver,
            client,
            journal,
            idempotency_scope: _,
            revealed: _,
            tainted: _,
            halted: _,
            iterations: _,
            keeps_nothing: _,
            reveal,
            source_timeout,
            dry_run,
            child_agents: _,
            parent: _,
        } = self;
        Self {
            tenant: tenant.clone(),
            principal: principal.clone(),
            claims: claims.clone(),
            working_dir: working_dir.clone(),
            info: info.clone(),
            attachments: attachments.clone(),
            questions: questions.clone(),
            approver: approver.clone(),
            client: client.clone(),
            journal: journal.clone(),
            reveal: *reveal,
            source_timeout: *source_timeout,
            dry_run: *dry_run,
            ..Self::default()
        }
    }

    /// Sets the principal that the turn acts for.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Sets the tenant of the principal.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Adds a claim of a token that the caller has verified; see [`claims`](Self::claims).
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.claims.insert(name.into(), value.into());
        self
    }

    /// Sets the conversation that the turn continues.
    #[must_use]
    pub fn conversation(mut self, conversation: impl Into<Arc<str>>) -> Self {
        self.conversation = Some(conversation.into());
        self
    }

    /// Ends the conversation with the turn; see the field of that name.
    #[must_use]
    pub fn ends_conversation(mut self) -> Self {
        self.ends_conversation = true;
        self
    }

    /// Sets the personality of the turn.
    #[must_use]
    pub fn personality(mut self, personality: impl Into<Arc<str>>) -> Self {
        self.personality = Some(personality.into());
        self
    }

    /// Activates a skill from the start.
    #[must_use]
    pub fn skill(mut self, skill: impl Into<SkillId>) -> Self {
        self.skills.push(skill.into());
        self
    }

    /// Does not offer `read_skill`: for a turn that serves a single call, where no later iteration
    /// could use an activated skill.
    #[must_use]
    pub fn without_read_skill(mut self) -> Self {
        self.without_read_skill = true;
        self
    }

    /// Sets the token that cancels the turn.
    #[must_use]
    pub fn cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Sets the surface that the turn runs on, such as `cli`; see [`TurnInfo`].
    #[must_use]
    pub fn platform(mut self, platform: impl Into<Arc<str>>) -> Self {
        self.info.platform = Some(platform.into());
        self
    }

    /// Sets the key of the session for people, such as `cli:my-repo`; see [`TurnInfo`].
    #[must_use]
    pub fn session_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.info.session_key = Some(key.into());
        self
    }

    /// Sets the id of the agent, where several share a system; see [`TurnInfo`].
    #[must_use]
    pub fn agent_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.info.agent_id = Some(id.into());
        self
    }

    /// Sets the questions for people. One value may serve many turns.
    #[must_use]
    pub fn questions(mut self, questions: Questions) -> Self {
        self.questions = Some(questions);
        self
    }

    /// Sets the approver of this turn's calls.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets the client that MCP servers may ask.
    #[must_use]
    pub fn client(mut self, client: Arc<dyn ClientPort>) -> Self {
        self.client = Some(ClientHandle(client));
        self
    }

    /// Sets the journal of this turn's calls.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Sets the deferred tools that the conversation has found.
    #[must_use]
    pub fn revealed(mut self, revealed: RevealedTools) -> Self {
        self.revealed = revealed;
        self
    }

    /// Marks the conversation as one that has read content of unknown authors.
    #[must_use]
    pub fn tainted(mut self, tainted: bool) -> Self {
        self.tainted = tainted;
        self
    }

    /// Sets the call at which a rule ended an earlier turn of the conversation.
    #[must_use]
    pub fn halted(mut self, halted: Option<HaltedByRule>) -> Self {
        self.halted = halted;
        self
    }

    /// Sets the number of iterations of the conversation before this turn.
    #[must_use]
    pub fn iterations(mut self, iterations: u32) -> Self {
        self.iterations = iterations;
        self
    }

    /// Keeps nothing of the turn; see the field of that name.
    #[must_use]
    pub fn keeps_nothing(mut self) -> Self {
        self.keeps_nothing = true;
        self
    }

    /// Makes the turn a dry run; see the field of that name.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Sets how the model calls found tools.
    #[must_use]
    pub fn reveal(mut self, reveal: Reveal) -> Self {
        self.reveal = Some(reveal);
        self
    }

    /// Sets the listeners for the events of this turn only.
    #[must_use]
    pub fn events(mut self, events: Events) -> Self {
        self.events = events;
        self
    }
}
