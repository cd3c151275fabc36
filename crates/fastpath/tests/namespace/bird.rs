//! BIRD in a network namespace: a configuration enters, a routing daemon runs until it is dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Namespace;

const BIRD: &str = "/usr/sbin/bird";

pub struct Bird {
    daemon: Child,
    socket: PathBuf,
}

impl Bird {
    /// Whether there is one; says if not.
    pub fn is_installed() -> bool {
        let installed = Path::new(BIRD).exists();
        if !installed {
            eprintln!("skipped: BIRD is not installed (apt-get install bird2)");
        }
        installed
    }

    pub fn start(namespace: &Namespace, directory: &Path, name: &str, configuration: &str) -> Self {
        let file = directory.join(format!("{name}.conf"));
        fs::write(&file, configuration).unwrap();
        let socket = directory.join(format!("{name}.ctl"));
        let mut command = Command::new(BIRD);
        command.arg("-f").arg("-c").arg(file).arg("-s").arg(&socket).stderr(Stdio::null());
        Self { daemon: namespace.inside(move || command.spawn().unwrap()), socket }
    }

    /// Has it do something, in the words of its control.
    pub fn control(&self, words: &str) {
        let output = Command::new("birdc").arg("-s").arg(&self.socket).args(words.split(' ')).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

impl Drop for Bird {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
