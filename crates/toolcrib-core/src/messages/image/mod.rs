//! Images that models may see: their formats, whether they are whole, and the limits of vendors.
//!
//! ```text
//! info       format and dimensions, if it is whole
//! signature  first bytes          -> the media type
//! whole      the parts of a file  -> whether it is whole; no pixel is decoded
//! limits     what a model accepts, and the images of a conversation that it is not shown
//! notice     what the user reads about an image
//! ```

mod info;
mod limits;
mod notice;
mod signature;
mod whole;

pub use self::{
    info::{ImageInfo, InvalidImageError},
    limits::{ImageLimits, ImageRefusal, ImageSupport, JudgedImages},
    notice::ImageNotice,
    signature::image_type,
};

#[cfg(test)]
mod tests;
