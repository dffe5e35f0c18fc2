//! The `[buffer]` table: memory that the ports of each switch share.

use queues::{QueueSpec, SharedBufferSpec};
use units::Bytes;

use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

/// What `kind` can be.
const KINDS: [&str; 1] = ["shared"];
/// Far from the 32 bits in which queues are counted.
pub(crate) const SIZE_MAX: Bytes = Bytes(1_000_000_000);
/// Powers of two on both sides of what switches have, 1/128 to 8.
pub(crate) const ALPHA: std::ops::RangeInclusive<f64> = 1.0 / 1024.0..=1024.0;

/// Read `[buffer]`, for queues of this kind and packets of up to `mtu` bytes.
pub(crate) fn read(
    table: &mut Reader<'_>,
    queue: &QueueSpec,
    mtu: u16,
) -> Result<SharedBufferSpec, Diagnostic> {
    table.choose("kind", &KINDS, |name| *name)?;
    if !queue.spec().shares_memory() {
        let message = "ports share memory only if their queues drop what does not fit";
        let error = table.error("kind", message, "not with this [queue]");
        return Err(error.hint("take `kind = \"drop-tail\"` in [queue], or leave [buffer] out"));
    }
    let size = table.need("size")?;
    let size = table.within("size", size, Bytes(u64::from(mtu))..=SIZE_MAX)?.0 as u32;
    let alpha = table.need("alpha")?;
    let alpha = table.within("alpha", alpha, ALPHA)?;
    Ok(SharedBufferSpec { size, alpha })
}
