//! Skills that change while an engine lives.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::{DuplicateSkill, LeftOut, Skill, Skills};
use crate::{parts::EngineParts, plugin::Brought};

/// Where an engine's skills come from when they may change while it lives, such as from files that
/// people edit. Asked whenever a turn begins; turns that have begun keep the skills that they began
/// with.
pub trait SkillSource: Send + Sync {
    /// The skills as they are now. It is called on the task that begins a turn, and so must be quick:
    /// while nothing has changed it gives the very same [`LoadedSkills::skills`] again, for which
    /// nothing is worked out anew.
    ///
    /// What can no longer be loaded stays as it last could be, and is named among the
    /// [problems](LoadedSkills::problems), each time until it is mended.
    fn skills(&self) -> LoadedSkills;
}

/// What a [`SkillSource`] has.
#[derive(Debug, Clone, Default)]
pub struct LoadedSkills {
    /// The skills.
    pub skills: Arc<Skills>,
    /// What is wrong, one text per problem, for operators. Each is a `skill.reload_failed` of the
    /// turn that begins.
    pub problems: Arc<[Arc<str>]>,
}

/// Where an engine's skills come from: the host's, then those of its plugins, in order.
pub(crate) struct SkillSources {
    sources: Vec<Brought<SkillsFrom>>,
    last: Mutex<Option<Reloaded>>,
}

/// Skills that stay, or a source that may have others later.
#[derive(Clone)]
pub(crate) enum SkillsFrom {
    Fixed(Arc<Skills>),
    Source(Arc<dyn SkillSource>),
}

/// The engine's parts with the skills that the sources last gave.
#[derive(Clone)]
struct Reloaded {
    /// What the sources gave.
    from: Vec<Arc<Skills>>,
    /// `None` when they do not go with the rest of the engine.
    parts: Option<Arc<EngineParts>>,
    problems: Vec<Arc<str>>,
}

impl SkillsFrom {
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
    pub(crate) fn of_host(skills: SkillsFrom) -> Self {
        Self { sources: vec![Brought::by_host(skills)], last: Mutex::default() }
    }

    /// These and those of a plugin. Nothing was asked of them yet.
    pub(crate) fn with(&self, plugin: &Arc<str>, more: Vec<SkillsFrom>) -> Self {
        let more = more.into_iter().map(|skills| Brought::by(plugin, skills));
        Self { sources: self.sources.iter().cloned().chain(more).collect(), last: Mutex::default() }
    }

    /// Those of others than this plugin. Nothing was asked of them yet.
    pub(crate) fn without(&self, plugin: &str) -> Self {
        let mut stay = self.anew();
        stay.sources.retain(|source| source.stays_without(plugin));
        stay
    }

    /// As they were before anything was asked of them: for an engine with other parts.
    pub(crate) fn anew(&self) -> Self {
        Self { sources: self.sources.clone(), last: Mutex::default() }
    }

    /// All skills as they are now.
    pub(crate) fn load(&self) -> Result<Arc<Skills>, DuplicateSkill> {
        let each = self.sources.iter().map(|source| source.item.load().skills);
        let (all, left_out) = self.together(&each.collect::<Vec<_>>());
        match left_out.first() {
            Some(LeftOut { later, .. }) => Err(DuplicateSkill(later.id.clone())),
            None => Ok(all),
        }
    }

    /// What each source gave, as the skills of one engine, and what is left out of them. What holds
    /// for all skills, the host says.
    fn together(&self, each: &[Arc<Skills>]) -> (Arc<Skills>, Vec<LeftOut>) {
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

    /// The engine's parts with the skills as they are now, and what is wrong with these. A skill whose
    /// name an earlier one has is left out; skills that do not go with the rest of the engine leave
    /// those before them in place.
    pub(crate) fn now(&self, parts: &Arc<EngineParts>) -> (Arc<EngineParts>, Vec<Arc<str>>) {
        if self.sources.iter().all(|source| matches!(source.item, SkillsFrom::Fixed(_))) {
            return (Arc::clone(parts), Vec::new());
        }
        let loaded: Vec<_> = self.sources.iter().map(|source| source.item.load()).collect();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |last: &&Reloaded| {
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
                last.insert(Reloaded { from, parts, problems }).clone()
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
