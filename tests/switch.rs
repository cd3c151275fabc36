//! A switch as a third witness: Net-SNMP's agent, in the namespace of a bridge between the ports, is asked what it counted.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use results::record::Status;
use tempfile::TempDir;

use crate::common::sites::Site;
use crate::common::{eventually, has_namespaces, linerate, wait_until};

const SNMPD: &str = "/usr/sbin/snmpd";
const COMMUNITY: &str = "community of the test";
/// `nsCacheTimeout` of the table of interfaces, which the agent reads from the kernel every 15 seconds otherwise.
const CACHE: &str = ".1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2";

/// An agent in a bridge's namespace. It is killed when this is dropped.
struct Agent {
    server: Child,
    directory: TempDir,
}

impl Agent {
    fn start(site: &Site) -> Self {
        site.tester.run(&format!(
            "ip link add mgmt0 type veth peer name mgmt1 netns {}
             ip address add 192.0.2.1/24 dev mgmt0
             ip link set mgmt0 up",
            site.far.path()
        ));
        site.far.run("ip address add 192.0.2.2/24 dev mgmt1; ip link set mgmt1 up");
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().display().to_string();
        let configuration = format!("rwcommunity \"{COMMUNITY}\"\nagentaddress udp:192.0.2.2:1161\n");
        fs::write(directory.path().join("snmpd.conf"), configuration).unwrap();
        fs::write(directory.path().join("community"), format!("{COMMUNITY}\n")).unwrap();
        let script =
            format!("exec setpriv --pdeathsig KILL {SNMPD} -f -LE 0 -C -c {root}/snmpd.conf -I -smux");
        let mut command = site.far.command("sh");
        command.args(["-ec", &script]).env("SNMP_PERSISTENT_DIR", &root).env("MIBS", "");
        let server =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let agent = Self { server, directory };
        let answers = || {
            let mut set = site.tester.command("snmpset");
            set.args(["-v2c", "-c", COMMUNITY, "-t", "1", "-r", "0", "192.0.2.2:1161", CACHE, "i", "1"]);
            set.env("MIBS", "").stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
        };
        assert!(wait_until(Duration::from_secs(20), answers), "the agent does not answer");
        agent
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_switch_counts_beside_the_tester_and_what_is_wrong_with_it_is_told() {
    if !has_namespaces() {
        return;
    }
    if !Path::new(SNMPD).exists() || !Path::new("/usr/bin/snmpset").exists() {
        eprintln!("skipped: no agent of SNMP (install snmpd and snmp)");
        return;
    }
    let site = Site::bridge();
    let agent = Agent::start(&site);
    let file = agent.directory.path().join("community");
    let brief = "saturate --ports eth1,eth2 --rate 2kpps --warm-up-duration 200ms --duration 300ms --step 100ms --drain 100ms \
                 --bidirectional --json";
    let line = format!("{brief} --switch 192.0.2.2:1161,far1,far2 --switch-community {}", file.display());
    eventually(|| {
        let record = linerate(&line).inside(&site.tester).run().well().record();
        assert_eq!(record.status, Status::Complete);
        let switch = record.switch.as_deref().unwrap();
        assert_eq!((switch.agent.as_str(), switch.interfaces[1].name.as_str()), ("192.0.2.2:1161", "far2"));
        assert!(switch.description.contains("Linux"), "{switch:?}");
        assert!(!serde_json::to_string(&record).unwrap().contains(COMMUNITY), "the record has the community");
        let [forward, back] = record.cross_check.as_slice() else { panic!("{:?}", record.cross_check) };
        let places: Vec<_> = back.points.iter().map(|point| point.place.as_str()).collect();
        let way = [
            "sent by eth2",
            "received by the switch's far2",
            "sent by the switch's far1",
            "received by eth1",
        ];
        assert_eq!(places, way);
        assert!(switch.interfaces[0].received.meanwhile() > Some(0), "{switch:?}");
        let agree = forward.agrees && back.agrees;
        agree.then_some(()).ok_or(format!("the witnesses disagree: {:?}", record.notes))
    });
    let refused = |switch: &str, clues: &[&str]| {
        let finished = linerate(&format!("{brief} --switch {switch}"))
            .env("LINERATE_SNMP_COMMUNITY", COMMUNITY)
            .inside(&site.tester)
            .run();
        assert!(!finished.status.success() && finished.records().is_empty(), "{}", finished.stderr);
        clues.iter().for_each(|clue| assert!(finished.stderr.contains(clue), "{}", finished.stderr));
        assert!(!finished.stderr.contains(COMMUNITY), "{}", finished.stderr);
    };
    refused("192.0.2.2:1161,far1,far9", &["no interface 'far9'. There are: lo, ", "far2"]);
    refused("192.0.2.2:1162,far1,far2", &["nothing answers", "LINERATE_SNMP_COMMUNITY"]);
    refused("192.0.2.2:1161,far1", &["is no switch: write HOST,INTERFACE,INTERFACE"]);
}
