//! What holds of the whole tree, in one binary.

mod arrows;
mod bands;
mod citations;
mod tree;
mod vocabulary;
