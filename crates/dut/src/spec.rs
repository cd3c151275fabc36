//! `NAME:key=value,…` enters, a device with its parameters leaves.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use lab::{Addressing, Attachment, Queues, Running, Site, Workers};

use super::{DEVICES, Description, Device, Rules};

/// A device under test as the user named it.
#[derive(Clone, Debug)]
pub struct DutSpec {
    name: &'static str,
    parameters: BTreeMap<String, String>,
    pub(crate) device: Arc<dyn Device>,
}

impl DutSpec {
    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The parameters as given.
    #[must_use]
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// The sources whose packets it must drop, if it filters.
    #[must_use]
    pub fn denied(&self) -> Vec<IpAddr> {
        self.device.denied()
    }

    /// What its twin does to frames in user space, if it has one; chance follows from `seed`.
    #[must_use]
    pub fn rules(&self, seed: u64) -> Option<Rules> {
        self.device.rules(seed)
    }
}

impl lab::Device for DutSpec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    fn addressing(&self) -> Addressing {
        self.device.addressing()
    }

    fn attachment(&self) -> Attachment {
        self.device.attachment()
    }

    fn gro(&self) -> bool {
        self.device.gro()
    }

    fn queues(&self) -> Queues {
        self.device.queues()
    }

    fn workers(&self) -> Workers {
        self.device.workers()
    }

    fn start(&self, site: &Site) -> lab::Result<Running> {
        self.device.start(site)
    }
}

/// The text names no device that there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No device of this name.
    #[error(
        "no device under test is called '{name}'. There are: {known}; 'linerate lab devices' explains them"
    )]
    Name {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Not of the form `key=value`.
    #[error("'{text}' is not a parameter of {device}: write key=value, several with commas between")]
    Form {
        /// The device.
        device: &'static str,
        /// The offending part.
        text: String,
    },
    /// The device has no parameter of this name.
    #[error(
        "{device} has no parameter '{key}'. It has: {known}; 'linerate lab devices {device}' explains them"
    )]
    Key {
        /// The device.
        device: &'static str,
        /// What was asked for.
        key: String,
        /// The parameters that it has.
        known: String,
    },
    /// A parameter was given more than once.
    #[error("{device} got '{key}' twice: give it once")]
    Twice {
        /// The device.
        device: &'static str,
        /// The parameter.
        key: String,
    },
    /// The value does not fit the parameter.
    #[error("{device}: '{value}' is no value for {key}, which takes {values}")]
    Value {
        /// The device.
        device: &'static str,
        /// The parameter.
        key: String,
        /// What was given.
        value: String,
        /// What would do.
        values: &'static str,
    },
}

/// The parameters of one device, all of which it has.
pub(super) struct Parameters<'a> {
    description: &'a Description,
    values: &'a BTreeMap<String, String>,
}

impl Parameters<'_> {
    /// The value of `key` as `parse` reads it, or `None` where it was not given.
    pub fn get<T>(&self, key: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, SpecError> {
        let Some(value) = self.values.get(key) else { return Ok(None) };
        parse(value).map(Some).ok_or_else(|| self.wrong_value(key))
    }

    /// All values, by their keys.
    pub fn values(&self) -> &BTreeMap<String, String> {
        self.values
    }

    /// Whether `key` is `on` or `off`; `default` where it was not given.
    pub fn switch(&self, key: &str, default: bool) -> Result<bool, SpecError> {
        let parse = |text: &str| match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        Ok(self.get(key, parse)?.unwrap_or(default))
    }

    /// That the value of `key` does not fit it.
    pub fn wrong_value(&self, key: &str) -> SpecError {
        let parameter = self.description.parameters.iter().find(|parameter| parameter.key == key);
        SpecError::Value {
            device: self.description.name,
            key: key.to_owned(),
            value: self.values.get(key).cloned().unwrap_or_default(),
            values: parameter.map_or("nothing", |parameter| parameter.values),
        }
    }
}

/// Reads a share of the whole such as `0.5%` or `0.005`.
pub(super) fn share(text: &str) -> Option<f64> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.parse::<f64>().ok()? / scale;
    (0.0..=1.0).contains(&share).then_some(share)
}

impl FromStr for DutSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, list) = text.split_once(':').unwrap_or((text, ""));
        let Some(kind) = DEVICES.iter().find(|kind| kind.description.name == name) else {
            let known = DEVICES.map(|kind| kind.description.name).join(", ");
            return Err(SpecError::Name { name: name.to_owned(), known });
        };
        let values = parse_values(&kind.description, list)?;
        let device = (kind.parse)(&Parameters { description: &kind.description, values: &values })?;
        Ok(Self { name: kind.description.name, parameters: values, device: device.into() })
    }
}

fn parse_values(description: &Description, list: &str) -> Result<BTreeMap<String, String>, SpecError> {
    let device = description.name;
    let mut values = BTreeMap::new();
    for part in parts(list).iter().filter(|part| !part.is_empty()) {
        let (key, value) =
            part.split_once('=').ok_or_else(|| SpecError::Form { device, text: part.clone() })?;
        if !description.parameters.iter().any(|parameter| parameter.key == key) {
            let known: Vec<&str> = description.parameters.iter().map(|parameter| parameter.key).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(SpecError::Key { device, key: key.to_owned(), known });
        }
        if values.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(SpecError::Twice { device, key: key.to_owned() });
        }
    }
    Ok(values)
}

/// The parts of `list` between its commas. A comma after a backslash belongs to its part.
fn parts(list: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut goes_on = false;
    for part in list.split(',') {
        let (text, is_open) = part.strip_suffix('\\').map_or((part, false), |text| (text, true));
        match parts.last_mut().filter(|_| goes_on) {
            Some(last) => *last += &format!(",{text}"),
            None => parts.push(text.to_owned()),
        }
        goes_on = is_open;
    }
    parts
}

impl fmt::Display for DutSpec {
    /// What [`FromStr`] reads back as the same device.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        for (index, (key, value)) in self.parameters.iter().enumerate() {
            let value = value.replace(',', r"\,");
            write!(f, "{}{key}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl PartialEq for DutSpec {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.parameters) == (other.name, &other.parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_read_as_written() {
        for text in [
            "linux-router",
            "linux-router:gro=off",
            "linux-router:gro=off,jail=on",
            "linux-bridge:gro=on",
            "xdp-router",
            "xdp-xconnect",
            "sink",
            "calibrated",
            "calibrated:burst=64,rate=300kpps",
            "calibrated:drop-every=1000",
            "calibrated:loss=0.1%",
            "calibrated:stall-after=1000000",
            "calibrated:stall-ends=pause,stall-rate=10kpps..50kpps,stall-time=2s",
            "delayed",
            "delayed:delay=200us,duplicate=0.5%,reorder=1%",
            "testpmd:mode=macswap",
            "vpp:mode=router",
            "vpp:acl=10,states=on",
            "vpp:mode=xconnect",
            "fastpath:mode=xconnect",
            "fastpath:acl=4999,mode=router",
            "fastpath:acl=10,states=on",
            "fastpath:states=on",
            "fastpath:mode=bridge,vlan=4094",
            "fastpath:routes=1M",
            "linux-router:routes=100k",
            "linux-router:firewall=nftables,rules=1000,states=on",
            "linux-router:conntrack-buckets=1M,conntrack-max=2M,firewall=iptables,states=on",
            "linux-router:firewall=xdp,rules=1M",
            "linux-router:jail=moved",
            "linux-router:jails=200",
            "fastpath:cores=2+3,queues=2,rss=on,workers=2",
            "vpp:cores=2+3,mode=router,queues=2,rss=on,workers=2",
            "vm",
            r"vm:cmdline=mitigations=off isolcpus=1\,2 nosmt,cpus=2,memory=512,nic=e1000e",
        ] {
            let spec: DutSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
        let spec: DutSpec = "calibrated:rate=300kpps,burst=64".parse().unwrap();
        assert_eq!(spec.name(), "calibrated");
        assert_eq!(spec.parameters()["rate"], "300kpps");
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_do() {
        let refused = |text: &str| text.parse::<DutSpec>().unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                refused("router"),
                refused("linux-router:grow=on"),
                refused("linux-router:gro=maybe"),
                refused("linux-router:gro"),
                refused("linux-router:gro=on,gro=off"),
                refused("sink:rate=1kpps"),
                refused("calibrated:rate=97%"),
                refused("calibrated:rate=0"),
                refused("calibrated:burst=0"),
                refused("calibrated:drop-every=0"),
                refused("calibrated:drop-every=-1"),
                refused("calibrated:loss=101%"),
                refused("calibrated:stall-rate=2kpps"),
                refused("delayed:delay=2s"),
                refused("delayed:delay=200"),
                refused("delayed:reorder=51%"),
                refused("delayed:duplicate=0%"),
                refused("vpp:mode=bridge"),
                refused("vpp:mode=xconnect,states=on"),
                refused("fastpath:mode=hub"),
                refused("fastpath:vlan=4095"),
                refused("fastpath:routes=2M"),
                refused("fastpath:mode=bridge,routes=10"),
                refused("linux-router:routes=0"),
                refused("linux-router:jail=on,routes=10"),
                refused("linux-router:firewall=pf"),
                refused("linux-router:rules=10"),
                refused("linux-router:firewall=nftables,rules=1M"),
                refused("linux-router:firewall=flowtable,states=on"),
                refused("linux-router:firewall=nftables,jail=on"),
                refused("linux-router:conntrack-max=100M"),
                refused("linux-router:jails=201"),
                refused("linux-router:jail=moved,jails=2"),
                refused("fastpath:acl=10000"),
                refused("fastpath:mode=xconnect,acl=10"),
                refused("fastpath:mode=xconnect,states=on"),
                refused("fastpath:states=yes"),
                refused("fastpath:workers=2,cores=3"),
                refused("vpp:cores=1+1"),
                refused("vm:nic=ne2000"),
                refused("vm:memory=12"),
                refused("vm:cpus=0"),
                refused("vm:driver=linux"),
                refused("vm:image=a.qcow2,cmdline=quiet"),
            ]
            .join("\n")
        );
    }

    #[test]
    fn every_device_describes_itself_in_one_line() {
        for description in crate::list() {
            assert!(!description.summary.contains('\n') && description.summary.len() < 100);
            assert!(description.name.parse::<DutSpec>().is_ok());
        }
    }
}
