//! What is outside a pipeline: externs, and the registers and counters that others share.

use std::collections::VecDeque;

use p4::ir::circuit::Port as Way;
use p4::program::Externs;
use p4::state::State;

use crate::emit::Request;

/// Answers what a module asks, after the latency of each request.
#[derive(Clone, Debug)]
pub struct Outside<X> {
    externs: X,
    state: State,
    /// Answers by the cycle in which they are due, with the request.
    due: VecDeque<(u64, usize, Vec<u128>)>,
}

impl<X: Externs> Outside<X> {
    /// Externs and state before the first request.
    #[must_use]
    pub const fn new(externs: X, state: State) -> Self {
        Self { externs, state, due: VecDeque::new() }
    }

    /// The externs.
    #[must_use]
    pub const fn externs(&self) -> &X {
        &self.externs
    }

    /// Registers and counters.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The same, to be set.
    pub const fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// What `requests` ask in cycle `now`, of which `get` gives the outputs. What is written in a
    /// cycle is read from the next one on.
    pub fn ask(&mut self, now: u64, requests: &[Request], get: impl Fn(&str) -> u128) {
        let mut writes = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            if get(&request.valid) == 0 {
                continue;
            }
            let Request { port, latency, args, results, .. } = request;
            let args: Vec<u128> = args.iter().map(|name| get(name)).collect();
            let mut values = vec![0; results.len()];
            match *port {
                Way::Call(which) => self.externs.call(which, &args, &mut values),
                Way::Read(register) => values[0] = self.state.register(register, args[0]),
                Way::Write(register) => writes.push((register, args)),
                Way::Count(counter) => self.state.count(counter, args[0], args[1] as usize),
                // Tables are inside.
                Way::LookUp(_) => {}
            }
            if !values.is_empty() {
                self.due.push_back((now + u64::from(*latency), at, values));
            }
        }
        for (register, args) in writes {
            self.state.set_register(register, args[0], args[1]);
        }
        // Latencies differ.
        self.due.make_contiguous().sort_by_key(|(due, ..)| *due);
    }

    /// The answers of cycle `now`: `set` gets the input and its value.
    pub fn answer(&mut self, now: u64, requests: &[Request], mut set: impl FnMut(&str, u128)) {
        while let Some((_, request, values)) = self.due.pop_front_if(|(due, ..)| *due == now) {
            let names = &requests[request].results;
            names.iter().zip(values).for_each(|(name, value)| set(name, value));
        }
    }
}
