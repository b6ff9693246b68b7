//! What a chat template, our fence or our marker would act on.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::folded::Folded;

/// The patterns of tokens, in folded text. The families:
/// ChatML, Llama 3, Harmony, DeepSeek, Phi and Qwen (`<|…|>`); Llama 2 (`[INST]`, `<<SYS>>`,
/// `<s>`); Mistral (`[TOOL_CALLS]` and its kin); Gemma (`<start_of_turn>`, `<bos>`); GLM
/// (`[gMASK]`, `<sop>`); Hermes (`<tool_call>`); Claude (`Human:` and tags of its own); Alpaca
/// (`### Instruction:`).
pub(super) struct Tokens {
    anywhere: Regex,
    /// A role at the very beginning; every other one follows a line feed.
    at_start: Regex,
}

/// Tags that stay tokens with attributes and in a namespace.
const TAGS: &str = "tool_calls? | tool_response | tool_results? | tool_use | function_calls?
    | function_results? | invoke | system | assistant | human | system-reminder | think | thinking";

/// A line that begins with a role and a colon, perhaps as a heading, quoted or in bold.
const ROLE: &str = r"[\ \t>*_\#]{0,16}
    (?:human | assistant | system | user | developer | instruction | response | input)
    [\ \t*_]{0,8} :";

impl Tokens {
    /// The patterns; nothing if they do not compile.
    pub(super) fn get() -> Option<&'static Self> {
        static TOKENS: LazyLock<Option<Tokens>> = LazyLock::new(|| Tokens::compiled().ok());
        TOKENS.as_ref()
    }

    fn compiled() -> Result<Self, regex::Error> {
        let anywhere = format!(
            r"(?xi)
              <\ ?\|[^<>|\n]{{1,64}}\|\ ?>
            | <\s*/*\s*untrusted
            | <\ */?\ *(?:start_of_turn|end_of_turn|bos|eos|s|unk|pad|sop|eop
                |antml:[a-z_]{{1,32}}|{TAGS})\ *>
            | <\s*/*\s*(?:[a-z][a-z0-9_.-]{{0,32}}:)?(?:{TAGS})[\s/>]
            | <\s*/*\s*(?:antml:[a-z_]{{1,32}}|parameter\s+name\s*=)
            | <<\ */?\ *sys\ *>>
            | \[\ */?\ *(?:inst|system_prompt|available_tools|tool_calls|tool_results|tool_content
                |args|think|gmask)\ *\]
            | \[truncated\ (?:—|–|-{{1,2}})
            | \n{ROLE}"
        );
        Ok(Self {
            anywhere: Regex::new(&anywhere)?,
            at_start: Regex::new(&format!(r"(?xi) \A {ROLE}"))?,
        })
    }

    /// Whether a text that needs no folding may contain a token.
    pub(super) fn may_be_in(&self, text: &str) -> bool {
        self.at_start.is_match(text) || self.anywhere.is_match(text)
    }

    /// Where tokens are in a text that was folded, in order.
    pub(super) fn find_in<'a>(
        &'a self,
        folded: &'a Folded,
        text: &'a str,
    ) -> impl Iterator<Item = Range<usize>> + 'a {
        let at_start = self.at_start.find(&folded.text).into_iter();
        at_start.chain(self.anywhere.find_iter(&folded.text)).filter_map(move |found| {
            let original = folded.original(&found.range())?;
            let written = text.get(original.clone())?;
            let is_role = found.as_str().ends_with(':') && !found.as_str().starts_with('<');
            let before = folded.text.get(..found.start())?;
            (!is_role || frames_a_turn(found.as_str(), written, before)).then_some(original)
        })
    }
}

/// Whether a role and its colon look like the frame of a turn, and not like a field of a listing.
fn frames_a_turn(role: &str, written: &str, before: &str) -> bool {
    let word = role.trim_matches(|c: char| !c.is_ascii_alphabetic());
    match word {
        "human" | "assistant" => true,
        "system" | "user" | "developer" => {
            // Whoever takes letters of another script means to be overlooked.
            let is_apart = before.trim_end_matches([' ', '\t']).ends_with('\n');
            before.is_empty() || is_apart || role.contains(['#', '*']) || !written.is_ascii()
        }
        _ => role.contains("##"),
    }
}
