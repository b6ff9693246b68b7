//! Messages, their content, and what they cost.

pub(crate) mod block;
pub(crate) mod fitted_name;
pub(crate) mod image;
pub(crate) mod message;
pub(crate) mod sent_parts;
pub(crate) mod usage_entry;

pub use self::{
    block::{BlockFields, ContentBlock},
    image::{
        ImageInfo, ImageLimits, ImageNotice, ImageRefusal, ImageSupport, InvalidImageError,
        JudgedImages,
    },
    message::{Arguments, CALL_TOOL, Message, SEARCH_TOOLS, ToolCall, Usage, VendorContent},
    sent_parts::{SentPart, SentParts},
    usage_entry::{UsageEntry, UsageSource},
};
