//! The gallery shows every scenario, or says why not.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The scenario files below `dir`, relative to `scenarios`.
fn scenarios(dir: &Path, base: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scenarios(&path, base, found);
        } else if path.extension().is_some_and(|e| e == "toml") {
            found.push(path.strip_prefix(base).unwrap().to_str().unwrap().to_owned());
        }
    }
}

fn text<'t>(table: &'t Table, key: &str) -> &'t str {
    table[key].as_str().unwrap()
}

#[test]
fn every_scenario_is_in_the_gallery_or_has_a_reason() {
    let root = root();
    let source = fs::read_to_string(root.join("docs/site/gallery.toml")).unwrap();
    let gallery: Table = source.parse().unwrap();
    let page = fs::read_to_string(root.join("docs/gallery.md")).unwrap();
    let images = root.join("docs/images/gallery");
    let mut shown = Vec::new();
    let mut drawn = Vec::new();
    for picture in gallery["picture"].as_array().unwrap() {
        let picture = picture.as_table().unwrap();
        let file = text(picture, "file");
        shown.push(file);
        let also = picture.get("also").and_then(Value::as_array);
        shown.extend(also.into_iter().flatten().filter_map(Value::as_str));
        let image = file.strip_suffix(".toml").unwrap().replace('/', "_") + ".png";
        let size = fs::metadata(images.join(&image)).unwrap_or_else(|e| panic!("{image}: {e}"));
        assert!(size.len() < 40_000, "{image} is no small picture");
        assert!(page.contains(&format!("(images/gallery/{image})")), "make gallery: {image}");
        assert!(page.contains(text(picture, "say")), "make gallery: {file}");
        drawn.push(image);
    }
    assert!(shown.iter().all(|file| page.contains(&format!("(../scenarios/{file})"))));
    let without = gallery["without"].as_table().unwrap();
    let mut files = Vec::new();
    scenarios(&root.join("scenarios"), &root.join("scenarios"), &mut files);
    for file in &files {
        let has_reason = without.keys().any(|place| file.starts_with(place.as_str()));
        assert!(shown.contains(&file.as_str()) ^ has_reason, "docs/site/gallery.toml: {file}");
    }
    for entry in fs::read_dir(&images).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(drawn.contains(&name), "no picture of the gallery any more: {name}");
    }
}
