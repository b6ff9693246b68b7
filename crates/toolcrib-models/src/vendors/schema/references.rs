//! What references refer to.

use serde_json::Value;

/// How much of a schema may be read through references, in bytes; what is above it is left out.
/// Definitions that refer to each other twice each grow without measure else.
pub(super) const MAX_REFERRED_BYTES: usize = 256 * 1024;

/// Follows the references of one schema.
pub(super) struct References<'a> {
    root: &'a Value,
    /// Those that are being followed.
    within: Vec<&'a str>,
    /// How much more may be read, in bytes.
    left: usize,
}

/// What a reference refers to.
pub(super) enum Referred<'a> {
    /// A schema to be read now; [`References::leave`] is to be called behind it.
    New(&'a Value),
    /// A schema that is being read already.
    Again(&'a Value),
    /// Nothing within the schema, or more than may be read.
    Nothing,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, within: vec!["#"], left: MAX_REFERRED_BYTES }
    }

    pub(super) fn enter(&mut self, reference: &'a str) -> Referred<'a> {
        let root = self.root;
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        match target.filter(|target| self.affords(target)) {
            None => Referred::Nothing,
            Some(target) if self.within.contains(&reference) => Referred::Again(target),
            Some(target) => {
                self.within.push(reference);
                Referred::New(target)
            }
        }
    }

    pub(super) fn leave(&mut self) {
        self.within.pop();
    }

    /// Whether as much as that may still be read. Once it may not, nothing more is measured.
    fn affords(&mut self, target: &Value) -> bool {
        if self.left == 0 {
            return false;
        }
        let left = self.left.checked_sub(target.to_string().len());
        self.left = left.unwrap_or_default();
        left.is_some()
    }
}
