//! `linerate serve` and TRex's own client, the unmodified one from PyPI: what its users do works, and counts are
//! exact.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{REPOSITORY, Running, eventually, has_namespaces, linerate, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;

/// The Python that has the client, where `make setup` put it.
fn python() -> Option<PathBuf> {
    let python = Path::new(REPOSITORY).join("target/python/bin/python3");
    let client = "import lbr_trex_client";
    let has_it =
        Command::new(&python).args(["-c", client]).output().is_ok_and(|output| output.status.success());
    if !has_it {
        eprintln!("skipped: TRex's client is not installed in target/python: run make setup");
    }
    has_it.then_some(python)
}

/// A server, and the ports that it listens at.
fn serve(device: &str) -> Option<(Running, [String; 2])> {
    let line = format!("serve --dut {device} --rpc-port 0 --publish-port 0 --line-rate 10gbps");
    let server = linerate(&line).start();
    let ready = wait_until(Duration::from_secs(60), || {
        let said = server.stderr();
        said.contains("TRex clients") || said.contains("linerate: ")
    });
    let said = server.stderr();
    assert!(ready, "the server did not start: {said}");
    if said.contains("libzmq5") {
        eprintln!("skipped: libzmq5 is not installed: run make setup");
        return None;
    }
    let port = |what: &str| {
        let rest = said.split(&format!("{what} at tcp://127.0.0.1:")).nth(1).unwrap();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    let ports = [port("calls"), port("events")];
    Some((server, ports))
}

/// What the client saw of a scenario with this device.
fn drive(device: &str, scenario: &str) -> Option<Value> {
    let python = python().filter(|_| has_namespaces())?;
    let (server, [calls, events]) = serve(device)?;
    let script = Path::new(REPOSITORY).join("tests/trex_client.py");
    let mut client = Command::new(python);
    client.arg(script).args([calls.as_str(), events.as_str(), scenario]);
    let output = client.output().unwrap();
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{scenario}: {said}\n{error}\n{}", server.stderr());
    server.signal(Signal::SIGINT);
    server.finish().well();
    // The client prints as it pleases; what was seen is the last line.
    Some(serde_json::from_str(said.trim().lines().last().unwrap()).unwrap())
}

fn pair(seen: &Value) -> [u64; 2] {
    [0, 1].map(|port| seen[port].as_u64().unwrap_or_else(|| panic!("no number: {seen}")))
}

/// That of `sent` frames every tenth is lost, and they have 64 bytes.
fn lost_a_tenth(seen: &Value) -> Result<(), String> {
    let (sent, received) = (pair(&seen["opackets"]), pair(&seen["ipackets"]));
    for port in 0..2 {
        if received[1 - port] != sent[port] - sent[port] / 10 {
            return Err(format!("{} of {} frames of port {port} came back", received[1 - port], sent[port]));
        }
    }
    assert_eq!(pair(&seen["obytes"]), sent.map(|frames| 64 * frames));
    assert_eq!(pair(&seen["ibytes"]), received.map(|frames| 64 * frames));
    Ok(())
}

#[test]
fn trex_s_client_starts_changes_pauses_and_stops_traffic() {
    eventually(|| {
        let Some(seen) = drive("calibrated:drop-every=10", "steady") else { return Ok(()) };
        lost_a_tenth(&seen)?;
        assert_eq!(pair(&seen["cleared"]), [0, 0]);
        assert_eq!(seen["while_paused"], 0, "{seen}");
        for (rates, wanted) in [(&seen["rates"], 2_000.0), (&seen["updated"], 4_000.0)] {
            for port in 0..2 {
                let rate = rates[port].as_f64().unwrap();
                if !(0.8 * wanted..1.1 * wanted).contains(&rate) {
                    return Err(format!("{rate} pps instead of {wanted}"));
                }
            }
        }
        let after = seen["after_pause"].as_u64().unwrap();
        if (2_500..5_000).contains(&after) { Ok(()) } else { Err(format!("{after} frames in a second")) }
    });
}

#[test]
fn percentages_are_of_line_rate_and_an_end_is_waited_for() {
    eventually(|| {
        let Some(seen) = drive("calibrated:drop-every=10", "percent") else { return Ok(()) };
        lost_a_tenth(&seen)?;
        // 0.01 % of 10 Gb/s is 1,488 frames of 84 bytes.
        let sent = pair(&seen["opackets"])[0];
        let took = seen["took"].as_f64().unwrap();
        assert!((0.9..15.0).contains(&took), "{seen}");
        if (1_400..1_600).contains(&sent) { Ok(()) } else { Err(format!("{sent} frames were sent")) }
    });
}

#[test]
fn bursts_have_exactly_their_packets() {
    eventually(|| {
        let Some(seen) = drive("calibrated:drop-every=10", "bursts") else { return Ok(()) };
        for (name, frames) in [("single", 700), ("multi", 200)] {
            let sent = pair(&seen[name]["opackets"])[0];
            if sent != frames {
                return Err(format!("{sent} frames in {name} bursts, not {frames}"));
            }
            assert_eq!(pair(&seen[name]["ipackets"])[1], frames - frames / 10, "{seen}");
        }
        Ok(())
    });
}

#[test]
fn streams_of_different_rates_keep_their_proportions() {
    eventually(|| {
        let Some(seen) = drive("linux-router", "mixed") else { return Ok(()) };
        let (sent, bytes) = (pair(&seen["opackets"])[0], pair(&seen["obytes"])[0]);
        // The mean of simple IMIX.
        let mean = (28.0 * 64.0 + 16.0 * 594.0 + 4.0 * 1518.0) / 48.0;
        let size = bytes as f64 / sent as f64;
        assert!((size / mean - 1.0).abs() < 0.01, "{size} instead of {mean}");
        let received = pair(&seen["ipackets"])[1];
        if received == sent && (2_700..3_200).contains(&sent) {
            Ok(())
        } else {
            Err(format!("{received} of {sent} frames came back"))
        }
    });
}

#[test]
fn what_is_refused_is_refused_by_name() {
    let Some(seen) = drive("calibrated", "refused") else { return };
    let refusals: Vec<&str> = seen["refusals"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    let expected = ["flow statistics", "exceeds port line rate", "already taken by", ""];
    assert_eq!(refusals.len(), expected.len(), "{refusals:?}");
    for (refusal, expected) in refusals.iter().zip(expected) {
        assert!(refusal.contains(expected) && *refusal != "not refused", "{refusal}");
    }
}
