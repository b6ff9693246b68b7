//! The modules of a crate, and which file a path of one leads to.

use std::collections::BTreeMap;

use super::{
    graph::Graph,
    source::{Path, Source},
};

/// Re-exports that are followed, one after the other. More are a circle.
const MOST_STEPS: usize = 16;

/// The modules that a `lib.rs` or `main.rs` declares.
#[derive(Default)]
pub(super) struct CrateTree {
    modules: BTreeMap<Path, Module>,
}

struct Module {
    file: String,
    /// The module of the whole file, which differs from an inline module.
    of_file: Path,
    source: Source,
}

impl CrateTree {
    /// Reads the file of the root and all modules. `read` returns the text of a file, or nothing if there
    /// is none.
    pub(super) fn read<E>(
        root: &str,
        read: &mut impl FnMut(&str) -> Result<Option<Source>, E>,
    ) -> Result<Self, E> {
        let mut tree = Self::default();
        if let Some(source) = read(root)? {
            let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
            tree.add(Path::new(), &Path::new(), root, folder, source, read)?;
        }
        Ok(tree)
    }

    /// Adds a module and the ones below it, whose files are in a folder.
    fn add<E>(
        &mut self,
        path: Path,
        of_file: &Path,
        file: &str,
        folder: &str,
        mut source: Source,
        read: &mut impl FnMut(&str) -> Result<Option<Source>, E>,
    ) -> Result<(), E> {
        let below = |name: &str| {
            (path.iter().cloned().chain([name.to_owned()]).collect(), format!("{folder}/{name}"))
        };
        for (name, inline) in std::mem::take(&mut source.inline) {
            let (path, folder) = below(&name);
            self.add(path, of_file, file, &folder, inline, read)?;
        }
        for name in std::mem::take(&mut source.children) {
            let (path, folder): (Path, String) = below(&name);
            for file in [format!("{folder}.rs"), format!("{folder}/mod.rs")] {
                if let Some(child) = read(&file)? {
                    self.add(path.clone(), &path, &file, &folder, child, read)?;
                }
            }
        }
        self.modules
            .insert(path, Module { file: file.to_owned(), of_file: of_file.clone(), source });
        Ok(())
    }

    /// Adds the imports between the files to a graph.
    pub(super) fn add_to(&self, graph: &mut Graph) {
        for (module, Module { file, of_file, source }) in &self.modules {
            graph.files.insert(file.clone());
            for mention in &source.mentions {
                let Some(path) = self.absolute(module, &mention.path, MOST_STEPS) else { continue };
                // A file that only re-exports a name of the modules below it does not use the name.
                let is_below = path.len() > of_file.len() && path.starts_with(of_file);
                let is_unused =
                    mention.reexported_as.as_ref().is_some_and(|name| !source.words.contains(name));
                if is_below && is_unused {
                    continue;
                }
                let Some((used, name)) = self.resolve(&path, MOST_STEPS) else { continue };
                let edge = (file.clone(), used.to_owned());
                if edge.0 != edge.1 {
                    graph.edges.entry(edge).or_default().insert(name);
                }
            }
        }
    }

    /// A path from the root of the crate; nothing for a path of another crate, and for one that begins with
    /// a name of an item.
    fn absolute(&self, module: &[String], path: &[String], steps: usize) -> Option<Path> {
        let (first, mut rest) = path.split_first()?;
        let mut from = module.to_vec();
        match &**first {
            "crate" => from.clear(),
            "self" => {}
            "super" => {
                from.pop()?;
                while let Some((first, after)) = rest.split_first()
                    && first == "super"
                {
                    from.pop()?;
                    rest = after;
                }
            }
            name => {
                from.push(name.to_owned());
                if !self.modules.contains_key(&from) {
                    let imports = &self.modules.get(module)?.source.imports;
                    let import = imports.get(name).filter(|import| *import != path)?;
                    from = self.absolute(module, import, steps.checked_sub(1)?)?;
                }
            }
        }
        from.extend_from_slice(rest);
        Some(from)
    }

    /// The file and the name that an absolute path leads to.
    fn resolve(&self, path: &[String], steps: usize) -> Option<(&str, String)> {
        let of_length = |length: usize| {
            let (module, rest) = path.split_at_checked(length)?;
            Some((module, self.modules.get(module)?, rest))
        };
        let (module, Module { file, source, .. }, rest) =
            (0..=path.len()).rev().find_map(of_length)?;
        let Some((name, after)) = rest.split_first() else {
            return Some((file, module.last().map_or("crate", |name| name).to_owned()));
        };
        let reexported = || {
            let steps = steps.checked_sub(1).filter(|_| !source.items.contains(name))?;
            let named = source.reexports.get(name);
            let target = named.and_then(|reexport| self.absolute(module, reexport, steps));
            let target = target.or_else(|| self.through_globs(module, source, name, steps))?;
            self.resolve(&[&target, after].concat(), steps)
        };
        reexported().or_else(|| Some((file, name.clone())))
    }

    /// The path of a name that a module re-exports by a glob.
    fn through_globs(
        &self,
        module: &[String],
        source: &Source,
        name: &str,
        steps: usize,
    ) -> Option<Path> {
        source.reexported_globs.iter().find_map(|glob| {
            let mut target = self.absolute(module, glob, steps)?;
            let source = &self.modules.get(&target)?.source;
            let is_found = source.items.contains(name)
                || source.reexports.contains_key(name)
                || self.through_globs(&target, source, name, steps.checked_sub(1)?).is_some();
            target.push(name.to_owned());
            is_found.then_some(target)
        })
    }
}
