//! The arguments of `check-server`.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};

#[derive(Debug, Args)]
pub(crate) struct CheckServerArgs {
    /// The server's URL, or its program with its arguments
    #[arg(value_name = "URL|PROGRAM", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
    /// Send this header, such as `Authorization=Bearer ${TOKEN}`, or set this variable of the
    /// program. May be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Fail on warnings too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Disable a lint rule. May be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// The limit of tokens of all definitions together [default: 10000]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_tokens: Option<usize>,
    /// Call this tool and judge its result, such as `list_orders={"limit": 10}`. May be repeated; other
    /// tools are not called
    #[arg(long, value_name = "TOOL[=JSON]", value_parser = call)]
    pub(crate) call: Vec<AuthorsCall>,
    /// The limit of tokens of a result of `--call`
    #[arg(long, value_name = "TOKENS", default_value_t = 10_000)]
    pub(crate) max_result_tokens: usize,
    /// The time from the start to the list of tools from which on a start is slow
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = humantime::parse_duration)]
    pub(crate) slow_start: Duration,
    /// The limit for connecting, for each listing, and for each call
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::run::timeout)]
    pub(crate) timeout: Duration,
}

/// One call, as the author writes it.
#[derive(Debug, Clone)]
pub(crate) struct AuthorsCall {
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
}

fn call(text: &str) -> Result<AuthorsCall, String> {
    let (tool, arguments) = match text.split_once('=') {
        Some((tool, json)) => match serde_json::from_str(json) {
            Ok(Value::Object(arguments)) => (tool, arguments),
            Ok(_) => return Err("the arguments must be a JSON object".to_owned()),
            Err(error) => return Err(format!("the arguments are not valid JSON: {error}")),
        },
        None => (text, Map::new()),
    };
    Ok(AuthorsCall { tool: tool.to_owned(), arguments })
}
