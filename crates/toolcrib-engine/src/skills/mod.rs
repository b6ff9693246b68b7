//! Skills: a description by which the model chooses, a body that it reads, and tools.
//!
//! ```text
//! mode.rs    when skills' tools are offered
//! steps.rs   the required order of a skill's tool calls
//! active.rs  the active skills of a turn, and their current steps
//! files.rs   the files of a skill: a port
//! source.rs  skills that change while an engine lives: a port
//! tools/     the tools that activate, deactivate and read skills
//! ```

mod active;
mod files;
mod mode;
mod source;
mod steps;
mod tools;

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt::{self, Write as _},
    sync::Arc,
};

use toolcrib_core::{BlankSkillIdError, InvalidToolNameError, SkillId, ToolName};

pub(crate) use self::{
    active::{ActiveSkills, Request, Snapshot, StepPosition},
    source::SkillOrigin,
    steps::Steps,
    tools::{SkillsProvider, read_skill_as_judged, requested},
};
pub use self::{
    files::{MAX_SKILL_FILE, SkillFileError, SkillFiles},
    mode::ToolsMode,
    source::{LoadedSkills, SkillSource},
    steps::{CurrentSkillStep, OnSkip, SKIP_STEP, SkillStep},
    tools::{DEACTIVATE_SKILL, LIST_SKILLS, READ_SKILL, SKILL_TOOLS},
};
use crate::personality::Personality;

/// A skill that a model can activate.
#[derive(Debug, Clone)]
pub struct Skill {
    /// The id by which a model activates it.
    pub id: SkillId,
    /// The text by which the model decides when to activate it.
    pub description: Arc<str>,
    /// The text that the model reads after activating it; see [`instructions`](Self::instructions).
    pub body: Arc<str>,
    /// The names of its tools: while skills are active, the menu is narrowed to theirs. A skill without any
    /// narrows nothing.
    pub tools: Vec<ToolName>,
    /// When they are offered. Default: the [setting](Skills::tools_mode) for all skills.
    pub tools_mode: Option<ToolsMode>,
    /// The files that it refers to. Default: none.
    pub files: Option<Arc<dyn SkillFiles>>,
    /// The plugin that it belongs to.
    pub plugin: Option<Arc<str>>,
    /// Where it is declared, for operators, such as its file. Default: unknown.
    pub origin: Option<Arc<str>>,
    steps: Option<Steps>,
    /// The first name of a tool that is not valid.
    invalid: Option<InvalidToolNameError>,
}

impl PartialEq for Skill {
    /// Files are equal if they are the same `Arc`.
    fn eq(&self, other: &Self) -> bool {
        let files = match (&self.files, &other.files) {
            (Some(one), Some(another)) => Arc::ptr_eq(one, another),
            (None, None) => true,
            _ => false,
        };
        files
            && (&self.id, &self.description, &self.body)
                == (&other.id, &other.description, &other.body)
            && (&self.tools, self.tools_mode) == (&other.tools, other.tools_mode)
            && (&self.steps, &self.plugin, &self.origin)
                == (&other.steps, &other.plugin, &other.origin)
    }
}

impl Eq for Skill {}

impl Skill {
    /// A skill without tools.
    ///
    /// ```
    /// use toolcrib_engine::{Skill, Skills};
    ///
    /// let refunds = Skill::new("refunds", "Refunds.", "Look the charge up first.")
    ///     .tools(["find_charge", "refund"]);
    /// let skills = Skills::new(vec![refunds])?;
    /// assert!(skills.get("refunds").is_some());
    /// # Ok::<(), toolcrib_engine::InvalidSkillError>(())
    /// ```
    pub fn new(
        id: impl Into<SkillId>,
        description: impl Into<Arc<str>>,
        body: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            id: id.into(),
            description: description.into(),
            body: body.into(),
            tools: Vec::new(),
            tools_mode: None,
            files: None,
            plugin: None,
            origin: None,
            steps: None,
            invalid: None,
        }
    }

    /// The same skill as a plugin's; the same `Arc` if it already is.
    pub(crate) fn of_plugin(this: &Arc<Self>, plugin: &Arc<str>) -> Arc<Self> {
        if this.plugin.as_ref() == Some(plugin) {
            return Arc::clone(this);
        }
        Arc::new(Self { plugin: Some(Arc::clone(plugin)), ..Self::clone(this) })
    }

    /// Sets its tools, in addition to those of its [steps](Self::steps). [`Skills::new`]
    /// refuses invalid names.
    #[must_use]
    pub fn tools<T>(mut self, tools: impl IntoIterator<Item = T>) -> Self
    where
        T: TryInto<ToolName, Error: Into<InvalidToolNameError>>,
    {
        let names: Result<Vec<_>, _> = tools.into_iter().map(TryInto::try_into).collect();
        match names {
            Ok(names) => self.tools = names,
            Err(error) => self.invalid = Some(error.into()),
        }
        self.own_the_tools_of_steps();
        self
    }

    /// Sets when its tools are offered.
    #[must_use]
    pub fn tools_mode(mut self, mode: ToolsMode) -> Self {
        self.tools_mode = Some(mode);
        self
    }

    /// Sets the order in which tools are called, and the effect of a model's request to skip a
    /// step. The tools of steps belong to the skill. While it is the one activated last, only the
    /// current step's tool is offered, of all step tools.
    #[must_use]
    pub fn steps(mut self, steps: impl IntoIterator<Item = SkillStep>, on_skip: OnSkip) -> Self {
        self.steps = Steps::new(&self.id, steps.into_iter().collect(), on_skip);
        self.own_the_tools_of_steps();
        self
    }

    /// Sets the files of the skill.
    #[must_use]
    pub fn files(mut self, files: Arc<dyn SkillFiles>) -> Self {
        self.files = Some(files);
        self
    }

    /// Sets where it is declared.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Whether a personality reaches it.
    pub(crate) fn is_reached_by(&self, personality: &Personality) -> bool {
        self.plugin.as_ref().is_none_or(|plugin| personality.reaches_plugin(plugin))
    }

    /// Its origin, in words.
    fn origin_label(&self) -> String {
        let plugin = self.plugin.as_ref().map(|plugin| format!("plugin `{plugin}`"));
        match (&self.origin, plugin) {
            (Some(origin), None) => origin.to_string(),
            (Some(origin), Some(plugin)) => format!("{origin} ({plugin})"),
            (None, Some(plugin)) => plugin,
            (None, None) => "the host".to_owned(),
        }
    }

    /// The steps, in order.
    pub fn all_steps(&self) -> &[SkillStep] {
        self.steps.as_ref().map(Steps::as_slice).unwrap_or_default()
    }

    /// The effect of a model's request to skip a step; `None` without steps.
    pub fn on_skip(&self) -> Option<OnSkip> {
        self.steps.as_ref().map(|steps| steps.on_skip)
    }

    /// The body, and the steps with their notes.
    pub fn guide(&self) -> String {
        let mut text = self.body.to_string();
        if let Some(steps) = &self.steps {
            let _ = write!(text, "\n\n{}", steps.in_words());
        }
        text
    }

    /// The full text that a model reads of an active skill: its [guide](Self::guide), and how to
    /// read its files.
    pub fn instructions(&self) -> String {
        let mut text = self.guide();
        if self.files.is_some() {
            let _ = write!(
                text,
                "\n\nThis skill has files: `{READ_SKILL}` with its id and a `path` reads one."
            );
        }
        text
    }

    fn own_the_tools_of_steps(&mut self) {
        let Some(steps) = &self.steps else { return };
        for step in steps.as_slice() {
            if !self.tools.contains(&step.tool) {
                self.tools.push(step.tool.clone());
            }
        }
    }
}

/// The skills of an engine, in order, with the settings for all of them.
#[derive(Debug, Clone)]
pub struct Skills {
    skills: Vec<Arc<Skill>>,
    focus: bool,
    mode: ToolsMode,
    lists: bool,
    deactivates: bool,
}

impl Default for Skills {
    fn default() -> Self {
        Self {
            skills: Vec::new(),
            focus: true,
            mode: ToolsMode::default(),
            lists: false,
            deactivates: false,
        }
    }
}

/// A skill that a list of skills refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSkillError {
    /// Two skills have one id.
    #[error("two skills are called `{0}`; rename one of them")]
    DuplicateId(SkillId),
    /// The id is empty or white space.
    #[error(transparent)]
    BlankId(BlankSkillIdError),
    /// The skill lists a tool by a name that no tool can have.
    #[error("skill `{skill}` lists a tool that cannot exist: {error}")]
    ToolName {
        /// The skill.
        skill: SkillId,
        /// The name, and why it is not valid.
        error: InvalidToolNameError,
    },
}

/// A skill whose id is taken by an earlier one.
#[derive(Debug)]
pub(crate) struct DuplicateSkill {
    pub(crate) first: Arc<Skill>,
    pub(crate) later: Arc<Skill>,
}

impl fmt::Display for DuplicateSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, later) = (self.first.origin_label(), self.later.origin_label());
        write!(
            f,
            "two skills are called `{}`: {first} and {later}; the latter is omitted until one of \
             them is renamed",
            self.later.id
        )
    }
}

impl Skills {
    /// Makes a list of skills in this order.
    ///
    /// # Errors
    /// [`InvalidSkillError`] when two have one id, an id is blank, or a tool's name is not valid.
    pub fn new(skills: Vec<Skill>) -> Result<Self, InvalidSkillError> {
        Self::default().with_shared(skills.into_iter().map(Arc::new))
    }

    /// Returns these skills with `more` appended; the `Arc`s are kept.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_shared(
        &self,
        more: impl IntoIterator<Item = Arc<Skill>>,
    ) -> Result<Self, InvalidSkillError> {
        let (all, left_out) = self.with_new(more);
        for skill in &all.skills {
            if skill.id.trim().is_empty() {
                return Err(InvalidSkillError::BlankId(BlankSkillIdError));
            }
            if let Some(error) = skill.invalid.clone() {
                return Err(InvalidSkillError::ToolName { skill: skill.id.clone(), error });
            }
        }
        match left_out.first() {
            Some(DuplicateSkill { later, .. }) => {
                Err(InvalidSkillError::DuplicateId(later.id.clone()))
            }
            None => Ok(all),
        }
    }

    /// The skills with `more` appended, except those whose id is taken.
    pub(crate) fn with_new(
        &self,
        more: impl IntoIterator<Item = Arc<Skill>>,
    ) -> (Self, Vec<DuplicateSkill>) {
        let (mut all, mut left_out) = (self.clone(), Vec::new());
        let mut by_id: HashMap<SkillId, Arc<Skill>> =
            self.skills.iter().map(|skill| (skill.id.clone(), Arc::clone(skill))).collect();
        for later in more {
            match by_id.entry(later.id.clone()) {
                Entry::Occupied(first) => {
                    left_out.push(DuplicateSkill { first: Arc::clone(first.get()), later });
                }
                Entry::Vacant(free) => all.skills.push(Arc::clone(free.insert(later))),
            }
        }
        (all, left_out)
    }

    /// The settings for all skills, without any skill.
    #[must_use]
    pub fn without_any(&self) -> Self {
        Self { skills: Vec::new(), ..self.clone() }
    }

    /// The skills that do not belong to this plugin.
    pub(crate) fn without_plugin(&self, id: &str) -> Self {
        let mut stay = self.clone();
        stay.skills.retain(|skill| skill.plugin.as_deref() != Some(id));
        stay
    }

    /// The skills that a personality reaches; `None` if that is all.
    pub(crate) fn reached_by(&self, personality: &Personality) -> Option<Self> {
        if self.iter().all(|skill| skill.is_reached_by(personality)) {
            return None;
        }
        let mut reached = self.clone();
        reached.skills.retain(|skill| skill.is_reached_by(personality));
        Some(reached)
    }

    /// Sets whether an active skill with tools hides the tools that belong to no skill. Default: true.
    #[must_use]
    pub fn focus(mut self, focus: bool) -> Self {
        self.focus = focus;
        self
    }

    /// Sets when the tools of skills without a mode are offered. Default:
    /// [`ToolsMode::WhileActive`].
    #[must_use]
    pub fn tools_mode(mut self, mode: ToolsMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets whether models are offered `list_skills`, for clients that do not show a tool's
    /// description. Default: false, because `read_skill` names all skills.
    #[must_use]
    pub fn offer_list_skills(mut self, offer: bool) -> Self {
        self.lists = offer;
        self
    }

    /// Sets whether models are offered `deactivate_skill`, for conversations that outlast a skill's
    /// purpose. Default: false, because a turn is over soon, and another tool costs tokens in each
    /// of its iterations.
    #[must_use]
    pub fn offer_deactivate_skill(mut self, offer: bool) -> Self {
        self.deactivates = offer;
        self
    }

    /// All skills, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.skills.iter().map(|skill| &**skill)
    }

    /// All skills, in order, shared.
    pub fn iter_shared(&self) -> impl ExactSizeIterator<Item = &Arc<Skill>> {
        self.skills.iter()
    }

    /// The skill with that id.
    pub fn get(&self, id: &str) -> Option<&Skill> {
        self.iter().find(|skill| skill.id.as_str() == id)
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// The skills that list a tool.
    pub(crate) fn listing(&self, tool: &str) -> impl Iterator<Item = &Skill> {
        self.iter().filter(move |skill| skill.tools.iter().any(|name| *name == tool))
    }

    /// Whether an active skill lists a tool.
    pub(crate) fn lists(&self, active: &[SkillId], tool: &str) -> bool {
        self.listing(tool).any(|skill| active.contains(&skill.id))
    }
}
