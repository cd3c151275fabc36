//! The arithmetic of the page's script, module by module, under Node.
#![allow(clippy::unwrap_used)] // a test may panic

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

#[test]
fn records_become_the_right_points() {
    arithmetic("curves");
}

#[test]
fn directions_are_added_up() {
    arithmetic("added-up");
}

#[test]
fn losses_have_an_axis_with_zero() {
    arithmetic("loss-axis");
}

#[test]
fn numbers_have_their_places_on_an_axis() {
    arithmetic("number-axis");
}

#[test]
fn trials_become_the_right_intervals() {
    arithmetic("search");
}

#[test]
fn a_line_joins_one_kind_of_device_at_rising_numbers() {
    arithmetic("scaling-series");
}

/// Bundles a module of `page/src` and runs the script of the same name in `page/test` on it.
fn arithmetic(module: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let bundle = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{module}.mjs"));
    let mut outfile = OsString::from("--outfile=");
    outfile.push(&bundle);
    let esbuild = Command::new(page.join("node_modules/.bin/esbuild"))
        .args([&format!("src/{module}.ts"), "--bundle", "--format=esm", "--log-level=warning"])
        .arg(outfile)
        .current_dir(&page)
        .status();
    assert!(esbuild.unwrap().success());
    let script = page.join("test").join(format!("{module}.mjs"));
    let output = Command::new("node").arg(script).arg(bundle).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
