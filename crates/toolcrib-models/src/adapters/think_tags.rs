//! Reasoning that a model writes into its text, between tags.
//!
//! A server that does not know a model's format sends it as text. It is reasoning only at the beginning
//! of an answer: later, a tag may be part of the answer, such as code. Templates of some models
//! (DeepSeek R1, Qwen3 Thinking) end with the opening tag, so that the answer contains only the closing
//! one; it is known when the answer is complete.

use std::mem;

/// The names of the tags. `think` is that of DeepSeek, Qwen and most open models, `thought` that of
/// Gemini's compatible endpoint; prompts and fine-tuned models use the others.
const TAGS: [&str; 4] = ["think", "thinking", "reasoning", "thought"];

/// The blanks before an opening tag, in bytes, at most.
const MOST_BLANKS: usize = 1_024;

/// Separates reasoning from an answer's text while it arrives.
#[derive(Debug, Default)]
pub(super) struct ThinkTags {
    state: State,
    /// Text that may be the beginning of a tag.
    held: String,
    found: bool,
    is_on: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the answer.
    Before,
    /// After an opening tag with this name.
    Inside(&'static str),
    /// The answer has begun.
    #[default]
    Over,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reasoning(String),
}

impl ThinkTags {
    pub(super) fn new(is_on: bool) -> Self {
        let state = if is_on { State::Before } else { State::Over };
        Self { state, is_on, ..Self::default() }
    }

    /// Whether all further text is the answer's.
    pub(super) fn are_over(&self) -> bool {
        self.state == State::Over
    }

    /// Whether reasoning was separated from the text.
    pub(super) fn found(&self) -> bool {
        self.found
    }

    /// Adds text; returns what it is known to be.
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        self.held.push_str(text);
        self.sort(false)
    }

    /// Returns the rest. An opening tag that is not closed makes all of the text reasoning.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        let rest = self.sort(true);
        self.state = State::Over;
        rest
    }

    fn sort(&mut self, is_end: bool) -> Vec<Piece> {
        let held = mem::take(&mut self.held);
        let mut rest = held.as_str();
        let mut pieces = Vec::new();
        loop {
            match self.state {
                State::Over => return pieces,
                State::Before => {
                    let begun = rest.trim_start();
                    if let Some((tag, behind)) = TAGS.iter().find_map(|tag| opening(begun, tag)) {
                        self.state = State::Inside(tag);
                        self.found = true;
                        rest = behind;
                        continue;
                    }
                    let is_open = TAGS.iter().any(|tag| is_beginning(begun, &["<", tag, ">"]));
                    if is_open && !is_end && rest.len() - begun.len() <= MOST_BLANKS {
                        rest.clone_into(&mut self.held);
                        return pieces;
                    }
                    // The blanks after reasoning belong to neither.
                    let text = if self.found { begun } else { rest };
                    if !text.is_empty() {
                        pieces.push(Piece::Text(text.to_owned()));
                        self.state = State::Over;
                    }
                    return pieces;
                }
                State::Inside(tag) => {
                    let tags = || rest.match_indices('<').map(|(at, _)| rest.split_at(at));
                    let closed = tags().find_map(|(thought, from)| {
                        closing(from, tag).map(|(_, behind)| (thought, behind))
                    });
                    let may_close = |from: &str| is_beginning(from, &["</", tag, ">"]);
                    let (thought, behind) = closed
                        .or_else(|| tags().find(|(_, from)| !is_end && may_close(from)))
                        .unwrap_or((rest, ""));
                    if !thought.is_empty() {
                        pieces.push(Piece::Reasoning(thought.to_owned()));
                    }
                    if closed.is_none() {
                        behind.clone_into(&mut self.held);
                        return pieces;
                    }
                    rest = behind;
                    self.state = State::Before;
                }
            }
        }
    }

    /// The position at which the answer begins in a complete text whose reasoning has only a closing
    /// tag. The tag ends or begins a line, or a JSON value follows it; it is not in code, and no
    /// opening tag precedes it.
    pub(super) fn end_of_untagged(&mut self, text: &str) -> Option<usize> {
        if !self.is_on || self.found {
            return None;
        }
        let tags = text.match_indices('<').map(|(at, _)| text.split_at(at));
        let (before, from) = tags.into_iter().find(|(_, from)| {
            TAGS.iter().any(|tag| opening(from, tag).is_some() || closing(from, tag).is_some())
        })?;
        let (_, behind) = TAGS.iter().find_map(|tag| closing(from, tag))?;
        let is_blank = |c: char| c.is_whitespace() && c != '\n';
        let next = behind.trim_start_matches(is_blank).chars().next();
        let ends = next.is_none_or(|next| matches!(next, '\n' | '{' | '['));
        let line = before.rsplit('\n').next().unwrap_or_default();
        let begins = line.trim().is_empty();
        let is_code = before.matches("```").count() % 2 == 1 || line.matches('`').count() % 2 == 1;
        self.found = (begins || ends) && !is_code;
        self.found.then(|| text.len() - behind.trim_start().len())
    }
}

/// The text after an opening tag.
fn opening<'t>(text: &'t str, tag: &'static str) -> Option<(&'static str, &'t str)> {
    Some((tag, without(without(without(text, "<")?, tag)?, ">")?))
}

/// The text after a closing tag.
fn closing<'t>(text: &'t str, tag: &'static str) -> Option<(&'static str, &'t str)> {
    Some((tag, without(without(without(text, "</")?, tag)?, ">")?))
}

fn without<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (begin, rest) = text.split_at_checked(prefix.len())?;
    begin.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Whether a text is the beginning of a tag of these parts, or empty.
fn is_beginning(text: &str, parts: &[&str]) -> bool {
    let mut tag = parts.iter().flat_map(|part| part.bytes());
    text.bytes().all(|byte| tag.next().is_some_and(|next| next.eq_ignore_ascii_case(&byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The reasoning and the text of an answer that arrives in these pieces.
    fn read<'p>(pieces: impl IntoIterator<Item = &'p str>) -> (String, String) {
        let mut tags = ThinkTags::new(true);
        let (mut reasoning, mut text) = (String::new(), String::new());
        let mut take = |pieces: Vec<Piece>| {
            for piece in pieces {
                match piece {
                    Piece::Text(piece) => text.push_str(&piece),
                    Piece::Reasoning(piece) => reasoning.push_str(&piece),
                }
            }
        };
        for piece in pieces {
            match tags.are_over() {
                true => take(vec![Piece::Text(piece.to_owned())]),
                false => take(tags.push(piece)),
            }
        }
        take(tags.finish());
        if let Some(begin) = tags.end_of_untagged(&text) {
            reasoning.push_str(&text[..begin]);
            text.drain(..begin);
        }
        (reasoning, text)
    }

    #[test]
    fn reasoning_at_the_beginning_is_separated_wherever_the_text_is_cut() {
        // (text, reasoning, answer)
        let cases = [
            ("<think>hm</think>\n\n{\"x\":1}", "hm", "{\"x\":1}"),
            ("\n<Thinking>a < b</thinking>c", "a < b", "c"),
            ("<reasoning>a</think></reasoning>c", "a</think>", "c"),
            ("<thought>größer 👀</thought>c", "größer 👀", "c"),
            ("<think></think>c", "", "c"),
            ("<think>a</think>\n<think>b</think>\n c", "ab", "c"),
            ("<think>never closed </thin", "never closed </thin", ""),
            ("<think>a</think>", "a", ""),
            ("<think>a</think> <think> is a tag", "a is a tag", ""),
            ("<think>a</think>Write <think>b</think>.", "a", "Write <think>b</think>."),
            ("Use <think>a</think>.", "", "Use <think>a</think>."),
            ("`<think>`\n</think>\n", "", "`<think>`\n</think>\n"),
            ("<thinker>a</thinker>", "", "<thinker>a</thinker>"),
            ("<think", "", "<think"),
            (" \n Hi", "", " \n Hi"),
            ("hm\n</think>\n\nc", "hm\n</think>\n\n", "c"),
            ("hm</think>\nc", "hm</think>\n", "c"),
            ("hm</think>{\"x\":1}", "hm</think>", "{\"x\":1}"),
            ("</think>c", "</think>", "c"),
            ("The tag `</think>`\nends it.", "", "The tag `</think>`\nends it."),
            ("```\nhm\n</think>\n```", "", "```\nhm\n</think>\n```"),
            ("Models end with </think> tags.", "", "Models end with </think> tags."),
        ];
        for (text, reasoning, answer) in cases {
            let expected = (reasoning.to_owned(), answer.to_owned());
            let chars: Vec<_> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            for size in 1..chars.len() {
                let cuts: Vec<_> =
                    chars.iter().copied().step_by(size).chain([text.len()]).collect();
                let pieces = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
                assert_eq!(read(pieces), expected, "{text:?} by {size}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_character_is_lost(pieces in proptest::collection::vec(
            "(<|/|think|>|</think>|<think>|`|a|\n| |é){0,6}", 0..8
        )) {
            let text = pieces.concat();
            let (reasoning, answer) = read(pieces.iter().map(String::as_str));
            prop_assert!(text.ends_with(&answer), "{:?}", (text, reasoning, answer));
            let plain = |text: &str| {
                let text = text.replace("<think>", "").replace("</think>", "");
                text.split_whitespace().collect::<String>()
            };
            prop_assert_eq!(plain(&format!("{reasoning}{answer}")), plain(&text));
        }
    }
}
