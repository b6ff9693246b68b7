use std::{collections::HashMap, fs};

use tinyjson::JsonValue;

use super::{Count, Counts, Machine};
use crate::{problem::Problem, workspace::Workspace};

/// Its path.
pub(super) const FILE: &str = "benches/baseline.json";

/// The counts, and their machine.
pub(super) struct Baseline {
    pub(super) machine: Machine,
    pub(super) counts: Counts,
}

type Object = HashMap<String, JsonValue>;

impl Baseline {
    pub(super) fn read(workspace: &Workspace, file: &str) -> Result<Self, Problem> {
        Self::parse(&workspace.read(file)?).ok_or_else(|| {
            Problem::new(
                format!("{file} is not in the format of `cargo xtask counts --bless`"),
                "restore it from the last commit, or write it again with that command",
            )
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let file: Object = text.parse::<JsonValue>().ok()?.try_into().ok()?;
        let machine = file.get("machine")?.get::<Object>()?.iter();
        let counts = file.get("counts")?.get::<Object>()?.iter();
        Some(Self {
            machine: Machine(
                machine
                    .map(|(name, value)| Some((name.clone(), value.get::<String>()?.clone())))
                    .collect::<Option<_>>()?,
            ),
            counts: counts
                .map(|(name, count)| {
                    let count = count.get::<Object>()?;
                    Some((
                        name.clone(),
                        Count {
                            times: whole(count, "times")?,
                            instructions: whole(count, "instructions")?,
                            allocations: whole(count, "allocations")?,
                        },
                    ))
                })
                .collect::<Option<_>>()?,
        })
    }

    pub(super) fn write(&self, workspace: &Workspace) -> Result<(), Problem> {
        let machine: Vec<String> = self
            .machine
            .0
            .iter()
            .map(|(name, value)| format!("    {}: {}", quoted(name), quoted(value)))
            .collect();
        let counts: Vec<String> = self
            .counts
            .iter()
            .map(|(name, Count { times, instructions, allocations })| {
                format!(
                    "    {}: {{ \"times\": {times}, \"instructions\": {instructions}, \
                     \"allocations\": {allocations} }}",
                    quoted(name)
                )
            })
            .collect();
        let text = format!(
            "{{\n  \"machine\": {{\n{}\n  }},\n  \"counts\": {{\n{}\n  }}\n}}\n",
            machine.join(",\n"),
            counts.join(",\n"),
        );
        fs::write(workspace.root().join(FILE), text).map_err(|error| {
            Problem::new(format!("{FILE} cannot be written: {error}"), "make it writable")
        })
    }
}

/// A field that is a whole number.
pub(super) fn whole(object: &Object, name: &str) -> Option<u64> {
    let number = *object.get(name)?.get::<f64>()?;
    // A float represents whole numbers up to here exactly; that many instructions take days.
    ((0.0..9e15).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

fn quoted(text: &str) -> String {
    // A string can always be serialized.
    JsonValue::from(text.to_owned()).stringify().unwrap_or_default()
}
