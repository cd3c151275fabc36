//! What the router says: lines enter, and a thread writes them. Who says something never waits, and a line that
//! cannot be written ends nothing: a full disk, a reader that has gone or one that stands still.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Lines that may wait to be written; further ones are lost, and counted.
const LINES: usize = 1024;

/// Has lines written by a thread.
pub struct Log {
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
    /// Ends when all is written.
    ended: Receiver<()>,
}

impl Log {
    /// Writes to `writer` from now on; each line begins with `before`. Without a thread nothing is written.
    pub fn start(writer: impl Write + Send + 'static, before: &'static str) -> Self {
        let (lines, said) = sync_channel(LINES);
        let (end, ended) = sync_channel(0);
        let lost = Arc::<AtomicU64>::default();
        let of_thread = Arc::clone(&lost);
        let work = move || {
            write(writer, before, &said, &of_thread);
            drop(end);
        };
        let _ = thread::Builder::new().name("log".into()).spawn(work);
        Self { lines, lost, ended }
    }

    /// Has the lines of a text written.
    pub fn say(&self, text: &str) {
        for line in text.lines() {
            if self.lines.try_send(line.to_owned()).is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits until all is written, but no longer than `patience`.
    pub fn end(self, patience: Duration) {
        drop(self.lines);
        let _ = self.ended.recv_timeout(patience);
    }
}

/// Writes lines until there are none to come.
fn write(mut writer: impl Write, before: &str, lines: &Receiver<String>, lost: &AtomicU64) {
    for line in lines {
        // Who cannot be told is not told.
        let _ = writeln!(writer, "{before}{line}");
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ = writeln!(writer, "{before}{lost} more lines were not written: they came too fast");
        }
        let _ = writer.flush();
    }
}

/// How many lines somebody may cause at once, and how long the next one takes then.
const AT_ONCE: u32 = 8;
const PAUSE: Duration = Duration::from_secs(10);

/// Limits what is said of a matter that others cause, such as peers that come and go.
pub(crate) struct Limit {
    left: u32,
    /// When the last one came.
    filled: Instant,
    /// What was left out since.
    left_out: u64,
}

impl Limit {
    /// It may say some at once at `now`.
    pub fn new(now: Instant) -> Self {
        Self { left: AT_ONCE, filled: now, left_out: 0 }
    }

    /// What is to be said at `now` instead of `text`; nothing, if that is too often.
    pub fn say(&mut self, text: String, now: Instant) -> Option<String> {
        while self.left < AT_ONCE && now.saturating_duration_since(self.filled) >= PAUSE {
            self.left += 1;
            self.filled += PAUSE;
        }
        if self.left == AT_ONCE {
            self.filled = now;
        }
        if self.left == 0 {
            self.left_out += 1;
            return None;
        }
        self.left -= 1;
        match std::mem::take(&mut self.left_out) {
            0 => Some(text),
            count => Some(format!("{text} ({count} like this were not said before)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Error};
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    /// What was written.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Takes nothing, and says so.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(Error::from_raw_os_error(28))
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(Error::from_raw_os_error(28))
        }
    }

    #[test]
    fn lines_are_written_in_their_order() {
        let page = Page::default();
        let log = Log::start(page.clone(), "x: ");
        log.say("one\ntwo");
        log.say("three");
        log.end(Duration::from_secs(10));
        assert_eq!(*page.0.lock().unwrap(), b"x: one\nx: two\nx: three\n");
    }

    #[test]
    fn a_writer_that_fails_ends_nothing() {
        let log = Log::start(Full, "");
        (0..10).for_each(|_| log.say("a line"));
        log.end(Duration::from_secs(10));
    }

    #[test]
    fn a_writer_that_stands_still_keeps_nobody_waiting() {
        /// Waits for ever.
        struct Still(std::sync::mpsc::Receiver<()>);
        impl Write for Still {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.recv().map_or(Error::from_raw_os_error(32), |()| Error::from_raw_os_error(28)))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (go_on, still) = channel();
        let log = Log::start(Still(still), "");
        (0..3 * LINES).for_each(|_| log.say("a line"));
        assert!(log.lost.load(Ordering::Relaxed) >= LINES as u64);
        log.end(Duration::from_millis(10));
        drop(go_on);
    }

    #[test]
    fn what_is_said_too_often_is_counted_instead() {
        let start = Instant::now();
        let mut limit = Limit::new(start);
        let mut said = |after: Duration| limit.say("gone".into(), start + after);
        let at_once = (0..100).filter_map(|_| said(Duration::ZERO)).count();
        assert_eq!(at_once, 8);
        let later = said(PAUSE).unwrap();
        assert_eq!(later, "gone (92 like this were not said before)");
        assert_eq!(said(PAUSE), None);
        assert_eq!((0..100).filter_map(|_| said(100 * PAUSE)).count(), 8);
    }
}
