//! Skills that change during an engine's lifetime.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use super::{DuplicateSkill, InvalidSkillError, Skill, Skills};
use crate::{parts::EngineParts, plugin::Contribution};

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

/// The sources of an engine's skills: the host's, then those of its plugins, in order.
pub(crate) struct SkillSources {
    sources: Vec<Contribution<SkillOrigin>>,
    last: Mutex<Option<ReloadedParts>>,
}

/// Fixed skills, or a source whose skills may change.
#[derive(Clone)]
pub(crate) enum SkillOrigin {
    Fixed(Arc<Skills>),
    Source(Arc<dyn SkillSource>),
}

/// The engine's parts with the latest skills of the sources.
#[derive(Clone)]
struct ReloadedParts {
    /// The skills of each source.
    from: Vec<Arc<Skills>>,
    /// `None` if they do not fit the rest of the engine.
    parts: Option<Arc<EngineParts>>,
    problems: Vec<Arc<str>>,
}

impl SkillOrigin {
    fn load(&self) -> LoadedSkills {
        match self {
            Self::Fixed(skills) => {
                LoadedSkills { skills: Arc::clone(skills), ..LoadedSkills::default() }
            }
            Self::Source(source) => source.skills(),
        }
    }
}

impl SkillSources {
    pub(crate) fn of_host(skills: SkillOrigin) -> Self {
        Self { sources: vec![Contribution::by_host(skills)], last: Mutex::default() }
    }

    /// These sources and those of a plugin, not queried yet.
    pub(crate) fn with(&self, plugin: &Arc<str>, more: Vec<SkillOrigin>) -> Self {
        let more = more.into_iter().map(|skills| Contribution::by(plugin, skills));
        Self { sources: self.sources.iter().cloned().chain(more).collect(), last: Mutex::default() }
    }

    /// The sources that do not belong to this plugin, not queried yet.
    pub(crate) fn without(&self, plugin: &str) -> Self {
        let mut stay = self.anew();
        stay.sources.retain(|source| source.stays_without(plugin));
        stay
    }

    /// The sources, not queried yet: for an engine with other parts.
    pub(crate) fn anew(&self) -> Self {
        Self { sources: self.sources.clone(), last: Mutex::default() }
    }

    /// All current skills.
    pub(crate) fn load(&self) -> Result<Arc<Skills>, InvalidSkillError> {
        let each = self.sources.iter().map(|source| source.item.load().skills);
        let (all, left_out) = self.together(&each.collect::<Vec<_>>());
        match left_out.first() {
            Some(DuplicateSkill { later, .. }) => {
                Err(InvalidSkillError::DuplicateId(later.id.clone()))
            }
            None => Ok(all),
        }
    }

    /// Merges the skills of each source into one list, with the omitted ones. The host's settings
    /// apply to all skills.
    fn together(&self, each: &[Arc<Skills>]) -> (Arc<Skills>, Vec<DuplicateSkill>) {
        let (mut all, mut left_out) = (None::<Arc<Skills>>, Vec::new());
        for (source, skills) in self.sources.iter().zip(each) {
            all = Some(match (all, &source.plugin) {
                (Some(all), Some(plugin)) => {
                    let of_plugin = |skill| Skill::of_plugin(skill, plugin);
                    let (more, taken) = all.with_new(skills.iter_shared().map(of_plugin));
                    left_out.extend(taken);
                    Arc::new(more)
                }
                _ => Arc::clone(skills),
            });
        }
        (all.unwrap_or_default(), left_out)
    }

    /// The engine's parts with the current skills, and the problems in these. A skill whose id is
    /// taken by an earlier one is omitted; skills that do not fit the rest of the engine leave the
    /// previous ones in place.
    pub(crate) fn now(&self, parts: &Arc<EngineParts>) -> (Arc<EngineParts>, Vec<Arc<str>>) {
        if self.sources.iter().all(|source| matches!(source.item, SkillOrigin::Fixed(_))) {
            return (Arc::clone(parts), Vec::new());
        }
        let loaded: Vec<_> = self.sources.iter().map(|source| source.item.load()).collect();
        let mut last = self.last.lock();
        let is_same = |last: &&ReloadedParts| {
            last.from.iter().zip(&loaded).all(|(before, now)| Arc::ptr_eq(before, &now.skills))
        };
        let reloaded = match last.as_ref().filter(is_same) {
            Some(reloaded) => reloaded.clone(),
            None => {
                let good = last.take().and_then(|last| last.parts);
                let from: Vec<_> = loaded.iter().map(|one| Arc::clone(&one.skills)).collect();
                let (all, left_out) = self.together(&from);
                let mut problems: Vec<Arc<str>> =
                    left_out.iter().map(|skill| skill.to_string().into()).collect();
                let parts = match parts.with_skills(all) {
                    Ok(parts) => Some(Arc::new(parts)),
                    Err(problem) => {
                        problems.push(problem.to_string().into());
                        good
                    }
                };
                last.insert(ReloadedParts { from, parts, problems }).clone()
            }
        };
        let problems = loaded.iter().flat_map(|one| one.problems.iter().cloned());
        let problems = problems.chain(reloaded.problems).collect();
        (reloaded.parts.unwrap_or_else(|| Arc::clone(parts)), problems)
    }
}

impl fmt::Debug for SkillSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillSources").finish_non_exhaustive()
    }
}
