//! A virtual machine as the device under test: QEMU beside the program, at taps of a lab. By emulation a boot takes some
//! seconds, so each run has many assertions, and no test looks at a time.

use std::fs;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use results::Record;
use results::record::Phase;

use super::{Kernel, guest, kernels};
use crate::common::holdings::Holdings;
use crate::common::namespace::Namespace;
use crate::common::{has_namespaces, linerate, wait_until};

/// The device with a kernel of Debian's, without the colon's parameters that follow; nothing, with the reason said, where
/// there can be none.
fn device(kernel: Kernel) -> Option<String> {
    let unavailable = guest::unavailable().or_else(|| {
        let has_tun = std::path::Path::new("/dev/net/tun").exists();
        (!has_tun).then(|| "a machine as the device needs /dev/net/tun".to_owned())
    });
    let files = unavailable.map_or_else(|| kernels::find(kernel), Err);
    match files {
        _ if !has_namespaces() => None,
        Err(reason) => {
            eprintln!("skipped: a machine with the kernel of {}: {reason}", kernel.name());
            None
        }
        Ok(files) => Some(format!("vm:kernel={},modules={}", files.image.display(), files.modules.display())),
    }
}

/// What `uname -r` says in a guest with `kernel`.
fn version(kernel: Kernel) -> String {
    kernels::find(kernel).unwrap().version
}

/// Rates that an emulated guest bears beside other work.
const SLOW: &str = "--warm-up-duration 200ms --drain 3s --line-rate 1mbps --json";

/// All frames passed that were sent, and the record says what the guest was.
fn passed_by(record: &Record, kernel: Kernel) {
    for way in &record.directions {
        assert!(way.offered > 0, "{:?}", record.notes);
        assert_eq!(way.forwarded, way.offered, "{:?} {:?}", record.notes, record.cross_check);
    }
    let found = &record.dut.configuration;
    assert!(found["kernel"].contains(&version(kernel)), "{found:#?}");
    assert!(found["kernel's command line"].contains("console=ttyS0"), "{found:#?}");
    assert!(!found["runs by"].is_empty() && !found["card backend"].is_empty(), "{found:#?}");
}

#[test]
fn a_machine_routes_counts_and_tells_what_it_is() {
    let Some(device) = device(Kernel::Release) else { return };
    // What was asked for is found in the guest, commas included.
    let run = linerate(&format!("saturate --rate 400pps --duration 1s --bidirectional --size 128 {SLOW}"))
        .booting_machines();
    let run = run.arg("--dut").arg(format!(r"{device},cmdline=mitigations=off isolcpus=managed_irq\,0"));
    let record = run.run().well().record();
    passed_by(&record, Kernel::Release);
    let told = &record.dut.configuration["kernel's command line"];
    assert!(told.contains("mitigations=off isolcpus=managed_irq,0"), "{told}");
    assert!(record.notes.iter().any(|note| note.contains("machine")), "{:?}", record.notes);
    let guest = record.dut.remote.as_deref().unwrap();
    assert_eq!((guest.driver.as_str(), guest.options["port0"].as_str()), ("linux", "dut0"));
    let counted = |name: &str| guest.counters[name].meanwhile().unwrap();
    let [forward, back] = record.directions.as_slice() else { panic!("two directions") };
    let near = |counted: u64, ours: u64| (ours..ours + 64).contains(&counted);
    assert!(near(counted("port0 received"), forward.offered), "{:#?}", guest.counters);
    assert!(near(counted("port1 received"), back.offered), "{:#?}", guest.counters);
    assert!(counted("IPv4 ForwDatagrams") >= forward.offered + back.offered, "{:#?}", guest.counters);
    assert!(record.cross_check.iter().all(|check| check.agrees), "{:?}", record.cross_check);
}

/// The tagged half of `benchmarks/vlan.toml` with a machine as its router, and a row with another kernel: each row is a
/// start of its own.
#[test]
fn rows_of_a_bench_start_with_their_own_kernels_and_vlans() {
    let (Some(one), Some(other)) = (device(Kernel::Release), device(Kernel::Backports)) else { return };
    let shipped = fs::read_to_string(format!("{}/benchmarks/vlan.toml", crate::common::REPOSITORY)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("vlan.toml");
    let text = shipped
        .replace("\"linux-router\"", &format!("'{one}'"))
        .replace("3mpps", "300pps")
        .replace("\"5s\"", "\"500ms\", \"--drain\", \"3s\"")
        .replace("title =", "repeats = 1\ntitle =")
        .replace("[\"one\", \"both\"]", "[\"one\"]")
        .replace("requires = [\"ip\", \"link:vlan\"]\n", "");
    let row = format!("[[duts]]\nname = \"newer\"\ndut = '{other}'\n\n[[profiles]]");
    fs::write(&file, text.replacen("[[profiles]]", &row, 1)).unwrap();
    let bench = linerate("bench --json --only").arg("VLAN 100").arg(&file);
    let finished = bench.booting_machines().run().well();
    let records: Vec<Record> = serde_json::from_value(finished.json()["records"].clone()).unwrap();
    let of =
        |name: &str| records.iter().find(|record| record.labels["cell"] == format!("{name}/VLAN 100/one"));
    let (Some(older), Some(newer)) = (of("router"), of("newer")) else { panic!("{}", finished.stderr) };
    passed_by(older, Kernel::Release);
    passed_by(newer, Kernel::Backports);
    for record in [older, newer] {
        let commands = &record.dut.configuration;
        assert!(commands.values().any(|command| command.contains("type vlan id 100")), "{commands:#?}");
    }
}

#[test]
fn a_ramp_and_kill_9_leave_no_machine_behind() {
    let Some(device) = device(Kernel::Release) else { return };
    let home = Namespace::new();
    let ramp = "ramp --duration 500ms --hold-duration 200ms --warm-up-duration 100ms --drain 500ms --line-rate 200kbps --json";
    let record =
        linerate(ramp).booting_machines().arg("--dut").arg(&device).inside(&home).run().well().record();
    passed_by(&record, Kernel::Release);

    let long =
        linerate("saturate --rate 200pps --duration 60s --warm-up-duration 100ms --json").booting_machines();
    let mut run = long.arg("--dut").arg(&device).inside(&home).start();
    run.wait_for_record(|record| record.samples.iter().any(|sample| sample.phase == Phase::Hold));
    let (held, machines) = (Holdings::of(run.pid(), &home), children(run.pid()));
    assert!(!held.is_empty() && !machines.is_empty(), "{held:?} {machines:?}");
    run.signal(Signal::SIGKILL);
    assert_eq!(run.finish().status.code(), None);
    let is_gone = || machines.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}/exe")).exists());
    assert!(wait_until(Duration::from_secs(10), is_gone), "QEMU lives on");
    let mut remaining = Vec::new();
    wait_until(Duration::from_secs(20), || {
        remaining = held.remaining();
        remaining.is_empty()
    });
    assert_eq!(remaining, [""; 0]);
}

/// The processes that `pid` started, by whichever thread.
fn children(pid: u32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<i32>>()).collect()
}

#[test]
fn a_search_over_a_machine_finds_a_rate_that_it_bears() {
    let Some(device) = device(Kernel::Release) else { return };
    let search = "search --goal ndr:width=20%,initial=500ms,final=500ms,sum=1s --min-rate 50pps --max-rate 400pps \
                  --warm-up 50pps --warm-up-duration 100ms --drain 1s --time-limit 30s --json";
    let record = linerate(search).booting_machines().arg("--dut").arg(&device).run().well().record();
    let trials = &record.finding.search().unwrap().trials;
    assert!(trials.len() > 1, "{record:#?}");
    let way = &record.directions[0];
    let found = way.results["ndr"];
    assert!(
        found.lower_pps <= 400.0 && found.upper_pps.is_none_or(|upper| upper >= found.lower_pps),
        "{found:?}"
    );
    // Emulation loses nothing at such rates, though it may be late where others have the machine.
    assert!(found.lower_pps > 0.0 || way.unsent > 0 || way.forwarded < way.offered, "{record:#?}");
    assert!(record.cross_check.iter().all(|check| check.agrees), "{:?}", record.cross_check);
    assert!(record.dut.configuration["kernel"].contains(&version(Kernel::Release)), "{:#?}", record.dut);
}

#[test]
fn what_cannot_boot_is_told_before_anything_runs() {
    if !has_namespaces() || guest::unavailable().is_some() {
        return;
    }
    let refused = |parameters: &str, clues: &[&str]| {
        let run = linerate("saturate --rate 100pps --duration 1s")
            .arg("--dut")
            .arg(format!("vm:{parameters}"))
            .run();
        assert!(!run.status.success() && run.records().is_empty(), "{parameters}");
        for clue in clues {
            assert!(run.stderr.contains(clue), "no '{clue}' in: {}", run.stderr);
        }
    };
    refused("kernel=/no/such/vmlinuz", &["cannot open the kernel /no/such/vmlinuz", "check kernel=FILE"]);
    refused("kernel=/bin/sh", &["is no x86 Linux kernel"]);
    refused("image=/no/such.qcow2", &["cannot read the disk image /no/such.qcow2"]);
    refused("image=a,cmdline=quiet", &["no value for cmdline"]);
    refused("driver=linux", &["no value for driver"]);
}

/// The first process of a guest that is none of Linerate's: it asks at its console who logs in, for a password, too.
const STRANGER: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
ln -sf /usr/bin/ip /bin/ip
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /var/run
dmesg -n 1
while read -r module; do insmod \"/modules/$module\"; done </modules/order
ip link set lo up
while :; do getty -L 115200 ttyS0 vt100; done
";

#[test]
#[ignore = "takes minutes: make test-long"]
fn an_image_is_configured_and_counted_over_its_console() {
    let Some(device) = device(Kernel::Release) else { return };
    let files = kernels::find(Kernel::Release).unwrap();
    let modules = files.modules.join("lib/modules").join(&files.version);
    let kernel = machine::Kernel { version: files.version, image: files.image, modules };
    // Linux unpacks one archive over the other.
    let mut bytes = machine::router(&kernel, "e1000", &[]).unwrap();
    let mut over = machine::Archive::default();
    over.bytes("init", STRANGER, true);
    over.directory("var/run");
    let crypt = Command::new("busybox").args(["mkpasswd", "-m", "sha512", "secret"]).output().unwrap();
    let crypt = String::from_utf8(crypt.stdout).unwrap();
    over.bytes("etc/passwd", format!("root:{}:0:0:root:/root:/bin/sh\n", crypt.trim()), false);
    over.bytes("etc/group", "root:x:0:\n", false);
    over.write(&mut bytes).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let initrd = directory.path().join("initrd");
    fs::write(&initrd, bytes).unwrap();

    let (image, _) = device.split_once(",modules=").unwrap();
    let run = linerate(&format!("saturate --rate 300pps --duration 500ms {SLOW}"))
        .booting_machines()
        .arg("--dut")
        .arg(format!("{image},initrd={},nic=e1000,driver=linux,login=root", initrd.display()))
        .env("LINERATE_VM_PASSWORD", "secret");
    let record = run.run().well().record();
    passed_by(&record, Kernel::Release);
    let guest = record.dut.remote.as_deref().unwrap();
    assert_eq!([&guest.options["port0"], &guest.options["port1"]], ["eth0", "eth1"]);
    assert!(guest.counters["port0 received"].meanwhile() >= Some(record.directions[0].offered));
    assert!(!serde_json::to_string(&record).unwrap().contains("secret"), "the record has the password");
}
