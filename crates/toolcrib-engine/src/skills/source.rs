//! Skills that change during an engine's lifetime.

use std::sync::Arc;

use super::Skills;

/// A source of an engine's skills that may change during its lifetime, such as files that people
/// edit. Queried at the beginning of each turn; turns that have begun keep their skills.
pub trait SkillSource: Send + Sync {
    /// The current skills. It is called on the task that begins a turn, and so must be quick: while
    /// nothing has changed it returns the same [`LoadedSkills::skills`], which need no new work.
    ///
    /// Skills that can no longer be loaded keep their last version, and are reported in
    /// [problems](LoadedSkills::problems), each time until they are fixed.
    fn skills(&self) -> LoadedSkills;
}

/// The result of a [`SkillSource`].
#[derive(Debug, Clone, Default)]
pub struct LoadedSkills {
    /// The skills.
    pub skills: Arc<Skills>,
    /// The problems, one text each, for operators. Each is a `skill.reload_failed` event of the
    /// turn that begins.
    pub problems: Arc<[Arc<str>]>,
}

/// Fixed skills, or a source whose skills may change.
#[derive(Clone)]
pub(crate) enum SkillOrigin {
    Fixed(Arc<Skills>),
    Source(Arc<dyn SkillSource>),
}

impl SkillOrigin {
    pub(crate) fn load(&self) -> LoadedSkills {
        match self {
            Self::Fixed(skills) => {
                LoadedSkills { skills: Arc::clone(skills), ..LoadedSkills::default() }
            }
            Self::Source(source) => source.skills(),
        }
    }
}
