//! The events of a response.

use serde_json::Value;
use toolcrib_core::Usage;

use super::super::super::lenient::{
    IsSet, MaybeList, MaybeNumber, MaybeObject, MaybeText, TextOrList, TextOrObject, fields,
};

/// A chunk of a response.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) error: IsSet,
    pub(super) object: MaybeText<'a>,
    pub(super) usage: MaybeObject<Counts>,
    pub(super) choices: MaybeList<MaybeObject<Choice<'a>>>,
}

#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: MaybeNumber,
    pub(super) delta: MaybeObject<Delta<'a>>,
    /// In place of `delta`, from a server that ignores `stream`.
    pub(super) message: MaybeObject<Delta<'a>>,
    pub(super) error: Value,
    pub(super) finish_reason: MaybeText<'a>,
}

#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) content: TextOrList<'a, MaybeObject<Part<'a>>>,
    pub(super) refusal: MaybeText<'a>,
    pub(super) reasoning_content: MaybeText<'a>,
    pub(super) reasoning: MaybeText<'a>,
    pub(super) reasoning_details: MaybeList<Value>,
    pub(super) tool_calls: MaybeList<MaybeObject<CallFragment<'a>>>,
}

/// A part of the content, as Mistral sends it.
#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub(super) text: MaybeText<'a>,
    pub(super) thinking: MaybeList<MaybeObject<Thought<'a>>>,
}

#[derive(Debug, Default)]
pub(super) struct Thought<'a> {
    pub(super) text: MaybeText<'a>,
}

#[derive(Debug, Default)]
pub(super) struct CallFragment<'a> {
    pub(super) index: MaybeNumber,
    pub(super) id: MaybeText<'a>,
    pub(super) function: MaybeObject<Function<'a>>,
    pub(super) extra_content: Value,
}

#[derive(Debug, Default)]
pub(super) struct Function<'a> {
    pub(super) name: MaybeText<'a>,
    pub(super) arguments: TextOrObject<'a>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    prompt_tokens: MaybeNumber,
    completion_tokens: MaybeNumber,
    total_tokens: MaybeNumber,
    prompt_tokens_details: MaybeObject<PromptDetails>,
    prompt_cache_hit_tokens: MaybeNumber,
    cached_tokens: MaybeNumber,
}

#[derive(Debug, Default)]
struct PromptDetails {
    cached_tokens: MaybeNumber,
}

impl Counts {
    /// The usage. OpenAI counts the reasoning as output; xAI and Gemini only add it to the total.
    pub(super) fn used(&self) -> Usage {
        let count = |MaybeNumber(number): MaybeNumber| number.unwrap_or(0);
        let read = count(self.prompt_tokens);
        let details = self.prompt_tokens_details.0.as_ref();
        // OpenAI's, DeepSeek's, Moonshot's.
        let cached = details
            .and_then(|details| details.cached_tokens.0)
            .or(self.prompt_cache_hit_tokens.0)
            .or(self.cached_tokens.0);
        Usage {
            input_tokens: read,
            cached_input_tokens: cached.unwrap_or(0),
            output_tokens: count(self.completion_tokens)
                .max(count(self.total_tokens).saturating_sub(read)),
            ..Usage::default()
        }
    }
}

fields!(Chunk<'a> {
    "error" => error,
    "object" => object,
    "usage" => usage,
    "choices" => choices,
});

fields!(Choice<'a> {
    "index" => index,
    "delta" => delta,
    "message" => message,
    "error" => error,
    "finish_reason" => finish_reason,
});

fields!(Delta<'a> {
    "content" => content,
    "refusal" => refusal,
    "reasoning_content" => reasoning_content,
    "reasoning" => reasoning,
    "reasoning_details" => reasoning_details,
    "tool_calls" => tool_calls,
});

fields!(Part<'a> {
    "text" => text,
    "thinking" => thinking,
});

fields!(Thought<'a> {
    "text" => text,
});

fields!(CallFragment<'a> {
    "index" => index,
    "id" => id,
    "function" => function,
    "extra_content" => extra_content,
});

fields!(Function<'a> {
    "name" => name,
    "arguments" => arguments,
});

fields!(Counts {
    "prompt_tokens" => prompt_tokens,
    "completion_tokens" => completion_tokens,
    "total_tokens" => total_tokens,
    "prompt_tokens_details" => prompt_tokens_details,
    "prompt_cache_hit_tokens" => prompt_cache_hit_tokens,
    "cached_tokens" => cached_tokens,
});

fields!(PromptDetails {
    "cached_tokens" => cached_tokens,
});
