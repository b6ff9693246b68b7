//! Attached files as arguments of a program.
//!
//! A parameter with the format `attachment` has the id of a file that the user attached. The program
//! receives the path of a copy, which its sandbox may read, and which is removed after the run.

use std::io;

use serde_json::Value;
use tokio::task::spawn_blocking;
use toolcrib_capabilities::process::PassedFiles;
use toolcrib_core::{Attachment, ToolContext, ToolError};

use crate::arguments::{present, refused};

/// The `format` of such parameters.
const FORMAT: &str = "attachment";

/// The parameters with the format.
pub(super) fn parameters(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_one = |schema: &Value| schema.get("format").is_some_and(|format| format == FORMAT);
    properties
        .into_iter()
        .flatten()
        .filter(|(_, schema)| is_one(schema))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Replaces ids by paths of copies, which are removed when they are dropped. `None` if the call has no
/// id.
pub(super) async fn copies(
    parameters: &[String],
    args: &mut Value,
    cx: &ToolContext,
) -> Result<Option<PassedFiles>, ToolError> {
    let mut named = Vec::new();
    for parameter in parameters {
        let Some(id) = present(args, parameter) else { continue };
        let id = id.as_str().ok_or_else(|| refused(parameter, "is not the id of an attachment"))?;
        named.push((parameter, cx.attachments()?.open(id)?.clone()));
    }
    if named.is_empty() {
        return Ok(None);
    }
    let attachments: Vec<_> = named.iter().map(|(_, attachment)| attachment.clone()).collect();
    let writing = spawn_blocking(move || -> io::Result<_> {
        let copies = PassedFiles::new()?;
        let add = |one: &Attachment| copies.add(&file_name(one), one.data());
        let paths = attachments.iter().map(add).collect::<Result<Vec<_>, _>>()?;
        Ok((copies, paths))
    });
    let written = writing.await.map_err(io::Error::other).flatten();
    let (copies, paths) = written.map_err(|error| {
        ToolError::failed("the attachment could not be passed to the program").caused_by(error)
    })?;
    for ((parameter, _), path) in named.into_iter().zip(paths) {
        if let Some(value) = args.get_mut(parameter) {
            *value = path.to_string_lossy().into();
        }
    }
    Ok(Some(copies))
}

/// The id and the name: two attachments may have the same name, and a name may begin with `-`.
fn file_name(attachment: &Attachment) -> String {
    format!("{}-{}", attachment.id(), attachment.name())
}
