//! Every citation of a rule's source leads somewhere. docs/specs/README.md has the form:
//! the folder, a page, `#`, and anchors with commas between them.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree;

/// What may be cited of each page: numbers of sections, and what rows of tables begin with.
type Pages = BTreeMap<String, BTreeSet<String>>;

/// A page without its `.md`, and what is cited of it.
struct Citation<'a> {
    page: &'a str,
    anchors: Vec<&'a str>,
}

/// "3.2" of "## 3.2 Service"; "I6" of "| I6 | ...".
fn anchor(line: &str) -> Option<&str> {
    if line.starts_with('#') {
        let number = line.trim_start_matches('#').trim_start().split(' ').next()?;
        let number = number.trim_end_matches('.');
        return number.starts_with(|c: char| c.is_ascii_digit()).then_some(number);
    }
    let (cell, _) = line.strip_prefix("| ")?.split_once(" |")?;
    let name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (cell.starts_with(|c: char| c.is_ascii_uppercase()) && cell.chars().all(name)).then_some(cell)
}

fn pages() -> Pages {
    let folder = tree::root().join("docs/specs");
    let mut pages = Pages::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        pages.insert(name, text.lines().filter_map(anchor).map(str::to_owned).collect());
    }
    pages
}

/// The beginning of `text` whose characters `belong`.
fn run(text: &str, belong: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !belong(c)).unwrap_or(text.len())]
}

/// The citations in a line. What follows the last anchor belongs to the sentence.
fn citations(line: &str) -> Vec<Citation<'_>> {
    let mut found = Vec::new();
    for (at, folder) in line.match_indices("specs/") {
        let rest = &line[at + folder.len()..];
        let page = run(rest, |c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let Some(rest) = rest[page.len()..].strip_prefix(".md") else { continue };
        let anchors = rest.strip_prefix('#').map_or("", |rest| {
            let all = run(rest, |c| c.is_ascii_alphanumeric() || ".,-".contains(c));
            all.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
        });
        let anchors = anchors.split(',').filter(|anchor| !anchor.is_empty()).collect();
        found.push(Citation { page, anchors });
    }
    found
}

/// What is wrong with the citations in a line.
fn problems(line: &str, pages: &Pages) -> Vec<String> {
    let mut found = Vec::new();
    for Citation { page, anchors } in citations(line) {
        let Some(known) = pages.get(page) else {
            found.push(format!("there is no page `{page}` in docs/specs"));
            continue;
        };
        let dangling = anchors.into_iter().filter(|anchor| !known.contains(*anchor));
        found.extend(dangling.map(|anchor| format!("docs/specs/{page}.md has no `{anchor}`")));
    }
    found
}

/// Whether a line names a page without its folder, where only pages of docs/ could be meant else.
fn has_old_form(line: &str, pages: &Pages) -> bool {
    pages.keys().filter(|page| *page != "README").any(|page| {
        let name = format!("{page}.md");
        line.match_indices(&name).any(|(at, _)| {
            let before = &line[..at];
            !before.ends_with(|c: char| c.is_ascii_alphanumeric() || "/-_".contains(c))
        })
    })
}

#[test]
fn every_citation_leads_somewhere() {
    let pages = pages();
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, text) in tree::files() {
        for (number, line) in text.lines().enumerate() {
            count += citations(line).len();
            let found = problems(line, &pages);
            wrong.extend(found.iter().map(|why| format!("{path}:{}: {why}", number + 1)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 600, "only {count} citations were found: is the whole tree looked at?");
}

#[test]
fn citations_have_one_form() {
    let pages = pages();
    let mut wrong = Vec::new();
    for (path, text) in tree::files() {
        if path.ends_with(".md") {
            continue; // Pages link to one another by file name.
        }
        let old = text.lines().enumerate().filter(|(_, line)| has_old_form(line, &pages));
        wrong.extend(old.map(|(number, line)| format!("{path}:{}: {line}", number + 1)));
    }
    assert!(wrong.is_empty(), "not in the form of docs/specs/README.md:\n{}", wrong.join("\n"));
}

/// The check itself, with citations that are made up.
#[test]
fn what_leads_nowhere_is_found() {
    let pages = pages();
    let name = |page: &str, rest: &str| [page, ".md", rest].concat();
    let cite = |page: &str, rest: &str| ["(specs/", &name(page, rest), ")."].concat();
    let right = [
        ("ndp", ""),
        ("ndp", "#3.2"),
        ("ndp", "#5.4,I5"),
        ("timely", "#F18"),
        ("homa-tr", "#E2"),
        ("ndp", "#10.,"),
    ];
    for (page, rest) in right {
        assert_eq!(problems(&cite(page, rest), &pages), [""; 0], "{page} {rest}");
        assert_eq!(citations(&cite(page, rest)).len(), 1, "{page} {rest}");
    }
    let wrong =
        [("nowhere", ""), ("ndp", "#3.99"), ("ndp", "#I99"), ("ndp", "#3.2,I99"), ("homa_tr", "")];
    for (page, rest) in wrong {
        assert_eq!(problems(&cite(page, rest), &pages).len(), 1, "{page} {rest}");
    }
    assert!(has_old_form(&name("ndp", ", section 3"), &pages));
    assert!(!has_old_form(&cite("ndp", "#3"), &pages));
}

/// `["I1", "I3"]` of `i1_i3_nothing_is_lost`.
fn invariants(name: &str) -> Vec<String> {
    let is_one = |part: &&str| {
        let number = part.get(1..).unwrap_or("").trim_end_matches(|c: char| c.is_ascii_lowercase());
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
    };
    let upper = |part: &str| part[..1].to_uppercase() + &part[1..];
    name.split('_').take_while(is_one).map(upper).collect()
}

/// The names of the tests in a source.
fn tests(text: &str) -> Vec<&str> {
    let after = text.split("#[test]").skip(1);
    after
        .filter_map(|rest| rest.split_once("fn "))
        .map(|(_, rest)| run(rest, |c| c.is_ascii_alphanumeric() || c == '_'))
        .collect()
}

/// `i6_pulls_are_spaced` shows an invariant I6 of a page that its file cites.
#[test]
fn tests_show_invariants_of_pages_that_they_cite() {
    let pages = pages();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in tree::files() {
        if !path.ends_with(".rs") {
            continue;
        }
        let cited: BTreeSet<&str> =
            text.lines().flat_map(citations).map(|citation| citation.page).collect();
        for test in tests(&text) {
            for id in invariants(test) {
                count += 1;
                let known = cited.iter().filter_map(|page| pages.get(*page));
                if !known.into_iter().any(|anchors| anchors.contains(&id)) {
                    wrong.push(format!("{path}: `{test}`: no page cited there has {id}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "only {count} such tests were found");
    assert_eq!(invariants("i1_i3_t5_nothing"), ["I1", "I3", "T5"]);
    assert_eq!(invariants("t2a_means"), ["T2a"]);
    assert!(invariants("it_works").is_empty() && invariants("ns3_agrees").is_empty());
}
