//! Tokens that a chat template, our fence or our truncation marker would interpret.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::{Regex, RegexBuilder};

use super::{
    candidate::Candidate,
    folded::{FoldedText, Reading, resolved},
    project,
};
use crate::tool::text_origin::TextOrigin;

/// The patterns of tokens, in folded text, for texts of one origin. The families: ChatML, Llama 3, Harmony, Kimi, Command,
/// Phi and Qwen (`<|…|>`); DeepSeek (the same, and `<|DSML|invoke …>`); Llama 2 (`[INST]`,
/// `<<SYS>>`, `<s>`); Mistral (`[TOOL_CALLS]` and similar); Gemma (`<start_of_turn>`, `<bos>`,
/// `<start_function_call>`, `<|tool_call>` to `<tool_call|>`); GLM (`[gMASK]`, `<sop>`,
/// `<arg_key>`); Hermes (`<tool_call>`); Llama 3.1 and Qwen3-Coder (`<function=NAME>`,
/// `<parameter=NAME>`); EXAONE (`[|user|]`); Nemotron (`<TOOLCALL>`); Claude (`Human:` and its
/// tags); Alpaca (`### Instruction:`). Folded text needs no classes of Unicode,
/// with which the patterns take twice the memory. Each begins and ends with ASCII, and its numbers
/// count bytes: 256 are at least 64 characters.
pub(crate) struct Tokens {
    anywhere: Regex,
    /// A role at the start of the text; every other one follows a line feed.
    at_start: Regex,
    origin: TextOrigin,
}

/// Tags that stay tokens with attributes and in a namespace.
const TAGS: &str = "(?:longcat_)?tool_calls? | toolcall | tool_response | tool_results? | tool_use
    | tool_code | tool_outputs? | (?:longcat_)?arg_(?:key|value) | available_tools
    | function_calls? | function_results? | invoke | system | assistant | human | system-reminder | think | thinking";

/// A line that begins with a role and a colon, optionally in a heading, list, quote, bold, brackets
/// or code.
const ROLE: &str = r"[\ \t>*_~`|\#\[({0-9.)+-]{0,16}
    (?:human | assistant | system | user | developer | instruction | response | input)
    [\ \t*_~`|\])}]{0,8} :";

impl Tokens {
    /// The compiled patterns; `None` if they do not compile.
    pub(crate) fn of(origin: TextOrigin) -> Option<&'static Self> {
        static FOREIGN: LazyLock<Option<Tokens>> =
            LazyLock::new(|| Tokens::compiled(&foreign(), ROLE, TextOrigin::Foreign).ok());
        static PROJECT: LazyLock<Option<Tokens>> = LazyLock::new(|| {
            Tokens::compiled(&project::pattern(), project::ROLE, TextOrigin::Project).ok()
        });
        match origin {
            TextOrigin::Foreign => FOREIGN.as_ref(),
            TextOrigin::Project => PROJECT.as_ref(),
        }
    }

    fn compiled(tokens: &str, role: &str, origin: TextOrigin) -> Result<Self, regex::Error> {
        let compiled = |pattern: &str| RegexBuilder::new(pattern).unicode(false).build();
        Ok(Self {
            anywhere: compiled(&format!(r"(?xi) {tokens} | \n{role}"))?,
            at_start: compiled(&format!(r"(?xi) \A {role}"))?,
            origin,
        })
    }

    /// Whether a text that needs no folding may contain a token.
    pub(crate) fn may_be_in(&self, text: &str) -> bool {
        self.at_start.is_match(text.as_bytes()) || self.anywhere.is_match(text.as_bytes())
    }

    /// The source ranges of the tokens in a folded text, in order.
    pub(crate) fn find_in(
        &self,
        folded: &FoldedText,
        text: &str,
        reading: Reading,
    ) -> Vec<Range<usize>> {
        let bytes = folded.text.as_bytes();
        let at_start = self.at_start.find(bytes).into_iter();
        let mut at = 0;
        let anywhere = std::iter::from_fn(|| {
            let found = self.anywhere.find_at(bytes, at)?;
            // The line feed after a tag may begin a role.
            at = found.end() - usize::from(found.as_bytes().ends_with(b"\n"));
            Some(found)
        });
        let found = at_start.chain(anywhere);
        let candidates = found.filter_map(|found| {
            let source = folded.original(&found.range())?;
            let written = resolved(text.get(source.clone())?, reading).map(|(c, ..)| c).collect();
            Some(Candidate {
                token: folded.text.get(found.range())?,
                written,
                before: folded.text.get(..found.start())?,
                after: folded.text.get(found.end()..)?,
                is_disguised: !text.get(source.clone())?.is_ascii(),
                source,
            })
        });
        let tokens: Vec<Range<usize>> = match self.origin {
            TextOrigin::Foreign => {
                let candidates = candidates.filter(|one| !one.is_role() || frames_a_turn(one));
                candidates.map(|one| one.source).collect()
            }
            TextOrigin::Project => project::real(candidates),
        };
        merged(tokens)
    }
}

/// Ranges in the order of their starts, of which those that overlap are one.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, range| {
        let overlaps = next.start < range.end;
        if overlaps {
            range.end = range.end.max(next.end);
        }
        overlaps
    });
    ranges
}

/// The patterns for texts of other parties, without roles.
fn foreign() -> String {
    format!(
        r"
              <\ ?\|[^<>|\n]{{1,256}}\|\ ?>
            | <\|[a-z_]{{1,32}}> | <[a-z_]{{1,32}}\|>
            | <\s*/*\s*\|\s*dsml\s*\|
            | <\s*/*\s*untrusted
            | <\ */?\ *(?:start_of_turn|end_of_turn|bos|eos|s|unk|pad|sop|eop|[be]os_token
                |(?:start|end)_function_(?:call|declaration|response)
                |antml:[a-z_]{{1,32}}|{TAGS})\ *>
            | <\s*/*\s*(?:[a-z][a-z0-9_.-]{{0,32}}:)?(?:{TAGS})[\s/>]
            | <\s*/*\s*antml:[a-z_]{{1,32}}
            | <\s*(?:[a-z][a-z0-9_.-]{{0,32}}:)?(?:function|parameter)(?:\s+name)?\s*=
            | <\s*/+\s*function\s*>
            | <<\ */?\ *sys\ *>>
            | \[\ */?\ *(?:inst|system_prompt|available_tools|tool_calls|tool_results|tool_content
                |tool_call_id|call_id|args|think|gmask)\ *\]
            | \[\|(?:system|user|assistant|tool|endofturn)\|\]
            | \[truncated\ (?:—|–|-{{1,2}})"
    )
}

/// Whether a role and its colon look like the start of a chat turn, rather than a field of a
/// listing.
fn frames_a_turn(role: &Candidate<'_>) -> bool {
    let Candidate { token, before, after, is_disguised, .. } = role;
    let word = token.trim_matches(|c: char| !c.is_ascii_alphabetic());
    match word {
        "human" | "assistant" => true,
        "system" | "user" | "developer" => {
            let is_apart = before.trim_end_matches([' ', '\t']).ends_with('\n');
            // A bullet does not count as decoration.
            let trimmed = token.trim_start();
            let is_decorated =
                trimmed.strip_prefix("* ").unwrap_or(trimmed).contains(['#', '*', '_', '`', '>']);
            // Letters of another script indicate disguise.
            before.is_empty() || is_apart || is_decorated || *is_disguised || is_speech(after)
        }
        _ => token.contains("##"),
    }
}

/// Whether the rest of a line, or else the next line, is a sentence: a field of a listing has fewer
/// words, or continues in an indented block.
fn is_speech(after: &str) -> bool {
    const FEWEST_WORDS: usize = 3;
    let (line, rest) = after.split_once('\n').unwrap_or((after, ""));
    let said = match line.trim().is_empty() {
        true if rest.starts_with([' ', '\t']) => return false,
        true => rest.lines().next().unwrap_or_default(),
        false => line,
    };
    let is_word = |word: &&str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '-' | '’'))
    };
    said.split_whitespace().filter(is_word).take(FEWEST_WORDS).count() == FEWEST_WORDS
}
