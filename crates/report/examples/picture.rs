//! A picture of a page, or of one of its elements, in Chromium:
//! `cargo run -p trimline-report --example picture -- PAGE WIDTH light|dark OUT.png [ELEMENT]`.
//! ELEMENT is an expression of the page's script. Without it: the first screen.

#[allow(dead_code)]
#[path = "../tests/it/browser.rs"]
mod browser;

use std::path::Path;

use browser::{Browser, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [page, width, shade, out, element @ ..] = args.as_slice() else {
        return Err("give a page, a width, light or dark, and where the picture goes".into());
    };
    let page = std::fs::canonicalize(page)?;
    let reader = Reader { width: width.parse()?, dark: shade == "dark", scripts: true };
    let mut browser = Browser::open().ok_or("no browser")?;
    browser.show(&page, &reader);
    match element.first() {
        None => browser.picture(Path::new(out)),
        Some(element) => {
            browser.whole(reader.width);
            browser.picture_of(element, Path::new(out));
        }
    }
    Ok(())
}
