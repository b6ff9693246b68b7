//! A turn: what is kept from one iteration to the next.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_core::{
    ActivatedBy, CancellationToken, Catalog, DiscoveryError, DiscoveryErrorClass, EventKind,
    Events, Identity, InvalidTool, ListContext, NameCollision, RunEvents, SkillId, ToolCall,
    ToolProvider, ToolRegistry, ToolResult,
};
use uuid::Uuid;

use crate::{
    compose::{Composed, Situation, Withheld, compose},
    discover::discover,
    engine::EngineParts,
    iteration::Iteration,
    skills::{ActiveSkills, SkillsProvider},
};

/// How a turn begins. Everything may be left out.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TurnOptions {
    /// The run's id. Default: a fresh one.
    pub run_id: Option<Arc<str>>,
    /// The customer or organisation.
    pub tenant: Option<Arc<str>>,
    /// The person or service that the turn acts for.
    pub principal: Option<Arc<str>>,
    /// The conversation. Default: the run's id.
    pub conversation: Option<Arc<str>>,
    /// Skills that are active from the start, the last of them as the active one.
    pub skills: Vec<SkillId>,
    /// Ends everything that the turn does. Default: only dropping the turn does.
    pub cancellation: Option<CancellationToken>,
    /// Where tools start relative paths. Default: the process's working folder.
    pub working_dir: Option<PathBuf>,
    /// Where to listen to this turn alone.
    pub events: Events,
}

impl TurnOptions {
    /// Names the principal.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Names the tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Names the conversation.
    #[must_use]
    pub fn conversation(mut self, conversation: impl Into<Arc<str>>) -> Self {
        self.conversation = Some(conversation.into());
        self
    }

    /// Activates a skill from the start.
    #[must_use]
    pub fn skill(mut self, skill: SkillId) -> Self {
        self.skills.push(skill);
        self
    }

    /// Sets what cancels the turn.
    #[must_use]
    pub fn cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Sets where to listen to this turn alone.
    #[must_use]
    pub fn events(mut self, events: Events) -> Self {
        self.events = events;
        self
    }
}

/// A turn that cannot begin as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// There is no such skill.
    #[error("there is no skill `{skill}`; {}", these(known))]
    UnknownSkill {
        /// What was asked for.
        skill: SkillId,
        /// What there is.
        known: Vec<SkillId>,
    },
    /// The menu of skills could not be made a tool.
    #[error("the tool that reads skills cannot be made")]
    ReadSkill(#[source] InvalidTool),
}

fn these(skills: &[SkillId]) -> String {
    if skills.is_empty() {
        return "this engine has no skills".to_owned();
    }
    let names: Vec<_> = skills.iter().map(|skill| format!("`{skill}`")).collect();
    format!("there are: {}", names.join(", "))
}

/// An iteration that could not begin: nothing is offered, nothing can be called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IterationError {
    /// A provider or a gate failed.
    #[error("the tools of this step could not be listed: {0}")]
    Discovery(#[source] DiscoveryError),
    /// Two sources offer one name, and neither says who yields.
    #[error(transparent)]
    Collision(#[from] NameCollision),
    /// The turn was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
}

/// One turn of a conversation: the state that iterations share. Dropping it ends whatever it
/// still does.
pub struct Turn {
    pub(crate) engine: Arc<EngineParts>,
    pub(crate) events: Arc<RunEvents>,
    registry: Arc<ToolRegistry>,
    pub(crate) active_skills: Arc<ActiveSkills>,
    /// `read_skill`, as the last provider.
    own: Option<Arc<dyn ToolProvider>>,
    roles: Arc<[Arc<str>]>,
    pub(crate) cancellation: CancellationToken,
    pub(crate) working_dir: Arc<Path>,
    iteration: u32,
    composed: Option<Composed>,
    spare: Catalog,
}

impl Turn {
    pub(crate) fn begin(engine: Arc<EngineParts>, options: TurnOptions) -> Result<Self, TurnError> {
        let run_id = options.run_id.unwrap_or_else(|| Uuid::now_v7().simple().to_string().into());
        let identity = Arc::new(Identity {
            tenant: options.tenant,
            principal: options.principal,
            conversation: options.conversation.unwrap_or_else(|| Arc::clone(&run_id)),
        });
        let skills = &engine.visibility.skills;
        let active_skills = Arc::new(ActiveSkills::default());
        for skill in options.skills {
            if skills.get(&skill).is_none() {
                let known = skills.iter().map(|skill| skill.id.clone()).collect();
                return Err(TurnError::UnknownSkill { skill, known });
            }
            active_skills.activate(&skill, ActivatedBy::Caller);
        }
        let own = if skills.is_empty() {
            None
        } else {
            let provider =
                SkillsProvider::new(skills, &active_skills).map_err(TurnError::ReadSkill)?;
            Some(Arc::new(provider) as Arc<dyn ToolProvider>)
        };
        Ok(Self {
            roles: engine.visibility.policy.roles.of(&identity).into(),
            events: Arc::new(RunEvents::new(
                run_id,
                identity,
                engine.events.clone(),
                options.events,
            )),
            registry: Arc::clone(&engine.registry),
            active_skills,
            own,
            // A token of its own: ending this turn must not end what the caller shares it with.
            cancellation: options
                .cancellation
                .map_or_else(CancellationToken::new, |token| token.child_token()),
            working_dir: options.working_dir.unwrap_or_else(|| PathBuf::from(".")).into(),
            iteration: 0,
            composed: None,
            spare: Catalog::new(),
            engine,
        })
    }

    /// The run's id.
    pub fn run_id(&self) -> &Arc<str> {
        self.events.run_id()
    }

    /// On whose behalf.
    pub fn identity(&self) -> &Arc<Identity> {
        self.events.identity()
    }

    /// The pen that writes this turn's events.
    pub fn events(&self) -> &Arc<RunEvents> {
        &self.events
    }

    /// What ends everything that the turn does.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// How many iterations have begun.
    pub fn iterations(&self) -> u32 {
        self.iteration
    }

    /// The active skills, the last activated last. What `read_skill` activated counts at once
    /// here, and from the next iteration for the menu.
    pub fn active_skills(&self) -> Arc<[SkillId]> {
        self.active_skills.now()
    }

    /// This turn's tools. Edits count from the next iteration, and end with the turn.
    pub fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// This turn's tools, to be edited; see [`registry`](Self::registry).
    pub fn registry_mut(&mut self) -> &mut ToolRegistry {
        Arc::make_mut(&mut self.registry)
    }

    /// Begins the next iteration: asks the providers, composes the menu.
    ///
    /// # Errors
    /// [`IterationError`]; the iteration is over before it began, and another may be tried.
    pub async fn iteration(&mut self) -> Result<Iteration<'_>, IterationError> {
        self.iteration += 1;
        self.report_activations();
        if self.cancellation.is_cancelled() {
            return Err(IterationError::Cancelled);
        }
        let active_skills = self.active_skills.now();
        let cx = ListContext::new(Arc::clone(self.identity()), self.cancellation.clone())
            .with_iteration(self.iteration)
            .with_active_skills(Arc::clone(&active_skills));
        let mut catalog = std::mem::take(&mut self.spare);
        catalog.clear();
        let registry: Arc<dyn ToolProvider> = self.registry.clone();
        let sources = (!self.registry.is_empty())
            .then_some(&registry)
            .into_iter()
            .chain(&self.engine.sources)
            .chain(&self.own);
        let catalog =
            match discover(sources, &self.events, &self.engine.redactor, &cx, catalog).await {
                Ok(catalog) => catalog,
                Err(failed) => {
                    self.spare = failed.catalog;
                    return Err(match failed.error.class() {
                        DiscoveryErrorClass::Cancelled => IterationError::Cancelled,
                        _ => IterationError::Discovery(failed.error),
                    });
                }
            };
        self.offer(catalog, active_skills)
    }

    /// Refuses calls that come when none may be made, such as at the iteration cap: each gets its
    /// one result, `not_available`, as if nothing were offered.
    pub async fn refuse(&mut self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let situation = self.situation(self.active_skills.now());
        let withheld = Withheld::nothing(&self.engine.visibility, situation.clone());
        Iteration::new(self, Arc::default(), Arc::new(withheld), situation).execute(calls).await
    }

    fn situation(&self, active_skills: Arc<[SkillId]>) -> Situation {
        Situation {
            active_skills,
            roles: Arc::clone(&self.roles),
            tenant: self.identity().tenant.clone(),
        }
    }

    /// Composes, or uses again what still holds.
    fn offer(
        &mut self,
        catalog: Catalog,
        active_skills: Arc<[SkillId]>,
    ) -> Result<Iteration<'_>, IterationError> {
        let situation = self.situation(active_skills);
        let holds = self
            .composed
            .as_ref()
            .is_some_and(|composed| composed.holds_for(&catalog, &situation.active_skills));
        let before = self.composed.as_ref().map(|composed| composed.menu.fingerprint());
        if holds {
            self.spare = catalog;
        } else {
            let composed =
                compose(&self.engine.visibility, &self.engine.validators, &situation, catalog)?;
            if let Some(old) = self.composed.replace(composed) {
                self.spare = old.into_catalog();
            }
        }
        let Some(composed) = &self.composed else {
            // It was just put there.
            return Err(IterationError::Cancelled);
        };
        let (menu, withheld) = (Arc::clone(&composed.menu), Arc::clone(&composed.withheld));
        for collision in &composed.collisions {
            self.events.emit(Some(self.iteration), || EventKind::Collision {
                name: collision.name.clone(),
                kept: Arc::clone(&collision.kept),
                dropped: Arc::clone(&collision.dropped),
            });
        }
        self.events.emit(Some(self.iteration), || EventKind::ToolsOffered {
            tools: menu.names().cloned().collect(),
            withheld: withheld.len(),
            fingerprint: menu.fingerprint(),
            changed: before != Some(menu.fingerprint()),
        });
        Ok(Iteration::new(self, menu, withheld, situation))
    }

    /// Says which skills became active.
    pub(crate) fn report_activations(&self) {
        let iteration = (self.iteration > 0).then_some(self.iteration);
        for (skill, by) in self.active_skills.take_unreported() {
            self.events.emit(iteration, || EventKind::SkillActivated { skill, by });
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn")
            .field("run_id", self.run_id())
            .field("iteration", &self.iteration)
            .field("active_skills", &self.active_skills.now())
            .finish_non_exhaustive()
    }
}
