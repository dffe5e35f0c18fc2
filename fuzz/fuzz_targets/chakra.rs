//! The reader of Chakra traces, two ranks with the same bytes, and of the file of groups: whatever
//! the bytes, tasks or an error with a record.
#![no_main]

use ai::readers::{File, Options, ReadError, read_chakra};

libfuzzer_sys::fuzz_target!(|data: (&[u8], Option<&[u8]>)| {
    let (bytes, groups) = data;
    let files = ["x.0.et", "x.1.et"].map(|name| File { name, bytes });
    let groups = groups.map(|bytes| File { name: "groups.json", bytes });
    if let Err(ReadError::Record(error)) = read_chakra(&files, &Options { ranks: 2, groups }) {
        assert!(error.offset <= bytes.len(), "{error:?}");
    }
});
