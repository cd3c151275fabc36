//! Where a run takes place: the device flags enter, two ports with a device between them leave,
//! in the built-in lab or on real interfaces.

mod observe;
mod others;
mod place;
mod site;

use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use dut::program::{Dut, Paused};
use engine::Engine;
use engine::af_xdp::{self, AfXdpEngine, Options};
use engine::replay::{Carrier, Sockets};
use engine::user_space::Crew;
use engine::xdp::{self, PortRef, XdpEngine};
use lab::holder::{Purpose, Server};
use lab::{Lab, Placement, Port};
use live::Board;
use monitor::gauges::Wanted;
use traffic::{Endpoints, FrameTable};
use wire::rate::Rate;
use wording::usage::misuse;

use self::site::Site;
use crate::inspection::{self, Inspection};
use crate::kept::Receiving;
use crate::lab_commands::LeftRunning;
use crate::port::{self, FALLBACK_LINE_RATE};
use crate::remote_device::RemoteDevice;
use crate::switch::Switch;
use crate::target::{EngineName, Place, Target};
use crate::user_space::UserSpace;
use crate::{receive_cost, reset_command};

/// What the labs of running load tests are called, before the process id.
const RUN: &str = "run-";

/// Two ports and what is between them.
pub struct Testbed {
    // Before the site: others stop looking into a lab before it goes.
    server: Option<Server>,
    unmerged: Option<lab::Unmerged>,
    /// What commands started in the lab ends with it.
    left_running: Option<LeftRunning>,
    site: Site,
    /// What sends and receives.
    engine: EngineName,
    placement: Placement,
    line_rate_bps: f64,
    receive: Option<Receiving>,
    reset_command: Option<String>,
    /// What is known of real interfaces.
    inspection: Option<Inspection>,
    dut_commands: Vec<String>,
    denied: Vec<IpAddr>,
    energy: Wanted,
    switch: Option<Switch>,
    notes: Vec<String>,
    board: Option<Board>,
}

impl Testbed {
    /// Opens what the flags ask for, with the device as the user's commands configure it; frames of
    /// up to `max_frame_size` bytes must fit.
    pub fn open(device: &Target, max_frame_size: usize) -> Result<Self> {
        // Between interfaces of the user's, what these can do decides.
        let engine = match device.engine {
            EngineName::Auto if !matches!(device.place, Place::Ports(_)) => EngineName::Xdp,
            named => named,
        };
        check_frame_size(&device.place, engine, max_frame_size)?;
        let switch = device.switch.as_ref().map(Switch::open).transpose()?;
        let mut placement = place::choose(device)?;
        if matches!(device.place, Place::Testers(_)) {
            // They have their own.
            (placement.generate, placement.receive_cores) = (Vec::new(), Vec::new());
        }
        let (site, left_running) = Site::open(device, engine, &placement, max_frame_size)?;
        let mut testbed = Self {
            server: None,
            left_running,
            unmerged: None,
            site,
            engine,
            placement,
            line_rate_bps: FALLBACK_LINE_RATE,
            receive: None,
            reset_command: None,
            inspection: None,
            dut_commands: device.dut_commands.clone(),
            denied: [device.place.denied(), device.denied.clone()].concat(),
            energy: device.energy.clone(),
            switch,
            notes: Vec::new(),
            board: None,
        };
        for port in testbed.ports() {
            port::check_mtu(port, max_frame_size)?;
        }
        testbed.inspect(device.engine, max_frame_size)?;
        testbed.line_rate_bps = testbed.find_line_rate(device.line_rate);
        testbed.note_place();
        Ok(testbed)
    }

    /// Looks at real interfaces before the first frame: what they can do decides by what it is sent.
    fn inspect(&mut self, engine: EngineName, max_frame_size: usize) -> Result<()> {
        let Site::Real(real, _) = &self.site else { return Ok(()) };
        let [zero, one] = real.ports();
        let inspection = Inspection::of(&[zero, one], engine, max_frame_size)?;
        inspection.tell();
        self.notes.extend(inspection.warnings.iter().cloned());
        self.engine = inspection.engine;
        self.inspection = Some(inspection);
        Ok(())
    }

    /// Notes what a reader of results should know of cores, devices and rights.
    fn note_place(&mut self) {
        match &self.site {
            Site::Lab(_, program, _) => {
                self.notes.extend(self.placement.notes.iter().cloned());
                self.notes.extend(program.iter().filter_map(|program| program.note()));
            }
            Site::Testers(_) => {}
            Site::Real(..) => self.notes.extend(self.placement.caveats_outside(false)),
            Site::UserSpace(user_space) => {
                self.notes.extend(self.placement.caveats_outside(user_space.has_own_dut()));
            }
        }
        self.notes.extend(lab::without_precedence());
    }

    /// Prepares for a load test: lets others look inside meanwhile (`linerate lab`), and measures
    /// what receiving costs where that is at the device's expense.
    pub fn prepare(&mut self) -> Result<()> {
        let others = lab::holder::list().into_iter().filter(|other| other.name.starts_with(RUN));
        self.notes.extend(others.map(|other| {
            format!(
                "another load test ran at the same time (process {}): the two disturbed each other",
                other.pid
            )
        }));
        let Site::Lab(_, program, lab) = &self.site else { return Ok(()) };
        let name = format!("{RUN}{}", std::process::id());
        self.server = Some(Server::start(&name, lab, Purpose::Bench)?);
        if self.left_running.is_some() {
            // A second device beside it, to measure with, might want the same files or ports.
            return Ok(());
        }
        // What AF_XDP costs there is another figure, which is not known.
        if self.engine == EngineName::Xdp && self.placement.receives_on_dut_core() && lab.has_interfaces() {
            let _paused = program.as_ref().map(|program| program.pause());
            self.receive = receive_cost::of(lab, &self.dut_commands)?;
        }
        Ok(())
    }

    fn find_line_rate(&mut self, asked: Option<f64>) -> f64 {
        if let Some(line_rate) = asked {
            return line_rate;
        }
        let slowest = self.ports().iter().filter_map(|port| port.speed_bps).min_by(f64::total_cmp);
        slowest.unwrap_or_else(|| {
            self.notes.push("the kernel does not say the ports' speed: 10 Gb/s is assumed".to_owned());
            FALLBACK_LINE_RATE
        })
    }

    /// Forgets what receiving costs, which a run has contradicted.
    pub fn forget_receive_cost(&self) {
        if let Some(lab) = self.lab() {
            receive_cost::forget(lab, &self.dut_commands);
        }
    }

    /// What receiving one frame costs the device's core, in nanoseconds, if that was measured.
    pub fn receive_cost_ns(&self) -> Option<f64> {
        self.receive.map(|receive| receive.cost_ns)
    }

    /// The sources whose packets the device must drop.
    pub fn denied(&self) -> &[IpAddr] {
        &self.denied
    }

    /// The two ports.
    pub fn ports(&self) -> &[Port; 2] {
        match &self.site {
            Site::Lab(.., lab) => lab.ports(),
            Site::Real(real, _) => real.ports(),
            Site::UserSpace(user_space) => user_space.ports(),
            Site::Testers(testers) => testers.ports(),
        }
    }

    /// The lab, if the testbed is one.
    pub fn lab(&self) -> Option<&Lab> {
        match &self.site {
            Site::Lab(.., lab) => Some(&**lab),
            Site::Real(..) | Site::UserSpace(_) | Site::Testers(_) => None,
        }
    }

    /// The device, if it is another computer or a virtual machine, and a driver configured it.
    pub fn remote(&self) -> Option<&RemoteDevice> {
        match &self.site {
            Site::Real(_, remote) | Site::Lab(remote, ..) => remote.as_deref(),
            Site::UserSpace(_) | Site::Testers(_) => None,
        }
    }

    /// The program that is the device in the lab, where the kernel is not.
    fn program(&self) -> Option<&Dut> {
        match &self.site {
            Site::Lab(_, program, _) => program.as_deref(),
            Site::Real(..) | Site::UserSpace(_) | Site::Testers(_) => None,
        }
    }

    /// Holds up the device of the lab, where it is a program, until the result is dropped: it would take the
    /// time of its core from what is measured beside it.
    pub fn pause_program(&self) -> Option<Paused> {
        self.program().map(Dut::pause)
    }

    /// Whether the device of the lab still runs, where it is a program.
    ///
    /// # Errors
    /// That it does not, and what it said last.
    pub fn check_program(&self) -> Result<()> {
        self.program().map_or(Ok(()), Dut::check)
    }

    /// Where frames go in each direction.
    pub fn endpoints(&self) -> Endpoints {
        let [zero, one] = self.ports();
        Endpoints([port::endpoint(zero), port::endpoint(one)])
    }

    /// Shows its runs on `board`, if there is one, while they go on.
    pub fn show_on(&mut self, board: Option<Board>) {
        self.board = board;
    }

    /// Where its runs are shown.
    pub fn board(&self) -> Option<&Board> {
        self.board.as_ref()
    }

    /// The line rate (L1) that percentages refer to, in bits a second.
    pub fn line_rate_bps(&self) -> f64 {
        self.line_rate_bps
    }

    /// `rate` in frames a second.
    pub fn pps(&self, rate: Rate, mean_frame_size: f64) -> Result<f64> {
        port::to_pps(rate, mean_frame_size, self.line_rate_bps)
    }

    /// The ports of user space, if the testbed is between them.
    pub fn user_space(&self) -> Option<&UserSpace> {
        match &self.site {
            Site::UserSpace(user_space) => Some(&**user_space),
            Site::Lab(..) | Site::Real(..) | Site::Testers(_) => None,
        }
    }

    /// Whether the tester can be joined to itself here, past the device.
    pub fn has_cable(&self) -> bool {
        self.lab().is_some() || self.user_space().is_some_and(UserSpace::has_own_dut)
    }

    /// What the device asks for at real interfaces from now on.
    pub fn questions(&self) -> Option<ports::Questions> {
        let Site::Real(real, _) = &self.site else { return None };
        let ports = real.ports().each_ref().map(|port| (port.name.as_str(), port.ifindex));
        ports::Questions::listen(&ports).ok()
    }

    /// The core for a device that Linerate starts.
    pub fn dut_core(&self) -> usize {
        self.placement.dut
    }

    /// The switch that the ports are plugged into, if it is asked.
    pub(crate) fn switch(&self) -> Option<&Switch> {
        self.switch.as_ref()
    }

    /// Whether the ports are those of user space.
    pub fn is_in_user_space(&self) -> bool {
        matches!(self.site, Site::UserSpace(_))
    }

    /// Whether TRex stateless servers send and receive, and nothing of this machine.
    pub fn has_testers(&self) -> bool {
        matches!(self.site, Site::Testers(_))
    }

    /// What a reader should know of those after a run; nothing without them.
    pub fn tester_notes(&self) -> Vec<String> {
        if let Site::Testers(testers) = &self.site { testers.notes() } else { Vec::new() }
    }

    /// An idle engine that sends `table` between the ports, and how each port runs it.
    pub fn start_any_engine(
        &self,
        table: &FrameTable,
        stop: &Arc<AtomicBool>,
    ) -> Result<(Box<dyn Engine>, Vec<String>)> {
        if let Site::UserSpace(user_space) = &self.site {
            let engine = user_space.start_engine(table, &self.placement.generate, stop)?;
            return Ok((engine, vec!["user space".to_owned(); 2]));
        }
        if let Site::Testers(testers) = &self.site {
            return Ok((testers.start_engine(table, stop)?, vec!["a TRex stateless server".to_owned(); 2]));
        }
        if self.engine == EngineName::AfXdp {
            let engine = self.start_af_xdp(self.port_refs()?, self.namespace(), table, stop)?;
            if let Some(lab) = self.lab() {
                lab.pin().context("cannot keep the device off the generator's core")?;
            }
            let modes = engine.modes_in_words();
            return Ok((Box::new(engine), modes));
        }
        let engine = self.start_engine(table, stop)?;
        let modes = engine.modes().into_iter().map(str::to_owned).collect();
        Ok((Box::new(engine), modes))
    }

    /// An idle engine on AF_XDP sockets that sends `table` between `ports`, which are in `namespace`.
    pub(crate) fn start_af_xdp(
        &self,
        [zero, one]: [PortRef; 2],
        namespace: Option<BorrowedFd<'_>>,
        table: &FrameTable,
        stop: &Arc<AtomicBool>,
    ) -> Result<AfXdpEngine> {
        let crew = Crew {
            send_cores: &self.placement.generate,
            receive_cores: &self.placement.receive_cores,
            table,
            stop: Arc::clone(stop),
        };
        Ok(AfXdpEngine::start(&[&zero, &one], namespace, Options::default(), &crew)?)
    }

    /// What sends and receives.
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// An idle engine in the kernel that sends `table` between the ports.
    pub fn start_engine(&self, table: &FrameTable, stop: &Arc<AtomicBool>) -> Result<XdpEngine> {
        let engine = XdpEngine::start(&xdp::Config {
            ports: self.port_refs()?,
            namespace: self.namespace(),
            cores: &self.placement.generate,
            table,
            stop: Arc::clone(stop),
        })?;
        match &self.site {
            Site::Lab(.., lab) => {
                lab.pin().context("cannot keep the device off the generator's core")?;
            }
            Site::Real(real, _) => {
                inspection::wait_for_links(&real.ports().each_ref().map(|port| port.name.as_str()))?;
            }
            Site::UserSpace(_) | Site::Testers(_) => {}
        }
        Ok(engine)
    }

    /// Programs at ports that send only while one is attached, for what sends without receiving there.
    ///
    /// # Errors
    /// When the kernel refuses, or a link does not come back.
    pub fn attach_programs(&self) -> Result<Vec<ports::Attached>> {
        self.inspection.as_ref().map_or(Ok(Vec::new()), Inspection::attach)
    }

    /// The ports for frames as they are, of up to `longest` bytes without FCS: raw sockets, or those of user space.
    pub fn carrier(&mut self, longest: usize) -> Result<Box<dyn Carrier>> {
        if let Site::UserSpace(user_space) = &self.site {
            return user_space.carrier(longest);
        }
        if self.has_testers() {
            return Err(misuse("frames as they are cannot be sent by --engine trex: use another engine"));
        }
        if self.engine == EngineName::AfXdp {
            return self.af_xdp_carrier(longest);
        }
        let ports = self.ports().each_ref().map(|port| (port.name.as_str(), port.ifindex));
        let open = || Sockets::open(ports);
        let (sockets, unmerged) = match self.lab() {
            Some(lab) => {
                let unmerged = lab.receive_unmerged()?;
                lab.pin().context("cannot keep the device off the generator's core")?;
                (lab.tester_namespace().run(|| Ok(open()))?, Some(unmerged))
            }
            None => (open(), None),
        };
        self.unmerged = unmerged;
        let sockets = sockets.context("cannot open raw sockets at the ports: run as root")?;
        Ok(Box::new(sockets))
    }

    /// One port for single frames as they are, both ways, beside an engine's: raw sockets.
    ///
    /// # Errors
    /// Where the port is none of the kernel's, or the kernel refuses.
    pub fn port_carrier(&self, port: usize) -> Result<Box<dyn Carrier>> {
        if self.is_in_user_space() || self.has_testers() {
            return Err(misuse("single packets are sent and captured at ports of the kernel alone"));
        }
        let port = &self.ports()[port % 2];
        let open = || Sockets::open([(port.name.as_str(), port.ifindex); 2]);
        let sockets = match self.lab() {
            Some(lab) => lab.tester_namespace().run(|| Ok(open()))?,
            None => open(),
        };
        Ok(Box::new(sockets.context("cannot open raw sockets at the port: run as root")?))
    }

    /// The same by AF_XDP sockets.
    fn af_xdp_carrier(&self, longest: usize) -> Result<Box<dyn Carrier>> {
        let [zero, one] = self.port_refs()?;
        // Frames reach the sockets before the kernel could merge them.
        let carrier = af_xdp::replay::carrier([&zero, &one], self.namespace(), Options::default(), longest)?;
        if let Some(lab) = self.lab() {
            lab.pin().context("cannot keep the device off the generator's core")?;
        }
        Ok(Box::new(carrier))
    }

    /// The ports as the kernel's engine knows them.
    pub fn port_refs(&self) -> Result<[PortRef; 2]> {
        if self.is_in_user_space() || self.has_testers() {
            return Err(misuse("this command sends by the kernel alone: leave --engine out"));
        }
        let [zero, one] = self.ports();
        Ok([port::reference(zero), port::reference(one)])
    }

    /// Where the ports are, if not here.
    pub fn namespace(&self) -> Option<BorrowedFd<'_>> {
        self.lab().map(|lab| lab.tester_namespace().fd())
    }

    /// The cores that generate.
    pub fn generating_cores(&self) -> &[usize] {
        &self.placement.generate
    }

    /// What a reader of results should know of this testbed.
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Resets the device by this command from now on, where it is not the lab's.
    pub fn reset_by(&mut self, command: Option<String>) {
        self.reset_command = command;
    }

    /// Resets the device: the lab's by its interfaces, others by the command for it.
    ///
    /// # Errors
    /// Why it cannot be reset, with the remedy.
    pub fn reset(&self) -> Result<(), String> {
        match (&self.site, &self.reset_command) {
            (Site::Lab(.., lab), _) if lab.has_interfaces() => lab.reset().map_err(|error| error.to_string()),
            (_, Some(command)) => reset_command::start(command),
            (_, None) => Err("Linerate does not know how to reset this device: give --reset-command".into()),
        }
    }
}

/// Refuses frames that the engine, or a device of the lab, does not take.
fn check_frame_size(place: &Place, engine: EngineName, max_frame_size: usize) -> Result<()> {
    // The programs of the lab's devices know frames of one page only.
    let (most, within) = match place {
        Place::Lab(_) => (engine.max_frame().min(EngineName::Xdp.max_frame()), " in the lab"),
        _ => (engine.max_frame(), ""),
    };
    if !engine.is_in_user_space() && max_frame_size > most {
        return Err(misuse(format!(
            "frames of {max_frame_size} bytes are too large: the {engine} engine sends at most {most} bytes{within}; \
             choose a smaller --size, or --engine memif or dpdk"
        )));
    }
    Ok(())
}
