//! Skills: a description that the model chooses by, a body that it reads, tools that belong to it.

mod read_skill;

use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_core::{ActivatedBy, SkillId, ToolContext, ToolDefinition, ToolName, ToolResult};

pub use self::read_skill::READ_SKILL;
pub(crate) use self::read_skill::SkillsProvider;

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The id that a model activates it by.
    pub id: SkillId,
    /// What the model reads to decide when to activate it.
    pub description: Arc<str>,
    /// What the model reads once it has.
    pub body: Arc<str>,
    /// The names of its tools: while skills are active, the menu is narrowed to theirs.
    pub tools: Vec<ToolName>,
    /// The plugin that brought it.
    pub plugin: Option<Arc<str>>,
}

impl Skill {
    /// A skill without tools of its own.
    pub fn new(id: SkillId, description: impl Into<Arc<str>>, body: impl Into<Arc<str>>) -> Self {
        Self {
            id,
            description: description.into(),
            body: body.into(),
            tools: Vec::new(),
            plugin: None,
        }
    }

    pub(crate) fn of_plugin(self, plugin: &Arc<str>) -> Self {
        Self { plugin: Some(Arc::clone(plugin)), ..self }
    }

    /// Says which tools belong to it.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = ToolName>) -> Self {
        self.tools = tools.into_iter().collect();
        self
    }
}

/// The skills of an engine, in order.
#[derive(Debug, Clone)]
pub struct Skills {
    skills: Vec<Skill>,
    focus: bool,
}

impl Default for Skills {
    fn default() -> Self {
        Self { skills: Vec::new(), focus: true }
    }
}

/// Two skills of one id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two skills are called `{0}`; rename one of them")]
pub struct DuplicateSkill(pub SkillId);

impl Skills {
    /// These skills, in this order.
    ///
    /// # Errors
    /// [`DuplicateSkill`] when two have one id.
    pub fn new(skills: Vec<Skill>) -> Result<Self, DuplicateSkill> {
        for (position, skill) in skills.iter().enumerate() {
            if skills.iter().take(position).any(|earlier| earlier.id == skill.id) {
                return Err(DuplicateSkill(skill.id.clone()));
            }
        }
        Ok(Self { skills, focus: true })
    }

    /// These and more behind them.
    pub(crate) fn with(&self, more: impl Iterator<Item = Skill>) -> Result<Self, DuplicateSkill> {
        let skills = self.skills.iter().cloned().chain(more).collect();
        Ok(Self { focus: self.focus, ..Self::new(skills)? })
    }

    /// Those that others than this plugin brought.
    pub(crate) fn without_plugin(&self, id: &str) -> Self {
        let stay = self.skills.iter().filter(|skill| skill.plugin.as_deref() != Some(id));
        Self { skills: stay.cloned().collect(), focus: self.focus }
    }

    /// Whether an active skill hides the tools that belong to no skill. Default: it does.
    #[must_use]
    pub fn focus(mut self, focus: bool) -> Self {
        self.focus = focus;
        self
    }

    /// All skills, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.skills.iter()
    }

    /// The skill of that id.
    pub fn get(&self, id: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.id.as_str() == id)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// The skills that list a tool.
    pub(crate) fn listing(&self, tool: &str) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(move |skill| skill.tools.iter().any(|name| *name == tool))
    }

    /// Whether some of the active skills lists a tool.
    pub(crate) fn lists(&self, active: &[SkillId], tool: &str) -> bool {
        self.listing(tool).any(|skill| active.contains(&skill.id))
    }

    /// The visibility rule: with no skill active everything passes; while some are, their tools,
    /// those that are always included, and without focus those of no skill.
    pub(crate) fn admit(&self, active: &[SkillId], tool: &ToolDefinition) -> bool {
        active.is_empty()
            || tool.always_include()
            || self.lists(active, tool.name())
            || (!self.focus && self.listing(tool.name()).next().is_none())
    }
}

/// The active skills of one turn, shared with its `read_skill`.
#[derive(Debug, Default)]
pub(crate) struct ActiveSkills(Mutex<Activations>);

#[derive(Debug, Default)]
struct Activations {
    active: Arc<[SkillId]>,
    /// What calls of a batch asked for, in the order in which they happened to run.
    requested: Vec<Requested>,
    unreported: Vec<(SkillId, ActivatedBy)>,
}

/// A call that asks for a skill. Iterations that run at the same time may use one id each for calls
/// of their own.
#[derive(Debug)]
struct Requested {
    iteration: u32,
    call_id: Arc<str>,
    skill: SkillId,
}

impl ActiveSkills {
    /// The active skills, the last activated last.
    pub(crate) fn now(&self) -> Arc<[SkillId]> {
        Arc::clone(&self.lock().active)
    }

    /// Makes a skill the last activated one. Reading the one that is last already changes nothing.
    pub(crate) fn activate(&self, skill: &SkillId, by: ActivatedBy) {
        let mut this = self.lock();
        if this.active.last() == Some(skill) {
            return;
        }
        this.active =
            this.active.iter().filter(|id| *id != skill).chain([skill]).cloned().collect();
        this.unreported.push((skill.clone(), by));
    }

    /// Notes that a call asks for a skill; see [`settle`](Self::settle).
    pub(crate) fn request(&self, cx: &ToolContext, skill: &SkillId) {
        self.lock().requested.push(Requested {
            iteration: cx.iteration(),
            call_id: cx.call_id().into(),
            skill: skill.clone(),
        });
    }

    /// Activates what the calls of a batch asked for, in call order: which of them ran first is
    /// chance, and the last activated skill must not be. What a call asked for that failed is
    /// forgotten.
    pub(crate) fn settle(&self, iteration: u32, results: &[ToolResult]) {
        for result in results {
            while let Some(skill) = self.take_requested(iteration, &result.call_id) {
                if result.is_ok() {
                    self.activate(&skill, ActivatedBy::ReadSkill);
                }
            }
        }
    }

    fn take_requested(&self, iteration: u32, call_id: &str) -> Option<SkillId> {
        let mut this = self.lock();
        let at = this.requested.iter().position(|requested| {
            requested.iteration == iteration && *requested.call_id == *call_id
        })?;
        Some(this.requested.remove(at).skill)
    }

    /// What was activated since the last time this was asked.
    pub(crate) fn take_unreported(&self) -> Vec<(SkillId, ActivatedBy)> {
        std::mem::take(&mut self.lock().unreported)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Activations> {
        // Nothing under this lock can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
