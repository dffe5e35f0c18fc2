//! The page docs/reproduction.md says what the studies' records say.

use std::path::Path;

use metrics::Form;
use report::{of_study, score_line};
use study::{Record, Study};

#[test]
fn the_page_agrees_with_the_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/reproduction.md")).unwrap();
    let mut studies = 0;
    for entry in std::fs::read_dir(root.join("studies")).unwrap() {
        let study = Study::load(entry.unwrap().path().to_str().unwrap()).unwrap();
        let name = study.name();
        let begin = |form: &Form| page.contains(&format!("| {} |", of_study(&name, *form)));
        let form = Form::ALL.into_iter().find(begin).expect("a line for every study");
        let study = study.in_form(form);
        let recorded = Record::load(&study).unwrap().score(&study);
        assert!(recorded.published() > 0, "{name} has no record");
        let line = score_line(&of_study(&name, form), recorded);
        assert!(page.contains(&line), "{name}: make reproduce writes the page; recorded is {line}");
        studies += 1;
    }
    assert_eq!(page.lines().filter(|line| line.starts_with("| [")).count(), studies);
}
