//! A Linux kernel as files: an image enters, or the wish for the newest; its version and its modules leave.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where kernels are installed.
const BOOT: &str = "/boot";
/// What is read of an image: its header, and more than the kernels of today have before their version.
const HEADER: u64 = 64 << 10;

/// A kernel as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// What `uname -r` says in it.
    pub version: String,
    /// What QEMU boots.
    pub image: PathBuf,
    /// The directory of its modules, `lib/modules/VERSION`.
    pub modules: PathBuf,
}

impl Kernel {
    /// The kernel in the file `image`. Its modules are below `modules`, or else where packages put them: in
    /// `lib/modules/VERSION` beside the directory of the image, or in `/lib/modules`.
    ///
    /// # Errors
    /// When it is no x86 kernel, or its modules are not there, with what to give.
    pub fn open(image: &Path, modules: Option<&Path>) -> Result<Self> {
        let mut header = Vec::new();
        let file = File::open(image)
            .with_context(|| format!("cannot open the kernel {}: check kernel=FILE", image.display()))?;
        file.take(HEADER)
            .read_to_end(&mut header)
            .with_context(|| format!("cannot read the kernel {}", image.display()))?;
        let Some(version) = version(&header) else {
            bail!(
                "{} is no x86 Linux kernel (bzImage): give kernel=FILE, like /boot/vmlinuz-…",
                image.display()
            );
        };
        let image = fs::canonicalize(image).unwrap_or_else(|_| image.to_owned());
        let beside = image.parent().and_then(Path::parent);
        let roots = modules.into_iter().chain(beside).chain([Path::new("/")]);
        let places = roots
            .flat_map(|root| [root.to_owned(), root.join(&version), root.join("lib/modules").join(&version)]);
        let listed = |place: &PathBuf| place.join("modules.dep").exists();
        let Some(modules) = places.into_iter().find(listed) else {
            bail!(
                "the modules of the kernel {version} are not there: install its package, or give modules=DIR, a directory with \
                 lib/modules/{version}/modules.dep (depmod -b DIR {version} writes it)"
            );
        };
        Ok(Self { version, image, modules })
    }

    /// The newest kernel that is installed here.
    ///
    /// # Errors
    /// When there is none, with what to install or to give.
    pub fn newest() -> Result<Self> {
        let entries = fs::read_dir(BOOT).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("vmlinuz-")).collect();
        names.sort_by_key(|name| numbers(name));
        let Some(name) = names.last() else {
            bail!(
                "no kernel is installed in {BOOT} that a virtual machine could boot: install one (Debian: apt install \
                 linux-image-amd64), or give kernel=FILE"
            );
        };
        Self::open(&Path::new(BOOT).join(name), None)
    }
}

/// The numbers in a name, by which versions are in order.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// The version in the header of an x86 kernel (Documentation/arch/x86/boot.rst: `kernel_version` at 0x20E, less 0x200).
fn version(header: &[u8]) -> Option<String> {
    if header.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let at = u16::from_le_bytes(header.get(0x20E..0x210)?.try_into().ok()?);
    let text = header.get(0x200 + usize::from(at)..)?;
    let text = text.get(..text.iter().position(|byte| *byte == 0)?)?;
    let version = std::str::from_utf8(text).ok()?.split_whitespace().next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+~".contains(c);
    version.chars().all(is_plain).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(version: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20E..0x210].copy_from_slice(&0x80_u16.to_le_bytes());
        bytes[0x280..0x280 + version.len()].copy_from_slice(version.as_bytes());
        bytes
    }

    #[test]
    fn the_version_is_the_first_word_that_the_header_points_at() {
        assert_eq!(version(&image("6.1.0-1-amd64 (debian) #1 SMP")).as_deref(), Some("6.1.0-1-amd64"));
        assert_eq!(version(&image("../../etc x")), None);
        assert_eq!(version(b"\x7fELF"), None);
    }

    #[test]
    fn modules_are_found_beside_the_image() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("boot")).unwrap();
        let file = root.join("boot/vmlinuz-9.9.9-test");
        fs::write(&file, image("9.9.9-test x")).unwrap();
        let error = Kernel::open(&file, None).unwrap_err().to_string();
        assert!(error.contains("9.9.9-test") && error.contains("modules=DIR"), "{error}");
        let modules = root.join("lib/modules/9.9.9-test");
        fs::create_dir_all(&modules).unwrap();
        fs::write(modules.join("modules.dep"), "").unwrap();
        assert_eq!(Kernel::open(&file, None).unwrap().modules, modules);
        fs::write(&file, "no kernel").unwrap();
        assert!(Kernel::open(&file, None).unwrap_err().to_string().contains("no x86 Linux kernel"));
    }

    #[test]
    fn versions_are_in_the_order_of_their_numbers() {
        assert!(numbers("vmlinuz-6.12.0-1") > numbers("vmlinuz-6.1.0-56"));
    }
}
