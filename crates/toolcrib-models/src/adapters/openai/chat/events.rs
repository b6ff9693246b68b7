//! The events of a response.

use serde::de::MapAccess;
use serde_json::Value;
use toolcrib_core::Usage;

use super::super::super::lenient::{
    FieldValue, Fields, IsSet, MaybeList, MaybeNumber, MaybeObject, MaybeText, TextOrList,
    TextOrObject,
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

impl<'de: 'a, 'a> Fields<'de> for Chunk<'a> {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        match field {
            "error" => self.error = value.read()?,
            "object" => self.object = value.read()?,
            "usage" => self.usage = value.read()?,
            "choices" => self.choices = value.read()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fields<'de> for Choice<'a> {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        match field {
            "index" => self.index = value.read()?,
            "delta" => self.delta = value.read()?,
            "message" => self.message = value.read()?,
            "error" => self.error = value.read()?,
            "finish_reason" => self.finish_reason = value.read()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fields<'de> for Delta<'a> {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        match field {
            "content" => self.content = value.read()?,
            "refusal" => self.refusal = value.read()?,
            "reasoning_content" => self.reasoning_content = value.read()?,
            "reasoning" => self.reasoning = value.read()?,
            "reasoning_details" => self.reasoning_details = value.read()?,
            "tool_calls" => self.tool_calls = value.read()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fields<'de> for Part<'a> {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        match field {
            "text" => self.text = value.read()?,
            "thinking" => self.thinking = value.read()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fields<'de> for Thought<'a> {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        if field == "text" {
            self.text = value.read()?;
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fields<'de> for CallFragment<'a> {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        match field {
            "index" => self.index = value.read()?,
            "id" => self.id = value.read()?,
            "function" => self.function = value.read()?,
            "extra_content" => self.extra_content = value.read()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fields<'de> for Function<'a> {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        match field {
            "name" => self.name = value.read()?,
            "arguments" => self.arguments = value.read()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'de> Fields<'de> for Counts {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        match field {
            "prompt_tokens" => self.prompt_tokens = value.read()?,
            "completion_tokens" => self.completion_tokens = value.read()?,
            "total_tokens" => self.total_tokens = value.read()?,
            "prompt_tokens_details" => self.prompt_tokens_details = value.read()?,
            "prompt_cache_hit_tokens" => self.prompt_cache_hit_tokens = value.read()?,
            "cached_tokens" => self.cached_tokens = value.read()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'de> Fields<'de> for PromptDetails {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        if field == "cached_tokens" {
            self.cached_tokens = value.read()?;
        }
        Ok(())
    }
}
