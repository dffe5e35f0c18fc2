//! A run as its caller sees it: with an observer of any kind. The engine itself ([`crate::run`]) is compiled twice, for
//! observers that look at packets and for those that do not.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use endpoint::{App, Endpoint, Observer};

use crate::config::{Config, ConfigError};
use crate::outcome::{Outcome, Progress, Violation};
use crate::part::Watcher;
use crate::run::{Run, Setup};
use crate::topology::Topology;

/// A fabric with its hosts, ready to run once.
pub struct Sim<O> {
    run: AnyRun,
    observer: PhantomData<O>,
}

enum AnyRun {
    Plain(Run<false>),
    Watched(Run<true>),
}

impl<O: Observer + Send> Sim<O> {
    /// Join endpoints and applications, one each per host, by a fabric.
    ///
    /// # Errors
    /// If there is not one endpoint and application per host, a fault or queue names a link that is
    /// not there, or failed links leave a pair of hosts without a path.
    pub fn new(
        topology: impl Into<Arc<Topology>>,
        config: Config,
        endpoints: Vec<Box<dyn Endpoint>>,
        apps: Vec<Box<dyn App>>,
        observer: O,
    ) -> Result<Self, ConfigError> {
        let (topology, observer) = (topology.into(), Box::new(observer));
        let run = AnyRun::new(Setup { topology, config, endpoints, apps, observer })?;
        Ok(Self { run, observer: PhantomData })
    }

    /// Run to the end: until everything the run waits for is done, the limit, or `progress` (called
    /// at every grid step) breaks.
    ///
    /// With a bounded measurement window, the run goes on until the window is over and every
    /// message submitted in it is delivered or has failed. Without one, until no application has
    /// more to come and every message is done; one of unbounded length never is.
    ///
    /// # Errors
    /// If a transport breaks its contract or the fabric loses count of a packet.
    pub fn run(
        self,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<(Outcome, O), Violation> {
        let (outcome, observer) = self.run.run(progress)?;
        let observer: Box<dyn Any> = observer;
        match observer.downcast() {
            Ok(observer) => Ok((outcome, *observer)),
            Err(_) => Err(Violation::lost_observer(outcome.now)),
        }
    }

    #[cfg(test)]
    pub(crate) fn is_by_entity(&self) -> bool {
        match &self.run {
            AnyRun::Plain(run) => run.is_by_entity(),
            AnyRun::Watched(run) => run.is_by_entity(),
        }
    }
}

// Apart from `Sim`, so that this crate compiles the engine and not every crate with an observer.
impl AnyRun {
    fn new(setup: Setup) -> Result<Self, ConfigError> {
        match setup.observer.watches_packets() {
            true => Run::new(setup).map(Self::Watched),
            false => Run::new(setup).map(Self::Plain),
        }
    }

    fn run(
        self,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<(Outcome, Watcher), Violation> {
        match self {
            Self::Plain(run) => run.run(progress),
            Self::Watched(run) => run.run(progress),
        }
    }
}
