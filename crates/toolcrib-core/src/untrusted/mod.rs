//! Texts and lists of tools that another party wrote.

pub(crate) mod remote_listing;
pub(crate) mod sanitize;

pub use self::{
    remote_listing::{
        DefinitionCheck, DefinitionPins, ListOrder, PinKind, PinRefusal, PinnedDefinition,
        RemoteDefinition, RemoteListing,
    },
    sanitize::{ChangeKind, ShownText, TextChange, harmless},
};
pub use crate::{
    text::{FENCE_NOTICE, fence, unfence},
    tool::TextOrigin,
};
