//! A virtual machine as the device: its parameters enter; what is to be booted leaves. Who opened the lab starts it
//! ([`program::vm`](crate::program::vm)): the tester's ports are taps, and QEMU has the guest's cards at them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lab::{Addressing, Attachment, Result, Running, Site, Workers};

use super::spec::Parameters;
use super::workers::{self, CORES};
use super::{Description, Device, Kind, Parameter, SpecError};

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "vm",
        summary: "a virtual machine under QEMU: Linux as a router, or a router's disk image",
        parameters: &[
            KERNEL,
            MODULES,
            INITRD,
            COMMAND_LINE,
            IMAGE,
            DRIVER,
            LOGIN,
            CPUS,
            MEMORY,
            NIC,
            ACCELERATION,
            CORES,
        ],
    },
    parse,
};

const KERNEL: Parameter = Parameter {
    key: "kernel",
    values: "a file",
    meaning: "the Linux kernel that it boots (default the newest in /boot; an image boots its own)",
};
const MODULES: Parameter = Parameter {
    key: "modules",
    values: "a directory with lib/modules, where an own kernel boots without initrd=",
    meaning: "where the kernel's modules are (default where its package has them)",
};
const INITRD: Parameter = Parameter {
    key: "initrd",
    values: "a file, with kernel=",
    meaning: "the file system that the kernel begins with (default Linerate's own, a bare router)",
};
const COMMAND_LINE: Parameter = Parameter {
    key: "cmdline",
    values: r"words of a kernel's command line, with '\,' for a comma, and no image without kernel=",
    meaning: "what the kernel is told, beside what it needs to boot (default nothing)",
};
const IMAGE: Parameter = Parameter {
    key: "image",
    values: "a disk image, qcow2 or raw",
    meaning: "the disk that it boots or, with kernel=, has; what it writes is forgotten (default no disk)",
};
const DRIVER: Parameter = Parameter {
    key: "driver",
    values: "the name or file of a driver, or none, with image= or initrd=",
    meaning: "what configures an image over its serial console (default none: it is measured as it is)",
};
const LOGIN: Parameter = Parameter {
    key: "login",
    values: "a user's name, with driver=",
    meaning: "who logs in at the console; the variable LINERATE_VM_PASSWORD has the password (default nobody)",
};
const CPUS: Parameter = Parameter {
    key: "cpus",
    values: "1 to 64",
    meaning: "virtual processors, on the device's core or those in cores= (default 1)",
};
const MEMORY: Parameter = Parameter {
    key: "memory",
    values: "128 to 65536 MiB",
    meaning: "its memory (default 512 MiB, with an image 1024)",
};
const NIC: Parameter = Parameter {
    key: "nic",
    values: "virtio, vmxnet3, e1000e or e1000",
    meaning: "the kind of its two cards (default virtio)",
};
const ACCELERATION: Parameter = Parameter {
    key: "accel",
    values: "auto, kvm or tcg",
    meaning: "what runs it: the processor, or QEMU's emulation; auto takes KVM where the processor has it (default auto)",
};

/// The kind of a guest's cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nic {
    /// What users call it.
    pub name: &'static str,
    /// What QEMU calls it.
    pub device: &'static str,
    /// Its module in Linux.
    pub module: &'static str,
}

const NICS: [Nic; 4] = [
    Nic { name: "virtio", device: "virtio-net-pci", module: "virtio_net" },
    Nic { name: "vmxnet3", device: "vmxnet3", module: "vmxnet3" },
    Nic { name: "e1000e", device: "e1000e", module: "e1000e" },
    Nic { name: "e1000", device: "e1000", module: "e1000" },
];

/// What the user says of the acceleration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Auto,
    Kvm,
    Emulation,
}

/// What is to be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub kernel: Option<PathBuf>,
    pub modules: Option<PathBuf>,
    pub initrd: Option<PathBuf>,
    pub command_line: String,
    pub image: Option<PathBuf>,
    pub driver: Option<String>,
    pub login: Option<String>,
    pub cpus: u32,
    /// In MiB.
    pub memory: u32,
    pub nic: Nic,
    pub wish: Wish,
}

impl Wanted {
    /// What the parameters of the device say, which were read before.
    ///
    /// # Errors
    /// The key whose value is none for it.
    pub fn of(values: &BTreeMap<String, String>) -> Result<Self, &'static str> {
        let get = |parameter: Parameter| values.get(parameter.key).filter(|value| !value.is_empty());
        let path = |parameter| get(parameter).map(PathBuf::from);
        fn read<T>(
            text: Option<&String>,
            key: &'static str,
            default: T,
            read: impl Fn(&str) -> Option<T>,
        ) -> Result<T, &'static str> {
            text.map_or(Ok(default), |text| read(text).ok_or(key))
        }
        let number = |most: u32, least: u32| {
            move |text: &str| text.parse().ok().filter(|number| (least..=most).contains(number))
        };
        let image = path(IMAGE);
        let wish = |text: &str| match text {
            "auto" => Some(Wish::Auto),
            "kvm" => Some(Wish::Kvm),
            "tcg" => Some(Wish::Emulation),
            _ => None,
        };
        let memory = if image.is_some() { 1024 } else { 512 };
        let nic = |text: &str| NICS.into_iter().find(|nic| nic.name == text);
        let wanted = Self {
            kernel: path(KERNEL),
            modules: path(MODULES),
            initrd: path(INITRD),
            command_line: get(COMMAND_LINE).cloned().unwrap_or_default(),
            driver: get(DRIVER).filter(|driver| *driver != "none").cloned(),
            login: get(LOGIN).cloned(),
            cpus: read(get(CPUS), CPUS.key, 1, number(64, 1))?,
            memory: read(get(MEMORY), MEMORY.key, memory, number(65536, 128))?,
            nic: read(get(NIC), NIC.key, NICS[0], nic)?,
            wish: read(get(ACCELERATION), ACCELERATION.key, Wish::Auto, wish)?,
            image,
        };
        wanted.check()
    }

    /// Itself, if its parts go together.
    fn check(self) -> Result<Self, &'static str> {
        let boots_disk = self.image.is_some() && self.kernel.is_none();
        if boots_disk && !self.command_line.is_empty() {
            return Err(COMMAND_LINE.key);
        }
        if self.initrd.is_some() && self.kernel.is_none() {
            return Err(INITRD.key);
        }
        if self.is_own() && self.driver.is_some() {
            return Err(DRIVER.key);
        }
        if self.modules.is_some() && !self.is_own() {
            return Err(MODULES.key);
        }
        if self.login.is_some() && self.driver.is_none() {
            return Err(LOGIN.key);
        }
        Ok(self)
    }

    /// Whether Linerate's own file system boots, a router that it configures.
    pub fn is_own(&self) -> bool {
        self.image.is_none() && self.initrd.is_none()
    }
}

#[derive(Debug)]
struct Vm {
    workers: Workers,
}

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    Wanted::of(parameters.values()).map_err(|key| parameters.wrong_value(key))?;
    Ok(Box::new(Vm { workers: workers::read(parameters)? }))
}

impl Device for Vm {
    fn addressing(&self) -> Addressing {
        Addressing::Device
    }

    fn attachment(&self) -> Attachment {
        Attachment::Tap
    }

    fn workers(&self) -> Workers {
        self.workers.clone()
    }

    fn start(&self, _: &Site) -> Result<Running> {
        Ok(Running::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DutSpec;

    fn wanted(text: &str) -> Result<Wanted, &'static str> {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        Wanted::of(&pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let bare = wanted("").unwrap();
        assert_eq!((bare.cpus, bare.memory, bare.nic.name, bare.is_own()), (1, 512, "virtio", true));
        let image = wanted("image=a.qcow2,driver=linux,login=root").unwrap();
        assert_eq!((image.memory, image.is_own(), image.driver.as_deref()), (1024, false, Some("linux")));
        assert_eq!(wanted("image=a,driver=none").unwrap().driver, None);
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        assert_eq!(wanted("image=a,cmdline=quiet"), Err("cmdline"));
        assert!(wanted("image=a,kernel=b,cmdline=quiet").is_ok());
        assert_eq!(wanted("initrd=a"), Err("initrd"));
        assert_eq!(wanted("driver=linux"), Err("driver"));
        assert_eq!(wanted("image=a,login=root"), Err("login"));
        assert_eq!(wanted("image=a,modules=b"), Err("modules"));
        assert_eq!(wanted("accel=xen"), Err("accel"));
    }

    #[test]
    fn it_is_joined_by_taps() {
        let spec: DutSpec = r"vm:cmdline=isolcpus=1\,2 nosmt".parse().unwrap();
        assert_eq!(lab::Device::attachment(&spec), Attachment::Tap);
        assert_eq!(spec.parameters()["cmdline"], "isolcpus=1,2 nosmt");
    }
}
