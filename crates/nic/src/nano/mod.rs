//! The NIC of nanotransport.md around its two P4 pipelines: reassembly, packetization, timers,
//! packet generator, arbiter, and the externs that programs call.
