//! What users install: packages and archives have what they promise. Here the programs that were built for tests are
//! packed; `make test-long` installs packages into fresh systems.

use std::fs;
use std::path::Path;
use std::process::Command;

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
