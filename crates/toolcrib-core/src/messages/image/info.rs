//! The description of an image, read from its bytes.

use std::fmt;

use imagesize::{Compression, ImageType};

use super::{signature::image_type, whole};

/// The description of an image, read from its bytes: PNG, JPEG, GIF or WebP.
///
/// ```
/// use toolcrib_core::{ImageInfo, InvalidImageError};
///
/// let error = ImageInfo::read(b"\x89PNG\r\n\x1a\nand more").unwrap_err();
/// assert_eq!(error.to_string(), "it is a damaged PNG image: it ends too early");
/// assert_eq!(ImageInfo::read(b"Hello"), Err(InvalidImageError::NotAnImage));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageInfo {
    /// The media type by its bytes, such as `image/png`, whatever type was declared.
    pub media_type: &'static str,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// Whether it has several frames.
    pub is_animated: bool,
}

/// The reason why bytes cannot be shown as an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidImageError {
    /// They are not an image of a known format.
    #[error("it is not an image")]
    NotAnImage,
    /// They are an image of a format that no request can contain.
    #[error(
        "it is an image in the format {format}, which is not sent to models; convert it to PNG or \
         JPEG"
    )]
    Format {
        /// The name of the format.
        format: &'static str,
    },
    /// A part is missing or wrong.
    #[error("it is a damaged {format} image: {problem}")]
    Damaged {
        /// The name of the format.
        format: &'static str,
        /// The reason.
        problem: &'static str,
    },
}

impl ImageInfo {
    /// Reads the description, and checks that the image is whole: that each of its parts has its
    /// length, its checksum if the format has one, and that the last one is there. No pixel is
    /// decoded, so damage within compressed data is not found, and an image of any dimensions costs
    /// no more than its bytes.
    ///
    /// # Errors
    /// [`InvalidImageError`] with the reason.
    pub fn read(data: &[u8]) -> Result<Self, InvalidImageError> {
        let Some(media_type) = image_type(data) else { return Err(of_other(data)) };
        let (format, read) = match media_type {
            "image/png" => ("PNG", whole::png(data)),
            "image/jpeg" => ("JPEG", whole::jpeg(data)),
            "image/gif" => ("GIF", whole::gif(data)),
            _ => ("WebP", whole::webp(data)),
        };
        let damaged = |problem| InvalidImageError::Damaged { format, problem };
        let is_animated = read.map_err(damaged)?;
        let size = imagesize::blob_size(data).map_err(|_| damaged("its dimensions are missing"))?;
        let side = |pixels: usize| u32::try_from(pixels).ok().filter(|pixels| *pixels > 0);
        let sides = side(size.width).zip(side(size.height));
        let (width, height) = sides.ok_or_else(|| damaged("its width or height is zero"))?;
        Ok(Self { media_type, width, height, is_animated })
    }
}

impl fmt::Display for ImageInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} × {} pixels", self.media_type, self.width, self.height)
    }
}

/// The error for bytes without the signature of a format that can be sent.
fn of_other(data: &[u8]) -> InvalidImageError {
    let format = match imagesize::image_type(data) {
        Ok(ImageType::Bmp) => "BMP",
        Ok(ImageType::Tiff) => "TIFF",
        Ok(ImageType::Ico) => "ICO",
        Ok(ImageType::Jxl) => "JPEG XL",
        Ok(ImageType::Heif(Compression::Av1)) => "AVIF",
        Ok(ImageType::Heif(Compression::Hevc)) => "HEIC",
        Ok(ImageType::Heif(_)) => "HEIF",
        _ => return InvalidImageError::NotAnImage,
    };
    InvalidImageError::Format { format }
}
