//! Compiles the kernel programs of a crate: `*.bpf.c` enters, a Rust skeleton in `OUT_DIR` leaves.
//!
//! For build scripts, which have nobody to return an error to: failures end the build with
//! cause and remedy.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

/// Compilers tried when `$CLANG` is not set. Debian's versioned packages install no plain `clang`.
const CLANGS: [&str; 7] = ["clang", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15"];

/// Warnings that fail the build: kernel programs are held to the standard of the Rust beside them.
const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

/// The instruction set: 32-bit arithmetic and jumps, and atomics that return a value. Linux 5.12
/// and newer have all of it, and Linerate needs a newer kernel anyway.
const INSTRUCTIONS: &str = "-mcpu=v3";

/// Compiles `source` (`src/…/NAME.bpf.c`, relative to the crate) to `$OUT_DIR/NAME.skel.rs`.
///
/// # Panics
/// When no clang is found or it refuses the source: this ends the build.
pub fn skeleton(source: &str) {
    let source = Path::new(source);
    let file = source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = file.strip_suffix(".bpf.c").unwrap_or_else(|| panic!("{source:?} is not named *.bpf.c"));
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join(format!("{name}.skel.rs"));
    let mut arguments: Vec<String> = WARNINGS.map(str::to_owned).into();
    arguments.push(INSTRUCTIONS.to_owned());
    // The same program comes out wherever the sources are.
    arguments.push(format!("-ffile-prefix-map={}=.", env::var("CARGO_MANIFEST_DIR").unwrap_or_default()));
    arguments.extend(system_headers());
    if let Err(error) =
        SkeletonBuilder::new().source(source).clang(clang()).clang_args(arguments).build_and_generate(&out)
    {
        panic!("{} does not compile: {error:?}", source.display());
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    if let Some(directory) = source.parent() {
        println!("cargo:rerun-if-changed={}", directory.display());
    }
}

/// `$CLANG`, or the first of [`CLANGS`] that runs.
fn clang() -> PathBuf {
    if let Some(clang) = env::var_os("CLANG") {
        return clang.into();
    }
    let runs = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let Some(found) = CLANGS.iter().find(runs) else {
        panic!("no clang found to compile kernel programs: run `make setup`, or set CLANG");
    };
    found.into()
}

/// Where Debian keeps `asm/types.h`, which clang does not look for when it targets BPF: that of this machine's processor,
/// or of another one that is built for.
fn system_headers() -> Vec<String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let directories = [format!("/usr/include/{arch}-linux-gnu"), format!("/usr/{arch}-linux-gnu/include")];
    let found = directories.into_iter().find(|directory| Path::new(directory).join("asm/types.h").exists());
    found.map_or_else(Vec::new, |directory| vec!["-idirafter".to_owned(), directory])
}
