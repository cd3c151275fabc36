//! Promiscuous mode and all multicast by TRex's own client: on while a client wants them, and gone with its port, and with
//! the server.

use std::path::Path;

use crate::common::sites::Site;
use crate::common::{REPOSITORY, has_namespaces, linerate, listening};
use crate::trex::python;
use serde_json::{Value, json};

#[test]
fn an_interface_takes_frames_for_others_only_while_a_client_wants_that() {
    let Some(python) = python().filter(|_| has_namespaces()) else { return };
    let site = Site::router();
    let line = "serve --ports eth1,eth2 --gateways 100.65.1.1,100.65.2.1 --rpc-port 0 --publish-port 0";
    let server = linerate(line).inside(&site.tester).start();
    let Some((server, [calls, events])) = listening(server) else { return };
    let mut client = site.tester.command(python.to_str().unwrap());
    client.arg(Path::new(REPOSITORY).join("tests/trex_client.py"));
    client.args([calls, events, "others".to_owned(), server.pid().to_string()]);
    let output = client.output().unwrap();
    let (answer, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{answer}\n{error}\n{}", server.stderr());
    let seen: Value = serde_json::from_str(answer.trim().lines().last().unwrap()).unwrap();
    for (when, expected) in [
        ("supported", json!("yes")),
        ("at first", json!([false, false, "off", "off"])),
        ("promiscuous", json!([true, false, "on", "off"])),
        ("both", json!([true, true, "on", "on"])),
        ("multicast", json!([false, true, "off", "on"])),
        ("released", json!([false, false])),
        ("again", json!([true, true])),
        ("killed", json!([false, false])),
    ] {
        assert_eq!(seen[when], expected, "{when}: {seen}");
    }
}
