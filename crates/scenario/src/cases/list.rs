//! [`CaseList`]: the file. A line names a matrix, and those below it that begin with `!` belong to
//! it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Checked, Diagnostic, Source, did_you_mean};
use crate::files;

/// The cases of a file, in its order.
#[derive(Debug)]
pub struct CaseList {
    cases: Vec<Case>,
}

/// One of them.
#[derive(Debug)]
pub struct Case {
    pub(super) list: Arc<Source>,
    /// Paths are relative to it: that of the list.
    pub(super) dir: PathBuf,
    pub(super) name: String,
    pub(super) matrix: Word,
    /// Whose flags they are.
    pub(super) binary: Option<Word>,
    pub(super) flags: Vec<Word>,
    /// Microseconds that the last message may take, from time zero.
    pub(super) limit: Option<u64>,
    /// The same for all messages from one host to another.
    pub(super) flows: Vec<(Word, u64)>,
    /// What stood after `!` so far.
    seen: Vec<String>,
}

/// A word of the list, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

/// What may stand after `!`.
const KINDS: &[&str] = &["Experiment", "Binary", "Param", "tailFCT", "FCT", "continue"];

impl CaseList {
    /// Read the list `path`.
    ///
    /// # Errors
    /// It cannot be read, or the first thing in it that is no list. Flags are looked at when a case
    /// is run.
    pub fn load(path: &Path) -> Checked<Self> {
        let text = files::read_text(path).map_err(|why| {
            Diagnostic::new(format!("cannot read {}: {why}", path.display()))
                .hint("give a list of cases, such as validate_uec_sender.txt")
        })?;
        // Some editors put a mark at the beginning.
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let source = Source { name: path.display().to_string(), text };
        Self::read(&Arc::new(source), path.parent().unwrap_or(Path::new("")))
    }

    fn read(list: &Arc<Source>, dir: &Path) -> Checked<Self> {
        let mut cases: Vec<Case> = Vec::new();
        let mut offset = 0;
        for line in list.text.split_inclusive('\n') {
            let words = words(line, offset);
            offset += line.len();
            let Some(first) = words.first() else { continue };
            if first.text.starts_with('#') {
                continue;
            }
            let Some(kind) = first.text.strip_prefix('!') else {
                let case = Case::new(list, dir, first.clone());
                if let Some(second) = words.get(1) {
                    let error = case.error(format!("`{}` after the matrix", second.text), second);
                    return Err(error.hint(
                        "a case begins with the name of its matrix alone; flags stand below it, \
                         after `!Param`",
                    ));
                }
                cases.push(case);
                continue;
            };
            let Some(case) = cases.last_mut() else {
                let error = Diagnostic::new("a parameter before the first case");
                let error = error.at(list, first.span.clone(), "it belongs to no matrix");
                return Err(error.hint("first comes the name of a connection matrix"));
            };
            case.add(kind, first, &words[1..])?;
        }
        if cases.is_empty() {
            let error = Diagnostic::new(format!("`{}` has no cases", list.name));
            return Err(error.hint("a case begins with a line that names a connection matrix"));
        }
        Ok(Self { cases })
    }

    /// The cases.
    #[must_use]
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }
}

impl Case {
    fn new(list: &Arc<Source>, dir: &Path, matrix: Word) -> Self {
        Self {
            list: Arc::clone(list),
            dir: dir.to_owned(),
            name: matrix.text.clone(),
            matrix,
            binary: None,
            flags: Vec::new(),
            limit: None,
            flows: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// What the list calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Microseconds from time zero until the last message has to be complete, if there is a limit.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// A line below its matrix: `!kind` and what follows. What there can be one of stands once.
    fn add(&mut self, kind: &str, at: &Word, words: &[Word]) -> Checked<()> {
        let once = ["Experiment", "Binary", "tailFCT"].contains(&kind);
        if once && self.seen.iter().any(|seen| seen == kind) {
            let error = self.error(format!("`!{kind}` stands twice in a case"), at);
            return Err(error.hint("leave one of them out; another case begins with its matrix"));
        }
        self.seen.push(kind.to_owned());
        match (kind, words) {
            ("continue", []) => {}
            ("Experiment", [_, ..]) => {
                let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                self.name = texts.join(" ");
            }
            ("Binary", [binary]) => self.binary = Some(binary.clone()),
            ("Param", [_, ..]) => self.flags.extend(words.iter().cloned()),
            ("tailFCT", [limit]) => {
                // In these lists 0 means that there is none.
                self.limit = Some(self.number(limit)?).filter(|&limit| limit > 0);
            }
            ("FCT", [flow, limit]) => {
                let us = self.number(limit)?;
                if us == 0 {
                    let error = self.error("a limit of 0 us for a flow", limit);
                    return Err(error.hint("nothing is so fast; leave the line out for no limit"));
                }
                self.flows.push((flow.clone(), us));
            }
            _ if KINDS.contains(&kind) => {
                let error = Diagnostic::new(format!("`!{kind}` with {} words", words.len()));
                let error = error.at(&self.list, at.span.clone(), "here");
                return Err(error.hint(
                    "`!Experiment NAME`, `!Binary PROGRAM`, `!Param FLAG VALUE`, `!tailFCT US`, \
                     `!FCT FLOW US`, `!continue`",
                ));
            }
            _ => {
                let error = Diagnostic::new(format!("`!{kind}` is not known"));
                let error = error.at(&self.list, at.span.clone(), "here");
                return Err(error.hint(did_you_mean(kind, KINDS)));
            }
        }
        Ok(())
    }

    /// A whole number of the list.
    pub(super) fn number(&self, word: &Word) -> Checked<u64> {
        word.text.parse().map(u32::into).map_err(|_| {
            let error = self.error(format!("`{}` is not a whole number", word.text), word);
            error.hint("microseconds, packets and bytes are whole numbers below 2^32")
        })
    }

    /// An error at a word of the list.
    pub(super) fn error(&self, message: impl Into<String>, at: &Word) -> Diagnostic {
        Diagnostic::new(message).at(&self.list, at.span.clone(), "here")
    }
}

/// The words of a line that begins at `offset`.
fn words(line: &str, offset: usize) -> Vec<Word> {
    let start = |word: &str| offset + (word.as_ptr() as usize - line.as_ptr() as usize);
    let word =
        |text: &str| Word { text: text.to_owned(), span: start(text)..start(text) + text.len() };
    line.split_whitespace().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Checked<CaseList> {
        let source = Source { name: "list.txt".to_owned(), text: text.to_owned() };
        CaseList::read(&Arc::new(source), Path::new("there"))
    }

    #[test]
    fn a_case_is_a_matrix_and_the_lines_below_it() {
        let text = "# two\none.cm \n!Experiment Just one\n!Binary ./prog\n!Param -end 1000\n\
                    !Param -x\n!tailFCT 190\n!FCT Uec_1_0 215\n\n!continue\ntwo.cm\n!tailFCT 0\n";
        let list = read(text).unwrap();
        let [one, two] = list.cases() else { panic!("{list:?}") };
        assert_eq!(
            (one.name(), one.matrix.text.as_str(), one.limit()),
            ("Just one", "one.cm", Some(190))
        );
        let flags: Vec<&str> = one.flags.iter().map(|flag| flag.text.as_str()).collect();
        assert_eq!(flags, ["-end", "1000", "-x"]);
        assert_eq!(&text[one.flags[2].span.clone()], "-x");
        assert_eq!((one.flows[0].0.text.as_str(), one.flows[0].1), ("Uec_1_0", 215));
        assert_eq!((two.name(), two.limit(), two.flags.len()), ("two.cm", None, 0));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_matrix() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list.txt");
        std::fs::write(&path, "\u{feff}one.cm\n!tailFCT 5\n").unwrap();
        let list = CaseList::load(&path).unwrap();
        assert_eq!((list.cases()[0].name(), list.cases()[0].limit()), ("one.cm", Some(5)));
    }

    #[test]
    fn what_is_no_list_is_refused_where_it_is() {
        let refused = |text: &str| read(text).unwrap_err().to_string();
        for (text, error) in [
            ("!Param -x\n", "list.txt:1:1: a parameter before the first case"),
            ("a.cm\n!tailFCT soon\n", "list.txt:2:10: `soon` is not a whole number"),
            (
                "a.cm\n!tailFTC 1\n",
                "list.txt:2:1: `!tailFTC` is not known; did you mean `tailFCT`?",
            ),
            ("a.cm -paths 4\n", "list.txt:1:6: `-paths` after the matrix"),
            ("a.cm\n!tailFCT 5\n!tailFCT 6\n", "list.txt:3:1: `!tailFCT` stands twice in a case"),
            ("a.cm\n!FCT Uec_1_0 0\n", "list.txt:2:14: a limit of 0 us for a flow"),
            ("a.cm\n!tailFCT\n", "list.txt:2:1: `!tailFCT` with 0 words"),
            ("# nothing\n", "`list.txt` has no cases"),
        ] {
            assert!(refused(text).starts_with(error), "{}", refused(text));
        }
    }
}
