//! Why a socket cannot be opened.

use std::io;

/// Why a socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no interface of that name.
    #[error("there is no interface {name} in this network namespace, only {}", there.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
    /// Only some may.
    #[error(
        "AF_XDP on interface {0} is not allowed: it takes CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF \
         (be root), or use UDP sockets instead"
    )]
    Forbidden(String),
    /// A socket serves one receive queue.
    #[error(
        "interface {name} has {queues} receive queues, and an AF_XDP socket serves one: \
         `ethtool -L {name} combined 1`"
    )]
    Queues {
        /// The interface.
        name: String,
        /// How many it has.
        queues: usize,
    },
    /// Somebody else is there.
    #[error(
        "interface {0} has an XDP program or an AF_XDP socket already: end the program that holds \
         it (`ip link show dev {0}` names the program)"
    )]
    Busy(String),
    /// The kernel refused something else.
    #[error("AF_XDP on interface {name}: {what}: {error}")]
    Kernel {
        /// The interface.
        name: String,
        /// What was tried.
        what: &'static str,
        /// What it said.
        error: io::Error,
    },
}

impl OpenError {
    /// Of the kernel's answer to `what` on interface `name`.
    pub(crate) fn of(name: &str, what: &'static str, error: io::Error) -> Self {
        let name = name.to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Forbidden(name),
            io::ErrorKind::ResourceBusy => Self::Busy(name),
            _ => Self::Kernel { name, what, error },
        }
    }
}
