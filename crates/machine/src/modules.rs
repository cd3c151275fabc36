//! Which modules of a kernel a guest loads: what `depmod` wrote and names enter, files in the order of loading leave.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The files of the modules `wanted`, each after those that it needs, by the text of `modules.dep` (depmod(8)): lines
/// like `kernel/a.ko: kernel/b.ko kernel/c.ko`, of which the last is loaded first. Modules that are not there, as where
/// the kernel has them built in, are left out.
pub fn in_order(dependencies: &str, wanted: &[&str]) -> Vec<String> {
    let mut known = BTreeSet::new();
    let mut order = Vec::new();
    for module in wanted {
        let line = dependencies.lines().find_map(|line| {
            let (file, needs) = line.split_once(':')?;
            (name(file) == name(module)).then_some((file, needs))
        });
        let Some((file, needs)) = line else { continue };
        for file in needs.split_whitespace().rev().chain([file]) {
            if known.insert(file) {
                order.push(file.to_owned());
            }
        }
    }
    order
}

/// What a module is called whose file this is: `virtio_net` of `kernel/drivers/net/virtio-net.ko.xz`.
fn name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or_default();
    name.split('.').next().unwrap_or_default().replace('-', "_")
}

/// The bytes of a module, which may be compressed: a guest's `insmod` need not know how.
///
/// # Errors
/// When it cannot be read, or the tool for it is not installed.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    let tool = match file.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(file).with_context(|| format!("cannot read {}", file.display())),
    };
    let output = Command::new(tool).arg("-dc").arg(file).output();
    let output =
        output.with_context(|| format!("cannot run {tool}: install it (Debian: apt install {tool})"))?;
    if !output.status.success() {
        bail!("{tool} cannot unpack {}: {}", file.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "kernel/net/llc/llc.ko:\n\
                        kernel/net/802/stp.ko: kernel/net/llc/llc.ko\n\
                        kernel/net/bridge/bridge.ko: kernel/net/802/stp.ko kernel/net/llc/llc.ko\n\
                        kernel/drivers/net/virtio-net.ko.xz:\n";

    #[test]
    fn what_a_module_needs_comes_first_and_once() {
        let order = in_order(TEXT, &["bridge", "stp", "virtio_net", "built_in"]);
        assert_eq!(
            order,
            [
                "kernel/net/llc/llc.ko",
                "kernel/net/802/stp.ko",
                "kernel/net/bridge/bridge.ko",
                "kernel/drivers/net/virtio-net.ko.xz"
            ]
        );
        assert!(in_order("", &["bridge"]).is_empty());
    }

    #[test]
    fn a_compressed_module_is_unpacked() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.ko");
        fs::write(&file, "module").unwrap();
        assert_eq!(read(&file).unwrap(), b"module");
        let packed = Command::new("gzip").arg(&file).status().unwrap();
        assert!(packed.success());
        assert_eq!(read(&directory.path().join("a.ko.gz")).unwrap(), b"module");
        assert!(read(&directory.path().join("none.ko.gz")).is_err());
    }
}
