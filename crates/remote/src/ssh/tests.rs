//! The keeper, run by this machine's own shells without ssh.

use std::fs;
use std::path::Path;

use super::*;
use crate::keeper::{MORE, MOST};
use crate::shell::{Answer, Shell};

/// A keeper in a shell here.
fn here() -> Ssh {
    connect(false).unwrap()
}

fn connect(sudo: bool) -> Result<Ssh> {
    let mark = mark();
    // A shell cannot trap what the process that started it ignores, as `nohup` and scripts have it.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT", "sh", "-c"]);
    command.arg(format!("exec {}", started(sudo, &mark, "\"10.0.0.1 1 10.0.0.2 22\"")));
    Ssh::over(command, "here", &mark)
}

fn log(directory: &Path) -> String {
    fs::read_to_string(directory.join("log")).unwrap_or_default()
}

/// Waits until `wanted` is in the log: what an abandoned keeper does takes its time.
fn wait_for(directory: &Path, wanted: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while log(directory) != wanted && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(log(directory), wanted);
}

/// Remembers to write `word` into the log.
fn remember(ssh: &mut Ssh, directory: &Path, word: &str) {
    ssh.remember(&format!("echo {word} >> '{}/log'", directory.display())).unwrap();
}

#[test]
fn the_keeper_is_one_word_for_any_login_shell() {
    // Some csh take words of up to 1024 bytes.
    let script = keeper::script(Streams::Apart);
    assert!(script.len() < 1000, "{} bytes", script.len());
    assert!(!script.contains(['\'', '!', '\n']) && !script.contains(r"\\"), "{script}");
}

#[test]
fn output_errors_and_status_come_back_apart_and_as_they_were() {
    let mut ssh = here();
    let answer = ssh.run("echo out; echo err >&2; exit 3").unwrap();
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str(), answer.status), ("out\n", "err\n", 3));
    assert_eq!(ssh.run("printf 'no break'").unwrap().stdout, "no break");
    assert_eq!(ssh.run("true").unwrap(), Answer::default());
    let script = "set -eu\nprintf '%s\n' \"it's \\n ünïcode\"\nfalse\necho never";
    assert_eq!(ssh.run(script).unwrap().stdout, "it's \\n ünïcode\n");
    assert_eq!(ssh.run("cat").unwrap().stdout, "", "a script does not read our requests");
    let long = ssh.run("seq 100000").unwrap().stdout;
    assert_eq!(long.lines().count(), 100_000);
}

#[test]
fn of_an_answer_without_end_the_beginning_is_kept() {
    let mut ssh = here();
    let answer = ssh.run("yes | head -c 20000000; echo; head -c 20000000 /dev/zero; exit 3").unwrap();
    assert_eq!(answer.status, 3);
    assert!(answer.stdout.starts_with("y\ny\n") && answer.stdout.ends_with(MORE));
    assert!(answer.stdout.len() <= MOST + MORE.len(), "{} bytes", answer.stdout.len());
    assert_eq!(ssh.run("echo again").unwrap().stdout, "again\n");
}

#[test]
fn scripts_know_the_connection_and_find_tools_of_administrators() {
    let mut ssh = here();
    let answer = ssh.run("echo \"$SSH_CONNECTION $LC_ALL\"; echo \"$PATH\"").unwrap();
    assert!(answer.stdout.starts_with("10.0.0.1 1 10.0.0.2 22 C\n"), "{answer:?}");
    assert!(answer.stdout.contains(":/usr/sbin"), "{answer:?}");
}

#[test]
fn all_scripts_begin_with_what_was_defined() {
    let directory = tempfile::tempdir().unwrap();
    let mut ssh = here();
    ssh.begin_with("name='it is'\nsay() { echo \"$name $1\"; }\n").unwrap();
    assert_eq!(ssh.run("set -eu\nsay here").unwrap().stdout, "it is here\n");
    ssh.remember(&format!("say undone >> '{}/log'", directory.path().display())).unwrap();
    drop(ssh);
    assert_eq!(log(directory.path()), "it is undone\n");
}

#[test]
fn what_a_script_leaves_running_is_not_waited_for() {
    let mut ssh = here();
    let began = Instant::now();
    ssh.run("sleep 4 & true").unwrap();
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn undo_is_in_reverse_and_each_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut ssh = here();
    for word in ["one", "two", "three"] {
        remember(&mut ssh, directory.path(), word);
    }
    ssh.undo().unwrap();
    assert_eq!(log(directory.path()), "three\n");
    drop(ssh);
    assert_eq!(log(directory.path()), "three\ntwo\none\n");
}

#[test]
fn an_undo_that_fails_is_told_and_the_others_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut ssh = here();
    remember(&mut ssh, directory.path(), "one");
    ssh.remember("echo sorry >&2; exit 2").unwrap();
    let answer = ssh.undo().unwrap();
    assert_eq!((answer.stderr.as_str(), answer.status), ("sorry\n", 2));
    ssh.remember("exit 2").unwrap();
    drop(ssh);
    assert_eq!(log(directory.path()), "one\n");
}

#[test]
fn when_nobody_is_there_any_more_the_keeper_undoes_all() {
    let directory = tempfile::tempdir().unwrap();
    let mut ssh = here();
    remember(&mut ssh, directory.path(), "one");
    remember(&mut ssh, directory.path(), "two");
    // As when we are killed while a script runs: nobody reads, nobody waits.
    let mut requests = ssh.keeper.abandon();
    writeln!(requests, "rsleep 0.3; echo said; echo three >> {}/log", directory.path().display()).unwrap();
    drop(requests);
    wait_for(directory.path(), "three\ntwo\none\n");
}

#[test]
fn signals_make_the_keeper_undo_and_end() {
    for signal in ["TERM", "HUP", "INT"] {
        let directory = tempfile::tempdir().unwrap();
        let mut ssh = here();
        remember(&mut ssh, directory.path(), "one");
        let pid = ssh.child.id();
        let deadline = Instant::now() + Duration::from_secs(10);
        // A shell heeds a signal just before it reads only when it has read.
        while log(directory.path()).is_empty() && Instant::now() < deadline {
            Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).output().unwrap();
            thread::sleep(Duration::from_millis(50));
        }
        wait_for(directory.path(), "one\n");
        assert!(ssh.run("true").is_err(), "{signal}");
    }
}

#[test]
fn a_request_cut_short_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let mut ssh = here();
    remember(&mut ssh, directory.path(), "one");
    let mut requests = ssh.keeper.abandon();
    write!(requests, "recho three >> {}/log", directory.path().display()).unwrap();
    drop(requests);
    wait_for(directory.path(), "one\n");
}

#[test]
fn a_connection_that_ends_is_told() {
    let mut ssh = here();
    let error = ssh.run("kill -9 $PPID").unwrap_err().to_string();
    assert_eq!(error, "here: the connection ended. What was configured should be undone there: have a look");
    assert!(matches!(ssh.run("true"), Err(Error::Lost { .. })));
}

#[test]
fn what_ssh_says_leads_to_a_remedy() {
    let mark = mark();
    let mut command = Command::new("sh");
    command.args(["-c", "echo 'root@dut: Permission denied (publickey).' >&2; exit 255"]);
    let error = Ssh::over(command, "root@dut", &mark).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "cannot reach root@dut by ssh: root@dut: Permission denied (publickey). Make 'ssh -o"
        ),
        "{error}"
    );
    let error = Ssh::over(Command::new("/no/such/ssh"), "dut", &mark).unwrap_err().to_string();
    assert!(error.contains("ssh cannot be started") && error.contains("Install it"), "{error}");
    for host in ["", "-oProxyCommand=touch", "ssh://root:secret@dut"] {
        assert!(matches!(Ssh::connect(host, false), Err(Error::Misuse(_))), "{host}");
    }
    assert!(remedy("dut", "anything else").contains("'ssh -o BatchMode=yes dut true' must work"));
}
