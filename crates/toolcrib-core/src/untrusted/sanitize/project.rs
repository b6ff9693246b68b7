//! Tokens in files and programs of a project: the exact delimiters of templates. Code has types in
//! angle brackets, indexes in brackets, and keys with a colon, so neither case nor spaces nor
//! attributes are variable here, and a role counts only where turns are framed.

use std::ops::Range;

use super::candidate::Candidate;

/// Tags that templates or vocabularies have exactly so, in lower case.
const TAGS: &str = "start_of_turn | end_of_turn | bos | eos | sop | eop
    | (?:start|end)_function_(?:call|declaration|response)
    | (?:longcat_)?tool_calls? | tool_response | tool_results? | tool_use | tool_code | tool_outputs?
    | (?:longcat_)?arg_(?:key|value) | available_tools | function_calls? | function_results?
    | system-reminder | toolcall";

/// A line that begins with a role and a colon, optionally as a heading.
pub(crate) const ROLE: &str = r"(?:\#\#\#\ )?
    (?:human | assistant | system | user | instruction | response | input) :";

/// The patterns in folded text, without roles. `<s>` is also HTML, and `[ARGS]` a placeholder: they
/// count beside another token.
pub(crate) fn pattern() -> String {
    format!(
        r"
              <\|/?[a-z0-9_][a-z0-9_.:/-]{{1,62}}\|>
            | <\|(?:turn|tool|tool_call|tool_response|channel)>
            | <(?:turn|tool|tool_call|tool_response|channel)\|>
            | </?\|dsml\|
            | <\s*/+\s*untrusted
            | <\s*untrusted\s+(?:tool|nonce)\s*=
            | </?(?:{TAGS})>
            | </?antml:[a-z_]{{1,32}}
            | <invoke\s+name\s*=
            | <(?:function|parameter)=[a-z_]
            | <</?sys>>
            | (?:</?s>\s{{0,8}}){{1,2}}\[inst\]
            | \[/inst\]\s{{0,8}}</s>
            | \[tool_calls\][^\[\]\n]{{0,128}}(?:\[call_id\][^\[\]\n]{{1,64}})?\[args\]
            | \[call_id\][^\[\]\n]{{1,64}}\[args\]
            | \[/?(?:inst|system_prompt|available_tools|tool_calls|tool_results|tool_content|think
                |gmask)\]
            | \[\|(?:system|user|assistant|tool|endofturn)\|\]
            | \[truncated\ (?:—|–|-{{1,2}})\ ?[0-9]"
    )
}

/// The candidates that are tokens.
pub(crate) fn real<'a>(candidates: impl Iterator<Item = Candidate<'a>>) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut roles: Vec<(Range<usize>, Speaker)> = Vec::new();
    for one in candidates {
        match one.is_role() {
            true => roles.extend(Speaker::of(&one).map(|speaker| (one.source, speaker))),
            false if has_exact_case(&one) => tokens.push(one.source),
            false => {}
        }
    }
    let speaks = |style: Style, side: Side| {
        roles.iter().any(|(_, speaker)| speaker.style == style && speaker.side == side)
    };
    let framed = [Style::Heading, Style::Upper, Style::Title]
        .map(|style| (style, speaks(style, Side::User) && speaks(style, Side::Assistant)));
    let is_framed = |speaker: &Speaker| {
        speaker.is_alone || framed.iter().any(|(style, both)| *both && *style == speaker.style)
    };
    let roles = roles.iter().filter(|(_, speaker)| is_framed(speaker));
    tokens.extend(roles.map(|(source, _)| source.clone()));
    tokens
}

/// Whether a token is written in its template's case. Letters of other scripts have any case.
fn has_exact_case(candidate: &Candidate<'_>) -> bool {
    let Candidate { token, written, .. } = candidate;
    let is_upper = |text: &str| !text.contains(|c: char| c.is_ascii_lowercase());
    let is_lower = |text: &str| !text.contains(|c: char| c.is_ascii_uppercase());
    let word = token.trim_start_matches(['<', '/']);
    if token.contains('|') || word.trim_start().starts_with("untrusted") {
        return true;
    }
    if token.starts_with("[truncated") {
        return true;
    }
    if token.contains("gmask") {
        return written.contains("gMASK") || candidate.is_disguised;
    }
    if word.starts_with("sys>>") || word.starts_with("toolcall") {
        return is_upper(written);
    }
    match token.contains('[') {
        // Each word in brackets.
        true => {
            written.split('[').skip(1).all(|rest| is_upper(rest.split(']').next().unwrap_or(rest)))
        }
        false => is_lower(written),
    }
}

/// A role at the beginning of a line.
struct Speaker {
    style: Style,
    side: Side,
    /// Whether it frames a turn without others: Claude's roles after an empty line.
    is_alone: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `### Instruction:`.
    Heading,
    /// `USER:`.
    Upper,
    /// `Human:`.
    Title,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Assistant,
    Other,
}

impl Speaker {
    /// `None` for a key: in lower case, or with an indented block below.
    fn of(role: &Candidate<'_>) -> Option<Self> {
        let is_heading = role.token.contains('#');
        let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
        let written = letters(&role.written);
        let style = if is_heading {
            Style::Heading
        } else if !written.contains(|c: char| c.is_ascii_lowercase()) {
            Style::Upper
        } else if !written.starts_with(|c: char| c.is_ascii_lowercase())
            && !written.chars().skip(1).any(|c| c.is_ascii_uppercase())
        {
            Style::Title
        } else {
            return None;
        };
        let (line, rest) = role.after.split_once('\n').unwrap_or((role.after, ""));
        if !is_heading && line.trim().is_empty() && rest.starts_with([' ', '\t']) {
            return None;
        }
        let word = letters(role.token);
        let side = match &*word {
            "human" | "user" | "instruction" => Side::User,
            "assistant" | "response" => Side::Assistant,
            _ => Side::Other,
        };
        let is_apart = role.before.trim_end_matches([' ', '\t']).ends_with('\n');
        let is_claude = matches!(&*word, "human" | "assistant") && style == Style::Title;
        Some(Self { style, side, is_alone: is_claude && is_apart })
    }
}
