//! Whether the file of an image is whole, part by part. Each function returns whether the image is
//! animated, or what is wrong. Bytes after the end of an image are permitted: cameras append other
//! images there, and decoders ignore them.

const ENDS_EARLY: &str = "it ends too early";
const NO_PIXELS: &str = "it contains no pixels";

/// The results of these functions.
type Found = Result<bool, &'static str>;

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ENDS_EARLY)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        let (first, rest) = self.0.split_first().ok_or(ENDS_EARLY)?;
        self.0 = rest;
        Ok(*first)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(ENDS_EARLY)?;
        self.0 = rest;
        Ok(*taken)
    }
}

/// A length of a format, in memory. One that is too large for it is beyond every end.
fn length(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The chunks of a PNG: a header, pixels, an end. As decoders do, checks the checksums of the chunks
/// that are critical, which have a capital letter first.
pub(crate) fn png(data: &[u8]) -> Found {
    let mut rest = Bytes(data);
    rest.take(8)?;
    let (mut is_first, mut has_pixels, mut is_animated) = (true, false, false);
    loop {
        let size = length(u32::from_be_bytes(rest.array()?));
        let chunk = rest.take(size.saturating_add(4))?;
        let checksum = u32::from_be_bytes(rest.array()?);
        let (kind, content) = chunk.split_at_checked(4).ok_or(ENDS_EARLY)?;
        if is_first && (kind != b"IHDR" || content.len() != 13) {
            return Err("its header is missing");
        }
        is_first = false;
        let is_critical = kind.first().is_some_and(u8::is_ascii_uppercase);
        if is_critical && crc32fast::hash(chunk) != checksum {
            return Err("a checksum does not match");
        }
        match kind {
            b"IDAT" => has_pixels |= !content.is_empty(),
            b"acTL" => is_animated = true,
            b"IEND" if has_pixels => return Ok(is_animated),
            b"IEND" => return Err(NO_PIXELS),
            _ => {}
        }
    }
}

/// The segments of a JPEG: a frame with the dimensions, at least one scan, an end.
pub(crate) fn jpeg(data: &[u8]) -> Found {
    let mut rest = Bytes(data);
    rest.take(2)?;
    let (mut has_frame, mut has_scan) = (false, false);
    loop {
        // Within a scan the byte FF is followed by 00, or by a marker for restarts.
        let marker = match rest.byte()? {
            0xff => rest.byte()?,
            _ if has_scan => continue,
            _ => return Err("a segment has a wrong length"),
        };
        match marker {
            0xff => rest.0 = data.get(data.len() - rest.0.len() - 1..).unwrap_or_default(),
            0x00 | 0xd0..=0xd7 if has_scan => {}
            0xd9 if has_scan => return Ok(false),
            0xd9 => return Err(NO_PIXELS),
            _ => {
                let size = usize::from(u16::from_be_bytes(rest.array()?));
                rest.take(size.checked_sub(2).ok_or("a segment has a wrong length")?)?;
                match marker {
                    0xc4 | 0xc8 | 0xcc => {}
                    0xc0..=0xcf => has_frame = true,
                    0xda if !has_frame => return Err("its dimensions are missing"),
                    0xda => has_scan = true,
                    _ => {}
                }
            }
        }
    }
}

/// The blocks of a GIF: extensions and frames, and an end.
pub(crate) fn gif(data: &[u8]) -> Found {
    let mut rest = Bytes(data);
    rest.take(10)?;
    let [flags, ..] = rest.array::<3>()?;
    colors(&mut rest, flags)?;
    let mut frames = 0_usize;
    loop {
        match rest.byte()? {
            0x21 => {
                rest.byte()?;
                sub_blocks(&mut rest)?;
            }
            0x2c => {
                rest.take(8)?;
                let flags = rest.byte()?;
                colors(&mut rest, flags)?;
                rest.byte()?;
                sub_blocks(&mut rest)?;
                frames += 1;
            }
            0x3b if frames == 0 => return Err(NO_PIXELS),
            0x3b => return Ok(frames > 1),
            _ => return Err("a block is of an unknown kind"),
        }
    }
}

/// A table of colors, if the flags say that there is one.
fn colors(rest: &mut Bytes<'_>, flags: u8) -> Result<(), &'static str> {
    if flags & 0x80 != 0 {
        rest.take(3 << ((flags & 7) + 1))?;
    }
    Ok(())
}

fn sub_blocks(rest: &mut Bytes<'_>) -> Result<(), &'static str> {
    loop {
        match rest.byte()? {
            0 => return Ok(()),
            size => drop(rest.take(usize::from(size))?),
        }
    }
}

/// The chunks of a WebP, within the size that its header states.
pub(crate) fn webp(data: &[u8]) -> Found {
    let mut rest = Bytes(data);
    rest.take(4)?;
    let size = length(u32::from_le_bytes(rest.array()?));
    let mut rest = Bytes(rest.take(size)?);
    rest.take(4)?;
    let (mut has_pixels, mut is_animated) = (false, false);
    while !rest.0.is_empty() {
        let kind = rest.array::<4>()?;
        let size = length(u32::from_le_bytes(rest.array()?));
        let content = rest.take(size)?;
        // Each chunk has an even length. The padding of the last one may be missing.
        if size % 2 == 1 && !rest.0.is_empty() {
            rest.byte()?;
        }
        match &kind {
            b"VP8 " | b"VP8L" | b"ANMF" => has_pixels |= !content.is_empty(),
            b"ANIM" => is_animated = true,
            _ => {}
        }
    }
    if has_pixels { Ok(is_animated) } else { Err(NO_PIXELS) }
}
