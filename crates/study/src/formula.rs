//! [`Formula`]: arithmetic over named metrics, by the library `exmex`.

use exmex::{Express, FlatEx};

/// A formula as written in `metric`.
#[derive(Debug)]
pub(crate) struct Formula {
    pub(crate) text: String,
    expression: FlatEx<f64>,
}

/// Why a text is not a formula.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotAFormula(pub(crate) String);

impl Formula {
    /// Read `text`.
    pub(crate) fn parse(text: &str) -> Result<Self, NotAFormula> {
        // The library's tokenizer is for ASCII, and takes names with dots and colons in braces.
        if let Some(c) = text.chars().find(|c| !c.is_ascii() || matches!(c, '{' | '}')) {
            return Err(NotAFormula(format!("`{c}` has no meaning in it")));
        }
        let expression = exmex::parse::<f64>(&translated(text)?);
        let expression = expression.map_err(|e| NotAFormula(e.msg().replace(['{', '}'], "")))?;
        Ok(Self { text: text.to_owned(), expression })
    }

    /// The names in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.expression.var_names().iter().map(String::as_str)
    }

    /// Its value where `value` knows the names.
    ///
    /// # Errors
    /// What has no value.
    pub(crate) fn eval(
        &self,
        value: impl FnMut(&str) -> Result<f64, String>,
    ) -> Result<f64, String> {
        let values: Vec<f64> = self.names().map(value).collect::<Result<_, _>>()?;
        let result = self.expression.eval(&values).map_err(|e| e.to_string())?;
        match result.is_finite() {
            true => Ok(result),
            false => Err(format!("`{}` is {result}", self.text)),
        }
    }
}

/// `text` as the library takes it: names in braces, numbers without an exponent.
fn translated(text: &str) -> Result<String, NotAFormula> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = match first {
            '0'..='9' | '.' => number(rest),
            c if c.is_ascii_alphabetic() || c == '_' => name(rest),
            _ => &rest[..1],
        };
        rest = &rest[word.len()..];
        match first {
            '0'..='9' | '.' => {
                let not_a_number = |_| NotAFormula(format!("`{word}` is not a number"));
                out += &word.parse::<f64>().map_err(not_a_number)?.to_string();
            }
            // A function is followed by a parenthesis.
            _ if word == name(word) && !rest.trim_start().starts_with('(') => {
                out += &format!("{{{word}}}");
            }
            _ => out += word,
        }
    }
    Ok(out)
}

/// The letters, digits, `_`, `.` and `:` at the start of `text`; empty only without any.
fn name(text: &str) -> &str {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':');
    &text[..text.find(|c| !part(c)).unwrap_or(text.len())]
}

/// The number at the start of `text`, with its exponent.
fn number(text: &str) -> &str {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mantissa = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let Some(exponent) = text[mantissa..].strip_prefix(['e', 'E']) else {
        return &text[..mantissa];
    };
    let signed = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let sign = exponent.len() - signed.len();
    match digits(signed) {
        0 => &text[..mantissa],
        n => &text[..mantissa + 1 + sign + n],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(text: &str) -> Result<f64, String> {
        Formula::parse(text).map_err(|e| e.0)?.eval(|name| match name {
            "n" => Ok(9.0),
            "fct_us.p99" => Ok(50.0),
            "mptcp::short.fct_us.p99" => Ok(200.0),
            other => Err(format!("no {other}")),
        })
    }

    #[test]
    fn formulas_by_hand() {
        let cases = [
            ("fct_us.p99", 50.0),
            ("mptcp::short.fct_us.p99 / fct_us.p99", 4.0),
            ("100 * (fct_us.p99 - 1) / n", 4900.0 / 9.0),
            ("2^3 + sqrt(n) + abs(-1)", 12.0),
            ("1e-3*n + 2.5E2 + 1e3", 1250.009),
            ("fct_us.p99/(n*450e3*8/10e9 + 42.256e-6)", 50.0 / (0.003_24 + 42.256e-6)),
            ("-n + 10", 1.0),
            ("n-1-1", 7.0),
        ];
        for (text, value) in cases {
            let found = eval(text).unwrap();
            assert!((found - value).abs() <= 1e-12 * value.abs(), "{text}: {found}");
        }
    }

    #[test]
    fn what_is_no_formula_or_has_no_value() {
        for text in [
            "",
            "n +",
            "(n",
            "n n",
            "{n}",
            "foo(n)",
            "n / 0 + x",
            "fct_us.p98",
            "1 / (n - 9)",
            "1.2.3",
            "n × 2",
            "1e999",
        ] {
            assert!(eval(text).is_err(), "{text}");
        }
        assert_eq!(eval("fct_us.p98").unwrap_err(), "no fct_us.p98");
        assert_eq!(eval("1 / (n - 9)").unwrap_err(), "`1 / (n - 9)` is inf");
    }
}
