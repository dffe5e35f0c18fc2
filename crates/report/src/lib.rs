//! Result files to one self-contained HTML page.
