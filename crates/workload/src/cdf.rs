//! The reader of size distributions: our own files and those that users have.
//!
//! One point per line, `size share`: a size in bytes and the share of messages of at most that
//! size, separated by blanks, tabs or a comma. `#` starts a comment; five comments mean something:
//! `# title:`, `# publication:`, `# source:`, `# sampling:` (`linear`, which is the default, or
//! `discrete`) and `# multiple of:` (of how many bytes all sizes are whole multiples, where
//! messages are whole packets; 1 if it is not there).
//!
//! Accepted as well, because published files look like that:
//! - shares in percent, recognised by a last share of 100 (HPCC, ConWeave, Parsimon);
//! - a first line with one number, the mean (HomaSimulation). It is not used: the mean follows
//!   from the points. Such files list discrete sizes; add `# sampling: discrete`.
//!
//! Sizes are whole bytes. Neither column may fall. Linear points may repeat a size (a jump) or a
//! share (a gap), but not both; discrete points must rise in both columns.

use crate::sizes::{About, Point, Sampling, SizeDist};
use crate::text::{Line, Parsed, Place, Source, TextError, Word, to_u32};

/// Sizes above this are not exact in an `f64`: 9 PB.
const SIZE_MAX: f64 = (1u64 << 53) as f64;

/// How far the last share may be from 1 (or 100, in hundredths): sums of rounded shares.
const END_TOLERANCE: f64 = 1e-6;

/// Read a size distribution. `name` is the file's name, for errors.
///
/// # Errors
/// An empty file, a line that is not two numbers, a negative or fractional size, a share that is
/// not a number from 0 to 1 (or 100), points that fall or repeat, a last share that is not 1 or 100
/// (as in a file cut short), an unknown sampling rule.
pub fn read_sizes(text: &str, name: &str) -> Result<SizeDist, TextError> {
    let source = Source::new(text, name);
    let Header { sampling, multiple, about } = read_header(&source)?;
    let mut lines: Vec<Line<'_>> = source.lines(is_separator).collect();
    if let Some(mean) = lines.first().filter(|line| line.words.len() == 1).map(Line::first) {
        number(&source, mean, "mean")?;
        lines.remove(0);
    }
    let rows = lines.iter().map(|line| row(&source, line)).collect::<Result<Vec<_>, _>>()?;
    let Some(last) = rows.last() else {
        let hint = "write one point per line: a size in bytes and a share, as in \"1500 0.25\"";
        return Err(source.missing(source.end(), "no points", hint));
    };
    let whole = whole_share(&source, last)?;
    let mut points: Vec<Point> = Vec::with_capacity(rows.len());
    for row in &rows {
        let point = point(&source, row, whole, points.last().copied(), sampling)?;
        if !point.size.is_multiple_of(multiple) {
            let message = format!("the size is no multiple of {multiple}");
            return Err(source.wrong(row.size.1, message, "`# multiple of:` says that all are"));
        }
        points.push(point);
    }
    if let Some(last) = points.last_mut() {
        last.share = 1.0;
    }
    Ok(SizeDist::from_points(sampling, multiple, points, about))
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || c == ','
}

/// What the comments say.
struct Header {
    sampling: Sampling,
    multiple: u64,
    about: About,
}

fn read_header(source: &Source<'_>) -> Parsed<Header> {
    let about = About { title: source.name.to_owned(), ..About::default() };
    let mut header = Header { sampling: Sampling::Linear, multiple: 1, about };
    for (line, number) in source.text.lines().zip(1u32..) {
        let Some((key, value)) = line.strip_prefix('#').and_then(|rest| rest.split_once(':'))
        else {
            continue;
        };
        let text = value.trim();
        let wrong = |message, hint| {
            let before = line.len() - value.trim_start().len();
            let column = line.get(..before).unwrap_or(line).chars().count() + 1;
            let at = Place { line: number, column: to_u32(column) };
            source.wrong(Word { text, at }, message, hint)
        };
        match key.trim() {
            "title" => header.about.title = text.to_owned(),
            "publication" => header.about.publication = text.to_owned(),
            "source" => header.about.source = text.to_owned(),
            "sampling" => {
                header.sampling = match text {
                    "linear" => Sampling::Linear,
                    "discrete" => Sampling::Discrete,
                    _ => return Err(wrong("unknown sampling rule", "use one of linear, discrete")),
                }
            }
            "multiple of" => {
                let bytes = text.parse::<u32>().ok().filter(|&bytes| bytes > 0);
                let Some(bytes) = bytes else {
                    let hint = "for example `# multiple of: 1400`";
                    return Err(wrong("not a number of bytes", hint));
                };
                header.multiple = u64::from(bytes);
            }
            _ => {}
        }
    }
    Ok(header)
}

/// A line of the file: its numbers and where they stand.
struct Row<'a> {
    size: (f64, Word<'a>),
    share: (f64, Word<'a>),
}

fn row<'a>(source: &Source<'_>, line: &Line<'a>) -> Parsed<Row<'a>> {
    let hint = "write a size in bytes and a share, as in \"1500 0.25\"";
    if let Some(extra) = line.words.get(2) {
        return Err(source.wrong(*extra, "more than two columns", hint));
    }
    let (size, share) = (line.first(), line.word(1));
    if share.text.is_empty() {
        return Err(source.wrong(share, "the share is missing", hint));
    }
    Ok(Row {
        size: (number(source, size, "size")?, size),
        share: (number(source, share, "share")?, share),
    })
}

/// A finite number that is not negative.
fn number(source: &Source<'_>, word: Word<'_>, what: &str) -> Parsed<f64> {
    match word.text.parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 0.0 => Ok(n),
        Ok(n) if n < 0.0 => {
            Err(source.wrong(word, format!("negative {what}"), "sizes and shares start at 0"))
        }
        _ => Err(source.wrong(
            word,
            format!("the {what} is not a number"),
            "write a size in bytes and a share, as in \"1500 0.25\"",
        )),
    }
}

/// What all messages together are in this file: 1 or 100.
fn whole_share(source: &Source<'_>, last: &Row<'_>) -> Parsed<f64> {
    let (share, word) = last.share;
    let near = |whole: f64| (share / whole - 1.0).abs() <= END_TOLERANCE;
    [1.0, 100.0].into_iter().find(|&whole| near(whole)).ok_or_else(|| {
        let hint = "the last share must be 1, or 100 in percent: is the file cut off?";
        source.wrong(word, "the shares do not end at 1 or 100", hint)
    })
}

fn point(
    source: &Source<'_>,
    row: &Row<'_>,
    whole: f64,
    before: Option<Point>,
    sampling: Sampling,
) -> Parsed<Point> {
    let (size, size_word) = row.size;
    let (share, share_word) = row.share;
    if size > SIZE_MAX || (size as u64) as f64 != size {
        let hint = format!("write whole bytes, at most {SIZE_MAX}");
        return Err(source.wrong(size_word, "the size is not a whole number of bytes", hint));
    }
    if share > whole * (1.0 + END_TOLERANCE) {
        let message = format!("a share above {whole}, where the file ends at {whole}");
        return Err(source.wrong(share_word, message, "shares rise to their last value"));
    }
    let point = Point { size: size as u64, share: (share / whole).min(1.0) };
    let Some(before) = before else { return Ok(point) };
    let strict = sampling == Sampling::Discrete;
    if point.size < before.size || (strict && point.size == before.size) {
        let message = format!("sizes are not increasing: {} came before", before.size);
        return Err(source.wrong(size_word, message, "sort the points by size"));
    }
    if point.share < before.share || (strict && point.share == before.share) {
        let message = format!("shares are not increasing: {} came before", before.share * whole);
        let hint = "the second column is cumulative: the share of messages of at most that size";
        return Err(source.wrong(share_word, message, hint));
    }
    if point == before {
        let message = "the points are not increasing: this one repeats the one before";
        return Err(source.wrong(size_word, message, "remove the line"));
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_commas_and_a_mean_in_front_are_fine() {
        let plain = read_sizes("100 0.25\n200 1\n", "x").expect("plain");
        for text in ["100 25\n200 100\n", "100,0.25\r\n200,1\r\n", "175.0\n100\t0.25\n200\t1"] {
            assert_eq!(read_sizes(text, "x").expect(text), plain, "{text:?}");
        }
        assert_eq!(plain.about().title, "x");
    }

    #[test]
    fn errors_name_the_place_and_the_value() {
        let cases = [
            ("", 1, 1, "", "no points"),
            ("# only\n# comments", 2, 11, "", "no points"),
            ("1 0.5\n2\n", 2, 2, "", "the share is missing"),
            ("1 0.5\n2 x\n", 2, 3, "x", "the share is not a number"),
            ("1 NaN\n2 1\n", 1, 3, "NaN", "the share is not a number"),
            ("1 -0.5\n2 1\n", 1, 3, "-0.5", "negative share"),
            ("-1 0.5\n2 1\n", 1, 1, "-1", "negative size"),
            ("1.5 0.5\n2 1\n", 1, 1, "1.5", "the size is not a whole number of bytes"),
            ("1e300 0.5\n2 1\n", 1, 1, "1e300", "the size is not a whole number of bytes"),
            ("1 0.5\n2 0.9\n", 2, 3, "0.9", "the shares do not end at 1 or 100"),
            ("1 0.5 7\n2 1\n", 1, 7, "7", "more than two columns"),
            ("1 1.5\n2 1\n", 1, 3, "1.5", "a share above 1, where the file ends at 1"),
            ("1 0.5\n2 0.4\n3 1\n", 2, 3, "0.4", "shares are not increasing: 0.5 came before"),
            ("2 0.4\n1 0.5\n3 1\n", 2, 1, "1", "sizes are not increasing: 2 came before"),
            (
                "1 0.5\n1 0.5\n3 1\n",
                2,
                1,
                "1",
                "the points are not increasing: this one repeats the one before",
            ),
            (
                "# sampling: discrete\n1 0.5\n2 0.5\n3 1\n",
                3,
                3,
                "0.5",
                "shares are not increasing: 0.5 came before",
            ),
            ("# sampling: cubic\n1 1\n", 1, 13, "cubic", "unknown sampling rule"),
            ("# multiple of: 0\n1 1\n", 1, 16, "0", "not a number of bytes"),
            ("# multiple of: 7\n14 0.5\n20 1\n", 3, 1, "20", "the size is no multiple of 7"),
        ];
        for (text, line, column, value, message) in cases {
            let error = read_sizes(text, "x").expect_err(text);
            assert_eq!(error.says(), (line, column, value, message), "{text:?}");
        }
    }
}
