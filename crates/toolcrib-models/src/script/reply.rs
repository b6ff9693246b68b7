//! The answer of a matching rule.

use serde_json::Value;
use toolcrib_config::suggest;
use toolcrib_core::{Arguments, Message, ModelResponse, ToolCall, Usage};

use super::{
    rule::{Arg, Call, CallArguments, Rule},
    rule_input::RuleInput,
    template::Scope,
};

/// Builds the answer, or describes the problem of the rule.
pub(super) fn reply(
    rule: &Rule,
    scope: &Scope<'_>,
    input: &RuleInput<'_>,
) -> Result<ModelResponse, String> {
    let in_rule = |problem: String| format!("{rule}: {problem}");
    let text = match &rule.text {
        Some(template) => scope.text(template).map_err(in_rule)?,
        None => String::new(),
    };
    let mut calls = Vec::with_capacity(rule.calls.len());
    for call in &rule.calls {
        check_offered(call, input).map_err(in_rule)?;
        let id = format!("call_{}", input.calls + calls.len() + 1);
        let arguments = arguments(&call.arguments, scope).map_err(in_rule)?;
        calls.push(ToolCall { id: id.into(), name: call.tool.as_str().into(), arguments });
    }
    let usage = usage(rule, input, &text, &calls);
    Ok(ModelResponse { text, calls, usage, ..ModelResponse::default() })
}

fn check_offered(call: &Call, input: &RuleInput<'_>) -> Result<(), String> {
    if call.even_if_not_offered || input.is_offered(&call.tool) {
        return Ok(());
    }
    let offered = input.offered();
    let near = suggest::nearest(&call.tool, offered.iter().copied())
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    let offered = if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") };
    Err(format!(
        "it calls `{}`, which is not offered; offered: {offered}{near} \
         (to call it all the same, set `even_if_not_offered = true`)",
        call.tool.escape_debug()
    ))
}

fn arguments(arguments: &CallArguments, scope: &Scope<'_>) -> Result<Arguments, String> {
    match arguments {
        CallArguments::Args(args) => Ok(Arguments::Json(value(args, scope)?)),
        CallArguments::Raw(template) => Ok(Arguments::Text(scope.text(template)?)),
    }
}

fn value(arg: &Arg, scope: &Scope<'_>) -> Result<Value, String> {
    match arg {
        Arg::Constant(constant) => Ok(constant.clone()),
        Arg::Template(template) => scope.value(template),
        Arg::List(items) => items.iter().map(|item| value(item, scope)).collect(),
        Arg::Table(entries) => {
            entries.iter().map(|(key, entry)| Ok((key.clone(), value(entry, scope)?))).collect()
        }
    }
}

/// The stated usage of the rule; missing token counts are estimated as a quarter of the characters,
/// so that sums over a run grow as with a real model.
fn usage(rule: &Rule, input: &RuleInput<'_>, text: &str, calls: &[ToolCall]) -> Usage {
    let stated = &rule.usage;
    Usage {
        input_tokens: stated.input_tokens.unwrap_or_else(|| input_tokens(input)),
        cached_input_tokens: stated.cached_input_tokens.unwrap_or(0),
        cache_write_tokens: stated.cache_write_tokens.unwrap_or(0),
        output_tokens: stated
            .output_tokens
            .unwrap_or_else(|| tokens(chars(text) + calls.iter().map(call_chars).sum::<usize>())),
        cost_usd: Some(stated.cost_usd.unwrap_or(0.0)),
    }
}

fn input_tokens(input: &RuleInput<'_>) -> u64 {
    let request = input.request;
    let messages = request.messages.iter().map(|message| match message {
        Message::User { text, .. } | Message::Tool { text, .. } => chars(text),
        Message::Assistant { text, calls, .. } => {
            chars(text) + calls.iter().map(call_chars).sum::<usize>()
        }
        _ => 0,
    });
    tokens(chars(&request.system) + chars(request.menu.rendering()) + messages.sum::<usize>())
}

fn call_chars(call: &ToolCall) -> usize {
    let arguments = match &call.arguments {
        Arguments::Text(text) => chars(text),
        Arguments::Json(value) => chars(&value.to_string()),
    };
    chars(&call.name) + arguments
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn tokens(chars: usize) -> u64 {
    u64::try_from(chars.div_ceil(4)).unwrap_or(u64::MAX)
}

/// Splits a text into a few pieces of similar size; each but the last ends with whitespace.
pub(super) fn pieces(text: &str) -> Vec<String> {
    const PIECES: usize = 4;
    let enough = text.len().div_ceil(PIECES);
    let mut pieces = Vec::with_capacity(PIECES);
    let mut piece = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        piece.push_str(word);
        if piece.len() >= enough {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_break_between_words_and_make_up_the_text() {
        let text = "Refunded  25.00 €\nfor order 1042, charge 17.\n";
        let found = pieces(text);
        assert_eq!(found.concat(), text);
        assert_eq!(found, ["Refunded  25.00 ", "€\nfor order ", "1042, charge ", "17.\n"]);
        assert_eq!(pieces("word"), ["word"]);
        assert!(pieces("").is_empty());
    }
}
