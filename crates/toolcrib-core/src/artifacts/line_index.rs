//! A sparse index of lines.

/// The distance between two entries of a [`LineIndex`], in bytes.
const INDEX_BLOCK: u64 = 64 * 1024;

/// The number of line feeds before each block of 64 KiB. A line is found by reading one block,
/// however long lines are, and the index of a gigabyte takes 128 KiB.
///
/// Lines end at LF only; a CR before it belongs to the line. Empty content has no line, and after a
/// final LF there is one more, empty line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineIndex {
    /// Line feeds before block 0, 1, …; the last block may be empty so far.
    before: Vec<u64>,
    feeds: u64,
    bytes: u64,
}

impl LineIndex {
    /// An index of empty content.
    pub fn new() -> Self {
        Self::default()
    }

    /// The index of a whole content.
    pub fn of(content: &[u8]) -> Self {
        let mut index = Self::new();
        index.push(content);
        index
    }

    /// Appends bytes of the text.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let in_block = self.bytes % INDEX_BLOCK;
            if in_block == 0 {
                self.before.push(self.feeds);
            }
            let room = usize::try_from(INDEX_BLOCK - in_block).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.feeds += count_feeds(now);
            self.bytes += now.len() as u64;
            bytes = later;
        }
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of lines.
    pub fn lines(&self) -> u64 {
        if self.bytes == 0 { 0 } else { self.feeds + 1 }
    }

    /// The block that a line begins in: the offset of its first byte, and the number of line feeds
    /// in the block before the line; 0 is the start of the content. `None` after the last line.
    pub fn place_of_line(&self, line: u64) -> Option<(u64, u64)> {
        if line >= self.lines() {
            return None;
        }
        let block = self.before.partition_point(|before| *before < line).saturating_sub(1);
        let before = self.before.get(block)?;
        Some((block as u64 * INDEX_BLOCK, line - before))
    }

    /// The block that contains an offset: the offset of its first byte, and the number of line
    /// feeds before it.
    pub fn block_of(&self, offset: u64) -> (u64, u64) {
        let block = usize::try_from(offset / INDEX_BLOCK).unwrap_or(usize::MAX);
        let block = block.min(self.before.len().saturating_sub(1));
        let before = self.before.get(block).copied().unwrap_or_default();
        (block as u64 * INDEX_BLOCK, before)
    }

    /// The serialized index, to be stored with its content.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = [self.bytes, self.feeds];
        head.iter().chain(&self.before).flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Reads [serialized bytes](Self::to_bytes); `None` if they are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (chunks, rest) = bytes.as_chunks::<8>();
        let mut numbers = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
        let (bytes, feeds) = (numbers.next()?, numbers.next()?);
        let index = Self { before: numbers.collect(), feeds, bytes };
        let blocks = index.before.len() as u64;
        let whole = rest.is_empty()
            && blocks == bytes.div_ceil(INDEX_BLOCK)
            && index.before.is_sorted()
            && index.before.last().is_none_or(|last| *last <= feeds);
        whole.then_some(index)
    }
}

/// Counts the line feeds.
fn count_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_55_lines_end_at_a_line_feed_and_one_more_is_behind_the_last() {
        for (content, lines) in
            [("", 0), ("a", 1), ("a\n", 2), ("a\nb\n", 3), ("\r\n", 2), ("\n", 2), ("a\rb", 1)]
        {
            assert_eq!(LineIndex::of(content.as_bytes()).lines(), lines, "{content:?}");
        }
    }

    #[test]
    fn nothing_has_no_place() {
        let index = LineIndex::new();
        assert_eq!((index.place_of_line(0), index.block_of(5)), (None, (0, 0)));
        assert_eq!(index.to_bytes(), [0; 16]);
    }

    #[test]
    fn an_index_that_contradicts_itself_is_none() {
        let index = LineIndex::of(&b"a\n".repeat(100_000));
        let bytes = index.to_bytes();
        assert_eq!(bytes.len(), (2 + 4) * 8, "200,000 bytes are four blocks of 64 KiB");
        assert_eq!(LineIndex::from_bytes(&bytes), Some(index));
        let with = |at: usize, number: u64| {
            let mut bytes = bytes.clone();
            bytes[at * 8..at * 8 + 8].copy_from_slice(&number.to_le_bytes());
            LineIndex::from_bytes(&bytes)
        };
        assert_eq!(with(0, 100), None, "fewer bytes than there are blocks");
        assert_eq!(with(1, 5), None, "fewer line feeds than in front of a block");
        assert_eq!(with(3, 99_999), None, "more line feeds in front of a block than of the next");
        for cut in [0, 8, 15, bytes.len() - 8, bytes.len() - 1] {
            assert_eq!(LineIndex::from_bytes(&bytes[..cut]), None, "{cut}");
        }
    }

    proptest! {
        #[test]
        fn an_index_is_the_same_however_its_content_came(
            block in prop::collection::vec(prop::sample::select(&b"ab\n"[..]), 1..50),
            times in 1_usize..5_000,
            piece in 1_usize..100_000,
        ) {
            let content = block.repeat(times);
            let mut pieces = LineIndex::new();
            content.chunks(piece).for_each(|piece| pieces.push(piece));
            prop_assert_eq!(&pieces, &LineIndex::of(&content));
            prop_assert_eq!(LineIndex::from_bytes(&pieces.to_bytes()), Some(pieces));
        }

        #[test]
        fn a_line_is_found_where_it_stands(
            block in prop::collection::vec(prop::sample::select(&b"abcdefg\n"[..]), 1..50),
            times in 1_usize..10_000,
            line in any::<prop::sample::Index>(),
            offset in any::<prop::sample::Index>(),
        ) {
            let content = block.repeat(times);
            let index = LineIndex::of(&content);
            prop_assert_eq!(index.bytes(), content.len() as u64);
            let mut starts = vec![0];
            starts.extend((0..content.len()).filter(|at| content[*at] == b'\n').map(|at| at + 1));
            prop_assert_eq!(index.lines(), starts.len() as u64);
            let (number, start) = (line.index(starts.len()), starts[line.index(starts.len())]);
            let (place, feeds) = index.place_of_line(number as u64).unwrap();
            prop_assert!(place.is_multiple_of(INDEX_BLOCK) && start as u64 - place <= INDEX_BLOCK);
            let between = &content[place as usize..start];
            prop_assert_eq!(feeds, count_feeds(between));
            prop_assert!(feeds == 0 || content[start - 1] == b'\n');
            prop_assert!((number == 0) == (place == 0 && feeds == 0));
            prop_assert_eq!(index.place_of_line(starts.len() as u64), None);

            let offset = offset.index(content.len());
            let (place, feeds) = index.block_of(offset as u64);
            prop_assert_eq!(place, offset as u64 / INDEX_BLOCK * INDEX_BLOCK);
            prop_assert_eq!(feeds, count_feeds(&content[..place as usize]));
            let last = (content.len() as u64 - 1) / INDEX_BLOCK * INDEX_BLOCK;
            prop_assert_eq!(index.block_of(u64::MAX).0, last);
        }

        #[test]
        fn bytes_that_are_no_index_are_told(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(index) = LineIndex::from_bytes(&bytes) {
                prop_assert_eq!(index.to_bytes(), bytes);
            }
        }
    }
}
