//! The server from outside: requests by plain sockets, and the page in a real headless browser.
#![allow(clippy::unwrap_used)] // a test may panic

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use live::{About, Board, File, Server, Steering};
use report::live::{PAGE, SCRIPT, STYLE};
use results::fixtures::Scenario;
use results::record::Sample;

const FILES: &[File] = &[
    File { path: "/", kind: "text/html; charset=utf-8", body: PAGE },
    File { path: "/live.js", kind: "text/javascript; charset=utf-8", body: SCRIPT },
    File { path: "/live.css", kind: "text/css; charset=utf-8", body: STYLE },
];

fn about() -> About {
    About {
        name: "a \"router\"\\".to_owned(),
        strategy: "ramp".to_owned(),
        loss_threshold: 0.001,
        line_rate_bps: 1e10,
        mean_frame_size: 64.0,
        planned_s: 60.0,
        ..About::default()
    }
}

/// A board with the samples of a record, served.
fn served() -> (Board, Vec<Sample>, Server) {
    let samples =
        Scenario { bidirectional: true, disturbed_at: Some(3), ..Scenario::default() }.record().samples;
    let board = Board::default();
    board.begin(about());
    put(&board, &samples);
    let server = Server::start("127.0.0.1:0".parse().unwrap(), board.clone(), FILES).unwrap();
    (board, samples, server)
}

fn put(board: &Board, samples: &[Sample]) {
    let mut waiting: VecDeque<_> = samples.iter().cloned().map(Arc::new).collect();
    while !waiting.is_empty() {
        board.put(&mut waiting);
    }
}

fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn get(address: SocketAddr, path: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

/// What a POST to /load gets, with these headers.
fn post(address: SocketAddr, headers: &str, body: &str) -> String {
    let length = body.len();
    send(address, &format!("POST /load HTTP/1.1\r\nContent-Length: {length}\r\n{headers}\r\n\r\n{body}"))
}

#[test]
fn only_the_page_itself_changes_the_load() {
    let (board, _, server) = served();
    let address = server.address();
    let page = get(address, "/");
    let token = page.split("name=\"token\" content=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert!(token.len() == 32 && !page.contains("{token}"), "{token}");
    let wish = r#"{"percent": 50, "paused": false}"#;
    let headers = |host: &str, origin: &str, token: &str| {
        format!("Host: {host}\r\nOrigin: {origin}\r\nX-Linerate-Token: {token}")
    };
    let (host, own) = (address.to_string(), format!("http://{address}"));
    let right = headers(&host, &own, &token);
    let refused = |answer: String, status: &str, why: &str| {
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(why), "{answer}");
    };
    // The load is none that can be changed.
    refused(post(address, &right, wish), "409", "cannot be changed now");
    assert_eq!(board.steer(Some(Steering { percent: 10.0, paused: false })), None);
    refused(post(address, &headers(&host, "http://evil.example", &token), wish), "403", "Origin");
    refused(post(address, &headers(&host, "null", &token), wish), "403", "Origin");
    refused(post(address, &format!("Host: {host}\r\nX-Linerate-Token: {token}"), wish), "403", "Origin");
    refused(post(address, &format!("{right}\r\nOrigin: {own}"), wish), "403", "Origin");
    refused(post(address, &format!("Host: {host}\r\nOrigin: {own}"), wish), "403", "token");
    refused(post(address, &headers(&host, &own, "0123"), wish), "403", "token");
    refused(
        post(address, &headers("evil.example", "http://evil.example", &token), wish),
        "403",
        "IP address",
    );
    refused(post(address, &right, r#"{"percent": 500, "paused": false}"#), "409", "at most 100 %");
    for nonsense in ["", "{}", "[]", "percent=5", r#"{"percent": "x", "paused": 1}"#] {
        refused(post(address, &right, nonsense), "400", "must be like");
    }
    let large = format!("POST /load HTTP/1.1\r\nContent-Length: 5000\r\n{right}\r\n\r\n");
    refused(send(address, &large), "413", "too long");
    let get = format!("GET /load HTTP/1.1\r\n{right}\r\n\r\n");
    refused(send(address, &get), "404", "only the page");
    assert_eq!(board.steer(Some(Steering { percent: 10.0, paused: false })), None, "nothing has changed it");
    assert!(post(address, &right, wish).starts_with("HTTP/1.1 200 OK"));
    let wished = Steering { percent: 50.0, paused: false };
    assert_eq!(board.steer(Some(Steering { percent: 10.0, paused: false })), Some(wished));
    assert!(
        body(&self::get(address, "/samples?after=0"))
            .contains(r#""steering":{"percent":50.0,"paused":false}"#)
    );
}

#[test]
fn nobody_changes_the_load_where_others_reach_the_server() {
    let board = Board::default();
    let server = Server::start("0.0.0.0:0".parse().unwrap(), board.clone(), FILES).unwrap();
    let address = SocketAddr::new("127.0.0.1".parse().unwrap(), server.address().port());
    board.steer(Some(Steering { percent: 10.0, paused: false }));
    let headers = format!("Host: {address}\r\nOrigin: http://{address}\r\nX-Linerate-Token: ");
    let answer = post(address, &headers, r#"{"percent": 50, "paused": false}"#);
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("loopback"), "{answer}");
    assert!(get(address, "/").contains("name=\"token\" content=\"\""));
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

/// Metrics by name, each value by its labels; the format's rules hold.
fn parsed(text: &str) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut metrics: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# TYPE ") {
            let (name, kind) = comment.split_once(' ').unwrap();
            assert_eq!(kinds.insert(name, kind), None, "{name} is there twice");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let family = name.strip_suffix("_sum").or(name.strip_suffix("_count")).unwrap_or(name);
        assert!(kinds.contains_key(family), "{name} has no type");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{name}"
        );
        let labels = labels.strip_suffix('}').unwrap().to_owned();
        let known = metrics.entry(name.to_owned()).or_default().insert(labels, value.parse().unwrap());
        assert!(known.is_none(), "{series} is there twice");
    }
    metrics
}

#[test]
fn metrics_are_the_sums_of_the_samples() {
    let (board, samples, server) = served();
    let answer = get(server.address(), "/metrics");
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("text/plain; version=0.0.4"),
        "{answer}"
    );
    let metrics = parsed(body(&answer));
    for (direction, way) in ["0-1", "1-0"].into_iter().enumerate() {
        let label = format!("direction=\"{way}\"");
        let all = || samples.iter().map(|sample| &sample.directions[direction]);
        let (offered, forwarded): (u64, u64) =
            (all().map(|it| it.offered).sum(), all().map(|it| it.forwarded).sum());
        assert_eq!(metrics["linerate_offered_frames_total"][&label], offered as f64);
        assert_eq!(metrics["linerate_forwarded_frames_total"][&label], forwarded as f64);
        assert_eq!(metrics["linerate_lost_frames_total"][&label], (offered - forwarded) as f64);
        let last = all().next_back().unwrap();
        assert_eq!(metrics["linerate_offered_frames_per_second"][&label], last.offered_pps);
        let median = metrics["linerate_latency_seconds"][&format!("{label},quantile=\"0.5\"")];
        assert_eq!(median, last.latency.unwrap().p50_ns as f64 / 1e9);
        assert_eq!(metrics["linerate_latency_seconds_count"][&label], forwarded as f64);
    }
    assert_eq!(metrics["linerate_samples_total"][""], samples.len() as f64);
    assert_eq!(metrics["linerate_disturbed_samples_total"][""], 1.0);
    assert_eq!(metrics["linerate_running"][""], 1.0);
    let labels = metrics["linerate_run_info"].keys().next().unwrap();
    assert_eq!(labels, r#"name="a \"router\"\\",strategy="ramp",dut="""#);
    board.end();
    assert_eq!(parsed(&board.metrics())["linerate_running"][""], 0.0);
}

#[test]
fn the_dashboard_names_metrics_that_there_are() {
    let (_board, _, server) = served();
    let mut metrics: BTreeSet<String> =
        parsed(body(&get(server.address(), "/metrics"))).into_keys().collect();
    // Of devices that are a graph of nodes alone; lib.rs tests where it comes from.
    metrics.insert("linerate_node_clocks_per_packet".to_owned());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana.json");
    let dashboard: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() >= 6, "{expressions:?}");
    for expression in expressions {
        let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let named: Vec<&str> = words.filter(|word| word.starts_with("linerate_")).collect();
        assert!(!named.is_empty(), "{expression}");
        named.iter().for_each(|name| assert!(metrics.contains(*name), "{expression}: no {name}"));
    }
}

#[test]
fn the_page_gets_what_is_new() {
    let (board, samples, server) = served();
    let ask = |after: u64| -> serde_json::Value {
        serde_json::from_str(body(&get(server.address(), &format!("/samples?after={after}")))).unwrap()
    };
    let first = ask(0);
    assert_eq!(first["samples"], serde_json::to_value(&samples).unwrap());
    let next = first["next"].as_u64().unwrap();
    assert_eq!(ask(next)["samples"].as_array().unwrap().len(), 0);
    put(&board, &samples[..2]);
    assert_eq!(ask(next)["samples"], serde_json::to_value(&samples[..2]).unwrap());
}

#[test]
fn strangers_are_refused_and_nothing_can_be_changed() {
    let (_board, _, server) = served();
    let address = server.address();
    let status = |request: &str| send(address, request).split(' ').nth(1).unwrap_or_default().to_owned();
    for (request, code) in [
        (format!("GET / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", address.port()), "200"),
        ("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n".to_owned(), "200"),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), "403"),
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example:80\r\n\r\n".to_owned(), "403"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n".to_owned(), "403"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "403"),
        ("POST /samples HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "405"),
        ("GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "404"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
    ] {
        assert_eq!(status(&request), code, "{request}");
    }
    let page = get(address, "/");
    assert!(page.contains("script-src 'self'") && !page.contains("unsafe-inline"), "{page}");
    let head = send(address, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(body(&head), "");
    // One byte more than the server takes: it has read all of them when it answers.
    let begin = "GET / HTTP/1.1\r\nX: ";
    let endless = format!("{begin}{}", "x".repeat((8 << 10) + 1 - begin.len()));
    assert_eq!(status(&endless), "431");
}

/// Sends bytes and leaves.
fn send_all(address: SocketAddr, request: &[u8]) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let _ = stream.write_all(request);
}

#[test]
fn clients_that_say_nothing_or_read_nothing_hold_nobody_up() {
    let (_board, samples, server) = served();
    let address = server.address();
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    let began = Instant::now();
    for at in 0..64_u8 {
        send_all(address, &vec![at.wrapping_mul(37); 1 << at.min(14)]);
    }
    let answer = get(address, "/samples");
    assert!(answer.contains(&format!("\"next\":{}", samples.len())));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    drop(silent);
    let ended = Instant::now();
    drop(server);
    assert!(ended.elapsed() < Duration::from_secs(2));
    assert!(TcpStream::connect(address).is_err(), "it listens no more");
}

/// A machine on which somebody waits for a core in a greater share of the time says nothing about frames.
const BUSY: f64 = 0.1;

/// Seconds in which somebody waited for a core of this machine, where the kernel tells (PSI).
fn kept_waiting() -> f64 {
    let told = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let total = told.lines().next().and_then(|some| some.rsplit_once("total=")?.1.parse().ok());
    total.map_or(0.0, |microseconds: f64| microseconds / 1e6)
}

/// How long the server's thread has run, by the kernel's account.
fn spent(server: &Server) -> Duration {
    let name = format!("live {}\n", server.address().port());
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten().map(|thread| thread.path());
    let mut threads =
        threads.filter(|path| fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm == name));
    let account = fs::read_to_string(threads.next().unwrap().join("schedstat")).unwrap();
    Duration::from_nanos(account.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn the_page_moves_in_a_browser() {
    in_a_browser(std::env::var("LINERATE_LIVE_SECONDS").map_or(8, |text| text.parse().unwrap()));
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn the_page_moves_for_ten_minutes_without_growing_and_without_a_long_frame() {
    in_a_browser(600);
}

/// The page with as many samples as it shows, while more come for so many seconds.
fn in_a_browser(seconds: u64) {
    let path = std::env::var_os("PATH").unwrap();
    let Some(chromium) =
        std::env::split_paths(&path).map(|directory| directory.join("chromium")).find(|file| file.exists())
    else {
        eprintln!("skipped: no chromium in $PATH (Debian's package chromium)");
        return;
    };
    let samples = Scenario { bidirectional: true, ..Scenario::default() }.record().samples;
    let board = Board::default();
    let server = Server::start("127.0.0.1:0".parse().unwrap(), board.clone(), FILES).unwrap();
    board.begin(about());
    // Ten minutes of five samples a second have been: the most that the page shows.
    let sample =
        |at: usize| Sample { at_s: at as f64 / 5.0, duration_s: 0.2, ..samples[at % samples.len()].clone() };
    (0..3_000).for_each(|at| put(&board, &[sample(at)]));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/page/test/live.mjs");
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut browser = Command::new("node")
        .arg(script)
        .arg(chromium)
        .arg(format!("http://{}/", server.address()))
        .arg(&pictures)
        .arg(seconds.to_string())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (began, waited, mut at) = (Instant::now(), kept_waiting(), 3_000);
    while browser.try_wait().unwrap().is_none() {
        put(&board, &[sample(at)]);
        at += 1;
        thread::sleep(Duration::from_millis(200));
    }
    let share = spent(&server).as_secs_f64() / began.elapsed().as_secs_f64();
    eprintln!("serving took {:.2} % of a core", share * 100.0);
    // Twice what is promised: this program is not optimised.
    assert!(share < 0.02, "serving takes {share} of a core");
    let ended = browser.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    let waited = (kept_waiting() - waited) / began.elapsed().as_secs_f64();
    if said.contains("frames take") && waited > BUSY {
        eprintln!(
            "skipped: somebody waited for a core in {:.0} % of the time, so that frames were late",
            waited * 100.0
        );
        return;
    }
    assert!(ended.status.success(), "{said}");
}
