//! Readers on whole files, and on malformed ones.

mod damage;
mod examples;
mod hostile;
