//! The tester's ports as memifs of our own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use engine::Engine;
use engine::listening::Listener;
use engine::memif::replay;
use engine::memif::{End, MemifEngine};
use engine::replay::Carrier;
use engine::user_space::Crew;
use fastpath::config::Device;
use memif::{Role, Socket};
use traffic::FrameTable;
use wording::usage::misuse;

use super::link::{Link, Watch, arguments, counters, socket_of_a_cable};

/// Two memifs.
pub struct Ends {
    ends: [End; 2],
    devices: [String; 2],
}

impl Ends {
    /// The other ends of those who listen at `sockets`.
    pub fn to(sockets: &[Socket; 2]) -> Self {
        let end = |number: usize| End {
            name: name(number),
            role: Role::Client,
            socket: sockets[number].clone(),
            id: 0,
            secret: String::new(),
            unsealed: false,
        };
        let devices = sockets.each_ref().map(|socket| format!("memif:socket={socket},role=client"));
        Self { ends: [end(0), end(1)], devices }
    }

    /// Both ends of one memif.
    ///
    /// # Errors
    /// As [`Ends::named`].
    pub fn of_a_cable() -> Result<Self> {
        let socket = socket_of_a_cable();
        Self::named(["server", "client"].map(|role| format!("memif:socket={socket},role={role}")))
    }

    /// Those that the user names, each as in `memif:socket=/run/vpp/memif.sock,role=client`.
    ///
    /// # Errors
    /// When one is no memif.
    pub fn named(devices: [String; 2]) -> Result<Self> {
        let [zero, one] = [0, 1].map(|number| end(number, &devices[number]));
        Ok(Self { ends: [zero?, one?], devices })
    }

    /// Port 0 and port 1.
    pub fn ends(&self) -> [&End; 2] {
        self.ends.each_ref()
    }
}

/// The device of DPDK that listens at `socket`, for frames of an ordinary MTU.
pub fn dpdk_server(socket: &Socket) -> String {
    format!("net_memif_server,role=server,id=0,bsize=2048,rsize=10,{}", arguments(socket))
}

fn name(number: usize) -> String {
    format!("memif{number}")
}

/// Counts what arrives at `devices`, one memif or two, on `cores`.
///
/// # Errors
/// When one is no memif, or cannot be opened.
pub fn listen(devices: &[String], cores: &[usize]) -> Result<Box<dyn Listener>> {
    let ends = devices.iter().enumerate().map(|(number, device)| end(number, device));
    let ends = ends.collect::<Result<Vec<_>>>()?;
    Ok(Box::new(engine::memif::listen(&ends.iter().collect::<Vec<_>>(), cores)?))
}

/// What `device` says, which Linerate's own router understands too.
fn end(number: usize, device: &str) -> Result<End> {
    match device.parse::<Device>() {
        Ok(Device::Memif(said)) => Ok(End {
            name: name(number),
            role: said.role,
            socket: said.socket,
            id: said.id,
            secret: said.secret,
            unsealed: said.unsealed,
        }),
        Ok(_) => {
            Err(misuse(format!("'{device}' is no memif: write memif:socket=/run/memif.sock,role=client")))
        }
        Err(reason) => Err(misuse(format!("--port{number}: {reason}"))),
    }
}

impl Link for Ends {
    fn start_engine(
        &self,
        table: &FrameTable,
        [send_cores, receive_cores]: [&[usize]; 2],
        stop: &Arc<AtomicBool>,
    ) -> Result<(Box<dyn Engine>, Watch)> {
        let crew = Crew { send_cores, receive_cores, table, stop: Arc::clone(stop) };
        let engine = MemifEngine::start(self.ends(), &crew)?;
        let watch = engine.watch();
        Ok((Box::new(engine), Box::new(move || Ok(watch.read().map(|ports| ports.map(counters))))))
    }

    fn carrier(&self, longest: usize) -> Result<Box<dyn Carrier>> {
        Ok(Box::new(replay::carrier(self.ends(), longest).context("cannot open the memifs")?))
    }

    fn devices(&self) -> &[String; 2] {
        &self.devices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memif_is_named_as_in_a_router_s_configuration() {
        let named = |one: &str| Ends::named(["memif:socket=/run/a,id=3".into(), one.into()]);
        let ends = named("memif:socket=@b,role=client,secret=x").ok().unwrap().ends;
        assert_eq!((ends[0].role, ends[0].id, ends[0].name.as_str()), (Role::Server, 3, "memif0"));
        assert!(
            named("memif:socket=/run/b,unsealed=true").ok().unwrap().ends[1].unsealed && !ends[0].unsealed
        );
        assert_eq!((ends[1].role, ends[1].secret.as_str()), (Role::Client, "x"));
        for (wrong, clue) in
            [("null", "no memif"), ("memif:", "needs a socket"), ("net_memif0", "net_memif0")]
        {
            let text = named(wrong).err().unwrap().to_string();
            assert!(text.contains(clue), "{text}");
        }
    }
}
