//! Switch queue disciplines over small descriptors; storage belongs to the caller.
