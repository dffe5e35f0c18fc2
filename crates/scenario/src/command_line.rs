//! [`command_line()`]: the command that repeats something, as one would type it.

/// `trimline` with `args` (without the program's name), as one would type it.
#[must_use]
pub fn command_line(args: impl Iterator<Item = String>) -> String {
    args.fold("trimline".to_owned(), |line, arg| line + " " + &quoted(&arg))
}

/// `arg` for a POSIX shell.
#[must_use]
pub fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_survives_a_shell() {
        let args = ["run", "a b.toml", "--set", "name=it's"].map(str::to_owned);
        assert_eq!(command_line(args.into_iter()), "trimline run 'a b.toml' --set 'name=it'\\''s'");
    }
}
