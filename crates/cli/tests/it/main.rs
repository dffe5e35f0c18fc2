//! Every integration test of the crate, in one binary: one link instead of many.

// What `trimline new transport` writes calls these crates by their own names.
extern crate endpoint as trimline_endpoint;
extern crate scenario as trimline_scenario;
extern crate units as trimline_units;

mod bad_input;
mod bench;
mod check;
mod commands;
mod comparison;
mod gallery;
mod jobs;
mod json;
mod licences;
mod new_transport;
mod nic_size;
mod outputs;
mod p4;
mod repro;
mod reproduce;
mod rtl;
mod scoreboard;
mod sweep;
mod testbed;
mod tune;
mod validate;
mod wireshark;

/// What a page shows: all of it but the style and the scripts that every page has.
fn body(page: &str) -> &str {
    let (_, body) = page.split_once("<main>").expect("a page of ours");
    body.split_once("</main>").expect("a whole page").0
}
