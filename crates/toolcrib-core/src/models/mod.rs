//! The port of a model, its requests and its responses, and its price.

pub(crate) mod model;
pub(crate) mod price;

pub use futures_util::stream::Stream;

pub use self::{
    model::{
        Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse, ModelStream,
        StopReason, ToolChoice,
    },
    price::{Price, PricedModel},
};
pub use crate::messages::{
    ImageInfo, ImageLimits, ImageNotice, ImageRefusal, ImageSupport, InvalidImageError,
    JudgedImages, Message, SentPart, SentParts, Usage, VendorContent,
};
