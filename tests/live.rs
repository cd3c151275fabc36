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
    // A sample is shown once all its frames have left.
    let offered: u64 = record.samples[..shown].iter().map(|sample| sample.directions[0].offered).sum();
    let told = value(&last, "linerate_offered_frames_total{direction=\"0-1\"}").unwrap();
    assert_eq!(told, offered as f64);
    assert!(last.contains("strategy=\"ramp\""), "{last}");
}

#[test]
fn a_load_is_steered_by_the_page_and_the_record_has_each_sample_s_own() {
    if !has_namespaces() {
        return;
    }
    let flags = "--warm-up-duration 0s --duration 6s --step 200ms --rate 10kpps --line-rate 10gbps";
    let program = linerate(&format!("saturate --dut linux-bridge {flags} --json --live 127.0.0.1:0")).start();
    let address = address(&program);
    let page = get(&address, "/").unwrap();
    let token = page.split("name=\"token\" content=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let steer = |body: &str| {
        let head = format!(
            "POST /load HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nX-Linerate-Token: {token}\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(&address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.starts_with("HTTP/1.1 200"))
    };
    // Before the rate is sent there is nothing to steer.
    let wait = Duration::from_secs(60);
    assert!(wait_until(wait, || steer(r#"{"percent": 0.1, "paused": false}"#) != Some(false)));
    let shown = |load: f64| {
        let series = "linerate_intended_frames_per_second{direction=\"0-1\"}";
        let is_load = |metrics: String| value(&metrics, series).is_some_and(|now| (now - load).abs() < 1.0);
        // It may have ended, on a machine that is busy.
        get(&address, "/metrics").is_none_or(is_load)
    };
    // 0.1 % of 10 Gb/s in frames of 84 bytes.
    assert!(wait_until(wait, || shown(14_880.95)));
    assert_ne!(steer(r#"{"percent": 0.1, "paused": true}"#), Some(false));
    assert!(wait_until(wait, || shown(0.0)));
    let record = program.finish().well().record();
    let mut loads: Vec<u64> =
        record.samples.iter().map(|it| it.directions[0].intended_pps.round() as u64).collect();
    for sample in &record.samples {
        let direction = &sample.directions[0];
        let due = direction.intended_pps * sample.duration_s;
        let left = (direction.offered + direction.unsent) as f64;
        // An interval is as long for the worker as for its counts, to some milliseconds of a busy host.
        assert!((left - due).abs() <= due * 0.25 + 20.0, "{left} of {due}: {direction:?}");
    }
    loads.dedup();
    let expected = [10_000, 14_881, 0];
    assert!(loads == expected || loads == expected[1..], "{loads:?}");
    assert!(record.notes.iter().any(|note| note.contains("steered")), "{:?}", record.notes);
}

#[test]
fn a_screen_needs_a_terminal() {
    let refusal = |line: &str| linerate(line).on_my_machine().run().refusal(2).to_owned();
    assert!(refusal("ramp --dut sink --tui").contains("--tui needs a terminal"));
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
