//! Declared tools.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value as Json, json};
use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::Tool;
use toolcrib_engine::READ_SKILL;
use toolcrib_scope::database::Database;
use toolcrib_tools::sql::{DEFAULT_MAX_ROWS, SqlStatement, SqlToolError, SqlToolSpec};

use super::databases::Databases;
use crate::{
    config::{Input, SchemaProblem, ToolSection, check_schema},
    root::{MAX_TEXT, Root},
};

/// Reports names that two tools have, and the one that is taken while there are skills.
pub(crate) fn report_duplicate_tools(tools: &[ToolSection], has_skills: bool, problems: &Problems) {
    let mut places = HashMap::new();
    for name in tools.iter().filter_map(|tool| tool.name.as_ref()) {
        if let Some(first) = places.get(&name.value) {
            let message = format!("two tools are called `{}`; the first is at {first}", name.value);
            problems.push(Diagnostic::error(&name.at, message).help("rename one of them"));
        } else {
            places.insert(&name.value, &name.at);
        }
        if has_skills && name.value == READ_SKILL {
            let message = format!("`{READ_SKILL}` is the tool by which a model activates a skill");
            problems.push(Diagnostic::error(&name.at, message).help("give the tool another name"));
        }
    }
}

/// Builds all tools, and with them prepares every statement; every problem is recorded.
pub(crate) fn build_tools(
    sections: &[ToolSection],
    root: &Root,
    databases: &Databases,
    problems: &Problems,
) -> Vec<Tool> {
    sections.iter().filter_map(|section| build_tool(section, root, databases, problems)).collect()
}

fn build_tool(
    section: &ToolSection,
    root: &Root,
    databases: &Databases,
    problems: &Problems,
) -> Option<Tool> {
    if !section.is_sql {
        return None;
    }
    let schema = input_schema(&section.input, root, problems);
    let database = databases.of_tool(section.database.as_ref(), &section.at, problems)?;
    if section.statements.is_empty() {
        return None;
    }
    // With a broken schema the statements are prepared all the same.
    let spec = spec(section, schema.clone().unwrap_or_else(|| json!({ "type": "object" })));
    match spec.build(database) {
        Ok(tool) => Some(tool),
        Err(errors) => {
            for error in errors.errors {
                if let Some(problem) = problem(&error, section, schema.is_some()) {
                    problems.push(problem.help(may_be_outdated(&error, database)));
                }
            }
            None
        }
    }
}

fn spec(section: &ToolSection, input_schema: Json) -> SqlToolSpec {
    let statements = section.statements.iter().map(|statement| SqlStatement {
        sql: statement.sql.value.to_string(),
        on_empty: statement.on_empty.as_deref().map(str::to_owned),
    });
    let name = section.name.as_ref().map(|name| name.value.to_string()).unwrap_or_default();
    let description = section.description.as_deref().unwrap_or_default();
    SqlToolSpec {
        toolset: section.toolset.clone(),
        annotations: section.annotations,
        input_schema,
        max_rows: section.max_rows.unwrap_or(DEFAULT_MAX_ROWS),
        max_result_chars: section.max_result_chars,
        timeout: section.timeout,
        always_include: section.always_include.unwrap_or_default(),
        untrusted: section.untrusted.unwrap_or(true),
        origin: Some(section.at.to_string().into()),
        ..SqlToolSpec::new(name, description, statements)
    }
}

/// What is wrong, at its place. `None` for what was recorded when the section was read, and for
/// what only follows from that.
fn problem(
    error: &SqlToolError,
    section: &ToolSection,
    schema_is_sound: bool,
) -> Option<Diagnostic> {
    let at = match error {
        SqlToolError::Definition(_) => {
            let is_complete = section.name.is_some() && section.description.is_some();
            (is_complete && schema_is_sound).then(|| section.at.clone())?
        }
        SqlToolError::UnknownParameter { .. } | SqlToolError::UnusedParameter { .. }
            if !schema_is_sound =>
        {
            return None;
        }
        SqlToolError::UnusedParameter { parameter } => match &section.input {
            Input::Params(params) => params.place_of(parameter).clone(),
            Input::File(file) => file.at.clone(),
            Input::None | Input::Broken => section.at.clone(),
        },
        _ => place_in_statement(error, section),
    };
    Some(Diagnostic::error(&at, error.to_string()))
}

/// What SQLite does not know may be in the seed and not yet in a database made from an older one.
fn may_be_outdated(error: &SqlToolError, database: &Database) -> Option<String> {
    let is_unknown = error.offset().is_some();
    let is_older = database.file().is_file() && !database.was_made();
    (is_unknown && is_older).then(|| {
        format!(
            "the database {} was made earlier; if its seed has changed since, have it made anew \
             (`--fresh`)",
            database.file().display()
        )
    })
}

/// Where in the file a statement is wrong: at the very character if that can be told.
fn place_in_statement(error: &SqlToolError, section: &ToolSection) -> Spot {
    let Some(statement) = error.statement().and_then(|index| section.statements.get(index)) else {
        return section.at.clone();
    };
    let sql = &statement.sql.value;
    let offset = match error {
        SqlToolError::UnknownParameter { parameter, .. } => find_parameter(sql, parameter),
        _ => error.offset(),
    };
    match (&statement.text_start, offset.and_then(|offset| sql.get(..offset))) {
        (Some(start), Some(before)) => start.after(before),
        _ => statement.sql.at.clone(),
    }
}

/// Where `:name` stands, and not merely the beginning of a longer name.
fn find_parameter(sql: &str, name: &str) -> Option<usize> {
    let written = format!(":{name}");
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    sql.match_indices(&written)
        .map(|(offset, _)| offset)
        .find(|offset| sql.get(offset + written.len()..).is_some_and(ends))
}

/// The schema of a tool's arguments; `None` when it is not sound, which is recorded.
fn input_schema(input: &Input, root: &Root, problems: &Problems) -> Option<Json> {
    match input {
        Input::None => Some(json!({ "type": "object" })),
        Input::Params(params) => Some(params.schema.clone()),
        Input::File(file) => schema_file(file, root, problems),
        Input::Broken => None,
    }
}

fn schema_file(file: &Located<Arc<str>>, root: &Root, problems: &Problems) -> Option<Json> {
    let text = root.named_text(file, MAX_TEXT, problems)?;
    let start = Spot::start_of(Arc::clone(&file.value));
    let schema: Json = match serde_json::from_str(&text) {
        Ok(schema) => schema,
        Err(error) => {
            let (line, column) = (error.line().max(1), error.column().max(1));
            let at = Spot { line, column, ..start };
            // The place stands at its end.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            problems.push(Diagnostic::error(&at, format!("this is not JSON: {message}")));
            return None;
        }
    };
    if schema.get("type").and_then(Json::as_str) != Some("object") {
        problems.push(
            Diagnostic::error(
                &start,
                "the schema is not of an object: models pass arguments as one",
            )
            .help("write at the top level: \"type\": \"object\""),
        );
        return None;
    }
    let found = check_schema(&schema);
    let sound = found.is_empty();
    for SchemaProblem { pointer, message } in found {
        let place = if pointer.is_empty() { String::new() } else { format!("at {pointer}: ") };
        problems.push(Diagnostic::error(&start, format!("{place}{message}")));
    }
    sound.then_some(schema)
}
