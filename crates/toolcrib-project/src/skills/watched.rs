//! The skills of a project while an engine of it exists: reloaded at the start of a turn.

use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_engine::{LoadedSkills, Skill, SkillSource, Skills};

use crate::{
    bind::{names::Names, part::Part},
    build::{SkillPlace, build_skill},
    file::PROJECT_FILE,
    read::{
        root::Root,
        skills::{FolderContent, SkillFolders, SkillStamp, Stamps, read, skill_file},
    },
};

/// Checks the skills folder at the start of each turn, and reads changed skills.
#[derive(Debug, Clone)]
pub(crate) struct WatchedSkills(Arc<WatchedFolder>);

#[derive(Debug)]
struct WatchedFolder {
    root: Root,
    folder: Arc<str>,
    /// Their plugin, if they are not the project's own.
    plugin: Option<Arc<str>>,
    names: Names,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stamps: Stamps,
    loaded: LoadedSkills,
    /// The folders of invalid skills. They are read at each check: the error may have been outside
    /// the files.
    broken: Vec<Arc<str>>,
}

impl WatchedSkills {
    /// The skills that were loaded from a part's folder; `None` without a folder.
    pub(crate) fn new(part: &Part, names: Names, skills: Skills) -> Option<Self> {
        let (root, plugin) = (part.root.clone(), part.plugin_id().cloned());
        let SkillFolders { folder, stamps, .. } = &part.skills;
        let (folder, stamps) = (Arc::clone(folder.as_ref()?), stamps.clone());
        let loaded = LoadedSkills { skills: Arc::new(skills), problems: Arc::default() };
        let state = Mutex::new(State { stamps, loaded, broken: Vec::new() });
        Some(Self(Arc::new(WatchedFolder { root, folder, plugin, names, state })))
    }

    pub(crate) fn root(&self) -> &Root {
        &self.0.root
    }

    pub(crate) fn folder(&self) -> &str {
        &self.0.folder
    }

    /// Their plugin, if they are not the project's own.
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
        let mut state = this.state.lock();
        match Stamps::of(&this.root, &this.folder) {
            Ok(now) if now == state.stamps && state.loaded.problems.is_empty() => {}
            Ok(now) => this.reload(&mut state, now),
            // A folder that cannot be read does not remove the skills: fewer skills can mean more
            // tools.
            Err(error) => {
                let folder = this.root.shown(&this.folder);
                let problem =
                    format!("the skill folder `{folder}` {error}; the previous skills stay in use");
                state.loaded.problems = Arc::new([problem.into()]);
            }
        }
        state.loaded.clone()
    }
}

impl WatchedFolder {
    /// Reads the changed skills. Unchanged ones keep their `Arc`s, and those that became invalid
    /// keep their previous version. A skill is removed with its folder, not with its `SKILL.md`:
    /// editors and installations remove that for a moment.
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
                FolderContent::Skill(file) => {
                    let (plugin, root) = (self.plugin.as_ref(), &self.root);
                    let place = SkillPlace { plugin, root, folder: &self.folder, stamp };
                    Some(build_skill(&file, &place, &self.names, &problems))
                }
                FolderContent::Broken => None,
                FolderContent::NoSkill if last_good.is_none() => continue,
                FolderContent::NoSkill => {
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
        // Folder names are unique, and so are these skills' names.
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

    /// For a removed skill whose folder still exists.
    fn gone(&self, stamp: &SkillStamp) -> Diagnostic {
        let (folder, name) = (self.root.shown(&self.folder), &stamp.name);
        let at = Spot::start_of(skill_file(&folder, name));
        let (message, remains) = match &stamp.moved_to {
            None => ("this file no longer exists", name),
            Some(moved_to) => {
                ("this file no longer exists: another skill was replacing it", moved_to)
            }
        };
        Diagnostic::error(&at, format!("{message}; the previous version of the skill stays in use"))
            .help(format!("to remove the skill too, delete `{folder}/{remains}`"))
    }
}

/// The skill itself, or the previous one if nothing differs.
fn as_before(skill: Skill, before: Option<&Arc<Skill>>) -> Arc<Skill> {
    let Some(before) = before else { return Arc::new(skill) };
    let mut alike = skill.clone();
    if skill.files.is_some() && before.files.is_some() {
        // Both are in the same folder.
        alike.files.clone_from(&before.files);
    }
    if alike == **before { Arc::clone(before) } else { Arc::new(skill) }
}
