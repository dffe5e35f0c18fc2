//! Integration tests of the transports, in one binary.

mod allocations;
mod hostile;
mod subjects;
