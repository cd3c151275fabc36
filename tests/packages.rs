//! What users install: packages and archives have what they promise. Here the programs that were built for tests are
//! packed; `make test-long` installs packages into fresh systems.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use results::fixtures::Scenario;

use crate::common::{PROGRAM, REPOSITORY, has_namespaces, linerate, machine, tool};

/// The directory of the programs under test, if it has all of them.
fn programs() -> Option<&'static Path> {
    let directory = Path::new(PROGRAM).parent().unwrap();
    let all = ["fastpath", "fastpathctl"].iter().all(|name| directory.join(name).exists());
    if !all {
        eprintln!("skipped: fastpath is not built beside linerate: test the whole workspace");
    }
    all.then_some(directory)
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {program} is not installed: make setup-packages");
    }
    found
}

fn script(name: &str) -> Command {
    let mut command = Command::new(Path::new(REPOSITORY).join("tools").join(name));
    // What is only looked into need not be small.
    command.current_dir(REPOSITORY).env("COMPRESSION", "none");
    command
}

#[test]
fn the_version_names_the_commit() {
    let said = linerate("--version").run().well().stdout;
    let commit = tool(&mut script("commit"));
    let known = commit.split(['-', ' ']).next().unwrap();
    assert!(said.starts_with("linerate 0."), "{said}");
    // An archive without git has it from its own file.
    assert!(known.is_empty() || said.contains('('), "{said} of {commit}");
}

#[test]
fn packages_hold_programs_pages_completions_and_the_service() {
    let Some(programs) = programs() else { return };
    if !is_installed("dpkg-deb") || !is_installed("dpkg-shlibdeps") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let made = tool(script("package").arg(programs).arg(directory.path()).args(["linerate", "fastpath"]));
    let paths: Vec<&str> = made.lines().collect();
    let [linerate, fastpath] = paths.as_slice() else { panic!("{made}") };
    let list = |package: &str| tool(Command::new("dpkg-deb").args(["--contents", package]));
    for (package, files) in [
        (
            linerate,
            &[
                "root/root",
                "./usr/bin/linerate",
                "man1/linerate-ramp.1.gz",
                "bash-completion/completions/linerate",
                "vendor-completions/_linerate",
                "examples/profiles/mixed.toml",
                "doc/linerate/copyright",
            ][..],
        ),
        (
            fastpath,
            &[
                "./usr/bin/fastpathctl",
                "man1/fastpath.1.gz",
                "man1/fastpathctl-show.1.gz",
                "system/fastpath.service",
                "doc/fastpath/fastpath-access-lists.md",
            ],
        ),
    ] {
        let list = list(package);
        for file in files {
            assert!(list.contains(file), "{file} is not in {list}");
        }
    }
    let fields = tool(Command::new("dpkg-deb").args(["--field", linerate]));
    assert!(fields.contains("Depends: libc6") || fields.contains("libc6 (>="), "{fields}");
    // It runs from where it is unpacked.
    let root = directory.path().join("root");
    tool(Command::new("dpkg-deb").arg("--extract").arg(linerate).arg(&root));
    assert!(tool(Command::new(root.join("usr/bin/linerate")).arg("--version")).starts_with("linerate 0."));
    if is_installed("man") {
        let page = root.join("usr/share/man/man1/linerate-ramp.1.gz");
        let shown = tool(Command::new("man").arg("--local-file").arg(page).env("MANWIDTH", "80"));
        assert!(shown.contains("--dut") && shown.contains("Ramp the load"), "{shown}");
    }
    // The same again is the same to the byte.
    let first = fs::read(linerate).unwrap();
    tool(script("package").arg(programs).arg(directory.path()).arg("linerate"));
    assert!(first == fs::read(linerate).unwrap(), "two packages of one program differ");
}

#[test]
fn the_service_of_fastpath_is_confined() {
    if !is_installed("systemd-analyze") {
        return;
    }
    let unit = Path::new(REPOSITORY).join("packaging/fastpath.service");
    let line = ["security", "--offline=true", "--no-pager", "--threshold=30"];
    let output = Command::new("systemd-analyze").args(line).arg(unit).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    // Of 100 it may be exposed by 30: it works with the network's interfaces.
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// Each on a Debian of its own that has nothing but what a new one has.
fn installs_in_a_fresh(suite: &str) {
    if !has_namespaces() || !is_installed("mmdebstrap") {
        return;
    }
    // Those of a build for tests may need the DPDK of this Debian.
    let packages = Path::new(REPOSITORY).join("target/packages");
    if !packages.exists() {
        eprintln!("skipped: there are no packages to install: make deb");
        return;
    }
    let _machine = machine();
    let said = tool(script("try-packages").arg(suite).arg(packages));
    assert!(said.contains("linerate: a first result after"), "{said}");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn packages_install_on_debian_12_and_show_a_first_result_within_two_minutes() {
    installs_in_a_fresh("bookworm");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn packages_install_on_debian_13_and_show_a_first_result_within_two_minutes() {
    installs_in_a_fresh("trixie");
}

/// The archive and the program for a processor that `make` left for `target`, if it did.
fn static_program(processor: &str, target: &str) -> Option<(PathBuf, PathBuf)> {
    let built = Path::new(REPOSITORY).join("target");
    let archive = format!("dist/linerate-{}-linux-{processor}-static.tar.gz", env!("CARGO_PKG_VERSION"));
    let archive = built.join(archive);
    let program = built.join(format!("{processor}-unknown-linux-musl/release/linerate"));
    if !archive.exists() || !program.exists() {
        eprintln!("skipped: there is no static program for {processor}: make {target}");
        return None;
    }
    Some((archive, program))
}

/// What a program says of a panic names the source, but neither the repository here nor where cargo keeps crates.
fn names_no_place_of_this_machine(program: &Path) {
    let bytes = fs::read(program).unwrap();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| std::env::var("HOME").unwrap() + "/.cargo");
    let repository = fs::canonicalize(REPOSITORY).unwrap();
    for place in [repository.to_str().unwrap(), &cargo] {
        assert!(
            !bytes.windows(place.len()).any(|part| part == place.as_bytes()),
            "{place} is in the program"
        );
    }
}

#[test]
#[ignore = "needs minutes to build: make test-long"]
fn a_static_program_measures_a_router_on_any_distribution() {
    if !has_namespaces() {
        return;
    }
    let Some((archive, program)) = static_program(std::env::consts::ARCH, "static") else { return };
    let linked = Command::new("ldd").arg(&program).output().unwrap();
    let said = [linked.stdout, linked.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("statically linked") || said.contains("not a dynamic executable"), "{said}");
    names_no_place_of_this_machine(&program);
    let refused = Command::new(&program).arg("serve").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("a static linerate cannot load libzmq"), "{said}");
    let _machine = machine();
    // The first has nothing beside the program: no shell, no C library.
    for system in ["empty", "bookworm", "trixie"] {
        if system != "empty" && !is_installed("mmdebstrap") {
            continue;
        }
        let said = tool(script("try-static").arg(system).arg(&archive));
        assert!(said.contains("linerate has measured a router"), "{said}");
    }
}

/// What runs programs for arm64 on another processor.
const EMULATOR: &str = "qemu-aarch64";

#[test]
#[ignore = "needs minutes to build: make test-long"]
fn a_static_program_for_arm64_runs_by_emulation() {
    if !is_installed(EMULATOR) {
        return;
    }
    let Some((archive, program)) = static_program("aarch64", "static-arm64") else { return };
    names_no_place_of_this_machine(&program);
    let directory = tempfile::tempdir().unwrap();
    let unpack = ["--extract", "--gzip", "--strip-components=1", "--file"];
    tool(Command::new("tar").current_dir(directory.path()).args(unpack).arg(archive));
    let here = |line: &str| {
        let mut command = Command::new(EMULATOR);
        command.current_dir(directory.path()).arg("linerate").args(line.split(' '));
        command
    };
    assert!(tool(&mut here("--version")).starts_with("linerate 0."));
    assert!(tool(&mut here("--help")).contains("ramp"));
    write_record(directory.path());
    tool(&mut here("report run.json --output page.html"));
    assert_is_page(&directory.path().join("page.html"));
    assert!(tool(&mut here("profile show")).contains("16.0.0."));
    let show = "profile show --size imix --flows var2 --ip 6";
    let shown = linerate(show).run().well().stdout;
    assert!(!shown.is_empty() && tool(&mut here(show)) == shown, "on another processor frames differ");
    assert!(tool(&mut here("generator --onto memory --sizes 64 --duration 20ms --json")).contains("memory"));
    // An emulated kernel lacks much, which is named; nothing crashes.
    let doctor = here("doctor").output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(matches!(doctor.status.code(), Some(0 | 1)) && said.contains("kernel"), "{doctor:?}");
}

fn write_record(directory: &Path) {
    let record = serde_json::to_string(&Scenario::default().record()).unwrap();
    fs::write(directory.join("run.json"), record).unwrap();
}

/// The report page, which is inside the program, came out.
fn assert_is_page(path: &Path) {
    let page = fs::read_to_string(path).unwrap();
    assert!(page.contains("<script") && page.len() > 50_000, "{} bytes", page.len());
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn cargo_installs_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let line = ["install", "--locked", "--path", "crates/linerate", "--root"];
    tool(Command::new("cargo").current_dir(REPOSITORY).args(line).arg(directory.path()));
    write_record(directory.path());
    let mut report = Command::new(directory.path().join("bin/linerate"));
    tool(report.current_dir(directory.path()).args(["report", "run.json", "--output", "page.html"]));
    assert_is_page(&directory.path().join("page.html"));
}
