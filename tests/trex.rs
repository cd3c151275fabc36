//! `linerate serve` and TRex's own client, the unmodified one from PyPI: what its users do works, and counts are
//! exact.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{REPOSITORY, Running, eventually, has_namespaces, linerate, listening, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;

/// The Python that has the client, where `make setup` put it.
pub fn python() -> Option<PathBuf> {
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
pub fn serve(device: &str, line_rate: &str) -> Option<(Running, [String; 2])> {
    let line = format!("serve --dut {device} --rpc-port 0 --publish-port 0 --line-rate {line_rate}");
    listening(linerate(&line).start())
}

/// What a script of tests/ saw that was told the server's ports and `arguments`.
pub fn script(server: &Running, ports: &[String; 2], name: &str, arguments: &[&str]) -> Option<Value> {
    let said = output_of(server, ports, name, arguments)?;
    // The client prints as it pleases; what was seen is the last line.
    Some(serde_json::from_str(said.trim().lines().last().unwrap()).unwrap())
}

/// What it prints.
fn output_of(server: &Running, ports: &[String; 2], name: &str, arguments: &[&str]) -> Option<String> {
    let mut client = Command::new(python()?);
    client.arg(Path::new(REPOSITORY).join("tests").join(name)).args(ports).args(arguments);
    let output = client.output().unwrap();
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} {arguments:?}: {said}\n{error}\n{}", server.stderr());
    Some(said.into_owned())
}

/// What the client saw of a scenario with this device.
fn drive(device: &str, scenario: &str) -> Option<Value> {
    python().filter(|_| has_namespaces())?;
    let (server, ports) = serve(device, "10gbps")?;
    let seen = script(&server, &ports, "trex_client.py", &[scenario]);
    server.signal(Signal::SIGINT);
    server.finish().well();
    seen
}

pub fn pair(seen: &Value) -> [u64; 2] {
    [0, 1].map(|port| seen[port].as_u64().unwrap_or_else(|| panic!("no number: {seen}")))
}

/// That of `sent` frames every tenth is lost, and they have 64 bytes.
fn lost_a_tenth(seen: &Value) -> Result<(), String> {
    lost_a_tenth_of_frames(seen)?;
    let (sent, received) = (pair(&seen["opackets"]), pair(&seen["ipackets"]));
    assert_eq!(pair(&seen["obytes"]), sent.map(|frames| 64 * frames));
    assert_eq!(pair(&seen["ibytes"]), received.map(|frames| 64 * frames));
    Ok(())
}

fn lost_a_tenth_of_frames(seen: &Value) -> Result<(), String> {
    let (sent, received) = (pair(&seen["opackets"]), pair(&seen["ipackets"]));
    for port in 0..2 {
        if received[1 - port] != sent[port] - sent[port] / 10 {
            return Err(format!("{} of {} frames of port {port} came back", received[1 - port], sent[port]));
        }
    }
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
fn chains_have_exactly_their_packets_in_every_engine() {
    const CHAINS: [(&str, u64, u64); 3] = [("3st", 600, 200), ("multi", 300, 200), ("loop", 120, 0)];
    for (device, scenario, chains) in [
        ("calibrated:drop-every=10", "chains", &CHAINS[..]),
        ("calibrated:drop-every=10 --engine af_xdp", "chain", &CHAINS[..1]),
        ("calibrated --engine memif", "chain", &CHAINS[..1]),
    ] {
        eventually(|| {
            let Some(seen) = drive(device, scenario) else { return Ok(()) };
            let count = |name: &str, key: &str| pair(&seen[name][key])[0];
            for &(name, frames, large) in chains {
                let (sent, unsent) = (count(name, "opackets"), count(name, "oerrors"));
                assert_eq!(sent + unsent, frames, "{name} of {device}: {seen}");
                if device.contains("drop") {
                    lost_a_tenth_of_frames(&seen[name])?;
                }
                if unsent > 0 {
                    return Err(format!("{unsent} of {frames} frames by {name} were too late"));
                }
                assert_eq!(count(name, "obytes"), 64 * (frames + large), "{name} of {device}: {seen}");
            }
            // 500 in ten bursts of twice the size, and 500 a second for two seconds at least.
            let [sent, unsent, bytes] = ["opackets", "oerrors", "obytes"].map(|key| count("beside", key));
            let at_most = 500.0 * seen["beside"]["at_most_s"].as_f64().unwrap() + 501.0;
            assert!((sent + unsent) as f64 <= at_most, "{device}: {seen}");
            if unsent > 0 || sent < 1_400 {
                return Err(format!("{sent} frames left, {unsent} were too late"));
            }
            assert_eq!(bytes, 64 * (sent + 500), "{device}: {seen}");
            Ok(())
        });
    }
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
fn addresses_are_resolved_and_packets_pushed_and_captured() {
    for engine in ["xdp", "af_xdp"] {
        eventually(|| {
            let Some(seen) = drive(&format!("linux-router --engine {engine}"), "service") else {
                return Ok(());
            };
            // The device's end of the lab's first link.
            assert_eq!(seen["resolved"], serde_json::json!(["resolved", "02:4c:6e:72:01:01"]));
            assert_eq!((&seen["status"], &seen["left"]), (&serde_json::json!(["ACTIVE"]), &0.into()));
            let expected =
                serde_json::json!([["RX", 0], ["RX", 0], ["RX", 0], ["TX", 8], ["TX", 8], ["TX", 8]]);
            if seen["captured"] == expected { Ok(()) } else { Err(format!("{}", seen["captured"])) }
        });
    }
}

/// The counts of group `id` that left by `port`: sent and received, frames and bytes.
fn group(seen: &Value, id: &str, port: usize) -> [u64; 4] {
    let flow = &seen["flow_stats"][id];
    let count = |key: &str, port: usize| flow[key][port.to_string()].as_u64().unwrap();
    let there = 1 - port;
    assert_eq!((count("rx_pkts", port), count("tx_pkts", there)), (0, 0), "{flow}");
    [count("tx_pkts", port), count("rx_pkts", there), count("tx_bytes", port), count("rx_bytes", there)]
}

/// That groups add up to their ports; what is lost of `[7, 12]`, and what was sent of them.
fn groups_add_up(seen: &Value) -> [(u64, u64); 2] {
    let (sent, received) = (pair(&seen["opackets"]), pair(&seen["ipackets"]));
    let [of_7, of_12, of_8] =
        [("7", 0), ("12", 0), ("8", 1)].map(|(id, port)| group(&seen["groups"], id, port));
    for (of, size) in [(of_7, 64), (of_12, 128), (of_8, 64)] {
        assert!(of[0] > 0, "{seen}");
        assert_eq!([of[2], of[3]], [of[0] * size, of[1] * size], "{seen}");
    }
    // All of port 1 is in group 8; port 0 has a stream without a group.
    assert_eq!([of_8[0], of_8[1]], [sent[1], received[0]], "{seen}");
    assert!(of_7[0] + of_12[0] < sent[0] && of_7[1] + of_12[1] < received[1], "{seen}");
    let dropped = seen["groups"]["latency"]["12"]["err_cntrs"]["dropped"].as_u64().unwrap();
    assert_eq!(dropped, of_12[0] - of_12[1], "{seen}");
    [of_7, of_12].map(|of| (of[0] - of[1], of[0]))
}

#[test]
fn losses_and_latencies_of_groups_are_exact() {
    eventually(|| {
        let Some(seen) = drive("calibrated:drop-every=10", "groups") else { return Ok(()) };
        assert_eq!(seen["active"], serde_json::json!({"flow_stats": [7, 8], "latency": [12]}));
        assert_eq!(seen["removed"], serde_json::json!({"flow_stats": [], "latency": []}));
        assert_eq!(seen["cleared"], 0);
        groups_add_up(&seen);
        lost_a_tenth_of_frames(&seen)?;
        let of_8 = group(&seen["groups"], "8", 1);
        assert_eq!(of_8[1], of_8[0] - of_8[0] / 10, "{seen}");

        let latency = &seen["groups"]["latency"]["12"];
        let errors = &latency["err_cntrs"];
        assert_eq!(
            (&errors["dup"], &errors["out_of_order"], &errors["seq_too_low"]),
            (&0.into(), &0.into(), &0.into())
        );
        let dropped = errors["dropped"].as_u64().unwrap();
        assert!((1..=dropped).contains(&errors["seq_too_high"].as_u64().unwrap()), "{seen}");
        let times = &latency["latency"];
        let counted: u64 = times["histogram"].as_object().unwrap().values().flat_map(Value::as_u64).sum();
        assert_eq!(counted, group(&seen["groups"], "12", 0)[1], "{times}");
        let of = |key: &str| times[key].as_f64().unwrap();
        assert!(of("total_min") <= of("average") && of("average") <= of("total_max"), "{times}");
        assert!(of("total_max") > 0.0 && of("last_max") <= of("total_max") && of("jitter") >= 0.0, "{times}");

        // Latency streams keep their rate at the start; the update changes all alike.
        for (id, wanted) in [("12", 200.0), ("8", 2_200.0)] {
            let rate = seen["running"]["flow_stats"][id]["tx_pps"]["total"].as_f64().unwrap();
            if !(0.8 * wanted..1.2 * wanted).contains(&rate) {
                return Err(format!("{rate} pps of group {id} instead of {wanted}"));
            }
        }
        Ok(())
    });
}

#[test]
fn groups_are_counted_alike_in_user_space() {
    for engine in ["af_xdp", "memif"] {
        eventually(|| {
            let device = format!("calibrated:drop-every=10 --engine {engine}");
            let Some(seen) = drive(&device, "groups") else { return Ok(()) };
            groups_add_up(&seen);
            lost_a_tenth_of_frames(&seen)
        });
    }
}

#[test]
fn losses_of_groups_by_chance_are_those_of_the_ports() {
    eventually(|| {
        let Some(seen) = drive("calibrated:loss=1%", "groups") else { return Ok(()) };
        let (lost, sent) =
            groups_add_up(&seen).into_iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let share = lost as f64 / sent as f64;
        // Five standard deviations of a hundredth.
        let most = 5.0 * (0.01 * 0.99 / sent as f64).sqrt();
        if (share - 0.01).abs() < most { Ok(()) } else { Err(format!("{lost} of {sent} were lost")) }
    });
}

#[test]
fn what_is_refused_is_refused_by_name() {
    let Some(seen) = drive("calibrated", "refused") else { return };
    let refusals: Vec<&str> = seen["refusals"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    let expected = ["start_paused", "exceeds port line rate", "already taken by", ""];
    assert_eq!(refusals.len(), expected.len(), "{refusals:?}");
    for (refusal, expected) in refusals.iter().zip(expected) {
        assert!(refusal.contains(expected) && *refusal != "not refused", "{refusal}");
    }
}

/// What a device of `rate` forwards without loss, by a script of TRex's users, as the articles read it: the load of
/// the last second before frames were lost for good.
fn by_script(rate: &str, steps: u32) -> Option<f64> {
    // Frames of 64 bytes have 84 on the wire: 40,000 of them a second are line rate.
    let (server, ports) = serve(&format!("calibrated:rate={rate},burst=64"), "26.88mbps")?;
    let seen = script(&server, &ports, "trex_loadtest.py", &[&steps.to_string(), "1", "2"])?;
    server.signal(Signal::SIGINT);
    server.finish().well();
    let stats = seen["stats"].as_object().unwrap();
    assert_eq!(stats.len(), steps as usize + 2);
    let mut lossless = 0.0;
    let mut before = [0, 0];
    for second in 0..stats.len() {
        let second = &stats[&second.to_string()];
        let now = [second["0"]["opackets"].as_u64().unwrap(), second["1"]["ipackets"].as_u64().unwrap()];
        let [sent, received] = [0, 1].map(|it| (now[it] - before[it]) as f64);
        if received >= sent * 0.995 {
            lossless = sent / second["global"]["seconds"].as_f64().unwrap();
        }
        before = now;
    }
    Some(lossless)
}

#[test]
fn a_script_of_trex_s_users_finds_what_our_ramp_finds() {
    if python().is_none() || !has_namespaces() {
        return;
    }
    const STEPS: u32 = 4;
    const MOST: f64 = 40_000.0;
    eventually(|| {
        let Some(theirs) = by_script("22kpps", STEPS) else { return Ok(()) };
        let line = "ramp --dut calibrated:rate=22kpps,burst=64 --rate 40kpps --step 500ms --duration 2s";
        let line = format!("{line} --warm-up-duration 200ms --hold-duration 500ms --drain 200ms --json");
        let record = linerate(&line).run().well().record();
        let ours = record.directions[0].max_rate_pps;
        let step = MOST / f64::from(STEPS);
        if (theirs - ours).abs() <= step && (16_000.0..22_500.0).contains(&theirs) {
            Ok(())
        } else {
            Err(format!("{theirs} packets/s by the script, {ours} by ramp, steps of {step}"))
        }
    });
}

/// A number of `/proc/PID/status`, in its unit.
fn status(server: &Running, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// `clients` at once make so many connects and calls, a quarter of them malformed: each call is answered, and
/// nothing is left behind.
fn storm(clients: u32, connects: u32, calls: u32) {
    if python().is_none() || !has_namespaces() {
        return;
    }
    let Some((server, ports)) = serve("calibrated", "10gbps") else { return };
    let arguments = |connects: u32, calls: u32| [clients, connects, calls].map(|number| number.to_string());
    let run = |connects, calls| {
        let arguments = arguments(connects, calls);
        script(&server, &ports, "trex_storm.py", &arguments.each_ref().map(String::as_str)).unwrap()
    };
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    // What is set up once is not counted.
    run(clients, 10 * clients);
    let (memory, files) = (status(&server, "VmRSS"), descriptors());
    let seen = run(connects, calls);
    assert_eq!(seen["failed"], serde_json::json!([]), "{seen}\n{}", server.stderr());
    assert_eq!(seen["answered"], calls, "{seen}");
    assert!(seen["refused"].as_u64().unwrap() >= u64::from(calls) / 4, "{seen}");
    let grown = status(&server, "VmRSS").saturating_sub(memory);
    assert!(grown < 32 << 10, "{grown} kB more than before");
    assert!(wait_until(Duration::from_secs(10), || descriptors() <= files + 2), "{} files", descriptors());
    // It still serves.
    let seen = script(&server, &ports, "trex_client.py", &["percent"]).unwrap();
    assert!(pair(&seen["opackets"])[0] > 0, "{seen}");
    server.signal(Signal::SIGINT);
    server.finish().well();
}

#[test]
fn many_clients_and_malformed_calls_do_no_harm() {
    storm(20, 100, 2_500);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_thousand_connects_and_a_hundred_thousand_calls_do_no_harm() {
    storm(20, 1_000, 100_000);
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn the_traffic_of_a_client_that_is_killed_stops_and_its_ports_are_free() {
    let Some(seen) = drive("calibrated", "killed") else { return };
    assert!(seen["by_the_owner"].as_u64().unwrap() > 0, "{seen}");
    let took = seen["took"].as_f64().unwrap();
    assert!((50.0..75.0).contains(&took), "{seen}");
}

/// What a user of the console does.
const BATCH: &str = "\
portattr -a
start -f console.py -m 1kpps -p 0
stats -g
update -m 2kpps -p 0
pause -p 0
resume -p 0
streams -a
stats -p
stats -s
stats -l
stats --lh
stop -p 0
start -f console.py -m 5% -p 0
quit
";

#[test]
fn the_console_runs_a_batch() {
    if python().is_none() || !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let profile = crate::trex_profiles::IMIX.replacen(
        "STLStream(",
        "STLStream(flow_stats=STLFlowLatencyStats(pg_id=pps), ",
        1,
    );
    std::fs::write(directory.path().join("console.py"), profile).unwrap();
    let batch = directory.path().join("batch");
    let profile = directory.path().join("console.py").display().to_string();
    std::fs::write(&batch, BATCH.replace("console.py", &profile)).unwrap();
    let Some((server, ports)) = serve("calibrated:drop-every=10", "10gbps") else { return };
    let said = output_of(&server, &ports, "trex_console.py", &[batch.to_str().unwrap()]).unwrap();
    server.signal(Signal::SIGINT);
    server.finish().well();
    for (at, line) in BATCH.lines().enumerate() {
        let command = line.split(' ').next().unwrap();
        assert!(said.contains(&format!("Executing line {} : '{command}", at + 1)), "{line}: {said}");
    }
    assert!(!said.contains("FAILED") && !said.contains("error:"), "{said}");
    for shown in ["Port Status", "Streams Statistics", "Latency Statistics", "Latency Histogram", "opackets"]
    {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    assert_eq!(said.matches("Starting traffic on port(s) [0._]:").count(), 2, "{said}");
}
