//! Runs the support desk of `examples/` as its README describes, on a copy.

use std::{
    collections::{BTreeSet, HashMap},
    env, fs, io,
    path::{Path, PathBuf},
    process::{self, Command},
};

use tinyjson::JsonValue;

use crate::{
    problem::Problem,
    small_examples::{build_programs, program},
    workspace::{Workspace, command_line, not_started},
};

const MESSAGE: &str = "I was charged twice for order 1042, please refund one charge";

/// The menu of a refund turn: the skill's three tools of the project's 25, and the engine's own.
const BILLING_MENU: [&str; 4] =
    ["list_charges", "list_refunds", "read_skill", "refund_duplicate_charge"];
const WITHHELD: usize = 22;

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    // Without the features that tests enable in dependencies.
    build_programs(workspace)?;
    let desk = Desk {
        program: program(workspace, "toolcrib"),
        project: Copy::of(&workspace.root().join("examples").join("support-desk"))?,
    };

    desk.toolcrib(&["check"])?;
    desk.refunds("a first run", &[])?;
    desk.refuses("a second run")?;
    desk.refunds("a run with --fresh", &["--fresh"])?;
    desk.shows_the_billing_menu()
}

struct Desk {
    program: PathBuf,
    project: Copy,
}

impl Desk {
    fn refunds(&self, which: &str, more: &[&str]) -> Result<(), Problem> {
        let answer = self.answer(more)?;
        if answer.contains("refunded one charge") {
            return Ok(());
        }
        Err(unexpected(which, "one charge is refunded", &answer))
    }

    fn refuses(&self, which: &str) -> Result<(), Problem> {
        let answer = self.answer(&[])?;
        if answer.contains("already refunded") && !answer.contains("refunded one charge") {
            return Ok(());
        }
        Err(unexpected(
            which,
            "the order is already refunded, and nothing is refunded now",
            &answer,
        ))
    }

    fn answer(&self, more: &[&str]) -> Result<String, Problem> {
        let outcome = self.toolcrib(&[&["run", MESSAGE], more].concat())?;
        let stopped = text(&outcome, "stopped");
        match text(&outcome, "answer") {
            Some(answer) if stopped == Some("answered") => {
                eprintln!("  {answer}");
                Ok(answer.to_owned())
            }
            _ => Err(unexpected("the run", "it is answered", stopped.unwrap_or("nothing"))),
        }
    }

    fn shows_the_billing_menu(&self) -> Result<(), Problem> {
        let menu = self.toolcrib(&["menu", "--skill", "billing"])?;
        let offered: BTreeSet<&str> =
            items(&menu, "offered").filter_map(|tool| text(tool, "name")).collect();
        if !offered.iter().eq(BILLING_MENU.iter()) {
            return Err(unexpected(
                "the menu of skill `billing`",
                &format!("{BILLING_MENU:?} are offered"),
                &format!("{offered:?}"),
            ));
        }
        let withheld = items(&menu, "withheld").count();
        let unexplained: Vec<&str> = items(&menu, "withheld")
            .filter(|tool| text(tool, "reason").is_none_or(str::is_empty))
            .filter_map(|tool| text(tool, "name"))
            .collect();
        if withheld != WITHHELD || !unexplained.is_empty() {
            return Err(unexpected(
                "the menu of skill `billing`",
                &format!("{WITHHELD} tools are withheld, each with a reason"),
                &format!("{withheld} are withheld, without a reason: {unexplained:?}"),
            ));
        }
        eprintln!("  offered: {}", BILLING_MENU.join(", "));
        Ok(())
    }

    /// Runs the program on the copy; returns its output as JSON.
    fn toolcrib(&self, args: &[&str]) -> Result<JsonValue, Problem> {
        let mut command = Command::new(&self.program);
        command.args(args).arg("--json").arg("--project").arg(&self.project.0);
        let line = command_line(&command);
        eprintln!("$ {line}");
        let output = command.output().map_err(|error| not_started(&line, &error))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(Problem::new(
                format!("`{line}` failed: {}\n{printed}{complaint}", output.status),
                "repeat it with `-p examples/support-desk`, and without `--json`",
            ));
        }
        printed.parse().map_err(|error| {
            Problem::new(
                format!("`{line}` did not print one JSON object: {error}\n{printed}"),
                "with `--json` all other output belongs on standard error",
            )
        })
    }
}

fn unexpected(which: &str, expected: &str, found: &str) -> Problem {
    Problem::new(
        format!("{which} of the example: expected that {expected}; found: {found}"),
        "follow it with `cargo run -p toolcrib-cli -- run --fresh -v -p examples/support-desk \"…\"`",
    )
}

pub(crate) fn field<'a>(object: &'a JsonValue, name: &str) -> Option<&'a JsonValue> {
    object.get::<HashMap<String, JsonValue>>()?.get(name)
}

pub(crate) fn text<'a>(object: &'a JsonValue, name: &str) -> Option<&'a str> {
    field(object, name)?.get::<String>().map(String::as_str)
}

pub(crate) fn items<'a>(object: &'a JsonValue, name: &str) -> impl Iterator<Item = &'a JsonValue> {
    field(object, name).and_then(JsonValue::get::<Vec<JsonValue>>).into_iter().flatten()
}

/// A copy of a project without its state, removed on drop.
pub(crate) struct Copy(PathBuf);

impl Copy {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn of(project: &Path) -> Result<Self, Problem> {
        let folder = env::temp_dir().join(format!("toolcrib-xtask-{}", process::id()));
        let copy = Self(folder);
        copy_folder(project, &copy.0).map_err(|error| {
            Problem::new(
                format!("{} cannot be copied to {}: {error}", project.display(), copy.0.display()),
                "make room in the folder for temporary files, or set TMPDIR to another",
            )
        })?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // A leftover is small and in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, name) = (entry.path(), entry.file_name());
        if name == ".toolcrib" {
            continue;
        }
        let target = to.join(&name);
        if entry.file_type()?.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
