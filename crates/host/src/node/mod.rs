//! [`Node`]: a host that runs on a thread of its own, and is used from any other.
//!
//! Messages are sent and received whole. Every operation has two forms: one that blocks, and a
//! future that any executor polls. Bytes to be sent are lent ([`Bytes`]): what is sent again is
//! read from the same memory. Received ones are handed over as they were put together.

mod bridge;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use endpoint::{Endpoint, FailReason};
use flume::{Receiver, Sender, TrySendError};
use thiserror::Error;
use units::{Dur, HostId, MsgKey};

use crate::doorbell::Doorbell;
use crate::runtime::first_id;
use crate::{Config, Counters, Error, Host, Socket};
use bridge::{App, Content, State};

/// Messages that wait for a host that has as much under way as it may.
const QUEUE: usize = 64;

/// How much a node keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes that are sent and not known to be delivered. Beyond it senders wait; a
    /// message longer than this travels alone.
    pub unsent: u64,
    /// The most bytes received and not yet taken by [`Node::recv`]. Beyond it the transport takes
    /// no more data, so that its peers wait.
    pub unread: u64,
}

impl Default for Limits {
    /// 64 MiB each.
    fn default() -> Self {
        Self { unsent: 64 << 20, unread: 64 << 20 }
    }
}

/// Why a message did not get there, or no more can be sent or received.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NodeError {
    /// The node has been shut down, or has stopped for the reason that [`Node::shutdown`] says.
    #[error("the node has stopped")]
    Stopped,
    /// The message will not be delivered.
    #[error("the message was not delivered: {0:?}")]
    Failed(FailReason),
    /// No answer so far. It may still come.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// Only a request can be answered.
    #[error("the message is not a request: only requests can be answered")]
    NoRequest,
}

/// A message that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub from: HostId,
    /// What.
    pub bytes: Vec<u8>,
    key: MsgKey,
    /// If it is a request: its number at the one who asks.
    request: Option<u64>,
}

impl Message {
    /// Whether an answer is waited for.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.request.is_some()
    }
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Zero is the most urgent. A transport may ignore it.
    pub priority: u8,
    /// Messages of one channel between two hosts, other than zero, are delivered in the order in
    /// which they were sent.
    pub channel: u32,
}

/// What a message is to the node that gets it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Request,
    Response { number: u64, to: MsgKey },
}

/// A message on its way to the host's thread.
struct Parcel {
    ticket: u64,
    to: HostId,
    bytes: Bytes,
    manner: Manner,
    kind: Kind,
    /// Told once: the answer, where one is waited for, or else that it is there.
    outcome: Sender<Result<Option<Message>, NodeError>>,
}

/// What reaches the host's thread past all waiting messages.
enum Order {
    Cancel(u64),
    /// Stop when all is delivered, or after so long.
    Close(Duration),
}

struct Shared {
    doorbell: Arc<Doorbell>,
    parcels: Sender<Parcel>,
    orders: Sender<Order>,
    messages: Receiver<Message>,
    limits: Limits,
    unread: Arc<AtomicU64>,
    tickets: AtomicU64,
    thread: Mutex<Option<JoinHandle<Result<Counters, Error>>>>,
}

/// When nobody holds the node any more, what has been sent still gets a second to arrive.
const LINGER: Duration = Duration::from_secs(1);

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Close(LINGER));
        self.doorbell.ring();
    }
}

/// A host that runs on a thread of its own. Clones are the same host.
#[derive(Clone)]
pub struct Node {
    shared: Arc<Shared>,
}

impl Node {
    /// Start `endpoint` on `socket`: of [`crate::bind`], or a [`crate::Xdp`].
    ///
    /// # Errors
    /// No thread or no descriptor can be had, or the socket is not usable.
    pub fn start(
        config: Config,
        socket: impl Into<Socket>,
        endpoint: Box<dyn Endpoint>,
        limits: Limits,
    ) -> Result<Self, Error> {
        let (first, socket) = (first_id(&config), socket.into());
        let doorbell = Arc::new(Doorbell::new()?);
        let unread = Arc::new(AtomicU64::new(0));
        let (parcels, to_send) = flume::bounded(QUEUE);
        let (orders, to_obey) = flume::unbounded();
        let (arrived, messages) = flume::unbounded();
        let (started, start) = flume::bounded(1);
        let state = State::new(to_send, to_obey, arrived, limits, Arc::clone(&unread));
        let bell = Arc::clone(&doorbell);
        let run = move || {
            let state = Mutex::new(state);
            let (mut app, mut content) = (App(&state), Content(&state));
            let host = Host::new(config, socket, endpoint, &mut app, &mut content);
            let mut host = match host {
                Ok(host) => host,
                Err(e) => return Err(e),
            };
            host.set_doorbell(bell);
            let _ = started.send(());
            host.run(Dur::MAX, |_| bridge::lock(&state).is_over())?;
            Ok(*host.counters())
        };
        let thread = thread::Builder::new().name("trimline-node".to_owned()).spawn(run)?;
        let thread = match start.recv() {
            Ok(()) => Mutex::new(Some(thread)),
            Err(_) => return Err(join(thread).err().unwrap_or_else(stopped)),
        };
        // Answers to an earlier life of this host find nobody who waits for them.
        let tickets = AtomicU64::new(first);
        let shared =
            Shared { doorbell, parcels, orders, messages, limits, unread, tickets, thread };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Send `bytes` to `to`. Waits only while the node has as much under way as it may.
    ///
    /// # Errors
    /// The node has stopped.
    pub fn send(&self, to: HostId, bytes: impl Into<Bytes>) -> Result<Delivery, NodeError> {
        self.send_as(to, bytes, Manner::default())
    }

    /// [`Node::send`] with a priority or in order.
    ///
    /// # Errors
    /// The node has stopped.
    pub fn send_as(
        &self,
        to: HostId,
        bytes: impl Into<Bytes>,
        manner: Manner,
    ) -> Result<Delivery, NodeError> {
        let (parcel, delivery) = self.parcel(to, bytes.into(), manner, Kind::Plain);
        self.post(parcel)?;
        Ok(delivery)
    }

    /// [`Node::send_as`] as a future.
    ///
    /// # Errors
    /// The node has stopped.
    pub async fn send_async(
        &self,
        to: HostId,
        bytes: impl Into<Bytes>,
        manner: Manner,
    ) -> Result<Delivery, NodeError> {
        let (parcel, delivery) = self.parcel(to, bytes.into(), manner, Kind::Plain);
        self.post_async(parcel).await?;
        Ok(delivery)
    }

    /// Ask `to`, whose program answers by [`Node::respond`].
    ///
    /// # Errors
    /// The node has stopped.
    pub fn request(&self, to: HostId, bytes: impl Into<Bytes>) -> Result<Reply, NodeError> {
        let (parcel, delivery) = self.parcel(to, bytes.into(), Manner::default(), Kind::Request);
        self.post(parcel)?;
        Ok(Reply(delivery))
    }

    /// [`Node::request`] as a future, which ends when the request has been taken.
    ///
    /// # Errors
    /// The node has stopped.
    pub async fn request_async(
        &self,
        to: HostId,
        bytes: impl Into<Bytes>,
    ) -> Result<Reply, NodeError> {
        let (parcel, delivery) = self.parcel(to, bytes.into(), Manner::default(), Kind::Request);
        self.post_async(parcel).await?;
        Ok(Reply(delivery))
    }

    /// Answer `request`.
    ///
    /// # Errors
    /// It is no request, or the node has stopped.
    pub fn respond(
        &self,
        request: &Message,
        bytes: impl Into<Bytes>,
    ) -> Result<Delivery, NodeError> {
        let number = request.request.ok_or(NodeError::NoRequest)?;
        let kind = Kind::Response { number, to: request.key };
        let (parcel, delivery) = self.parcel(request.from, bytes.into(), Manner::default(), kind);
        self.post(parcel)?;
        Ok(delivery)
    }

    /// The next message or request. Waits for it.
    ///
    /// # Errors
    /// The node has stopped, and all that had come has been taken.
    pub fn recv(&self) -> Result<Message, NodeError> {
        self.taken(self.shared.messages.recv().map_err(|_| NodeError::Stopped))
    }

    /// [`Node::recv`], at most for `limit`.
    ///
    /// # Errors
    /// None came within `limit`, or as [`Node::recv`].
    pub fn recv_timeout(&self, limit: Duration) -> Result<Message, NodeError> {
        self.taken(self.shared.messages.recv_timeout(limit).map_err(|e| late(e, limit)))
    }

    /// [`Node::recv`] as a future.
    ///
    /// # Errors
    /// As [`Node::recv`].
    pub async fn recv_async(&self) -> Result<Message, NodeError> {
        self.taken(self.shared.messages.recv_async().await.map_err(|_| NodeError::Stopped))
    }

    /// Send what waits until it is delivered, for at most `linger`; then stop, on all clones.
    /// Returns what has happened at the host.
    ///
    /// # Errors
    /// Why the host had stopped before. A second call says [`NodeError::Stopped`] as I/O error.
    pub fn shutdown(&self, linger: Duration) -> Result<Counters, Error> {
        let thread = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.ok_or_else(stopped)?;
        let _ = self.shared.orders.send(Order::Close(linger));
        self.shared.doorbell.ring();
        join(thread)
    }

    fn parcel(&self, to: HostId, bytes: Bytes, manner: Manner, kind: Kind) -> (Parcel, Delivery) {
        let ticket = self.shared.tickets.fetch_add(1, Ordering::Relaxed);
        let (outcome, told) = flume::bounded(1);
        let shared = Arc::clone(&self.shared);
        (Parcel { ticket, to, bytes, manner, kind, outcome }, Delivery { ticket, told, shared })
    }

    fn post(&self, parcel: Parcel) -> Result<(), NodeError> {
        // The bell first where the queue is full: the host may have room and be asleep.
        let parcel = match self.shared.parcels.try_send(parcel) {
            Ok(()) => {
                self.shared.doorbell.ring();
                return Ok(());
            }
            Err(TrySendError::Full(parcel) | TrySendError::Disconnected(parcel)) => parcel,
        };
        self.shared.doorbell.ring();
        self.shared.parcels.send(parcel).map_err(|_| NodeError::Stopped)?;
        self.shared.doorbell.ring();
        Ok(())
    }

    async fn post_async(&self, parcel: Parcel) -> Result<(), NodeError> {
        self.shared.doorbell.ring();
        self.shared.parcels.send_async(parcel).await.map_err(|_| NodeError::Stopped)?;
        self.shared.doorbell.ring();
        Ok(())
    }

    /// A message leaves the node: half of the room given back wakes the host.
    fn taken(&self, message: Result<Message, NodeError>) -> Result<Message, NodeError> {
        let message = message?;
        let len = message.bytes.len() as u64;
        let before = self.shared.unread.fetch_sub(len, Ordering::SeqCst);
        let half = self.shared.limits.unread / 2;
        if before > half && before - len <= half {
            self.shared.doorbell.ring();
        }
        Ok(message)
    }
}

/// How the host's thread has ended.
fn join(thread: JoinHandle<Result<Counters, Error>>) -> Result<Counters, Error> {
    thread.join().map_err(|_| io::Error::other("the node's thread panicked"))?
}

fn stopped() -> Error {
    io::Error::other(NodeError::Stopped).into()
}

fn late(error: flume::RecvTimeoutError, limit: Duration) -> NodeError {
    match error {
        flume::RecvTimeoutError::Timeout => NodeError::TimedOut(limit),
        flume::RecvTimeoutError::Disconnected => NodeError::Stopped,
    }
}

/// A message under way. Dropped, it goes on.
pub struct Delivery {
    ticket: u64,
    told: Receiver<Result<Option<Message>, NodeError>>,
    shared: Arc<Shared>,
}

impl Delivery {
    /// Wait until it is known to be delivered.
    ///
    /// # Errors
    /// It will not be, or the node has stopped.
    pub fn wait(&self) -> Result<(), NodeError> {
        self.told.recv().unwrap_or(Err(NodeError::Stopped)).map(drop)
    }

    /// [`Delivery::wait`], at most for `limit`.
    ///
    /// # Errors
    /// Nothing is known after `limit`, or as [`Delivery::wait`].
    pub fn wait_timeout(&self, limit: Duration) -> Result<(), NodeError> {
        self.told.recv_timeout(limit).map_err(|e| late(e, limit))?.map(drop)
    }

    /// [`Delivery::wait`] as a future.
    ///
    /// # Errors
    /// As [`Delivery::wait`].
    pub async fn delivered(&self) -> Result<(), NodeError> {
        self.told.recv_async().await.unwrap_or(Err(NodeError::Stopped)).map(drop)
    }

    /// Give it up. [`Delivery::wait`] says [`FailReason::Cancelled`], unless it was there already.
    pub fn cancel(&self) {
        let _ = self.shared.orders.send(Order::Cancel(self.ticket));
        self.shared.doorbell.ring();
    }
}

/// An answer that is waited for. Dropped, the answer is thrown away when it comes.
pub struct Reply(Delivery);

impl Reply {
    /// Wait for the answer.
    ///
    /// # Errors
    /// The request failed, or the node has stopped. A peer that has taken a request and never
    /// answers is no error: see [`Reply::wait_timeout`].
    pub fn wait(&self) -> Result<Message, NodeError> {
        answer(self.0.told.recv().unwrap_or(Err(NodeError::Stopped)))
    }

    /// [`Reply::wait`], at most for `limit`.
    ///
    /// # Errors
    /// None came within `limit`, or as [`Reply::wait`].
    pub fn wait_timeout(&self, limit: Duration) -> Result<Message, NodeError> {
        answer(self.0.told.recv_timeout(limit).map_err(|e| late(e, limit))?)
    }

    /// [`Reply::wait`] as a future.
    ///
    /// # Errors
    /// As [`Reply::wait`].
    pub async fn answer(&self) -> Result<Message, NodeError> {
        answer(self.0.told.recv_async().await.unwrap_or(Err(NodeError::Stopped)))
    }

    /// Give the request up.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

fn answer(told: Result<Option<Message>, NodeError>) -> Result<Message, NodeError> {
    told?.ok_or(NodeError::Stopped)
}
