//! Finds DPDK by pkg-config, compiles `src/shim.c` and writes Rust declarations of `src/shim.h`.
//!
//! Without the feature `dpdk` there is nothing to do. Failures end the build with cause and remedy.

#[cfg(not(feature = "dpdk"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

#[cfg(feature = "dpdk")]
fn main() {
    use std::env;
    use std::path::PathBuf;

    for file in ["build.rs", "src/shim.h", "src/shim.c"] {
        println!("cargo:rerun-if-changed={file}");
    }
    // Version 22.11 is what Debian 12 has; the drivers are loaded when the program runs.
    let found = pkg_config::Config::new().atleast_version("22.11").cargo_metadata(true).probe("libdpdk");
    let dpdk = found.unwrap_or_else(|error| {
        panic!("DPDK 22.11 or newer is not found: install libdpdk-dev (`make setup`), or build without the feature dpdk\n{error}")
    });
    // Flags that pkg-config's library knows no place for: `-include rte_config.h -march=…`.
    let flags: Vec<String> = flags_of_dpdk();

    let mut compiler = cc::Build::new();
    compiler.file("src/shim.c").warnings(true).extra_warnings(true).warnings_into_errors(true);
    for path in &dpdk.include_paths {
        // As the system's: its warnings are not ours.
        compiler.flag("-isystem").flag(path);
    }
    compiler.flags(&flags).compile("linerate_dpdk");

    let includes = dpdk.include_paths.iter().map(|path| format!("-I{}", path.display()));
    let bindings = bindgen::Builder::default()
        .header("src/shim.h")
        .clang_args(includes.chain(flags))
        .allowlist_item("(linerate|LINERATE)_.*")
        .opaque_type("rte_.*")
        .prepend_enum_name(false)
        .use_core()
        .generate()
        .unwrap_or_else(|error| {
            panic!("bindgen refuses src/shim.h: {error}; it needs libclang (`make setup`)")
        });
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("shim.rs");
    if let Err(error) = bindings.write_to_file(&out) {
        panic!("{} cannot be written: {error}", out.display());
    }
}

/// What `pkg-config --cflags` says beside include paths.
#[cfg(feature = "dpdk")]
fn flags_of_dpdk() -> Vec<String> {
    use std::process::Command;

    let program = std::env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let output = Command::new(program).args(["--cflags-only-other", "libdpdk"]).output();
    let output = output.unwrap_or_else(|error| panic!("pkg-config does not run: {error}"));
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}
