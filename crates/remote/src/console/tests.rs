//! A console that a process of this machine plays.

use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use super::*;
use crate::shell::{Answer, Shell};

/// A console on which `script` runs.
struct Played {
    child: Child,
}

impl Played {
    fn start(script: &str) -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let end = || OwnedFd::from(theirs.try_clone().unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("PS1", "# ").env("ENV", "");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        (Self { child }, ours)
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(script: &str, login: &Login) -> (Played, Result<Console>) {
    let (played, stream) = Played::start(script);
    let console = Console::open(stream, "guest", login, Duration::from_secs(20), &|| true);
    (played, console)
}

const SHELL: &str = "echo booting; exec sh -i";

#[test]
fn output_errors_and_status_come_back_apart_and_as_they_were() {
    let (_played, console) = open(SHELL, &Login::default());
    let mut console = console.unwrap();
    let answer = console.run("echo out; echo err >&2; exit 3").unwrap();
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str(), answer.status), ("out\n", "err", 3));
    assert_eq!(console.run("printf 'no break'").unwrap().stdout, "no break");
    assert_eq!(console.run("true").unwrap(), Answer::default());
    let script = "set -eu\nprintf '%s\n' \"it's \\n ünïcode\"\nfalse\necho never";
    assert_eq!(console.run(script).unwrap().stdout, "it's \\n ünïcode\n");
    assert_eq!(console.run("cat").unwrap().stdout, "", "a script does not read our requests");
}

#[test]
fn a_script_longer_than_a_line_arrives_whole() {
    let (_played, console) = open(SHELL, &Login::default());
    let long = format!("# {}\necho {}", "ü".repeat(2 * LINE), "x".repeat(3 * LINE));
    let answer = console.unwrap().run(&long).unwrap();
    assert_eq!(answer.stdout.trim_end(), "x".repeat(3 * LINE));
}

#[test]
fn what_is_remembered_is_undone_last_first() {
    let (_played, console) = open(SHELL, &Login::default());
    let mut console = console.unwrap();
    console.remember("echo one").unwrap();
    console.remember("echo two; exit 4").unwrap();
    let answer = console.undo().unwrap();
    assert_eq!((answer.stdout.as_str(), answer.status), ("two\n", 4));
    assert_eq!(console.undo().unwrap().stdout, "one\n");
}

#[test]
fn it_logs_in_where_the_console_asks_for_that() {
    let login = "printf 'dut login: '; read -r name; printf 'Password: '; read -r word
                 [ \"$name $word\" = 'root secret' ] || { echo 'Login incorrect'; sleep 9; }
                 exec sh -i";
    let user = |word: &str| Login { user: Some("root".to_owned()), password: Some(word.to_owned()) };
    let (_played, console) = open(login, &user("secret"));
    assert_eq!(console.unwrap().run("echo in").unwrap().stdout, "in\n");
    let (_played, console) = open(login, &user("wrong"));
    assert!(console.unwrap_err().to_string().contains("the login was refused"));
}

#[test]
fn a_machine_that_ends_or_never_asks_is_told_with_what_it_has_shown() {
    let (_played, console) = open("echo 'no init found'; exit 1", &Login::default());
    let error = console.unwrap_err().to_string();
    assert!(error.contains("the machine has ended; it has shown: no init found"), "{error}");
    let (_played, stream) = Played::start("echo waiting; sleep 60");
    let patience = Duration::from_millis(500);
    let error = Console::open(stream, "guest", &Login::default(), patience, &|| true).unwrap_err();
    assert!(error.to_string().contains("no prompt within 500ms; it has shown: waiting"), "{error}");
}
