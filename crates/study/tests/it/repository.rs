//! The studies that come with Trimline can be read, and none of their figures is forgotten.

use std::path::Path;

use metrics::Form;
use trimline_study::{Plan, Study};

#[test]
fn every_study_is_whole() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut found = 0;
    for study in std::fs::read_dir(studies).unwrap() {
        let dir = study.unwrap().path();
        let head = std::fs::read_to_string(dir.join("study.toml")).unwrap();
        for form in [Form::Published, Form::Quick] {
            let study = Study::load(dir.to_str().unwrap()).unwrap_or_else(|e| panic!("{e}"));
            Plan::new(&study.in_form(form), false).unwrap_or_else(|e| panic!("{e}"));
        }
        for figure in std::fs::read_dir(&dir).unwrap() {
            let figure = figure.unwrap();
            let name = figure.file_name().into_string().unwrap();
            let listed = head.contains(&format!("\"{name}\""));
            let is_figure = figure.path().join("figure.toml").is_file();
            assert_eq!(listed, is_figure, "{name} in study.toml of {}", dir.display());
        }
        found += 1;
    }
    assert!(found > 0, "there are studies");
}
