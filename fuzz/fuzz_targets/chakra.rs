//! The reader of Chakra traces, two ranks with the same bytes, and of astra-sim's JSON files: whatever
//! the bytes, tasks or an error with a record.
#![no_main]

use ai::readers::{File, Options, ReadError, read_chakra};

libfuzzer_sys::fuzz_target!(|data: (&[u8], [Option<&[u8]>; 3])| {
    let (bytes, jsons) = data;
    let files = ["x.0.et", "x.1.et"].map(|name| File { name, bytes });
    let [groups, system, network] =
        jsons.map(|json| Some(File { name: "x.json", bytes: json? }));
    let options = Options { ranks: 2, groups, system, network };
    if let Err(ReadError::Record(error)) = read_chakra(&files, &options) {
        assert!(error.offset <= bytes.len(), "{error:?}");
    }
});
