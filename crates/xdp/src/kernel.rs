//! Two system calls for which there is no library.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What `bpf` is asked (`enum bpf_cmd`).
#[derive(Clone, Copy)]
pub(crate) enum Bpf {
    MapCreate = 0,
    MapUpdate = 2,
    ProgramLoad = 5,
    LinkCreate = 28,
}

/// bpf(2). `attributes` are those of `command`: words in the order of `union bpf_attr`.
/// What is made by it; nothing by an update.
///
/// Addresses among the attributes must be those of memory that is as long as the command's other
/// attributes say. The kernel only reads there.
pub(crate) fn bpf(command: Bpf, attributes: &[u64]) -> io::Result<Option<OwnedFd>> {
    // SAFETY: the kernel reads `attributes`, of this length, and what they point to, and writes
    // nothing: no command here has an output among its attributes. What it cannot read is EFAULT.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            attributes.as_ptr(),
            size_of_val(attributes),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: these commands return a new descriptor, which nobody else owns.
    #[allow(unsafe_code)]
    let made = !matches!(command, Bpf::MapUpdate);
    #[allow(unsafe_code)]
    Ok(made.then(|| unsafe { OwnedFd::from_raw_fd(result as i32) }))
}

/// What an interface is asked.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    /// `SIOCGIFMTU`: the first word of the answer is the MTU.
    Mtu,
    /// `SIOCETHTOOL` with `ETHTOOL_GCHANNELS`: the words of `struct ethtool_channels`.
    Channels,
}

/// `struct ethtool_channels` has nine words.
pub(crate) type Answer = [u32; 9];

/// ioctl(2) of an interface (netdevice(7)), by any socket of its network namespace.
pub(crate) fn ask(socket: BorrowedFd<'_>, name: &str, what: Ask) -> io::Result<Answer> {
    const ETHTOOL_GCHANNELS: u32 = 0x3c;
    /// `struct ifreq`.
    #[repr(C)]
    struct Request {
        name: [u8; libc::IFNAMSIZ],
        /// A union of 24 bytes: a pointer, or the answer itself.
        data: [u64; 3],
    }
    let mut answer: Answer = [0; 9];
    answer[0] = ETHTOOL_GCHANNELS;
    let mut request = Request { name: [0; libc::IFNAMSIZ], data: [0; 3] };
    let room = libc::IFNAMSIZ - 1;
    let bytes = name.as_bytes();
    request.name[..bytes.len().min(room)].copy_from_slice(&bytes[..bytes.len().min(room)]);
    let number = match what {
        Ask::Mtu => libc::SIOCGIFMTU,
        Ask::Channels => {
            request.data[0] = answer.as_mut_ptr().addr() as u64;
            libc::SIOCETHTOOL
        }
    };
    // SAFETY: the kernel writes into `request`, which has the size of `struct ifreq`, and for
    // channels into `answer`, which has the size of `struct ethtool_channels`.
    #[allow(unsafe_code)]
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), number, std::ptr::from_mut(&mut request)) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    if let Ask::Mtu = what {
        answer[0] = request.data[0] as u32;
    }
    Ok(answer)
}
