//! Steering by somebody at the server: a load in per cent of the line rate enters, all ports that send follow it. Clients
//! hear of it as if another client had done it.

use std::time::Duration;

use serde_json::json;

use crate::commands::factors;
use crate::events::Kind;
use crate::plan;
use crate::port::State;
use crate::rpc::Parameters;
use crate::sending::Tester;
use crate::server::Server;

impl<T: Tester> Server<T> {
    /// What the ports that send are asked for: per cent of the line rate (L1), on average, and whether all pause. None
    /// where no port sends, or where streams begin and end.
    #[must_use]
    pub fn load(&self) -> Option<(f64, bool)> {
        let shares = self.ports.iter().filter_map(|port| {
            let (State::Sending(order) | State::Paused(order)) = port.state else { return None };
            let [scaled, fixed] = port.rates();
            let load = scaled.times(order.factor).plus(fixed.times(order.fixed));
            Some((load.bps_l1 / port.facts.line_rate_bps * 100.0, matches!(port.state, State::Paused(_))))
        });
        let shares: Vec<(f64, bool)> = shares.collect();
        if shares.is_empty() || self.in_bursts() {
            return None;
        }
        let sum: f64 = shares.iter().map(|(percent, _)| percent).sum();
        Some((sum / shares.len() as f64, shares.iter().all(|(_, paused)| *paused)))
    }

    /// Asks all ports that send, or pause, for `percent` of the line rate, and pauses or resumes them.
    ///
    /// # Errors
    /// Why a port cannot send that: it then goes on as before.
    pub fn set_load(&mut self, percent: f64, paused: bool, now: Duration) -> Result<(), String> {
        if self.in_bursts() {
            return Err("bursts and chains cannot be paused or changed: stop them".to_owned());
        }
        let wanted = json!({"mul": {"type": "percentage", "op": "abs", "value": percent}});
        let Some(wanted) = wanted.as_object().map(Parameters) else { return Ok(()) };
        for index in 0..self.ports.len() {
            let port = &self.ports[index];
            let (State::Sending(mut order) | State::Paused(mut order)) = port.state else { continue };
            let was_paused = matches!(port.state, State::Paused(_));
            let factors = factors(port, &wanted, Some(order.factors())).map_err(|failure| failure.reason)?;
            plan::schedule(&self.parts(Some((index, factors)))).map_err(|failure| failure.reason)?;
            [order.factor, order.fixed] = factors;
            self.ports[index].state = if paused { State::Paused(order) } else { State::Sending(order) };
            if paused != was_paused {
                self.tell_port(index, if paused { Kind::Paused } else { Kind::Resumed });
            }
        }
        self.change(now);
        Ok(())
    }
}
