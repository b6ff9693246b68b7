//! Skills: a description that the model chooses by, a body that it reads, tools that belong to it.
//!
//! ```text
//! mode.rs    when the tools of skills are offered
//! steps.rs   the order in which a skill wants its tools called
//! active.rs  which skills of a turn are active, and where it stands in their steps
//! files.rs   the files of a skill: a port
//! source.rs  skills that change while an engine lives: a port
//! tools/     what a model activates, puts away and reads them by
//! ```

mod active;
mod files;
mod mode;
mod source;
mod steps;
mod tools;

use std::{
    fmt::{self, Write as _},
    sync::Arc,
};

use toolcrib_core::{SkillId, ToolName};

use crate::personality::Personality;

pub(crate) use self::{
    active::{ActiveSkills, Snapshot, StepsAt},
    source::{SkillSources, SkillsFrom},
    steps::Steps,
    tools::{SkillsProvider, read_skill_as_judged},
};
pub use self::{
    files::{MAX_SKILL_FILE, SkillFileError, SkillFiles},
    mode::ToolsMode,
    source::{LoadedSkills, SkillSource},
    steps::{CurrentStep, OnSkip, Step},
    tools::{DEACTIVATE_SKILL, LIST_SKILLS, READ_SKILL, SKILL_TOOLS, SKIP_STEP},
};

/// A skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// The id that a model activates it by.
    pub id: SkillId,
    /// What the model reads to decide when to activate it.
    pub description: Arc<str>,
    /// What the model reads once it has; see [`instructions`](Self::instructions).
    pub body: Arc<str>,
    /// The names of its tools: while skills are active, the menu is narrowed to theirs.
    pub tools: Vec<ToolName>,
    /// When they are offered. Default: as is [set](Skills::tools_mode) for all skills.
    pub tools_mode: Option<ToolsMode>,
    /// The files that it refers to. Default: none.
    pub files: Option<Arc<dyn SkillFiles>>,
    /// The plugin that brought it.
    pub plugin: Option<Arc<str>>,
    /// Where it is declared, for operators, such as its file. Default: nothing is said of it.
    pub origin: Option<Arc<str>>,
    steps: Option<Steps>,
}

impl PartialEq for Skill {
    /// Files are equal when they are the very same.
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
    /// A skill without tools of its own.
    pub fn new(id: SkillId, description: impl Into<Arc<str>>, body: impl Into<Arc<str>>) -> Self {
        Self {
            id,
            description: description.into(),
            body: body.into(),
            tools: Vec::new(),
            tools_mode: None,
            files: None,
            plugin: None,
            origin: None,
            steps: None,
        }
    }

    /// The same as a plugin's; the very same where it is that already.
    pub(crate) fn of_plugin(this: &Arc<Self>, plugin: &Arc<str>) -> Arc<Self> {
        if this.plugin.as_ref() == Some(plugin) {
            return Arc::clone(this);
        }
        Arc::new(Self { plugin: Some(Arc::clone(plugin)), ..Self::clone(this) })
    }

    /// Says which tools belong to it, beside those of its [steps](Self::steps).
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = ToolName>) -> Self {
        self.tools = tools.into_iter().collect();
        self.own_the_tools_of_steps();
        self
    }

    /// Says when its tools are offered.
    #[must_use]
    pub fn tools_mode(mut self, mode: ToolsMode) -> Self {
        self.tools_mode = Some(mode);
        self
    }

    /// Says in which order tools are called, and what becomes of a step that the model asks to skip.
    /// The tools of steps belong to the skill. While it is the one activated last, of all of them
    /// only the current step's is offered.
    #[must_use]
    pub fn steps(mut self, steps: impl IntoIterator<Item = Step>, on_skip: OnSkip) -> Self {
        self.steps = Steps::new(&self.id, steps.into_iter().collect(), on_skip);
        self.own_the_tools_of_steps();
        self
    }

    /// Says where its files are.
    #[must_use]
    pub fn files(mut self, files: Arc<dyn SkillFiles>) -> Self {
        self.files = Some(files);
        self
    }

    /// Says where it is declared.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Whether turns of a personality have it.
    pub(crate) fn is_reached_by(&self, personality: &Personality) -> bool {
        self.plugin.as_ref().is_none_or(|plugin| personality.reaches_plugin(plugin))
    }

    /// Where it comes from, in words.
    fn comes_from(&self) -> String {
        let plugin = self.plugin.as_ref().map(|plugin| format!("plugin `{plugin}`"));
        match (&self.origin, plugin) {
            (Some(origin), None) => origin.to_string(),
            (Some(origin), Some(plugin)) => format!("{origin} ({plugin})"),
            (None, Some(plugin)) => plugin,
            (None, None) => "the host".to_owned(),
        }
    }

    /// The steps, in order.
    pub fn all_steps(&self) -> &[Step] {
        self.steps.as_ref().map(Steps::as_slice).unwrap_or_default()
    }

    /// What becomes of a step that the model asks to skip; `None` without steps.
    pub fn on_skip(&self) -> Option<OnSkip> {
        self.steps.as_ref().map(|steps| steps.on_skip)
    }

    /// All that a model reads of an active skill: the body, the steps with their notes, and how to
    /// read its files.
    pub fn instructions(&self) -> String {
        let mut text = self.body.to_string();
        if let Some(steps) = &self.steps {
            let _ = write!(text, "\n\n{}", steps.in_words());
        }
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

/// The skills of an engine, in order, and what holds for all of them.
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

/// Two skills of one id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two skills are called `{0}`; rename one of them")]
pub struct DuplicateSkill(pub SkillId);

/// A skill whose id an earlier one has.
#[derive(Debug)]
pub(crate) struct LeftOut {
    first: Arc<Skill>,
    later: Arc<Skill>,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, later) = (self.first.comes_from(), self.later.comes_from());
        write!(
            f,
            "two skills are called `{}`: {first} and {later}; the latter is left out until one of \
             them is renamed",
            self.later.id
        )
    }
}

impl Skills {
    /// These skills, in this order.
    ///
    /// # Errors
    /// [`DuplicateSkill`] when two have one id.
    pub fn new(skills: Vec<Skill>) -> Result<Self, DuplicateSkill> {
        Self::default().with_shared(skills.into_iter().map(Arc::new))
    }

    /// These and more behind them, which stay the very same.
    ///
    /// # Errors
    /// [`DuplicateSkill`] when two have one id.
    pub fn with_shared(
        &self,
        more: impl IntoIterator<Item = Arc<Skill>>,
    ) -> Result<Self, DuplicateSkill> {
        let (all, left_out) = self.with_new(more);
        match left_out.first() {
            Some(LeftOut { later, .. }) => Err(DuplicateSkill(later.id.clone())),
            None => Ok(all),
        }
    }

    /// These and more behind them, but for those whose id is taken.
    pub(crate) fn with_new(
        &self,
        more: impl IntoIterator<Item = Arc<Skill>>,
    ) -> (Self, Vec<LeftOut>) {
        let (mut all, mut left_out) = (self.clone(), Vec::new());
        for later in more {
            match all.skills.iter().find(|first| first.id == later.id) {
                Some(first) => left_out.push(LeftOut { first: Arc::clone(first), later }),
                None => all.skills.push(later),
            }
        }
        (all, left_out)
    }

    /// What holds for all of them, without any.
    #[must_use]
    pub fn without_any(&self) -> Self {
        Self { skills: Vec::new(), ..self.clone() }
    }

    /// Those that others than this plugin brought.
    pub(crate) fn without_plugin(&self, id: &str) -> Self {
        let mut stay = self.clone();
        stay.skills.retain(|skill| skill.plugin.as_deref() != Some(id));
        stay
    }

    /// Those that a personality reaches; `None` where that is all.
    pub(crate) fn reached_by(&self, personality: &Personality) -> Option<Self> {
        if self.iter().all(|skill| skill.is_reached_by(personality)) {
            return None;
        }
        let mut reached = self.clone();
        reached.skills.retain(|skill| skill.is_reached_by(personality));
        Some(reached)
    }

    /// Whether an active skill hides the tools that belong to no skill. Default: it does.
    #[must_use]
    pub fn focus(mut self, focus: bool) -> Self {
        self.focus = focus;
        self
    }

    /// When the tools of skills are offered that do not say it themselves. Default:
    /// [`ToolsMode::WhileActive`].
    #[must_use]
    pub fn tools_mode(mut self, mode: ToolsMode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether models are offered `list_skills`, for clients that show a tool's description to
    /// nobody. Default: they are not, because `read_skill` names all skills.
    #[must_use]
    pub fn offer_list_skills(mut self, offer: bool) -> Self {
        self.lists = offer;
        self
    }

    /// Whether models are offered `deactivate_skill`, for conversations that outlast what a skill
    /// was activated for. Default: they are not, because a turn is over soon, and another tool is
    /// read and paid for in each of its steps.
    #[must_use]
    pub fn offer_deactivate_skill(mut self, offer: bool) -> Self {
        self.deactivates = offer;
        self
    }

    /// All skills, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.skills.iter().map(|skill| &**skill)
    }

    /// All skills, in order, to be kept.
    pub fn iter_shared(&self) -> impl ExactSizeIterator<Item = &Arc<Skill>> {
        self.skills.iter()
    }

    /// The skill of that id.
    pub fn get(&self, id: &str) -> Option<&Skill> {
        self.iter().find(|skill| skill.id.as_str() == id)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// The skills that list a tool.
    pub(crate) fn listing(&self, tool: &str) -> impl Iterator<Item = &Skill> {
        self.iter().filter(move |skill| skill.tools.iter().any(|name| *name == tool))
    }

    /// Whether some of the active skills lists a tool.
    pub(crate) fn lists(&self, active: &[SkillId], tool: &str) -> bool {
        self.listing(tool).any(|skill| active.contains(&skill.id))
    }
}
