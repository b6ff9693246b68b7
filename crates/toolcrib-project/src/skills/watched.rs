//! The skills of a project while an engine of it lives: as their files are whenever a turn begins.

use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_engine::{LoadedSkills, Skill, SkillSource, Skills};

use super::{Read, SkillFolders, SkillStamp, Stamps, read, skill_file};
use crate::{
    PROJECT_FILE,
    build::{Names, Part, SkillPlace, build_skill},
    root::Root,
};

/// Looks at the folder of skills whenever a turn begins, and reads those that have changed.
#[derive(Debug, Clone)]
pub(crate) struct WatchedSkills(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    root: Root,
    folder: Arc<str>,
    /// Whose they are, if not the project's own.
    plugin: Option<Arc<str>>,
    names: Names,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stamps: Stamps,
    loaded: LoadedSkills,
    /// The folders of the skills that could not be used. They are read at each look: what was wrong
    /// need not have been in a file.
    broken: Vec<Arc<str>>,
}

impl WatchedSkills {
    /// The skills that were loaded from a folder of a part when this lay in it; `None` where it has
    /// no folder.
    pub(crate) fn new(part: &Part, names: Names, skills: Skills) -> Option<Self> {
        let (root, plugin) = (part.root.clone(), part.plugin_id().cloned());
        let SkillFolders { folder, stamps, .. } = &part.skills;
        let (folder, stamps) = (Arc::clone(folder.as_ref()?), stamps.clone());
        let loaded = LoadedSkills { skills: Arc::new(skills), problems: Arc::default() };
        let state = Mutex::new(State { stamps, loaded, broken: Vec::new() });
        Some(Self(Arc::new(Watched { root, folder, plugin, names, state })))
    }

    pub(crate) fn root(&self) -> &Root {
        &self.0.root
    }

    pub(crate) fn folder(&self) -> &str {
        &self.0.folder
    }

    /// Whose they are, if not the project's own.
    pub(crate) fn plugin(&self) -> Option<&Arc<str>> {
        self.0.plugin.as_ref()
    }

    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }
}

impl SkillSource for WatchedSkills {
    fn skills(&self) -> LoadedSkills {
        let this = &*self.0;
        let mut state = this.state.lock().unwrap_or_else(PoisonError::into_inner);
        match Stamps::of(&this.root, &this.folder) {
            Ok(now) if now == state.stamps && state.loaded.problems.is_empty() => {}
            Ok(now) => this.reload(&mut state, now),
            // That the skills cannot be looked at does not take them away: fewer skills can mean
            // more tools.
            Err(error) => {
                let folder = this.root.shown(&this.folder);
                let problem =
                    format!("the skill folder `{folder}` {error}; the skills stay as they were");
                state.loaded.problems = Arc::new([problem.into()]);
            }
        }
        state.loaded.clone()
    }
}

impl Watched {
    /// Reads the skills that have changed. Those that have not stay the very same, and those that
    /// cannot be used any more stay as they were. A skill goes with its folder, not with its
    /// `SKILL.md`: editors and installations take that away for a moment.
    fn reload(&self, state: &mut State, now: Stamps) {
        let before = Arc::clone(&state.loaded.skills);
        let mut skills = Vec::new();
        let mut broken = Vec::new();
        let mut problems_of_all: Vec<Arc<str>> = Vec::new();
        for stamp in now.iter() {
            let name = &stamp.name;
            let last_good = before.iter_shared().find(|skill| *skill.id == **name);
            if state.stamps.get(name) == Some(stamp) && !state.broken.contains(name) {
                skills.extend(last_good.cloned());
                continue;
            }
            let problems = Problems::new(PROJECT_FILE);
            let skill = match read(&self.root, &self.folder, name, &problems) {
                Read::Skill(file) => {
                    let (plugin, root) = (self.plugin.as_ref(), &self.root);
                    let place = SkillPlace { plugin, root, folder: &self.folder, stamp };
                    Some(build_skill(*file, &place, &self.names, &problems))
                }
                Read::Broken => None,
                Read::NoSkill if last_good.is_none() => continue,
                Read::NoSkill => {
                    problems.push(self.gone(stamp));
                    None
                }
            };
            let problems = problems.into_diagnostics();
            let errors: Vec<Arc<str>> =
                problems.errors().map(|problem| problem.to_string().into()).collect();
            match skill.filter(|_| errors.is_empty()) {
                Some(skill) => skills.push(as_before(skill, last_good)),
                None => {
                    skills.extend(last_good.cloned());
                    broken.push(Arc::clone(name));
                    problems_of_all.extend(errors);
                }
            }
        }
        let with_none = before.without_any();
        // Folders have different names, and so have these skills.
        let skills = with_none.with_shared(skills).unwrap_or(with_none);
        let is_same = before.iter_shared().len() == skills.iter_shared().len()
            && before.iter_shared().zip(skills.iter_shared()).all(|(a, b)| Arc::ptr_eq(a, b));
        if !is_same {
            state.loaded.skills = Arc::new(skills);
        }
        state.loaded.problems = problems_of_all.into();
        state.broken = broken;
        state.stamps = now;
    }

    /// Of a skill that is there no more, though its folder is.
    fn gone(&self, stamp: &SkillStamp) -> Diagnostic {
        let (folder, name) = (self.root.shown(&self.folder), &stamp.name);
        let at = Spot::start_of(skill_file(&folder, name));
        let (message, remains) = match &stamp.moved_to {
            None => ("this is gone", name),
            Some(moved_to) => ("this is gone: another skill was taking its place", moved_to),
        };
        Diagnostic::error(&at, format!("{message}; the skill stays as it was"))
            .help(format!("if it is to go too, remove `{folder}/{remains}`"))
    }
}

/// The skill itself, or the one before it if nothing about it is another.
fn as_before(skill: Skill, before: Option<&Arc<Skill>>) -> Arc<Skill> {
    let Some(before) = before else { return Arc::new(skill) };
    let mut alike = skill.clone();
    if skill.files.is_some() && before.files.is_some() {
        // They lie in the same folder.
        alike.files.clone_from(&before.files);
    }
    if alike == **before { Arc::clone(before) } else { Arc::new(skill) }
}
