//! FRR in a network namespace: what its BGP daemon is told enters; that and zebra, which writes to the kernel's table,
//! run until they are dropped.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::Namespace;

const ZEBRA: &str = "/usr/lib/frr/zebra";
const BGPD: &str = "/usr/lib/frr/bgpd";

pub struct Frr {
    daemons: Vec<Child>,
    /// Their files, for as long as they run.
    _files: TempDir,
}

impl Frr {
    /// Whether there is one; says if not.
    pub fn is_installed() -> bool {
        let installed = Path::new(BGPD).exists();
        if !installed {
            eprintln!("skipped: FRR is not installed (apt-get install frr)");
        }
        installed
    }

    pub fn start(namespace: &Namespace, configuration: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        // The daemons become the user frr, who writes their sockets there.
        fs::set_permissions(files.path(), Permissions::from_mode(0o777)).unwrap();
        let start = |(program, name, configuration): (&str, &str, &str)| {
            let path = |ending: &str| files.path().join(format!("{name}.{ending}"));
            fs::write(path("conf"), configuration).unwrap();
            let mut command = Command::new(program);
            command.arg("-f").arg(path("conf")).arg("-i").arg(path("pid")).args(["-P", "0"]);
            command.arg("-z").arg(files.path().join("zserv.api")).arg("--vty_socket").arg(files.path());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            namespace.inside(move || command.spawn().unwrap())
        };
        let daemons = [(ZEBRA, "zebra", ""), (BGPD, "bgpd", configuration)].map(start).into();
        Self { daemons, _files: files }
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
