//! How large programs may be. P4-16 sets no limits; these bound time, memory and stack whatever the
//! text, and are far beyond what programs for a NIC need. docs/p4.md lists them.

/// Tokens of a program with all that it includes: bounds memory.
pub(crate) const MAX_TOKENS: usize = 1 << 18;
/// The deepest chain of includes.
pub(crate) const MAX_INCLUDES: usize = 16;
/// The most includes in all: files that include two others each would double them at every level.
pub(crate) const MAX_INCLUDED: usize = 1000;
/// The longest literal, in digits as written: bounds the time that its value takes to work out.
pub(crate) const MAX_DIGITS: usize = 400;
/// The longest `int`, in bits: more is a mistake, or takes too long to work out.
pub(crate) const MAX_INT_BITS: u64 = 4096;

/// How deep expressions, types and statements may be nested in one another. The grammar has no
/// limit; the stack of whoever walks the tree has. An `if` with its block counts three times.
pub(crate) const MAX_DEPTH: u16 = 100;
/// How far the parser looks ahead to tell type arguments from a comparison, in tokens.
pub(crate) const MAX_LOOK_AHEAD: usize = 64;

/// The most statements of a program, with everything inlined and unrolled.
pub(crate) const MAX_STATEMENTS: usize = 1 << 16;
/// How deep controls may apply one another.
pub(crate) const MAX_CONTROLS: usize = 16;
/// How deep actions may call one another.
pub(crate) const MAX_ACTIONS: usize = 16;
/// The most states of a parser, loops unrolled.
pub(crate) const MAX_STATES: usize = 1 << 10;

/// The most numbers in a variable: structs may nest, and what nests doubles quickly.
pub(crate) const MAX_SLOTS: usize = 1 << 12;
/// The most numbers in all variables of a pipeline.
pub(crate) const MAX_ALL_SLOTS: usize = 4 * MAX_SLOTS;
/// The most headers of a stack: each is kept by itself.
pub(crate) const MAX_STACK: u32 = 64;
/// The most errors, the core library's included: as many as have a number.
pub(crate) const MAX_PARSER_ERRORS: usize = 1 << crate::ir::ERROR_WIDTH;
/// The most cells of all registers and counters of a program: 16 MB.
pub(crate) const MAX_CELLS: u128 = 1 << 20;
/// The most entries of a table.
pub(crate) const MAX_ENTRIES: u32 = 1 << 24;
/// Room in a table that does not say its size: what p4c's back end for BMv2 takes.
pub(crate) const DEFAULT_ENTRIES: u32 = 1024;
/// The longest `@latency`, cycles.
pub(crate) const MAX_LATENCY: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_them() {
        let page = include_str!("../../../../docs/p4.md");
        let rows: [(&str, u128); 18] = [
            ("bits of a number", crate::ir::MAX_WIDTH.into()),
            ("bits of an `int`", MAX_INT_BITS.into()),
            ("digits of a literal", MAX_DIGITS as u128),
            ("tokens, with all that is included", MAX_TOKENS as u128),
            ("includes in one another", MAX_INCLUDES as u128),
            ("includes in all", MAX_INCLUDED as u128),
            ("levels in one another (an `if` with its block is three)", MAX_DEPTH.into()),
            ("tokens of a call's type arguments", MAX_LOOK_AHEAD as u128),
            (
                "statements, with controls inlined and parsers' loops unrolled",
                MAX_STATEMENTS as u128,
            ),
            ("controls in one another", MAX_CONTROLS as u128),
            ("actions in one another", MAX_ACTIONS as u128),
            ("states of a parser, loops unrolled", MAX_STATES as u128),
            ("numbers in a variable; four times as many in a pipeline", MAX_SLOTS as u128),
            ("headers of a stack", MAX_STACK.into()),
            ("errors", MAX_PARSER_ERRORS as u128),
            ("cells of all registers and counters", MAX_CELLS),
            ("entries of a table; 1024 if it does not say its `size`", MAX_ENTRIES.into()),
            ("cycles of `@latency`", MAX_LATENCY.into()),
        ];
        for (what, number) in rows {
            assert!(page.contains(&format!("| {what} | {number} |\n")), "{what}: {number}");
        }
        assert_eq!((MAX_ALL_SLOTS, DEFAULT_ENTRIES), (4 * MAX_SLOTS, 1024), "as the rows say");
    }
}
