//! Searches the lines of text files.

use std::{
    io::{self, Read, Write as _},
    num::NonZero,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, OpenOptions};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{ToolContext, ToolError};

use super::{
    FilesHandle,
    error::FileError,
    list::{Entry, EntryKind, Tree, glob, walk},
    path::RelativePath,
};

/// The longest pattern, in bytes.
const LONGEST_PATTERN: usize = 1_000;

/// The limit of a compiled pattern, in bytes. The time for a line is at most the product of the pattern
/// and the line.
const COMPILED_BYTES: usize = 256 * 1024;

/// The memory of a file's search, in bytes: a file with a longer line is searched in the beginnings of
/// its lines.
const BUFFER_BYTES: usize = 64 * 1024;

/// The bytes of a line of such a file that are matched, as the other factor.
const MATCHED_BYTES: usize = 16 * 1024;

/// The memory of a search for states of the pattern, in bytes.
const STATES_BYTES: usize = 1 << 20;

/// The time of one search; what was found until then is returned.
const LONGEST_SEARCH: Duration = Duration::from_secs(20);

/// The characters of a line that are returned.
const LINE_CHARS: usize = 500;

/// The most threads of a search.
const MOST_THREADS: usize = 4;

/// The files that wait for a thread. Each may keep a folder open.
const WAITING: usize = 64;

/// The most lines around a match.
const MOST_CONTEXT: usize = 20;

/// A search: `Search::new("TODO").glob("*.rs")`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Search {
    /// A regular expression without look-around and back-references; matched line by line.
    pub pattern: String,
    /// The folder; the top by default.
    pub path: String,
    /// A pattern of paths as in [`FilesHandle::find`]; all files by default.
    pub glob: Option<String>,
    /// Whether case is ignored. Default: no.
    pub ignore_case: bool,
    /// Whether files that `.gitignore` and `.ignore` name are searched too. Default: no.
    pub ignored: bool,
    /// The lines that are returned before and after each match, at most 20. Default: 0.
    pub context: usize,
    /// The most matching lines. Default: 50.
    pub max_matches: usize,
}

/// A matching line, or one near it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// The path of the file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The beginning of its text.
    pub text: String,
    /// Whether it is not a match, and only near one.
    pub is_context: bool,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FileMatches {
    /// The matching lines, in the order of paths.
    pub matches: Vec<Match>,
    /// The number of text files that were searched.
    pub files: usize,
    /// Whether a limit ended the search: of matches, names, bytes or time.
    pub is_cut: bool,
}

impl Search {
    /// A search in all files.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: String::new(),
            glob: None,
            ignore_case: false,
            ignored: false,
            context: 0,
            max_matches: 50,
        }
    }

    /// Sets the folder.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the pattern of paths.
    #[must_use]
    pub fn glob(mut self, glob: impl Into<String>) -> Self {
        self.glob = Some(glob.into());
        self
    }

    /// Ignores case.
    #[must_use]
    pub fn ignore_case(mut self) -> Self {
        self.ignore_case = true;
        self
    }

    /// Searches also what `.gitignore` and `.ignore` name.
    #[must_use]
    pub fn ignored(mut self) -> Self {
        self.ignored = true;
        self
    }

    /// Sets the lines before and after each match.
    #[must_use]
    pub fn context(mut self, lines: usize) -> Self {
        self.context = lines;
        self
    }

    /// Sets the most matching lines.
    #[must_use]
    pub fn max_matches(mut self, max_matches: usize) -> Self {
        self.max_matches = max_matches;
        self
    }

    fn matcher(&self) -> Result<RegexMatcher, FileError> {
        let invalid = |problem: String| FileError::Pattern { problem };
        if self.pattern.len() > LONGEST_PATTERN {
            return Err(invalid(format!("it is longer than {LONGEST_PATTERN} bytes")));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder.case_insensitive(self.ignore_case).line_terminator(Some(b'\n'));
        builder.size_limit(COMPILED_BYTES).dfa_size_limit(STATES_BYTES);
        builder.build(&self.pattern).map_err(|error| {
            let text = error.to_string();
            // The last line says what is wrong; the others quote the pattern.
            let last = text.lines().last().unwrap_or_default();
            match last.contains("size limit") {
                true => invalid("it is too large".to_owned()),
                false => invalid(last.trim_start_matches("error: ").to_owned()),
            }
        })
    }
}

impl FilesHandle {
    /// Searches the lines of the text files below a folder, with the engine of ripgrep and on several
    /// threads. Links are not followed. Left out are files that `.gitignore` and `.ignore` name, files
    /// larger than the limit of the folder, and binary files: those with a NUL byte. Of a file with a
    /// line over 64 KiB, the first 16 KiB of each line are matched. The found files are not recorded
    /// as read.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause.
    pub async fn search(&self, cx: &ToolContext, search: Search) -> Result<FileMatches, ToolError> {
        let path = RelativePath::parse(&search.path).map_err(FileError::into_tool_error)?;
        let matcher = search.matcher().map_err(FileError::into_tool_error)?;
        let glob = search.glob.as_deref().map(glob).transpose();
        let glob = glob.map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, _, cancel| {
            let limits = *handle.limits();
            let depth = limits.max_depth;
            let tree = Tree { top: handle.top(), path: &path, depth, ignored: search.ignored };
            let work = Work::new(&search, &matcher, cancel, limits.max_file_bytes);
            let (sender, files) = sync_channel(WAITING);
            let files = Mutex::new(files);
            let threads = thread::available_parallelism().map_or(1, NonZero::get);
            let mut bytes = 0_u64;
            let mut number = 0;
            let walked = thread::scope(|scope| {
                for _ in 0..threads.min(MOST_THREADS) {
                    scope.spawn(|| work.run(&files));
                }
                walk(&tree, cancel, |dir, entry| {
                    let is_wanted = entry.kind == EntryKind::File
                        && entry.size <= limits.max_file_bytes
                        && glob.as_ref().is_none_or(|glob| glob.is_match(&entry.path));
                    if !is_wanted {
                        return Ok(ControlFlow::Continue(()));
                    }
                    bytes = bytes.saturating_add(entry.size);
                    if bytes > limits.max_total_bytes || work.is_over() {
                        return Ok(ControlFlow::Break(()));
                    }
                    let file = Candidate { number, dir: Arc::clone(dir), entry };
                    number += 1;
                    Ok(match sender.send(file) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    })
                })
                .inspect(|_| drop(sender))
            });
            let is_whole = walked?;
            if cancel.is_cancelled() {
                return Err(FileError::Cancelled);
            }
            Ok(work.found(is_whole))
        })
        .await
    }
}

/// A file to search, with its number in the order of paths.
struct Candidate {
    number: usize,
    dir: Arc<Dir>,
    entry: Entry,
}

/// The state that the threads of a search share.
struct Work<'a> {
    search: &'a Search,
    matcher: &'a RegexMatcher,
    cancel: &'a CancellationToken,
    max_file_bytes: u64,
    deadline: Instant,
    /// The lines of each file with matches, with the file's number.
    lines: Mutex<Vec<(usize, Vec<Match>)>>,
    matches: AtomicUsize,
    files: AtomicUsize,
    is_late: AtomicBool,
}

impl<'a> Work<'a> {
    fn new(
        search: &'a Search,
        matcher: &'a RegexMatcher,
        cancel: &'a CancellationToken,
        max_file_bytes: u64,
    ) -> Self {
        Self {
            search,
            matcher,
            cancel,
            max_file_bytes,
            deadline: Instant::now() + LONGEST_SEARCH,
            lines: Mutex::default(),
            matches: AtomicUsize::new(0),
            files: AtomicUsize::new(0),
            is_late: AtomicBool::new(false),
        }
    }

    /// Whether no further file is searched: those that were begun include the first matches.
    fn is_over(&self) -> bool {
        self.is_stopped() || self.matches.load(Ordering::Relaxed) > self.search.max_matches
    }

    /// Whether the search of a file ends early.
    fn is_stopped(&self) -> bool {
        if Instant::now() > self.deadline {
            self.is_late.store(true, Ordering::Relaxed);
        }
        self.cancel.is_cancelled() || self.is_late.load(Ordering::Relaxed)
    }

    /// Searches files until there are no more.
    fn run(&self, files: &Mutex<Receiver<Candidate>>) {
        let context = self.search.context.min(MOST_CONTEXT);
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(BUFFER_BYTES))
            .build();
        loop {
            // All are taken, so that the walk never waits for a thread that ended.
            let next = files.lock().recv();
            let Ok(Candidate { number, dir, entry }) = next else { return };
            if self.is_stopped() {
                continue;
            }
            let Some(lines) = self.search_file(&mut searcher, &dir, &entry) else { continue };
            self.files.fetch_add(1, Ordering::Relaxed);
            if !lines.is_empty() {
                let matches = lines.iter().filter(|line| !line.is_context).count();
                self.matches.fetch_add(matches, Ordering::Relaxed);
                self.lines.lock().push((number, lines));
            }
        }
    }

    /// The matching lines; `None` if it is not text, or gone.
    fn search_file(&self, searcher: &mut Searcher, dir: &Dir, entry: &Entry) -> Option<Vec<Match>> {
        let name = entry.path.rsplit('/').next().unwrap_or_default();
        let file = CancellableFile { work: self, file: open(dir, name, self.max_file_bytes)? };
        let mut lines = Lines::new(self, entry);
        if searcher.search_reader(self.matcher, file, &mut lines).is_err() {
            // A long line, mostly.
            let text = beginnings(CancellableFile {
                work: self,
                file: open(dir, name, self.max_file_bytes)?,
            })
            .ok()?;
            lines = Lines::new(self, entry);
            searcher.search_slice(self.matcher, &text, &mut lines).ok()?;
        }
        (!lines.is_binary).then_some(lines.lines)
    }

    /// The first matches, in the order of paths.
    fn found(self, is_whole: bool) -> FileMatches {
        let mut all = self.lines.into_inner();
        all.sort_unstable_by_key(|(number, _)| *number);
        let mut matches = Vec::new();
        let mut room = self.search.max_matches;
        let mut is_cut = !is_whole || self.is_late.into_inner();
        for line in all.into_iter().flat_map(|(_, lines)| lines) {
            if !line.is_context {
                let Some(left) = room.checked_sub(1) else {
                    is_cut = true;
                    break;
                };
                room = left;
            }
            matches.push(line);
        }
        FileMatches { matches, files: self.files.into_inner(), is_cut }
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
            false => self.file.read(buffer),
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

    fn push(&mut self, line: Option<u64>, bytes: &[u8], is_context: bool) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']).chars().take(LINE_CHARS).collect();
        let line = usize::try_from(line.unwrap_or_default()).unwrap_or_default();
        self.lines.push(Match { path: self.entry.path.clone(), line, text, is_context });
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.work.is_stopped() {
            return Ok(false);
        }
        self.push(found.line_number(), found.bytes(), false);
        self.matches += 1;
        // One more than wanted shows that there are more.
        Ok(self.matches <= self.work.search.max_matches)
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
fn open(dir: &Dir, name: &str, limit: u64) -> Option<io::Take<File>> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    let file = dir.open_with(name, &options).ok()?;
    file.metadata().ok().filter(cap_std::fs::Metadata::is_file)?;
    Some(file.take(limit))
}

/// A text with the beginning of each of its lines.
fn beginnings(mut file: CancellableFile<'_>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut piece = vec![0; BUFFER_BYTES];
    let mut length = 0;
    loop {
        let read = file.read(&mut piece)?;
        let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else {
            return Ok(text);
        };
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            let ends = part.last() == Some(&b'\n');
            let kept = part.len().min(MATCHED_BYTES.saturating_sub(length));
            text.write_all(part.get(..kept).unwrap_or_default())?;
            if ends && kept < part.len() {
                text.push(b'\n');
            }
            length = if ends { 0 } else { length + part.len() };
        }
    }
}
