//! Searches the lines of text files.

use std::{
    num::NonZero,
    ops::ControlFlow,
    sync::{Arc, mpsc::sync_channel},
    thread,
};

use parking_lot::Mutex;
use toolcrib_core::{ToolContext, ToolError};

use super::{
    FilesHandle,
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

/// The files that wait for a thread. Each may keep a folder open.
const WAITING: usize = 64;

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
            let depth = limits.max_depth;
            let progress = &WorkProgress::new(cx, FileWork::Search);
            let ignored = search.ignored;
            let tree = Tree { top: handle.top(), path: &path, depth, ignored, progress };
            let work = Work::new(&search, &matcher, cx, cancel, progress);
            let located = handle.top().locate(&path, Purpose::Read)?;
            if let (Some(name), Some(found)) = (&located.name, &located.found)
                && found.is_file()
            {
                let entry = Entry::of(path.names().join("/"), found);
                let is_wanted = glob.as_ref().is_none_or(|glob| glob.is_match(&entry.path));
                let limit = limits.max_file_bytes.max(limits.max_total_bytes);
                if is_wanted {
                    let (name, dir) = (name.clone(), Arc::new(located.dir));
                    work.search(&Candidate { number: 0, dir, name, entry, limit });
                }
                let is_whole = true;
                return work.found(is_whole, cancel);
            }
            let (sender, files) = sync_channel(WAITING);
            let files = Mutex::new(files);
            let threads = thread::available_parallelism().map_or(1, NonZero::get);
            let limit = limits.max_file_bytes;
            let mut bytes = 0_u64;
            let mut number = 0;
            let mut unread = LeftOutList::default();
            let walked = thread::scope(|scope| {
                for _ in 0..threads.min(MOST_THREADS) {
                    scope.spawn(|| work.run(&files));
                }
                walk(&tree, cancel, &mut unread, |dir, entry| {
                    let is_wanted = entry.kind == EntryKind::File
                        && glob.as_ref().is_none_or(|glob| glob.is_match(&entry.path));
                    if !is_wanted {
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
                    let file = Candidate { number, dir: Arc::clone(dir), name, entry, limit };
                    Ok(match sender.send(file) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    })
                })
                .inspect(|_| drop(sender))
            });
            let mut found = work.found(walked?, cancel)?;
            found.left_out.extend(unread.into_all());
            Ok(found)
        })
        .await
    }
}
