//! The sources of an engine's skills, and its parts with their latest skills.

use std::sync::Arc;

use parking_lot::Mutex;

use super::EngineParts;
use crate::{
    plugin::Contribution,
    skills::{DuplicateSkill, InvalidSkillError, Skill, SkillOrigin, Skills},
};

/// The sources of an engine's skills: the host's, then those of its plugins, in order.
pub(crate) struct SkillSources {
    sources: Vec<Contribution<SkillOrigin>>,
    last: Mutex<Option<ReloadedParts>>,
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

impl SkillSources {
    pub(crate) fn of_host(skills: SkillOrigin) -> Self {
        Self { sources: vec![Contribution::by_host(skills)], last: Mutex::default() }
    }

    /// The sources with those of one more plugin, not queried yet.
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

toolcrib_core::__internal::debug_fields!(SkillSources);
