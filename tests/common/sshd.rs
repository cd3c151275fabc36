//! A device that is another computer: a namespace with an ssh server of its own, which the tester's reaches
//! over a management link, and the client's configuration for it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::sites::Site;
use super::{Linerate, tool, wait_until};

const SSHD: &str = "/usr/sbin/sshd";
/// The device's address on the management link, and its server's port.
const ADDRESS: &str = "192.0.2.2";
const PORT: u16 = 2022;

/// Whether an ssh server is installed. A test that needs it returns where this is false.
pub fn has_sshd() -> bool {
    let found = Path::new(SSHD).exists() && Path::new("/usr/bin/ssh").exists();
    if !found {
        eprintln!("skipped: no ssh server (install openssh-server)");
    }
    found
}

/// The ssh server of a site's far side. It is killed when this is dropped.
pub struct Device {
    server: Child,
    directory: TempDir,
}

impl Device {
    /// Connects both sides of `site` by `mgmt0` and `mgmt1`, and starts a server on the far side. The client
    /// knows it as `dut`. It is also `stranger`, whose host key the client does not know, `locked`, which takes
    /// another key than the client's, and `closed`, where no server listens.
    pub fn start(site: &Site) -> Self {
        let far = site.far.path();
        site.tester.run(&format!(
            "ip link add mgmt0 type veth peer name mgmt1 netns {far}
             sysctl -qw net.ipv6.conf.mgmt0.disable_ipv6=1
             ip address add 192.0.2.1/24 dev mgmt0
             ip link set mgmt0 up"
        ));
        site.far.run(&format!(
            "sysctl -qw net.ipv6.conf.mgmt1.disable_ipv6=1
             ip address add {ADDRESS}/24 dev mgmt1
             ip link set mgmt1 up"
        ));
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().display().to_string();
        for key in ["host_key", "key", "wrong_key"] {
            tool(Command::new("ssh-keygen").args([
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-f",
                &format!("{root}/{key}"),
            ]));
        }
        for name in ["bin", "tools"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let write = |name: &str, text: String| fs::write(directory.path().join(name), text).unwrap();
        fs::copy(directory.path().join("key.pub"), directory.path().join("authorized_keys")).unwrap();
        let host_key = fs::read_to_string(directory.path().join("host_key.pub")).unwrap();
        write("known_hosts", format!("dut {host_key}"));
        write(
            "sshd_config",
            format!(
                "Port {PORT}\nListenAddress {ADDRESS}\nHostKey {root}/host_key\nPidFile none\nUsePAM no\n\
                 AuthorizedKeysFile {root}/authorized_keys\nStrictModes no\nPasswordAuthentication no\n\
                 PermitRootLogin prohibit-password\nSetEnv PATH={root}/tools:/usr/local/bin:/usr/bin:/bin\n"
            ),
        );
        write(
            "config",
            format!(
                "Host closed\nPort 2023\n\
                 Host stranger\nHostKeyAlias stranger\n\
                 Host locked\nIdentityFile {root}/wrong_key\n\
                 Host dut stranger closed\nIdentityFile {root}/key\n\
                 Host *\nHostName {ADDRESS}\nPort {PORT}\nUser root\nIdentitiesOnly yes\nHostKeyAlias dut\n\
                 UserKnownHostsFile {root}/known_hosts\nGlobalKnownHostsFile none\nCheckHostIP no\n"
            ),
        );
        let device = Self { server: serve(site, directory.path()), directory };
        device.script("bin/ssh", &format!("exec /usr/bin/ssh -F {root}/config \"$@\""));
        let answers = || {
            let mut ssh = site.tester.command("/usr/bin/ssh");
            ssh.args(["-F", &format!("{root}/config"), "-o", "BatchMode=yes", "dut", "true"]);
            ssh.stderr(Stdio::null()).status().unwrap().success()
        };
        if !wait_until(Duration::from_secs(10), answers) {
            let log = fs::read_to_string(device.directory.path().join("log")).unwrap_or_default();
            panic!("the ssh server does not answer: {log}");
        }
        device
    }

    /// `line` on the tester's side, with this client configuration.
    pub fn client<'a>(&self, line: Linerate<'a>, site: &'a Site) -> Linerate<'a> {
        let path = format!("{}/bin:{}", self.directory.path().display(), std::env::var("PATH").unwrap());
        line.inside(&site.tester).env("PATH", &path)
    }

    /// A file that tools of the device may write to.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts a program into the device's path, ahead of all others, that does what the lines of `script` say and
    /// first writes how it was called into the file `calls`.
    pub fn fake(&self, name: &str, script: &str) {
        let calls = self.file("calls");
        self.script(
            &format!("tools/{name}"),
            &format!("echo \"{name} $*\" >> {}\n{script}", calls.display()),
        );
    }

    fn script(&self, name: &str, script: &str) {
        let path = self.file(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Starts the server, with the empty directory that it wants below a `/run` of its own. It dies with the test.
fn serve(site: &Site, directory: &Path) -> Child {
    let root = directory.display();
    let script = format!(
        "mount -t tmpfs none /run && mkdir /run/sshd && exec setpriv --pdeathsig KILL {SSHD} -D -f {root}/sshd_config -E {root}/log"
    );
    let mut command = site.far.command("sh");
    command.args(["-ec", &script]).stdin(Stdio::null());
    command.spawn().unwrap()
}
