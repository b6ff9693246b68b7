//! The parts of a project: itself and its plugins, each from one folder.

use std::{path::Path, sync::Arc};

use toolcrib_config::{Diagnostic, Document, Located, Problems, Spot};

use super::grant::Grant;
use crate::{
    file::{
        HubSection, PLUGIN_FILE, PluginFile, PluginSection, ProjectFile, ToolDeclarations,
        ToolSection,
    },
    read::{
        root::Root,
        skills::SkillFolders,
        text_file::{FileError, MAX_TEXT},
    },
};

/// The content of one folder: the project's own, or a plugin's.
pub(crate) struct Part {
    /// Its access outside its folder; `None` for the project itself, which is not restricted.
    pub(crate) grant: Option<Arc<Grant>>,
    pub(crate) root: Root,
    pub(crate) declared: ToolDeclarations,
    pub(crate) skills: SkillFolders,
}

impl Part {
    /// The project's own part, then its plugins in the order of the file. Problems are recorded.
    pub(crate) fn all(
        file: &mut ProjectFile,
        skills: SkillFolders,
        root: &Root,
        problems: &Problems,
    ) -> Vec<Self> {
        let declared = std::mem::take(&mut file.declared);
        let own = Self { grant: None, root: root.clone(), declared, skills };
        let mut parts = vec![own];
        for section in &file.plugins {
            parts.push(Self::plugin(section, root, &parts, problems));
        }
        parts
    }

    /// A plugin; an empty one if its file cannot be read.
    fn plugin(
        section: &PluginSection,
        project: &Root,
        earlier: &[Self],
        problems: &Problems,
    ) -> Self {
        let grant = Some(Arc::new(Grant::of(section, problems)));
        let read = section.path.as_ref().and_then(|path| read(path, project, earlier, problems));
        let Some((root, file)) = read else {
            let (declared, skills) = Default::default();
            return Self { grant, root: project.clone(), declared, skills };
        };
        let start = Spot::start_of(root.shown(PLUGIN_FILE));
        let skills = SkillFolders::read(&root, file.skill_folder.as_ref(), &start, problems);
        Self { grant, root, declared: file.declared, skills }
    }

    /// The plugin's id; `None` of the project itself.
    pub(crate) fn plugin_id(&self) -> Option<&Arc<str>> {
        self.grant.as_ref().map(|grant| &grant.plugin)
    }

    pub(crate) fn tools(parts: &[Self]) -> impl Iterator<Item = &ToolSection> + Clone {
        parts.iter().flat_map(|part| &part.declared.tools)
    }

    /// The hubs, each with its plugin.
    pub(crate) fn hubs(parts: &[Self]) -> impl Iterator<Item = (Option<&Arc<str>>, &HubSection)> {
        parts
            .iter()
            .flat_map(|part| part.declared.hubs.iter().map(move |hub| (part.plugin_id(), hub)))
    }
}

/// The folder of a plugin and its file.
fn read(
    path: &Located<Arc<str>>,
    project: &Root,
    earlier: &[Part],
    problems: &Problems,
) -> Option<(Root, PluginFile)> {
    let refuse = |error: FileError| {
        let help = project.near(&error, &path.value);
        let message = format!("`{}` {error}", path.value.escape_debug());
        problems.push(Diagnostic::error(&path.at, message).help(help));
    };
    let root = project.of_plugin(&path.value).map_err(refuse).ok()?;
    if root.path() == project.path() {
        let message = format!("`{}` is the project's own folder", path.value.escape_debug());
        let help = "give the plugin a separate folder, such as \"plugins/crm\"";
        problems.push(Diagnostic::error(&path.at, message).help(help));
        return None;
    }
    let of_other = earlier.iter().find(|part| part.root.path() == root.path());
    if let Some(other) = of_other.and_then(Part::plugin_id) {
        let message =
            format!("`{}` is the folder of the plugin `{other}`", path.value.escape_debug());
        let help = "give each plugin a separate folder, or remove one of the two";
        problems.push(Diagnostic::error(&path.at, message).help(help));
        return None;
    }
    let text = match root.by_values().text(PLUGIN_FILE, MAX_TEXT) {
        Ok(text) => text,
        Err(error) => {
            let file = Path::new(&*path.value).join(PLUGIN_FILE);
            let message = format!("`{}` {error}", file.display());
            let help = "a plugin's folder must contain it";
            problems.push(Diagnostic::error(&path.at, message).help(help));
            return None;
        }
    };
    let document = Document::new(root.shown(PLUGIN_FILE), text);
    PluginFile::read(&document, problems).map(|file| (root, file))
}
