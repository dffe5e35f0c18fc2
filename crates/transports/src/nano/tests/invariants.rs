//! Invariants of nanotransport.md, section 16, and of homa_tr.md, section 7, on packets.
