//! The documents say what works: every command line in a `sh` block of README.md and docs/ is run,
//! in the order it is written, where it has what it needs: eth1 and eth2 with a router between.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::common::sites::Site;
use crate::common::{PROGRAM, REPOSITORY, has_namespaces, machine};
use etherparse::PacketBuilder;
use traffic::capture::Writer;

/// A command line and where it stands.
struct Line {
    file: String,
    number: usize,
    text: String,
}

/// The documents that promise something.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(REPOSITORY);
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let docs = fs::read_dir(root.join("docs")).unwrap().flatten().map(|entry| entry.path());
    let benchmarks = root.join("benchmarks/README.md");
    found.extend(
        docs.chain([benchmarks]).filter(|path| path.extension().is_some_and(|ending| ending == "md")),
    );
    found.retain(|path| path.exists());
    found.sort();
    found
}

/// The command lines in the `sh` blocks of `document`; lines that end in a backslash go on.
fn command_lines(document: &Path) -> Vec<Line> {
    let file = document.strip_prefix(REPOSITORY).unwrap().display().to_string();
    let mut lines: Vec<Line> = Vec::new();
    let (mut inside, mut goes_on) = (false, false);
    for (index, text) in fs::read_to_string(document).unwrap().lines().enumerate() {
        match text.trim() {
            "```sh" => inside = true,
            fence if fence.starts_with("```") => inside = false,
            "" => {}
            comment if comment.starts_with('#') => {}
            text if inside => {
                let part = text.strip_suffix('\\').unwrap_or(text);
                match lines.last_mut().filter(|_| goes_on) {
                    Some(line) => line.text += part,
                    None => lines.push(Line { file: file.clone(), number: index + 1, text: part.to_owned() }),
                }
                goes_on = text.ends_with('\\');
            }
            _ => {}
        }
    }
    lines
}

/// The flags that say how long something takes, and how many milliseconds it takes at most here: a search needs
/// seconds for its trials.
const DURATIONS: [(&str, u32); 3] = [("--duration", 300), ("--hold-duration", 200), ("--time-limit", 2000)];
/// The least milliseconds that a profiler needs for its samples.
const PROFILED: u32 = 1000;
/// The milliseconds of each step of a waterfall, which has a dozen.
const STEP: u32 = 100;
/// What load tests do beside measuring, where a document does not say how long: seconds by default.
const BESIDE: [(&str, &[&str]); 7] = [
    ("ramp", &["--duration 300ms", "--hold-duration 200ms", "--warm-up-duration 100ms", "--drain 100ms"]),
    ("saturate", &["--warm-up-duration 100ms", "--drain 100ms"]),
    ("search", &["--warm-up-duration 100ms", "--drain 100ms"]),
    ("latency", &["--warm-up-duration 100ms", "--drain 100ms"]),
    ("soak", &["--warm-up-duration 100ms", "--drain 100ms"]),
    ("stall", &["--warm-up-duration 100ms", "--drain 100ms"]),
    ("explain cost", &["--warm-up-duration 100ms", "--drain 100ms"]),
];

/// The words of a command, where frames are sent for a third of a second at most, and hardly any before and after.
fn brief(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let asked = words[at].strip_suffix('s').and_then(|number| number.parse::<u32>().ok());
        let Some((_, most)) = DURATIONS.iter().find(|(flag, _)| *flag == words[at - 1]) else { continue };
        let most = match () {
            () if text.contains("flamegraph") => PROFILED,
            () if text.contains("--waterfall") => STEP,
            () => *most,
        };
        if asked.is_some_and(|seconds| 1000 * seconds > most) {
            words[at] = format!("{most}ms");
        }
    }
    let mut text = words.join(" ");
    let command = text.strip_prefix("sudo ").unwrap_or(&text).strip_prefix("linerate ").unwrap_or_default();
    let is_of =
        |name: &str| command.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let flags = BESIDE.iter().find(|(name, _)| is_of(name)).map_or(&[][..], |(_, flags)| flags);
    for flag in flags {
        if !text.contains(&format!(" {}", flag.split(' ').next().unwrap_or(flag))) {
            text = format!("{text} {flag}");
        }
    }
    text
}

/// Runs `line` in `directory` as a reader would type it; the reason if that fails. Of make, it is
/// enough that it knows what to do.
fn run(line: &Line, site: &Site, directory: &Path) -> Result<(), String> {
    let binaries = Path::new(PROGRAM).parent().unwrap();
    let path = env::join_paths(
        [binaries.to_owned()].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap())),
    );
    let text = line.text.strip_prefix("sudo ").unwrap_or(&line.text);
    let mut command = site.tester.command("sh");
    match text.strip_prefix("make ") {
        Some(target) => command.args(["-ec", &format!("make --dry-run {target}")]).current_dir(REPOSITORY),
        None => command.args(["-ec", text]).current_dir(directory),
    };
    let output = command.env("PATH", path.unwrap()).output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{}:{}: {}\n{}: {said}", line.file, line.number, line.text, output.status))
}

/// Runs every command, as `shortened`.
fn run_all(shortened: fn(&str) -> String) {
    let _machine = machine();
    let mut lines: Vec<Line> = documents().iter().flat_map(|document| command_lines(document)).collect();
    lines.iter_mut().for_each(|line| line.text = shortened(&line.text));
    assert!(lines.iter().any(|line| line.text.starts_with("linerate ramp")), "no commands found");
    let site = Site::router();
    // Where a reader is: in a checkout, of which commands see the example profiles, with a capture at hand.
    let directory = tempfile::tempdir().unwrap();
    for folder in ["profiles", "generators"] {
        std::os::unix::fs::symlink(Path::new(REPOSITORY).join(folder), directory.path().join(folder))
            .unwrap();
    }
    fs::write(directory.path().join("trace.pcap"), capture()).unwrap();
    let failures: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let started = Instant::now();
            let failure = run(line, &site, directory.path()).err();
            println!(
                "{:5.1} s  {}:{}: {}",
                started.elapsed().as_secs_f64(),
                line.file,
                line.number,
                line.text
            );
            failure
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} commands fail:\n{}",
        failures.len(),
        lines.len(),
        failures.join("\n")
    );
}

/// A capture of ten datagrams, a millisecond apart, from beyond port 0 to beyond port 1.
fn capture() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for number in 0..10_u8 {
        let link = PacketBuilder::ethernet2([2, 0, 0, 0, 9, 1], [2, 0, 0, 0, 9, 2]);
        let packet = link.ipv4([16, 0, 0, 1 + number], [48, 0, 0, 1], 64).udp(1025, 12);
        let mut frame = Vec::new();
        packet.write(&mut frame, &[number; 100]).unwrap();
        writer.frame(u64::from(number) * 1_000_000, &frame).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn every_documented_command_works() {
    if has_namespaces() {
        run_all(brief);
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn every_documented_command_works_for_as_long_as_it_is_written() {
    if has_namespaces() {
        run_all(str::to_owned);
    }
}

#[test]
fn what_takes_long_is_shortened_and_nothing_else() {
    let line = "linerate ramp --dut calibrated:rate=1kpps --duration 5s --hold-duration 150ms --drain 2s";
    let brief_line = line.replace("--duration 5s", "--duration 300ms") + " --warm-up-duration 100ms";
    assert_eq!(brief(line), brief_line);
    assert_eq!(brief(&format!("sudo {line}")), format!("sudo {brief_line}"));
    assert_eq!(
        brief("linerate saturate --duration 10s  x"),
        "linerate saturate --duration 300ms  x --warm-up-duration 100ms --drain 100ms"
    );
    assert_eq!(
        brief("linerate search --time-limit 10s"),
        "linerate search --time-limit 2000ms --warm-up-duration 100ms --drain 100ms"
    );
    assert_eq!(
        brief("linerate ramp --live"),
        "linerate ramp --live --duration 300ms --hold-duration 200ms --warm-up-duration 100ms --drain 100ms"
    );
    assert_eq!(
        brief("linerate explain flamegraph --duration 3s"),
        "linerate explain flamegraph --duration 1000ms"
    );
    for same in ["linerate report runs", "linerate profile show --size imix", "printf '%s\\n' '--duration'"] {
        assert_eq!(brief(same), same);
    }
}

#[test]
fn every_profile_and_file_that_a_document_links_to_exists() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
            if link.is_empty() || link.contains("://") {
                continue;
            }
            let target = document.parent().unwrap().join(link);
            assert!(target.exists(), "{} links to {link}, which is not there", document.display());
        }
    }
}

/// The messages that docs/troubleshooting.md explains: its headings in code quotes.
fn explained_messages() -> Vec<String> {
    let page = fs::read_to_string(Path::new(REPOSITORY).join("docs/troubleshooting.md")).unwrap();
    let headings = page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'));
    headings.map(str::to_owned).collect()
}

/// The text of each source file below `directory`, without comments and tests, each string on one line.
fn sources(directory: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for path in fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            texts.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            texts.push(program_text(text.split("#[cfg(test)]\nmod tests").next().unwrap()));
        }
    }
    texts
}

fn program_text(source: &str) -> String {
    let mut text = String::new();
    for line in source.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        match line.strip_suffix('\\') {
            Some(begun) => text += begun,
            None => text.extend([line, "\n"]),
        }
    }
    text.replace("\\\"", "\"")
}

#[test]
fn every_message_that_troubleshooting_explains_is_in_the_sources() {
    let crates = fs::read_dir(Path::new(REPOSITORY).join("crates")).unwrap().flatten();
    let directories = crates.map(|entry| entry.path().join("src")).filter(|path| path.is_dir());
    let texts: Vec<String> = directories.flat_map(|directory| sources(&directory)).collect();
    let messages = explained_messages();
    assert!(messages.len() > 20, "{messages:?}");
    let has = |message: &str| {
        texts
            .iter()
            .any(|text| message.split('…').filter(|part| !part.is_empty()).all(|part| text.contains(part)))
    };
    let unknown: Vec<&String> = messages.iter().filter(|message| !has(message)).collect();
    assert!(unknown.is_empty(), "docs/troubleshooting.md explains what nothing prints: {unknown:?}");
    assert!(!has("none of … frames fell asleep"), "the check finds what is not there");
}

/// What is wrong with a port, as `source` of crate `ports` words it: the string after each place where a cause is made,
/// in the parts between what is filled in.
fn causes(source: &str) -> Vec<Vec<String>> {
    const PLACES: [&str; 5] = [
        "cause = format!(",
        "cause: format!(",
        "no(format!(",
        "Severity::Refuse, format!(",
        "write!( formatter,",
    ];
    let source = source.replace('\n', " ");
    let after = |place: &str| -> Vec<String> {
        let places = source.match_indices(place).map(|(at, _)| source[at + place.len()..].trim_start());
        let literals = places.filter_map(|text| text.strip_prefix('"')?.split('"').next());
        literals.map(str::to_owned).collect()
    };
    let parts = |text: String| -> Vec<String> {
        let pieces =
            text.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, rest)| rest).trim());
        pieces.filter(|piece| !piece.is_empty()).map(str::to_owned).collect()
    };
    PLACES.into_iter().flat_map(after).map(parts).filter(|parts| !parts.is_empty()).collect()
}

#[test]
fn every_cause_that_is_found_at_a_port_is_explained() {
    let sources = Path::new(REPOSITORY).join("crates/ports/src");
    let causes: Vec<_> = ["findings.rs", "sending.rs", "questions.rs"]
        .iter()
        .map(|name| fs::read_to_string(sources.join(name)).unwrap())
        .flat_map(|text| causes(&program_text(text.split("#[cfg(test)]\nmod tests").next().unwrap())))
        .collect();
    assert!(causes.len() >= 17, "{causes:#?}");
    let messages = explained_messages();
    // A heading may shorten the text at its end.
    let explains = |message: &String, cause: &[String]| {
        let parts = message.split('…').map(str::trim).filter(|part| !part.is_empty());
        let whole = cause.join(" … ");
        let mut rest = whole.as_str();
        parts.into_iter().all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    };
    let missing: Vec<_> =
        causes.iter().filter(|cause| !messages.iter().any(|message| explains(message, cause))).collect();
    assert!(missing.is_empty(), "docs/troubleshooting.md does not explain: {missing:#?}");
    assert!(!messages.iter().any(|message| explains(message, &["is made of cheese".to_owned()])));
}
