//! Texts of others in HTML.

use super::super::text::safe;
use crate::trace::Trace;

/// The room for all long texts of a page, in bytes of HTML.
const ROOM: usize = 1_200 * 1024;

/// The limit of one text, in bytes of HTML.
const LONGEST: usize = 16 * 1024;

/// A text that is neither markup nor hidden.
pub(super) fn esc(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    safe(text).chars().for_each(|c| push(&mut html, c));
    html
}

fn push(html: &mut String, c: char) {
    match c {
        '&' => html.push_str("&amp;"),
        '<' => html.push_str("&lt;"),
        '>' => html.push_str("&gt;"),
        '"' => html.push_str("&quot;"),
        '\'' => html.push_str("&#39;"),
        c => html.push(c),
    }
}

/// The room that is left for texts.
#[derive(Debug)]
pub(super) struct Budget {
    /// The limit of each text.
    share: usize,
    left: usize,
    has_cut: bool,
}

impl Budget {
    pub(super) fn of(trace: &Trace) -> Self {
        // Arguments and result of each call, and the text of each iteration.
        let texts = 2 * trace.calls().count() + trace.iterations.len() + 4;
        Self { share: (ROOM / texts).min(LONGEST), left: ROOM, has_cut: false }
    }

    pub(super) fn has_cut(&self) -> bool {
        self.has_cut
    }

    /// A text as HTML, cut to its share.
    pub(super) fn spend(&mut self, text: &str) -> String {
        let room = self.share.min(self.left);
        // An escape may become longer, never shorter: the rest is not read.
        let head = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        let mut html = String::new();
        let mut shown = 0;
        for c in safe(head).chars() {
            if html.len() > room {
                break;
            }
            push(&mut html, c);
            shown += 1;
        }
        let is_whole = head.len() == text.len() && html.len() <= room;
        if !is_whole {
            self.has_cut = true;
            let missing = text.chars().count().saturating_sub(shown);
            html.push_str(&format!("… <span class=\"soft\">({missing} more characters)</span>"));
        }
        self.left = self.left.saturating_sub(html.len());
        html
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_becomes_markup(text in "\\PC{0,80}|[<>&\"'\u{0}-\u{1f}\u{202e}a]{0,80}") {
            let html = esc(&text);
            let markup = ['<', '>', '"', '\'', '\u{202e}', '\u{1b}'];
            prop_assert!(!html.contains(markup), "{}", html);
            let mut budget = Budget { share: 40, left: 1_000, has_cut: false };
            let spent = budget.spend(&text);
            let own = "<span class=\"soft\">";
            let body = spent.split("… <span").next().unwrap_or_default();
            prop_assert!(!body.contains(['<', '>']), "{}", spent);
            prop_assert!(spent.len() <= 40 + 10 + own.len() + 50, "{}", spent);
        }
    }
}
