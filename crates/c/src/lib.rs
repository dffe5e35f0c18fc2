//! The nodes of [`host`] for programs in C: `include/trimline.h` is the reference. A thin layer,
//! all of it here; `config` makes what a node begins with.
//!
//! Every function trusts its caller's pointers, as C does: `unsafe` is all over this file, and
//! nowhere else in the crate. Deliberately absent: anything that [`host::Node`] does not have.
#![allow(unsafe_code)]
// What the header says is not said twice.
#![allow(missing_docs, clippy::missing_safety_doc)]

mod config;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::time::Duration;

use bytes::Bytes;
use host::{Delivery, Key, Message, Node, NodeError, Reply};
use units::HostId;

use config::{Start, StartError};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok = 0,
    Stopped = 1,
    Failed = 2,
    TimedOut = 3,
    NoRequest = 4,
}

impl From<Result<(), NodeError>> for Outcome {
    fn from(result: Result<(), NodeError>) -> Self {
        match result {
            Ok(()) => Self::Ok,
            Err(NodeError::Stopped) => Self::Stopped,
            Err(NodeError::Failed(_)) => Self::Failed,
            Err(NodeError::TimedOut(_)) => Self::TimedOut,
            Err(NodeError::NoRequest) => Self::NoRequest,
        }
    }
}

/// A message on its way, or a request of which the answer is.
pub enum OnItsWay {
    Message(Delivery),
    Request(Reply),
}

#[repr(C)]
pub struct Config {
    transport: *const c_char,
    payload: u16,
    me: u32,
    addresses: *const *const c_char,
    hosts: u32,
    xdp: c_int,
    busy: c_int,
    key: *const [u8; 32],
    source_ports: u16,
}

/// The text at `text`, which is the caller's and ends with a zero byte.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, StartError> {
    if text.is_null() {
        return Err(StartError::Null);
    }
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| StartError::Text)
}

impl Config {
    unsafe fn read(&self) -> Result<Start<'_>, StartError> {
        if self.addresses.is_null() {
            return Err(StartError::Null);
        }
        let addresses = unsafe { std::slice::from_raw_parts(self.addresses, self.hosts as usize) };
        Ok(Start {
            transport: unsafe { text(self.transport) }?,
            payload: self.payload,
            me: HostId(self.me),
            addresses: addresses
                .iter()
                .map(|&address| unsafe { text(address) })
                .collect::<Result<_, _>>()?,
            xdp: self.xdp != 0,
            busy: self.busy != 0,
            key: unsafe { self.key.as_ref() }.map(|&bytes| Key::new(bytes)),
            source_ports: self.source_ports.max(1),
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_start(
    config: *const Config,
    error: *mut c_char,
    room: usize,
) -> *mut Node {
    let start = match unsafe { config.as_ref() } {
        Some(config) => unsafe { config.read() },
        None => Err(StartError::Null),
    };
    match start.and_then(|start| start.node()) {
        Ok(node) => Box::into_raw(Box::new(node)),
        Err(why) => {
            if !error.is_null() && room > 0 {
                let why = why.to_string();
                // As much of it as there is room for, and a zero byte.
                let len = why.len().min(room - 1);
                unsafe {
                    std::ptr::copy_nonoverlapping(why.as_ptr(), error.cast(), len);
                    *error.add(len) = 0;
                }
            }
            std::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_stop(node: *mut Node, linger_ms: u64) -> Outcome {
    let node = unsafe { Box::from_raw(node) };
    match node.shutdown(Duration::from_millis(linger_ms)) {
        Ok(_) => Outcome::Ok,
        Err(_) => Outcome::Stopped,
    }
}

/// A copy of the caller's bytes, which may be none.
unsafe fn copy(bytes: *const c_void, len: usize) -> Bytes {
    match len {
        0 => Bytes::new(),
        _ => Bytes::copy_from_slice(unsafe { std::slice::from_raw_parts(bytes.cast(), len) }),
    }
}

fn boxed(on_its_way: Result<OnItsWay, NodeError>) -> *mut OnItsWay {
    on_its_way.map_or(std::ptr::null_mut(), |some| Box::into_raw(Box::new(some)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_send(
    node: *mut Node,
    to: u32,
    bytes: *const c_void,
    len: usize,
) -> *mut OnItsWay {
    let (node, bytes) = unsafe { (&*node, copy(bytes, len)) };
    boxed(node.send(HostId(to), bytes).map(OnItsWay::Message))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_request(
    node: *mut Node,
    to: u32,
    bytes: *const c_void,
    len: usize,
) -> *mut OnItsWay {
    let (node, bytes) = unsafe { (&*node, copy(bytes, len)) };
    boxed(node.request(HostId(to), bytes).map(OnItsWay::Request))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_respond(
    node: *mut Node,
    request: *const Message,
    bytes: *const c_void,
    len: usize,
) -> Outcome {
    let (node, request, bytes) = unsafe { (&*node, &*request, copy(bytes, len)) };
    node.respond(request, bytes).map(drop).into()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_wait(delivery: *const OnItsWay, timeout_ms: u64) -> Outcome {
    let limit = Duration::from_millis(timeout_ms);
    match unsafe { &*delivery } {
        OnItsWay::Message(delivery) => delivery.wait_timeout(limit).into(),
        OnItsWay::Request(reply) => reply.wait_timeout(limit).map(drop).into(),
    }
}

/// Where a message goes that has come.
unsafe fn give(message: Result<Message, NodeError>, to: *mut *mut Message) -> Outcome {
    message.map(|message| unsafe { *to = Box::into_raw(Box::new(message)) }).into()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_answer(
    request: *const OnItsWay,
    timeout_ms: u64,
    answer: *mut *mut Message,
) -> Outcome {
    match unsafe { &*request } {
        OnItsWay::Message(_) => Outcome::NoRequest,
        OnItsWay::Request(reply) => unsafe {
            give(reply.wait_timeout(Duration::from_millis(timeout_ms)), answer)
        },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_cancel(delivery: *const OnItsWay) {
    match unsafe { &*delivery } {
        OnItsWay::Message(delivery) => delivery.cancel(),
        OnItsWay::Request(reply) => reply.cancel(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_delivery_free(delivery: *mut OnItsWay) {
    if !delivery.is_null() {
        drop(unsafe { Box::from_raw(delivery) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_receive(
    node: *mut Node,
    timeout_ms: u64,
    message: *mut *mut Message,
) -> Outcome {
    let node = unsafe { &*node };
    unsafe { give(node.recv_timeout(Duration::from_millis(timeout_ms)), message) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_message_from(message: *const Message) -> u32 {
    unsafe { &*message }.from.0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_message_length(message: *const Message) -> usize {
    unsafe { &*message }.bytes.len()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_message_bytes(message: *const Message) -> *const c_void {
    unsafe { &*message }.bytes.as_ptr().cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_message_is_request(message: *const Message) -> c_int {
    c_int::from(unsafe { &*message }.is_request())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimline_message_free(message: *mut Message) {
    if !message.is_null() {
        drop(unsafe { Box::from_raw(message) });
    }
}
