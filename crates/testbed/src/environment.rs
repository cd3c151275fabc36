//! What machine this is: `/proc`, `/sys` and `/etc` enter, the record's environment leaves.

use std::fs;

use results::record::Environment;

/// The machine as it is now. What cannot be found out is said to be unknown.
pub fn read() -> Environment {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let os = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let unknown = || "unknown".to_owned();
    Environment {
        linerate: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: read_line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown),
        os: value(&os, "PRETTY_NAME", '=').unwrap_or_else(unknown),
        cpu: value(&cpu, "model name", ':').unwrap_or_else(unknown),
        cores: lab::placement::online().map_or(1, |cores| cores.len()),
        memory_bytes: value(&memory, "MemTotal", ':')
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
            .map_or(0, |kibibytes| kibibytes * 1024),
        hypervisor: hypervisor(&cpu),
        host: Some(Box::new(hardware::host())),
    }
}

/// The hypervisor's name, or the fact that there is one.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let flags = value(cpuinfo, "flags", ':')?;
    flags.split(' ').any(|flag| flag == "hypervisor").then(|| {
        let vendor = read_line("/sys/class/dmi/id/sys_vendor").filter(|vendor| !vendor.is_empty());
        vendor.unwrap_or_else(|| "unknown".to_owned())
    })
}

fn read_line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The value of the first line `key SEPARATOR value` of `text`, without quotes.
fn value(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_key() {
        let text = "processor\t: 0\nmodel name\t: Fast CPU @ 2 GHz\nmodel name\t: other\n";
        assert_eq!(value(text, "model name", ':').as_deref(), Some("Fast CPU @ 2 GHz"));
        assert_eq!(value("PRETTY_NAME=\"Debian 12\"\n", "PRETTY_NAME", '=').as_deref(), Some("Debian 12"));
        assert_eq!(value(text, "flags", ':'), None);
    }

    #[test]
    fn this_machine_is_known() {
        let environment = read();
        assert!(environment.cores >= 1);
        assert!(environment.memory_bytes > 1 << 26);
        assert_ne!(environment.kernel, "unknown");
        let host = environment.host.unwrap();
        assert!(host.topology.cores.len() >= environment.cores && host.command_line.is_some(), "{host:?}");
    }
}
