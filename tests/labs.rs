//! `linerate lab`: labs that stay open to look inside.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use results::record::Status;

use crate::common::namespace::Namespace;
use crate::common::{has_namespaces, linerate, wait_until};

/// How long anything in a lab may take to begin or end.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_lab_is_opened_listed_looked_into_and_closed() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let run = |line: &str| linerate(line).inside(&home).run();
    let before = home.interfaces();
    run("lab up demo --dut linux-router:gro=off").well();
    assert_eq!(home.interfaces(), before, "a lab has namespaces of its own");

    let list = run("lab list").well();
    for clue in ["demo", "linux-router:gro=off", "lab up"] {
        assert!(list.stdout.contains(clue), "{}", list.stdout);
    }
    let json = run("lab list --json").well().json();
    assert_eq!((&json[0]["name"], json.as_array().unwrap().len()), (&"demo".into(), 1));
    assert_eq!(json[0]["ports"][0][0], "port0");
    assert_eq!(json[0]["configuration"]["gro"], "off");

    // Both sides of the cable, and a router that answers and forwards.
    assert!(run("lab exec demo tester -- ip -o link").well().stdout.contains("port1"));
    assert!(run("lab exec demo dut -- ip -o link").well().stdout.contains("dut0"));
    run("lab exec demo tester -- ping -q -c 1 -w 5 100.65.1.1").well();
    run("lab exec demo tester -- ping -q -c 1 -w 5 2001:2:0:2::1").well();
    run("lab exec demo dut -- ping -q -c 1 -w 5 100.65.2.2").well();
    assert_eq!(run("lab exec demo dut -- cat /proc/sys/net/ipv4/ip_forward").well().stdout, "1\n");

    run("lab down demo").well();
    let empty = run("lab list").well();
    assert!(empty.stdout.is_empty() && empty.stderr.contains("no labs are open"), "{}", empty.stderr);
    assert_eq!((home.interfaces(), home.abstract_sockets()), (before, Vec::<String>::new()));
}

#[test]
fn a_command_in_a_lab_ends_as_it_does_outside() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let run = |line: &str| linerate(line).inside(&home).run();
    run("lab up demo --dut sink").well();
    assert_eq!(run("lab exec demo dut -- false").status.code(), Some(1));
    assert_eq!(
        linerate("lab exec demo dut -- sh -c").arg("exit 7").inside(&home).run().status.code(),
        Some(7)
    );
    let missing = run("lab exec demo dut -- no-such-command");
    let refusal = missing.refusal(1);
    assert!(refusal.contains("no-such-command") && refusal.contains("PATH"), "{refusal}");
    run("lab down demo").well();
}

#[test]
fn a_name_is_given_once() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let run = |line: &str| linerate(line).inside(&home).run();
    run("lab up one").well();
    let again = run("lab up one");
    assert!(again.refusal(1).contains("a lab called 'one' already"), "{}", again.stderr);
    run("lab up two --dut linux-bridge").well();
    let bad = run("lab up with/slash");
    assert!(bad.refusal(1).contains("letters, digits"), "{}", bad.stderr);
    for line in ["lab down three", "lab exec three dut ls"] {
        let unknown = run(line);
        let refusal = unknown.refusal(1);
        assert!(refusal.contains("'three'") && refusal.contains("one, two"), "{refusal}");
    }
    run("lab down one").well();
    run("lab down two").well();
}

#[test]
fn a_lab_that_cannot_be_opened_says_why() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let run = |line: &str| linerate(line).inside(&home).run();
    let size = run("lab up big --size 20000");
    assert!(size.refusal(2).contains("20000"), "{}", size.stderr);
    let ports = run("lab up mine --ports a,b");
    assert!(ports.refusal(2).contains('a'), "{}", ports.stderr);
    assert!(home.abstract_sockets().is_empty());
}

#[test]
fn a_running_load_test_is_listed_and_can_be_looked_into() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let mut run = linerate("saturate --rate 1kpps --duration 30s").inside(&home).start();
    run.wait_for_record(|_| true);
    let labs = linerate("lab list --json").inside(&home).run().well().json();
    let labs = labs.as_array().unwrap();
    assert_eq!(labs.len(), 1, "{labs:?}");
    assert_eq!(labs[0]["pid"], run.pid());
    let name = labs[0]["name"].as_str().unwrap();
    let inside = linerate(&format!("lab exec {name} dut -- ip -o link")).inside(&home).run().well();
    assert!(inside.stdout.contains("dut1"), "{}", inside.stdout);
    // Its run ends it, nobody else.
    let refused = linerate(&format!("lab down {name}")).inside(&home).run();
    assert!(refused.refusal(1).contains(name), "{}", refused.stderr);
}

/// Opens the abstract socket of a lab and answers as a lab does, with namespaces of its own.
const SQUATTER: &str = r#"
import array, json, os, socket
server = socket.socket(socket.AF_UNIX)
server.bind("\0linerate-lab-mine")
server.listen()
print("ready", flush=True)
namespaces = [os.open("/proc/self/ns/" + kind, os.O_RDONLY) for kind in ("net", "mnt")]
info = dict(name="mine", pid=1, dut="\x1b[2Jrouter", purpose="lab up", ports=[], dut_core=0, configuration={})
while True:
    client, _ = server.accept()
    request = client.recv(64)
    try:
        if request.startswith(b"namespace"):
            fds = array.array("i", namespaces)
            client.sendmsg([b"ok\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        else:
            client.sendall(json.dumps(info).encode() + b"\n" if request == b"info\n" else b"ok\n")
    except OSError:
        pass # it has heard enough
    client.close()
"#;

#[test]
fn a_lab_that_another_user_claims_to_hold_is_not_entered() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let mut squatter = home.command("setpriv");
    squatter.args(["--reuid=65534", "--clear-groups", "--inh-caps=-all", "python3", "-c", SQUATTER]);
    // Debian's own Python: others may not let everybody in.
    squatter.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let mut squatter = squatter.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(squatter.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let run = |line: &str| linerate(line).inside(&home).run();
    let entered = run("lab exec mine dut -- true");
    let closed = run("lab down mine");
    let listed = run("lab list");
    squatter.kill().unwrap();
    squatter.wait().unwrap();
    assert_eq!(line, "ready\n");
    for refused in [entered, closed] {
        let refusal = refused.refusal(1);
        assert!(refusal.contains("'mine'") && refusal.contains("user 65534"), "{refusal}");
    }
    assert_eq!(listed.well().stdout, "");
}

/// Processes whose command line is this.
fn running(words: &[&str]) -> usize {
    let line = words.iter().fold(String::new(), |line, word| line + word + "\0");
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    processes.filter(|path| fs::read_to_string(path).is_ok_and(|text| text == line)).count()
}

#[test]
fn what_a_command_starts_in_a_lab_runs_beside_the_next_ones_and_ends_with_the_lab() {
    if !has_namespaces() {
        return;
    }
    let seconds = (100_000 + std::process::id()).to_string();
    let left = || running(&["sleep", &seconds]);
    let load =
        linerate("saturate --dut linux-router --rate 2kpps --duration 200ms --warm-up-duration 100ms --json");
    let detached = format!("setsid sleep {seconds} > /dev/null & echo $! > pid");
    let seen = "kill -0 $(cat pid) && [ -e /proc/$(cat pid)/exe ] && touch seen";
    // It has a moment to put things back.
    let polite = "sh -c 'trap \"touch asked; exit\" TERM; touch ready; while :; do sleep 0.05; done' &";
    let commands = [detached.as_str(), seen, polite, "while [ ! -e ready ]; do sleep 0.05; done"];
    let line = commands.iter().fold(load.clone(), |line, command| line.arg("--dut-command").arg(*command));
    let finished = line.run().well();
    assert_eq!(finished.record().status, Status::Complete);
    assert!(["seen", "asked"].iter().all(|name| finished.directory.join(name).exists()));
    assert_eq!(left(), 0, "it goes on after the lab");

    // Also when a later command fails, and when Linerate is killed.
    let commands = [detached.as_str(), "echo no >&2; exit 3", "touch never"];
    let line = commands.iter().fold(load, |line, command| line.arg("--dut-command").arg(*command));
    let failed = line.run();
    let refusal = failed.refusal(1);
    assert!(
        refusal.contains("'echo no >&2; exit 3' failed (exit status: 3): no. Try it by hand"),
        "{refusal}"
    );
    assert!(!failed.directory.join("never").exists());
    assert_eq!(left(), 0, "it goes on after a failure");
    let waiting = linerate("saturate --dut linux-router --rate 2kpps --duration 60s").arg("--dut-command");
    let load = waiting.arg(&detached).start();
    assert!(wait_until(PATIENCE, || left() == 1), "it was not started");
    load.signal(Signal::SIGKILL);
    assert!(wait_until(PATIENCE, || left() == 0), "it goes on after kill -9");
}
