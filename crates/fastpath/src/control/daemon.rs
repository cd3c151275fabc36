//! The running router: a configuration enters; its devices, workers and control socket are there until it
//! is told to stop. One thread, this one, owns the [`crate::control::router::Router`]; all that is asked of it comes
//! by one channel.

mod access_lists;
mod devices;
mod facts;
mod kernel;
mod memory;
#[cfg(feature = "dpdk")]
mod ports;
#[cfg(not(feature = "dpdk"))]
#[path = "daemon/ports_absent.rs"]
mod ports;
mod shortcuts;
mod state;
#[cfg(test)]
mod tests;

use std::io::BufReader;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::devices::Opened;
use self::ports::Ports;
use self::shortcuts::Shortcuts;
use self::state::State;
use crate::control::config::{self, Config};
use crate::control::protocol::{Answer, Reply, Request, Show};
use crate::control::server::Socket;
use crate::control::threads::{self, Job, Workers};
use crate::dataplane::counters::Counters;
use crate::dataplane::flow::rss::Rss;
use crate::dataplane::handoff::Handoff;
use crate::dataplane::worker::{Receive, Worker};
use crate::device::Output;

/// How often links are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often the main thread looks after what nobody asks it for.
const TICK: Duration = Duration::from_millis(5);

/// The most bytes of a configuration, and of a table of routes beside it.
const LONGEST_CONFIGURATION: u64 = 256 << 20;
const LONGEST_TABLE: u64 = 1 << 30;

/// What the main thread is told.
enum Message {
    /// Somebody asks, and waits for the reply.
    Asked(Request, SyncSender<Reply>),
    /// The configuration file may have changed (SIGHUP).
    Reload,
    /// It is time to go (SIGINT, SIGTERM).
    Stop,
}

/// Reads and checks the configuration in `file`, and the table of routes that it names.
///
/// # Errors
/// That they cannot be read, or all that is wrong with them.
pub fn configuration(file: &Path) -> Result<Config> {
    let text = foreign::file::read_text(file, LONGEST_CONFIGURATION)
        .with_context(|| format!("cannot read the configuration {}", file.display()))?;
    let mut config = Config::parse(&file.display().to_string(), &text)?;
    drop(text);
    if let Some(name) = &config.routes_file {
        let table = file.parent().map_or_else(|| name.clone(), |directory| directory.join(name));
        let lines = foreign::file::open_up_to(&table, LONGEST_TABLE)
            .with_context(|| format!("cannot read the table of routes {}", table.display()))?;
        config.add_table(&table.display().to_string(), BufReader::with_capacity(1 << 16, lines))?;
    }
    Ok(config)
}

/// Runs the router that `file` describes until a signal ends it. Says what it does by `log`.
///
/// # Errors
/// When it cannot start, or a worker has failed.
pub fn run(file: &Path, log: &dyn Fn(&str)) -> Result<()> {
    run_started(file, log, start)
}

/// As [`run`], with the router and the workers that `start` makes of the configuration.
fn run_started(
    file: &Path,
    log: &dyn Fn(&str),
    start: impl FnOnce(Config, &Path) -> Result<(State, Workers)>,
) -> Result<()> {
    let config = configuration(file)?;
    threads::check(&config.workers.cores)?;
    // Before anything else: another router that has the socket has the devices too.
    let socket = Socket::open(&config.socket)?;
    let metrics = config.metrics.map(listen).transpose()?;
    let (tell, told) = mpsc::channel();
    signals(tell.clone())?;
    let (mut state, workers) = start(config, file)?;
    memory::give_back();
    let metrics = metrics.map(|listener| serve_metrics(listener, tell.clone())).transpose()?;
    serve(&socket, tell)?;
    log(&format!(
        "in control at {}, with {} workers",
        state.config().socket.display(),
        workers.running.len()
    ));
    let ended = attend(&mut state, &workers, &told, log);
    // Clients that still wait for an answer get none.
    drop((told, metrics));
    drop(workers);
    ended
}

/// Answers what is asked until it is time to go.
fn attend(state: &mut State, workers: &Workers, told: &Receiver<Message>, log: &dyn Fn(&str)) -> Result<()> {
    let mut patience = TICK;
    loop {
        match told.recv_timeout(patience) {
            Ok(Message::Asked(request, reply)) => {
                // The client that asked may have gone meanwhile.
                let _ = reply.send(state.answer(request));
            }
            Ok(Message::Reload) => match state.reload(None) {
                Ok(done) => log(&done),
                Err(error) => log(&format!("the running configuration stays: {error:#}")),
            },
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        // With more to be taken up at once nobody waits, but who asks has a turn in between.
        patience = if state.tick(log)? { Duration::ZERO } else { TICK };
        if !workers.all_work() {
            bail!("a worker has failed, so the router stops: what it said stands above; please report it");
        }
    }
}

/// The router and its workers, each with its share of the devices' queues.
fn start(config: Config, file: &Path) -> Result<(State, Workers)> {
    let mut state = State::new(config, file)?;
    let said = state.config().workers.clone();
    let workers = said.cores.len();
    let mut inputs: Vec<Vec<Receive>> = (0..workers).map(|_| Vec::new()).collect();
    let mut outputs: Vec<Vec<Box<dyn Output>>> = (0..workers).map(|_| Vec::new()).collect();
    let ports = Ports::start(state.config())?;
    let mut devices: Vec<Opened> = Vec::new();
    let mut placed = (0..workers).cycle();
    let rss = Arc::new(Rss::new(workers));
    let shortcuts = Shortcuts::of(state.config())?;
    for interface in &state.config().interfaces {
        let config::Attachment::Device(device) = &interface.attachment else { continue };
        let mtu = state.config().longest_mtu(interface);
        let (mut opened, queues) =
            Opened::new(&interface.name, devices.len(), (device, mtu), workers, &ports, shortcuts.kernel())
                .with_context(|| format!("cannot open the device of {}", interface.name))?;
        let number = devices.len() as u16;
        for (input, worker) in queues.inputs.into_iter().zip(&mut placed) {
            let mut receive = Receive::new(number, input);
            if interface.rss && workers > 1 {
                let (handoff, ways) = Handoff::new(Arc::clone(&rss), worker, workers);
                receive.handoff = Some(handoff);
                for way in ways {
                    inputs[way.to].push(Receive::new(number, way.input));
                    opened.hands_over(worker, way.to, way.meter);
                }
            }
            inputs[worker].push(receive);
            // Workers follow the main thread, which is number 0.
            opened.shown.placement.push(worker + 1);
        }
        outputs.iter_mut().zip(queues.outputs).for_each(|(of_worker, output)| of_worker.push(output));
        devices.push(opened);
    }
    let queues = inputs.into_iter().zip(outputs);
    let jobs = said.cores.iter().zip(queues).map(|(&core, (inputs, outputs))| {
        let counters = Arc::new(Counters::default());
        let worker = Worker::new(inputs, outputs, state.router().attach(), Arc::clone(&counters));
        Job { core, worker, counters }
    });
    let workers = threads::start(jobs.collect(), said.idle, said.precedence)?;
    state.started(devices, shortcuts, &workers)?;
    Ok((state, workers))
}

/// Has signals told.
fn signals(tell: Sender<Message>) -> Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot install signal handlers")?;
    let listen = move || {
        for signal in signals.forever() {
            let message = if signal == SIGHUP { Message::Reload } else { Message::Stop };
            if tell.send(message).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(listen).map(drop).context("cannot wait for signals")
}

/// Has requests told.
fn serve(socket: &Socket, tell: Sender<Message>) -> Result<()> {
    Ok(socket.serve(move |request| ask(&tell, request))?)
}

/// What the main thread answers.
fn ask(tell: &Sender<Message>, request: Request) -> Reply {
    let (reply, replied) = mpsc::sync_channel(1);
    let gone = || Reply::Error("fastpath is about to end: start it again".into());
    if tell.send(Message::Asked(request, reply)).is_err() {
        return gone();
    }
    replied.recv().unwrap_or_else(|_| gone())
}

/// Listens where metrics are to be served.
fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).with_context(|| {
        format!("cannot serve metrics at {address}: is the address this machine's, and the port free?")
    })
}

/// Serves metrics at `/metrics`.
fn serve_metrics(listener: TcpListener, tell: Sender<Message>) -> Result<web::Server> {
    let answer = move |request: &web::Request, _: &[u8]| {
        let with_body = match request.method.as_str() {
            "GET" => true,
            "HEAD" => false,
            _ => return web::refuse("405 Method Not Allowed", "only GET is answered"),
        };
        if request.target != "/metrics" {
            return web::refuse("404 Not Found", "there is only /metrics");
        }
        match ask(&tell, Request::Show(Show::Metrics)) {
            Reply::Answer(Answer::Metrics(metrics)) => {
                web::reply("200 OK", web::metrics::KIND, &metrics.text, with_body)
            }
            Reply::Answer(_) => web::refuse("500 Internal Server Error", "there are no metrics"),
            Reply::Error(reason) => web::refuse("503 Service Unavailable", &reason),
        }
    };
    web::Server::start(listener, "metrics", Box::new(answer)).context("cannot serve metrics")
}

/// Where a file is, whatever directory this process is in.
fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}
