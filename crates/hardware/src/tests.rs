use std::fs;
use std::path::Path;

use results::record::{Cache, PortInterrupt};

use super::*;

/// A tree of `/sys` and `/proc` on disk, from lines of a path, a tab and what the file holds.
fn tree(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in text.lines().filter_map(|line| line.split_once('\t')) {
        let file = directory.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content.replace("\\n", "\n") + "\n").unwrap();
    }
    directory
}

/// What Debian's Linux 6.1 shows under QEMU 7.2: two sockets of two cores of two threads (`-smp
/// 8,sockets=2,cores=2,threads=2`), each a NUMA node, a virtio card on the second (`pxb-pcie`), and `isolcpus=6,7
/// nohz_full=7`.
const TWO_NODES: &str = include_str!("tests/two-nodes.txt");

#[test]
fn threads_cores_sockets_and_nodes_are_told_apart() {
    let directory = tree(TWO_NODES);
    let topology = System::at(directory.path()).topology();
    assert_eq!(topology.numbers(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(topology.are_siblings(0, 1) && topology.are_siblings(6, 7) && !topology.are_siblings(1, 2));
    assert_eq!(topology.physical(), [0, 2, 4, 6]);
    assert_eq!((topology.node(3), topology.node(4)), (Some(0), Some(1)));
    assert_eq!(topology.core(5).unwrap().package, Some(1));
    assert_eq!((topology.isolated.as_slice(), topology.nohz_full.as_slice()), (&[6, 7][..], &[7][..]));
    assert_eq!(topology.smt.as_deref(), Some("on"));
    assert_eq!(
        topology.in_words(),
        "8 cores: 4 physical cores of 2 threads, on 2 NUMA nodes; isolated: 6, 7; without a tick: 7"
    );
    let last = Cache { level: 3, kind: "Unified".to_owned(), kib: 16384, count: 2, cores: 4 };
    assert_eq!(topology.caches.last(), Some(&last));
    let second = Cache { level: 2, kind: "Unified".to_owned(), kib: 4096, count: 4, cores: 2 };
    assert!(topology.caches.contains(&second), "{:?}", topology.caches);
}

#[test]
fn a_card_has_a_node_and_the_interrupts_of_its_queues() {
    let directory = tree(TWO_NODES);
    let system = System::at(directory.path());
    let near = system.card("eth0");
    assert_eq!(near.node, Some(1));
    let names: Vec<&str> = near.interrupts.iter().map(|interrupt| interrupt.name.as_str()).collect();
    assert_eq!(names, ["virtio0-config", "virtio0-input.0", "virtio0-output.0"]);
    assert!(near.interrupts.iter().all(|interrupt| !interrupt.cores.is_empty()), "{near:?}");
    assert_eq!(system.node_of_pci("0000:01:00.0,arg=1"), Some(1));
    assert_eq!((system.node_of_pci("01:00.0"), system.node_of_pci("net_memif0,socket=@x")), (Some(1), None));
    for none in ["lo", "", "../../x", "."] {
        assert_eq!(system.card(none), Card::default(), "{none:?}");
    }
}

#[test]
fn an_interrupt_is_found_by_its_number() {
    let directory = tree(
        "sys/class/net/eth1/device/msi_irqs/131\tmsix\n\
         sys/class/net/eth1/device/msi_irqs/31\tmsix\n\
         sys/class/net/eth1/device/numa_node\t-1\n\
         proc/irq/131/smp_affinity_list\t2-3\n\
         proc/irq/31/smp_affinity_list\t0\n\
         proc/interrupts\t           CPU0       CPU1\\n 31:  7  0  PCI-MSIX-0000:01:00.0  0-edge  eth1\\n131:  0  9  \
         PCI-MSIX-0000:01:00.0  1-edge  eth1-TxRx-0\\nNMI:  0  0  Non-maskable interrupts",
    );
    let card = System::at(directory.path()).card("eth1");
    let interrupt = |number, name: &str, cores: &[usize]| PortInterrupt {
        number,
        name: name.to_owned(),
        cores: cores.to_vec(),
    };
    assert_eq!(card.interrupts, [interrupt(31, "eth1", &[0]), interrupt(131, "eth1-TxRx-0", &[2, 3])]);
    assert_eq!(card.node, None, "-1 is no node");
}

#[test]
fn settings_are_read_where_there_are_any() {
    let cpu = "sys/devices/system/cpu";
    let directory = tree(&format!(
        "{cpu}/cpufreq/policy0/scaling_governor\tschedutil\n\
         {cpu}/cpufreq/policy1/scaling_governor\tperformance\n\
         {cpu}/cpufreq/policy2/scaling_governor\tperformance\n\
         {cpu}/cpu0/cpufreq/cpuinfo_max_freq\t3500000\n\
         {cpu}/cpu0/microcode/version\t0xa0011d1\n\
         {cpu}/vulnerabilities/meltdown\tNot affected\n\
         {cpu}/vulnerabilities/spectre_v2\tMitigation: Retpolines\n\
         proc/cmdline\tquiet isolcpus=2,3 -- --secret=x\n"
    ));
    let host = System::at(directory.path()).host();
    assert_eq!(host.governors.iter().map(String::as_str).collect::<Vec<_>>(), ["performance", "schedutil"]);
    assert_eq!((host.max_hz, host.microcode.as_deref()), (Some(3.5e9), Some("0xa0011d1")));
    assert_eq!(host.mitigations.iter().collect::<Vec<_>>().len(), 1);
    assert_eq!(host.mitigations["spectre_v2"], "Mitigation: Retpolines");
    assert_eq!(host.command_line.as_deref(), Some("quiet isolcpus=2,3"));
    let nothing = System::at(Path::new("/nowhere")).host();
    assert_eq!(nothing, Host::default());
}

#[test]
fn frequencies_and_temperatures_are_the_slowest_and_the_hottest() {
    let directory = tree(
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq\t2500000\n\
         sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq\t800000\n\
         sys/class/thermal/thermal_zone0/temp\t45000\n\
         sys/class/hwmon/hwmon2/temp1_input\t71500\n\
         sys/class/hwmon/hwmon2/temp2_input\t-274000\n",
    );
    let system = System::at(directory.path());
    assert_eq!((system.mhz(&[0]), system.mhz(&[0, 1]), system.celsius()), (Ok(2500.0), Ok(800.0), Ok(71.5)));
    assert!(system.mhz(&[2]).unwrap_err().contains("virtual machines hide it"));
    assert!(System::at(Path::new("/nowhere")).celsius().unwrap_err().contains("no sensor"));
}

#[test]
fn this_machine_tells_its_cores() {
    let host = host();
    assert!(!host.topology.cores.is_empty() && host.command_line.is_some(), "{host:?}");
    assert!(host.topology.cores.iter().all(|core| core.siblings.iter().all(|other| *other != core.number)));
}
