//! Bundles the page's script and style with the npm packages that `make setup` installed.
//! `page/src` enters; `page.js` and `page.css` in `OUT_DIR` leave. The source tree is not touched.

use std::path::Path;
use std::process::{Command, exit};

fn main() {
    let page = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("page");
    let installed = page.join("node_modules/.package-lock.json");
    for source in [&page.join("src"), &page.join("package.json"), &page.join("package-lock.json"), &installed]
    {
        println!("cargo:rerun-if-changed={}", source.display());
    }
    if !installed.exists() {
        fail(
            "the report page's npm packages are not installed: run `make setup` (it runs `npm ci` in crates/report/page)",
        );
    }
    let Some(out) = std::env::var_os("OUT_DIR") else { fail("OUT_DIR is not set: build with cargo") };
    let outdir = format!("--outdir={}", out.to_string_lossy());
    let bundle =
        Command::new("npm").args(["run", "--silent", "bundle", "--", &outdir]).current_dir(&page).status();
    match bundle {
        Ok(status) if status.success() => {}
        Ok(_) => fail("the report page's script cannot be bundled; esbuild's message is above"),
        Err(error) => fail(&format!("npm cannot be started ({error}): run `make setup`, which installs it")),
    }
}

fn fail(message: &str) -> ! {
    eprintln!("error: {message}");
    exit(1)
}
