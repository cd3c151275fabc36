//! Drivers of systems that are not here, FreeBSD and VPP: which commands they call, by programs of the same names that
//! only note their words, and what they read in what these print.

use std::fs;

use super::{BRIEF, GATEWAYS, Remote, passes};
use crate::common::eventually;
use crate::common::sites::Site;
use crate::common::sshd::Device;

#[test]
fn freebsd_is_called_as_its_manuals_say() {
    // Its far side forwards already; what the driver does goes to programs that only note it.
    let Some(remote) = Remote::of(Site::router) else { return };
    let device = &remote.device;
    device.fake("uname", "[ \"$1\" = -s ] && echo FreeBSD || echo FreeBSD 14.0-RELEASE amd64");
    device.fake(
        "ifconfig",
        "case \"$*\" in -a) echo 'em0: flags=8863<UP> metric 0 mtu 1500'; echo '\tinet 192.0.2.2 netmask 0xffffff00' ;;
         -l) echo em0 ix0 ix1 ;;
         ix?) echo \"$1: flags=8822<BROADCAST,SIMPLEX> metric 0 mtu 1500\"; echo '\toptions=4e53fbb<RXCSUM,TXCSUM,TSO4,LRO,WOL>' ;;
         em0|'ix'*) ;; *) exit 1 ;; esac",
    );
    device.fake("route", "case \"$*\" in *get*) echo '  interface: em0' ;; esac");
    device.fake("sysctl", "case \"$*\" in '-n net.inet.ip.forwarding') echo 0 ;; '-n kern.random.harvest.mask') echo 511 ;; esac");
    device.fake(
        "netstat",
        "case \"$*\" in *-rn*) echo 'default 192.0.2.1 UGS em0' ;;
         *-I*) n=$(cat $0.n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > $0.n
             echo 'Name Mtu Network Address Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll Drop'
             echo \"ix0 1500 <Link#1> 00:25:90:aa:bb:cc $((n * 100)) 0 $n 6400 $((n * 50)) 0 3200 0 3\"
             echo 'ix0 - 100.65.1.0/24 100.65.1.1 7 - - 448 7 - 448 - -' ;;
         *-s*ip) echo '\t1234567 packets forwarded (1200000 packets fast forwarded)'; echo '\t1 packet not forwardable' ;; esac",
    );
    for name in ["arp", "pfctl", "kldstat", "freebsd-version"] {
        device.fake(name, "case \"$*\" in *info*) echo 'Status: Enabled for 0 days 00:01:02' ;; esac");
    }
    let line = format!(
        "{BRIEF} {GATEWAYS} --dut-host dut --dut-driver freebsd --dut-option port0=ix0 --dut-option port1=ix1 \
         --dut-option pf=off --dut-option offloads=off --dut-option harvest_mask=351"
    );
    let Some(record) = eventually(|| {
        let _ = fs::remove_file(device.file("calls"));
        passes(&remote.run(&line).run())
    }) else {
        return;
    };
    let applied = [
        "pfctl -q -d",
        "ifconfig ix0 -tso4",
        "ifconfig ix0 -lro",
        "ifconfig ix1 -tso4",
        "ifconfig ix1 -lro",
        "ifconfig ix0 up",
        "ifconfig ix1 up",
        "sysctl net.inet.ip.forwarding=1",
        "ifconfig ix0 inet 100.65.1.1/24 alias",
        "ifconfig ix1 inet 100.65.2.1/24 alias",
        "route -q add -net 16.0.0.0/8 100.65.1.2",
        "route -q add -net 48.0.0.0/8 100.65.2.2",
        "arp -s 100.65.1.2 02:00:00:00:01:02",
        "arp -s 100.65.2.2 02:00:00:00:02:02",
        "sysctl kern.random.harvest.mask=351",
    ];
    let undone = [
        "sysctl kern.random.harvest.mask=511",
        "arp -d 100.65.2.2",
        "arp -d 100.65.1.2",
        "route -q delete -net 48.0.0.0/8 100.65.2.2",
        "route -q delete -net 16.0.0.0/8 100.65.1.2",
        "ifconfig ix1 inet 100.65.2.1 -alias",
        "ifconfig ix0 inet 100.65.1.1 -alias",
        "sysctl net.inet.ip.forwarding=0",
        "ifconfig ix1 down",
        "ifconfig ix0 down",
        "ifconfig ix1 tso4",
        "ifconfig ix1 lro",
        "ifconfig ix0 tso4",
        "ifconfig ix0 lro",
        "pfctl -q -e",
    ];
    assert_calls(device, &applied, &undone);
    let counters = &record.dut.remote.as_ref().unwrap().counters;
    assert!(counters["port0 receive dropped"].meanwhile() > Some(0), "{counters:?}");
    assert_eq!(counters["ip packets forwarded"].after, 1_234_567, "{counters:?}");
    assert_eq!(counters["ip packets not forwardable"].after, 1);
}

/// Whether the device's programs were called as in `applied`, in this order among calls that only ask, and at
/// last as in `undone`.
fn assert_calls(device: &Device, applied: &[&str], undone: &[&str]) {
    let calls = fs::read_to_string(device.file("calls")).unwrap();
    let lines: Vec<&str> = calls.lines().collect();
    let mut rest = lines.iter();
    for wanted in applied {
        assert!(rest.any(|line| line == wanted), "no '{wanted}' there in\n{calls}");
    }
    assert_eq!(lines[lines.len().saturating_sub(undone.len())..], *undone, "{calls}");
}

#[test]
fn vpp_is_called_as_its_documentation_says() {
    let Some(remote) = Remote::of(Site::router) else { return };
    let device = &remote.device;
    device.fake(
        "vppctl",
        "case \"$*\" in
         'show version') echo 'vpp v24.02-release built by root on host' ;;
         'show mode '*) echo \"l3 $3\"; echo \"l3 $4\" ;;
         'show interface address '*) echo \"$4 (dn):\" ;;
         'show interface rx-placement') ;;
         'show interface '*)
             n=$(cat $0.n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > $0.n
             echo '       Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count'
             echo \"$3                1     down         9000/0/0/0     rx packets      $((11615035382 + n))\"
             echo '                                                       rx bytes     1785998048960'
             echo '                                                       tx packets       700076496'
             echo \"                                                       drops             $((n * 10))\"
             echo '                                                       ip4                     5' ;;
         'show errors')
             echo '   Count                  Node                              Reason               Severity'
             echo '         7             null-node                     blackholed packets           error'
             echo '         2             null-node                     blackholed packets           error'
             echo '        11             ethernet-input                l3 mac mismatch              error' ;;
         'show runtime') [ -e $0.read ] && cat \"$0.recorded\" || echo > $0.read ;;
         'set interface state bad '*) echo 'set interface state: unknown interface `bad up' ;;
         esac",
    );
    // Not what this VPP did: a text that the author of "VPP on FreeBSD, part 2" recorded of one with three workers.
    fs::write(device.file("tools/vppctl.recorded"), include_str!("show-runtime.txt")).unwrap();
    let line = |flags: &str| format!("{BRIEF} {GATEWAYS} --dut-host dut --dut-driver vpp {flags}");
    let ports = "--dut-option port0=TenGigabitEthernet3/0/0 --dut-option port1=TenGigabitEthernet3/0/1";
    let run = |flags: &str| {
        eventually(|| {
            let _ =
                (fs::remove_file(device.file("calls")), fs::remove_file(device.file("tools/vppctl.read")));
            passes(&remote.run(&line(flags)).run())
        })
    };
    let Some(record) = run(ports) else { return };
    let [zero, one] = ["TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1"];
    let applied = [
        format!("vppctl set interface state {zero} up"),
        format!("vppctl set interface state {one} up"),
        format!("vppctl set interface ip address {zero} 100.65.1.1/24"),
        format!("vppctl set interface ip address {one} 100.65.2.1/24"),
        format!("vppctl set ip neighbor {zero} 100.65.1.2 02:00:00:00:01:02 static"),
        format!("vppctl set ip neighbor {one} 100.65.2.2 02:00:00:00:02:02 static"),
        format!("vppctl ip route add 16.0.0.0/8 via 100.65.1.2 {zero}"),
        format!("vppctl ip route add 48.0.0.0/8 via 100.65.2.2 {one}"),
        "vppctl clear runtime".to_owned(),
    ];
    let undone = [
        format!("vppctl ip route del 48.0.0.0/8 via 100.65.2.2 {one}"),
        format!("vppctl ip route del 16.0.0.0/8 via 100.65.1.2 {zero}"),
        format!("vppctl set ip neighbor del {one} 100.65.2.2 02:00:00:00:02:02"),
        format!("vppctl set ip neighbor del {zero} 100.65.1.2 02:00:00:00:01:02"),
        format!("vppctl set interface ip address del {one} 100.65.2.1/24"),
        format!("vppctl set interface ip address del {zero} 100.65.1.1/24"),
        format!("vppctl set interface state {one} down"),
        format!("vppctl set interface state {zero} down"),
    ];
    assert_calls(device, &applied.each_ref().map(String::as_str), &undone.each_ref().map(String::as_str));
    assert!(record.dut.configuration["version"].starts_with("vpp v24.02-release"));
    let counters = &record.dut.remote.as_ref().unwrap().counters;
    assert_eq!(counters["null-node blackholed packets error"].after, 9, "{counters:?}");
    assert_eq!(counters["port1 sent"].after, 700_076_496);
    assert!(counters["port0 received"].after > 11_615_035_382, "{counters:?}");
    assert!(counters["port0 drops"].meanwhile() > Some(0));
    // The nodes' table stands in the record as that of a VPP that is started here.
    let node = |thread: &str, name: &str| {
        let found =
            record.nodes.iter().find(|node| (node.thread.as_str(), node.name.as_str()) == (thread, name));
        found.and_then(|node| node.meanwhile()).unwrap_or_else(|| panic!("{:?}", record.nodes))
    };
    let (input, tx) = (node("vpp_wk_1", "dpdk-input"), node("vpp_wk_2", "TwentyFiveGigabitEthernet6/0/0-tx"));
    assert_eq!((input.calls, input.vectors, input.clocks), (456_112, 233_529_344, 141.0));
    assert_eq!((tx.calls, tx.vectors, tx.clocks), (456_113, 116_764_928, 281.0));
    assert!(record.nodes_s > Some(0.3), "{:?}", record.nodes_s);

    let Some(_) = run(&format!("{ports} --dut-option mode=xconnect")) else { return };
    let applied = [
        format!("vppctl set interface l2 xconnect {zero} {one}"),
        format!("vppctl set interface l2 xconnect {one} {zero}"),
    ];
    let undone = [
        format!("vppctl set interface l3 {one}"),
        format!("vppctl set interface l3 {zero}"),
        format!("vppctl set interface state {one} down"),
        format!("vppctl set interface state {zero} down"),
    ];
    assert_calls(device, &applied.each_ref().map(String::as_str), &undone.each_ref().map(String::as_str));

    // vppctl says that it failed, but ends well.
    let refused = remote.run(&line("--dut-option port0=bad --dut-option port1=b")).run();
    let refusal = refused.refusal(1);
    assert!(refusal.contains("set port 0 up: ") && refusal.contains("unknown interface"), "{refusal}");
}
