//! `--live`: who watches a run reads of it what its record says.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::{Running, has_namespaces, linerate, wait_until};

/// Where `program` says that it is shown.
fn address(program: &Running) -> String {
    let said = || program.stderr();
    let shown = wait_until(Duration::from_secs(60), || said().contains("live: http://"));
    assert!(shown, "{}", said());
    said().split("live: http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
}

/// What is at `path`, while the program listens.
fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// The value of a metric's series.
fn value(metrics: &str, series: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

#[test]
fn a_ramp_is_shown_while_it_goes_on() {
    if !has_namespaces() {
        return;
    }
    let flags = "--warm-up-duration 300ms --duration 3s --hold-duration 1s --drain 200ms --rate 100kpps";
    let line = format!("ramp --dut linux-bridge {flags} --json --live 127.0.0.1:0");
    let program = linerate(&line).start();
    let address = address(&program);
    let mut last = String::new();
    let mut samples = Vec::new();
    wait_until(Duration::from_secs(60), || {
        let now = get(&address, "/metrics");
        if let Some(metrics) = &now {
            last.clone_from(metrics);
            samples.extend(value(metrics, "linerate_samples_total"));
        }
        now.is_none()
    });
    assert!(get(&address, "/").is_none(), "it listens no longer than the program runs");
    let record = program.finish().well().record();
    samples.dedup();
    assert!(samples.len() > 5 && samples.is_sorted(), "{samples:?}");
    let shown = *samples.last().unwrap() as usize;
    assert!((1..=record.samples.len()).contains(&shown), "{shown} of {}", record.samples.len());
    // Counts are final only in the record: those of a sample are read when it ends, some 100 µs before all are there.
    let offered: u64 = record.samples[..shown].iter().map(|sample| sample.directions[0].offered).sum();
    let told = value(&last, "linerate_offered_frames_total{direction=\"0-1\"}").unwrap();
    assert!((told - offered as f64).abs() <= offered as f64 * 0.01, "{told} is shown, {offered} recorded");
    assert!(last.contains("strategy=\"ramp\""), "{last}");
}

#[test]
fn a_server_is_shown_and_addresses_in_use_are_refused() {
    if !has_namespaces() {
        return;
    }
    let serve = "serve --dut sink --rpc-port 0 --publish-port 0 --live";
    let server = linerate(&format!("{serve} 127.0.0.1:0")).start();
    if wait_until(Duration::from_secs(5), || server.stderr().contains("libzmq5")) {
        eprintln!("skipped: libzmq5 is not installed: run make setup");
        return;
    }
    let address = address(&server);
    let counts = |metrics: String| value(&metrics, "linerate_samples_total").is_some_and(|count| count > 2.0);
    assert!(wait_until(Duration::from_secs(60), || get(&address, "/metrics").is_some_and(counts)));
    let said = linerate(&format!("ramp --dut sink --live {address}")).on_my_machine().run();
    let refusal = said.refusal(1);
    assert!(refusal.contains("cannot listen at") && refusal.contains("--live"), "{refusal}");
    linerate("ramp --dut sink --live eth1").on_my_machine().run().refusal(2);
}
