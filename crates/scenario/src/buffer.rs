//! The `[buffer]` table: memory that the ports of each switch share.

use queues::{QueueSpec, SharedBufferSpec};
use units::Bytes;

use crate::diagnostic::Checked;
use crate::key::{keys, section};
use crate::reader::Reader;
use crate::registry::Kind;
use crate::value::Size32;

/// What `kind` can be.
pub(crate) const BUFFERS: &[Kind<()>] = &[Kind {
    name: "shared",
    about: "one memory for all ports of a switch, with dynamic thresholds",
    read: (),
    keys: || vec![section("buffer", SHARED, &[], None)],
}];

keys! { SHARED: SharedBufferSpec {
    size: Size32 [Size32(1)..=Size32(SIZE_MAX.0 as u32)],
        "memory of each switch, packets in service included"
            .range("a full packet to 1 GB").written();
    alpha: f64 [ALPHA],
        "a packet is lost that finds its queue holding this times the free memory, or more, or \
         no room in the memory".range("1/1024 to 1024").written();
}}

/// Far from the 32 bits in which queues are counted.
pub(crate) const SIZE_MAX: Bytes = Bytes(1_000_000_000);
/// Powers of two on both sides of what switches have, 1/128 to 8.
pub(crate) const ALPHA: std::ops::RangeInclusive<f64> = 1.0 / 1024.0..=1024.0;

/// Read `[buffer]`, for queues of this kind and packets of up to `mtu` bytes.
pub(crate) fn read(
    table: &mut Reader<'_>,
    queue: &QueueSpec,
    mtu: u16,
) -> Checked<SharedBufferSpec> {
    table.choose("kind", BUFFERS, |kind| kind.name)?;
    if !queue.spec().shares_memory() {
        let message = "ports share memory only if their queues drop what does not fit";
        let error = table.error("kind", message, "not with this [queue]");
        return Err(error.hint("take `kind = \"drop-tail\"` in [queue], or leave [buffer] out"));
    }
    let mut spec = SharedBufferSpec { size: 0, alpha: 1.0 };
    table.all_keys(SHARED, &mut spec)?;
    table.within("size", Bytes(u64::from(spec.size)), Bytes(u64::from(mtu))..=SIZE_MAX)?;
    Ok(spec)
}
