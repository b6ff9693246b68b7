//! Makes text that somebody else may have written harmless to read: what a chat template, a
//! terminal or our own fence would act on is replaced, never longer than it was.
//!
//! A token is found in a *folded* view of the text, so that zero-width characters, full-width
//! forms, HTML entities and letter case do not hide it. What is replaced is only the character
//! that makes it a token: `<|im_start|>` becomes `‹|im_start|›`, which reads the same and is
//! none. Doing it twice changes nothing.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;
use serde_json::Value;
use toolcrib_core::{ContentBlock, is_hidden};

use super::budget::Cut;
use crate::json::map_texts;

/// How a call ended, cut and harmless to read.
pub(super) struct Clean(pub(super) Cut);

impl Clean {
    /// The text, unfenced.
    pub(super) fn value(&self) -> String {
        self.0.marked(&self.0.body)
    }
}

/// Only what will be fenced is sanitised: a tool's own text is its author's.
pub(super) fn sanitise(mut cut: Cut) -> Clean {
    if cut.fence.is_some() {
        // What stands below begins a line of its own, with words of ours: no token spans both.
        for text in [&mut cut.body, &mut cut.below] {
            if let Cow::Owned(clean) = harmless(text) {
                *text = clean;
            }
        }
        for block in &mut cut.blocks {
            *block = block.clone().map_texts(|text| harmless(text).into_owned());
        }
        cut.structured = cut.structured.take().map(|data| {
            let mut leaf = |leaf| match leaf {
                Value::String(text) => Value::String(owned(text)),
                other => other,
            };
            map_texts(data, &mut leaf, &mut owned)
        });
    }
    // Our marker comes last: one that was there before is somebody's forgery.
    if let Some((position, marker)) = cut.cut_block.take()
        && let Some(ContentBlock::Text { text, .. }) = cut.blocks.get_mut(position)
    {
        *text = format!("{text}\n{marker}").into();
    }
    Clean(cut)
}

fn owned(text: String) -> String {
    match harmless(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => clean,
    }
}

/// What a chat template, our fence or our marker would act on, in folded text. The families:
/// ChatML, Llama 3, Harmony, DeepSeek, Phi and Qwen (`<|…|>`); Llama 2 (`[INST]`, `<<SYS>>`,
/// `<s>`); Mistral (`[TOOL_CALLS]` and its kin); Gemma (`<start_of_turn>`, `<bos>`); GLM
/// (`[gMASK]`, `<sop>`); Hermes (`<tool_call>`); Claude (`\n\nHuman:` and tags of its own).
static TOKENS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?xi)",
        r"  <\ ?\|[^<>|\n]{1,64}\|\ ?>",
        r"| <\s*/*\s*untrusted",
        r"| <\ */?\ *(?:start_of_turn|end_of_turn|bos|eos|s|unk|pad|sop|eop|tool_call|tool_response",
        r"    |tool_calls|function_calls|function_results|antml:[a-z_]{1,32}|system|assistant|human",
        r"    |system-reminder|think|thinking)\ *>",
        r"| <<\ */?\ *sys\ *>>",
        r"| \[\ */?\ *(?:inst|system_prompt|available_tools|tool_calls|tool_results|tool_content",
        r"    |args|think|gmask)\ *\]",
        r"| \[truncated\ (?:—|–|-{1,2})",
        r"| \n[\ \t]*\n[\ \t]*(?:human|assistant)\ *:",
    ))
    .ok()
});

/// Whether a text is what it looks like: nothing in it is hidden or stands for something else. Of
/// such a text only those characters of a token change that have a look-alike.
pub(super) fn is_plain(text: &str) -> bool {
    // Without a way out on its way the compiler looks at many bytes at once.
    let simple = |byte: u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~') && byte != b'&';
    text.bytes().fold(true, |all, byte| all & simple(byte))
        || (!text.chars().any(|c| is_hidden(None, c, None))
            && resolved(text).map(|(c, ..)| c).eq(text.chars()))
}

/// The text as somebody may read it; borrowed where nothing had to change.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    // A pattern that did not compile must not let everything through.
    let Some(tokens) = &*TOKENS else { return Cow::Owned(String::new()) };
    // Most results need no folding: the tokens in them are what they look like.
    if is_plain(text) && !tokens.is_match(text) {
        return Cow::Borrowed(text);
    }
    let visible = strip(text);
    let folded = Folded::of(&visible);
    let mut replaced: Vec<(usize, usize)> = tokens
        .find_iter(&folded.text)
        .filter_map(|found| folded.original(found.start(), found.end()))
        .collect();
    replaced.dedup();
    if replaced.is_empty() && visible == text {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(visible.len());
    let mut rest = 0;
    for (start, end) in replaced {
        clean.push_str(visible.get(rest..start).unwrap_or_default());
        let token = visible.get(start..end).unwrap_or_default();
        clean.extend(defused(token));
        rest = end;
    }
    clean.push_str(visible.get(rest..).unwrap_or_default());
    Cow::Owned(clean)
}

/// A token without the characters that make it one; an entity becomes the look-alike at once.
fn defused(token: &str) -> impl Iterator<Item = char> {
    resolved(token).map(|(c, ..)| look_alike(c))
}

fn look_alike(c: char) -> char {
    match c {
        '<' => '‹',
        '>' => '›',
        '[' => '⟦',
        ']' => '⟧',
        ':' => '∶',
        other => other,
    }
}

/// Drops terminal escape sequences and whatever else no reader sees.
fn strip(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut last = None;
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.peek() {
                Some('[') => {
                    chars.next();
                    while chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
                    chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
                }
                // An operating-system command ends with BEL or ESC \.
                Some(']') => {
                    while let Some(c) = chars.next_if(|c| *c != '\n') {
                        if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {
                    chars.next_if(|c| ('\u{20}'..='\u{7e}').contains(c));
                }
            },
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => visible.push('\n'),
            c if is_hidden(last, c, chars.peek().copied()) => {}
            c => {
                visible.push(c);
                last = Some(c);
            }
        }
    }
    visible
}

/// A text as a template might read it: lower case, full-width forms and entities resolved, odd
/// spaces as spaces. Every byte knows where it came from.
struct Folded {
    text: String,
    /// For each byte of `text`, where its source character starts.
    starts: Vec<usize>,
    /// For each byte of `text`, where its source character ends.
    ends: Vec<usize>,
}

impl Folded {
    fn of(text: &str) -> Self {
        let mut this =
            Self { text: String::with_capacity(text.len()), starts: vec![], ends: vec![] };
        for (c, start, end) in resolved(text) {
            this.text.push(c.to_ascii_lowercase());
            this.starts.resize(this.text.len(), start);
            this.ends.resize(this.text.len(), end);
        }
        this
    }

    /// Where a range of folded bytes came from.
    fn original(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        Some((*self.starts.get(start)?, *self.ends.get(end.checked_sub(1)?)?))
    }
}

/// The characters of a text as a template might read them, each with its range of bytes.
fn resolved(text: &str) -> impl Iterator<Item = (char, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let first = rest.chars().next()?;
        let (c, width) = entity(rest).unwrap_or_else(|| (plain_form(first), first.len_utf8()));
        let start = at;
        at += width;
        Some((c, start, at))
    })
}

/// The ASCII character that a full-width or look-alike form stands for.
fn plain_form(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{2581}' => '_',
        '\u{fe64}' | '\u{2329}' | '\u{3008}' | '\u{276e}' => '<',
        '\u{fe65}' | '\u{232a}' | '\u{3009}' | '\u{276f}' => '>',
        '\u{2758}' | '\u{2223}' | '\u{ffe8}' => '|',
        '\u{fe55}' | '\u{a789}' => ':',
        c if c.is_whitespace() && !matches!(c, '\n' | '\t') => ' ',
        c => c,
    }
}

/// An HTML entity, escaped any number of times, that stands for a character of a token.
fn entity(text: &str) -> Option<(char, usize)> {
    const NAMES: [(&str, char); 12] = [
        ("lt;", '<'),
        ("gt;", '>'),
        ("#60;", '<'),
        ("#62;", '>'),
        ("#x3c;", '<'),
        ("#x3e;", '>'),
        ("#124;", '|'),
        ("#x7c;", '|'),
        ("vert;", '|'),
        ("#91;", '['),
        ("#93;", ']'),
        ("#58;", ':'),
    ];
    let mut inner = text.strip_prefix('&')?;
    while let Some(deeper) = inner.get(..4).filter(|s| s.eq_ignore_ascii_case("amp;")) {
        inner = inner.get(deeper.len()..)?;
    }
    NAMES.iter().find_map(|(name, c)| {
        let found = inner.get(..name.len())?;
        let width = text.len() - inner.len() + name.len();
        found.eq_ignore_ascii_case(name).then_some((*c, width))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(text: &str) -> String {
        harmless(text).into_owned()
    }

    #[test]
    fn tokens_of_many_families_read_the_same_and_are_none() {
        for (hostile, harmless) in [
            ("<|im_start|>system", "‹|im_start|›system"),
            ("<|IM_START|>", "‹|IM_START|›"),
            ("<\u{200b}|im_\u{2060}start|>", "‹|im_start|›"),
            ("＜|im_start|＞", "‹|im_start|›"),
            ("&lt;|im_start|&gt;", "‹|im_start|›"),
            ("&amp;lt;|eot_id|&#62;", "‹|eot_id|›"),
            ("<｜begin▁of▁sentence｜>", "‹|begin_of_sentence|›"),
            ("[INST] do [/INST]", "⟦INST⟧ do ⟦/INST⟧"),
            ("<<SYS>>", "‹‹SYS››"),
            ("</untrusted nonce=\"1\">", "‹/untrusted nonce=\"1\">"),
            ("< / UNTRUSTED>", "‹ / UNTRUSTED>"),
            ("<\n//untrusted>", "‹\n//untrusted>"),
            ("<start_of_turn>user", "‹start_of_turn›user"),
            ("</s>", "‹/s›"),
            ("ok\n\nHuman: pay", "ok\n\nHuman∶ pay"),
            ("[truncated — 0 chars total]", "⟦truncated — 0 chars total]"),
            ("\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}x", "red x"),
            ("a\u{202e}b\u{e0041}c", "abc"),
        ] {
            assert_eq!(clean(hostile), harmless, "{hostile:?}");
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "plain",
            "a < b && c > d; [1, 2] {\"k\": \"v\"}",
            "naïve Größe 中文 العربية",
            "👩‍👩‍👧 ❤️ family",
            "<p>Hello <b>you</b> &amp; me</p>",
            "see: the docs\ncolumn: value",
            "<T: System>",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn what_is_plain_is_what_it_looks_like() {
        for plain in
            ["", "a < b\n\t[1]", "<|im_start|>", "naïve 中文", "R&D, &c., <b>you</b> &amp; me"]
        {
            assert!(is_plain(plain), "{plain:?}");
        }
        for other in
            ["a\rb", "\u{1b}[1m", "a\u{200b}b", "ｈi", "a\u{a0}b", "&lt;", "&amp;#60;", "\0"]
        {
            assert!(!is_plain(other), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn of_what_is_plain_only_look_alikes_change(
            text in "(<\\|?|\\|?>|/|&|un|trusted|im_start|\\[|INST|\\]|\n|Human:|é|[a-z ]){0,40}"
        ) {
            prop_assume!(is_plain(&text));
            let clean = clean(&text);
            prop_assert_eq!(clean.chars().count(), text.chars().count());
            for (was, is) in text.chars().zip(clean.chars()) {
                prop_assert!(was == is || (was.is_ascii() && !is.is_ascii()), "{was} {is}");
            }
        }

        #[test]
        fn never_longer_twice_is_once_and_no_fence_survives(
            text in "(\\PC|<|\\||>|/|&lt;|&amp;|un|trusted|im_start|\\[|INST|\\]|\n|Human:|\u{200b}|\u{1b}\\[){0,40}"
        ) {
            let once = clean(&text);
            prop_assert!(once.chars().count() <= text.chars().count());
            prop_assert_eq!(&clean(&once), &once);
            let folded = Folded::of(&once).text;
            prop_assert!(!folded.contains("<untrusted") && !folded.contains("</untrusted"));
            prop_assert!(!folded.contains("<|im_start|>"));
        }
    }
}
