//! Counts the attributes of a tag while it is fed to the parser in pieces.

/// A place in a tag, as the standard's tokenizer has it.
#[derive(Clone, Copy, Default)]
enum Place {
    /// In no tag.
    #[default]
    Text,
    /// After `<` or `</`.
    Start,
    TagName,
    /// Before an attribute.
    Between,
    Name,
    /// After `=`.
    Equals,
    Unquoted,
    Quoted(u8),
}

/// Counts at least the attributes that the tokenizer finds. In a script or a comment it may count
/// words that are none.
#[derive(Default)]
pub(super) struct Attributes {
    place: Place,
    count: usize,
}

impl Attributes {
    /// Reads on. Returns the most attributes of a tag in this piece so far.
    pub(super) fn feed(&mut self, piece: &str) -> usize {
        let mut most = self.count;
        for byte in piece.bytes() {
            self.place = self.next(byte);
            most = most.max(self.count);
        }
        most
    }

    fn next(&mut self, byte: u8) -> Place {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
        match self.place {
            Place::Text if byte == b'<' => Place::Start,
            Place::Text => Place::Text,
            Place::Start if byte == b'<' || byte == b'/' => Place::Start,
            Place::Start if byte.is_ascii_alphabetic() => {
                self.count = 0;
                Place::TagName
            }
            Place::Start => Place::Text,
            Place::Quoted(quote) if byte == quote => Place::Between,
            Place::Quoted(quote) => Place::Quoted(quote),
            _ if byte == b'>' => Place::Text,
            Place::Unquoted if is_space => Place::Between,
            Place::Unquoted => Place::Unquoted,
            Place::Equals if is_space => Place::Equals,
            Place::Equals if matches!(byte, b'"' | b'\'') => Place::Quoted(byte),
            Place::Equals => Place::Unquoted,
            _ if is_space || byte == b'/' => Place::Between,
            Place::Name if byte == b'=' => Place::Equals,
            Place::TagName => Place::TagName,
            // `=` too: a value after a space counts as further attributes.
            Place::Between => {
                self.count = self.count.saturating_add(1);
                Place::Name
            }
            Place::Name => Place::Name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(pieces: &[&str]) -> usize {
        let mut tag = Attributes::default();
        pieces.iter().map(|piece| tag.feed(piece)).max().unwrap_or(0)
    }

    #[test]
    fn no_fewer_attributes_are_counted_than_there_are() {
        for (text, expected) in [
            ("<p a b=1 c='x y' d=\"<q e f>\" g>", 5),
            ("<p/a/b/>", 2),
            ("<p a=b/c/d e>", 2),
            ("</p a b>", 2),
            ("<<p a>", 1),
            ("<p =a \"b 'c>", 3),
            ("<p a= 'x y' b>", 2),
            ("<p\ta\nb\rc\x0cd>", 4),
            ("a < b c d", 0),
            ("<!-- a b c", 0),
            ("<p a='b'c'd'>", 2),
            ("<p=x y>", 1),
        ] {
            assert_eq!(counted(&[text]), expected, "{text}");
        }
        assert_eq!(counted(&["<p a='", "<b c ", "<d e'", " f>", "<q g>"]), 2);
        // A space before `=` counts the value's words.
        assert_eq!(counted(&["<p a = 'x y'>"]), 4);
    }
}
