//! The terminal: a board is drawn on the whole screen, twice a second; keys leave as wishes.
//!
//! A thread draws on standard error, which is the terminal, and reads keys. What the program says on standard error
//! meanwhile is kept and said when the screen is given back: when the view is left, when the run ends, and in a panic.

mod view;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, dup2_stderr};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::Board;
use view::View;

/// How often it is drawn.
const EVERY: Duration = Duration::from_millis(500);
/// How often keys are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// By how much + and - change the load.
const STEP: f64 = 1.05;
/// The most that is said afterwards of what the program said meanwhile, in bytes.
const KEPT: u64 = 64 << 10;

/// The screen, taken until it is dropped or its user leaves the view.
pub struct Screen {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Takes the screen of the terminal that is standard error, and shows `board`.
    ///
    /// # Errors
    /// When it is no terminal, or cannot be set up.
    pub fn start(board: Board) -> io::Result<Self> {
        if !io::stderr().is_terminal() {
            return Err(io::Error::other("standard error is no terminal"));
        }
        let taken = Arc::new(Mutex::new(Some(Taken::new()?)));
        let (in_panic, mine) = (Arc::downgrade(&taken), Arc::clone(&taken));
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |information| {
            if let Some(taken) = in_panic.upgrade() {
                give_back(&taken);
            }
            before(information);
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let drawn = thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            // Without a screen the run goes on all the same.
            let shown = show(&board, &mine, &ended);
            give_back(&mine);
            if shown.is_ok_and(|end| end == End::Interrupt) {
                // The terminal does not send it in this mode.
                let _ = kill(Pid::this(), Signal::SIGINT);
            }
        });
        match drawn {
            Ok(thread) => Ok(Self { stop, thread: Some(thread) }),
            Err(error) => {
                give_back(&taken);
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What is given back: the terminal as it was, and what was said meanwhile.
struct Taken {
    terminal: File,
    said: File,
}

impl Taken {
    /// Takes the screen, and keeps what is said on standard error from now on.
    fn new() -> io::Result<Self> {
        let terminal = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let said: OwnedFd = memfd_create(c"said", MFdFlags::MFD_CLOEXEC)?;
        enable_raw_mode()?;
        let taken = Self { terminal, said: File::from(said) };
        let prepared =
            execute!(&taken.terminal, EnterAlternateScreen).and_then(|()| Ok(dup2_stderr(&taken.said)?));
        if let Err(error) = prepared {
            taken.restore();
            return Err(error);
        }
        Ok(taken)
    }

    fn restore(mut self) {
        // As much as can be done: the program goes on, or ends, anyway.
        let _ = dup2_stderr(&self.terminal);
        let _ = execute!(&self.terminal, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = self.terminal.write_all(&beginning(&self.said));
    }
}

/// What was said first, as much as is kept.
fn beginning(mut said: &File) -> Vec<u8> {
    use std::io::{Read as _, Seek as _};
    let mut bytes = Vec::new();
    let _ = said.rewind();
    let _ = said.take(KEPT).read_to_end(&mut bytes);
    bytes
}

/// Gives the screen back, once.
fn give_back(taken: &Mutex<Option<Taken>>) {
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(taken) = taken {
        taken.restore();
    }
}

/// Draws until told to stop, or until the user leaves the view.
fn show(board: &Board, taken: &Mutex<Option<Taken>>, stop: &AtomicBool) -> io::Result<End> {
    let out = {
        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(taken) = taken.as_ref() else { return Ok(End::Left) };
        taken.terminal.try_clone()?
    };
    let mut terminal = Terminal::new(CrosstermBackend::new(out))?;
    let mut drawn: Option<Instant> = None;
    let mut said = "";
    while !stop.load(Ordering::SeqCst) {
        if drawn.is_none_or(|drawn| drawn.elapsed() >= EVERY) {
            let view = View::of(board, said);
            terminal.draw(|frame| view.draw(frame))?;
            drawn = Some(Instant::now());
        }
        if !event::poll(LOOK)? {
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
                    return Ok(End::Interrupt);
                }
                match pressed(board, key.code) {
                    Pressed::Leave => return Ok(End::Left),
                    Pressed::Done => said = "",
                    Pressed::Refused(reason) => said = reason,
                }
                drawn = None;
            }
            Event::Resize(..) => drawn = None,
            _ => {}
        }
    }
    Ok(End::Left)
}

/// Why nothing is drawn any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The view was left, or the run is over.
    Left,
    /// Ctrl-C.
    Interrupt,
}

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
enum Pressed {
    Leave,
    Done,
    Refused(&'static str),
}

/// Does what a key means.
fn pressed(board: &Board, key: KeyCode) -> Pressed {
    let change: fn(crate::Steering) -> crate::Steering = match key {
        KeyCode::Char('q') | KeyCode::Esc => return Pressed::Leave,
        KeyCode::Char(' ' | 'p') => crate::Steering::toggled,
        KeyCode::Char('+' | '=') => |now| now.times(STEP),
        KeyCode::Char('-') => |now| now.times(1.0 / STEP),
        _ => return Pressed::Done,
    };
    match board.change(change) {
        Ok(()) => Pressed::Done,
        Err(reason) => Pressed::Refused(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Steering;

    #[test]
    fn keys_steer_where_there_is_something_to_steer() {
        let board = Board::default();
        for key in ['q'].map(KeyCode::Char).into_iter().chain([KeyCode::Esc]) {
            assert_eq!(pressed(&board, key), Pressed::Leave);
        }
        assert_eq!(pressed(&board, KeyCode::Char('x')), Pressed::Done);
        assert!(matches!(pressed(&board, KeyCode::Char(' ')), Pressed::Refused(_)));
        let mut now = Steering { percent: 10.0, paused: false };
        for (key, percent, paused) in
            [('+', 10.5, false), ('-', 10.0, false), (' ', 10.0, true), ('p', 10.0, false)]
        {
            board.steer(Some(now));
            assert_eq!(pressed(&board, KeyCode::Char(key)), Pressed::Done);
            now = board.steer(Some(now)).unwrap();
            assert!((now.percent - percent).abs() < 1e-9 && now.paused == paused, "{key}: {now:?}");
        }
    }
}
