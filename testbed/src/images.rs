//! Small images of each format, which are whole.

/// A PNG, 1 × 1 pixel.
pub const PNG: &[u8] =
    b"\x89PNG\x0d\x0a\x1a\x0a\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\
    \0\0\0\x0aIDATx\x9cc`\0\0\0\x02\0\x01H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82";

/// [`PNG`] in base64.
pub const PNG_BASE64: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

/// A GIF with one frame, 3 × 2 pixels.
pub const GIF: &[u8] = b"GIF89a\x03\0\x02\0\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0\x3b";

/// A GIF with two frames, 3 × 2 pixels.
pub const ANIMATED_GIF: &[u8] = b"GIF89a\x03\0\x02\0\0\0\0\
    \x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0\x3b";

/// A JPEG, 3 × 2 pixels.
pub const JPEG: &[u8] = b"\xff\xd8\xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x01\x11\0\
    \xff\xda\0\x08\x01\x01\0\0\x3f\0\x07\xff\xd9";

/// A WebP, 5 × 2 pixels.
pub const WEBP: &[u8] = b"RIFF\x12\0\0\0WEBPVP8L\x05\0\0\0\x2f\x04\x40\0\0\0";

/// A PNG of these dimensions. Its pixels are compressed data of fewer, which only a decoder notices.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 0, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let pixels: &[u8] = &[0x78, 0x9c, 0x63, 0, 0, 0, 2, 0, 1];
    for (kind, content) in [(b"IHDR", &header[..]), (b"IDAT", pixels), (b"IEND", &[])] {
        let covered = [&kind[..], content].concat();
        png.extend(u32::try_from(content.len()).unwrap_or_default().to_be_bytes());
        png.extend(&covered);
        png.extend(crc32fast::hash(&covered).to_be_bytes());
    }
    png
}

/// The signature of a PNG before bytes that are none.
pub fn damaged_png() -> Vec<u8> {
    [&b"\x89PNG\r\n\x1a\n"[..], &[0xa5; 500]].concat()
}
