//! A tool while it is built, and the place of its program.

use std::{cell::Cell, path::PathBuf};

use toolcrib_capabilities::process::{self, SandboxTier};
use toolcrib_config::{Diagnostic, Help, Located, Problems, Spot};
use toolcrib_tools::{Declaration, ProgramAccess, ProgramPlace, ToolErrors};

use super::schema;
use crate::{
    bind::{names::Names, sandbox::SandboxedProgram},
    build::process_limit::report_unlimited_processes,
    file::ToolSection,
    read::root::Root,
};

/// The file and the names that a tool is declared in.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) root: &'a Root,
    pub(super) names: &'a Names,
    pub(super) problems: &'a Problems,
}

/// A tool or a hook while it is built.
pub(super) struct UnbuiltTool<'a> {
    pub(super) section: &'a ToolSection,
    pub(super) declaration: Declaration,
    /// Whether the schema of the arguments is known. If not, all else is checked all the same, and
    /// nothing is said of parameters.
    schema_is_sound: bool,
    /// Whether its program is outside the project, which is recorded.
    leads_outside: Cell<bool>,
    pub(super) around: Surroundings<'a>,
}

impl<'a> UnbuiltTool<'a> {
    pub(super) fn new(section: &'a ToolSection, around: Surroundings<'a>) -> Self {
        let schema = schema::input_schema(section, around.root, around.problems);
        let mut declaration = section.declaration.clone();
        declaration.source = declaration.source.with_secrets(&around.names.secrets);
        match &schema {
            Some(schema) => declaration.input_schema = schema.clone(),
            None => declaration.source = declaration.source.without_schema(),
        }
        Self {
            section,
            declaration,
            schema_is_sound: schema.is_some(),
            leads_outside: Cell::new(false),
            around,
        }
    }

    /// The tool; its errors are recorded, except those that the reader of its table recorded.
    pub(super) fn built<T>(&self, built: Result<T, ToolErrors>) -> Option<T> {
        let leads_outside = self.leads_outside.get();
        let record = |found: ToolErrors| {
            let is_complete = self.section.is_complete && self.schema_is_sound;
            for error in found.errors {
                let is_known = leads_outside && error.field == "/program";
                if !is_known && (is_complete || !error.field.is_empty()) {
                    let at = error.at.as_ref().unwrap_or(&self.section.at);
                    self.refuse(at, error.message, error.help);
                }
            }
        };
        built.map_err(record).ok().filter(|_| !leads_outside)
    }

    /// Records an error.
    pub(super) fn refuse(&self, at: &Spot, message: impl Into<String>, help: impl Into<Help>) {
        self.around.problems.push(Diagnostic::error(at, message).help(help));
    }

    /// The place of a field; that of the table where it is not written.
    fn place(&self, field: &str) -> &Spot {
        self.declaration.source.value(field).unwrap_or(&self.section.at)
    }

    /// The folder that a program runs in; the project's own where the named one cannot be used, which
    /// is recorded.
    fn working_dir(&self, named: Option<&str>) -> PathBuf {
        let root = self.around.root;
        let folder = named.and_then(|named| {
            let record = |error| {
                let help = root.near(&error, named);
                self.refuse(self.place("/working_dir"), format!("`{named}` {error}"), help);
            };
            root.folder(named).map_err(record).ok()
        });
        folder.unwrap_or_else(|| root.path().to_owned())
    }

    /// The place of a program, as [`KindPorts::program`].
    pub(super) fn program(&self, program: &ProgramAccess<'_>, least: SandboxTier) -> ProgramPlace {
        let Surroundings { root, names, problems } = self.around;
        let sandboxes = &names.sandboxes;
        let mut section = program.sandbox.clone();
        if section.tier.is_none() && sandboxes.tier(&section, false) < least {
            section.tier = Some(Located { value: least, at: self.section.at.clone() });
        }
        let stray = program.allow_stray_children;
        let allow_stray_children = stray.unwrap_or_else(|| sandboxes.allows_stray_children());
        self.check_program(program, sandboxes.tier(&section, false), allow_stray_children);
        let working_dir = self.working_dir(program.working_dir);
        let sandboxed = SandboxedProgram {
            section: &section,
            base: root.path(),
            grant: names.grant.as_deref(),
            is_imported: false,
            at: self.place("/program"),
        };
        let sandbox = sandboxes.resolve(&sandboxed, problems);
        ProgramPlace {
            base_dir: root.path().to_owned(),
            working_dir,
            sandbox,
            allow_stray_children,
        }
    }

    /// Records a program that the project may not start, or that this machine cannot contain.
    fn check_program(&self, program: &ProgramAccess<'_>, tier: SandboxTier, allows_stray: bool) {
        let Surroundings { root, names, problems } = self.around;
        let at = self.place("/program");
        if let Some(grant) = &names.grant {
            grant.check_program(at, problems);
            for position in 0..program.inherit_env.len() {
                let field = format!("/inherit_env/{position}");
                let at = self.declaration.source.value(&field).unwrap_or(at);
                grant.refuse_variable(at, problems);
            }
        }
        let has_program = !program.program.is_empty();
        if has_program && !root.check_program(program.program, at, problems) {
            self.leads_outside.set(true);
        }
        if !allows_stray
            && tier > SandboxTier::None
            && let Err(missing) = process::support()
        {
            let name = self.declaration.name.as_str();
            names.sandboxes.refuse_uncontained(name, at, missing, false);
        }
        report_unlimited_processes(&self.section.at.file, problems);
    }
}
