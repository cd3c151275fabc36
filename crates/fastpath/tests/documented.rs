//! The configurations that the documentation of fastpath shows: each is one, and a router runs by those with access lists.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastpath::config::Config;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Router, fastpath};

/// The pages that show configurations.
fn pages() -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    ["fastpath.md", "fastpath-access-lists.md"]
        .map(|name| fs::read_to_string(directory.join(name)).unwrap())
        .concat()
}

/// The blocks of TOML in them.
fn documented() -> Vec<String> {
    let pages = pages();
    let blocks = pages.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_documented_configuration_is_one() {
    let blocks = documented();
    assert!(blocks.len() >= 4, "{blocks:?}");
    // A build without DPDK has no devices of it.
    let is_known = |text: &&String| cfg!(feature = "dpdk") || !text.contains("\"dpdk:");
    for text in blocks.iter().filter(is_known) {
        Config::parse("the documentation", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

/// A documented configuration, as this machine can run it, and how its router is asked.
struct Site {
    file: PathBuf,
    socket: PathBuf,
    text: String,
}

impl Site {
    fn new(directory: &TempDir, text: &str) -> Self {
        let (file, socket) = (directory.path().join("router.toml"), directory.path().join("control"));
        let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let core = (0..CpuSet::count()).find(|core| usable.is_set(*core).unwrap()).unwrap();
        let text = text.replace("cores = [0]", &format!("cores = [{core}]\nidle = \"sleep\""));
        let text = format!("control = {{ socket = \"{}\" }}\n{text}", socket.display());
        fs::write(&file, &text).unwrap();
        Self { file, socket, text }
    }

    /// Whether it is done, and what is said.
    fn ask(&self, words: &str) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpathctl"));
        let output = command.arg("--socket").arg(&self.socket).args(words.split(' ')).output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }
}

#[test]
fn a_router_has_the_documented_access_lists_and_changes_them_while_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let text = documented().into_iter().find(|text| text.contains("[[access-list]]")).unwrap();
    let site = Site::new(&directory, &text);
    let (file, text) = (&site.file, &site.text);
    let ask = |words: &str| site.ask(words);
    let lists = || -> Value { serde_json::from_str(&ask("--json show acl").1).unwrap() };
    let _router = Router::started(fastpath(file).spawn().unwrap());

    let shown = lists();
    let [lan, internet] = &shown["access_lists"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!(
        (&lan["name"], &lan["input"][0], &lan["total"]),
        (&"from-lan".into(), &"lan".into(), &3.into())
    );
    assert_eq!((&internet["name"], &internet["output"][0]), (&"to-internet".into(), &"wan".into()));
    let (done, table) = ask("show acl from-lan");
    assert!(done && table.contains("      1        0  deny    tcp"), "{table}");
    assert_eq!(table.lines().last(), Some("default        0  deny"));
    // All but the numbers of packets stands in the document.
    let pages = pages();
    assert!(table.lines().take(2).all(|line| pages.contains(line)), "{table}");
    let (done, said) = ask("show acl nowhere");
    assert!(!done && said.contains("there is no access list 'nowhere'"), "{said}");
    assert!(ask("clear acl").0);

    // Another rule, and one interface less that has the other list, which is then gone.
    let changed = text.replace("destination-port = \"25\"", "destination-port = \"26\"");
    let changed = changed.replace("access-list-out = \"to-internet\"\n", "");
    let (kept, _) = changed.split_once("[[access-list]]\nname = \"to-internet\"").unwrap();
    fs::write(file, kept).unwrap();
    let (done, said) = ask("reload");
    assert!(done && said.ends_with(": 3 changes made\n"), "{said}");
    let shown = lists();
    let [lan] = &shown["access_lists"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!((&lan["rules"][0]["destination_port"], &lan["input"][0]), (&"26".into(), &"lan".into()));

    // One that is wrong changes nothing.
    fs::write(file, text.replace("name = \"from-lan\"", "name = \"other\"")).unwrap();
    let (done, said) = ask("reload");
    assert!(!done && said.contains("there is no access list 'from-lan'"), "{said}");
    assert_eq!(lists(), shown);
}

#[test]
fn a_router_keeps_the_documented_states_and_changes_their_timeouts_while_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let text = documented().into_iter().find(|text| text.contains("[states]")).unwrap();
    let site = Site::new(&directory, &text);
    let _router = Router::started(fastpath(&site.file).spawn().unwrap());
    let (done, table) = site.ask("show flows");
    assert!(done, "{table}");
    // What is known of flows stands in the document under the same heads.
    let pages = pages();
    let heads: Vec<_> =
        table.lines().filter(|line| line.starts_with("Thread") || line.starts_with("Interface")).collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(heads.len(), 2);
    assert!(heads.iter().all(|head| pages.lines().any(|line| words(line) == words(head))), "{table}");
    let shown: Value = serde_json::from_str(&site.ask("--json show flows").1).unwrap();
    let worker = &shown["workers"][0];
    assert_eq!(
        (&worker["maximum"], &worker["udp"], &shown["total"]),
        (&262_144.into(), &0.into(), &0.into())
    );

    fs::write(&site.file, site.text.replace("udp = 120", "udp = 60")).unwrap();
    let (done, said) = site.ask("reload");
    assert!(done && said.ends_with(": 1 changes made\n"), "{said}");
    fs::write(&site.file, site.text.replace("maximum = 262144", "maximum = 5")).unwrap();
    let (done, said) = site.ask("reload");
    assert!(!done && said.contains("the maximum of states"), "{said}");
}
