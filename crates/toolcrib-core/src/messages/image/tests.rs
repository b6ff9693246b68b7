use std::sync::Arc;

use proptest::prelude::{any, prop_assert, proptest};

use super::*;
use crate::messages::{block::ContentBlock, message::Message};

fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut chunk = u32::try_from(content.len()).unwrap().to_be_bytes().to_vec();
    let covered = [kind, content].concat();
    chunk.extend(&covered);
    chunk.extend(crc32fast::hash(&covered).to_be_bytes());
    chunk
}

/// A PNG of these dimensions, whose pixels are not those of its dimensions.
fn png(width: u32, height: u32) -> Vec<u8> {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let header = chunk(b"IHDR", &[&sides[..], &[8, 0, 0, 0, 0]].concat());
    let pixels = chunk(b"IDAT", &[0x78, 0x9c, 0x63, 0, 0, 0, 2, 0, 1]);
    [&b"\x89PNG\r\n\x1a\n"[..], &header, &pixels, &chunk(b"IEND", &[])].concat()
}

fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let sides = [height.to_be_bytes(), width.to_be_bytes()].concat();
    let frame = [&[0xff, 0xc0, 0, 11, 8][..], &sides, &[1, 1, 0x11, 0]].concat();
    // A comment that contains the marker of an end, and a scan with an escaped FF and a restart.
    let comment = [0xff, 0xfe, 0, 4, 0xff, 0xd9];
    let scan = [0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 7, 0xff, 0, 9, 0xff, 0xd0, 1];
    [&[0xff, 0xd8][..], &comment, &frame, &scan, &[0xff, 0xd9]].concat()
}

fn gif(frames: usize) -> Vec<u8> {
    let frame = [0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x4c, 1, 0];
    let comment = [0x21, 0xfe, 1, b'!', 0];
    let colors = [0; 6];
    let header = [&b"GIF89a"[..], &[3, 0, 2, 0, 0x80, 0, 0], &colors, &comment].concat();
    [&header[..], &frame.repeat(frames), &[0x3b]].concat()
}

fn webp(kind: &[u8; 4]) -> Vec<u8> {
    let pixels = match kind {
        b"VP8L" => vec![0x2f, 4, 0x40, 0, 0],
        _ => vec![0, 0, 0, 0x9d, 1, 0x2a, 5, 0, 2, 0],
    };
    let mut content = b"WEBP".to_vec();
    content.extend(kind);
    content.extend(u32::try_from(pixels.len()).unwrap().to_le_bytes());
    content.extend(&pixels);
    let size = u32::try_from(content.len()).unwrap().to_le_bytes();
    [&b"RIFF"[..], &size, &content].concat()
}

fn samples() -> [Vec<u8>; 6] {
    [png(3, 2), jpeg(3, 2), gif(1), gif(2), webp(b"VP8 "), webp(b"VP8L")]
}

fn read(data: &[u8]) -> String {
    match ImageInfo::read(data) {
        Ok(info) => format!("{info}{}", if info.is_animated { ", animated" } else { "" }),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_formats_and_dimensions_are_read() {
    let read: Vec<_> = samples().iter().map(|sample| read(sample)).collect();
    let expected = [
        "image/png, 3 × 2 pixels",
        "image/jpeg, 3 × 2 pixels",
        "image/gif, 3 × 2 pixels",
        "image/gif, 3 × 2 pixels, animated",
        "image/webp, 5 × 2 pixels",
        "image/webp, 5 × 2 pixels",
    ];
    assert_eq!(read, expected);
}

#[test]
fn an_image_that_is_cut_anywhere_is_damaged() {
    for sample in samples() {
        for end in 0..sample.len() {
            assert!(ImageInfo::read(&sample[..end]).is_err(), "{end} of {sample:?}");
        }
    }
}

#[test]
fn bytes_after_the_end_change_nothing() {
    for sample in samples() {
        let longer = [&sample[..], b"PK\x03\x04 another file"].concat();
        assert_eq!(ImageInfo::read(&longer), ImageInfo::read(&sample));
    }
}

#[test]
fn what_is_wrong_with_an_image_is_said() {
    let mut flipped = png(3, 2);
    let pixel = flipped.len() - 20;
    flipped[pixel] ^= 1;
    let no_pixels = [&png(3, 2)[..33], &chunk(b"IEND", &[])].concat();
    let random = [&b"\x89PNG\r\n\x1a\n"[..], &[0, 0, 0, 9], &[7; 500]].concat();
    for (data, expected) in [
        (&flipped[..], "it is a damaged PNG image: a checksum does not match"),
        (&no_pixels, "it is a damaged PNG image: it contains no pixels"),
        (&random, "it is a damaged PNG image: its header is missing"),
        (&png(0, 2), "it is a damaged PNG image: its width or height is zero"),
        (&jpeg(3, 0), "it is a damaged JPEG image: its width or height is zero"),
        (&gif(0), "it is a damaged GIF image: it contains no pixels"),
        (b"GIF89a is a format of 1989, and this is a text.", "a damaged GIF image"),
        (b"\xff\xd8\xff\xd9", "it is a damaged JPEG image: it contains no pixels"),
        (b"II*\0\x08\0\0\0\0\0\0\0", "it is an image in the format TIFF, which is not sent"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "it is an image in the format HEIC"),
        (b"Hello", "it is not an image"),
        (b"", "it is not an image"),
    ] {
        assert!(read(data).contains(expected), "{}", read(data));
    }
}

proptest! {
    #[test]
    fn any_bytes_after_a_signature_are_read_without_a_panic(
        which in 0..6_usize, at in any::<usize>(), bytes in any::<Vec<u8>>(),
    ) {
        let sample = &samples()[which];
        let at = at % (sample.len() + 1);
        let mut data = [&sample[..at], &bytes[..]].concat();
        let _ = ImageInfo::read(&data);
        data.extend(&sample[at..]);
        if let Ok(info) = ImageInfo::read(&data) {
            prop_assert!(info.width > 0 && info.height > 0);
        }
    }
}

/// The refusals of images, one message each, for limits.
fn refusals(images: &[Vec<u8>], limits: ImageLimits) -> Vec<Option<ImageRefusal>> {
    let message = |data: &Vec<u8>| Message::User {
        text: "Look.".into(),
        blocks: Arc::new([ContentBlock::image("image/x", data.clone())]),
    };
    let messages: Vec<_> = images.iter().map(message).collect();
    let support = ImageSupport { sees: None, in_results: false, limits };
    let judged = support.judge(&messages);
    let all: Vec<_> = (0..messages.len()).map(|at| judged.of(at)[0].unwrap().err()).collect();
    // What is appended does not change what was judged before.
    for end in 0..messages.len() {
        let judged = support.judge(&messages[..end]);
        let before: Vec<_> = (0..end).map(|at| judged.of(at)[0].unwrap().err()).collect();
        assert_eq!(before, all[..end]);
    }
    all
}

#[test]
fn each_limit_refuses_what_is_beyond_it() {
    let none = ImageLimits::NONE;
    let refused = |image: Vec<u8>, limits| refusals(&[image], limits)[0].unwrap().to_string();
    assert_eq!(refusals(&[png(3, 2)], none), [None]);
    let types = ImageLimits { media_types: &["image/png"], ..none };
    assert!(refused(gif(1), types).contains("does not accept image/gif, but: image/png"));
    let still = ImageLimits { animated_gif: false, ..none };
    assert_eq!(refusals(&[gif(1)], still), [None]);
    assert!(refused(gif(2), still).contains("animated"));
    let bytes = png(3, 2).len();
    assert_eq!(refusals(&[png(3, 2)], ImageLimits { max_bytes: bytes, ..none }), [None]);
    assert!(refused(png(3, 2), ImageLimits { max_bytes: bytes - 1, ..none }).contains("bytes"));
    let side = ImageLimits { max_side: 8_000, ..none };
    assert_eq!(refusals(&[png(8_000, 1)], side), [None]);
    assert!(refused(png(1, 8_001), side).contains("1 × 8001 pixels"));
    // Some hundred bytes may describe a terabyte of pixels.
    assert!(refused(png(1_000_000, 1_000_000), none).contains("make a smaller copy"));
    let two = ImageLimits { max_count: 2, ..none };
    let count = Some(ImageRefusal::Count { max: 2 });
    assert_eq!(refusals(&[png(1, 1), png(1, 1), png(1, 1)], two), [None, None, count]);
    let encoded = bytes.div_ceil(3) * 4;
    let together = ImageLimits { max_total_bytes: 2 * encoded, ..none };
    let total = Some(ImageRefusal::TotalBytes { max: 2 * encoded });
    assert_eq!(refusals(&[png(1, 1), png(1, 1), png(1, 1)], together), [None, None, total]);
}

#[test]
fn large_images_are_not_among_many() {
    let limits = ImageLimits { large: Some((2, 100)), max_count: 4, ..ImageLimits::NONE };
    let count = Some(ImageRefusal::Count { max: 2 });
    let [small, large] = [png(100, 1), png(101, 1)];
    let one_large = [large.clone(), small.clone(), small.clone()];
    assert_eq!(refusals(&one_large, limits), [None, None, count]);
    let many = [small.clone(), small.clone(), small.clone(), large];
    let side = Some(ImageRefusal::Side { width: 101, height: 1, max: 100 });
    assert_eq!(refusals(&many, limits), [None, None, None, side]);
}

#[test]
fn a_model_that_sees_nothing_is_shown_nothing() {
    let message = Message::User {
        text: "Look.".into(),
        blocks: Arc::new([ContentBlock::image("image/png", png(1, 1))]),
    };
    let judged = ImageSupport::BLIND.judge(&[Message::user("Hi"), message]);
    assert!(judged.of(0).is_empty());
    assert_eq!(judged.of(1), [Some(Err(ImageRefusal::Blind))]);
}
