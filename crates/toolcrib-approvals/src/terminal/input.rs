//! Prints a question and reads its answer, until the waiting future is dropped.

use std::{
    io::{self, Write as _},
    os::fd::AsFd as _,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    stdio::stdin,
    termios::{QueueSelector, tcflush},
};
use tokio::task::spawn_blocking;

/// The longest line that a terminal returns.
const LONGEST_LINE: usize = 4_096;

/// Asks, and reads one line; `None` at the end of the input. The wait ends with the future, so that
/// it does not take the input of a later question.
pub(super) async fn ask(question: String) -> io::Result<Option<String>> {
    // The writer is dropped with the future, which wakes the reader.
    let (dropped, _waiting) = io::pipe()?;
    let reading = spawn_blocking(move || {
        // What was typed before the question was seen is not an answer to it.
        tcflush(stdin(), QueueSelector::IFlush)?;
        let mut terminal = anstream::stderr();
        terminal.write_all(question.as_bytes())?;
        terminal.flush()?;
        let (input, dropped) = (stdin(), dropped.as_fd());
        loop {
            let mut ready =
                [PollFd::new(&input, PollFlags::IN), PollFd::new(&dropped, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let [of_input, of_future] = ready.map(|ready| ready.revents());
            if !of_future.is_empty() {
                return Ok(None);
            }
            if !of_input.is_empty() {
                break;
            }
        }
        let mut line = vec![0; LONGEST_LINE];
        let length = rustix::io::read(input, &mut line)?;
        line.truncate(length);
        if length == 0 {
            // The end of the input leaves the cursor after the question.
            terminal.write_all(b"\n")?;
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    });
    let mut question = Question { is_open: true };
    let answer = reading.await;
    question.is_open = false;
    answer.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Ends the line of a question without an answer.
struct Question {
    is_open: bool,
}

impl Drop for Question {
    fn drop(&mut self) {
        if self.is_open {
            let _ = anstream::stderr().write_all(b"\n");
        }
    }
}
