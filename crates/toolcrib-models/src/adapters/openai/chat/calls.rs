//! Calls come in fragments. OpenAI numbers them and sends id and name once, in the first. Others
//! send no number, number all of them 0, send no id, or send id and name in each.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::{
    super::super::{answer::Answer, lenient::TextOrObject, repeats::PartialCall},
    events::CallFragment,
};

/// The calls begun, in order. The response identifies each by its position.
#[derive(Default)]
pub(super) struct Calls(Vec<CallKey>);

struct CallKey {
    /// The server's number for it, if any.
    number: Option<u64>,
    /// The first id received.
    id: String,
}

struct Fragment<'a> {
    number: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: Cow<'a, str>,
}

impl<'a> Fragment<'a> {
    fn of(fragment: &'a CallFragment<'_>) -> Self {
        let function = fragment.function.0.as_ref();
        Self {
            number: fragment.index.0,
            id: fragment.id.text(),
            name: function.map_or("", |function| function.name.text()),
            arguments: match function.map(|function| &function.arguments) {
                Some(TextOrObject::Object(object)) => object.to_string().into(),
                Some(TextOrObject::Text(text)) => Cow::Borrowed(text),
                _ => Cow::Borrowed(""),
            },
        }
    }

    fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.is_empty()
    }
}

impl Calls {
    /// Adds a fragment; returns the position of its call.
    pub(super) fn add(
        &mut self,
        fragment: &CallFragment<'_>,
        answer: &mut Answer,
    ) -> Option<usize> {
        let fragment = Fragment::of(fragment);
        let position = match self.candidate(&fragment) {
            Some(position) if self.goes_on(position, &fragment, answer) => position,
            None if fragment.is_empty() => return None,
            Some(position) if fragment.name.is_empty() => self.repeat(position, answer),
            _ => self.begin(&fragment, answer),
        };
        let call = answer.call(number(position))?;
        if call.id.is_empty() {
            fragment.id.clone_into(&mut call.id);
            if let Some(begun) = self.0.get_mut(position) {
                fragment.id.clone_into(&mut begun.id);
            }
        }
        // A repeated name is not a continuation of it.
        if call.name != fragment.name {
            call.name.push_str(fragment.name);
        }
        call.arguments.push_str(&fragment.arguments);
        Some(position)
    }

    /// The call that a fragment may belong to: by its id, otherwise by its number, otherwise the
    /// last.
    fn candidate(&self, fragment: &Fragment<'_>) -> Option<usize> {
        let last = |is: &dyn Fn(&CallKey) -> bool| self.0.iter().rposition(is);
        let of_id = last(&|begun| {
            !fragment.id.is_empty()
                && begun.id == fragment.id
                && (fragment.number.is_none() || begun.number == fragment.number)
        });
        let of_number = || match fragment.number {
            Some(_) => last(&|begun| begun.number == fragment.number),
            None => last(&|_| true),
        };
        let of_no_name = || last(&|_| fragment.id.is_empty() && fragment.name.is_empty());
        of_id.or_else(of_number).or_else(of_no_name)
    }

    /// Whether a fragment continues that call, rather than beginning another.
    fn goes_on(&self, position: usize, fragment: &Fragment<'_>, answer: &mut Answer) -> bool {
        let (Some(begun), Some(call)) = (self.0.get(position), answer.call(number(position)))
        else {
            return false;
        };
        // Only a first fragment has a name. Some servers make up a new id for each fragment.
        if fragment.name.is_empty() {
            let may_repeat = fragment.arguments.trim_start().starts_with('{')
                && call.arguments.trim_end().ends_with('}');
            return !(may_repeat && is_object(&call.arguments));
        }
        let same_id = !fragment.id.is_empty() && begun.id == fragment.id;
        if !same_id && !fragment.id.is_empty() && !begun.id.is_empty() {
            return false;
        }
        let same_name = call.name == fragment.name;
        if call.name.is_empty() {
            return true;
        }
        // Complete arguments cannot continue.
        let arguments = fragment.arguments.trim_start();
        let goes_on =
            if arguments.is_empty() { same_id || same_name } else { !arguments.starts_with('{') };
        if !goes_on && (call.arguments == fragment.arguments || is_object(&call.arguments)) {
            return false;
        }
        // A name in pieces, if the server distinguishes its calls.
        same_name || same_id || fragment.number.is_some()
    }

    /// Begins a call again that is complete, and whose arguments come once more.
    fn repeat(&mut self, position: usize, answer: &mut Answer) -> usize {
        let name = answer.call(number(position)).map(|call| call.name.clone());
        let begun = self.0.get(position);
        let (number, id) = begun.map(|begun| (begun.number, begun.id.clone())).unwrap_or_default();
        let (name, arguments) = (name.unwrap_or_default(), Cow::Borrowed(""));
        let again = Fragment { number, id: &id, name: &name, arguments };
        let position = self.begin(&again, answer);
        if let Some(call) = answer.call(self::number(position)) {
            (call.id, call.name) = (id, name);
        }
        position
    }

    fn begin(&mut self, fragment: &Fragment<'_>, answer: &mut Answer) -> usize {
        let position = self.0.len();
        self.0.push(CallKey { number: fragment.number, id: fragment.id.to_owned() });
        answer.begin_call(PartialCall {
            index: number(position),
            number: fragment.number,
            ..PartialCall::default()
        });
        position
    }
}

fn number(position: usize) -> u64 {
    u64::try_from(position).unwrap_or(u64::MAX)
}

/// Maximum size of arguments that are searched for their end, in bytes: the search runs at each fragment
/// that may begin another call.
const LONGEST_LOOKED_AT: usize = 64 * 1024;

/// Whether a text is a complete JSON object.
fn is_object(text: &str) -> bool {
    text.len() <= LONGEST_LOOKED_AT
        && text.trim_start().starts_with('{')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
