//! Searches the lines of text files.

use std::{
    mem,
    num::NonZero,
    ops::ControlFlow,
    sync::{Arc, mpsc::sync_channel},
    thread,
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{ToolContext, ToolError};

use super::{
    FileLimits, FilesHandle,
    error::FileError,
    left_out::{LeftOutList, LeftOutReason},
    list::{Entry, EntryKind, Tree, glob, walk},
    locate::Purpose,
    path::RelativePath,
    search_query::{FileMatches, Search},
    search_work::{Candidate, Work},
    work_progress::{FileWork, WorkProgress},
};

/// The most threads of a search.
const MOST_THREADS: usize = 4;

/// The files that are passed to a thread at once: waking it takes as long as searching a small file.
const BATCH: usize = 16;

/// The batches that wait for a thread. Each file may keep a folder open.
const WAITING_BATCHES: usize = 3;

impl FilesHandle {
    /// Searches the lines of a text file, or of those below a folder, with the engine of ripgrep and on
    /// several threads. Links below the folder are not followed. Left out are files that `.gitignore` and
    /// `.ignore` name; also, and named in the result, files larger than the limit of the folder, and
    /// binary files: those with a NUL byte. Of a file with a line over 64 KiB, the first 16 KiB of each
    /// line are matched. The found files are not recorded as read.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause.
    pub async fn search(&self, cx: &ToolContext, search: Search) -> Result<FileMatches, ToolError> {
        let path = RelativePath::parse(&search.path).map_err(FileError::into_tool_error)?;
        let matcher = search.matcher().map_err(FileError::into_tool_error)?;
        let glob = search.glob.as_deref().map(glob).transpose();
        let glob = glob.map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, cancel| {
            let limits = *handle.limits();
            let progress = &WorkProgress::new(cx, FileWork::Search);
            let work = Work::new(&search, &matcher, cx, cancel, progress);
            let is_wanted =
                |entry: &Entry| glob.as_ref().is_none_or(|glob| glob.is_match(&entry.path));
            let located = handle.top().locate(&path, Purpose::Read)?;
            if let (Some(name), Some(found)) = (&located.name, &located.found)
                && found.is_file()
            {
                let entry = Entry::of(path.names().join("/"), found);
                let limit = limits.max_file_bytes.max(limits.max_total_bytes);
                if is_wanted(&entry) {
                    let (name, dir) = (name.clone(), Arc::new(located.dir));
                    work.search(&Candidate { number: 0, dir, name, entry, limit });
                }
                let is_whole = true;
                return work.found(is_whole, cancel);
            }
            let (depth, ignored) = (limits.max_depth, search.ignored);
            let tree = Tree { top: handle.top(), path: &path, depth, ignored, progress };
            let mut unread = LeftOutList::default();
            let is_whole = search_tree(&work, &tree, limits, cancel, &mut unread, is_wanted)?;
            let mut found = work.found(is_whole, cancel)?;
            found.left_out.extend(unread.into_all());
            Ok(found)
        })
        .await
    }
}

/// Searches the wanted files of a tree while it is walked. Returns whether all were found: `false`
/// after a limit.
fn search_tree(
    work: &Work<'_>,
    tree: &Tree<'_>,
    limits: FileLimits,
    cancel: &CancellationToken,
    unread: &mut LeftOutList,
    is_wanted: impl Fn(&Entry) -> bool,
) -> Result<bool, FileError> {
    let (sender, batches) = sync_channel(WAITING_BATCHES);
    let batches = Mutex::new(batches);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let limit = limits.max_file_bytes;
    let (mut bytes, mut number) = (0_u64, 0);
    let mut batch = Vec::with_capacity(BATCH);
    thread::scope(|scope| {
        for _ in 0..threads.min(MOST_THREADS) {
            scope.spawn(|| work.run(&batches));
        }
        let is_whole = walk(tree, cancel, unread, |dir, entry| {
            if entry.kind != EntryKind::File || !is_wanted(&entry) {
                return Ok(ControlFlow::Continue(()));
            }
            number += 1;
            if entry.size > limit {
                work.leave_out(LeftOutReason::TooLarge, number, &entry.path);
                return Ok(ControlFlow::Continue(()));
            }
            bytes = bytes.saturating_add(entry.size);
            if bytes > limits.max_total_bytes || work.is_over() {
                return Ok(ControlFlow::Break(()));
            }
            let name = entry.path.rsplit('/').next().unwrap_or_default().into();
            batch.push(Candidate { number, dir: Arc::clone(dir), name, entry, limit });
            let is_taken = batch.len() < BATCH || sender.send(mem::take(&mut batch)).is_ok();
            Ok(if is_taken { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        // Without a receiver, the search has ended.
        let _ = sender.send(batch);
        drop(sender);
        is_whole
    })
}
