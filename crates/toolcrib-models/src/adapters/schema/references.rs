//! Resolves references.

use serde_json::Value;

/// Maximum number of bytes that may be read through references; the rest is omitted. Without it,
/// definitions that refer to each other twice each would grow exponentially.
pub(super) const MAX_REFERRED_BYTES: usize = 256 * 1024;

/// Follows the references of one schema.
pub(super) struct References<'a> {
    root: &'a Value,
    /// The references that are being followed.
    within: Vec<&'a str>,
    /// Remaining bytes.
    left: usize,
}

/// The target of a reference.
pub(super) enum ReferenceTarget<'a> {
    /// A schema to be read now; call [`References::leave`] after it.
    New(&'a Value),
    /// A schema that is already being read.
    Again(&'a Value),
    /// No target within the schema, or the limit is exceeded.
    Nothing,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, within: vec!["#"], left: MAX_REFERRED_BYTES }
    }

    pub(super) fn enter(&mut self, reference: &'a str) -> ReferenceTarget<'a> {
        let root = self.root;
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        match target.filter(|target| self.affords(target)) {
            None => ReferenceTarget::Nothing,
            Some(target) if self.within.contains(&reference) => ReferenceTarget::Again(target),
            Some(target) => {
                self.within.push(reference);
                ReferenceTarget::New(target)
            }
        }
    }

    pub(super) fn leave(&mut self) {
        self.within.pop();
    }

    /// Whether the target is within the remaining bytes. Once one is not, no further one is
    /// measured.
    fn affords(&mut self, target: &Value) -> bool {
        if self.left == 0 {
            return false;
        }
        let left = self.left.checked_sub(target.to_string().len());
        self.left = left.unwrap_or_default();
        left.is_some()
    }
}
