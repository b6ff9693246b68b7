//! Finds the id of a message that cannot be parsed.

use serde::Deserialize;
use serde_json::Value;

/// The size limit of a member that is searched for an id, in bytes.
const MAX_MEMBER: usize = 1024;

/// Finds the id of a message that is not valid JSON, or is not in memory whole: its bytes are
/// scanned as they arrive, and only the top level is read.
#[derive(Default)]
pub(crate) struct FindId {
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    /// The current member, without nested content.
    member: Vec<u8>,
    id: Option<Value>,
}

impl FindId {
    /// The id in all of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Value> {
        let mut find = Self::default();
        find.look_at(bytes);
        find.id
    }

    /// Scans the next bytes.
    pub(crate) fn look_at(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.look(byte);
        }
    }

    /// The id, if one was found.
    pub(crate) fn found(self) -> Option<Value> {
        self.id
    }

    fn look(&mut self, byte: u8) {
        if self.is_in_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_text = false,
                _ => {}
            }
            return self.keep(byte);
        }
        match byte {
            b'"' => self.is_in_text = true,
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 1 {
                    return;
                }
            }
            b'}' | b']' => {
                if self.depth <= 1 {
                    self.member_ends();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.depth == 1 => return self.member_ends(),
            _ => {}
        }
        self.keep(byte);
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.member.len() < MAX_MEMBER {
            self.member.push(byte);
        }
    }

    fn member_ends(&mut self) {
        #[derive(Deserialize)]
        struct Member {
            id: Value,
        }
        let member = std::mem::take(&mut self.member);
        let object = [b"{", member.as_slice(), b"}"].concat();
        if let Ok(Member { id }) = serde_json::from_slice(&object) {
            self.id.get_or_insert(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_found_wherever_it_stands() {
        for message in [
            r#"{"id":7,"params":"#,
            r#"{"params":{"id":8,"a":[{"id":9}]},"id":7}"#,
            r#"{"params":{"a":"}\"{,"}, "id" : 7 ,"method"#,
            r#"{"a":"\ud800","b":1e999,"c":nonsense,"id":7}"#,
            r#"  {"i":"id","id":7}"#,
        ] {
            for at in 0..message.len() {
                let mut find = FindId::default();
                let (first, rest) = message.as_bytes().split_at(at);
                find.look_at(first);
                find.look_at(rest);
                assert_eq!(find.found(), Some(json!(7)), "{message}");
            }
        }
        for message in ["", "id", "not json", r#"{"id":7"#, r#"{"params":{"id":7}}"#, r#"}"id":7}"#]
        {
            assert_eq!(FindId::of(message.as_bytes()), None, "{message}");
        }
    }
}
