//! From records to what people and other programs read: the bench, the page, the exports; and what
//! the program says of the machine.

use std::fs;
use std::process::Command;

use crate::common::{REPOSITORY, has_namespaces, linerate, records};
use results::record::Status;
use serde_json::Value;

/// Checks that `page` is one whole offline page: it fetches nothing.
fn is_offline(page: &str) {
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"), "{:.80}", page);
    assert!(page.trim_end().ends_with("</html>"));
    for fetch in ["src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        for (at, _) in page.match_indices(fetch) {
            let text: String = page[at..].chars().take(80).collect();
            let inline = text.contains("data:") || !(text.contains("http") || text.contains("//"));
            assert!(inline, "fetches: {text}");
        }
    }
    let addresses = page.match_indices("http://").chain(page.match_indices("https://"));
    for (at, _) in addresses {
        // Names of XML namespaces and comments fetch nothing; links and sources would.
        let start = page[..at].char_indices().rev().nth(12).map_or(0, |(start, _)| start);
        let before = &page[start..at];
        assert!(!["href=", "src=", "url(", "action="].iter().any(|word| before.contains(word)), "{before}");
    }
}

#[test]
fn the_quick_bench_runs_eight_load_tests_and_reports_them() {
    if !has_namespaces() {
        return;
    }
    let line = "bench --quick --duration 500ms --search 1s --retries 0 --dut calibrated:rate=5kpps --line-rate 10mbps --json";
    let bench = linerate(line).run().well();
    let kept = records(&bench.directory.join("runs/quick"));
    let tests: Vec<&str> = kept.iter().map(|record| record.test.as_str()).collect();
    let one_way = ["1514 B", "imix", "64 B", "64 B, 1 flow"];
    let both_ways = one_way.map(|test| format!("{test} bidirectional"));
    let right: Vec<&str> = one_way.into_iter().chain(both_ways.iter().map(String::as_str)).collect();
    assert_eq!(tests, right);
    assert_eq!(serde_json::from_value::<Vec<results::Record>>(bench.json()).unwrap(), kept);
    for record in &kept {
        assert_eq!((record.status, record.line_rate_bps), (Status::Complete, 10e6), "{}", record.name);
        assert_eq!(record.directions.len(), 1 + usize::from(record.profile.bidirectional), "{}", record.name);
        assert!(record.directions.iter().all(|direction| direction.forwarded > 0), "{}", record.name);
        assert!(record.directions.iter().all(|direction| direction.evidence.is_some()), "{}", record.name);
        assert_eq!(results::consistency::contradictions(record), Vec::<String>::new(), "{}", record.name);
    }
    // Every limit was searched for a second time; what that found is within the interval, unless it was disturbed.
    let second = records(&bench.directory.join("runs/quick/second"));
    assert!(!second.is_empty() && second.iter().all(|record| record.strategy.name == "search"), "{second:?}");
    for evidence in kept.iter().flat_map(|record| &record.directions).filter_map(|it| it.evidence) {
        let (Some(limit), Some(second)) = (evidence.limit, evidence.second) else { continue };
        let upper = limit.upper_pps.unwrap_or(f64::INFINITY);
        let holds_upper = second.upper_pps.is_none_or(|it| it <= upper);
        assert!(limit.lower_pps <= second.lower_pps && holds_upper, "{evidence:?}");
    }
    // 1514 bytes at 10 Mb/s are 815 frames a second, fewer than the device's 5,000; 64 bytes are 14,881.
    assert!(kept[0].directions[0].max_forwarded_pps < 900.0);
    // It says which line rate it chose, and shows the table.
    for clue in [
        "8 runs (8 tests × 1 device)",
        "line rate 10.00 Mbps",
        "ramps end at 97 % of it (--rate), because a real link at 100 %",
        "[ 8/8]",
        "64 B, 1 flow bidirectional",
        "calibrated:rate=5kpps",
    ] {
        assert!(bench.stderr.contains(clue), "no '{clue}' in: {}", bench.stderr);
    }
    let page = fs::read_to_string(bench.directory.join("report.html")).unwrap();
    is_offline(&page);
    assert!(kept.iter().all(|record| page.contains(&record.id)));
}

#[test]
fn records_become_a_page_and_what_other_programs_read() {
    if !has_namespaces() {
        return;
    }
    // A drain ends when all frames are back. One that a hypervisor holds up for longer than a drain lasts counts as lost in
    // its sample and as returned in the totals.
    let line = "ramp --dut xdp-xconnect --rate 2kpps --warm-up-duration 200ms --duration 2s --step 100ms \
                --hold-duration 300ms --drain 2s";
    let first = linerate(line).arg("--bidirectional").run().well();
    let directory = first.directory.as_path();
    linerate(line).arg("--name=second").in_directory(directory).run().well();
    let here = |line: &str| linerate(line).in_directory(directory).run();
    let kept = first.records();
    assert_eq!(kept.len(), 2);

    let report = here("report runs --output page.html --title Mine").well();
    assert_eq!(report.stdout, "");
    let page = fs::read_to_string(directory.join("page.html")).unwrap();
    is_offline(&page);
    assert!(page.contains("Mine") && page.contains("second"));
    assert!(kept.iter().all(|record| page.contains(&record.id)));

    // CSV: a line for each sample and direction.
    let csv = here("export runs --format csv").well().stdout;
    // The names of tests hold a comma, and are quoted.
    let csv = csv.replace("64 B, 1 flow", "64 B 1 flow");
    let samples: usize = kept.iter().map(|record| record.samples.len() * record.directions.len()).sum();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + samples);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
    let column = |name: &str| {
        lines[0].iter().position(|column| *column == name).unwrap_or_else(|| panic!("no {name}"))
    };
    let sum =
        |name: &str| lines[1..].iter().map(|line| line[column(name)].parse::<u64>().unwrap()).sum::<u64>();
    let total = |field: fn(&results::record::Direction) -> u64| -> u64 {
        kept.iter().flat_map(|record| &record.directions).map(field).sum()
    };
    assert_eq!(sum("offered"), total(|direction| direction.offered));
    assert_eq!(sum("forwarded"), total(|direction| direction.forwarded));

    // trex-loadtest: one run a file, its seconds in order.
    let refused = here("export runs --format trex-loadtest");
    assert!(refused.refusal(2).contains("single record"), "{}", refused.stderr);
    let file = format!("export runs/{}.json --format trex-loadtest", kept[0].id);
    let loadtest: Value = here(&file).well().json();
    let seconds: Vec<&String> = loadtest["stats"].as_object().unwrap().keys().collect();
    assert!((2..=4).contains(&seconds.len()), "{seconds:?}");
    for second in loadtest["stats"].as_object().unwrap().values() {
        for port in ["0", "1"] {
            let [sent, received] = ["tx_pps", "rx_pps"].map(|field| second[port][field].as_f64().unwrap());
            assert!(sent <= 2100.0 && received <= 2100.0, "{second}");
        }
    }
    assert_eq!(loadtest["vars"]["unidirectional"], false);

    // Packed, as published records are, they make the same page.
    for record in &kept {
        let packed = Command::new("gzip").arg(directory.join(format!("runs/{}.json", record.id))).status();
        assert!(packed.unwrap().success());
    }
    here("report runs --output packed.html --title Mine").well();
    assert_eq!(fs::read_to_string(directory.join("packed.html")).unwrap(), page);
}

#[test]
fn what_is_no_record_is_passed_over_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let here = |line: &str| linerate(line).in_directory(directory.path()).run();
    fs::create_dir(directory.path().join("runs")).unwrap();
    let empty = here("report runs");
    assert!(empty.refusal(1).contains("found nothing to report on"), "{}", empty.stderr);
    fs::write(directory.path().join("runs/other.json"), "{\"schema\":\"other/1\"}").unwrap();
    let foreign = here("report runs");
    assert!(foreign.stderr.contains("other.json"), "{}", foreign.stderr);
    assert_eq!(foreign.status.code(), Some(1));
    let missing = here("report nowhere");
    let refusal = missing.refusal(1);
    assert!(refusal.contains("nowhere"), "{refusal}");
    assert_eq!(refusal.matches("os error 2").count(), 1, "said more than once: {refusal}");
    assert!(!directory.path().join("report.html").exists());
}

#[test]
fn the_doctor_finds_this_machine_fit_and_names_a_remedy_for_each_lack() {
    if !has_namespaces() {
        return;
    }
    let doctor = linerate("doctor --json").run().well();
    let checks = doctor.json();
    let checks = checks.as_array().unwrap();
    let names: Vec<&str> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
    for name in ["kernel", "capabilities", "cores", "network namespaces", "veth", "XDP"] {
        assert!(names.contains(&name), "no {name} among {names:?}");
    }
    for check in checks {
        let level = check["level"].as_str().unwrap();
        assert!(["good", "degraded"].contains(&level), "{check}");
        assert!(check["found"].as_str().is_some_and(|found| !found.is_empty()), "{check}");
        assert_eq!(check["remedy"].is_string(), level != "good", "{check}");
    }
    let people = linerate("doctor").run().well();
    assert!(names.iter().all(|name| people.stdout.contains(name)), "{}", people.stdout);
}

#[test]
fn profiles_are_listed_and_shown() {
    let list = linerate("profile").run().well().stdout;
    for clue in ["bench", "imix", "udp_1pkt_simple", "--size", "--flows", "--vlan"] {
        assert!(list.contains(clue), "no '{clue}' in: {list}");
    }
    let show = linerate("profile show --size imix --flows var2 --count 48").run().well().stdout;
    for clue in ["16.0.0.4", "48.0.0.4", "1514"] {
        assert!(show.contains(clue), "no '{clue}' in: {show}");
    }
    let forecast = "profile show --count 1 --queues 4";
    let spread = linerate(&format!("{forecast} --flows var2 -b")).run().well().stdout;
    // Source and destination step together there: half of the queues stay idle, and under a key that repeats all but one.
    assert_eq!(spread.matches("2 of 4 queues take frames").count(), 2, "{spread}");
    let symmetric = linerate(&format!("{forecast} --flows var2 --rss-key symmetric")).run().well().stdout;
    assert!(symmetric.contains("1 of 4 queues take frames"), "{symmetric}");
    let tunnel = linerate(forecast).arg("--profile").arg(format!("{REPOSITORY}/profiles/gre-tunnel.toml"));
    let tunnel = tunnel.run().well().stdout;
    assert!(tunnel.contains("1 of 4 queues take frames; together they bear at most 1.00 times"), "{tunnel}");
}
