//! Searches files on several threads, each file in bounded memory.

use std::{
    ffi::OsString,
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::Receiver,
    },
    time::{Duration, Instant},
};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, OpenOptions};
use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolcrib_core::ToolContext;

use super::{
    error::FileError,
    left_out::{LeftOutList, LeftOutReason},
    list::Entry,
    part::EDGE_CHARS,
    search_query::{FileCount, FileMatches, Match, Search, SearchMode},
    work_progress::WorkProgress,
};

/// The memory of a file's search, in bytes: a file with a longer line is searched in the beginnings of
/// its lines.
const BUFFER_BYTES: usize = 64 * 1024;

/// The bytes of a line of such a file that are matched, as the other factor.
const MATCHED_BYTES: usize = 16 * 1024;

/// The memory of the search of such a file, for the lines around a match.
const LONG_BUFFER_BYTES: usize = 1 << 20;

/// The time of one search; the matches until then are returned.
const LONGEST_SEARCH: Duration = Duration::from_secs(20);

/// The characters of a line that are returned.
const LINE_CHARS: usize = 500;

/// The characters before a match that are returned, where it is beyond the beginning of its line.
const CHARS_BEFORE: usize = 100;

/// The most lines around a match.
const MOST_CONTEXT: usize = 20;

/// A file to search, with its number in the order of paths, and the most of its bytes.
pub(super) struct Candidate {
    pub(super) number: usize,
    pub(super) dir: Arc<Dir>,
    pub(super) name: OsString,
    pub(super) entry: Entry,
    pub(super) limit: u64,
}

/// The state that the threads of a search share.
pub(super) struct Work<'a> {
    search: &'a Search,
    matcher: &'a RegexMatcher,
    cx: &'a ToolContext,
    cancel: &'a CancellationToken,
    progress: &'a WorkProgress<'a>,
    deadline: Instant,
    /// The matches in each file that has some, with the file's number.
    found: Mutex<Vec<(usize, FoundLines)>>,
    left_out: Mutex<LeftOutList>,
    matches: AtomicUsize,
    files: AtomicUsize,
    is_late: AtomicBool,
}

/// The matches of one file.
struct FoundLines {
    path: String,
    lines: Vec<Match>,
    count: usize,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        search: &'a Search,
        matcher: &'a RegexMatcher,
        cx: &'a ToolContext,
        cancel: &'a CancellationToken,
        progress: &'a WorkProgress<'a>,
    ) -> Self {
        Self {
            search,
            matcher,
            cx,
            cancel,
            progress,
            deadline: Instant::now() + LONGEST_SEARCH,
            found: Mutex::default(),
            left_out: Mutex::default(),
            matches: AtomicUsize::new(0),
            files: AtomicUsize::new(0),
            is_late: AtomicBool::new(false),
        }
    }

    /// Whether no further file is searched: those that were begun include the first matches.
    pub(super) fn is_over(&self) -> bool {
        self.is_stopped() || self.matches.load(Ordering::Relaxed) > self.search.max_matches
    }

    /// Whether the search of a file ends early.
    fn is_stopped(&self) -> bool {
        if Instant::now() > self.deadline {
            self.is_late.store(true, Ordering::Relaxed);
        }
        self.cancel.is_cancelled() || self.is_late.load(Ordering::Relaxed)
    }

    pub(super) fn leave_out(&self, reason: LeftOutReason, number: usize, path: &str) {
        self.left_out.lock().add(reason, number, path);
    }

    /// Searches files until there are no more.
    pub(super) fn run(&self, batches: &Mutex<Receiver<Vec<Candidate>>>) {
        loop {
            // All are taken, so that the walk never waits for a thread that ended.
            let next = batches.lock().recv();
            let Ok(batch) = next else { return };
            for file in batch {
                if !self.is_stopped() {
                    self.search(&file);
                }
            }
        }
    }

    /// Searches a file.
    pub(super) fn search(&self, file: &Candidate) {
        let path = &file.entry.path;
        self.progress.begun();
        let found = self.search_whole(file).or_else(|_| {
            // A long line, mostly.
            let (found, has_long_lines) = self.search_beginnings(file)?;
            if has_long_lines {
                self.leave_out(LeftOutReason::LongLines, file.number, path);
            }
            Ok::<_, io::Error>(found)
        });
        let reason = match found {
            // What was read until then counts.
            Err(_) if self.is_stopped() => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => LeftOutReason::Unreadable,
            Ok(None) => LeftOutReason::Binary,
            Ok(Some(found)) => {
                self.files.fetch_add(1, Ordering::Relaxed);
                if found.count > 0 {
                    let matches = match self.search.mode {
                        SearchMode::Lines => found.count,
                        _ => 1,
                    };
                    self.matches.fetch_add(matches, Ordering::Relaxed);
                    self.found.lock().push((file.number, found));
                }
                if file.entry.size <= file.limit {
                    return;
                }
                LeftOutReason::Rest
            }
        };
        self.leave_out(reason, file.number, path);
    }

    fn searcher(&self, buffer_bytes: usize) -> Searcher {
        let context = match self.search.mode {
            SearchMode::Lines => self.search.context.min(MOST_CONTEXT),
            _ => 0,
        };
        SearcherBuilder::new()
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(buffer_bytes))
            .build()
    }

    /// The matches; `None` if the file is not text.
    fn search_whole(&self, file: &Candidate) -> io::Result<Option<FoundLines>> {
        let reader = CancellableFile { work: self, file: open(file)? };
        let mut lines = Lines::new(self, &file.entry);
        self.searcher(BUFFER_BYTES).search_reader(self.matcher, reader, &mut lines)?;
        Ok(lines.into_found())
    }

    /// The same in the beginnings of the lines, and whether lines have more than that.
    fn search_beginnings(&self, file: &Candidate) -> io::Result<(Option<FoundLines>, bool)> {
        let whole = CancellableFile { work: self, file: open(file)? };
        let mut reader = Beginnings { whole, length: 0, is_cut: false };
        let mut lines = Lines::new(self, &file.entry);
        let mut searcher = self.searcher(LONG_BUFFER_BYTES);
        searcher.search_reader(self.matcher, &mut reader, &mut lines)?;
        Ok((lines.into_found(), reader.is_cut))
    }

    /// The first matches, in the order of paths.
    pub(super) fn found(
        self,
        is_whole: bool,
        cancel: &CancellationToken,
    ) -> Result<FileMatches, FileError> {
        if cancel.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        let mut all = self.found.into_inner();
        all.sort_unstable_by_key(|(number, _)| *number);
        let mut found = FileMatches {
            mode: self.search.mode,
            is_cut: !is_whole || self.is_late.into_inner(),
            files: self.files.into_inner(),
            left_out: self.left_out.into_inner().into_all(),
            ..FileMatches::default()
        };
        let most = self.search.max_matches;
        if self.search.mode != SearchMode::Lines {
            found.is_cut |= all.len() > most;
            let count = |FoundLines { path, count, .. }| FileCount { path, count };
            found.counts = all.into_iter().map(|(_, lines)| count(lines)).take(most).collect();
            return Ok(found);
        }
        let mut room = most;
        for line in all.into_iter().flat_map(|(_, found)| found.lines) {
            if !line.is_context {
                let Some(left) = room.checked_sub(1) else {
                    found.is_cut = true;
                    break;
                };
                room = left;
            }
            found.matches.push(line);
        }
        Ok(found)
    }
}

/// A file that is read until the search is stopped.
struct CancellableFile<'a> {
    work: &'a Work<'a>,
    file: io::Take<File>,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.work.is_stopped() {
            true => Err(io::ErrorKind::Other.into()),
            false => self.file.read(buffer).inspect(|read| self.work.progress.read(*read)),
        }
    }
}

/// The lines of one file.
struct Lines<'a> {
    work: &'a Work<'a>,
    entry: &'a Entry,
    lines: Vec<Match>,
    matches: usize,
    is_binary: bool,
}

impl<'a> Lines<'a> {
    fn new(work: &'a Work<'a>, entry: &'a Entry) -> Self {
        Self { work, entry, lines: Vec::new(), matches: 0, is_binary: false }
    }

    fn into_found(self) -> Option<FoundLines> {
        let path = self.entry.path.clone();
        (!self.is_binary).then_some(FoundLines { path, lines: self.lines, count: self.matches })
    }

    fn push(&mut self, line: Option<u64>, bytes: &[u8], is_context: bool) {
        let whole = String::from_utf8_lossy(bytes);
        let whole = whole.trim_end_matches(['\n', '\r']);
        let is_part = whole.chars().nth(LINE_CHARS).is_some();
        let mut before = 0;
        if is_part && !is_context {
            let start =
                self.work.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start());
            let start = String::from_utf8_lossy(bytes.get(..start).unwrap_or_default());
            let start = start.chars().count();
            if start > LINE_CHARS - CHARS_BEFORE {
                before = start - CHARS_BEFORE;
            }
        }
        let text = match is_part {
            true => self.part(whole, before),
            false => whole.to_owned(),
        };
        let line = usize::try_from(line.unwrap_or_default()).unwrap_or_default();
        let (path, column) = (self.entry.path.clone(), before + 1);
        self.lines.push(Match { path, line, text, column, is_part, is_context });
    }
}

impl Lines<'_> {
    /// The characters of a line after the first ones. A secret at the edges is redacted here, since only
    /// a part of it would be left to recognize it by.
    fn part(&self, line: &str, before: usize) -> String {
        let at = |chars: usize| line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at);
        let piece = |from: usize, to: usize| line.get(at(from)..at(to)).unwrap_or_default();
        let end = before + LINE_CHARS;
        let edge = piece(before.saturating_sub(EDGE_CHARS), before);
        self.work.cx.redacted_part(edge, piece(before, end), piece(end, end + EDGE_CHARS))
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.work.is_stopped() {
            return Ok(false);
        }
        self.matches += 1;
        Ok(match self.work.search.mode {
            SearchMode::Lines => {
                self.push(found.line_number(), found.bytes(), false);
                // One more than wanted shows that there are more.
                self.matches <= self.work.search.max_matches
            }
            SearchMode::Files => false,
            SearchMode::Counts => true,
        })
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.push(line.line_number(), line.bytes(), true);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// Opens a file of an open folder. A pipe or a link that replaced it meanwhile is neither waited for nor
/// followed.
fn open(file: &Candidate) -> io::Result<io::Take<File>> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    let opened = file.dir.open_with(&file.name, &options)?;
    match opened.metadata()?.is_file() {
        true => Ok(opened.take(file.limit)),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// A text with the beginning of each of its lines.
struct Beginnings<'a> {
    whole: CancellableFile<'a>,
    /// The bytes of the present line that were read.
    length: usize,
    is_cut: bool,
}

impl Read for Beginnings<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.whole.read(buffer)?;
            let mut kept = 0;
            for at in 0..read {
                let Some(byte) = buffer.get(at).copied() else { break };
                self.length += 1;
                if byte == b'\n' {
                    self.length = 0;
                } else if self.length > MATCHED_BYTES {
                    self.is_cut = true;
                    continue;
                }
                if let Some(place) = buffer.get_mut(kept) {
                    *place = byte;
                }
                kept += 1;
            }
            if kept > 0 || read == 0 {
                return Ok(kept);
            }
        }
    }
}
