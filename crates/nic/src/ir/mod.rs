//! The intermediate representation of a P4 program: typed, resolved, every width known.
