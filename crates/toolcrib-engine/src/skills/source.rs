//! Skills that change while an engine lives.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::Skills;
use crate::parts::EngineParts;

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

/// An engine's source of skills, and the engine's parts with those that it last gave.
pub(crate) struct Reloading {
    source: Arc<dyn SkillSource>,
    last: Mutex<Option<Reloaded>>,
}

#[derive(Clone)]
struct Reloaded {
    /// What the source gave.
    from: Arc<Skills>,
    /// `None` when they do not go with the rest of the engine.
    parts: Option<Arc<EngineParts>>,
    problem: Option<Arc<str>>,
}

impl Reloading {
    pub(crate) fn new(source: Arc<dyn SkillSource>) -> Self {
        Self { source, last: Mutex::default() }
    }

    /// As it was before anything was asked of it: for an engine with other parts.
    pub(crate) fn anew(&self) -> Self {
        Self::new(Arc::clone(&self.source))
    }

    pub(crate) fn load(&self) -> LoadedSkills {
        self.source.skills()
    }

    /// The engine's parts with the skills as they are now, and what is wrong with these. Skills that
    /// do not go with the rest of the engine leave those before them in place.
    pub(crate) fn now(&self, parts: &Arc<EngineParts>) -> (Arc<EngineParts>, Vec<Arc<str>>) {
        let loaded = self.load();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.as_ref().filter(|last| Arc::ptr_eq(&last.from, &loaded.skills));
        let reloaded = match before {
            Some(reloaded) => reloaded.clone(),
            None => {
                let good = last.take().and_then(|last| last.parts);
                let (parts, problem) = match parts.with_skills(&loaded.skills) {
                    Ok(parts) => (Some(Arc::new(parts)), None),
                    Err(problem) => (good, Some(problem.to_string().into())),
                };
                last.insert(Reloaded { from: loaded.skills, parts, problem }).clone()
            }
        };
        let problems = loaded.problems.iter().cloned().chain(reloaded.problem).collect();
        (reloaded.parts.unwrap_or_else(|| Arc::clone(parts)), problems)
    }
}

impl fmt::Debug for Reloading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading").finish_non_exhaustive()
    }
}
