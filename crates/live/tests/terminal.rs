//! The screen is given back, however it ends: a process of its own, on a terminal of its own (`script`), whose settings
//! are read afterwards.
#![allow(clippy::unwrap_used, clippy::panic)] // a test may panic

use std::env;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use live::{About, Board, Screen};

const CASE: &str = "LINERATE_TERMINAL_CASE";

/// Not a test: what the others run as a process.
#[test]
fn child() {
    let Ok(case) = env::var(CASE) else { return };
    let board = Board::default();
    board.begin(About { name: "a run".to_owned(), strategy: "saturate".to_owned(), ..About::default() });
    let screen = Screen::start(board).unwrap();
    eprintln!("said meanwhile");
    match case.as_str() {
        "panics" => {
            thread::sleep(Duration::from_secs(1));
            panic!("on purpose");
        }
        "ends" => thread::sleep(Duration::from_secs(1)),
        _ => thread::sleep(Duration::from_secs(60)),
    }
    drop(screen);
    eprintln!("goes on");
}

/// What a terminal showed on which `case` ran while `keys` were pressed, and its settings afterwards; `None`, with the
/// reason printed, where there is no `script`.
fn terminal(case: &str, keys: &[u8]) -> Option<String> {
    let child = env::current_exe().unwrap();
    // What a shell has run in the background ignores interruptions, and hands that on.
    let run =
        format!("env --default-signal=INT {CASE}={case} '{}' --exact child --nocapture", child.display());
    let line = format!("stty rows 30 cols 90; {run}; stty -a");
    let script = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut script) = script else {
        eprintln!("skipped: there is no script(1), of util-linux");
        return None;
    };
    let mut input = script.stdin.take().unwrap();
    if !keys.is_empty() {
        // Keys are read once the screen is taken, and kept until then.
        thread::sleep(Duration::from_secs(2));
        input.write_all(keys).unwrap();
    }
    let output = script.wait_with_output().unwrap();
    drop(input);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_given_back(shown: &str) {
    let (_, taken) =
        shown.split_once("\x1b[?1049h").unwrap_or_else(|| panic!("the screen was not taken: {shown:?}"));
    let (drawn, after) =
        taken.split_once("\x1b[?1049l").unwrap_or_else(|| panic!("it was not given back: {shown:?}"));
    assert!(drawn.contains("saturate") && !drawn.contains("said meanwhile"), "{drawn:?}");
    assert!(after.contains("said meanwhile"), "{after:?}");
    let settings: Vec<&str> = after.split_whitespace().collect();
    assert!(["icanon", "echo", "isig"].iter().all(|wanted| settings.contains(wanted)), "{after:?}");
    assert!(!settings.contains(&"-icanon") && !settings.contains(&"-echo"), "{after:?}");
}

#[test]
fn a_run_that_ends_gives_the_screen_back() {
    let Some(shown) = terminal("ends", b"") else { return };
    is_given_back(&shown);
    assert!(shown.contains("goes on"), "{shown:?}");
}

#[test]
fn a_panic_gives_the_screen_back_before_it_is_told() {
    let Some(shown) = terminal("panics", b"") else { return };
    is_given_back(&shown);
    let (_, after) = shown.split_once("\x1b[?1049l").unwrap();
    assert!(after.contains("on purpose"), "{after:?}");
}

#[test]
fn ctrl_c_gives_the_screen_back_and_interrupts() {
    let Some(shown) = terminal("waits", b"\x03") else { return };
    is_given_back(&shown);
    assert!(!shown.contains("goes on"), "{shown:?}");
}

#[test]
fn without_a_terminal_there_is_no_screen() {
    let child = env::current_exe().unwrap();
    let mut child = Command::new(child);
    let output = child.args(["--exact", "child", "--nocapture"]).env(CASE, "ends").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no terminal"));
}
